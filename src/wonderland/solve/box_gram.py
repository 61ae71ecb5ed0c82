"""The kernel matrix as a solver sees it: blocks of it, and products with it that store nothing.

A block K[rows, rows] is made once for many steps; a product K[rows, columns]·v is summed panel by
panel while each is in the cache, so that it costs no memory. In float32 both are one program of XLA
where the kernel is a function of an inner product (`kernels/panels.py`), else tiles of the host.
Where many problems share samples (one against one) the whole matrix may be kept in float32.
"""

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import map_rows
from wonderland.kernels.custom import Precomputed
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.panels import Panels, square, sums
from wonderland.solve.working_set import Room, room, room_of_panels

__all__ = ["Gram", "kernel_product"]

SIDE = 512  # rows and columns of a tile
WORTH = 2048  # samples from which programs of XLA are worth compiling
MANY = 1 << 17  # entries of a product or a block from which one is worth its start
RUNS = 16  # stretches of neighbouring rows up to which they are copied as such


class _Samples:
    """What all parts of a matrix share.

    Args:
        kernel: k.
        X: (N, d), dense or CSR; the matrix itself for a precomputed kernel.
        kept: The matrix (N, N) if it is in memory already.
        place: Where each sample is in `kept` (N,); None for its own number.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        kept: np.ndarray | None = None,
        place: np.ndarray | None = None,
    ) -> None:
        self.kernel, self.X, self.kept, self.place = kernel, X, kept, place
        self.given = isinstance(kernel, Precomputed)
        if self.given and kept is None:
            self.kept = X.toarray() if sp.issparse(X) else np.asarray(X)

    @cached_property
    def panels(self) -> Panels | None:
        """Rows ready for inner products in float32."""
        return None if self.given else self.kernel.panels(self.X)


class Gram:
    """K_ij = k(x_i, x_j) of n samples, computed when asked for.

    Args:
        kernel: k.
        X: (N, d), dense or CSR; the matrix itself for a precomputed kernel.

    >>> from wonderland.kernels import Linear
    >>> gram = Gram(Linear(), np.array([[1.0], [2.0], [3.0]]))
    >>> gram.product(None, np.array([1, 2]), np.array([1.0, 1.0]), np.float64)
    array([ 5., 10., 15.])
    """

    def __init__(self, kernel: Kernel, X: Any) -> None:
        self._share(_Samples(kernel, X), None)

    def _share(self, samples: _Samples, index: np.ndarray | None) -> "Gram":
        self.samples, self.index = samples, index
        self.n = samples.X.shape[0] if index is None else len(index)
        self.d = samples.X.shape[1]
        return self

    @property
    def kernel(self) -> Kernel:
        """k."""
        return self.samples.kernel

    @property
    def rows(self) -> Any:
        """The samples (n, d)."""
        return self._rows(None)

    def part(self, index: np.ndarray) -> "Gram":
        """The matrix of some of the samples."""
        return Gram.__new__(Gram)._share(self.samples, self._numbers(index))

    def keep(self, order: np.ndarray | None = None) -> "Gram":
        """The same with the whole matrix in memory, in float32.

        Args:
            order: In which order its rows lie there: samples that are asked for together are
                copied faster where they are neighbours.
        """
        if self.samples.kept is not None:
            return self
        X = self._rows(order)
        panels = self.samples.kernel.panels(X) if X.shape[0] >= WORTH else None
        if panels is None:
            kept = self.samples.kernel.matrix(X, dtype=np.float32)
        else:
            kept = square(panels, np.empty((self.n, self.n), np.float32))
        place = None if order is None else np.argsort(order)
        return Gram.__new__(Gram)._share(
            _Samples(self.samples.kernel, self._rows(None), kept, place), None
        )

    def diagonal(self) -> np.ndarray:
        """k(x_i, x_i) (n,)."""
        if self.samples.given and self.samples.kept is not None:
            inner = self._numbers(None)
            return np.asarray(self.samples.kept[inner, inner], np.float64)
        return np.asarray(self.samples.kernel.diagonal(self._rows(None)), np.float64)

    def room(self, index: np.ndarray, dtype: Any, space: Any = None) -> Room:
        """The block K[index, index] in memory that the steps of two can use.

        Args:
            index: Its samples (q,).
            dtype: float32 or float64.
            space: Memory of an earlier one.
        """
        panels = self._panels(float(len(index)) ** 2, dtype)
        if panels is not None:
            rows = self._numbers(index)
            return room_of_panels(panels.part(rows, rows), space)
        place = room(len(index), dtype, space)
        self.block(index, None, dtype, out=place.filled)
        return place

    def block(
        self,
        rows: np.ndarray,
        columns: np.ndarray | None,
        dtype: Any,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """K[rows, columns] in float32 or float64; columns None for those of the rows."""
        if self._stored(dtype):
            return self._look(rows, rows if columns is None else columns, dtype, out)
        Z = None if columns is None else self._rows(columns)
        return self.samples.kernel.matrix(
            self._rows(rows), Z, out=out, dtype=None if out is not None else dtype
        )

    def product(
        self, rows: np.ndarray | None, columns: np.ndarray, values: np.ndarray, dtype: Any
    ) -> np.ndarray:
        """K[rows, columns]·values (rows,): float64 sums of products of the given type.

        Args:
            rows: Which of the samples; None for all.
            columns: Which others (m,).
            values: (m,).
            dtype: float32 or float64.
        """
        n = self.n if rows is None else len(rows)
        if not n or not len(columns):
            return np.zeros(n)
        if self._stored(dtype):
            return self._stored_product(rows, columns, values, dtype)
        panels = self._panels(float(n) * len(columns), dtype)
        if panels is not None:
            part = panels.part(self._numbers(rows), self._numbers(columns))
            return sums(part, values[:, None])[:, 0]
        left, right = self._rows(rows), self._rows(columns)
        return _tiled(self.samples.kernel, left, right, values[:, None], dtype)[:, 0]

    def _numbers(self, index: np.ndarray | None) -> np.ndarray:
        """Of these samples among all."""
        if self.index is None:
            return np.arange(self.n) if index is None else index
        return self.index if index is None else self.index[index]

    def _rows(self, index: np.ndarray | None) -> Any:
        """These samples themselves."""
        if self.samples.given:
            return self.samples.X
        whole = index is None and self.index is None
        return self.samples.X if whole else self.samples.X[self._numbers(index)]

    def _panels(self, entries: float, dtype: Any) -> Panels | None:
        """Rows for XLA where there is enough to do in float32."""
        samples = self.samples
        few = entries < MANY or samples.X.shape[0] < WORTH
        if np.dtype(dtype) != np.float32 or few or samples.kept is not None:
            return None
        return samples.panels

    def _stored(self, dtype: Any) -> bool:
        """Whether what is kept is as precise as what is asked for."""
        kept = self.samples.kept
        return kept is not None and (self.samples.given or kept.dtype == np.dtype(dtype))

    def _look(
        self, rows: np.ndarray, columns: np.ndarray, dtype: Any, out: np.ndarray | None = None
    ) -> np.ndarray:
        """A block of the kept matrix."""
        kept, place = self.samples.kept, self.samples.place
        rows, columns = self._numbers(rows), self._numbers(columns)
        if place is not None:
            rows, columns = place[rows], place[columns]
        if out is None:
            out = np.empty((len(rows), len(columns)), dtype)
        copy_block(np.asarray(kept), rows, columns, out)
        return out

    def _stored_product(
        self, rows: np.ndarray | None, columns: np.ndarray, values: np.ndarray, dtype: Any
    ) -> np.ndarray:
        chosen = np.arange(self.n) if rows is None else rows
        total = np.zeros(len(chosen))
        for i in range(0, len(chosen), SIDE * 4):
            part = slice(i, i + SIDE * 4)
            total[part] = self._look(chosen[part], columns, dtype) @ values.astype(dtype)
        return total


def copy_block(table: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """out ← table[rows, columns], in stretches where these are neighbours.

    >>> out = np.empty((2, 2))
    >>> copy_block(np.arange(16.0).reshape(4, 4), np.array([1, 2]), np.array([0, 3]), out)
    >>> out
    array([[ 4.,  7.],
           [ 8., 11.]])
    """
    across, down = _runs(columns), _runs(rows)
    if len(across) > RUNS or len(down) > RUNS:
        for i, row in enumerate(rows):
            out[i] = table[row, columns]
        return
    for i, to in down:
        for j, there in across:
            out[i:to, j:there] = table[
                rows[i] : rows[i] + to - i, columns[j] : columns[j] + there - j
            ]


def _runs(index: np.ndarray) -> list[tuple[int, int]]:
    """Where stretches of neighbours begin and end."""
    edges = [0, *(np.flatnonzero(np.diff(index) != 1) + 1).tolist(), len(index)]
    return list(pairwise(edges))


def kernel_product(kernel: Kernel, X: Any, Z: Any, values: np.ndarray, dtype: Any) -> np.ndarray:
    """K(X, Z)·values (n, s) without ever holding K: float64 sums of products of the given type.

    Args:
        kernel: k.
        X: (n, d).
        Z: (m, d).
        values: (m, s).
        dtype: float32 or float64.
    """
    n, m = X.shape[0], Z.shape[0]
    if np.dtype(dtype) != np.float32 or float(n) * m < WORTH**2:
        return _tiled(kernel, X, Z, values, dtype)
    total = np.empty((n, values.shape[1]))
    for start in range(0, n, STRETCH):
        rows = X[start : start + STRETCH]
        panels = kernel.panels(rows, Z)
        total[start : start + STRETCH] = (
            _tiled(kernel, rows, Z, values, dtype) if panels is None else sums(panels, values)
        )
    return total


STRETCH = 1 << 16  # rows of a prediction that are prepared at a time


def _tiled(kernel: Kernel, X: Any, Z: Any, values: np.ndarray, dtype: Any) -> np.ndarray:
    """The same by tiles of the host."""
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
