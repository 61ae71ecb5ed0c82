"""Least squares to the last digit: QR, then refinement of the augmented system.

At the minimum of ‖b − A w‖ the residual r and the coefficients w solve together

    ⎡ I  A ⎤ ⎡ r ⎤   ⎡ b ⎤
    ⎣ Aᵀ 0 ⎦ ⎣ w ⎦ = ⎣ g ⎦ ,   g = 0 .

A QR factorisation solves this system approximately; computing its residual in doubled precision
and solving again for the correction (Björck 1967) gives w as accurate as the data allow while
cond(A)·ε < 1, where one QR alone loses cond(A)·ε and the normal equations cond(A)²·ε.
With b = 0, g = −e_j the same system gives column j of (AᵀA)⁻¹, hence standard errors.

Shapes: A (n, p), b (n, q), g (p, q).
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from wonderland.core.doubled import Doubled, matmul
from wonderland.solve.problem import Array

__all__ = ["EPS", "Factors", "factorise", "solve_augmented"]

EPS = float(np.finfo(np.float64).eps)
STEPS = 12  # refinement stops by itself long before; a bound against endless loops


class Factors(NamedTuple):
    """A·diag(scale)[:, order] = Q·R with the first `rank` columns kept.

    Attributes:
        Q: Orthonormal columns (n, rank).
        R: Upper triangle (rank, rank).
        ties: Dependent columns in terms of the kept ones, scaled (rank, p − rank).
        order: Column order, kept columns first (p,).
        scale: Powers of two that bring all columns to norms near 1 (p,).
        rank: Number of independent columns.
    """

    Q: Array
    R: Array
    ties: Array
    order: np.ndarray
    scale: Array
    rank: int


def factorise(A: Array, fixed: int = 0, *, square: bool = False) -> Factors:
    """Rank-revealing QR of the column-scaled matrix.

    A column is dependent when what is left of it is at rounding level: 8ε√n of the largest for a
    tall matrix, whose columns carry one rounding each and whose reduction adds n of them; LAPACK's
    pε for a `square` one and others that are themselves the outcome of a computation.

    A tall matrix is first reduced by an unpivoted QR, which runs at matrix-multiply speed; the
    pivoted one then sees only a p × p triangle. The first `fixed` columns (the intercept) stay in
    front and are never called dependent.
    """
    norms = np.sqrt(np.einsum("ij,ij->j", A, A))
    scale = np.exp2(-np.rint(np.log2(np.where(norms > 0, norms, 1.0))))
    Q, T = sl.qr(A * scale, mode="economic", overwrite_a=True, check_finite=False)
    head, tail = T[:fixed, :], T[fixed:, fixed:]
    turn, below, pivots = sl.qr(tail, mode="economic", pivoting=True, check_finite=False)
    order = np.concatenate([np.arange(fixed), fixed + pivots])
    Q = np.hstack([Q[:, :fixed], Q[:, fixed:] @ turn])
    R = np.vstack([head[:, order], np.hstack([np.zeros((below.shape[0], fixed)), below])])
    diagonal = np.abs(np.diag(R))
    tall = A.shape[0] > A.shape[1] and not square
    floor = EPS * (8.0 * np.sqrt(A.shape[0]) if tall else max(8.0, A.shape[1]))
    floor *= diagonal.max(initial=0.0)
    kept = np.ones(min(R.shape), dtype=bool)
    kept[fixed:] = diagonal[fixed:] > floor
    rank = int(kept.sum())
    ties = sl.solve_triangular(R[:rank, :rank], R[:rank, rank:]) if rank else R[:0]
    return Factors(Q[:, :rank], R[:rank, :rank], ties, order, scale, rank)


def solve_augmented(
    A: Doubled, b: Doubled, g: Array, factors: Factors, *, refine: bool = True
) -> tuple[Array, Array, Array]:
    """Solve the augmented system for the kept columns.

    Args:
        A: The matrix in doubled precision (n, p); its low part may be zero.
        b: Upper right-hand side (n, q), likewise.
        g: Lower right-hand side (p, q).
        factors: From `factorise(A.high)`.
        refine: Whether to iterate on residuals in doubled precision.

    Returns:
        (w, r, change): coefficients (p, q) with zeros for dependent columns, residual (n, q), and
        the size of the last correction to each coefficient (p, q).
    """
    kept = factors.order[: factors.rank]
    scale = factors.scale[kept, None]
    high = A.high[:, kept] * scale.T
    low = A.low[:, kept] * scale.T if A.low.any() else None
    goal = g[kept] * scale
    r, w = _correct(factors, b.high, goal)
    change = np.abs(w)
    for _ in range(STEPS if refine else 0):
        f1, f2 = _defects(high, low, b, goal, r, w)
        dr, dw = _correct(factors, f1, f2)
        r, w = r + dr, w + dw
        size = np.abs(dw)
        # Once a correction is at rounding level, or no longer shrinks, nothing is left to gain.
        done = np.all((size <= 2 * EPS * np.abs(w)) | (size > 0.5 * change))
        change = size
        if done:
            break
    full, last = np.zeros_like(g), np.zeros_like(g)
    full[kept], last[kept] = w * scale, change * scale
    return full, r, last


def _correct(factors: Factors, f1: Array, f2: Array) -> tuple[Array, Array]:
    """Solve [I A; Aᵀ 0][r; w] = [f1; f2] with A = QR: r = Qh + (f1 − QQᵀf1), w = R⁻¹(Qᵀf1 − h)."""
    h = sl.solve_triangular(factors.R, f2, trans="T", check_finite=False)
    along = factors.Q.T @ f1
    r = f1 + factors.Q @ (h - along)
    return r, sl.solve_triangular(factors.R, along - h, check_finite=False)


def _defects(
    A: Array, low: Array | None, b: Doubled, g: Array, r: Array, w: Array
) -> tuple[Array, Array]:
    """What is left: b − r − Aw and g − Aᵀr, each computed in doubled precision and then rounded."""
    fitted, moment = matmul(A, w), matmul(A.T, r)
    if low is not None:
        fitted, moment = fitted + Doubled.of(low @ w), moment + Doubled.of(low.T @ r)
    upper = b - Doubled.of(r) - fitted
    return upper.value, (Doubled.of(g) - moment).value
