"""One pass over rows that memory does not hold, for problems of intervals.

For each of k problems, at a point (w, b), a pass sums over all rows

    P's losses Σℓ(z);   with kinks smoothed to width μ: Xᵀβ, Σβ and the Hessian Σ D x̃x̃ᵀ,
    the dual terms Σs(β) apart for multipliers that pull up and down, so that Σβ = 0 can be met;

and keeps the rows nearest to an end of their interval, with the multipliers ±c or 0 of the straight
lines all other rows are on, summed to one vector (see `interior_sift.py`). Shapes: X (b, d),
ends (k, b), x̃ = [x, 1].
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.blocks import map_rows
from wonderland.solve.interior_lagrangian import Pull
from wonderland.solve.interior_problem import Intervals, losses, supports

__all__ = ["Ask", "Block", "Held", "Seen", "look"]


class Block(NamedTuple):
    """Some rows of all problems.

    Attributes:
        X: (b, d).
        low: (k, b).
        high: (k, b).
        strength: (b,).
    """

    X: np.ndarray
    low: np.ndarray
    high: np.ndarray
    strength: np.ndarray


class Ask(NamedTuple):
    """What is wanted at (w, b): the width μ of smoothed kinks, and how many rows to keep."""

    w: np.ndarray
    b: float
    width: float
    hold: int


class Held(NamedTuple):
    """Rows kept, what the straight lines of all others pull, and how far the furthest is kept.

    Attributes:
        rows: The rows nearest to an end.
        pull: Xᵀβ and Σβ of the others.
        supports: Σs(β) of the others.
        multipliers: How many of the others have β ≠ 0.
        reach: Distance up to which rows are kept; infinite when all are.
    """

    rows: Intervals
    pull: Pull
    supports: float
    multipliers: int
    reach: float


class Seen(NamedTuple):
    """Sums over all rows.

    Attributes:
        paid: Σℓ(z).
        smooth: The same with kinks smoothed.
        pulled: Xᵀβ of multipliers > 0 and of those < 0 (2, d).
        total: Σ|β| of both (2,).
        ends: Σs(β) without its square, of both (2,).
        squares: Σβ²/(4c) of both (2,), where distances are squared.
        curvature: Σ D x̃x̃ᵀ (d + 1, d + 1).
        multipliers: How many β ≠ 0.
        outside: Rows whose distance from their interval is past the middle between the labels:
            on the wrong side of the hyperplane.
        rows: How many rows of positive strength.
        held: The rows kept; None where none were asked for.
    """

    paid: float
    smooth: float
    pulled: np.ndarray
    total: np.ndarray
    ends: np.ndarray
    squares: np.ndarray
    curvature: np.ndarray
    multipliers: int
    outside: int
    rows: int
    held: Held | None

    def joined(self, other: "Seen") -> "Seen":
        """The sums over both."""
        both: Any = zip(self[:-1], other[:-1], strict=True)
        sums: list[Any] = [a + b for a, b in both]
        return Seen._make([*sums, None])


def look(
    blocks: Iterator[Block],
    which: Sequence[int],
    asks: Sequence[Ask],
    *,
    intercept: bool,
    squared: bool,
) -> list[Seen]:
    """One pass: what each ask wants to know of its problem."""
    seen: list[Seen | None] = [None] * len(asks)
    nearest = [_Nearest(ask.hold) for ask in asks]
    W, b = np.stack([ask.w for ask in asks]), np.array([ask.b for ask in asks])
    for block in blocks:
        used = block.strength > 0
        if not used.all():
            block = Block(
                block.X[used], block.low[:, used], block.high[:, used], block.strength[used]
            )
        Z = W @ block.X.T + b[:, None]
        for place, (j, ask) in enumerate(zip(which, asks, strict=True)):
            part = Intervals(
                block.X, block.low[j], block.high[j], block.strength, intercept, squared
            )
            found = _summed(part, Z[place], ask.width)
            before = seen[place]
            seen[place] = found if before is None else before.joined(found)
            if ask.hold:
                nearest[place].offer(part, Z[place])
    done = [one for one in seen if one is not None]
    return [
        one._replace(held=kept.held() if ask.hold else None)
        for one, kept, ask in zip(done, nearest, asks, strict=True)
    ]


def _summed(part: Intervals, z: np.ndarray, width: float) -> Seen:
    """Sums over a block, its rows split among cores."""

    def work(start: int, stop: int) -> Seen:
        rows = slice(start, stop)
        return _sums(part.rows(rows), z[rows], width)

    found = map_rows(work, len(z), part.X.size)
    return reduce(Seen.joined, found)


def _sums(part: Intervals, z: np.ndarray, width: float) -> Seen:
    beta, D, smooth = _smoothed(part, z, width)
    paid = losses(part, z)
    signs = (beta > 0, beta < 0)
    ends = (part.low, part.high)
    square = beta * beta / (4.0 * part.strength) if part.squared else np.zeros_like(beta)
    wrong = np.where(np.isfinite(part.low), z <= 0, z >= 0)
    return Seen(
        float(paid.sum()),
        float(smooth.sum()),
        np.stack([np.where(on, beta, 0.0) @ part.X for on in signs]),
        np.array([np.abs(beta[on]).sum() for on in signs]),
        np.array([(end[on] * beta[on]).sum() for on, end in zip(signs, ends, strict=True)]),
        np.array([square[on].sum() for on in signs]),
        _curvature(part.X, D),
        int(np.count_nonzero(beta)),
        int(np.count_nonzero(wrong)),
        len(z),
        None,
    )


def _smoothed(
    part: Intervals, z: np.ndarray, width: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """β(z), its slope D = −β′(z) and the smoothed losses (b,), each kink widened to z ± μ/2."""
    if part.squared:
        below, above = np.maximum(part.low - z, 0.0), np.maximum(z - part.high, 0.0)
        short = below - above
        return (
            2.0 * part.strength * short,
            np.where(short != 0, 2.0 * part.strength, 0.0),
            part.strength * short * short,
        )
    up, down = (part.low - z) / width + 0.5, (z - part.high) / width + 0.5
    within = [(t > 0) & (t < 1) for t in (up, down)]
    beta = part.strength * (np.clip(up, 0.0, 1.0) - np.clip(down, 0.0, 1.0))
    D = part.strength / width * (within[0] + 1.0 * within[1])
    value = np.zeros_like(z)
    for t in (up, down):
        value += np.where(t < 1, 0.5 * np.clip(t, 0.0, 1.0) ** 2, np.maximum(t, 0.5) - 0.5)
    return beta, D, part.strength * width * value


def _curvature(X: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Σ D x̃x̃ᵀ over the rows that bend."""
    rows = np.flatnonzero(D)
    half = np.empty((len(rows), X.shape[1] + 1))
    half[:, -1] = 1.0
    np.take(X, rows, axis=0, out=half[:, :-1], mode="clip")
    half *= np.sqrt(D[rows])[:, None]
    return half.T @ half


