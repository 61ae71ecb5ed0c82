"""Digits claimed are never more than the truth, on problems solved exactly with fractions.

Two truths are asked for. Data that float64 holds exactly have one exact answer. Decimal data have
been rounded on their way in: the truth is then that of the decimals, which no fit of the rounded
numbers can know, and which the claim must still not exceed.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.theory.rational import correct_digits, exact_least_squares

seeds = st.integers(0, 2**32 - 1)


def all_of(model) -> np.ndarray:
    slopes = np.ravel(model.coef_)
    return np.concatenate([[model.intercept_], slopes]) if model.fit_intercept else slopes


def claimed(model) -> float:
    return model.evidence_["digits"].value


def ill_conditioned(rng, n, d, closeness):
    """Whole-number tables whose last column repeats the others up to `closeness`."""
    X = rng.integers(-999, 1000, size=(n, d)).astype(float)
    size = round(1 / closeness)
    X[:, -1] = X[:, :-1].sum(axis=1) * size + rng.integers(-9, 10, size=n)
    return X


@settings(max_examples=40)
@given(seeds, st.sampled_from([1.0, 1e-3, 1e-6, 1e-9]), st.integers(2, 4), st.booleans())
def test_exact_data(seed, closeness, d, fit_intercept):
    rng = np.random.default_rng(seed)
    X = ill_conditioned(rng, 14, d, closeness)
    y = rng.integers(-(10**6), 10**6, size=14).astype(float)
    truth = exact_least_squares(X, y, fit_intercept=fit_intercept)
    model = wl.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    assert claimed(model) <= correct_digits(all_of(model), truth)
    assert correct_digits(all_of(model), truth) > 12, "refinement costs nothing here"


@settings(max_examples=40)
@given(seeds, st.sampled_from([1, 2, 4]), st.sampled_from([0.0, 1e-6, 1.0]))
def test_decimal_data(seed, agreeing, noise):
    """Columns that agree to several decimal places, known only as rounded decimals."""
    rng = np.random.default_rng(seed)
    n, d = 12, 3
    whole = rng.integers(-(10**6), 10**6, size=(n, d))
    whole[:, 2] = whole[:, 1] + rng.integers(-(10 ** (6 - agreeing)), 10 ** (6 - agreeing), size=n)
    target = whole.sum(axis=1) * 10**6 + np.round(noise * 1e12 * rng.normal(size=n)).astype(int)
    rows = [[Fraction(1)] + [Fraction(int(v), 10**6) for v in row] for row in whole]
    y = [Fraction(int(v), 10**12) for v in target]
    truth = exact_least_squares(rows, y, fit_intercept=True)
    X = np.array([[float(v) for v in row[1:]] for row in rows])
    model = wl.LinearRegression().fit(X, np.array([float(v) for v in y]))
    assert claimed(model) <= correct_digits(all_of(model), truth)


@settings(max_examples=25)
@given(seeds, st.integers(2, 7), st.sampled_from([0.0, 10.0, 1000.0]))
def test_polynomials_of_decimals(seed, degree, offset):
    """Powers of a rounded decimal: one source value moves all its columns together."""
    rng = np.random.default_rng(seed)
    source = [Fraction(int(v), 1000) + int(offset) for v in rng.integers(-2000, 2000, size=20)]
    rows = [[x**k for k in range(degree + 1)] for x in source]
    y = [Fraction(int(v), 1000) for v in rng.integers(-5000, 5000, size=20)]
    truth = exact_least_squares(rows, y, fit_intercept=True)
    X = np.array([[float(x)] for x in source])
    model = wl.LinearRegression(basis=wl.bases.Polynomial(degree))
    model.fit(X, np.array([float(v) for v in y]))
    assert claimed(model) <= correct_digits(all_of(model), truth)


@settings(max_examples=25)
@given(seeds, st.sampled_from([1e-6, 1.0, 1e4]), st.sampled_from([1.0, 1e-4]), st.booleans())
def test_ridge_with_weights(seed, alpha, closeness, weighted):
    rng = np.random.default_rng(seed)
    X = ill_conditioned(rng, 12, 3, closeness)
    y = rng.integers(-(10**6), 10**6, size=12).astype(float)
    weight = rng.uniform(0.1, 3.0, size=12) if weighted else None
    truth = exact_least_squares(X, y, fit_intercept=True, alpha=alpha, weight=weight)
    model = wl.Ridge(alpha).fit(X, y, sample_weight=weight)
    assert claimed(model) <= correct_digits(all_of(model), truth)


@pytest.mark.parametrize("closeness", [1.0, 1e-2, 1e-4, 1e-7])
def test_large_tables_take_other_methods_and_are_as_honest(rng, monkeypatch, closeness):
    monkeypatch.setattr("wonderland.solve.problem.SMALL", 0)
    for _ in range(3):
        X = ill_conditioned(rng, 60, 3, closeness)
        y = rng.integers(-(10**6), 10**6, size=60).astype(float)
        truth = exact_least_squares(X, y, fit_intercept=True)
        model = wl.LinearRegression().fit(X, y)
        assert claimed(model) <= correct_digits(all_of(model), truth)
        assert claimed(model) > 4


def test_descent_claims_what_it_reached(rng):
    X = rng.integers(-99, 100, size=(30, 3)).astype(float)
    y = rng.integers(-99, 100, size=30).astype(float)
    truth = exact_least_squares(X, y, fit_intercept=True)
    for tol in (1e-2, 1e-4, 1e-8, 1e-12):
        model = wl.LinearRegression(solver="descent", tol=tol).fit(X, y)
        assert claimed(model) <= correct_digits(all_of(model), truth)


def test_dependent_columns_promise_nothing(rng):
    X = rng.normal(size=(20, 3))
    model = wl.LinearRegression().fit(np.hstack([X, X[:, :1]]), rng.normal(size=20))
    assert claimed(model) == 0.0
