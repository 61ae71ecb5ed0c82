"""Colour the vertices of a symmetric pattern so that each entry shows in one of its two products.

A star colouring gives neighbours different colours and every path on four vertices at least three;
then h_ij stands alone in row i of the product of j's colour, or in row j of that of i's.
Reference: Gebremedhin, Tarafdar, Manne & Pothen (2007), New acyclic and star coloring algorithms
with application to computing Hessians.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from scipy import sparse

from .one_sided import Colouring, colour_columns, row_sizes

__all__ = ["alone", "colour_symmetric", "hubs_of", "is_star"]

HUB: Final = 8  # times the mean degree from which a vertex gets a colour of its own
WORK: Final = 30_000_000  # paths a greedy star colouring may look at


def colour_symmetric(
    pattern: sparse.csr_array, shapes: Sequence[tuple[int, ...]] | None = None
) -> Colouring:
    """Few colours for a star colouring of a symmetric pattern (n, n).

    >>> chain = sparse.csr_array(np.abs(np.subtract.outer(range(9), range(9))) < 2)
    >>> colour_symmetric(chain).number
    3
    """
    n = pattern.shape[0]
    hubs = hubs_of(pattern)
    rest = without(pattern, hubs)
    one = colour_columns(rest, shapes)
    colours, count = one.colours, one.number
    if count > 2 and _paths(rest) <= WORK:
        star = _greedy_star(rest)
        if star.max(initial=-1) + 1 < count:
            colours, count = star, int(star.max()) + 1
    colours = colours.copy()
    used = row_sizes(pattern) > 0
    colours[~used] = -1
    colours[hubs] = count + np.arange(len(hubs))
    present, compact = np.unique(colours[used], return_inverse=True)
    colours[used] = compact
    least = min(2, len(present)) if pattern.nnz > n else min(1, len(present))
    return Colouring(colours.astype(np.int32), len(present), least)


def hubs_of(pattern: sparse.csr_array) -> np.ndarray:
    """Vertices joined to very many: no path through a colour used once has only two colours."""
    sizes = row_sizes(pattern)
    return np.flatnonzero(sizes > max(16.0, HUB * float(np.median(sizes)))) if len(sizes) else sizes


def without(pattern: sparse.csr_array, vertices: np.ndarray) -> sparse.csr_array:
    """The pattern with the rows and columns of `vertices` emptied."""
    if not len(vertices):
        return pattern
    stays = np.ones(pattern.shape[0], bool)
    stays[vertices] = False
    found = sparse.coo_array(pattern)
    kept = stays[found.row] & stays[found.col]
    entries = (np.ones(int(kept.sum()), bool), (found.row[kept], found.col[kept]))
    return sparse.csr_array(entries, shape=pattern.shape)


def _paths(pattern: sparse.csr_array) -> int:
    sizes = row_sizes(pattern).astype(np.float64)
    return int((sizes * (pattern.astype(np.float64) @ sizes)).sum())


def _greedy_star(pattern: sparse.csr_array) -> np.ndarray:
    """First fit in the natural order, looking at the paths of length three from each vertex."""
    starts, everyone = pattern.indptr.tolist(), pattern.indices.tolist()
    near = [everyone[a:b] for a, b in pairwise(starts)]
    colours = [-1] * pattern.shape[0]
    for v, around in enumerate(near):
        once = twice = 0
        for w in around:
            if colours[w] >= 0:
                twice |= once & (1 << colours[w])
                once |= 1 << colours[w]
        forbidden = once
        for w in around:
            forbidden |= _beyond(near, colours, (v, w), twice)
        colours[v] = (~forbidden & (forbidden + 1)).bit_length() - 1
    return np.array(colours, dtype=np.int32)


def _beyond(near: list[list[int]], colours: list[int], edge: tuple[int, int], twice: int) -> int:
    """Colours two steps away through w that v must not repeat, as bits."""
    v, w = edge
    forbidden, mine = 0, colours[w]
    if w == v:
        return 0
    # v between two neighbours of one colour: beyond neither may v's own colour return.
    always = mine < 0 or bool(twice >> mine & 1)
    for x in near[w]:
        theirs = colours[x]
        if x in (v, w) or theirs < 0:
            continue
        # w uncoloured: it may later take any colour, so v and x must differ. w coloured: they
        # may agree only while x has no second neighbour of w's colour.
        if always or any(colours[y] == mine and y not in (w, x) for y in near[x]):
            forbidden |= 1 << theirs
    return forbidden


def alone(pattern: sparse.csr_array, colours: np.ndarray) -> np.ndarray:
    """For each entry (i, j), whether j is the only column of its colour in row i."""
    rows = np.repeat(np.arange(pattern.shape[0], dtype=np.int64), row_sizes(pattern))
    keys = rows * (int(colours.max(initial=0)) + 1) + colours[pattern.indices]
    _, back, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[back] == 1


def is_star(pattern: sparse.csr_array, colours: np.ndarray) -> bool:
    """Whether each entry, or its mirror image, stands alone in its product.

    >>> chain = sparse.csr_array(np.abs(np.subtract.outer(range(4), range(4))) < 2)
    >>> is_star(chain, np.array([0, 1, 0, 2])), is_star(chain, np.array([0, 1, 0, 1]))
    (True, False)
    """
    shown = sparse.csr_array(
        (alone(pattern, colours).astype(np.int8), pattern.indices, pattern.indptr), pattern.shape
    )
    return (shown + shown.T).nnz == pattern.nnz and bool(np.all(colours[pattern.indices] >= 0))