def _lines(part: Intervals, z: np.ndarray) -> np.ndarray:
    """The multiplier of the straight piece each prediction is on (b,)."""
    below = np.where(z < part.low, part.strength, 0.0)
    return np.where(z > part.high, -part.strength, below)


class _Nearest:
    """The rows nearest to an end, and the lines of all others."""

    def __init__(self, room: int) -> None:
        self.room, self.reach, self.count = room, np.inf, 0
        self.parts: list[tuple[Intervals, np.ndarray, np.ndarray]] = []
        self.pull: np.ndarray | float = 0.0
        self.total, self.supports, self.multipliers = 0.0, 0.0, 0

    def offer(self, part: Intervals, z: np.ndarray) -> None:
        """The rows of a block at predictions z."""
        distance = np.minimum(np.abs(z - part.low), np.abs(z - part.high))
        near = distance <= self.reach
        self._freeze(part, z, ~near)
        rows = np.flatnonzero(near)
        self.parts.append((part.rows(rows), z[rows], distance[rows]))
        self.count += len(rows)
        if self.count > 2 * self.room:
            self._settle()

    def _freeze(self, part: Intervals, z: np.ndarray, chosen: np.ndarray) -> None:
        """Sum these rows up."""
        beta = np.where(chosen, _lines(part, z), 0.0)
        self.pull = self.pull + beta @ part.X
        self.total += float(beta.sum())
        self.supports += float(supports(part, beta).sum())
        self.multipliers += int(np.count_nonzero(beta))

    def _settle(self) -> None:
        """One part, of `room` rows at most."""
        first = self.parts[0][0]
        joined = first._replace(
            X=np.concatenate([part.X for part, _, _ in self.parts]),
            low=np.concatenate([part.low for part, _, _ in self.parts]),
            high=np.concatenate([part.high for part, _, _ in self.parts]),
            strength=np.concatenate([part.strength for part, _, _ in self.parts]),
        )
        z, distance = (np.concatenate([each[k] for each in self.parts]) for k in (1, 2))
        if len(z) > self.room:
            order = np.argpartition(distance, self.room)
            far = np.zeros(len(z), dtype=bool)
            far[order[self.room :]] = True
            self._freeze(joined, z, far)
            kept = np.flatnonzero(~far)
            joined, z, distance = joined.rows(kept), z[kept], distance[kept]
            self.reach = float(distance.max())
        self.parts, self.count = [(joined, z, distance)], len(z)

    def held(self) -> Held:
        """What was kept."""
        self._settle()
        joined = self.parts[0][0]
        pull = Pull(np.zeros(joined.X.shape[1]) + self.pull, self.total)
        return Held(joined, pull, self.supports, self.multipliers, self.reach)
