"""The theorems as functions: consistent with one another and with their definitions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wonderland.solve.theory import (
    convex_bound,
    iteration_bound,
    momentum_bound,
    non_convex_bound,
    strongly_convex_bound,
)

positive = st.floats(1e-3, 1e3)


@given(positive, positive, st.integers(1, 10**6))
def test_values_are_those_of_the_textbook(L, D, k):
    assert convex_bound(k, L, D) == pytest.approx(L * D**2 / (2 * k))
    assert non_convex_bound(k, L, D) == pytest.approx((2 * L * D / (k + 1)) ** 0.5)
    assert momentum_bound(k, L, 0.0, D) == pytest.approx(2 * L * D**2 / (k + 1) ** 2)


@given(positive, positive, st.floats(1e-4, 0.99), st.integers(0, 1000))
def test_strong_convexity_contracts(L, D, ratio, k):
    q = (1 - ratio) / (1 + ratio)  # (κ − 1)/(κ + 1) with m = ratio·L
    expected = 0.5 * L * q ** (2 * k) * D**2
    assert strongly_convex_bound(k, L, ratio * L, D) == pytest.approx(
        expected, rel=1e-6, abs=1e-300
    )


@given(
    positive, positive, st.one_of(st.just(0.0), st.floats(1e-7, 1.0)), st.floats(1e-12, 1e-2),
    st.booleans(),
)  # fmt: skip
def test_the_step_count_is_where_the_gradient_bound_meets_the_tolerance(
    L, D, ratio, tolerance, momentum
):
    """‖∇f‖² ≤ 2L(f − f*): at the count returned the theorem's bound is at most ε²."""
    m = ratio * L
    k = iteration_bound(L, m, D, tolerance, momentum=momentum)
    assert k >= 0
    if k == 0:
        assert tolerance >= L * D
        return
    if momentum:
        gap = momentum_bound(k, L, m, D)
    else:
        gap = convex_bound(k, L, D)
        gap = min(gap, strongly_convex_bound(k, L, m, D)) if m > 0 else gap
    assert 2 * L * gap <= tolerance**2 * (1 + 1e-6)


@given(positive, positive, st.floats(1e-10, 1e-2), st.booleans())
def test_more_convexity_never_needs_more_steps(L, D, tolerance, momentum):
    counts = [
        iteration_bound(L, ratio * L, D, tolerance, momentum=momentum)
        for ratio in (0.0, 1e-12, 1e-8, 1e-4, 1e-2, 0.5, 1.0)
    ]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("momentum", [False, True])
def test_extremes(momentum):
    assert iteration_bound(1.0, 0.1, 1.0, 0.0, momentum=momentum) == math.inf
    assert iteration_bound(1.0, 0.1, 0.0, 1e-6, momentum=momentum) == 0
    assert iteration_bound(1.0, 1.0, 5.0, 1e-6, momentum=momentum) <= 30
    # κ = 10¹⁷: the logarithm of the rate rounds to zero unless it is computed with care.
    huge = iteration_bound(1.0, 1e-17, 1.0, 1e-6, momentum=momentum)
    assert 1e6 < huge < math.inf
    assert iteration_bound(1e200, 0.0, 1e200, 1e-300, momentum=momentum) >= 1e300
