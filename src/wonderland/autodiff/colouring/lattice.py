"""Colourings of grids: colour(index) = a · index + offset mod k.

A stencil repeats: which columns conflict depends on the difference of their grid positions alone.
Then a linear colouring is found by trying all coefficients modulo k, for k from the size of the
largest row upwards; when it works for that first k, no colouring of any kind is smaller. What is
found on a sample of rows is checked on all of them; rows that object join the sample.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from scipy import sparse

__all__ = ["lattice_colours"]

WIDEST: Final = 40  # entries in a row beyond which the pattern is no stencil
COMBINATIONS: Final = 300_000  # coefficient vectors tried for one k
EXTRA: Final = 4  # colours above the least possible that are tried
SAMPLE: Final = 3000


def lattice_colours(
    pattern: sparse.csr_array, shapes: Sequence[tuple[int, ...]], least: int
) -> np.ndarray | None:
    """A linear colouring of the columns, which are the elements of arrays of `shapes`; or None.

    >>> rows = np.repeat(np.arange(8), 3)
    >>> columns = (rows + np.tile([0, 1, 2], 8))
    >>> band = sparse.csr_array((np.ones(24, bool), (rows, columns)), (8, 10))
    >>> lattice_colours(band, [(10,)], 3).max() + 1
    np.int32(3)
    """
    if pattern.nnz == 0 or least < 2 or least > WIDEST:
        return None
    best: np.ndarray | None = None
    most = least + EXTRA
    for coordinates in _coordinates(pattern, shapes):
        colours = _linear(pattern, coordinates, range(least, most + 1))
        if colours is not None:
            best, most = colours, int(colours.max())  # from now on, only fewer
    return best


def _coordinates(
    pattern: sparse.csr_array, shapes: Sequence[tuple[int, ...]]
) -> Iterator[np.ndarray]:
    """Grid positions of the columns, one row each: array number first, then its indices."""
    yield _grid(shapes)
    strides = _strides(pattern)
    if len(shapes) == 1 and len(shapes[0]) == 1 and strides:
        n = pattern.shape[1]
        edges = [1, *strides, n]
        yield _grid([tuple(big // small for small, big in pairwise(edges))[::-1]])


def _strides(pattern: sparse.csr_array) -> list[int]:
    """Strides of a grid stored flat: distances from the diagonal that divide one another."""
    m, n = pattern.shape
    if m != n:
        return []
    sample = _sample(pattern)
    rows = np.repeat(sample, np.diff(pattern.indptr)[sample])
    offsets = np.abs(_entries(pattern, sample) - rows)
    values, counts = np.unique(offsets, return_counts=True)
    strides: list[int] = []
    for value in values[counts > len(sample) // 2].tolist():
        if value > 1 and n % value == 0 and value < n and value % (strides or [1])[-1] == 0:
            strides.append(value)
    return strides


def _grid(shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
    rank = max(len(shape) for shape in shapes)
    parts = []
    for number, shape in enumerate(shapes):
        indices = np.indices(shape).reshape(len(shape), -1)
        filler = np.zeros((rank - len(shape), indices.shape[1]), np.int64)
        label = np.full((1, indices.shape[1]), number)
        parts.append(np.concatenate([label, filler, indices]))
    return np.concatenate(parts, axis=1)


def _sample(pattern: sparse.csr_array) -> np.ndarray:
    """Rows to learn the stencil from: both ends and some in between."""
    m = pattern.shape[0]
    if m <= SAMPLE:
        return np.arange(m)
    ends = np.concatenate([np.arange(SAMPLE // 6), np.arange(m - SAMPLE // 6, m)])
    inner = np.random.default_rng(0).integers(0, m, SAMPLE // 2)
    return np.unique(np.concatenate([ends, inner]))


def _entries(pattern: sparse.csr_array, rows: np.ndarray) -> np.ndarray:
    return pattern[rows].indices


def _differences(
    pattern: sparse.csr_array, rows: np.ndarray, coordinates: np.ndarray
) -> np.ndarray:
    """Distinct differences of positions of two columns of one row, (count, axes)."""
    part = pattern[rows]
    sizes = np.diff(part.indptr)
    entry_row = np.repeat(np.arange(len(rows)), sizes)
    repeats = sizes[entry_row]
    left = np.repeat(np.arange(part.nnz), repeats)
    within = np.arange(len(left)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    right = np.repeat(part.indptr[:-1][entry_row], repeats) + within
    keep = left < right
    one, two = part.indices[left[keep]], part.indices[right[keep]]
    return np.unique((coordinates[:, two] - coordinates[:, one]).T, axis=0)


def _linear(pattern: sparse.csr_array, coordinates: np.ndarray, counts: range) -> np.ndarray | None:
    """The colouring of least k in `counts` that is linear in the coordinates."""
    rows = _sample(pattern)
    differences = _differences(pattern, rows, coordinates)
    axes = [axis for axis in range(len(coordinates)) if coordinates[axis].any()]
    for k in counts:
        if k ** len(axes) > COMBINATIONS:
            return None
        for _ in range(4):
            colours = _modulo(k, axes, differences, coordinates)
            if colours is None:
                break
            objecting = _objecting(pattern, colours, k)
            if not len(objecting):
                return colours
            more = _differences(pattern, objecting[:SAMPLE], coordinates)
            differences = np.unique(np.concatenate([differences, more]), axis=0)
    return None


def _modulo(
    k: int, axes: list[int], differences: np.ndarray, coordinates: np.ndarray
) -> np.ndarray | None:
    """The first coefficients modulo k that keep all differences away from zero."""
    alive = np.indices((k,) * len(axes)).reshape(len(axes), -1)
    for difference in differences[:, axes]:
        alive = alive[:, (difference @ alive) % k != 0]
        if not alive.shape[1]:
            return None
    return (alive[:, 0] @ coordinates[axes] % k).astype(np.int32)


def _objecting(pattern: sparse.csr_array, colours: np.ndarray, k: int) -> np.ndarray:
    """Rows in which two columns have one colour."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    taken = np.zeros(pattern.shape[0] * k, bool)
    taken[rows * k + colours[pattern.indices]] = True
    distinct = taken.reshape(-1, k).sum(axis=1)
    return np.flatnonzero(distinct < np.diff(pattern.indptr))
