"""Sparse fits along a path of penalties, each begun where the one before ended.

    for each C:   minimise over W, b   C Σ_i ω_i ℓ(Wx_i + b, y_i) + λ₁‖W‖₁ + ½λ₂‖W‖²

From the strongest penalty (smallest C) to the weakest, so that the support grows. What one fit has
learnt serves the next: the coefficients, the columns gathered, the Hessian of the working set (its
curvature changes little from one C to the next), and the strong rule, which foresees from the last
gradient which columns may join. Each fit ends on its own duality gap over all columns: no column
is left out on the word of a rule. Shapes: X (n, d), W (k, d), b (k,), m values of C.

Reference: Friedman, Hastie & Tibshirani (2010), Regularization paths for generalized linear models;
Tibshirani et al. (2012), Strong rules for discarding predictors.
"""

from typing import Any, NamedTuple

import numpy as np

from wonderland.core.status import Status
from wonderland.solve.sparse_newton import SparseFit, SparseNewton

__all__ = ["SparsePath", "least_C", "solve_l1_path"]


class SparsePath(NamedTuple):
    """One fit for each C, in the order of the C given.

    Attributes:
        C: The values (m,).
        coef: W (m, k, d); k = 1 for losses of one score.
        intercept: b (m, k).
        objective: P (m,).
        gap: Duality gap of each fit (m,), in units of the objective.
        nonzeros: How many coefficients are not zero (m,).
        iterations: Newton steps of each fit (m,).
        status: How each fit ended (m,).
        gradient_norm: Distance of each fit from stationarity (m,), as in `SparseFit`.
    """

    C: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    objective: np.ndarray
    gap: np.ndarray
    nonzeros: np.ndarray
    iterations: np.ndarray
    status: tuple[Status, ...]
    gradient_norm: np.ndarray


def solve_l1_path(
    X: Any,
    target: np.ndarray,
    weight: np.ndarray | None = None,
    Cs: Any = 100,
    l1_ratio: float = 1.0,
    fit_intercept: bool = True,  # noqa: FBT001, FBT002
    tol: float = 1e-6,
    max_iter: int = 1000,
    *,
    loss: Any = "logistic",
) -> SparsePath:
    """Fit every C.

    Args:
        X: (n, d), dense or scipy sparse; not changed.
        target: (n,) signs −1 and +1; class numbers 0 … k − 1 for "softmax".
        weight: ω (n,) ≥ 0, or None for ones.
        Cs: The values, in any order; or how many, evenly on a log scale from the largest C whose
            coefficients are all zero to 1000 times that.
        l1_ratio: Share of the ℓ₁ norm in the penalty.
        fit_intercept: Whether b is fitted (without a penalty) or zero.
        tol: Bound on each gap relative to the objective.
        max_iter: Most Newton steps of each fit.
        loss: "logistic", "squared_hinge" or "softmax".

    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> path = solve_l1_path(X, np.array([-1.0, -1.0, 1.0, 1.0]), Cs=[10.0, 0.1])
    >>> path.nonzeros
    array([1, 0])
    """
    solver = SparseNewton(X, target, weight, l1_ratio, fit_intercept=fit_intercept, loss=loss)
    least = solver.least()
    values = _spaced(least, Cs) if np.ndim(Cs) == 0 else np.asarray(Cs, dtype=np.float64)
    order = np.argsort(values)
    if len(order):
        solver.approach(values[order[0]])
    fits: list[Any] = [None] * len(values)
    for place in order:
        fits[place] = solver.solve(float(values[place]), tol, max_iter)
    return _stacked(values, fits, (solver.loss.outputs, X.shape[1]))


def least_C(  # noqa: N802
    X: Any,
    target: np.ndarray,
    weight: np.ndarray | None = None,
    l1_ratio: float = 1.0,
    *,
    fit_intercept: bool = True,
    loss: Any = "logistic",
) -> float:
    """The largest C at which all coefficients are still zero: λ₁ / max |v| of the null model.

    >>> least_C(np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]))
    1.0
    """
    solver = SparseNewton(X, target, weight, l1_ratio, fit_intercept=fit_intercept, loss=loss)
    return solver.least()


def _spaced(least: float, count: Any) -> np.ndarray:
    """`count` values over three decades from `least`."""
    start = least if np.isfinite(least) and least > 0 else 1e-3
    return np.geomspace(start, 1000.0 * start, int(count))


def _stacked(values: np.ndarray, fits: list[SparseFit], shape: tuple[int, int]) -> SparsePath:
    coef = np.array([fit.coef for fit in fits]).reshape(len(fits), *shape)
    return SparsePath(
        values,
        coef,
        np.array([fit.intercept for fit in fits]).reshape(len(fits), shape[0]),
        np.array([fit.primal for fit in fits]),
        np.array([fit.duality_gap for fit in fits]),
        np.count_nonzero(coef, axis=(1, 2)),
        np.array([fit.iterations for fit in fits]),
        tuple(fit.status for fit in fits),
        np.array([fit.gradient_norm for fit in fits]),
    )
