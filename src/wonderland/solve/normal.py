"""Least squares from second moments: Cholesky of the column-scaled normal equations.

    (G + αI) w = H,   b = ȳ − x̄ᵀw,

solved as (D(G + αI)D)(D⁻¹w) = DH with D = diag(G + αI)^(−1/2), the diagonal scaling that is within
√d of the best possible (van der Sluis 1969). On the data, a correction step

    w ← w + (G + αI)⁻¹ (Xᵀ Ω r − αw),   r = y − Xw − b

brings the accuracy of QR while κ²ε < 1 (Björck 1987, corrected seminormal equations).
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from wonderland.core.blocks import map_rows
from wonderland.solve.bounds import UNIT
from wonderland.solve.moments import ROWS, Moments
from wonderland.solve.problem import Array, LeastSquares

__all__ = ["Scaled", "correct", "moment_bound", "residual_moments", "scale", "spread_intercept"]

EXACT = 2000  # columns up to which all eigenvalues are computed for the condition number


class Scaled(NamedTuple):
    """The Cholesky factor of D(G + αI)D and what was measured on the way.

    Attributes:
        root: Upper triangle R with RᵀR = D(G + αI)D (d, d); None when not positive definite.
        scale: The diagonal of D (d,).
        condition: √(λ_max/λ_min) of the scaled matrix: the condition number of the scaled columns.
        how: How it was measured.
    """

    root: Array | None
    scale: Array
    condition: float
    how: str

    def solve(self, right: Array) -> Array:
        """(G + αI)⁻¹ right, for right (d, t)."""
        D = self.scale[:, None]
        return D * sl.cho_solve((self.root, False), D * right, check_finite=False)

    def inverse(self) -> Array:
        """(G + αI)⁻¹ (d, d)."""
        upper, _ = sl.lapack.dpotri(self.root)
        full = np.triu(upper) + np.triu(upper, 1).T
        return full * self.scale * self.scale[:, None]


def scale(gram: Array, alpha: float) -> Scaled:
    """Scale, factorise and measure G + αI."""
    diagonal = np.diag(gram) + alpha
    D = np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 1.0)
    C = (gram + alpha * np.eye(len(gram))) * D * D[:, None]
    if not C.size:
        return Scaled(C, D, 1.0, "no columns")
    root, info = sl.lapack.dpotrf(C, clean=1)
    if info:
        return Scaled(None, D, np.inf, "Cholesky met a pivot that is not positive")
    if len(C) <= EXACT:
        values = sl.eigvalsh(C, check_finite=False)
        ratio, how = values[-1] / max(values[0], 0.0) if values[0] > 0 else np.inf, "eigenvalues"
    else:
        inverse_ratio, _ = sl.lapack.dpocon(root, np.abs(C).sum(axis=0).max())
        ratio, how = 1.0 / inverse_ratio, "1-norm estimate from the Cholesky factor"
    return Scaled(root, D, float(np.sqrt(ratio)), f"{how} of the scaled Gram matrix")


def residual_moments(problem: LeastSquares, coef: Array, intercept: Array) -> tuple[Array, ...]:
    """One pass over the data: (XᵀΩr (d, t), Σωr (t,), Σωr² (t,)) for r = y − Xw − b."""
    root = problem.root_weight()

    def work(start: int, stop: int) -> tuple[Array, Array, Array]:
        t = problem.y.shape[1]
        moment, total, square = np.zeros_like(coef), np.zeros(t), np.zeros(t)
        for i in range(start, stop, ROWS):
            x = problem.X[i : min(i + ROWS, stop)]
            r = problem.y[i : i + x.shape[0]] - x @ coef - intercept
            wr = r if root is None else root[i : i + x.shape[0]] ** 2 * r
            moment += x.T @ wr
            total += wr.sum(axis=0)
            square += (wr * r).sum(axis=0)
        return moment, total, square

    parts = map_rows(work, problem.X.shape[0], problem.X.size)
    return tuple(np.sum([part[k] for part in parts], axis=0) for k in range(3))


def correct(
    problem: LeastSquares, moments: Moments, scaled: Scaled, coef: Array, alpha: float
) -> tuple[Array, Array, Array]:
    """Correct w on the data until the step no longer shrinks; returns (w, last step, Σωr²)."""
    size, square = np.full(coef.shape, np.inf), moments.power
    for _ in range(4):
        intercept = moments.mean_y - moments.mean_x @ coef
        moment, total, square = residual_moments(problem, coef, intercept)
        centred = moment - np.outer(moments.mean_x, total)
        step = scaled.solve(centred - alpha * coef)
        if np.abs(step).max(initial=0.0) > 0.5 * np.abs(size).max(initial=0.0):
            break
        coef, size = coef + step, step
        if np.all(np.abs(step) <= 4 * UNIT * np.abs(coef)):
            break
    return coef, np.minimum(np.abs(size), np.abs(coef)), square


def moment_bound(
    moments: Moments, coef: Array, inverse: Array, rss: Array, *, rows: int, squared: bool
) -> Array:
    """Bound on the error of w from moments alone, O(d²) (compare `solve.bounds`).

    Rounding of the data and of the solver together move each column by at most u·c·‖x_j‖, with c
    growing like the square root of the summation length. When the Gram matrix itself was rounded
    and not corrected on the data (`squared`) its error enters through C once more.

    Returns:
        |δ| for [intercept; slopes] (d + 1, t).
    """
    growth = UNIT * (2.0 + np.sqrt(ROWS) + np.sqrt(rows / ROWS))
    norms = np.sqrt(np.maximum(np.diag(moments.gram), 0.0))
    raw = np.sqrt(np.diag(moments.gram) + moments.mass * moments.mean_x**2)
    total = np.sqrt(moments.power + moments.mass * moments.mean_y**2)
    rows_moved = raw @ np.abs(coef) + total
    spread = np.sqrt(np.maximum(np.diag(inverse), 0.0))[:, None]
    far = (np.abs(inverse) @ raw)[:, None] * np.sqrt(rss)
    error = 4 * UNIT * (spread * rows_moved + far)
    if squared:
        size = norms @ np.abs(coef) + np.sqrt(moments.power)
        error += growth * (np.abs(inverse) @ norms)[:, None] * size
    shift = np.abs(moments.mean_x)
    base = shift @ error + 4 * UNIT * (shift @ np.abs(coef) + np.abs(moments.mean_y))
    return np.vstack([base, error])


def spread_intercept(moments: Moments, inverse: Array) -> Array:
    """(ZᵀΩZ + αI)⁻¹ for Z = [1, X] from the inverse of the centred block (p, p)."""
    lean = inverse @ moments.mean_x
    corner = 1.0 / moments.mass + moments.mean_x @ lean
    return np.block([[np.atleast_2d(corner), -lean[None, :]], [-lean[:, None], inverse]])
