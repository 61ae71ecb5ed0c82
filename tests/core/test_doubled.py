"""Doubled precision against exact rational arithmetic: fractions know every bit."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wonderland.core.doubled import Doubled, gram, matmul, two_product, two_sum

# Away from overflow and underflow, where the transformations are exact.
moderate = st.floats(-1e60, 1e60).filter(lambda x: x == 0 or abs(x) > 1e-60)
wild = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
EPS = Fraction(1, 2**104)


def exact(pair) -> Fraction:
    return Fraction(float(pair[0])) + Fraction(float(pair[1]))


def doubled(rng, *shape, spread=8):
    """Numbers with a full low part and exponents over `spread` decades."""
    high = rng.normal(size=shape) * 10.0 ** rng.integers(-spread, spread, size=shape)
    return Doubled(high, 0.49 * np.spacing(high) * rng.uniform(-1, 1, size=shape))


@given(wild, wild)
def test_a_sum_and_its_error_are_exact(a, b):
    total, error = two_sum([a], [b])
    assert total == a + b
    assert exact((total[0], error[0])) == Fraction(a) + Fraction(b)


@given(moderate, moderate)
def test_a_product_and_its_error_are_exact(a, b):
    product, error = two_product([a], [b])
    assert product == a * b
    assert exact((product[0], error[0])) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize(
    ("operation", "ulps"),
    [("__add__", 4), ("__sub__", 4), ("__mul__", 16), ("__truediv__", 32)],
)
def test_arithmetic_to_a_hundred_bits(rng, operation, ulps):
    a, b = doubled(rng, 200), doubled(rng, 200)
    found = getattr(a, operation)(b)
    for k in range(200):
        left, right = exact(a.take(k)), exact(b.take(k))
        wanted = getattr(left, operation)(right)
        # Sums are bounded by their terms, as in any floating arithmetic with cancellation.
        size = abs(left) + abs(right) if "add" in operation or "sub" in operation else abs(wanted)
        assert abs(exact(found.take(k)) - wanted) <= ulps * EPS * size
        assert abs(found.low[k]) <= 0.5 * math.ulp(found.high[k])


def test_square_roots_to_a_hundred_bits(rng):
    a = doubled(rng, 100)
    a = Doubled(np.abs(a.high), np.copysign(a.low, 1.0))
    found = a.root()
    with localcontext(prec=60):
        for k in range(100):
            value = exact(a.take(k))
            root = (Decimal(value.numerator) / Decimal(value.denominator)).sqrt()
            ours = exact(found.take(k))
            ours = Decimal(ours.numerator) / Decimal(ours.denominator)
            assert abs(ours / root - 1) < Decimal(2) ** -100


def test_lifting_and_rounding(rng):
    a = rng.normal(size=(3, 2))
    lifted = Doubled.of(a)
    np.testing.assert_array_equal(lifted.value, a)
    np.testing.assert_array_equal(lifted.low, 0.0)
    np.testing.assert_array_equal((-lifted).value, -a)
    assert lifted.take(slice(None), 0).high.shape == (3,)


def exact_matmul(a, b):
    left, right = ([[Fraction(float(x)) for x in row] for row in m] for m in (a, b.T))
    return [[sum(map(Fraction.__mul__, row, col)) for col in right] for row in left]


@pytest.mark.parametrize("spread", [0, 6])
@pytest.mark.parametrize("inner", [1, 7, 1500])
def test_products_of_matrices(rng, inner, spread):
    """|error| ≤ c·2⁻¹⁰⁴ · max|A_i·| · max|B_·j|, also where the terms cancel."""
    a = rng.normal(size=(2, inner)) * 10.0 ** rng.integers(-spread, spread + 1, size=(2, inner))
    b = rng.normal(size=(inner, 3)) * 10.0 ** rng.integers(-spread, spread + 1, size=(inner, 3))
    a[1, -1] -= (a @ b)[1, 0] / b[-1, 0]  # row 1 cancels against column 0
    found, wanted = matmul(a, b), exact_matmul(a, b)
    for i in range(2):
        for j in range(3):
            size = Fraction(float(np.abs(a[i]).max())) * Fraction(float(np.abs(b[:, j]).max()))
            assert abs(exact(found.take(i, j)) - wanted[i][j]) <= 4 * inner * EPS * size


@pytest.mark.parametrize("rows", [3, 1500])
def test_gram_equals_the_product_with_itself(rng, rows):
    z = rng.normal(size=(rows, 3)) * [1.0, 1e8, 1e-8]
    found, wanted = gram(z), exact_matmul(z.T, z)
    for i in range(3):
        for j in range(3):
            size = Fraction(float(np.abs(z[:, i]).max())) * Fraction(float(np.abs(z[:, j]).max()))
            assert abs(exact(found.take(i, j)) - wanted[i][j]) <= 4 * rows * EPS * size


def test_empty_and_zero_matrices():
    assert matmul(np.empty((2, 0)), np.empty((0, 3))).value.tolist() == [[0.0] * 3] * 2
    assert matmul(np.zeros((2, 4)), np.ones((4, 1))).value.tolist() == [[0.0], [0.0]]
    assert gram(np.empty((0, 2))).value.shape == (2, 2)
