"""How many digits of a coefficient can be trusted: a bound computed from the fit itself.

Data that reach float64 have been rounded: each entry may be off by half a unit in its last place,
δX and δy. First-order perturbation of the normal equations gives

    δw = C Aᵀ(δy − δA w) + C δAᵀ r ,   C = (AᵀA)⁻¹ ,

and by Cauchy–Schwarz, column by column,

    |δw_j| ≤ √C_jj · ‖ |δy| + |δA||w| ‖ + Σ_k |C_jk| ‖δA_k‖ ‖r‖ .

To this come the rounding errors of the solver (none to speak of after refinement). Reference:
Higham, Accuracy and Stability of Numerical Algorithms (2002), chapter 20.
"""

import numpy as np

from wonderland.solve.problem import Array, LeastSquares

__all__ = ["LIMIT", "half_ulp", "rounding_bound", "trusted_digits", "wide_bound"]

UNIT = 0.5 * float(np.finfo(np.float64).eps)
LIMIT = 14.0  # DBL_DIG − 1: decimal input and output alone may cost the fifteenth digit


def half_ulp(a: Array) -> Array:
    """What rounding to float64 may have taken from each entry, zero where it took nothing.

    An integer below 2⁵³ and a fraction that float32 holds exactly are taken as exact; a rounded
    decimal passes that test once in 2²⁹ times.
    """
    with np.errstate(over="ignore"):
        exact = ((a == np.rint(a)) & (np.abs(a) < 2.0**53)) | (a == a.astype(np.float32))
    return np.where(exact, 0.0, UNIT * np.abs(a))


def rounding_bound(
    problem: LeastSquares, beta: Array, residual: Array, inverse: Array, *, solver: float = 0.0
) -> Array:
    """The bound above on each coefficient.

    Args:
        problem: The data.
        beta: Coefficients, intercept first when there is one (p, t).
        residual: y − Xw − b (n, t).
        inverse: C (p, p) in the same order.
        solver: Backward error of the solver, in units of each column's norm.

    Returns:
        |δ| (p, t).
    """
    first = int(problem.fit_intercept)
    rows, far = _uncertainty(problem, beta[first:], inverse[:, first:], solver)
    root = problem.root_weight()
    if root is not None:
        rows, residual = root * rows, root * residual
    spread = np.sqrt(np.maximum(np.diag(inverse), 0.0))[:, None]
    near = spread * np.sqrt((rows**2).sum(axis=0))
    return near + far[:, None] * np.sqrt((residual**2).sum(axis=0)) + UNIT * np.abs(beta)


def _uncertainty(
    problem: LeastSquares, slope: Array, inverse: Array, solver: float
) -> tuple[Array, Array]:
    """(|δy| + |δA w| per row (n, t), ‖C δAᵀ‖ per coefficient (p,)) of data and solver together."""
    if problem.wobble is None:
        moved = half_ulp(problem.X)
        rows, far = moved @ np.abs(slope), np.abs(inverse) @ _norms(moved)
    else:
        # One source value moves all columns made from it together: add before taking absolutes.
        rows = np.abs(problem.wobble @ slope).sum(axis=0)
        far = np.sqrt(((problem.wobble @ inverse.T) ** 2).sum(axis=(0, 1)))
    rows = rows + half_ulp(problem.y)
    if solver:
        rows = rows + solver * (np.abs(problem.X) @ np.abs(slope) + np.abs(problem.y))
        far = far + solver * np.abs(inverse) @ _norms(problem.X)
    return rows, far


def wide_bound(
    problem: LeastSquares, coef: Array, residual: Array, *, reach: float, slack: Array
) -> Array:
    """The bound for more columns than rows, where each coefficient answers for all of X.

        ‖δw‖ ≤ s·(‖δy‖ + 2‖δX‖‖w‖) + s²·‖δX‖‖r‖ ,   s = ‖(XᵀX + αI)⁻¹Xᵀ‖ at most `reach`,

    with ‖δX‖ ≤ c·u·‖X‖_F for the rounding of the data and of the solver together.

    Args:
        problem: The data.
        coef: w (d, t).
        residual: √ω(y − Xw − b) (n, t).
        reach: 1/σ_min of the centred table, or of the augmented one.
        slack: What the solver's own iteration may have left, ‖·‖ per output (t,).

    Returns:
        |δ| for [intercept; slopes] (p, t), the same for all slopes of an output.
    """
    root = problem.root_weight()
    X, y = (problem.X, problem.y) if root is None else (root * problem.X, root * problem.y)
    unit = UNIT * (10.0 + 2.0 * np.sqrt(sum(X.shape)))
    moved = unit * float(np.sqrt((X**2).sum()))
    size = np.sqrt((coef**2).sum(axis=0))
    far = reach * (unit * np.sqrt((y**2).sum(axis=0)) + 2.0 * moved * size)
    error = far + reach**2 * moved * np.sqrt((residual**2).sum(axis=0)) + slack + UNIT * size
    slopes = np.broadcast_to(error, coef.shape)
    if not problem.fit_intercept:
        return slopes
    share = np.ones(len(X)) if problem.weight is None else problem.weight
    mean_x, mean_y = (share @ np.abs(part) / share.sum() for part in (problem.X, problem.y))
    base = np.sqrt((mean_x**2).sum()) * (error + unit * size) + unit * mean_y
    return np.vstack([base, slopes])


def _norms(columns: Array) -> Array:
    return np.sqrt(np.einsum("ij,ij->j", columns, columns))


def trusted_digits(beta: Array, error: Array) -> float:
    """Correct decimal digits of the worst coefficient: min −log₁₀(|δw|/|w*|), within 0 … LIMIT.

    The true w* may be smaller than the computed one: |w*| ≥ |w| − |δw|. Coefficients that are
    zero with certainty (constant or dropped columns) have no digits to count and are passed over.
    """
    error = np.asarray(error)
    size = np.maximum(np.abs(beta) - error, 0.0)
    counted = (np.abs(beta) > 0) | (error > 0)
    if not counted.any():
        return LIMIT
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(size > 0, error / size, np.inf)[counted]
    worst = float(relative.max())
    return float(np.clip(-np.log10(max(worst, 10.0**-LIMIT)), 0.0, LIMIT))
