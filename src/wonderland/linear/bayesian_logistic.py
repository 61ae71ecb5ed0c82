"""Bayesian logistic regression by Laplace's method.

    W ~ N(μ, C/τ) ,  b flat ,   p(θ | S) ≈ N(θ̂, H⁻¹) ,
    H = Σ_i ω_i (diag p_i − p_i p_iᵀ) ⊗ x̃_i x̃_iᵀ + τ/C

with θ̂ the fit of `LogisticRegression` and H the exact Hessian there. Predictions are averages over
this Gaussian (`losses.averages`): logits at x are N(m, S) with S = x̃ᵀH⁻¹x̃. The evidence for C is

    log p(S | C) ≈ −Σωℓ − ½ Σ τ(W − μ)²/C + ½ Σ log τ/C − ½ log|H| + ½ p_b log 2π ,

p_b intercepts, whose flat prior leaves an additive constant open. C="evidence" maximises it.
Shapes: X (n, d), y (n,), W (c, d), b (c,), c = 1 for two classes, else k; q = d + 1; p = cq.

Reference: MacKay (1992), The evidence framework applied to classification networks; Spiegelhalter
and Lauritzen (1990).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, solve_triangular
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from wonderland.bases.basis import namespace
from wonderland.core.blocks import map_rows
from wonderland.core.errors import InputError, nearest
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.solution import Solution
from wonderland.linear.bayesian_check import check_level, is_real
from wonderland.linear.logistic_check import check_parameters, check_weights
from wonderland.linear.logistic_curvature import Whole, hessian_of
from wonderland.linear.logistic_evidence import Report, claims_of
from wonderland.linear.logistic_problem import Logistic, sweep
from wonderland.linear.logistic_solve import Prior, Wish, regress, state
from wonderland.losses.averages import (
    entropy,
    entropy_average,
    sigmoid_average,
    softmax_average,
)
from wonderland.shell.classifier import Classifier
from wonderland.shell.inputs import Classes
from wonderland.shell.uncertainty import Uncertainty

__all__ = ["BayesianLogisticModel", "BayesianLogisticRegression", "fit_bayesian_logistic"]

ROWS = 4096  # of one block of predictions
WIDEST = 4000  # parameters of the largest Hessian
DECADES = np.arange(-4.0, 5.0)  # of C, from which the search for the best starts
FLAT = 1e-2  # nats for an e-fold of C at which the evidence counts as level
STEP = 0.05  # in log C, of the difference that measures the slope


class BayesianLogisticModel(eqx.Module):
    """N(θ̂, RRᵀ) over the parameters of a linear classifier.

    Attributes:
        coef: W (d,) or (k, d).
        intercept: b () or (k,).
        root: R (c, q, p), the intercept last of the q.
    """

    coef: Any
    intercept: Any
    root: Any

    def __call__(self, x: Any) -> Any:
        """Mean logits of one sample x (d,)."""
        return namespace(x).matmul(self.coef, x) + self.intercept

    def spread(self, X: Any) -> Any:
        """Roots of the covariance of the logits at rows X (n, d): (n, c, p)."""
        d = X.shape[1]
        parts = [X @ self.root[a, :d] for a in range(len(self.root))]
        found = np.stack([np.asarray(part) for part in parts], axis=1)
        return found + self.root[None, :, d] if self.root.shape[1] > d else found


class Fitted(NamedTuple):
    """A fit, its Gaussian, and its evidence.

    Attributes:
        report: Of the fit.
        root: R (p, p), H⁻¹ = RRᵀ.
        log_evidence: log p(S | C), Laplace.
        effective: γ = p − tr(H⁻¹τ/C): parameters that the data determine.
    """

    report: Report
    root: np.ndarray
    log_evidence: float
    effective: float


def laplace(problem: Logistic, report: Report) -> Fitted:
    """Laplace's approximation at the end of a fit."""
    curvature, theta = Whole(), report.end.theta
    p, mass = len(theta), float(problem.mass[0])
    if p > WIDEST:
        raise InputError(
            f"{p} parameters: a Hessian of {p} × {p}",
            f"at most {WIDEST}",
            'Use wl.Posterior(wl.LogisticRegression(), structure="diagonal") or fewer columns',
        )
    total = sweep(
        problem,
        theta[None],
        lambda X, P, weight: curvature.sums(X, P, weight, intercept=problem.fit_intercept),
    )
    H = mass * hessian_of(total.hessian[0], problem)
    scale = 1.0 / np.sqrt(np.diag(H))
    lower = cho_factor(H * np.outer(scale, scale), lower=True)[0]
    root = scale[:, None] * solve_triangular(lower, np.eye(p), lower=True, trans="T")
    c, q, d = problem.columns, problem.width, problem.X.shape[1]
    held = mass * problem.penalty[0]  # τ/C
    variance = (root**2).sum(axis=1).reshape(c, q)[:, :d]
    log_determinant = 2.0 * float(np.sum(np.log(np.diag(lower)) - np.log(scale)))
    free = 0
    if problem.fit_intercept:
        free = c if c == 1 else c - 1
        # One number may be added to all intercepts of softmax: its made-up curvature goes again.
        if c > 1:
            common = np.zeros((c, q))
            common[:, d] = 1.0 / np.sqrt(c)
            log_determinant -= float(np.log(common.ravel() @ H @ common.ravel()))
    value = -report.proof.primal * mass + 0.5 * c * float(np.sum(np.log(held)))
    value += 0.5 * free * np.log(2 * np.pi) - 0.5 * log_determinant
    effective = c * d + free - float(np.sum(variance * held))
    return Fitted(report, root, float(value), effective)


