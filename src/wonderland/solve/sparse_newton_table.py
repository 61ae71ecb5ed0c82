"""A table seen by its columns: the products a method with few active columns asks for.

The table is Z = [X, 1] (n, p), p = d + 1: the intercept is the last column (p = d without one).

    scores      Z_J Wᵀ                 (n, k)
    pull        VᵀZ                    (k, p) over all columns, or over those in stock
    gram        Z_Lᵀ diag(D) Z_R       (|L|, |R|)

A dense X is read through a stock of its columns, gathered once each when they are first needed, so
that most passes touch few columns only. A CSR X keeps its transpose in addition; no product
densifies more than the active columns, where these take little room, else a block of their rows.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import map_rows

__all__ = ["Table", "table_of"]

ROOM = 1 << 23  # entries of columns that a sparse table may hold dense,
HELD = 4  # or as many times its own
BLOCK = 1 << 20  # entries of a block of weighted rows
BRIEF = 8  # a product with a vector is so much shorter than work that pays for threads
DENSE = 24.0  # multiply-adds BLAS does while a sparse product does one
FAST = 16.0  # multiply-adds BLAS does while one entry is read from memory
ELEMENTWISE = 30.0  # entries read while a loss and its slope are evaluated once


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

    @abstractmethod
    def gram_work(self, columns: np.ndarray) -> float:
        """Cost of `gram` over these columns, in entries read from memory."""

    @abstractmethod
    def pass_work(self) -> float:
        """Cost of one step without a new gram, in the same unit."""

    def pull(self, V: np.ndarray) -> np.ndarray:
        """VᵀZ over all columns (k, p)."""
        parts = map_rows(
            lambda low, high: V[low:high].T @ self.X[low:high], len(V), self.X.size // BRIEF
        )
        product = np.sum(parts, axis=0)
        return np.column_stack([product, V.sum(axis=0)]) if self.intercept else product


class _Stock:
    """Columns of Z held as rows of one array (m, n), gathered once each.

    Attributes:
        numbers: Of the columns, in their order there.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        n, p = shape
        self.place = np.full(p, -1)
        self.numbers = np.empty(0, dtype=int)
        self._rows = np.empty((0, n))

    @property
    def rows(self) -> np.ndarray:
        """(m, n)."""
        return self._rows[: len(self.numbers)]

    def missing(self, columns: np.ndarray) -> np.ndarray:
        """Those that are not there yet."""
        return columns[self.place[columns] < 0]

    def add(self, fresh: np.ndarray, rows: np.ndarray) -> None:
        """Put columns there; room doubles when it runs out."""
        held, total = len(self.numbers), len(self.numbers) + len(fresh)
        if total > len(self._rows):
            grown = np.empty((min(max(2 * held, total), len(self.place)), self._rows.shape[1]))
            grown[:held] = self._rows[:held]
            self._rows = grown
        self.place[fresh] = np.arange(held, total)
        self.numbers = np.concatenate([self.numbers, fresh])
        self._rows[held:total] = rows

    def gram(self, left: np.ndarray, right: np.ndarray, D: np.ndarray) -> np.ndarray:
        """Blocks of rows of Z, weighted while they lie in the cache, split among cores."""
        a, b = self.place[left], self.place[right]
        same = np.array_equal(a, b) and bool(np.all(D >= 0))
        if not same and 2 * len(b) > len(self.numbers):
            # Most of the stock takes part: no gathering, what is not asked for is dropped after.
            return self._blocks(a, np.arange(len(self.numbers)), D, lambda rows: rows)[:, b]
        if same:
            return self._blocks(a, a, np.sqrt(D), None)
        return self._blocks(a, b, D, lambda rows: rows[b])

    def _blocks(self, a: np.ndarray, b: np.ndarray, D: np.ndarray, other: Any) -> np.ndarray:
        """Σ over blocks of (rows_a · D) rows_bᵀ; without `other` both factors are the weighted."""
        step = max(1, BLOCK // max(len(a), len(b), 1))
        held = self.rows

        def part(start: int, stop: int) -> np.ndarray:
            total = np.zeros((len(a), len(b)))
            for low in range(start, stop, step):
                here = slice(low, min(low + step, stop))
                weighted = held[a, here] * D[here]
                total += weighted @ (weighted if other is None else other(held[:, here])).T
            return total

        return np.sum(map_rows(part, len(D), len(D) * (len(a) + len(b))), axis=0)


class _Dense(Table):
    """A dense table, read through a stock of its columns."""

    def __init__(self, X: np.ndarray, *, intercept: bool) -> None:
        super().__init__(X, intercept=intercept)
        self._stock = _Stock(self.shape)

    @property
    def stocked(self) -> np.ndarray:
        """Numbers of the columns in stock, in their order there."""
        return self._stock.numbers

    def stock(self, columns: np.ndarray) -> None:
        """Gather the columns that are not there yet."""
        fresh = self._stock.missing(columns)
        if not len(fresh):
            return
        rows = np.ones((len(fresh), self.shape[0]))
        inside = fresh < self.X.shape[1]
        rows[inside] = self.X[:, fresh[inside]].T
        self._stock.add(fresh, rows)

    def scores(self, columns: np.ndarray, W: np.ndarray) -> np.ndarray:
        """By the stock, all of it when most of it takes part."""
        self.stock(columns)
        held, place = self._stock.rows, self._stock.place[columns]
        if 2 * len(columns) < len(held):
            return held[place].T @ W.T
        spread = np.zeros((len(W), len(held)))
        spread[:, place] = W
        parts = map_rows(lambda a, b: spread @ held[:, a:b], held.shape[1], held.size // BRIEF)
        return np.concatenate(parts, axis=1).T

    def pull_stocked(self, V: np.ndarray) -> np.ndarray:
        """One product with the stock."""
        held = self._stock.rows
        spread = np.zeros((V.shape[1], self.shape[1]))
        parts = map_rows(lambda a, b: held[a:b] @ V, len(held), held.size // BRIEF)
        spread[:, self.stocked] = np.concatenate(parts).T
        return spread

    def gram(self, left: np.ndarray, right: np.ndarray, D: np.ndarray) -> np.ndarray:
        """By the stock."""
        self.stock(np.union1d(left, right))
        return self._stock.gram(left, right, D)

    def gram_work(self, columns: np.ndarray) -> float:
        """Half of |J|²n multiply-adds, and gathering |J|n entries."""
        return self.shape[0] * len(columns) * (2.0 + len(columns) / (2.0 * FAST))

    def pass_work(self) -> float:
        """The stock read twice; exponentials of the rows."""
        return self.shape[0] * (2.0 * len(self.stocked) + ELEMENTWISE)


class _Sparse(Table):
    """A CSR table; every column is in stock."""

    def __init__(self, X: Any, *, intercept: bool) -> None:
        super().__init__(X, intercept=intercept)
        self._turned = X.T.tocsr()
        self._all = np.arange(self.shape[1])
        counts = np.diff(self._turned.indptr).astype(float)
        self._counts = np.append(counts, float(X.shape[0])) if intercept else counts
        self._stock = _Stock(self.shape)
        self._room = max(ROOM, HELD * X.nnz)

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
        if len(left) > len(right):
            return self.gram(right, left, D).T
        held, other = self._counts[left].sum(), self._counts[right].sum()
        if DENSE * held * other < float(len(D)) ** 2 * len(left) * len(right):
            return self._sparse_gram(left, right, D)
        fresh = self._stock.missing(np.union1d(left, right))
        if (len(self._stock.numbers) + len(fresh)) * len(D) <= self._room:
            if len(fresh):
                self._stock.add(fresh, self._taken(fresh).T.toarray())
            return self._stock.gram(left, right, D)
        return self._passing_gram(left, right, D)

    def _passing_gram(self, left: np.ndarray, right: np.ndarray, D: np.ndarray) -> np.ndarray:
        """Dense for a block of rows at a time only."""
        a, b = self._taken(left), self._taken(right)
        step = max(1, BLOCK // max(len(left), len(right), 1))

        def part(start: int, stop: int) -> np.ndarray:
            total = np.zeros((len(left), len(right)))
            for low in range(start, stop, step):
                here = slice(low, min(low + step, stop))
                total += (a[here].toarray() * D[here, None]).T @ b[here].toarray()
            return total

        return np.sum(map_rows(part, len(D), len(D) * (len(left) + len(right))), axis=0)

    def _sparse_gram(self, left: np.ndarray, right: np.ndarray, D: np.ndarray) -> np.ndarray:
        """By the rows of the transpose; the column of ones is summed apart."""
        d = self.X.shape[1]
        scaled = self._turned[left[left < d]]
        scaled.data = scaled.data * D[scaled.indices]
        few = 2 * self._counts[right].sum() < self.X.nnz
        other = self._turned[right[right < d]].T.tocsr() if few else self.X
        product = (scaled @ other).toarray()
        H = np.empty((len(left), len(right)))
        H[np.ix_(left < d, right < d)] = product if few else product[:, right[right < d]]
        H[np.ix_(left < d, right == d)] = (self._turned[left[left < d]] @ D)[:, None]
        H[np.ix_(left == d, right < d)] = self._turned[right[right < d]] @ D
        H[np.ix_(left == d, right == d)] = D.sum()
        return H

    def gram_work(self, columns: np.ndarray) -> float:
        """The multiply-adds of a sparse product of evenly filled rows, or of BLAS."""
        held = float(self._counts[columns].sum())
        product = held * held / self.shape[0]
        return held + min(product, self.shape[0] * len(columns) ** 2 / DENSE)

    def pass_work(self) -> float:
        """All entries twice; exponentials of the rows."""
        return 2.0 * self.X.nnz + ELEMENTWISE * self.shape[0]

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
