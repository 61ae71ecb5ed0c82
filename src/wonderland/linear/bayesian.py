"""Bayesian linear regression.

    y_i = wᵀφ(x_i) + b + ε_i ,   w ~ N(0, I/λ) ,   ε_i ~ N(0, 1/a)  counted ω_i times

    p(w | y) = N(m, Σ) ,   Σ = (aG + λI)⁻¹ ,   m = aΣ Σ_i ω_i (φ_i − φ̄)(y_i − ȳ)

with G the centred Gram matrix. The precisions a of the noise and λ of the prior maximise the
marginal likelihood p(y | a, λ) (`bayesian_levels`), the whole of it from one factorisation
(`bayesian_axes`). The intercept has no prior: b = ȳ − mᵀφ̄, and its own uncertainty 1/(aN), N = Σω,
belongs to every prediction:

    y* | x* ~ N(mᵀφ* + b,  1/a + 1/(aN) + (φ* − φ̄)ᵀΣ(φ* − φ̄)) .

Shapes: X (n, d), y (n,), w (m,). Reference: MacKay (1992); Bishop (2006) §3.3 and §3.5.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np
from scipy.special import ndtri, stdtrit

from wonderland.bases.basis import expand, namespace
from wonderland.core.arrays import double
from wonderland.core.blocks import map_rows
from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.solution import Solution
from wonderland.linear.bayesian_axes import Axes, axes_of, axes_of_totals
from wonderland.linear.bayesian_check import check_level, check_parameters
from wonderland.linear.bayesian_levels import Fixed, Gammas, Levels, levels_of, log_evidence
from wonderland.shell.estimator import Regressor
from wonderland.shell.inputs import Table, read_features
from wonderland.shell.progress import Progress
from wonderland.shell.streams import Stream
from wonderland.shell.targets import one_target
from wonderland.shell.uncertainty import Uncertainty
from wonderland.solve.problem import LeastSquares
from wonderland.solve.sweep import accumulate

__all__ = ["BayesianLinearModel", "BayesianLinearRegression", "fit_bayesian_linear"]

ROWS = 8192  # of one block of predictions


class BayesianLinearModel(eqx.Module):
    """The posterior of a linear function.

    Attributes:
        coef: m (m,).
        intercept: b.
        centre: φ̄ (m,), zero without an intercept.
        axes: Principal axes V of the table (m, r).
        precision: Posterior precision a·s + λ along each axis (r,).
        prior: λ, the posterior precision in every direction the table does not have.
        noise: Variance 1/a of a target.
        drift: Variance 1/(aN) of the intercept at the centre; zero without one.
        basis: φ, or None.
    """

    coef: Any
    intercept: Any
    centre: Any
    axes: Any
    precision: Any
    prior: Any
    noise: Any
    drift: Any
    basis: Any = None

    def __call__(self, x: Any) -> Any:
        """E[y | x] for one sample x (d,)."""
        return namespace(x).matmul(self.coef, self._expanded(x)) + self.intercept

    def variance(self, x: Any) -> Any:
        """Var[f(x)] for one sample: the epistemic part; `noise` is the other."""
        return self.variances(self._expanded(x)[None, :])[0]

    def _expanded(self, x: Any) -> Any:
        return x if self.basis is None else self.basis(x[None, :])[0]

    def variances(self, Z: Any) -> Any:
        """Var[f] for expanded rows Z (n, m) → (n,)."""
        away = Z - self.centre[None, :]
        turned = away @ self.axes
        total = (turned**2 / self.precision[None, :]).sum(axis=1) + self.drift
        if self.axes.shape[1] == self.axes.shape[0]:
            return total
        outside = ((away - turned @ self.axes.T) ** 2).sum(axis=1)
        return total + outside / self.prior

    def covariance(self) -> Any:
        """Σ (m, m)."""
        inside = (self.axes / self.precision[None, :]) @ self.axes.T
        if self.axes.shape[1] == self.axes.shape[0]:
            return inside
        xp = namespace(self.axes)
        return inside + (xp.eye(len(self.coef)) - self.axes @ self.axes.T) / self.prior


def fit_bayesian_linear(
    X: Any,
    y: Any,
    weight: Any = None,
    *,
    noise_variance: Any = None,
    prior_precision: Any = None,
    gammas: Gammas = Gammas(),  # noqa: B008  # a frozen tuple
    fit_intercept: bool = True,
) -> Solution[BayesianLinearModel]:
    """Bayesian linear regression as a pure function of host arrays.

    Args:
        X: (n, d).
        y: (n,).
        weight: ω (n,) ≥ 0: how often each sample counts.
        noise_variance: 1/a; None maximises the evidence.
        prior_precision: λ; None maximises the evidence.
        gammas: Gamma priors of a and λ; by default none.
        fit_intercept: Whether b is free.

    Returns:
        The posterior; log_marginal_likelihood, effective_parameters, noise_precision,
        prior_precision, gradient_norm, condition_number.

    >>> import numpy as np
    >>> X = np.array([[-1.0], [0.0], [1.0]])
    >>> found = fit_bayesian_linear(X, X[:, 0], noise_variance=1.0, prior_precision=2.0)
    >>> found.model.coef, found.model.covariance()  # 2/(2 + 2) and 1/(2 + 2)
    (array([0.5]), array([[0.25]]))
    """
    target = double(y).reshape(-1, 1)
    problem = LeastSquares(
        double(X), target, None if weight is None else double(weight), np.zeros(1), fit_intercept
    )
    fixed = Fixed(None if noise_variance is None else 1.0 / noise_variance, prior_precision)
    axes = axes_of(problem)
    levels = levels_of(axes, gammas, fixed)
    model = posterior_of(axes, levels, fit_intercept=fit_intercept)
    facts = {
        "log_marginal_likelihood": log_evidence(axes, levels.noise, levels.prior),
        "effective_parameters": effective(axes, levels),
        "noise_precision": levels.noise,
        "prior_precision": levels.prior,
        "gradient_norm": max(map(abs, levels.slopes)),
        "condition_number": axes.condition,
    }
    return Solution(model, levels.status, facts)


def posterior_of(
    axes: Axes, levels: Levels, *, fit_intercept: bool, basis: Any = None
) -> BayesianLinearModel:
    """The posterior for given precisions, in the axes of the table."""
    a, lam = levels.noise, levels.prior
    precision = a * axes.values + lam
    coef = axes.axes @ (a * np.sqrt(axes.values) * axes.along / precision)
    return BayesianLinearModel(
        coef=coef,
        intercept=np.float64(axes.mean_y - coef @ axes.mean_x if fit_intercept else 0.0),
        centre=axes.mean_x,
        axes=axes.axes,
        precision=precision,
        prior=np.float64(lam),
        noise=np.float64(1.0 / a),
        drift=np.float64(1.0 / (a * axes.mass) if fit_intercept else 0.0),
        basis=basis,
    )


def effective(axes: Axes, levels: Levels) -> float:
    """γ = Σ a·s/(a·s + λ): parameters that the data determine rather than the prior."""
    return float(np.sum(levels.noise * axes.values / (levels.noise * axes.values + levels.prior)))


class BayesianLinearRegression(Regressor):
    """Linear regression whose noise and penalty are chosen by the evidence, with its posterior.

    Takes the parameters of scikit-learn's `BayesianRidge`, has its attributes, and reaches the
    maximum of the marginal likelihood that it approaches.

    Args:
        max_iter: Most steps of Newton's method.
        tol: Bound on the slopes of the log evidence in the logarithms of both precisions.
        alpha_1: Shape of the Gamma prior of the noise precision.
        alpha_2: Its rate.
        lambda_1: Shape of the Gamma prior of the coefficients' precision.
        lambda_2: Its rate.
        alpha_init: Accepted for scikit-learn's sake: the maximum is found from anywhere.
        lambda_init: As `alpha_init`.
        compute_score: Whether `scores_` keeps the objective at every step.
        fit_intercept: Whether b is free; it has no prior.
        copy_X: Accepted for scikit-learn's sake; X is never written to.
        verbose: Accepted for scikit-learn's sake.
        noise_variance: 1/a where it is known; None chooses it.
        prior_precision: λ where it is known; None chooses it.
        basis: φ on the table, such as `wl.bases.Polynomial(2)` or any callable.

    Attributes:
        coef_: Posterior mean m (m,).
        intercept_: b.
        alpha_: Precision a of the noise.
        lambda_: Precision λ of the coefficients' prior.
        sigma_: Posterior covariance Σ (m, m).
        n_iter_: Newton steps.
        evidence_: Claims: log_marginal_likelihood, effective_parameters, gradient_norm, ….
        model_: The posterior as an `equinox.Module`.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = BayesianLinearRegression().fit(X, [0.1, 0.9, 2.1, 2.9])
    >>> mean, deviation = model.predict([[1.5], [15.0]], return_std=True)
    >>> mean.round(2), deviation.round(2)
    (array([ 1.5 , 14.43]), array([0.12, 0.63]))
    """

    coef_: np.ndarray
    model_: BayesianLinearModel

    def __init__(
        self,
        *,
        max_iter: int = 300,
        tol: float = 1e-3,
        alpha_1: float = 1e-6,
        alpha_2: float = 1e-6,
        lambda_1: float = 1e-6,
        lambda_2: float = 1e-6,
        alpha_init: float | None = None,
        lambda_init: float | None = None,
        compute_score: bool = False,
        fit_intercept: bool = True,
        copy_X: bool = True,
        verbose: bool = False,
        noise_variance: float | None = None,
        prior_precision: float | None = None,
        basis: Callable[[Any], Any] | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.alpha_1 = alpha_1
        self.alpha_2 = alpha_2
        self.lambda_1 = lambda_1
        self.lambda_2 = lambda_2
        self.alpha_init = alpha_init
        self.lambda_init = lambda_init
        self.compute_score = compute_score
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.verbose = verbose
        self.noise_variance = noise_variance
        self.prior_precision = prior_precision
        self.basis = basis

    def __sklearn_tags__(self) -> Any:
        """One target: the precisions belong to it."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _fit(self, table: Table) -> dict[str, Any]:
        target = one_target(table)[:, None]
        X = table.X if self.basis is None else expand(self.basis, table.X).value
        intercept = bool(self.fit_intercept)
        axes = axes_of(LeastSquares(X, target, table.weight, np.zeros(1), intercept))
        return self._publish(axes, table.dtype)

    def _learn_stream(self, stream: Stream) -> dict[str, Any]:
        if len(stream.targets) != 1:
            raise InputError(
                f"{len(stream.targets)} target columns", "one target", "Name one column as y"
            )
        chunks: Any = stream.chunks
        if self.basis is not None:
            chunks = ((expand(self.basis, X).value, y, w) for X, y, w in chunks)
        intercept = bool(self.fit_intercept)
        with Progress("rows", stream.total) as progress:
            totals = accumulate(chunks, fit_intercept=intercept, progress=progress)
        axes = axes_of_totals(totals, fit_intercept=intercept)
        return self._publish(axes, np.dtype(np.float64))

    def _publish(self, axes: Axes, dtype: np.dtype) -> dict[str, Any]:
        levels = self._levels(axes)
        model = posterior_of(axes, levels, fit_intercept=bool(self.fit_intercept), basis=self.basis)
        learned = {
            "coef_": model.coef.astype(dtype),
            "intercept_": float(model.intercept),
            "alpha_": levels.noise,
            "lambda_": levels.prior,
            "X_offset_": axes.mean_x,
            "X_scale_": np.ones(len(axes.mean_x)),
            "n_iter_": max(levels.steps, 1),
            "model_": model,
            "status_": levels.status,
            "evidence_": Evidence(_claims(axes, levels, tol=float(self.tol))),
            "_freedom": self._counted(axes, levels),
        }
        return {**learned, "scores_": levels.trace} if self.compute_score else learned

    def _levels(self, axes: Axes) -> Levels:
        noise = None if self.noise_variance is None else 1.0 / float(self.noise_variance)
        prior = None if self.prior_precision is None else float(self.prior_precision)
        gammas = Gammas(self.alpha_1, self.alpha_2, self.lambda_1, self.lambda_2)
        return levels_of(
            axes, gammas, Fixed(noise, prior), tol=float(self.tol), max_iter=int(self.max_iter)
        )

    def _counted(self, axes: Axes, levels: Levels) -> float:
        """Degrees of freedom in which the noise was estimated; infinite where it is known."""
        if self.noise_variance is not None:
            return np.inf
        return max(axes.mass - effective(axes, levels) - float(bool(self.fit_intercept)), 1.0)

    @property
    def sigma_(self) -> np.ndarray:
        """Posterior covariance of the coefficients (m, m)."""
        self._require_fit()
        return np.asarray(self.model_.covariance())

    def _predict(self, X: Any) -> np.ndarray:
        return self._columns(X) @ self.model_.coef + self.model_.intercept

    def _columns(self, X: np.ndarray) -> np.ndarray:
        return X if self.basis is None else np.asarray(self.basis(X))

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: FBT001, FBT002
        """Mean of the predictive distribution (n,); with `return_std` also its deviation."""
        if not return_std:
            return super().predict(X)
        mean, spread = self._spread(X)
        return self._contain(mean, X), self._contain(np.sqrt(spread + self.model_.noise), X)

    def _spread(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at each row."""
        self._require_fit()
        read = read_features(self, X)
        model = self.model_

        def work(start: int, stop: int) -> np.ndarray:
            return np.concatenate(
                [
                    model.variances(self._columns(read[low : min(low + ROWS, stop)]))
                    for low in range(start, stop, ROWS)
                ]
            )

        return self._predict(read), np.concatenate(map_rows(work, len(read), read.size))

    def uncertainty(self, X: Any) -> Uncertainty:
        """Variances of a new target at each row, in the two parts of their sum."""
        _, epistemic = self._spread(X)
        aleatoric = np.full(len(epistemic), float(self.model_.noise))
        parts = (epistemic + aleatoric, epistemic, aleatoric)
        return Uncertainty(*(self._contain(part, X) for part in parts))

    def prediction_interval(self, X: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Central intervals that hold a new target with probability `level`.

        mean ± q · deviation, q the quantile of Student's t with N − γ − 1 degrees of freedom, in
        which the noise was estimated, or of the normal distribution where it is known.

        Returns:
            (low, high), each (n,).
        """
        check_level(level)
        mean, spread = self._spread(X)
        half = self._quantile(level) * np.sqrt(spread + self.model_.noise)
        return self._contain(mean - half, X), self._contain(mean + half, X)

    def confidence_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Central posterior intervals of the coefficients, (low, high), each (m,)."""
        check_level(level)
        self._require_fit()
        half = self._quantile(level) * np.sqrt(np.diag(self.sigma_))
        return self.coef_ - half, self.coef_ + half

    def _quantile(self, level: float) -> float:
        tail = 0.5 + 0.5 * level
        return float(ndtri(tail) if np.isinf(self._freedom) else stdtrit(self._freedom, tail))


def _claims(axes: Axes, levels: Levels, *, tol: float) -> list[Claim]:
    gamma = effective(axes, levels)
    return [
        Claim.fact("solver", "evidence in the axes of the table", axes.reason),
        Claim.fact(
            "log_marginal_likelihood",
            log_evidence(axes, levels.noise, levels.prior),
            "log p(y | a, λ) in nats, coefficients integrated out, the intercept at its best",
        ),
        Claim.below(
            "gradient_norm",
            max(map(abs, levels.slopes)),
            tol,
            "largest slope of the log evidence in log a and log λ, from the posterior itself",
        ),
        Claim.fact("noise_variance", 1.0 / levels.noise, "1/a: variance of a target about f(x)"),
        Claim.fact("prior_precision", levels.prior, "λ: the prior of a coefficient is N(0, 1/λ)"),
        Claim.fact(
            "effective_parameters",
            gamma,
            f"γ: how many of {len(axes.mean_x)} coefficients the data determine, not the prior",
        ),
        Claim.fact("condition_number", axes.condition, "2-norm, columns centred: singular values"),
        Claim.above("rank", axes.rank, len(axes.mean_x), "independent columns, of as many"),
        Claim.fact("inner_maximum", levels.inner, "whether the evidence falls on both sides"),
    ]
