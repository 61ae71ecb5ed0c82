"""Second moments of data that pass by once, in doubled precision; memory does not depend on n.

    M = Σ ω z zᵀ,   z = [1, s·(x − m), s·(y − m)] ,

with a shift m (rough means of the first chunk, so that centring M later cancels nothing) and a
scale s (powers of two, so that nothing overflows); both are applied without loss. Rows come in
blocks of `ROWS`, and each block Z (q, ROWS) is cut into Z = S₁ + S₂ + S₃ + R, slices of `BITS` bits
and a rest below 2⁻⁶⁶. One symmetric product W Wᵀ of W = [S₁; S₂; S₃] then holds nearly all of Z Zᵀ,
and exactly: each entry is a sum of integers below 2⁵³ (Ozaki, Ogita, Oishi & Rump 2012). Z Rᵀ is so
small that it may be rounded, and sums over blocks are error-free transformations. The outcome has
some 104 bits, at a fifth to an eighth of the speed of plain float64.

Shapes: X (n, d), y (n, t), ω (n,), q = 1 + d + t.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wonderland.core.blocks import map_rows
from wonderland.core.doubled import Doubled, two_product, two_sum
from wonderland.core.errors import InputError, NotFiniteError
from wonderland.solve.bounds import UNIT, half_ulp
from wonderland.solve.problem import Array

__all__ = ["NOISE", "Chunk", "Totals", "accumulate"]

Chunk = tuple[Array, Array, Array | None]

ROWS = 512  # rows of one block: 9 bits of head-room
BITS = 22  # 2·22 + 9 ≤ 53: sums of products of slices stay integers below 2^53
NOISE = 16.0 * UNIT**2  # what the last of 104 bits lose over many blocks, per unit of `Totals.peak`
SETTLE = 64  # blocks after which high and low parts are made to fit again
GATHER = 1 << 19  # entries below which small chunks are put together before they are worked on
SAMPLE = 1024  # rows of the first chunk looked at for shift and scale
OFFSET = 8.0  # |mean| beyond so many deviations is taken away
FAR = 100  # powers of two from 1 beyond which a column is scaled


class Totals(NamedTuple):
    """What one pass keeps.

    Attributes:
        moments: M (q, q) in doubled precision.
        shift: m (q,), zero for the leading one, and everywhere without an intercept.
        scale: s (q,), powers of two.
        peak: Σ over blocks of rows · (largest |√ω z| of the block)² (q,): |δM_ij| is at most
            NOISE·√(peak_i·peak_j).
        rounded: Whether a column holds values that rounding to float64 may have moved (q,).
        features: d.
        seen: Rows that came, n.
        rows: Rows with positive weight.
    """

    moments: Doubled
    shift: Array
    scale: Array
    peak: Array
    rounded: NDArray[np.bool_]
    features: int
    seen: int
    rows: int

    @property
    def mass(self) -> float:
        """Σ ω."""
        return float(self.moments.value[0, 0])


def accumulate(
    chunks: Iterable[Chunk],
    *,
    fit_intercept: bool,
    progress: Callable[[float], None] | None = None,
) -> Totals:
    """Pass once over chunks (X (b, d), y (b, t), ω (b,) or None), rows split among the cores.

    Args:
        chunks: Float64 blocks; any lengths, the answer does not depend on them.
        fit_intercept: Whether rough means may be taken away.
        progress: Told how many rows have passed.

    >>> import numpy as np
    >>> x = np.arange(6.0)[:, None]
    >>> totals = accumulate([(x[:4], x[:4], None), (x[4:], x[4:], None)], fit_intercept=False)
    >>> totals.moments.value[1, 1].item(), totals.rows
    (55.0, 6)
    """
    totals = None
    for X, y, weight in _gathered(chunks):
        if totals is None:
            totals = _start(X, y, fit_intercept=fit_intercept)
        totals = _add(totals, X, y, weight)
        if progress is not None:
            progress(totals.seen)
    if totals is None:
        raise InputError(
            "the stream held 0 samples", "at least one row", "Check the filter that made the chunks"
        )
    return totals


def _gathered(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The same rows in chunks that are worth the attention of all cores."""
    held: list[Chunk] = []
    entries = 0
    for chunk in chunks:
        if len(chunk[0]) == 0:
            continue
        held.append(chunk)
        entries += chunk[0].size + chunk[1].size
        if entries >= GATHER:
            yield _joined(held)
            held, entries = [], 0
    if held:
        yield _joined(held)


