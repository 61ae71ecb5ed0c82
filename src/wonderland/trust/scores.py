"""Scores of labels: how strange would label y be, given the probabilities p of the classes?

    threshold  s = −p_y                        the set is {y : p_y ≥ γ}, γ = −quantile (LAC)
    aps        s = Σ_{j before y} p_j + u p_y  adaptive sets: the most probable classes up to a mass
    raps       s = aps + λ (rank_y − κ)₊       long tails are made dear
    margin     s = max_{j ≠ y} p_j − p_y

`before` orders the classes by falling probability, ties by class number. u = 1, or a uniform number
of the sample's own, which makes the score continuous and coverage exact instead of conservative.
For coverage any function may be a score; a good one gives small sets.

APS and RAPS need sums over more probable classes. For up to `PAIRS` classes they come from all
k(k − 1)/2 comparisons, on blocks that stay in the cache; beyond, from a sort. Calibration and
prediction add in the same order, so that equal numbers stay equal. Sets alone need less: a sorting
network of minima and maxima orders all rows of a block at once, and the set is what is at least as
probable as the last class that fits; rows where rounding or ties could matter are done by pairs.

Shapes: p (n, k), codes (n,) class numbers, u (n,).

Reference: Sadinle, Lei, Wasserman (2019) for the threshold (least ambiguous classifier); Romano,
Sesia, Candès (2020) for APS; Angelopoulos, Bates, Malik, Jordan (2021) for RAPS.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import numpy as np

from wonderland.core.blocks import map_rows
from wonderland.core.errors import InputError, nearest

__all__ = ["APS", "LAC", "SCORES", "LabelScore", "Margin", "by_rows", "part_of", "resolve_score"]

PAIRS = 32  # classes up to which comparing all pairs beats sorting
NEAR = 1e-12  # differences that another order of additions could turn round
ENTRIES = 1 << 18  # of a block: so many probabilities and their sums stay in the cache


class LabelScore(eqx.Module):
    """A score of every label from the probabilities of the classes."""

    @abstractmethod
    def table(self, p: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
        """Scores of all labels (n, k)."""

    def of(self, p: np.ndarray, codes: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
        """Scores of the labels `codes` (n,)."""
        return np.take_along_axis(self.table(p, u), codes[:, None], axis=1)[:, 0]

    def within(self, p: np.ndarray, bound: Any, u: np.ndarray | None = None) -> np.ndarray:
        """Mask (n, k) of the labels with s ≤ bound: a scalar, (1, k), (n, 1) or (n, k)."""
        return self.table(p, u) <= bound


class LAC(LabelScore):
    """s = −p_y, so that {s ≤ q} is {y : p_y ≥ γ} with the threshold γ = −q, without rounding.

    >>> LAC().within(np.array([[0.7, 0.2, 0.1]]), -0.2)
    array([[ True,  True, False]])
    """

    def table(self, p: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
        """Scores of all labels (n, k); u is not used."""
        return -p

    def of(self, p: np.ndarray, codes: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
        """Scores of the labels `codes` (n,)."""
        return -p[np.arange(len(p)), codes]

    def within(self, p: np.ndarray, bound: Any, u: np.ndarray | None = None) -> np.ndarray:
        """The labels with p ≥ γ: one comparison each."""
        return by_rows(lambda rows: p[rows] >= -part_of(bound, rows), p, p.shape[1], bool)


class Margin(LabelScore):
    """s = max_{j ≠ y} p_j − p_y: negative for the most probable class, positive for the others.

    >>> Margin().table(np.array([[0.75, 0.25]]))
    array([[-0.5,  0.5]])
    """

    def table(self, p: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
        """Scores of all labels (n, k); u is not used."""
        rows, top = np.arange(len(p)), p.argmax(axis=1)
        rest = p.copy()
        rest[rows, top] = -np.inf
        found = p[rows, top][:, None] - p
        found[rows, top] = rest.max(axis=1) - p[rows, top]
        return found


class APS(LabelScore):
    """The mass of more probable classes, and (a part u of) one's own; with λ > 0 this is RAPS.

    Attributes:
        penalty: λ ≥ 0 for each rank beyond `free`.
        free: κ, the size of set that costs nothing.

    >>> APS().table(np.array([[0.25, 0.5, 0.25]]))
    array([[0.75, 0.5 , 1.  ]])
    >>> APS(penalty=0.5, free=1).table(np.array([[0.25, 0.5, 0.25]]))
    array([[1.25, 0.5 , 2.  ]])
    """

    penalty: float = 0.0
    free: int = 0

    def table(self, p: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
        """Scores of all labels (n, k)."""
        return by_rows(lambda rows: self._block(p[rows], part_of(u, rows)), p, p.shape[1])

    def of(self, p: np.ndarray, codes: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
        """Scores of the labels `codes` (n,)."""
        if p.shape[1] > PAIRS:
            return super().of(p, codes, u)
        return by_rows(lambda rows: self._label(p[rows], codes[rows], part_of(u, rows)), p)

    def within(self, p: np.ndarray, bound: Any, u: np.ndarray | None = None) -> np.ndarray:
        """Mask of the labels with s ≤ bound; no table of scores is kept."""
        one = np.size(bound) == 1 or np.shape(bound)[1] == 1
        prefix = one and p.shape[1] <= PAIRS

        def block(rows: slice) -> np.ndarray:
            if prefix:
                return self._prefix(p[rows], np.ravel(part_of(bound, rows)), part_of(u, rows))
            return self._block(p[rows], part_of(u, rows)) <= part_of(bound, rows)

        return by_rows(block, p, p.shape[1], bool)

    def _prefix(self, p: np.ndarray, bound: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        """The most probable classes while their mass fits, without a score for each.

        Along falling probabilities the score never falls: from one class to the next it grows by
        (1 − u)p_j + u p_{j+1} ≥ 0, and perhaps by λ.
        """
        columns = np.ascontiguousarray(p.T)
        falling, spare = columns.copy(), np.empty(len(p))
        for low, high in _network(len(columns)):
            np.minimum(falling[low], falling[high], out=spare)
            np.maximum(falling[low], falling[high], out=falling[low])
            falling[high] = spare
        mass, least, doubt = np.zeros(len(p)), np.full(len(p), np.inf), np.full(len(p), np.inf)
        count = np.zeros(len(p), dtype=np.int8)
        for rank, row in enumerate(falling):
            limit = bound - self._charge(rank) if self.penalty > 0 else bound
            np.subtract(mass, limit, out=spare)
            spare += row if u is None else row * u
            mass += row
            fits = spare <= 0
            np.copyto(least, row, where=fits)
            count += fits
            np.minimum(doubt, np.abs(spare, out=spare), out=doubt)
        found = columns >= least
        count -= found.sum(axis=0, dtype=np.int8)  # a class as probable as the last that fits
        found = found.T
        if (unsure := np.flatnonzero((doubt < NEAR) | (count != 0))).size:
            limit = bound if bound.size == 1 else bound[unsure]
            chance = None if u is None else u[unsure]
            found[unsure] = self._block(p[unsure], chance) <= limit[:, None]
        return found

    def _block(self, p: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        p = np.asfortranarray(p)  # one long row for each class
        before, rank = (_pairs if p.shape[1] <= PAIRS else _sorted)(p, ranks=self.penalty > 0)
        before += p if u is None else p * u[:, None]
        return before if rank is None else before + self._charge(rank)

    def _label(self, p: np.ndarray, codes: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        """As `_block`, for one label of each row, adding in the same order."""
        own = p[np.arange(len(p)), codes]
        before, rank = np.zeros(len(p)), np.zeros(len(p))
        for j in range(p.shape[1]):
            ahead = np.where(codes > j, p[:, j] >= own, p[:, j] > own)
            before += np.where(ahead, p[:, j], 0.0)
            rank += ahead
        before += own if u is None else own * u
        return before + self._charge(rank) if self.penalty > 0 else before

    def _charge(self, rank: Any) -> Any:
        return self.penalty * np.maximum(rank + 1 - self.free, 0.0)


def _pairs(p: np.ndarray, *, ranks: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Mass and number of the classes before each, from all comparisons (n, k)."""
    columns = p.T
    before = np.zeros_like(columns)
    count = np.zeros_like(columns) if ranks else None
    for a in range(len(columns) - 1):
        own, rest = columns[a], columns[a + 1 :]
        first = own >= rest
        before[a + 1 :] += np.where(first, own, 0.0)
        for row in np.where(first, 0.0, rest):  # in the order of the classes, as `_label` adds
            before[a] += row
        if count is not None:
            count[a + 1 :] += first
            count[a] += (~first).sum(axis=0)
    return before.T, None if count is None else count.T


