"""The digits that are claimed: bounds that hold for every rounding of the data."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solve.problems import make
from tests.theory.rational import exact_least_squares
from wonderland.solve.bounds import LIMIT, half_ulp, rounding_bound, trusted_digits
from wonderland.solve.direct import solve_direct


@pytest.mark.parametrize("exact", [0.0, 1.0, -3.0, 2.0**52, 0.5, 0.375, -1e10])
def test_numbers_that_lost_nothing(exact):
    assert half_ulp(np.array([exact]))[0] == 0.0


@given(st.decimals(-1000, 1000, places=3))
def test_decimals_lost_at_most_half_a_unit(value):
    rounded = float(value)
    lost = abs(Fraction(value) - Fraction(rounded))
    assert lost <= half_ulp(np.array([rounded]))[0]


def test_integers_beyond_two_to_the_53_may_have_been_rounded():
    # An odd significand, which float32 cannot hold.
    assert half_ulp(np.array([2.0**60 + 2.0**9]))[0] > 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("closeness", [1.0, 1e-3])
def test_no_rounding_of_the_data_moves_a_coefficient_further(rng, closeness, weighted):
    """Move each entry by what rounding may have moved it: the exact answer stays in the bound."""
    problem = make(rng, 12, 2, 1, weighted=weighted, noise=0.1)
    X = np.round(problem.X, 4)
    X[:, 1] = np.round(X[:, 0] + closeness * X[:, 1], 8)
    problem = problem._replace(X=X, y=np.round(problem.y, 4))
    fit = solve_direct(problem)
    middle = exact_least_squares(X, problem.y[:, 0], fit_intercept=True, weight=problem.weight)
    # The bound is of first order: larger moves, which float64 can hold, in proportion.
    factor = 1e-9 / (0.5 * np.finfo(float).eps)
    for _ in range(4):
        moved = X + factor * half_ulp(X) * rng.uniform(-1, 1, size=X.shape)
        y = problem.y + factor * half_ulp(problem.y) * rng.uniform(-1, 1, size=(12, 1))
        there = exact_least_squares(moved, y[:, 0], fit_intercept=True, weight=problem.weight)
        for a, b, bound in zip(middle, there, fit.error[:, 0], strict=True):
            assert abs(float(a - b)) <= factor * bound * 1.01


def test_the_bound_scales_with_noise_and_conditioning(rng):
    problem = make(rng, 40, 3, 1)
    fit = solve_direct(problem)
    r = problem.y - problem.X @ fit.coef - fit.intercept
    beta = np.vstack([fit.intercept, fit.coef])
    near = rounding_bound(problem, beta, r, fit.inverse)
    noisy = rounding_bound(problem, beta, 1e6 * r, fit.inverse)
    worse = rounding_bound(problem, beta, r, 100 * fit.inverse)
    assert np.all(noisy > near)
    assert np.all(worse > near)
    assert np.all(near > 0)


def test_digits_of_the_worst_coefficient():
    beta = np.array([[1.0], [100.0]])
    assert trusted_digits(beta, np.array([[1e-8], [1e-3]])) == pytest.approx(5.0)
    assert trusted_digits(beta, np.zeros((2, 1))) == LIMIT
    assert trusted_digits(beta, np.full((2, 1), np.inf)) == 0.0
    assert trusted_digits(beta, np.array([[1e-30], [1e-30]])) == LIMIT
    assert trusted_digits(beta, np.array([[10.0], [0.0]])) == 0.0
    # Zero with certainty has no digits to count; zero give or take something has none.
    assert trusted_digits(np.array([[0.0], [1.0]]), np.array([[0.0], [1e-6]])) == pytest.approx(6)
    assert trusted_digits(np.array([[0.0], [1.0]]), np.array([[1e-9], [1e-6]])) == 0.0
    assert trusted_digits(np.zeros((1, 1)), np.zeros((1, 1))) == LIMIT
