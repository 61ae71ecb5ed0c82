"""A table seen by its columns: the products a method with few active columns asks for.

The table is Z = [X, 1] (n, p), p = d + 1: the intercept is the last column (p = d without one).

    scores      Z_J Wᵀ                 (n, k)
    pull        VᵀZ                    (k, p) over all columns, or over those in stock
    gram        Z_Lᵀ diag(D) Z_R       (|L|, |R|)

A dense X is read through a stock of its columns, gathered once each when they are first needed, so
that most passes touch few columns only; X in Fortran order is its own stock. A CSR X keeps its
transpose in addition; no product densifies more than a block of rows of the active columns.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import map_rows

__all__ = ["Table", "table_of"]

BLOCK = 1 << 20  # entries of a block of weighted rows
DENSE = 24  # multiply-adds BLAS does while a sparse product does one


class Table(ABC):
    """Products with the columns of Z = [X, 1].

    Attributes:
        shape: (n, p), the column of ones included.
        intercept: Whether the last column is that of ones.
    """

    def __init__(self, X: Any, *, intercept: bool) -> None:
        self.X, self.intercept = X, intercept
        self.shape = (X.shape[0], X.shape[1] + int(intercept))

    @abstractmethod
    def stock(self, columns: np.ndarray) -> None:
        """Make these columns quick to reach."""

    @property
    @abstractmethod
    def stocked(self) -> np.ndarray:
        """Numbers of the columns in stock."""

    @abstractmethod
    def scores(self, columns: np.ndarray, W: np.ndarray) -> np.ndarray:
        """Z_J Wᵀ (n, k) for W (k, |J|)."""

    @abstractmethod
    def pull_stocked(self, V: np.ndarray) -> np.ndarray:
        """VᵀZ (k, p), with zeros for columns not in stock."""

    @abstractmethod
    def gram(self, left: np.ndarray, right: np.ndarray, D: np.ndarray) -> np.ndarray:
        """Z_Lᵀ diag(D) Z_R."""

    def pull(self, V: np.ndarray) -> np.ndarray:
        """VᵀZ over all columns (k, p)."""
        product = np.asarray((self.X.T @ V).T)
        return np.column_stack([product, V.sum(axis=0)]) if self.intercept else product


class _Dense(Table):
    """A dense table; the stock holds its columns as rows of one array."""

    def __init__(self, X: np.ndarray, *, intercept: bool) -> None:
        super().__init__(X, intercept=intercept)
        n, p = self.shape
        self._place = np.full(p, -1)
        self._numbers = np.empty(0, dtype=int)
        self._rows = np.empty((0, n))

    @property
    def stocked(self) -> np.ndarray:
        """Numbers of the columns in stock, in their order there."""
        return self._numbers

    def stock(self, columns: np.ndarray) -> None:
        """Gather the columns that are not there yet; room doubles when it runs out."""
        fresh = columns[self._place[columns] < 0]
        if not len(fresh):
            return
        held, total = len(self._numbers), len(self._numbers) + len(fresh)
        if total > len(self._rows):
            grown = np.empty((min(max(2 * held, total), self.shape[1]), self.shape[0]))
            grown[:held] = self._rows[:held]
            self._rows = grown
        self._place[fresh] = np.arange(held, total)
        self._numbers = np.concatenate([self._numbers, fresh])
        ones = fresh == self.X.shape[1]
        self._rows[held:total][~ones] = self.X[:, fresh[~ones]].T
        self._rows[held:total][ones] = 1.0

    def scores(self, columns: np.ndarray, W: np.ndarray) -> np.ndarray:
        """By the stock, all of it when most of it takes part."""
        self.stock(columns)
        held = self._rows[: len(self._numbers)]
        if 2 * len(columns) < len(held):
            return held[self._place[columns]].T @ W.T
        spread = np.zeros((len(W), len(held)))
        spread[:, self._place[columns]] = W
        return (spread @ held).T

    def pull_stocked(self, V: np.ndarray) -> np.ndarray:
        """One product with the stock."""
        spread = np.zeros((V.shape[1], self.shape[1]))
        spread[:, self._numbers] = (self._rows[: len(self._numbers)] @ V).T
        return spread

    def gram(self, left: np.ndarray, right: np.ndarray, D: np.ndarray) -> np.ndarray:
        """Blocks of rows, weighted while they lie in the cache, split among cores."""
        self.stock(np.union1d(left, right))
        a, b = self._place[left], self._place[right]
        same = np.array_equal(a, b) and bool(np.all(D >= 0))
        root = np.sqrt(D) if same else D
        step = max(1, BLOCK // max(len(a), len(b), 1))

        def part(start: int, stop: int) -> np.ndarray:
            total = np.zeros((len(a), len(b)))
            for low in range(start, stop, step):
                here = slice(low, min(low + step, stop))
                weighted = self._rows[a, here] * root[here]
                total += weighted @ (weighted if same else self._rows[b, here]).T
            return total

        return np.sum(map_rows(part, len(D), len(D) * (len(a) + len(b))), axis=0)


class _Sparse(Table):
    """A CSR table; every column is in stock."""

    def __init__(self, X: Any, *, intercept: bool) -> None:
        super().__init__(X, intercept=intercept)
        self._turned = X.T.tocsr()
        self._all = np.arange(self.shape[1])

    @property
    def stocked(self) -> np.ndarray:
        """All columns."""
        return self._all

    def stock(self, columns: np.ndarray) -> None:
        """Nothing to do."""

    def pull(self, V: np.ndarray) -> np.ndarray:
        """By the rows of the transpose."""
        product = (self._turned @ V).T
        return np.column_stack([product, V.sum(axis=0)]) if self.intercept else product

    def pull_stocked(self, V: np.ndarray) -> np.ndarray:
        """The same: every column is in stock."""
        return self.pull(V)

    def scores(self, columns: np.ndarray, W: np.ndarray) -> np.ndarray:
        """X times the coefficients spread over all columns."""
        spread = np.zeros((self.shape[1], len(W)))
        spread[columns] = W.T
        product = self.X @ spread[: self.X.shape[1]]
        return product + spread[-1] if self.intercept else product

    def gram(self, left: np.ndarray, right: np.ndarray, D: np.ndarray) -> np.ndarray:
        """A sparse product where that is less work than BLAS on dense blocks of rows."""
        a, b = self._taken(left), self._taken(right)
        work = np.diff(a.indptr).astype(float) @ np.diff(b.indptr)
        if DENSE * work < len(D) * len(left) * len(right):
            return (a.multiply(D[:, None]).tocsr().T @ b).toarray()
        step = max(1, BLOCK // max(len(left), len(right), 1))

        def part(start: int, stop: int) -> np.ndarray:
            total = np.zeros((len(left), len(right)))
            for low in range(start, stop, step):
                here = slice(low, min(low + step, stop))
                total += (a[here].toarray() * D[here, None]).T @ b[here].toarray()
            return total

        return np.sum(map_rows(part, len(D), len(D) * (len(left) + len(right))), axis=0)

    def _taken(self, columns: np.ndarray) -> Any:
        """Z_J as CSR (n, |J|)."""
        ones = columns == self.X.shape[1]
        taken = self._turned[columns[~ones]].T.tocsr()
        if not ones.any():
            return taken
        full = sp.csr_array(np.ones((self.shape[0], 1)))
        order = np.argsort(np.concatenate([np.flatnonzero(~ones), np.flatnonzero(ones)]))
        return sp.csr_array(sp.hstack([taken, full], format="csr")[:, order])


def table_of(X: Any, *, intercept: bool) -> Table:
    """The table of a dense (n, d) or scipy sparse X."""
    if sp.issparse(X):
        return _Sparse(X.tocsr(), intercept=intercept)
    return _Dense(np.asarray(X), intercept=intercept)
