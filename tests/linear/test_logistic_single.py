"""The lead in single precision: the same sums as in double, and the same optimum at its end."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import wonderland as wl
from wonderland.linear import logistic_single
from wonderland.linear.logistic_curvature import Shared
from wonderland.linear.logistic_fit import oracle
from wonderland.linear.logistic_single import single_of
from wonderland.linear.logistic_solve import state
from wonderland.solve.newton import Ask


@pytest.fixture
def always(monkeypatch):
    """Small tables take the way of large ones, in several blocks."""
    monkeypatch.setattr(logistic_single, "WORTH", 0.0)
    monkeypatch.setattr(logistic_single, "ROWS", 128)


def table(rng, n, d, k):
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    X[:, ::7] = 0.0
    X[-1, 7] = 0.5  # one entry makes a column live
    y = (X[:, :20] @ rng.normal(size=(20, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    return X, y


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("intercept", [True, False])
def test_sums_are_those_of_double_precision(k, intercept, rng, always):
    X, y = table(rng, 300, 40, k)
    weight = rng.uniform(0.0, 2.0, size=300)
    problem = state(X, y, k, weight, 0.7, fit_intercept=intercept)
    short = single_of(problem)
    assert 0 not in short.live
    assert 7 in short.live
    theta = 0.3 * rng.normal(size=problem.columns * problem.width)
    coef, bias = problem.split(theta)
    coef[:, ~np.isin(np.arange(40), short.live)] = 0.0
    theta = problem.join(coef, bias)
    [mine] = short.oracle()([0], [Ask(short.shorten(theta, problem), hessian=True)])
    [best] = oracle(problem, Shared())([0], [Ask(theta, hessian=True)])
    assert mine.value == pytest.approx(best.value, rel=1e-6)
    slope = short.shorten(best.gradient, problem)
    np.testing.assert_allclose(mine.gradient, slope, atol=2e-6)
    np.testing.assert_allclose(
        mine.metric.solve(slope),
        short.shorten(best.metric.solve(best.gradient), problem),
        rtol=1e-2,
        atol=2e-3,  # the free intercept leans on rounding
    )


def test_the_optimum_is_that_of_double_precision(rng, always, monkeypatch):
    X, y = table(rng, 500, 300, 10)
    options = {"C": 0.5, "prior": (rng.normal(size=300) / 20, rng.uniform(0.5, 2.0, size=300))}
    ours = wl.LogisticRegression(**options).fit(X, y)
    assert "single precision" in ours.evidence_["solver"].meaning
    tight = wl.LogisticRegression(**options, tol=1e-9, max_iter=500).fit(X, y)
    monkeypatch.setattr(logistic_single, "WORTH", np.inf)
    best = wl.LogisticRegression(**options, tol=1e-9, max_iter=500).fit(X, y)
    least = best.evidence_["primal"].value
    assert tight.evidence_["primal"].value == pytest.approx(least, rel=1e-10)
    assert ours.evidence_["primal"].value == pytest.approx(least, rel=1e-4)
    np.testing.assert_allclose(tight.coef_, best.coef_, atol=1e-6)
    # Where no sample has anything, the prior's mean stays.
    np.testing.assert_allclose(tight.coef_[:, 0], options["prior"][0][0], atol=1e-12)


def test_columns_beyond_single_precision_are_left_to_double(rng, always):
    X, y = table(rng, 300, 300, 10)
    X[:, 1] *= 1e60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it may tell that it fell short
        ours = wl.LogisticRegression(C=0.5).fit(X, y)
    assert np.isfinite(ours.coef_).all()
    assert ours.evidence_["gradient_norm"].holds or not ours.status_.ok
