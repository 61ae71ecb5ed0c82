"""QR with refinement: the augmented system to the last digit, dependent columns found."""

from fractions import Fraction

import numpy as np
import pytest

from tests.theory.rational import eliminate, exact_least_squares, relative
from wonderland.core.doubled import Doubled
from wonderland.solve.refine import factorise, solve_augmented


def hilbert(n, p):
    """Columns 1/(i + j + 1): independent, and worse conditioned with every further one."""
    return np.array([[1.0 / (i + j + 1) for j in range(p)] for i in range(n)])


@pytest.mark.parametrize("shape", [(30, 5), (5, 5), (1, 1), (6, 1)])
@pytest.mark.parametrize("fixed", [0, 1])
def test_the_factors_multiply_back(rng, shape, fixed):
    A = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 7, size=shape[1])
    A[:, 0] = 1.0
    factors = factorise(A, fixed)
    assert factors.rank == min(shape)
    np.testing.assert_allclose(factors.Q.T @ factors.Q, np.eye(factors.rank), atol=1e-14)
    made = factors.Q @ factors.R / factors.scale[factors.order]
    np.testing.assert_allclose(made, A[:, factors.order], rtol=1e-9, atol=1e-12)
    assert sorted(factors.order) == list(range(shape[1]))
    assert list(factors.order[:fixed]) == list(range(fixed))
    assert np.all(np.frexp(factors.scale)[0] == 0.5), "powers of two change no digit"
    np.testing.assert_array_equal(factors.R, np.triu(factors.R))


def test_dependent_columns_are_found_and_explained(rng):
    A = rng.normal(size=(40, 3))
    whole = np.column_stack([A, A @ [1.0, -2.0, 0.0], np.zeros(40)])
    factors = factorise(whole)
    assert factors.rank == 3
    kept, dropped = factors.order[:3], factors.order[3:]
    unscaled = whole * factors.scale
    made = unscaled[:, kept] @ factors.ties
    np.testing.assert_allclose(made, unscaled[:, dropped], atol=1e-12)


@pytest.mark.parametrize("p", [4, 8, 11])
def test_coefficients_to_the_last_digit_while_the_condition_allows(p, rng):
    """κ of these columns reaches 10¹⁴: one QR keeps a few digits, refinement all but the last."""
    A, b = hilbert(30, p), rng.normal(size=30)
    truth = exact_least_squares(A, b, fit_intercept=False)
    g = np.zeros((p, 1))
    factors = factorise(A)
    refined, r, change = solve_augmented(Doubled.of(A), Doubled.of(b[:, None]), g, factors)
    once, _, _ = solve_augmented(Doubled.of(A), Doubled.of(b[:, None]), g, factors, refine=False)
    assert relative(refined[:, 0], truth) < 1e-15
    assert relative(once[:, 0], truth) > relative(refined[:, 0], truth)
    assert np.all(change <= 1e-14 * np.abs(refined))
    fitted = [sum(Fraction(a) * w for a, w in zip(row, truth, strict=True)) for row in A]
    exact = np.array([float(Fraction(y) - f) for y, f in zip(b, fitted, strict=True)])
    np.testing.assert_allclose(r[:, 0], exact, atol=1e-14)


def test_low_parts_are_part_of_the_matrix(rng):
    """Columns 1/3, 1/7, … are known to 106 bits; the answer is that of the exact rationals."""
    rows = [[Fraction(1), Fraction(k, 3), Fraction(k * k, 7)] for k in range(1, 9)]
    high = np.array([[float(x) for x in row] for row in rows])
    low = np.array(
        [[float(x - Fraction(float(x))) for x in row] for row in rows]
    )  # what float64 could not hold
    b = rng.normal(size=8)
    truth = exact_least_squares(rows, b, fit_intercept=False)
    g = np.zeros((3, 1))
    found, _, _ = solve_augmented(Doubled(high, low), Doubled.of(b[:, None]), g, factorise(high))
    assert relative(found[:, 0], truth) < 2e-16


def test_the_same_system_gives_the_inverse(rng):
    A = hilbert(20, 5)
    columns, _, _ = solve_augmented(
        Doubled.of(A), Doubled.of(np.zeros((20, 5))), -np.eye(5), factorise(A)
    )
    unit = [[Fraction(int(i == j)) for j in range(5)] for i in range(5)]
    rows = [[Fraction(a) for a in row] for row in A]
    gram = [[sum(row[i] * row[j] for row in rows) for j in range(5)] for i in range(5)]
    for j in range(5):
        exact = eliminate(gram, unit[j])
        assert relative(columns[:, j], exact) < 1e-14
