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

from wonderland.core.blocks import map_rows

__all__ = ["Curvature", "inverse_of", "solve_bordered", "solve_newton"]

SPARSE = 600  # side up to which a matrix of sparse rows is factorised at once
DENSE = 2500  # and where conjugate gradients do not settle
BLOCK = 2048  # rows gathered at once: they stay in cache until multiplied
KRYLOV = 200  # steps of conjugate gradients


class Curvature(NamedTuple):
    """Rows A = X[rows] (r, d) and their weights D (r,); whether an intercept is solved for."""

    X: Any
    rows: np.ndarray
    D: np.ndarray
    intercept: bool

    @property
    def gathered(self) -> Any:
        """A."""
        return self.X[self.rows]

    @property
    def shape(self) -> tuple[int, int]:
        """(r, d)."""
        return len(self.rows), self.X.shape[1]

    @property
    def factorised(self) -> bool:
        """Whether the system is solved to rounding, not by conjugate gradients."""
        return not sp.issparse(self.X) or min(self.shape) <= SPARSE


def solve_newton(
    curvature: Curvature, g: np.ndarray, g_b: float, reach: float, accuracy: float = 1e-3
) -> tuple[np.ndarray, float]:
    """(dw, db); where nothing curves along the intercept it moves by `reach`.

    `accuracy` is the share of the right side that conjugate gradients may leave.
    """
    r, d = curvature.shape
    if r == 0:
        return -g, -np.sign(g_b) * reach
    if not curvature.factorised:
        found, solved = _by_products(curvature, g, g_b, accuracy)
        if solved or min(r, d) > DENSE:
            return found
    if r < d:
        return _by_rows(curvature, g, g_b, reach)
    return _by_columns(curvature, g, g_b, reach)


def _bounded(numerator: float, schur: float, scale: float, reach: float) -> float:
    """numerator/schur, kept to `reach` where rounding leaves no curvature."""
    if schur <= 1e-13 * scale:
        return float(np.sign(numerator) * reach)
    return float(numerator / schur)


def _by_columns(
    curvature: Curvature, g: np.ndarray, g_b: float, reach: float
) -> tuple[np.ndarray, float]:
    D, intercept = curvature.D, curvature.intercept
    H, column = _gram(curvature)
    H[np.diag_indices_from(H)] += 1.0
    rights = np.stack([-g, column], axis=1)
    solved = _cholesky(H, rights)
    if not intercept:
        return solved[:, 0], 0.0
    total = float(D.sum())
    schur = total - float(column @ solved[:, 1])
    db = _bounded(-g_b - float(column @ solved[:, 0]), schur, total, reach)
    return solved[:, 0] - db * solved[:, 1], db


def _gram(curvature: Curvature) -> tuple[np.ndarray, np.ndarray]:
    """AᵀDA (d, d) and AᵀD1 (d,): rows are gathered block by block, on all cores.

    A product of a matrix with itself takes half the work of any other, so D goes into both factors.
    """
    X, rows, D = curvature.X, curvature.rows, curvature.D
    if sp.issparse(X):
        A = curvature.gathered
        return np.asarray((A.T @ A.multiply(D[:, None]).tocsr()).toarray()), A.T @ D
    r, d = curvature.shape
    even = np.ptp(D) == 0.0

    def part(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        total, column = np.zeros((d, d)), np.zeros(d)
        for low in range(start, stop, BLOCK):
            chosen = slice(low, min(low + BLOCK, stop))
            A = np.take(X, rows[chosen], axis=0, mode="clip")  # without the interpreter lock
            column += D[chosen] @ A
            half = A if even else A * np.sqrt(D[chosen])[:, None]
            total += half.T @ half
        return total, column

    parts = map_rows(part, r, r * d)
    H, column = (np.sum([each[k] for each in parts], axis=0) for k in (0, 1))
    return H * D[0] if even else H, column


def _by_rows(
    curvature: Curvature, g: np.ndarray, g_b: float, reach: float
) -> tuple[np.ndarray, float]:
    """dw = −g − Aᵀy with (D⁻¹ + AAᵀ)y = −Ag + db·1 and 1ᵀy = −g_b."""
    A, D, intercept = curvature.gathered, curvature.D, curvature.intercept
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
    inverse = inverse_of(H)
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
    return inverse_of(M)(rights)


def inverse_of(M: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
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
    curvature: Curvature, g: np.ndarray, g_b: float, accuracy: float
) -> tuple[tuple[np.ndarray, float], bool]:
    """Conjugate gradients on (w, b), scaled by the diagonal; whether they reached their aim."""
    A, D, intercept = curvature.gathered, curvature.D, curvature.intercept
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
    aim = accuracy * float(np.sqrt(right @ right))
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
    return (x[:-1], float(x[-1])), float(np.sqrt(residual @ residual)) <= aim