@cache
def _network(k: int) -> tuple[tuple[int, int], ...]:
    """Comparisons (i, j) that sort any k columns: Batcher's merge exchange (Knuth 5.2.2 M)."""
    steps, p = [], 1 << max(0, (k - 1).bit_length() - 1)
    top = p
    while p > 0:
        q, r, d = top, 0, p
        while True:
            steps += [(i, i + d) for i in range(k - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1
    return tuple(steps)


def _sorted(p: np.ndarray, *, ranks: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """The same from a stable sort, for many classes."""
    order = np.argsort(-p, axis=1, kind="stable")
    mass = np.cumsum(np.take_along_axis(p, order, axis=1), axis=1)
    mass[:, 1:] = mass[:, :-1].copy()
    mass[:, 0] = 0.0
    before = np.empty_like(p)
    np.put_along_axis(before, order, mass, axis=1)
    if not ranks:
        return before, None
    rank = np.empty_like(p)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(p.shape[1]), p.shape), axis=1)
    return before, rank


def part_of(values: Any, rows: slice) -> Any:
    """The rows of what has one entry or row for each sample; a scalar or one row as it is."""
    if values is None or np.ndim(values) == 0 or (np.ndim(values) == 2 and len(values) == 1):
        return values
    return values[rows]


def by_rows(
    block: Callable[[slice], np.ndarray], p: np.ndarray, width: int | None = None, kind: Any = float
) -> np.ndarray:
    """`block(rows)` on consecutive blocks of rows, each core its own part, put together."""
    found = np.empty(len(p) if width is None else (len(p), width), dtype=kind)

    step = max(256, ENTRIES // max(1, p.shape[1]))

    def work(start: int, stop: int) -> None:
        for i in range(start, stop, step):
            rows = slice(i, min(i + step, stop))
            found[rows] = block(rows)

    if len(p) <= step:
        work(0, len(p))
    else:
        map_rows(work, len(p), p.size)
    return found


SCORES = ("lac", "aps", "raps", "margin")


def resolve_score(score: Any, penalty: float = 0.01, free: int = 1) -> LabelScore:
    """The score of that name, or the object itself.

    Args:
        score: "lac", "aps", "raps", "margin", or a `LabelScore`.
        penalty: λ of "raps".
        free: κ of "raps".
    """
    if isinstance(score, LabelScore):
        return score
    if not isinstance(score, str) or score not in SCORES:
        raise InputError(
            f"conformity_score is {score!r}", f"one of {', '.join(SCORES)}", nearest(score, SCORES)
        )
    if score == "raps":
        return APS(penalty=float(penalty), free=int(free))
    return {"lac": LAC, "aps": APS, "margin": Margin}[score]()
