"""Logistic regression, for two classes and for many.

    minimise over W, b:   C Σ_i ω_i ℓ(Wx_i + b, y_i) + ½‖W‖²

with ℓ(z, y) = log(1 + e^{−yz}), y = ±1, for two classes (one row of W) and
ℓ(z, y) = log Σ_c e^{z_c} − z_y for k > 2. The intercept is never penalised. C = inf is maximum
likelihood; a Gaussian prior on W may take the place of ½‖W‖²; `l1_ratio` brings in the ℓ₁ norm.
Shapes: X (n, d), y (n,), W (1, d) or (k, d), b (1,) or (k,).

Reference: Hastie, Tibshirani & Friedman (2009) §4.4; Albert & Anderson (1984) for separation.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from wonderland.core.evidence import Claim, Evidence
from wonderland.linear.bayesian_objective import classes_objective
from wonderland.linear.bayesian_replicates import replicate
from wonderland.linear.logistic_check import (
    check_parameters,
    check_weights,
    explain_text,
    l1_share,
    loss_weight,
)
from wonderland.linear.logistic_evidence import Report, claims_of
from wonderland.linear.logistic_inference import Spread, spread_of
from wonderland.linear.logistic_path import LogisticPath, follow
from wonderland.linear.logistic_problem import Logistic
from wonderland.linear.logistic_pure import fit_logistic
from wonderland.linear.logistic_slopes import validation_slopes
from wonderland.linear.logistic_solve import Prior, Wish, regress, state
from wonderland.linear.logistic_sparse import regress_sparse
from wonderland.linear.logistic_stream import regress_rows
from wonderland.linear.logistic_tune import tune
from wonderland.linear.model import LinearModel
from wonderland.shell.classifier import Classifier
from wonderland.shell.inputs import Classes, read_classes
from wonderland.shell.objective import Objective
from wonderland.shell.rows import read_rows
from wonderland.shell.together import NotTogether

__all__ = ["LogisticPath", "LogisticRegression", "fit_logistic", "logistic_path"]


def logistic_path(
    X: Any,
    y: Any,
    Cs: Any,
    sample_weight: Any = None,
    *,
    fit_intercept: bool = True,
    class_weight: Any = None,
    l1_ratio: float = 0.0,
    tol: float = 1e-4,
    max_iter: int = 100,
) -> LogisticPath:
    """Logistic regression for every C of a path, in shared passes over the data.

    Args:
        X: (n, d), dense or scipy sparse.
        y: Labels (n,).
        Cs: Weights of the loss (a,) > 0.
        sample_weight: ω (n,) ≥ 0.
        fit_intercept: Whether b is free.
        class_weight: None, "balanced" or a mapping label → weight.
        l1_ratio: Share of the ℓ₁ norm in the penalty; each fit then ends at a relative duality gap
            of `tol` or 10⁻⁶, whichever is smaller.
        tol: As in `LogisticRegression`.
        max_iter: Most steps of each fit.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> path = logistic_path(X, [0, 1, 0, 1], [0.1, 1.0, 10.0])
    >>> path.coef.shape, bool(np.all(np.diff(path.coef[:, 0, 0]) > 0))
    ((3, 1, 1), True)
    """
    reader = LogisticRegression(
        l1_ratio=l1_ratio,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        tol=tol,
        max_iter=max_iter,
    )
    return reader.path(X, y, Cs, sample_weight)


class LogisticRegression(Classifier):
    """Logistic regression with scikit-learn's parameters, and a proof of its optimum.

    Args:
        penalty: "l2", "l1", "elasticnet" or None; "deprecated", scikit-learn's default, leaves the
            choice to `l1_ratio` and `C`.
        C: Weight of the loss, > 0; inf for no penalty; "gradient" for the C at which the derivative
            of the left-out log-loss is zero.
        l1_ratio: Share of the ℓ₁ norm in the penalty, 0 … 1.
        dual: Accepted for scikit-learn's sake: primal and dual are solved at once, and compared.
        tol: Bound on the largest entry of the gradient of the objective divided by C Σω.
        fit_intercept: Whether b is free; it is never penalised.
        intercept_scaling: Accepted for scikit-learn's sake; it undoes a penalty that is not there.
        class_weight: None, "balanced" or a mapping label → weight.
        random_state: Accepted for scikit-learn's sake; no solver here draws numbers.
        solver: "lbfgs" or "auto": chosen by the size of the table, with its reason in the evidence;
            "newton" ("newton-cholesky"); "trust-region" ("newton-cg", "liblinear"); "descent"
            ("sag", "saga"). All reach the same optimum.
        max_iter: Most steps.
        verbose: Accepted for scikit-learn's sake.
        warm_start: Start from the coefficients of the previous fit.
        n_jobs: Cores used; None for all.
        prior: (mean, precision) of a Gaussian prior on W: ½ Σ precision (w − mean)² replaces ½‖W‖².

    Attributes:
        classes_: The labels, sorted (k,).
        coef_: W (1, d) or (k, d).
        intercept_: b (1,) or (k,).
        n_iter_: Steps (1,).
        C_: The C in use.
        evidence_: Claims: solver, gradient_norm, primal, dual, duality_gap, separable, ….
        model_: Scores of one sample as an `equinox.Module`.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = LogisticRegression().fit(X, ["low", "high", "low", "high"])
    >>> model.predict([[5.0]]).item(), model.coef_.round(3).item()
    ('high', -0.453)
    """

    coef_: Any
    intercept_: np.ndarray

    def __init__(
        self,
        penalty: str | None = "deprecated",
        *,
        C: Any = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        random_state: Any = None,
        solver: str = "lbfgs",
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        prior: Any = None,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.prior = prior

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> LogisticPath:
        """The fits for all of `Cs`, without fitting the estimator (see `logistic_path`)."""
        reader = type(self)(**self.get_params(deep=False))
        reader._check_parameters()
        table = read_classes(reader, X, y, sample_weight, class_weight=self.class_weight)
        return follow(
            table,
            Cs,
            fit_intercept=bool(self.fit_intercept),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            l1_ratio=l1_share(self),
        )

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _learn(self, *data: Any) -> dict[str, Any]:
        with explain_text(data[0]):
            return super()._learn(*data)

    def _learn_stream(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        weights = self.class_weight
        rows = read_rows(self, X, y, sample_weight, labels=True, class_weight=weights)
        fixed = {"target_names_": rows.targets, "classes_": rows.classes}
        if rows.complete:
            return {**fixed, **self._fit(rows.labelled)}
        report, extra = regress_rows(self, rows)
        return {**fixed, **self._publish(report, rows.labelled, *extra)}

    def _fit(self, table: Classes) -> dict[str, Any]:
        check_weights(table)
        if l1_share(self):
            return self._publish(regress_sparse(self, table, self._wish(table)), table)
        if isinstance(self.C, str) and self.penalty is not None:
            return self._fit_tuned(table)
        problem, C = self._state(table, loss_weight(self))
        return self._publish(regress(problem, C, self._wish(table)), table)

    def _fit_tuned(self, table: Classes) -> dict[str, Any]:
        problem, _ = self._state(table, 1.0)
        precision = problem.penalty[0] * problem.mass[0]
        tuned = tune(problem, precision, str(self.solver), int(self.max_iter))
        problem, C = self._state(table, tuned.C)
        wish = self._wish(table)._replace(start=problem.split(tuned.theta))
        return self._publish(regress(problem, C, wish), table, *tuned.claims())

    def _validation_slopes(
        self, names: list[str], X: Any, y: Any, sample_weight: Any, splits: Any
    ) -> Any:
        """For `SearchCV(method="gradient")`."""
        if l1_share(self):
            raise NotTogether("slopes in C need the ℓ₂ penalty")
        table = read_classes(self, X, y, sample_weight, class_weight=self.class_weight)
        return validation_slopes(self, names, table, splits)

    def _state(self, table: Classes, C: float) -> tuple[Logistic, float]:
        problem = state(
            table.X,
            table.codes,
            len(table.classes),
            table.weight,
            C,
            fit_intercept=bool(self.fit_intercept),
            prior=None if self.prior is None else Prior(*self.prior),
        )
        return problem, C

    def _wish(self, table: Classes) -> Wish:
        start, c = None, 1 if len(table.classes) == 2 else len(table.classes)
        if self.warm_start and np.shape(getattr(self, "coef_", 0.0)) == (c, table.X.shape[1]):
            coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
            start = (coef, np.broadcast_to(self.intercept_, (c,)))
        return Wish(str(self.solver), float(self.tol), int(self.max_iter), start)

    def _publish(self, report: Report, table: Classes, *extra: Claim) -> dict[str, Any]:
        coef, intercept = report.problem.split(report.end.theta)
        coef, intercept = coef.astype(table.dtype), intercept.astype(table.dtype)
        two = len(coef) == 1
        return {
            "coef_": coef,
            "intercept_": intercept,
            "C_": float(report.C),
            "n_iter_": np.array([report.end.iterations], dtype=np.int32),
            "model_": LinearModel(*((coef[0], intercept[0]) if two else (coef, intercept))),
            "status_": report.end.status,
            "evidence_": Evidence([*claims_of(report, tol=float(self.tol)), *extra]),
            "_spread": spread_of(report),
        }

    def _read_again(self, X: Any, y: Any, sample_weight: Any, *, sparse: bool) -> Classes:
        """Validate data without remembering anything about it."""
        reader = type(self)(**self.get_params(deep=False))
        weights = self.class_weight
        return read_classes(reader, X, y, sample_weight, class_weight=weights, sparse=sparse)

    def _objective(self, X: Any, y: Any, sample_weight: Any) -> Objective:
        """The log posterior at this fit, for `wl.Posterior`."""
        return classes_objective(self, self._read_again(X, y, sample_weight, sparse=False))

    def _replicates(self, X: Any, y: Any, weights: np.ndarray) -> list[Any] | None:
        """Fits to the same rows with other weights (k, n), for `wl.Posterior`."""
        if l1_share(self):
            return None
        return replicate(self, self._read_again(X, y, None, sparse=True), weights)

    def _scores(self, X: Any) -> np.ndarray:
        if not sp.issparse(X) and X.dtype != self.coef_.dtype:
            X = X.astype(np.float64)
        product = X @ self.coef_.T
        scores = np.asarray(product.toarray() if sp.issparse(product) else product)
        scores = scores + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Any:
        """p(class | x) (n, k), columns in the order of `classes_`."""
        return self._labelled(np.exp(self._log_proba(X)), X)

    def predict_log_proba(self, X: Any) -> Any:
        """log p(class | x) (n, k), finite where p itself rounds to zero."""
        return self._labelled(self._log_proba(X), X)

    def _log_proba(self, X: Any) -> np.ndarray:
        scores = self._scores(self._read(X))
        if scores.ndim == 1:
            return -np.logaddexp(0.0, np.stack([scores, -scores], axis=1))
        shifted = scores - scores.max(axis=1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))

    def sparsify(self) -> "LogisticRegression":
        """Keep `coef_` as a CSR matrix, which pays off where most of it is zero."""
        self._require_fit()
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> "LogisticRegression":
        """Keep `coef_` as an array again."""
        self._require_fit()
        self.coef_ = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        return self

    @property
    def standard_errors_(self) -> np.ndarray:
        """Standard error of each coefficient, from the inverse Hessian; shaped like `coef_`."""
        return self._known().coef

    @property
    def intercept_standard_error_(self) -> np.ndarray:
        """Standard error of each intercept."""
        return self._known().intercept

    def _known(self) -> Spread:
        self._require_fit()
        return self._spread.checked()

    def confidence_interval(
        self, level: float = 0.95, *, intercept: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals w ± z·√(H⁻¹)_jj (Wald), z the normal quantile.

        For C = inf they cover the true coefficients with probability `level` in large samples; with
        a penalty or prior they are the central intervals of Laplace's approximation.

        Args:
            level: Between 0 and 1.
            intercept: Give the interval of the intercept instead.

        Returns:
            (low, high), each in the shape of `coef_` (or `intercept_`).
        """
        spread = self._known()
        middle = self.intercept_ if intercept else self.coef_
        half = spread.quantile(level) * (spread.intercept if intercept else spread.coef)
        return middle - half, middle + half
