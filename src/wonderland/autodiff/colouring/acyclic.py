"""Acyclic colouring: fewer products for a Hessian, whose entries are then solved for along trees.

Neighbours differ and no cycle has only two colours: the edges between two colours form trees. The
edge of a leaf stands alone in the leaf's row; once known it is subtracted from its neighbour's row,
and the next edge stands alone. The rounds this takes are the depth, which is what it costs.
Reference: Coleman & Cai (1986), The cyclic coloring problem and estimation of sparse Hessians.
"""

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from scipy import sparse

from .star import hubs_of, without

__all__ = ["Acyclic", "Round", "acyclic"]

DEPTH: Final = 24  # rounds of substitution beyond which products are cheaper
WORK: Final = 600_000  # entries beyond which the search itself costs too much


class Round(NamedTuple):
    """Edges solved at once: value = product[colour, vertex] − what the vertex's known edges gave.

    Attributes:
        edges: Numbers of the edges, shape (e,).
        vertices: The vertex whose row shows the edge.
        colours: The colour whose product shows it.
        onto: The vertex whose row the value is subtracted from for later rounds.
        under: The colour of that subtraction.
    """

    edges: np.ndarray
    vertices: np.ndarray
    colours: np.ndarray
    onto: np.ndarray
    under: np.ndarray


class Acyclic(NamedTuple):
    """An acyclic colouring and the order in which to solve for the entries.

    Attributes:
        colours: Colour of each vertex, −1 for vertices without entries, shape (n,).
        number: Number of colours.
        rounds: Edges by round of substitution.
        ends: The two vertices of each edge, (edges, 2).
    """

    colours: np.ndarray
    number: int
    rounds: tuple[Round, ...]
    ends: np.ndarray


def acyclic(pattern: sparse.csr_array) -> Acyclic | None:
    """A greedy acyclic colouring; None when too large to look for or too deep to be worth it.

    >>> star = np.eye(5, dtype=bool)
    >>> star[0] = star[:, 0] = True
    >>> found = acyclic(sparse.csr_array(star))
    >>> found.number, len(found.rounds)
    (2, 1)
    """
    if pattern.nnz > WORK:
        return None
    hubs = hubs_of(pattern)
    colours = _greedy(without(pattern, hubs))
    colours[np.diff(pattern.indptr) == 0] = -1
    first = int(colours.max(initial=-1)) + 1
    colours[hubs] = first + np.arange(len(hubs))
    present = np.unique(colours[colours >= 0])
    compact = np.where(colours < 0, -1, np.searchsorted(present, colours)).astype(np.int32)
    return _ordered(pattern, compact, len(present))


def _greedy(pattern: sparse.csr_array) -> np.ndarray:
    """First fit; for each pair of colours the trees so far are kept as disjoint sets."""
    starts, everyone = pattern.indptr.tolist(), pattern.indices.tolist()
    colours = [-1] * pattern.shape[0]
    parent: dict[tuple[int, int], tuple[int, int]] = {}

    def root(vertex: int, other: int) -> tuple[int, int]:
        """The tree of `vertex` among vertices of its colour and of colour `other`."""
        node = (vertex, other)
        path = []
        while parent.get(node, node) != node:
            path.append(node)
            node = parent[node]
        for step in path:
            parent[step] = node
        return node

    for v, (a, b) in enumerate(pairwise(starts)):
        around: dict[int, list[int]] = {}
        for w in everyone[a:b]:
            if w != v and colours[w] >= 0:
                around.setdefault(colours[w], []).append(w)
        colour = 0
        while colour in around or any(
            len(group) > 1 and len({root(w, colour) for w in group}) < len(group)
            for group in around.values()
        ):
            colour += 1
        colours[v] = colour
        for other, group in around.items():
            for w in group:
                # (v, other) and (w, colour) name the same two-coloured forest.
                parent[root(w, colour)] = root(v, other)
    return np.array(colours, dtype=np.int32)


def _ordered(pattern: sparse.csr_array, colours: np.ndarray, count: int) -> Acyclic | None:
    """Peel the leaves of all two-coloured trees, round by round."""
    upper = sparse.coo_array(sparse.triu(pattern, 1))
    ends = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    # One key for each (vertex, colour of the other end): a leaf is a key with one edge left.
    keys = ends * count + colours[ends[:, ::-1]]
    left = np.bincount(keys.ravel(), minlength=pattern.shape[0] * max(count, 1))
    open_edges = np.arange(len(ends))
    rounds: list[Round] = []
    while len(open_edges):
        leaf = left[keys[open_edges]] == 1
        solved = leaf.any(axis=1)
        if len(rounds) == DEPTH or not solved.any():
            return None
        edges, side = open_edges[solved], np.where(leaf[solved, 0], 0, 1)
        seen, other = ends[edges, side], ends[edges, 1 - side]
        rounds.append(Round(edges, seen, colours[other], other, colours[seen]))
        left -= np.bincount(keys[edges].ravel(), minlength=len(left))
        open_edges = open_edges[~solved]
    return Acyclic(colours, count, tuple(rounds), ends)
