"""Bayesian linear regression: closed form, maximum of the evidence, calibrated intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import binom, multivariate_normal
from sklearn.linear_model import BayesianRidge

import wonderland as wl
from tests.laws.strategies import generators, orders, tables
from wonderland.core.arrays import in_float64
from wonderland.linear.bayesian import fit_bayesian_linear
from wonderland.linear.bayesian_axes import axes_of, axes_of_totals
from wonderland.linear.bayesian_levels import Fixed, Gammas, levels_of
from wonderland.solve.problem import LeastSquares
from wonderland.solve.sweep import accumulate

few = settings(max_examples=5)
NONE = Gammas()


def made(rng, n, d, *, noise=0.5, shift=3.0):
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1, size=d) + shift
    return X, X @ rng.normal(size=d) + noise * rng.normal(size=n) + 7.0


@pytest.mark.parametrize("shape", [(40, 5), (12, 30), (9, 9)])
@pytest.mark.parametrize("weighted", [False, True])
def test_posterior_is_the_closed_form(shape, weighted, rng):
    X, y = made(rng, *shape)
    omega = rng.integers(1, 4, size=len(y)).astype(float) if weighted else np.ones(len(y))
    a, lam = 1.7, 0.3
    found = fit_bayesian_linear(X, y, omega, noise_variance=1 / a, prior_precision=lam)
    Xc, yc = X - omega @ X / omega.sum(), y - omega @ y / omega.sum()
    sigma = np.linalg.inv(a * (Xc.T * omega) @ Xc + lam * np.eye(X.shape[1]))
    mean = a * sigma @ Xc.T @ (omega * yc)
    np.testing.assert_allclose(found.model.covariance(), sigma, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.model.coef, mean, rtol=1e-8, atol=1e-10)
    z = rng.normal(size=X.shape[1]) + 2.0
    away = z - omega @ X / omega.sum()
    expected = away @ sigma @ away + 1 / (a * omega.sum())
    np.testing.assert_allclose(found.model.variance(z), expected, rtol=1e-8)


@pytest.mark.parametrize("shape", [(20, 4), (6, 15)])
def test_evidence_is_the_density_of_the_data(shape, rng):
    """log p(y | a, λ) = log N(y; 0, I/a + XXᵀ/λ)."""
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    found = fit_bayesian_linear(X, y, noise_variance=0.4, prior_precision=1.3, fit_intercept=False)
    density = multivariate_normal(cov=0.4 * np.eye(len(y)) + X @ X.T / 1.3).logpdf(y)
    np.testing.assert_allclose(found.evidence["log_marginal_likelihood"], density, rtol=1e-11)


@pytest.mark.parametrize("shape", [(60, 4), (15, 40), (3000, 20), (8, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_at_least_as_likely_as_bayesian_ridge(shape, weighted, rng):
    X, y = made(rng, *shape)
    weight = rng.uniform(0.1, 3.0, size=len(y)) if weighted else None
    ours = wl.BayesianLinearRegression(compute_score=True).fit(X, y, weight)
    peer = BayesianRidge(max_iter=20_000, tol=1e-13, compute_score=True).fit(X, y, weight)
    assert ours.scores_[-1] >= peer.scores_[-1] - 1e-9 * abs(peer.scores_[-1])
    if abs(ours.scores_[-1] - peer.scores_[-1]) < 1e-7:  # the same hill
        scale = np.abs(peer.coef_).max()
        np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-5, atol=1e-5 * scale)
        np.testing.assert_allclose(ours.alpha_, peer.alpha_, rtol=1e-4)


@pytest.mark.parametrize("fixed", [Fixed(), Fixed(noise=2.0), Fixed(prior=0.7)])
@pytest.mark.parametrize("gammas", [NONE, Gammas(0.5, 0.2, 1.1, 0.3)])
def test_the_slopes_are_those_of_the_objective(fixed, gammas, rng):
    """∂/∂log a and ∂/∂log λ from the posterior equal differences, and vanish at the maximum."""
    from wonderland.linear.bayesian_levels import _slopes, log_evidence

    X, y = made(rng, 25, 6)
    axes = axes_of(LeastSquares(X, y[:, None], None, np.zeros(1), True))
    found = levels_of(axes, gammas, fixed)
    assert max(map(abs, found.slopes)) < 1e-9
    at, step = np.log([0.8, 1.9]), 1e-5
    slopes = _slopes(axes, gammas, Fixed(), *np.exp(at))
    for k in range(2):
        move = step * np.eye(2)[k]
        up, down = (log_evidence(axes, *np.exp(at + s * move), gammas) for s in (1, -1))
        np.testing.assert_allclose(slopes[k], (up - down) / (2 * step), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        found.trace[-1], log_evidence(axes, found.noise, found.prior, gammas), rtol=1e-9
    )


def test_both_ways_to_the_axes_agree(rng, monkeypatch):
    X, y = made(rng, 400, 7)
    weight = rng.uniform(size=400)
    problem = LeastSquares(X, y[:, None], weight, np.zeros(1), True)
    by_rows = axes_of(problem)
    monkeypatch.setattr("wonderland.linear.bayesian_axes.LONG", 0)
    squared = axes_of(problem)
    totals = accumulate(
        [(X[:150], y[:150, None], weight[:150]), (X[150:], y[150:, None], weight[150:])],
        fit_intercept=True,
    )
    for other in (squared, axes_of_totals(totals, fit_intercept=True)):
        np.testing.assert_allclose(other.values, by_rows.values, rtol=1e-9)
        np.testing.assert_allclose(np.abs(other.along), np.abs(by_rows.along), rtol=1e-7)
        np.testing.assert_allclose(other.rest, by_rows.rest, rtol=1e-8)
        np.testing.assert_allclose(other.mean_x, by_rows.mean_x, rtol=1e-12)


def test_chunks_give_the_same_fit(rng):
    X, y = made(rng, 300, 4)
    whole = wl.BayesianLinearRegression().fit(X, y)
    parts = wl.BayesianLinearRegression().fit(
        (X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70)
    )
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_allclose(parts.alpha_, whole.alpha_, rtol=1e-9)


@pytest.mark.slow
def test_intervals_hold_what_they_promise(rng):
    """Coefficients from the prior, intervals from 20 samples: coverage of new targets."""
    runs, d, level = 4000, 3, 0.9
    inside = 0
    for _ in range(runs):
        X, w = rng.normal(size=(21, d)), rng.normal(size=d)
        y = X @ w + 1.0 + 0.7 * rng.normal(size=21)
        model = wl.BayesianLinearRegression().fit(X[:20], y[:20])
        low, high = model.prediction_interval(X[20:], level)
        inside += bool(low[0] <= y[20] <= high[0])
    # The precisions are estimated, so that the level is met to about a point, not exactly.
    assert binom(runs, level - 0.01).ppf(1e-4) <= inside <= binom(runs, level + 0.01).isf(1e-4)


def test_parts_of_the_variance_add_up(rng):
    X, y = made(rng, 50, 3)
    model = wl.BayesianLinearRegression().fit(X, y)
    parts = model.uncertainty(X)
    _, deviation = model.predict(X, return_std=True)
    np.testing.assert_allclose(parts.total, deviation**2)
    np.testing.assert_allclose(parts.total, parts.epistemic + parts.aleatoric)
    assert parts.epistemic.min() > 0
    assert np.ptp(parts.aleatoric) == 0


def test_a_basis_is_a_table_of_columns(rng):
    x = rng.uniform(-2, 2, size=(30, 1))
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=30)
    basis = wl.bases.Polynomial(3)
    one = wl.BayesianLinearRegression(basis=basis).fit(x, y)
    two = wl.BayesianLinearRegression().fit(basis(x), y)
    for a, b in zip(
        one.predict(x, return_std=True), two.predict(basis(x), return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-8)
    np.testing.assert_allclose(
        in_float64(one.model_.variance)(x[0]), one.uncertainty(x[:1]).epistemic[0], rtol=1e-9
    )


@few
@given(data=tables(rows=(8, 30), outputs=(1, 1)), rng=generators())
def test_laws_of_estimators(data, rng):
    part = wl.BayesianLinearRegression()
    counts = rng.integers(1, 4, size=len(data[0]))
    wl.testing.weights_are_repetition(part, *data, counts=counts, rtol=1e-6)
    wl.testing.zero_weight_is_absence(
        part, *data, absent=np.arange(len(data[0])) % 4 == 1, rtol=1e-6
    )
    wl.testing.predictions_are_the_models(part, *data)
    wl.testing.same_seed_same_fit(part, *data)
    wl.testing.saving_keeps_every_bit(part, *data)
    wl.testing.clones_and_pickles(part, *data)
    wl.testing.evidence_is_plain(part, *data, required=["log_marginal_likelihood", "gradient_norm"])


@few
@given(data=tables(rows=(8, 30), outputs=(1, 1)), order=orders(8))
def test_samples_in_any_order(data, order):
    X, y = data
    wl.testing.samples_in_any_order(
        wl.BayesianLinearRegression(), X[:8], y[:8], order=order, rtol=1e-6
    )


def test_transactions(rng):
    X, y = made(rng, 15, 3)
    wl.testing.failed_fit_changes_nothing(wl.BayesianLinearRegression(), X, y)
    wl.testing.interrupted_fit_changes_nothing(wl.BayesianLinearRegression(), X, y)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"tol": -1.0}, "tol"),
        ({"alpha_1": np.nan}, "alpha_1"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"prior_precision": "much"}, "prior_precision"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"basis": 3}, "basis"),
    ],
)
def test_bad_parameters(wrong, word, rng):
    X, y = made(rng, 10, 2)
    with pytest.raises(wl.InputError, match=word) as caught:
        wl.BayesianLinearRegression(**wrong).fit(X, y)
    assert all([caught.value.came, caught.value.expected, caught.value.todo])


def test_bad_requests(rng):
    X, y = made(rng, 10, 2)
    model = wl.BayesianLinearRegression().fit(X, y)
    with pytest.raises(wl.InputError, match="level is 95"):
        model.prediction_interval(X, 95)
    exact = wl.BayesianLinearRegression(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0)
    wide = rng.normal(size=(5, 9))
    with pytest.raises(wl.InputError, match="reproduces y exactly"):
        exact.fit(wide, wide @ rng.normal(size=9))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": False, "C": 0.2}, {"class_weight": "balanced"}]
)
def test_replicates_are_the_fits_to_each_weighting(k, options, rng):
    X = rng.normal(size=(600, 4)) + 0.3
    y = (X @ rng.normal(size=(4, k)) + rng.gumbel(size=(600, k))).argmax(axis=1)
    weights = rng.poisson(1.0, size=(5, 600)).astype(float)
    first = wl.LogisticRegression(**options).fit(X, y)
    for member, weight in zip(first._replicates(X, y, weights), weights, strict=True):
        balance = first._read_again(X, y, None, sparse=True).weight  # that of all rows
        alone = wl.LogisticRegression(**{**options, "class_weight": None})
        alone.fit(X, y, weight if balance is None else weight * balance)
        np.testing.assert_allclose(member.coef_, alone.coef_, atol=2e-3)
        np.testing.assert_allclose(member.predict_proba(X), alone.predict_proba(X), atol=2e-3)
        assert member.evidence_["gradient_norm"].holds
        assert not np.array_equal(member.coef_, first.coef_)
