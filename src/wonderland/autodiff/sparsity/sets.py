"""Index sets for the elements of an array, stored once per distinct set.

An array of shape `s` whose elements depend on inputs 0 … n-1 is a pair: `ids`, an integer array of
shape `s`, and `table`, a boolean CSR matrix whose row `ids[e]` holds the inputs element `e` depends
on. Row 0 is the empty set. Moving elements about (reshape, gather, broadcast) touches `ids` alone;
only unions make new rows, one per distinct pair. A dense layer therefore costs one row, not m.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy import sparse

__all__ = ["Dependence", "common", "join", "keep", "nothing", "seeds", "through", "unite"]

LIMIT: Final = 50_000_000  # entries a table may have; beyond, rows widen to "every input"
BULKY: Final = 8  # entries a row beyond which looking for equal rows pays off


class Dependence:
    """The inputs each element of an array depends on.

    Attributes:
        ids: Row of `table` for each element, of the array's own shape.
        table: Boolean CSR (rows, n); row 0 is empty.
    """

    __slots__ = ("ids", "table")

    def __init__(self, ids: np.ndarray, table: sparse.csr_array) -> None:
        self.ids, self.table = ids, table

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array described."""
        return self.ids.shape

    @property
    def entries(self) -> int:
        """Total size of the sets, counted per element: the non-zeros of the pattern."""
        return int(_lengths(self.table)[self.ids].sum())

    def moved(self, ids: np.ndarray) -> "Dependence":
        """The same sets on other elements."""
        return Dependence(ids, self.table)

    def matrix(self) -> sparse.csr_array:
        """The pattern as a boolean CSR matrix (elements, n)."""
        return _rows(self.table, self.ids.ravel())


def seeds(shapes: Sequence[tuple[int, ...]]) -> list[Dependence]:
    """Arrays that are the inputs themselves: element k of all of them depends on input k.

    >>> [dependence.matrix().indices.tolist() for dependence in seeds([(2,), (1,)])]
    [[0, 1], [2]]
    """
    sizes = [int(np.prod(shape)) for shape in shapes]
    n, table = sum(sizes), _identity(sum(sizes))
    edges = np.cumsum([0, *sizes])
    ids = np.arange(1, n + 1, dtype=np.int32)
    return [
        Dependence(ids[start : start + size].reshape(shape), table)
        for start, size, shape in zip(edges, sizes, shapes, strict=False)
    ]


def nothing(shape: tuple[int, ...], n: int) -> Dependence:
    """An array that depends on no input."""
    return Dependence(np.zeros(shape, np.int32), _csr(np.zeros(2, np.int64), _NONE, (1, n)))


def keep(mask: np.ndarray, dependence: Dependence) -> Dependence:
    """Forget the dependence of the elements where `mask` is False."""
    return dependence.moved(np.where(mask, dependence.ids, 0))


def common(parts: Sequence[Dependence]) -> list[Dependence]:
    """The same arrays, with their rows in one table."""
    table = parts[0].table
    if all(part.table is table for part in parts):
        return list(parts)
    distinct = list({id(part.table): part.table for part in parts}.values())
    offsets = np.cumsum([0, *(each.shape[0] - 1 for each in distinct)])
    offset = {id(each): start for each, start in zip(distinct, offsets, strict=False)}
    table = _stack(distinct)
    return [Dependence(_shift(part.ids, int(offset[id(part.table)])), table) for part in parts]


def join(left: Dependence, right: Dependence) -> Dependence:
    """Element by element, the union of two sets; shapes must agree.

    >>> x, y = seeds([(2,), (2,)])
    >>> join(x, y).matrix().toarray().astype(int).tolist()
    [[1, 0, 1, 0], [0, 1, 0, 1]]
    """
    a, b = left.ids.ravel(), right.ids.ravel()
    if left.table is right.table and np.array_equal(a, b):
        return left
    if not a.any():
        return right
    if not b.any():
        return left
    if not np.any((a > 0) & (b > 0)):  # disjoint supports, as after padding: no new sets
        one, two = common([left, right])
        return one.moved(np.maximum(one.ids, two.ids))
    first, second, back = _pairs(a, b, right.table.shape[0])
    sizes = _lengths(left.table)[first] + _lengths(right.table)[second]
    if sizes.sum() > LIMIT:
        table, rows = _widened(sizes, left.table.shape[1])
    else:
        table, rows = _settle(_add(_rows(left.table, first), _rows(right.table, second)))
    return Dependence(rows[back].reshape(left.shape), table)


