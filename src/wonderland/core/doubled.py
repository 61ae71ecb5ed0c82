"""Doubled precision on ordinary hardware: a number is the unevaluated sum `high + low`.

Two classical ideas give about 106 significant bits from float64 alone:

* error-free transformations (Dekker 1971, Knuth 1969): the rounding error of a sum or a product of
  two floats is itself a float and can be computed;
* exact slicing of matrix products (Ozaki, Ogita, Oishi & Rump 2012): cut each factor into slices of
  so few bits that the product of two slices is exact in any summation order, and let the machine's
  fast matrix multiply do the work.

Everything here runs on the host, in NumPy; nothing here is differentiable.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Doubled", "gram", "matmul", "two_product", "two_sum"]

Array = NDArray[np.float64]

BLOCK = 1024  # contraction length of one exact product: 10 bits of head-room
BITS = 21  # 2·21 + 10 ≤ 53: sums of products of slices stay integers below 2^53
SLICES = 5  # 5·21 = 105 bits below the largest entry of a row
SPLITTER = 134217729.0  # 2^27 + 1, cuts a float64 into two halves of 26 bits


def two_sum(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """Return (s, e) with s = fl(a + b) and s + e = a + b exactly."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def two_product(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """Return (p, e) with p = fl(a·b) and p + e = a·b exactly (barring over- and underflow)."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    product = a * b
    a1, a2 = _halves(a)
    b1, b2 = _halves(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Array) -> tuple[Array, Array]:
    wide = SPLITTER * a
    high = wide - (wide - a)
    return high, a - high


class Doubled(NamedTuple):
    """An array in doubled precision: the value of each entry is `high + low`, |low| ≤ ulp(high)/2.

    >>> third = Doubled.of(1.0) / Doubled.of(3.0)
    >>> float((third * Doubled.of(3.0) - Doubled.of(1.0)).high)
    0.0
    """

    high: Array
    low: Array

    @classmethod
    def of(cls, a: ArrayLike) -> Self:
        """Lift plain floats; their low part is zero."""
        a = np.asarray(a, np.float64)
        return cls(a, np.zeros_like(a))

    def __add__(self, other: "Doubled") -> "Doubled":  # type: ignore[override]  # not a tuple sum
        high, error = two_sum(self.high, other.high)
        low, lower = two_sum(self.low, other.low)
        high, error = _normal(high, error + low)
        return Doubled(*_normal(high, error + lower))

    def __neg__(self) -> "Doubled":
        return Doubled(-self.high, -self.low)

    def __sub__(self, other: "Doubled") -> "Doubled":
        return self + -other

    def __mul__(self, other: "Doubled") -> "Doubled":  # type: ignore[override]
        high, error = two_product(self.high, other.high)
        return Doubled(*_normal(high, error + (self.high * other.low + self.low * other.high)))

    def __truediv__(self, other: "Doubled") -> "Doubled":
        quotient = Doubled.of(self.high / other.high)
        correction = (self - quotient * other).high / other.high
        return quotient + Doubled.of(correction)

    def root(self) -> "Doubled":
        """Square root: one Newton step from the float64 root; entries must be positive."""
        start = Doubled.of(np.sqrt(self.high))
        return start + Doubled.of((self - start * start).high / (2.0 * start.high))

    def take(self, *index: object) -> "Doubled":
        """Index both parts alike."""
        return Doubled(self.high[index], self.low[index])  # type: ignore[index]

    @property
    def value(self) -> Array:
        """The nearest float64."""
        return self.high + self.low


def _normal(high: Array, low: Array) -> tuple[Array, Array]:
    """Renormalise when |high| ≥ |low| (Dekker's fast two-sum)."""
    total = high + low
    return total, low - (total - high)


def _slices(rows: Array) -> tuple[Array, NDArray[np.int32]]:
    """Cut `rows` (m, c) into integer-like slices (SLICES, m, c) and a power of two per row (m,).

    Slice s holds the bits s·BITS … (s+1)·BITS below the row's largest entry, as multiples of
    2^-BITS(s+1): rounding to a multiple is done by adding and taking away a large constant.
    """
    exponent = np.frexp(np.max(np.abs(rows), axis=1, initial=0.0))[1]
    rest = np.ldexp(rows, -exponent[:, None])
    cut = np.empty((SLICES, *rows.shape))
    for s in range(SLICES):
        anchor = 1.5 * 2.0 ** (52 - BITS * (s + 1))
        np.add(rest, anchor, out=cut[s])
        cut[s] -= anchor
        rest -= cut[s]
    return cut, exponent


def _multiply(left: Array, right: Array) -> Doubled:
    """Σ over slice pairs of left[s] · right[t]ᵀ, small pairs first, in doubled precision."""
    high = low = np.zeros((left.shape[1], right.shape[1]))
    for order in range(SLICES - 1, -1, -1):
        for s in range(order + 1):
            high, error = two_sum(left[s] @ right[order - s].T, high)
            low = low + error
    return Doubled(*_normal(high, low))


def matmul(a: Array, b: Array) -> Doubled:
    """A·B to doubled precision, normwise per row of A and column of B.

    Args:
        a: (m, c).
        b: (c, p).

    Returns:
        The product (m, p) with |error| ≲ c·2⁻¹⁰⁴ · max|A_i·| · max|B_·j|.

    >>> import numpy as np
    >>> big = np.array([[1e16, 1.0, -1e16]])
    >>> matmul(big, np.ones((3, 1))).value.item()
    1.0
    """
    total = Doubled.of(np.zeros((a.shape[0], b.shape[1])))
    for start in range(0, a.shape[1], BLOCK):
        stop = start + BLOCK
        left, rows = _slices(np.ascontiguousarray(a[:, start:stop]))
        right, columns = _slices(np.ascontiguousarray(b[start:stop].T))
        part = _multiply(left, right)
        shift = rows[:, None] + columns[None, :]
        total = total + Doubled(np.ldexp(part.high, shift), np.ldexp(part.low, shift))
    return total


def gram(z: Array) -> Doubled:
    """Zᵀ·Z to doubled precision for z of shape (n, p), one slicing per block of rows."""
    total = Doubled.of(np.zeros((z.shape[1], z.shape[1])))
    for start in range(0, z.shape[0], BLOCK):
        cut, exponent = _slices(np.ascontiguousarray(z[start : start + BLOCK].T))
        part = _multiply(cut, cut)
        shift = exponent[:, None] + exponent[None, :]
        total = total + Doubled(np.ldexp(part.high, shift), np.ldexp(part.low, shift))
    return total
