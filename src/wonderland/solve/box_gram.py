"""The kernel matrix as a solver sees it: blocks of it, and products with it that store nothing.

A block K[rows, columns] is one call of the kernel on those samples; a product K[rows, columns]·v
is summed tile by tile while each tile is in the cache, so that it costs no memory. Where many
problems share samples (one against one) the whole matrix may be kept in float32.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import map_rows
from wonderland.kernels.custom import Precomputed
from wonderland.kernels.kernel import Kernel

__all__ = ["Gram", "kernel_product"]

SIDE = 512  # rows and columns of a tile


class Gram:
    """K_ij = k(x_i, x_j) of n samples, computed when asked for.

    Args:
        kernel: k.
        X: (n, d), dense or CSR; the matrix itself for a precomputed kernel.
        kept: The matrix (N, N) if it is in memory already.
        index: Which rows of `kept` are meant (n,); None for all.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        kept: np.ndarray | None = None,
        index: np.ndarray | None = None,
    ) -> None:
        self.kernel = kernel
        self.X = X
        self.given = isinstance(kernel, Precomputed)
        if self.given and kept is None:
            kept = X.toarray() if sp.issparse(X) else np.asarray(X)
        self.kept = kept
        self.index = index
        self.n = (X.shape[0] if index is None else len(index)) if self.given else X.shape[0]

    def part(self, index: np.ndarray) -> "Gram":
        """The matrix of some of the samples."""
        inner = index if self.index is None else self.index[index]
        X = self.X if self.given else self.X[index]
        return Gram(self.kernel, X, self.kept, inner if self.kept is not None else None)

    def keep(self, out: np.ndarray | None = None) -> "Gram":
        """The same with the whole matrix in memory, in float32."""
        if self.kept is not None:
            return self
        kept = self.kernel.matrix(self.X, out=out, dtype=None if out is not None else np.float32)
        return Gram(self.kernel, self.X, kept)

    def diagonal(self) -> np.ndarray:
        """k(x_i, x_i) (n,)."""
        if self.given and self.kept is not None:
            inner = np.arange(self.n) if self.index is None else self.index
            return np.asarray(self.kept[inner, inner], np.float64)
        return np.asarray(self.kernel.diagonal(self.X), np.float64)

    def block(
        self,
        rows: np.ndarray,
        columns: np.ndarray | None,
        dtype: Any,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """K[rows, columns] in float32 or float64; columns None for those of the rows."""
        if self._stored(dtype):
            found = self._look(rows, rows if columns is None else columns)
            if out is None:
                return np.asarray(found, dtype)
            out[:] = found
            return out
        Z = None if columns is None else self.X[columns]
        return self.kernel.matrix(
            self.X[rows], Z, out=out, dtype=None if out is not None else dtype
        )

    def product(
        self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, dtype: Any
    ) -> np.ndarray:
        """K[rows, columns]·values (rows,) in float64 sums of products of the given type."""
        if not len(rows) or not len(columns):
            return np.zeros(len(rows))
        if self._stored(dtype):
            return self._stored_product(rows, columns, values)
        left, right = self.X[rows], self.X[columns]
        return kernel_product(self.kernel, left, right, values[:, None], dtype)[:, 0]

    def _stored(self, dtype: Any) -> bool:
        """Whether what is kept is as precise as what is asked for."""
        if self.kept is None:
            return False
        return self.given or self.kept.dtype == np.dtype(dtype)

    def _look(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        kept = self.kept if self.kept is not None else np.empty((0, 0))
        if self.index is not None:
            rows, columns = self.index[rows], self.index[columns]
        return kept[np.ix_(rows, columns)]

    def _stored_product(
        self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        total = np.zeros(len(rows))
        for i in range(0, len(rows), SIDE * 4):
            part = slice(i, i + SIDE * 4)
            block = self._look(rows[part], columns)
            total[part] = block @ values.astype(block.dtype)
        return total


def kernel_product(kernel: Kernel, X: Any, Z: Any, values: np.ndarray, dtype: Any) -> np.ndarray:
    """K(X, Z)·values (n, s) without ever holding K: float64 sums of products of the given type.

    Args:
        kernel: k.
        X: (n, d).
        Z: (m, d).
        values: (m, s).
        dtype: float32 or float64.
    """
    kind, n, m = np.dtype(dtype), X.shape[0], Z.shape[0]
    tile = kernel.tile(X, Z, kind)
    right = np.ascontiguousarray(values, kind)
    total = np.zeros((n, values.shape[1]))

    def work(start: int, stop: int) -> None:
        space = np.empty((SIDE, SIDE), kind)
        for i in range(start * SIDE, min(stop * SIDE, n), SIDE):
            here = slice(i, min(i + SIDE, n))
            for j in range(0, m, SIDE):
                there = slice(j, min(j + SIDE, m))
                place = space[: here.stop - i, : there.stop - j]
                tile(here, there, place)
                total[here] += place @ right[there]

    map_rows(work, -(-n // SIDE), n * m)
    return total