def unite(dependence: Dependence, axes: Sequence[int]) -> Dependence:
    """The union over `axes`, which disappear: what a sum over them depends on.

    >>> unite(seeds([(2, 2)])[0], (1,)).matrix().toarray().astype(int).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    axes = [axis % max(dependence.ids.ndim, 1) for axis in axes]
    kept = [axis for axis in range(dependence.ids.ndim) if axis not in axes]
    shape = tuple(dependence.shape[axis] for axis in kept)
    ids = dependence.ids.transpose(*kept, *axes)
    ids = ids.reshape(int(np.prod(shape)), int(np.prod([dependence.shape[a] for a in axes])))
    if ids.shape[1] == 0:
        return nothing(shape, dependence.table.shape[1])
    if ids.shape[1] == 1:
        return dependence.moved(ids.reshape(shape))
    distinct, back = _distinct_rows(ids)
    indptr = np.arange(distinct.shape[0] + 1, dtype=np.int64) * distinct.shape[1]
    table, rows = _product(indptr, distinct.ravel(), dependence.table)
    return Dependence(rows[back].reshape(shape), table)


def through(flow: sparse.csr_array, dependence: Dependence, shape: tuple[int, ...]) -> Dependence:
    """Element o of the result depends on whatever the elements in row o of `flow` depend on."""
    indices = dependence.ids.ravel()[flow.indices]
    table, rows = _product(flow.indptr, indices, dependence.table)
    return Dependence(rows.reshape(shape), table)


_NONE: Final = np.zeros(0, np.int32)


def _csr(indptr: np.ndarray, indices: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    data = np.ones(len(indices), bool)
    index = np.int32 if len(indices) < 2**31 else np.int64
    return sparse.csr_array(
        (data, indices.astype(index, copy=False), indptr.astype(index, copy=False)), shape=shape
    )


def _identity(n: int) -> sparse.csr_array:
    indptr = np.maximum(np.arange(-1, n + 1), 0)
    return _csr(indptr, np.arange(n, dtype=np.int32), (n + 1, n))


def _lengths(table: sparse.csr_array) -> np.ndarray:
    return np.diff(table.indptr).astype(np.int64)


def _rows(table: sparse.csr_array, rows: np.ndarray) -> sparse.csr_array:
    if len(rows) == table.shape[0] and rows[0] == 0 and bool(np.all(np.diff(rows) == 1)):
        return table
    return table[rows]


def _stack(tables: Sequence[sparse.csr_array]) -> sparse.csr_array:
    """All rows of all tables under one empty row 0."""
    counts = np.concatenate([[0, 0], *(np.diff(each.indptr)[1:] for each in tables)])
    indices = np.concatenate([each.indices for each in tables])
    return _csr(np.cumsum(counts), indices, (len(counts) - 1, tables[0].shape[1]))


def _shift(ids: np.ndarray, offset: int) -> np.ndarray:
    return ids if offset == 0 else np.where(ids > 0, ids + np.int32(offset), 0).astype(np.int32)


def _pairs(a: np.ndarray, b: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct pairs (a, b) and, for each element, which of them it is."""
    if bool(np.all(np.diff(a) > 0)) or bool(np.all(np.diff(b) > 0)):
        return a, b, np.arange(len(a))
    keys, back = np.unique(a.astype(np.int64) * base + b, return_inverse=True)
    return keys // base, keys % base, back


def _distinct_rows(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of an integer matrix, found by a hash and then compared in full."""
    if ids.shape[0] == 1 or bool(np.all(np.diff(ids[:, 0]) > 0)):
        return ids, np.arange(ids.shape[0])
    mix = np.random.default_rng(0).integers(1, 2**63, ids.shape[1], dtype=np.uint64)
    _, first, back = np.unique(ids.astype(np.uint64) @ mix, return_index=True, return_inverse=True)
    distinct = ids[first]
    if len(first) < len(ids) and np.array_equal(distinct[back], ids):
        return distinct, back
    return ids, np.arange(ids.shape[0])


def _add(left: sparse.csr_array, right: sparse.csr_array) -> sparse.csr_array:
    left.has_canonical_format = right.has_canonical_format = True  # rows are sorted sets
    return left + right


def _product(
    indptr: np.ndarray, indices: np.ndarray, table: sparse.csr_array
) -> tuple[sparse.csr_array, np.ndarray]:
    """Union of table rows, row by row of a boolean CSR (indptr, indices)."""
    n = table.shape[1]
    cost = np.concatenate([[0], np.cumsum(_lengths(table)[indices])])[indptr]
    sizes = np.diff(cost)
    if np.minimum(sizes, n).sum() > LIMIT:
        return _widened(sizes, n)
    flow = _csr(indptr, indices, (len(indptr) - 1, table.shape[0]))
    flow.has_canonical_format = False
    result = sparse.csr_array(flow @ table)
    result.sort_indices()
    return _settle(result)


def _widened(sizes: np.ndarray, n: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Too many entries to hold: every non-empty set becomes the set of all inputs."""
    return _csr(np.array([0, 0, n]), np.arange(n), (2, n)), (sizes > 0).astype(np.int32)


def _settle(new: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray]:
    """Put an empty row 0 on top and share equal bulky rows; also where each row went."""
    rows = new.shape[0]
    if new.nnz > BULKY * rows:
        kept, back = _equal_rows(new)
        new, where = new[kept], back
    else:
        where = np.arange(rows)
    indptr = np.concatenate([[0], new.indptr])
    table = _csr(indptr, new.indices, (new.shape[0] + 1, new.shape[1]))
    return table, (where + 1).astype(np.int32)


def _equal_rows(table: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Representatives of the distinct rows: grouped by a hash, then compared entry by entry."""
    mix = np.random.default_rng(1).integers(1, 2**63, table.shape[1], dtype=np.uint64)
    running = np.concatenate([[0], np.cumsum(mix[table.indices], dtype=np.uint64)])
    hashes = running[table.indptr[1:]] - running[table.indptr[:-1]]
    _, first, back = np.unique(hashes, return_index=True, return_inverse=True)
    if len(first) < table.shape[0]:
        lengths = _lengths(table)
        same = np.array_equal(lengths[first][back], lengths)
        if same and np.array_equal(_gathered(table, first[back]), table.indices):
            return first, back
    return np.arange(table.shape[0]), np.arange(table.shape[0])


def _gathered(table: sparse.csr_array, rows: np.ndarray) -> np.ndarray:
    return table[rows].indices
