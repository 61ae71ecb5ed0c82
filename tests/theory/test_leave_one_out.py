"""Leave-one-out errors are exact: equal to refitting without each sample, by the estimators."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.laws.strategies import tables


def refitted(X, y, alpha, **options) -> float:
    """Mean squared error on each sample of a fit without it, summed over outputs."""
    total = 0.0
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        model = wl.Ridge(alpha, **options).fit(X[rest], y[rest])
        total += np.sum((y[i] - model.predict(X[[i]])[0]) ** 2)
    return total / len(X)


@settings(max_examples=10)
@given(tables(rows=(6, 15), features=(1, 10)), st.sampled_from([0.01, 1.0, 50.0]), st.booleans())
def test_the_path_is_exact(data, alpha, fit_intercept):
    X, y = data
    path = wl.ridge_path(X, y, [alpha], fit_intercept=fit_intercept)
    expected = refitted(X, y, alpha, fit_intercept=fit_intercept)
    np.testing.assert_allclose(path.error.sum(), expected, rtol=1e-6)
    model = wl.Ridge(alpha, fit_intercept=fit_intercept).fit(X, y)
    scale = np.abs(model.coef_).max()
    np.testing.assert_allclose(path.coef[0], model.coef_, rtol=1e-7, atol=1e-9 * scale)


@pytest.mark.parametrize("d", [3, 25])
def test_loo_takes_the_best_of_the_path_and_gradient_no_worse(rng, d):
    X = rng.normal(size=(20, d))
    y = X @ rng.normal(size=d) + 2.0 * rng.normal(size=20)
    alphas = np.logspace(-3, 4, 15)
    loo = wl.Ridge("loo", alphas=alphas).fit(X, y)
    errors = [refitted(X, y, alpha) for alpha in alphas]
    assert loo.alpha_ == alphas[np.argmin(errors)]
    tuned = wl.Ridge("gradient", alphas=alphas).fit(X, y)
    assert refitted(X, y, tuned.alpha_) <= min(errors) * (1 + 1e-6)


def test_the_slope_vanishes_at_the_tuned_penalty(rng):
    X = rng.normal(size=(30, 6))
    y = X @ rng.normal(size=6) + 3.0 * rng.normal(size=30)
    alpha = wl.Ridge("gradient").fit(X, y).alpha_
    path = wl.ridge_path(X, y, [alpha * 0.999, alpha, alpha * 1.001])
    assert path.error[1] <= path.error.min() * (1 + 1e-9)


def test_rows_may_repeat(rng):
    """A sample with a twin is predicted by its twin: leverage stays below one, and exact."""
    X, y = rng.normal(size=(8, 3)), rng.normal(size=8)
    X, y = np.vstack([X, X[:2]]), np.concatenate([y, y[:2] + 0.1])
    for alpha in (1e-6, 1.0):
        path = wl.ridge_path(X, y, [alpha])
        np.testing.assert_allclose(path.error.sum(), refitted(X, y, alpha), rtol=1e-6)
