"""Laplace's method: Hessians against finite differences, averages against integration."""

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, xlogy
from scipy.stats import norm

import wonderland as wl
from wonderland.core.arrays import in_float64
from wonderland.losses.averages import (
    entropy,
    entropy_average,
    sigmoid_average,
    softmax_average,
)
from wonderland.shell.objective import Objective
from wonderland.trust.laplace import curvature, energy, gaussian_of, whitening
from wonderland.trust.posterior_layout import Layout


def objective_of(estimator, X, y, weight=None):
    return estimator.fit(X, y, weight)._objective(X, y, weight)


def differences(objective):
    """The Hessian and gradient of the energy by central differences of its values."""
    theta, rest = objective.split()
    layout = Layout.of(theta)
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(theta)])
    data = (np.asarray(objective.X), np.asarray(objective.target), np.asarray(objective.weight))
    parts = (objective.loss, objective.penalty)
    p, h = len(flat), 1e-3
    moves = [
        a * np.eye(p)[i] + b * np.eye(p)[j] for i in range(p) for j in range(p) for a, b in SIGNS
    ]
    points = np.concatenate(
        [flat + h * np.array(moves), flat + h * np.eye(p), flat - h * np.eye(p)]
    )

    @in_float64
    def values(points):
        return np.asarray(jax.vmap(lambda at: energy(layout, rest, parts, at, data))(points))

    found = values(points)
    corners, up, down = found[: -2 * p].reshape(p, p, 4), found[-2 * p : -p], found[-p:]
    return corners @ [1, -1, -1, 1] / (4 * h * h), (up - down) / (2 * h)


SIGNS = [(1, 1), (1, -1), (-1, 1), (-1, -1)]


def made(rng, n=40, d=3, k=2):
    X = rng.normal(size=(n, d)) + 0.5
    scores = X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))
    return X, scores.argmax(axis=1)


CASES = {
    "two classes": lambda: (wl.LogisticRegression(C=0.7, tol=1e-10), 2),
    "three classes": lambda: (wl.LogisticRegression(C=2.0, tol=1e-10), 3),
    "no intercept": lambda: (wl.LogisticRegression(fit_intercept=False, tol=1e-10), 3),
    "prior": lambda: (wl.LogisticRegression(prior=(0.5, [1.0, 2.0, 3.0]), tol=1e-10), 2),
    "ridge": lambda: (wl.Ridge(0.8), 0),
    "least squares": lambda: (wl.LinearRegression(), 0),
    "basis": lambda: (wl.Ridge(0.8, basis=wl.bases.Polynomial(2)), 0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_hessians_are_finite_differences(case, weighted, rng):
    estimator, k = CASES[case]()
    X, y = made(rng, k=max(k, 2))
    y = y if k else X @ [1.0, -1.0, 0.5] + rng.normal(size=len(X))
    weight = rng.uniform(0.2, 2.0, size=len(y)) if weighted else None
    objective = objective_of(estimator, X, y, weight)
    data, prior, slope = curvature(objective)
    H, steep = differences(objective)
    np.testing.assert_allclose(data + prior, H, rtol=1e-4, atol=1e-4 * np.abs(H).max())
    np.testing.assert_allclose(slope, steep, atol=1e-4 * np.abs(H).max())
    assert np.abs(slope).max() < 1e-6 * len(y)  # the fit is the maximum of this very posterior
    diagonal = curvature(objective, diagonal=True)
    np.testing.assert_allclose(diagonal[0], np.diag(data), rtol=1e-9)
    found = gaussian_of(objective)
    inverse = found.noise * np.linalg.inv(data + prior)
    np.testing.assert_allclose(found.root @ found.root.T, inverse, rtol=1e-7, atol=1e-12)
    T = whitening(objective)
    np.testing.assert_allclose(T @ T.T, inverse, rtol=1e-2, atol=1e-3 * np.abs(inverse).max())


def test_the_curvature_of_a_network_is_gauss_newton(rng):
    """JᵀJ of all outputs plus the penalty, J by finite differences of the predictions."""
    model = in_float64(lambda: eqx.nn.MLP(2, 1, 4, 1, jax.nn.tanh, key=jax.random.key(0)))()
    model = jax.tree.map(
        lambda leaf: np.asarray(leaf, np.float64) if eqx.is_array(leaf) else leaf, model
    )
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)

    def penalty(model):
        return 0.05 * sum((leaf**2).sum() for leaf in jax.tree.leaves(eqx.filter(model, free)))

    free = jax.tree.map(eqx.is_inexact_array_like, model)
    weight = rng.uniform(size=30)
    objective = Objective(
        model, free, lambda z, y: 0.5 * ((z - y) ** 2).sum(), penalty, X, y, weight, noise=0.3
    )
    theta, rest = objective.split()
    layout = Layout.of(theta)
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(theta)])

    @in_float64
    def outputs(at):
        both = eqx.combine(layout.unflatten(at), rest)
        return np.asarray(jax.vmap(both)(jax.numpy.asarray(X)))[:, 0]

    step = 1e-5 * np.eye(len(flat))
    J = np.stack([(outputs(flat + e) - outputs(flat - e)) / 2e-5 for e in step], axis=1)
    data, prior, _ = curvature(objective)
    np.testing.assert_allclose(data, (J.T * weight) @ J, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(prior, 0.1 * np.eye(len(flat)), atol=1e-12)
    found = gaussian_of(objective)
    mean, spread = found.moments(X)
    np.testing.assert_allclose(mean[:, 0], outputs(flat), rtol=1e-9)
    expected = 0.3 * np.einsum("np,pq,nq->n", J, np.linalg.inv(data + prior), J)
    np.testing.assert_allclose(spread[:, 0, 0], expected, rtol=1e-4)


@pytest.mark.parametrize("mean", [-12.0, -1.3, 0.0, 0.4, 6.0])
@pytest.mark.parametrize("deviation", [0.0, 0.3, 1.0, 1.0001, 4.0, 60.0])
def test_averages_are_integrals(mean, deviation):
    def h(f):
        p = expit(f)
        return -(xlogy(p, p) + xlogy(1 - p, 1 - p))

    for average, g in ((sigmoid_average, expit), (entropy_average, h)):
        found = average(np.array([mean]), np.array([deviation]))[0]
        if deviation == 0:
            np.testing.assert_allclose(found, g(mean), rtol=1e-12)
            continue
        near = np.clip(
            np.array([-40.0, -5.0, 0.0, 5.0, 40.0]), mean - 9 * deviation, mean + 9 * deviation
        )
        ends = (mean - 9 * deviation, mean + 9 * deviation)
        true = quad(
            lambda f, g=g: g(f) * norm.pdf(f, mean, deviation),
            *ends,
            points=near,
            limit=500,
            epsabs=1e-13,
        )[0]
        np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-11)


