"""Cholesky in doubled precision with pivoting: what second moments in doubled precision deserve.

    Pᵀ C P = Rᵀ R ,   w = R⁻¹ R⁻ᵀ h .

The triangle is computed by panels, so that nearly all work is matrix products. Its inverse comes
from float64 by Newton steps Y ← Y + Y(I − RY): R is as well conditioned as the data (not their
Gram matrix), so two steps reach doubled precision. Reference: Higham, Accuracy and Stability of
Numerical Algorithms (2002), chapters 10 and 14.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from wonderland.core.doubled import Doubled, matmul
from wonderland.solve.problem import Array

__all__ = ["Triangle", "add_up", "pivoted_cholesky", "times"]

PANEL = 32  # columns between two updates of what is left
EXACT = 2000  # columns up to which all singular values are computed for the condition number


class Triangle(NamedTuple):
    """C[order][:, order] = RᵀR on the first `rank` columns.

    Attributes:
        R: Upper triangle (rank, rank).
        beyond: R⁻ᵀC for the dependent columns (rank, p − rank).
        inverse: Y = R⁻¹ (rank, rank).
        order: Columns, kept ones first (p,).
        rank: Number of independent columns.
    """

    R: Doubled
    beyond: Doubled
    inverse: Doubled
    order: np.ndarray
    rank: int

    @property
    def kept(self) -> np.ndarray:
        """The independent columns (rank,)."""
        return self.order[: self.rank]

    def solve(self, C: Doubled, h: Doubled) -> tuple[Doubled, Array]:
        """(w, size of the last correction), both (p, t), with zeros for dependent columns."""
        kept, Y = self.kept, self.inverse
        gram, right = C.take(*np.ix_(kept, kept)), h.take(kept)
        w = times(Y, times(transposed(Y), right))
        step = times(Y, times(transposed(Y), right - times(gram, w)))
        w = w + step
        full = Doubled.of(np.zeros(h.high.shape))
        full.high[kept], full.low[kept] = w
        last = np.zeros(h.high.shape)
        last[kept] = np.abs(step.high)
        return full, last

    def ties(self) -> Array:
        """Dependent columns in terms of the kept ones (rank, p − rank)."""
        return times(self.inverse, self.beyond).value

    def condition(self) -> tuple[float, str]:
        """κ of the column-scaled triangle, and how it was measured."""
        R = self.R.value
        if R.size == 0:
            return 1.0, "no independent column"
        R = R / np.sqrt((R**2).sum(axis=0))
        if len(R) <= EXACT:
            values = sl.svdvals(R, check_finite=False)
            return float(values[0] / values[-1]), "singular values of the scaled, centred triangle"
        ratio, _ = sl.lapack.dtrcon(R)
        return float(1.0 / ratio), "1-norm estimate from the scaled, centred triangle"


def pivoted_cholesky(C: Doubled, floor: Array, priority: Array) -> Triangle:
    """Factorise, leaving out columns that the others explain.

    Args:
        C: Symmetric positive semidefinite (p, p).
        floor: What is left of C_jj at most when column j is dependent (p,).
        priority: Pivots are the largest of priority·(what is left) (p,).

    >>> C = Doubled.of(np.array([[4.0, 2.0], [2.0, 1.0]]))
    >>> pivoted_cholesky(C, np.full(2, 1e-20), np.ones(2)).rank
    1
    """
    p = len(floor)
    order = np.arange(p)
    rest = Doubled(C.high.copy(), C.low.copy())
    R = Doubled.of(np.zeros((p, p)))
    left = Doubled(np.diag(C.high).copy(), np.diag(C.low).copy())
    rank, begin = p, 0
    for k in range(p):
        ahead = order[k:]
        size = np.where(left.high[k:] > floor[ahead], priority[ahead] * left.high[k:], -np.inf)
        if not np.any(size > 0):
            rank = k
            break
        _swap(k, k + int(np.argmax(size)), order, rest, R, left)
        _row(k, begin, rest, R, left)
        if k + 1 - begin == PANEL:
            panel = R.take(slice(begin, k + 1), slice(k + 1, p))
            tail = rest.take(slice(k + 1, p), slice(k + 1, p)) - times(transposed(panel), panel)
            rest.high[k + 1 :, k + 1 :], rest.low[k + 1 :, k + 1 :] = tail
            begin = k + 1
    square = R.take(slice(0, rank), slice(0, rank))
    beyond = R.take(slice(0, rank), slice(rank, p))
    return Triangle(square, beyond, _inverse(square), order, rank)


def _swap(k: int, j: int, order: np.ndarray, rest: Doubled, R: Doubled, left: Doubled) -> None:
    """Exchange columns k and j everywhere."""
    if k == j:
        return
    pair, turned = [k, j], [j, k]
    order[pair] = order[turned]
    for part in (*rest, *R):
        part[:, pair] = part[:, turned]
    for part in rest:
        part[pair] = part[turned]
    for part in left:
        part[pair] = part[turned]


def _row(k: int, begin: int, rest: Doubled, R: Doubled, left: Doubled) -> None:
    """Row k of R from row k of what is left, and the diagonal that remains."""
    after = slice(k + 1, None)
    row = rest.take(slice(k, k + 1), after)
    if k > begin:
        above = slice(begin, k)
        row = row - times(transposed(R.take(above, slice(k, k + 1))), R.take(above, after))
    pivot = left.take(slice(k, k + 1)).root()
    row = row / pivot
    R.high[k, k], R.low[k, k] = pivot.high[0], pivot.low[0]
    R.high[k, after], R.low[k, after] = row.high[0], row.low[0]
    remains = left.take(after) - (row * row).take(0)
    left.high[after], left.low[after] = remains


def _inverse(R: Doubled) -> Doubled:
    """R⁻¹ for an upper triangle (p, p)."""
    eye = np.eye(len(R.high))
    start = sl.solve_triangular(R.high, eye, check_finite=False) if R.high.size else eye
    Y = Doubled.of(start)
    for _ in range(2):
        Y = Y + Doubled.of(start @ (Doubled.of(eye) - times(R, Y)).value)
    return Y


def transposed(a: Doubled) -> Doubled:
    """Aᵀ."""
    return Doubled(a.high.T, a.low.T)


def times(a: Doubled, b: Doubled) -> Doubled:
    """A·B for A (m, c), B (c, p), normwise per row of A and column of B."""
    return matmul(a.high, b.high) + Doubled.of(a.high @ b.low + a.low @ b.high)


def add_up(a: Doubled) -> Doubled:
    """Sum over the first axis, halves onto halves."""
    while len(a.high) > 1:
        half = len(a.high) // 2
        odd = a.take(slice(2 * half, None))
        pairs = a.take(slice(0, half)) + a.take(slice(half, 2 * half))
        a = Doubled(np.concatenate([pairs.high, odd.high]), np.concatenate([pairs.low, odd.low]))
    return a.take(0) if len(a.high) else Doubled.of(np.zeros(a.high.shape[1:]))
