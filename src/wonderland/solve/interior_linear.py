"""The linear systems of Newton steps: identity plus a few rows, the intercept free.

    [ I + AᵀDA   AᵀD1 ] [dw]     [g  ]
    [ 1ᵀDA       1ᵀD1 ] [db] = − [g_b]      A (r, d), D (r,) > 0

By Cholesky in the smaller of d and r (r: the Woodbury identity, D⁻¹ + AAᵀ), or by conjugate
gradients where the rows are sparse and both are large.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

__all__ = ["Curvature", "solve_bordered", "solve_newton"]

DENSE = 2500  # side of a matrix that is still factorised when the rows are sparse
KRYLOV = 500  # steps of conjugate gradients


class Curvature(NamedTuple):
    """Rows A (r, d) and their weights D (r,); whether an intercept is solved for."""

    A: Any
    D: np.ndarray
    intercept: bool


def solve_newton(
    curvature: Curvature, g: np.ndarray, g_b: float, reach: float
) -> tuple[np.ndarray, float]:
    """(dw, db); where nothing curves along the intercept it moves by `reach`."""
    r, d = curvature.A.shape
    if r == 0:
        return -g, -np.sign(g_b) * reach
    if r < d and (not sp.issparse(curvature.A) or r <= DENSE):
        return _by_rows(curvature, g, g_b, reach)
    if not sp.issparse(curvature.A) or d <= DENSE:
        return _by_columns(curvature, g, g_b, reach)
    return _by_products(curvature, g, g_b, reach)


def _bounded(numerator: float, schur: float, scale: float, reach: float) -> float:
    """numerator/schur, kept to `reach` where rounding leaves no curvature."""
    if schur <= 1e-13 * scale:
        return float(np.sign(numerator) * reach)
    return float(numerator / schur)


def _by_columns(
    curvature: Curvature, g: np.ndarray, g_b: float, reach: float
) -> tuple[np.ndarray, float]:
    A, D, intercept = curvature
    H = _gram(A, D)
    H[np.diag_indices_from(H)] += 1.0
    column = A.T @ D
    rights = np.stack([-g, column], axis=1)
    solved = _cholesky(H, rights)
    if not intercept:
        return solved[:, 0], 0.0
    total = float(D.sum())
    schur = total - float(column @ solved[:, 1])
    db = _bounded(-g_b - float(column @ solved[:, 0]), schur, total, reach)
    return solved[:, 0] - db * solved[:, 1], db


def _gram(A: Any, D: np.ndarray) -> np.ndarray:
    """AᵀDA (d, d); a product of a matrix with itself takes half the work of any other."""
    if sp.issparse(A):
        return np.asarray((A.T @ A.multiply(D[:, None]).tocsr()).toarray())
    if np.ptp(D) == 0.0:
        return (A.T @ A) * D[0]
    half = A * np.sqrt(D)[:, None]
    return half.T @ half


def _by_rows(
    curvature: Curvature, g: np.ndarray, g_b: float, reach: float
) -> tuple[np.ndarray, float]:
    """dw = −g − Aᵀy with (D⁻¹ + AAᵀ)y = −Ag + db·1 and 1ᵀy = −g_b."""
    A, D, intercept = curvature
    M = A @ A.T
    M = M.toarray() if sp.issparse(M) else M
    M[np.diag_indices_from(M)] += 1.0 / D
    rights = np.stack([-(A @ g), np.ones(len(D))], axis=1)
    solved = _cholesky(M, rights)
    db = 0.0
    if intercept:
        schur = float(solved[:, 1].sum())
        db = _bounded(-g_b - float(solved[:, 0].sum()), schur, float(D.sum()), reach)
    y = solved[:, 0] + db * solved[:, 1]
    return -g - A.T @ y, db


def solve_bordered(
    H: np.ndarray, column: np.ndarray, total: float, *, intercept: bool
) -> Callable[[np.ndarray, float], tuple[np.ndarray, float]]:
    """(dw, db) of [H h; hᵀ s] for one right side after another, from one factorisation."""
    inverse = _factorised(H)
    beside = inverse(column[:, None])[:, 0]
    schur = max(total - float(column @ beside), 1e-13 * total)

    def solve(right: np.ndarray, right_b: float) -> tuple[np.ndarray, float]:
        plain = inverse(right[:, None])[:, 0]
        if not intercept or schur == 0.0:
            return plain, 0.0
        db = (right_b - float(column @ plain)) / schur
        return plain - db * beside, db

    return solve


def _cholesky(M: np.ndarray, rights: np.ndarray) -> np.ndarray:
    """M⁻¹ rights for positive definite M."""
    return _factorised(M)(rights)


def _factorised(M: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """M⁻¹ as a function; M is lifted a little where rounding made it indefinite."""
    diagonal = np.diag_indices_from(M)
    scale = 1.0 / np.sqrt(M[diagonal])
    M = M * scale[:, None] * scale[None, :]
    lift, failed = 0.0, 1
    while failed:
        factor, failed = lapack.dpotrf(M, lower=True, clean=False, overwrite_a=False)
        if failed:
            step = max(lift * 9.0, 1e-15 * len(M))
            M[diagonal] += step
            lift += step

    def inverse(rights: np.ndarray) -> np.ndarray:
        solved, _ = lapack.dpotrs(factor, scale[:, None] * rights, lower=True)
        return scale[:, None] * solved

    return inverse


def _by_products(
    curvature: Curvature, g: np.ndarray, g_b: float, reach: float
) -> tuple[np.ndarray, float]:
    """Conjugate gradients on (w, b), scaled by the diagonal."""
    A, D, intercept = curvature
    total = float(D.sum())
    squares = A.multiply(A).T @ D
    scale = np.append(1.0 / (1.0 + squares), 1.0 / total if intercept else 0.0)

    def product(v: np.ndarray) -> np.ndarray:
        y = D * (A @ v[:-1] + v[-1])
        return np.append(v[:-1] + A.T @ y, y.sum() if intercept else 0.0)

    right = -np.append(g, g_b)
    x, residual = np.zeros_like(right), right.copy()
    ahead = scale * residual
    p, rho = ahead.copy(), float(residual @ ahead)
    aim = 1e-3 * min(1.0, float(np.sqrt(right @ right))) * float(np.sqrt(right @ right))
    for _ in range(KRYLOV):
        if rho == 0.0 or float(np.sqrt(residual @ residual)) <= aim:
            break
        q = product(p)
        step = rho / float(p @ q)
        x += step * p
        residual -= step * q
        ahead = scale * residual
        rho, before = float(residual @ ahead), rho
        p = ahead + (rho / before) * p
    return x[:-1], float(x[-1])
