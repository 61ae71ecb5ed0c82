"""Colour the columns of a pattern so that no row has two columns of one colour.

Then J s, with s the sum of the unit vectors of one colour, shows every entry of those columns
untouched. The size of the largest row is the least any colouring can need.
Reference: Curtis, Powell & Reid (1974), On the estimation of sparse Jacobian matrices.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy import sparse

from .greedy import first_fit, improved, orders
from .lattice import lattice_colours

__all__ = ["Colouring", "colour_columns", "is_valid", "row_sizes"]

WORK: Final = 1_500_000  # entries visited by attempts after the first


class Colouring(NamedTuple):
    """Colours of the columns.

    Attributes:
        colours: Colour of each column, −1 for a column without entries, shape (n,).
        number: Number of colours.
        least: A number no colouring can go below.
    """

    colours: np.ndarray
    number: int
    least: int


def colour_columns(
    pattern: sparse.csr_array,
    shapes: Sequence[tuple[int, ...]] | None = None,
    enough: int | None = None,
) -> Colouring:
    """Few colours for the columns of `pattern`, (m, n).

    Args:
        pattern: Boolean CSR.
        shapes: Shapes of the arrays whose elements are the columns, in order; grids are recognised.
        enough: A number of colours that needs no improving.

    >>> band = sparse.csr_array(np.abs(np.subtract.outer(range(9), range(9))) < 2)
    >>> colour_columns(band).number
    3
    """
    n = pattern.shape[1]
    sizes = row_sizes(pattern)
    least = int(sizes.max(initial=0))
    used = np.bincount(pattern.indices, minlength=n) > 0
    if least <= 1:
        return _finished(np.zeros(n, np.int32), used, least)
    if int(used.sum()) == least:  # one row has them all
        return _finished((np.cumsum(used) - 1).astype(np.int32), used, least)
    found = lattice_colours(pattern, shapes or [(n,)], least)
    if found is None or found.max() + 1 > least:
        found = _by_greed(pattern, found, max(least, enough or 0))
    return _finished(found, used, least)


def _by_greed(pattern: sparse.csr_array, best: np.ndarray | None, target: int) -> np.ndarray:
    by_column = sparse.csc_array(pattern)
    attempts = max(1, WORK // max(pattern.nnz, 1))
    greedy = first_fit(by_column, np.arange(pattern.shape[1]))
    best = _better(best, greedy)
    if attempts > 1 and _count(best) > target:
        for order in orders(by_column)[1 : min(attempts, 3)]:
            best = _better(best, first_fit(by_column, order))
    if attempts > 3 and _count(best) > target:
        best = improved(by_column, best, target, min(attempts - 3, 24))
    return best


def _better(best: np.ndarray | None, other: np.ndarray) -> np.ndarray:
    return other if best is None or _count(other) < _count(best) else best


def _count(colours: np.ndarray) -> int:
    return int(colours.max(initial=-1)) + 1


def _finished(colours: np.ndarray, used: np.ndarray, least: int) -> Colouring:
    """Colours 0 … count−1 in the order they first appear; columns without entries get none."""
    colours = np.where(used, colours, -1)
    present, compact = np.unique(colours[used], return_inverse=True)
    colours[used] = compact
    return Colouring(colours.astype(np.int32), len(present), least)


def row_sizes(pattern: sparse.csr_array) -> np.ndarray:
    """Entries per row, shape (m,)."""
    return np.diff(pattern.indptr)


def is_valid(pattern: sparse.csr_array, colours: np.ndarray) -> bool:
    """Whether every entry can be read off its colour's product.

    >>> is_valid(sparse.csr_array(np.ones((1, 2), bool)), np.array([0, 0]))
    False
    """
    rows = np.repeat(np.arange(pattern.shape[0]), row_sizes(pattern))
    mine = colours[pattern.indices].astype(np.int64)
    keys = rows * (int(colours.max(initial=0)) + 1) + mine
    return bool(np.all(mine >= 0)) and len(np.unique(keys)) == pattern.nnz