def best_weight(value: Callable[[float], float]) -> tuple[float, float]:
    """log C at the maximum of the evidence, and the slope there by a central difference."""
    grid = np.log(10.0) * DECADES
    values = [value(float(at)) for at in grid]
    best = int(np.argmax(values))
    ends = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)]))
    found = minimize_scalar(
        lambda at: -value(float(at)), bounds=ends, method="bounded", options={"xatol": 1e-3}
    )
    at = float(found.x) if -found.fun >= values[best] else float(grid[best])
    return at, (value(at + STEP) - value(at - STEP)) / (2 * STEP)


class _Search:
    """Fits for one C after another, each starting where the last one ended."""

    def __init__(self, make: Callable[[float], Logistic], wish: Wish) -> None:
        self.make, self.wish = make, wish
        self.fits = 0

    def at(self, log_c: float) -> Fitted:
        """The fit at C, in the metric of nothing but its own Hessian."""
        problem = self.make(float(np.exp(log_c)))
        report = regress(problem, float(np.exp(log_c)), self.wish)
        self.wish = self.wish._replace(start=problem.split(report.end.theta))
        self.fits += 1
        return laplace(problem, report)

    def value(self, log_c: float) -> float:
        """log p(S | C)."""
        return self.at(log_c).log_evidence


def fit_bayesian_logistic(
    X: Any,
    y: Any,
    C: Any = 1.0,
    weight: Any = None,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-8,
) -> Solution[BayesianLogisticModel]:
    """Bayesian logistic regression as a pure function of host arrays.

    Args:
        X: (n, d).
        y: Class numbers 0 … k − 1 (n,).
        C: Variance of the prior of each coefficient, or "evidence".
        weight: ω (n,) ≥ 0.
        fit_intercept: Whether b is free.
        tol: Bound on the largest entry of the gradient, a mean over samples.

    Returns:
        The posterior; log_marginal_likelihood, effective_parameters, C, gradient_norm.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> found = fit_bayesian_logistic(X, np.array([0, 1, 0, 1]))
    >>> round(found.evidence["log_marginal_likelihood"], 3)
    -1.976
    """
    codes = np.asarray(y)
    k = int(codes.max()) + 1
    omega = None if weight is None else np.asarray(weight, np.float64)

    def make(C: float) -> Logistic:
        return state(np.asarray(X, np.float64), codes, k, omega, C, fit_intercept=fit_intercept)

    fitted, _ = _fitted(_Search(make, Wish("auto", tol)), C)
    facts = {
        "log_marginal_likelihood": fitted.log_evidence,
        "effective_parameters": fitted.effective,
        "C": fitted.report.C,
        "gradient_norm": float(np.max(np.abs(fitted.report.end.gradient), initial=0.0)),
    }
    return Solution(model_of(fitted, np.dtype(np.float64)), fitted.report.end.status, facts)


