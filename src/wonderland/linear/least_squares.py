"""Linear regression.

    minimise over W, b:   Σ_i ω_i ‖y_i − Wφ(x_i) − b‖²

Under y = Wφ(x) + b + noise of variance σ²/ω the minimiser is the maximum-likelihood estimate, and
so is σ²* = Σω r²/Σω. Where columns are dependent the minimiser of smallest ‖W‖ is given, and the
evidence names them. Shapes: X (n, d), y (n,) or (n, t), W (t, m), b (t,).

Reference: Björck, Numerical Methods for Least Squares Problems (1996).
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.core.solution import Solution
from wonderland.linear.estimator import LinearEstimator
from wonderland.linear.model import LinearModel
from wonderland.linear.pure import solve_pure
from wonderland.linear.routes import Outcome
from wonderland.shell.inputs import Table

__all__ = ["LinearRegression", "fit_linear_regression"]


def fit_linear_regression(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    fit_intercept: bool = True,
    basis: Callable[[Any], Any] | None = None,
) -> Solution[LinearModel]:
    """Least squares as a pure function: differentiable, jittable and vmappable on JAX arrays.

    NumPy arrays are solved on the host to certified digits; JAX arrays in one XLA program whose
    derivative is that of the optimum. Dependent columns are an answered case on the host and the
    status SINGULAR in XLA, where the minimum-norm solution has no derivative.

    Args:
        X: (n, d).
        y: (n,) or (n, t).
        sample_weight: ω (n,) ≥ 0.
        fit_intercept: Whether b is free.
        basis: φ.

    >>> import numpy as np
    >>> fit_linear_regression(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0])).model.coef
    array([2.])
    """
    return solve_pure(X, y, 0.0, sample_weight, fit_intercept=fit_intercept, basis=basis)


class LinearRegression(LinearEstimator):
    """Least squares with certified digits.

    Args:
        fit_intercept: Whether b is free.
        copy_X: Accepted for scikit-learn's sake; X is never written to.
        tol: Bound on the certificate max |x_jᵀr|/(‖x_j‖‖y‖) for "descent" (and for LSQR on
            sparse tables too large to factorise).
        n_jobs: Number of cores; None and −1 use all of them.
        positive: Whether coefficients must be ≥ 0.
        solver: "auto" or "direct": measured conditioning chooses between Gram matrix, QR with
            refinement, and minimum norm. "descent": gradient descent.
        basis: φ on the table, such as `wl.bases.Polynomial(2)` or any callable.
        momentum: Whether descent uses Nesterov's momentum.
        step_tol: Descent also stops when ‖w_{t+1} − w_t‖² < step_tol.
        max_iter: Most steps of descent.
        time_limit: Most seconds of descent.

    Attributes:
        coef_: W (d,) or (t, d).
        intercept_: b.
        noise_variance_: σ²* = Σωr²/Σω, the maximum-likelihood estimate, per output.
        standard_errors_: Of the coefficients.
        residual_deviation_: √(Σωr²/(n − p)).
        rank_: Independent columns; `singular_` their singular values after centring.
        evidence_: Claims: condition_number, rank, collinear, gradient_norm, digits, solver, ….
        model_: The fitted function as an `equinox.Module`.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = LinearRegression().fit(X, [1.0, 3.1, 4.9, 7.0])
    >>> model.coef_.round(3), round(float(model.intercept_), 3)
    (array([1.98]), 1.03)
    >>> model.evidence_["rank"].value
    1
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        positive: bool = False,
        solver: str = "auto",
        basis: Callable[[Any], Any] | None = None,
        momentum: bool = True,
        step_tol: float = 0.0,
        max_iter: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive
        self.solver = solver
        self.basis = basis
        self.momentum = momentum
        self.step_tol = step_tol
        self.max_iter = max_iter
        self.time_limit = time_limit

    def _solver_names(self) -> tuple[str, ...]:
        return ("auto", "direct", "descent")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise InputError(
                f"n_jobs is {self.n_jobs!r}", "an integer ≥ 1, −1, or None", "Pass n_jobs=None"
            )

    def __sklearn_tags__(self) -> Any:
        """As in scikit-learn, coefficients ≥ 0 need a dense table here."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.positive
        return tags

    def _fit(self, table: Table) -> dict[str, Any]:
        problem = self._state(table, self._alphas(table.y.shape[1]))
        outcome = self._answer(problem)
        return {**self._publish(outcome, self._facts(problem, table)), **self._told(outcome)}

    def _alphas(self, outputs: int) -> np.ndarray:
        return np.zeros(outputs)

    def _told(self, outcome: Outcome) -> dict[str, Any]:
        # A direct method is one step, and scikit-learn expects a count ≥ 1.
        steps = max(outcome.fit.iterations or (1,))
        return {"_singular": outcome.fit.singular, "n_iter_": steps}

    @property
    def singular_(self) -> np.ndarray:
        """Singular values of the centred table (min(n, d),), largest first."""
        self._require_fit()
        if self._singular is not None:
            return self._singular
        found = self._inference.covariance
        if found is None:
            raise AttributeError(f"{self.evidence_['solver'].value} does not find singular values")
        slopes = slice(int(self.fit_intercept), None)
        return 1.0 / np.sqrt(np.linalg.eigvalsh(found[slopes, slopes]))