def test_softmax_averages_are_monte_carlo_averages(rng):
    root, mean = rng.normal(size=(6, 3, 3)), rng.normal(size=(6, 3))
    average, expected = softmax_average(mean, root)
    logits = mean[:, None] + np.einsum("nkr,qr->nqk", root, rng.normal(size=(200_000, 3)))
    p = np.exp(logits - logits.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(average, p.mean(axis=1), atol=6e-3)
    np.testing.assert_allclose(expected, entropy(p).mean(axis=1), atol=8e-3)
    np.testing.assert_allclose(average.sum(axis=1), 1.0)


def test_least_squares_has_its_own_intervals(rng):
    """With a flat prior Laplace's method is exact: the intervals of classical regression."""
    X = rng.normal(size=(25, 3)) + 2.0
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=25)
    for estimator in (wl.LinearRegression(), wl.LinearRegression(fit_intercept=False)):
        found = wl.Posterior(estimator).fit(X, y)
        exact = found.estimator_.prediction_interval(X, 0.9)
        np.testing.assert_allclose(found.prediction_interval(X, 0.9), exact, rtol=1e-7)
        effective = found.evidence_["effective_parameters"].value
        np.testing.assert_allclose(effective, 3 + estimator.fit_intercept, rtol=1e-9)


def test_two_classes_as_three(rng):
    """Softmax over two logits is the logistic function of their difference."""
    X, y = made(rng, n=60)
    found = wl.Posterior(wl.LogisticRegression(tol=1e-10)).fit(X, y)
    mean, spread = found.predictive_.gaussian.moments(X)
    logits = np.column_stack([np.zeros(len(X)), mean[:, 0]])
    root = np.zeros((len(X), 2, 1))
    root[:, 1, 0] = np.sqrt(spread[:, 0, 0])
    average, expected = softmax_average(logits, root, 4096)
    np.testing.assert_allclose(found.predict_proba(X), average, atol=1e-4)
    np.testing.assert_allclose(found.uncertainty(X).aleatoric, expected, atol=1e-4)


def test_doubt_grows_away_from_the_data(rng):
    X, y = made(rng, n=80)
    one = wl.LogisticRegression().fit(X, y)
    many = wl.Posterior(wl.LogisticRegression()).fit(X, y)
    far = 50.0 * X
    sure, doubt = one.predict_proba(far).max(axis=1), many.predict_proba(far).max(axis=1)
    assert np.all(doubt <= sure + 1e-12)
    np.testing.assert_array_equal(one.predict(X), many.predict(X))
    near, away = many.uncertainty(X), many.uncertainty(far)
    assert np.median(away.epistemic_share) > np.median(near.epistemic_share)


def test_columns_that_nothing_determines_are_told(rng):
    X, y = made(rng, n=30)
    X = np.column_stack([X, X[:, 0]])
    found = wl.Posterior(wl.LinearRegression()).fit(X, y.astype(float))
    assert not found.evidence_["rank"].holds
    assert found.evidence_["rank"].value == 4


def test_kinks_are_refused(rng):
    X, y = made(rng)
    with pytest.raises(wl.InputError, match="kinks"):
        wl.Posterior(wl.LogisticRegression(l1_ratio=0.5)).fit(X, y)
    with pytest.raises(wl.InputError, match="positive=True"):
        wl.Posterior(wl.Ridge(positive=True)).fit(X, y.astype(float))
    with pytest.raises(wl.InputError, match="leave nothing to tell the noise"):
        wl.Posterior(wl.LinearRegression()).fit(X[:4], X[:4, 0] ** 2)