def _fitted(search: _Search, C: Any) -> tuple[Fitted, float]:
    """The fit for a given C, or for the best, and the slope of the evidence."""
    if isinstance(C, str):
        at, slope = best_weight(search.value)
        return search.at(at), slope
    return search.at(float(np.log(C))), np.nan


def model_of(fitted: Fitted, dtype: np.dtype) -> BayesianLogisticModel:
    """The posterior in the shapes of `LogisticRegression`'s model."""
    problem = fitted.report.problem
    coef, intercept = (part.astype(dtype) for part in problem.split(fitted.report.end.theta))
    root = fitted.root.reshape(problem.columns, problem.width, -1)
    if problem.columns == 1:
        coef, intercept = coef[0], intercept[0]
    return BayesianLogisticModel(coef, intercept, root)


class BayesianLogisticRegression(Classifier):
    """Logistic regression averaged over the posterior of its coefficients.

    Args:
        C: Variance of the prior N(0, C) of each coefficient, scikit-learn's weight of the loss;
            "evidence" for the C with the largest marginal likelihood.
        tol: Bound on the largest entry of the gradient of the objective divided by C Σω.
        fit_intercept: Whether b is free; it has no prior.
        class_weight: None, "balanced" or a mapping label → weight.
        solver: As in `LogisticRegression`.
        max_iter: Most steps.
        n_jobs: Cores used; None for all.
        prior: (mean μ, precision τ): the prior is N(μ, C/τ).

    Attributes:
        classes_: The labels, sorted (k,).
        coef_: Posterior mode of W (1, d) or (k, d).
        intercept_: Of b (1,) or (k,).
        C_: The C in use.
        sigma_: Posterior covariance of [W | b], flattened by class (p, p).
        n_iter_: Steps (1,).
        evidence_: Claims: log_marginal_likelihood, effective_parameters, gradient_norm, ….
        model_: The posterior as an `equinox.Module`.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = BayesianLogisticRegression().fit(X, ["low", "high", "low", "high"])
    >>> model.predict_proba([[2.0], [50.0]]).round(2)
    array([[0.55, 0.45],
           [0.75, 0.25]])
    """

    coef_: np.ndarray
    intercept_: np.ndarray
    model_: BayesianLogisticModel

    def __init__(
        self,
        C: Any = 1.0,
        *,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "lbfgs",
        max_iter: int = 100,
        n_jobs: int | None = None,
        prior: Any = None,
    ) -> None:
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.prior = prior

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        if isinstance(self.C, str):
            if self.C != "evidence":
                raise InputError(
                    f"C is {self.C!r}", "a number > 0 or 'evidence'", nearest(self.C, ["evidence"])
                )
        elif not (is_real(self.C) and self.C > 0):
            raise InputError(
                f"C is {self.C!r}",
                "a finite number > 0: the variance of the prior, which must be proper",
                'Pass C=1.0, or C="evidence"',
            )
        check_parameters(_Plain(self))

    def _fit(self, table: Classes) -> dict[str, Any]:
        check_weights(table)
        prior = None if self.prior is None else Prior(*self.prior)
        k, intercept = len(table.classes), bool(self.fit_intercept)

        def make(C: float) -> Logistic:
            X, codes, weight = table.X, table.codes, table.weight
            return state(X, codes, k, weight, C, fit_intercept=intercept, prior=prior)

        wish = Wish(str(self.solver), float(self.tol), int(self.max_iter))
        return self._publish(*_fitted(_Search(make, wish), self.C), table.dtype)

    def _publish(self, fitted: Fitted, slope: float, dtype: np.dtype) -> dict[str, Any]:
        model, report = model_of(fitted, dtype), fitted.report
        return {
            "coef_": np.atleast_2d(model.coef),
            "intercept_": np.atleast_1d(model.intercept),
            "C_": float(report.C),
            "n_iter_": np.array([report.end.iterations], dtype=np.int32),
            "model_": model,
            "status_": report.end.status,
            "evidence_": Evidence(_claims(fitted, slope, tol=float(self.tol))),
        }

    @property
    def sigma_(self) -> np.ndarray:
        """Posterior covariance of [W | b], flattened by class (p, p)."""
        self._require_fit()
        flat = self.model_.root.reshape(-1, self.model_.root.shape[2])
        return flat @ flat.T

    def confidence_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Central posterior intervals of the coefficients, (low, high), shaped like `coef_`."""
        check_level(level)
        self._require_fit()
        deviation = np.sqrt((self.model_.root[:, : self.coef_.shape[1]] ** 2).sum(axis=2))
        half = float(ndtri(0.5 + 0.5 * level)) * deviation
        return self.coef_ - half, self.coef_ + half

    def _scores(self, X: Any) -> np.ndarray:
        if not sp.issparse(X) and X.dtype != self.coef_.dtype:
            X = X.astype(np.float64)
        product = X @ self.coef_.T
        scores = np.asarray(product.toarray() if sp.issparse(product) else product)
        scores = scores + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Any:
        """E_θ p(class | x) (n, k), columns in the order of `classes_`."""
        return self._labelled(self._averages(X)[0], X)

    def predict_log_proba(self, X: Any) -> Any:
        """Its logarithm (n, k)."""
        return self._labelled(np.log(self._averages(X)[0]), X)

    def uncertainty(self, X: Any) -> Uncertainty:
        """Entropies of the predictions in nats, in the two parts of their sum (n,)."""
        average, expected = self._averages(X)
        total = entropy(average)
        aleatoric = np.minimum(expected, total)
        return Uncertainty(*(self._contain(v, X) for v in (total, total - aleatoric, aleatoric)))

    def _averages(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """E p (n, k) and E H[p] (n,), rows in parallel."""
        read = self._read(X)

        def work(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
            parts = [
                self._block(read[low : min(low + ROWS, stop)]) for low in range(start, stop, ROWS)
            ]
            return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])

        parts = map_rows(work, read.shape[0], read.shape[0] * len(self.model_.root.T))
        return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])

    def _block(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        scores, root = self._scores(X).astype(np.float64), self.model_.spread(X)
        if scores.ndim == 1:
            deviation = np.sqrt((root[:, 0] ** 2).sum(axis=1))
            least = sigmoid_average(-np.abs(scores), deviation)
            second = np.where(scores > 0, 1.0 - least, least)
            average = np.column_stack([1.0 - second, second])
            return average, entropy_average(scores, deviation)
        values, vectors = np.linalg.eigh(root @ root.transpose(0, 2, 1))
        return softmax_average(scores, vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


class _Plain:
    """The same parameters, as `LogisticRegression` checks them."""

    penalty, l1_ratio, warm_start, dual = "l2", 0.0, False, False

    def __init__(self, estimator: Any) -> None:
        self.C = 1.0 if isinstance(estimator.C, str) else estimator.C
        self.tol, self.max_iter = estimator.tol, estimator.max_iter
        self.fit_intercept, self.solver = estimator.fit_intercept, estimator.solver
        self.prior = estimator.prior


def _claims(fitted: Fitted, slope: float, *, tol: float) -> list[Claim]:
    report = fitted.report
    claims = claims_of(report, tol=tol)
    claims += [
        Claim.fact(
            "log_marginal_likelihood",
            fitted.log_evidence,
            "log p(S | C) in nats by Laplace's method; a flat prior of b leaves a constant open",
        ),
        Claim.fact(
            "effective_parameters",
            fitted.effective,
            f"γ: how many of {len(report.end.theta)} parameters the data determine, not the prior",
        ),
    ]
    if np.isfinite(slope):
        meaning = "|d log p(S | C)/d log C| at the chosen C by a central difference, in nats"
        claims.append(Claim.below("evidence_slope", abs(slope), FLAT, meaning))
    return claims
