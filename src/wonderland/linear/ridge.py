"""Ridge regression.

    minimise over W, b:   Σ_i ω_i ‖y_i − Wφ(x_i) − b‖²  +  Σ_k α_k ‖W_k‖²

which is least squares on the data augmented by the rows √α·I with targets 0 (the intercept column
of those rows is zero: it is never penalised). The penalty is a number, one per output, or chosen by
the exact leave-one-out error, on a path ("loo") or at the zero of its derivative ("gradient").
Shapes: X (n, d), y (n,) or (n, t), W (t, m), b (t,), α (t,).

Reference: Hoerl & Kennard (1970); Allen (1974) for leave-one-out in closed form.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from wonderland.core.arrays import double
from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.core.solution import Solution
from wonderland.linear.estimator import LinearEstimator
from wonderland.linear.evidence import leave_one_out_claims
from wonderland.linear.inference import Facts
from wonderland.linear.model import LinearModel
from wonderland.linear.pure import solve_pure
from wonderland.linear.routes import Outcome
from wonderland.linear.slopes import fold_slopes
from wonderland.shell.inputs import Table
from wonderland.shell.together import NotTogether
from wonderland.solve.direct import solve_direct, solve_from
from wonderland.solve.leave_one_out import default_alphas, loo_curve, spectrum, tune
from wonderland.solve.problem import LeastSquares, LinearFit

__all__ = ["Ridge", "RidgePath", "fit_ridge", "ridge_path"]


def fit_ridge(
    X: Any,
    y: Any,
    alpha: Any = 1.0,
    sample_weight: Any = None,
    *,
    fit_intercept: bool = True,
    basis: Callable[[Any], Any] | None = None,
) -> Solution[LinearModel]:
    """Ridge as a pure function: differentiable in X, y, alpha and weights, jittable, vmappable.

    NumPy arrays are solved on the host to certified digits; JAX arrays in one XLA program, in
    float64 whatever JAX's global setting, whose derivative is that of the optimum itself.

    Args:
        X: (n, d).
        y: (n,) or (n, t).
        alpha: α ≥ 0, a scalar or one per output (t,).
        sample_weight: ω (n,) ≥ 0.
        fit_intercept: Whether b is free; it is never penalised.
        basis: φ.

    >>> import jax, jax.numpy as jnp
    >>> X, y = jnp.array([[0.0], [1.0], [2.0]]), jnp.array([1.0, 3.0, 5.0])
    >>> def slope(alpha):
    ...     return fit_ridge(X, y, alpha).model.coef[0]
    >>> float(slope(2.0)), float(jax.grad(slope)(2.0))  # 4/(2 + α) and −4/(2 + α)²
    (1.0, -0.25)
    """
    return solve_pure(X, y, alpha, sample_weight, fit_intercept=fit_intercept, basis=basis)


class RidgePath(NamedTuple):
    """Ridge for every penalty of a path, from one factorisation.

    Attributes:
        alphas: (a,).
        coef: (a, d) or (a, t, d).
        intercept: (a,) or (a, t).
        error: Exact mean squared leave-one-out error, (a,) or (a, t).
        slope: Its derivative in α, of the same shape.
    """

    alphas: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    error: np.ndarray
    slope: np.ndarray


def ridge_path(
    X: Any,
    y: Any,
    alphas: Any = None,
    sample_weight: Any = None,
    *,
    fit_intercept: bool = True,
) -> RidgePath:
    """Coefficients and leave-one-out errors along a path of penalties.

    Args:
        X: (n, d).
        y: (n,) or (n, t).
        alphas: Penalties (a,) > 0; None spans the spectrum with twenty.
        sample_weight: ω (n,) ≥ 0.
        fit_intercept: Whether b is free.

    >>> import numpy as np
    >>> X = np.arange(8.0).reshape(4, 2) % 5
    >>> path = ridge_path(X, [1.0, 2.0, 2.0, 3.0], [0.1, 1.0, 10.0])
    >>> path.coef.shape, path.error.shape
    ((3, 2), (3,))
    """
    estimator = Ridge(fit_intercept=fit_intercept, alphas=alphas)
    return estimator.path(X, y, sample_weight)


class Ridge(LinearEstimator):
    """Linear regression with a squared penalty on the coefficients.

    Args:
        alpha: α ≥ 0: a number, one per output, "loo" (the best of a path by exact leave-one-out
            error) or "gradient" (the zero of that error's exact derivative in α).
        fit_intercept: Whether b is free; it is never penalised.
        copy_X: Accepted for scikit-learn's sake; X is never written to.
        max_iter: Most steps of an iterative solver.
        tol: Bound on the certificate max |x_jᵀr − αw_j|/(‖x_j‖‖y‖) of iterative solvers.
        solver: "auto" or "direct" (also "svd", "cholesky"): measured conditioning chooses;
            "descent" (also "sag", "saga"): gradient descent; "lsqr" (also "sparse_cg"): Krylov
            iterations on the table; "lbfgs": coefficients ≥ 0, with positive=True.
        positive: Whether coefficients must be ≥ 0.
        random_state: Accepted for scikit-learn's sake; no solver here draws numbers.
        alphas: The path for "loo" and "gradient"; None spans the spectrum with twenty.
        basis: φ on the table, such as `wl.bases.Polynomial(2)` or any callable.
        momentum: Whether descent uses Nesterov's momentum.
        step_tol: Descent also stops when ‖w_{t+1} − w_t‖² < step_tol.
        time_limit: Most seconds of descent.

    Attributes:
        coef_: W (d,) or (t, d).
        intercept_: b.
        alpha_: The penalty in use.
        alphas_: The path, and `loo_errors_` its leave-one-out errors (summed over outputs), for
            "loo" and "gradient".
        evidence_: Claims: condition_number, rank, gradient_norm, digits, solver, ….
        model_: The fitted function as an `equinox.Module`.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> Ridge(alpha=2.0).fit(X, [1.0, 3.0, 5.0]).coef_
    array([1.])
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        alphas: Any = None,
        basis: Callable[[Any], Any] | None = None,
        momentum: bool = True,
        step_tol: float = 0.0,
        time_limit: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.alphas = alphas
        self.basis = basis
        self.momentum = momentum
        self.step_tol = step_tol
        self.time_limit = time_limit

    def path(self, X: Any, y: Any, sample_weight: Any = None) -> RidgePath:
        """The path `alphas` for this data, without fitting the estimator (see `ridge_path`)."""
        table = self._read_aside(X, y, sample_weight)
        found = spectrum(self._state(table, np.zeros(1)))
        alphas = _path_of(self.alphas, found.values)
        curve = loo_curve(found, alphas)
        coef = np.stack([found.coefficients(np.array([a])).T for a in alphas])  # (a, t, d)
        intercept = found.moments.mean_y - coef @ found.moments.mean_x
        if table.flat:
            return RidgePath(
                alphas, coef[:, 0], intercept[:, 0], curve.error[:, 0], curve.slope[:, 0]
            )
        return RidgePath(alphas, coef, intercept, curve.error, curve.slope)

    def _solver_names(self) -> tuple[str, ...]:
        return SOLVERS

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_alpha(self.alpha)
        if self.positive and self.solver not in ("auto", "lbfgs"):
            raise InputError(
                f"solver='{self.solver}' does not support positive fitting",
                "solver='auto' or 'lbfgs' with positive=True",
                "Please set the solver to 'auto' or 'lbfgs'",
            )
        if self.solver == "lbfgs" and not self.positive:
            raise InputError(
                "'lbfgs' solver can be used only when positive=True",
                "positive=True",
                "Pass solver='auto' for the unconstrained problem",
            )

    def _check_sparse(self, X: Any) -> None:
        """scikit-learn's rule: these names do not fit an intercept on sparse tables."""
        if sp.issparse(X) and self.fit_intercept and self.solver in CENTRING:
            raise InputError(
                f"solver='{self.solver}' does not support fitting the intercept on sparse data",
                "solver 'auto', 'direct', 'lsqr', 'sag' or 'descent' for a sparse table",
                "Pass solver='auto', or fit_intercept=False",
            )

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are welcome whatever the sign of the coefficients."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fit(self, table: Table) -> dict[str, Any]:
        tuned = isinstance(self.alpha, str)
        outputs = table.y.shape[1]
        problem = self._state(table, np.zeros(outputs) if tuned else self._alphas(outputs))
        self._check_sparse(problem.X)
        if tuned:
            return self._fit_tuned(problem, table)
        outcome = self._answer(problem)
        return {**self._publish(outcome, self._facts(problem, table)), **self._told(outcome)}

    def _validation_slopes(
        self, names: list[str], X: Any, y: Any, sample_weight: Any, splits: Any
    ) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """For `SearchCV(method="gradient")`: squared errors of the folds and their slope in α."""
        if names != ["alpha"] or self.basis is not None or self.positive or sp.issparse(X):
            raise NotTogether("slopes in alpha alone, of dense tables without basis= or positive=")
        table = self._read_aside(X, y, sample_weight)
        weight = np.ones(len(table.y)) if table.weight is None else table.weight
        held_out = _held_out if self.fit_intercept else _held_out_through_origin
        return fold_slopes(held_out, (table.X, table.y), weight, splits)

    def _alphas(self, outputs: int) -> np.ndarray:
        if isinstance(self.alpha, str):
            raise InputError(
                f"alpha={self.alpha!r} for data read in chunks",
                "a number: leave-one-out errors need a second pass over the data",
                "Choose alpha on a part of the data that fits in memory, then pass it",
            )
        return _per_output(self.alpha, outputs)

    def _told(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "alpha_": self.alpha,
            "solver_": self._used(outcome),
            "n_iter_": self._steps(outcome),
        }

    def _shaped(self, fit: LinearFit, facts: Facts) -> tuple[Any, Any]:
        """As scikit-learn's Ridge: one output has coef_ (d,), also where y came as a column."""
        coef, intercept = super()._shaped(fit, facts)
        return coef.ravel() if len(fit.coef.T) == 1 else coef, intercept

    def _used(self, outcome: Outcome) -> str:
        """The name asked for, as scikit-learn reports it; for "auto" what was chosen."""
        return outcome.fit.solver if self.solver == "auto" else self.solver

    def _steps(self, outcome: Outcome) -> np.ndarray | None:
        """Steps per output: a direct method is one, scikit-learn's uncounted names have none."""
        if self.solver in UNCOUNTED:
            return None
        return np.array(outcome.fit.iterations or (1,) * outcome.fit.coef.shape[1])

    def _fit_tuned(self, problem: LeastSquares, table: Table) -> dict[str, Any]:
        """One factorisation serves the whole path, the derivative and the final fit."""
        if sp.issparse(problem.X):
            problem = problem._replace(X=problem.X.toarray())
        found = spectrum(problem)
        curve = loo_curve(found, _path_of(self.alphas, found.values), slopes=False)
        chosen = curve.best() if self.alpha == "loo" else tune(found, curve)
        alpha = chosen.alphas
        final = problem._replace(alpha=np.repeat(alpha, problem.y.shape[1]))
        tall = found.rows is None and not problem.small
        if self.positive or self.solver not in DIRECT:
            outcome = self._answer(final)
        else:
            outcome = Outcome(solve_from(final, found.moments) if tall else solve_direct(final))
        claims = leave_one_out_claims(curve, chosen)
        return {
            **self._publish(outcome, self._facts(final, table), *claims),
            **self._told(outcome),
            "alpha_": float(alpha[0]),
            "alphas_": curve.alphas,
            "loo_errors_": curve.error.sum(axis=1),
        }


DIRECT = ("auto", "direct", "svd", "cholesky")
SOLVERS = (*DIRECT, "descent", "sag", "saga", "lsqr", "sparse_cg", "lbfgs")
CENTRING = ("saga", "svd", "cholesky")
UNCOUNTED = ("svd", "cholesky", "sparse_cg")
TUNERS = ("loo", "gradient")


def _held_out(alpha: Any, weight: Any, X: Any, y: Any) -> Any:
    """Squared error of each row (n,), mean over outputs."""
    model = fit_ridge(X, y, alpha, weight).model
    return ((jax.vmap(model)(X) - y) ** 2).mean(axis=1)


def _held_out_through_origin(alpha: Any, weight: Any, X: Any, y: Any) -> Any:
    model = fit_ridge(X, y, alpha, weight, fit_intercept=False).model
    return ((jax.vmap(model)(X) - y) ** 2).mean(axis=1)


def _check_alpha(alpha: Any) -> None:
    """Refuse a penalty that is no number ≥ 0 and no known way to choose one."""
    if isinstance(alpha, str):
        if alpha not in TUNERS:
            raise InputError(
                f"alpha is {alpha!r}", "a number ≥ 0, 'loo' or 'gradient'", nearest(alpha, TUNERS)
            )
        return
    try:
        values = double(alpha)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"alpha is {alpha!r}",
            "a number ≥ 0, one per output, 'loo' or 'gradient'",
            "Pass alpha=1.0",
        ) from error
    if values.ndim > 1 or values.size == 0 or not np.all(values >= 0) or np.any(np.isinf(values)):
        raise InputError(
            f"alpha is {alpha!r}",
            "a finite number ≥ 0, or one per output",
            "Pass alpha=0 for no penalty; a negative one would reward large coefficients",
        )


def _per_output(alpha: Any, outputs: int) -> np.ndarray:
    """α (t,)."""
    values = double(alpha)
    if values.size not in (1, outputs):
        raise InputError(
            f"Number of targets and number of penalties do not correspond: "
            f"{values.size} != {outputs}",
            "one alpha, or one per output",
            f"Pass alpha with 1 or {outputs} entries",
        )
    return np.broadcast_to(values.reshape(-1), (outputs,))


def _path_of(alphas: Any, values: np.ndarray) -> np.ndarray:
    if alphas is None:
        return default_alphas(values)
    path = np.atleast_1d(double(alphas))
    if path.ndim != 1 or not len(path) or not np.all(path > 0) or not np.isfinite(path).all():
        raise InputError(
            f"alphas is {alphas!r}", "a list of finite numbers > 0", "Pass np.logspace(-3, 3, 20)"
        )
    return path