def _joined(held: list[Chunk]) -> Chunk:
    if len(held) == 1:
        return held[0]
    X, y = (np.concatenate([chunk[k] for chunk in held]) for k in (0, 1))
    if all(weight is None for _, _, weight in held):
        return X, y, None
    return X, y, np.concatenate([np.ones(len(X)) if w is None else w for X, _, w in held])


def _start(X: Array, y: Array, *, fit_intercept: bool) -> Totals:
    """Empty totals with the shift and scale that the first rows suggest."""
    step = max(1, len(X) // SAMPLE)
    sample = np.hstack([X[::step], y[::step]])
    q = 1 + sample.shape[1]
    shift, scale = np.zeros(q), np.ones(q)
    with np.errstate(over="ignore", invalid="ignore"):
        if fit_intercept:
            shift[1:] = _rough_means(sample)
        exponent = np.frexp(np.abs(sample - shift[1:]).max(axis=0))[1]
    scale[1:] = np.where(np.abs(exponent) > FAR, np.ldexp(1.0, -exponent), 1.0)
    none = Doubled.of(np.zeros((q, q)))
    return Totals(none, shift, scale, np.zeros(q), np.zeros(q, bool), X.shape[1], 0, 0)


def _rough_means(sample: Array) -> Array:
    """Means with few digits where they dwarf the deviations, else zero.

    Few digits, because x − m is then free of rounding for nearly every x.
    """
    mean, deviation = sample.mean(axis=0), sample.std(axis=0)
    unit = np.exp2(np.floor(np.log2(np.where(deviation > 0, deviation, 1.0))))
    rough = np.rint(mean / unit) * unit
    constant = np.all(sample == sample[:1], axis=0)
    rough = np.where(constant, sample[0], rough)
    far = constant | (np.abs(mean) > OFFSET * deviation)
    return np.where(far & np.isfinite(rough), rough, 0.0)


def _add(totals: Totals, X: Array, y: Array, weight: Array | None) -> Totals:
    """One chunk more."""
    parts = map_rows(lambda i, j: _Pass(totals).rows(X, y, weight, i, j), len(X), X.size + y.size)
    moments, peak, rounded = totals.moments, totals.peak, totals.rounded
    for part in parts:
        moments, peak, rounded = moments + part.folded(), peak + part.peak, rounded | part.rounded
    if not np.isfinite(moments.high).all():
        _refuse(totals, X, y)
    return totals._replace(
        moments=moments,
        peak=peak,
        rounded=rounded,
        seen=totals.seen + len(X),
        rows=totals.rows + (len(X) if weight is None else int(np.count_nonzero(weight))),
    )


def _refuse(totals: Totals, X: Array, y: Array) -> None:
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise NotFiniteError(f"NaN or infinity among rows {totals.seen} … {totals.seen + len(X)}")
    raise InputError(
        f"second moments overflow among rows {totals.seen} … {totals.seen + len(X)}",
        "columns whose size stays within a factor 10²⁰⁰ of that in the first chunk",
        "Scale the columns, or look for sentinel values such as 1e300",
    )


class _Pass:
    """The work of one core: buffers, and the sums over its blocks of W Wᵀ and of Z Rᵀ."""

    def __init__(self, totals: Totals) -> None:
        q = len(totals.shift)
        self.q, self.totals = q, totals
        self.z, self.W = np.empty((q, ROWS)), np.empty((3 * q, ROWS))
        self.product = np.empty((3 * q, 3 * q))
        self.high, self.low = np.zeros((3 * q, 3 * q)), np.zeros((3 * q, 3 * q))
        self.cross = np.zeros((q, q))
        self.peak = np.zeros(q)
        self.rounded = totals.rounded.copy()
        self.shifted = np.flatnonzero(totals.shift)
        self.scaled = bool(np.any(totals.scale != 1.0))

    def rows(self, X: Array, y: Array, weight: Array | None, start: int, stop: int) -> "_Pass":
        """Rows start … stop of a chunk."""
        with np.errstate(over="ignore", invalid="ignore"):
            for count, i in enumerate(range(start, stop, ROWS)):
                j = min(i + ROWS, stop)
                self._block(X[i:j], y[i:j], None if weight is None else weight[i:j])
                if count % SETTLE == 0:
                    self.high, self.low = two_sum(self.high, self.low)
        return self

    def _block(self, X: Array, y: Array, weight: Array | None) -> None:
        q, d = self.q, X.shape[1]
        z, W = self.z[:, : len(X)], self.W[:, : len(X)]
        z[0], z[1 : 1 + d], z[1 + d :] = 1.0, X.T, y.T
        self._watch(z)
        low = self._shift(z)
        if weight is not None:
            low = _weigh(z, low, weight)
        peak = np.maximum(z.max(axis=1), -z.min(axis=1))
        self.peak += z.shape[1] * peak**2
        _cut(z, np.frexp(peak)[1], W)
        if low is not None:
            z += low
        np.matmul(W, W.T, out=self.product)  # of one array and its own transpose: half the work
        self.high, error = two_sum(self.high, self.product)
        self.low += error
        if z.any():
            self.cross += (W[:q] + W[q : 2 * q]) @ z.T

    def _watch(self, z: Array) -> None:
        """Look for values that are not exact, in columns where none was seen yet."""
        exact = np.flatnonzero(~self.rounded)[1:]
        if len(exact):
            self.rounded[exact] = half_ulp(z[exact]).any(axis=1)

    def _shift(self, z: Array) -> Array | None:
        """Put s·(z − m) in place; returns its rounding error where there is one."""
        low = None
        if len(self.shifted):
            moved, error = two_sum(z[self.shifted], -self.totals.shift[self.shifted, None])
            z[self.shifted] = moved
            if error.any():
                low = np.zeros_like(z)
                low[self.shifted] = error
        if self.scaled:
            z *= self.totals.scale[:, None]
            low = low if low is None else low * self.totals.scale[:, None]
        return low

    def folded(self) -> Doubled:
        """Σ Z Zᵀ (q, q) from the nine products of slices and the rest, small ones first."""
        q = self.q
        total = Doubled(*two_sum(self.high, self.low))

        def part(i: int, j: int) -> Doubled:
            return total.take(slice(i * q, (i + 1) * q), slice(j * q, (j + 1) * q))

        folded = Doubled.of(self.cross + self.cross.T) + part(2, 2)
        folded = folded + (part(1, 2) + part(2, 1))
        folded = folded + (part(0, 2) + part(2, 0)) + part(1, 1)
        return folded + (part(0, 1) + part(1, 0)) + part(0, 0)


def _cut(z: Array, exponent: NDArray[np.integer], W: Array) -> None:
    """Move the leading bits of z (q, b) to three slices W (3q, b), leaving the rest; exact.

    Adding and taking away 1.5·2^(52+k) rounds to multiples of 2^k.
    """
    q = len(z)
    for s in range(3):
        anchor = np.ldexp(1.5, 52 - BITS * (s + 1) + exponent)[:, None]
        part = W[s * q : (s + 1) * q]
        np.add(z, anchor, out=part)
        part -= anchor
        z -= part


def _weigh(z: Array, low: Array | None, weight: Array) -> Array:
    """Multiply z + low by √ω in doubled precision, in place; returns the new low part."""
    root = np.sqrt(weight)
    square, error = two_product(root, root)
    positive = root > 0
    rest = np.where(positive, ((weight - square) - error) / np.where(positive, 2 * root, 1.0), 0.0)
    high, below = two_product(z, root[None, :])
    below += z * rest[None, :]
    if low is not None:
        below += low * root[None, :]
    z[:] = high
    return below
