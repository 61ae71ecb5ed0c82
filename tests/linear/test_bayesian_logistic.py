"""Bayesian logistic regression: Hessian, evidence, averages; agreement with `Posterior`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.integrate import dblquad
from scipy.special import expit

import wonderland as wl
from tests.laws.strategies import generators
from tests.laws.test_classifiers import labelled
from wonderland.core.arrays import in_float64
from wonderland.linear.bayesian_logistic import fit_bayesian_logistic

few = settings(max_examples=3)


def made(rng, n=60, d=3, k=2):
    X = rng.normal(size=(n, d)) + 0.5
    return X, (X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_covariance_is_the_inverse_hessian(k, intercept, rng):
    X, y = made(rng, k=k)
    weight = rng.uniform(0.3, 2.0, size=len(y))
    model = wl.BayesianLogisticRegression(C=0.7, fit_intercept=intercept, tol=1e-10)
    model.fit(X, y, weight)
    d, c = X.shape[1], 1 if k == 2 else k
    Z = np.column_stack([X, np.ones(len(X))]) if intercept else X
    theta = np.column_stack([model.coef_, model.intercept_]) if intercept else model.coef_

    def energy(flat):
        W = flat.reshape(c, -1)
        scores = jnp.asarray(Z) @ W.T
        if c == 1:
            scores = jnp.concatenate([jnp.zeros_like(scores), scores], axis=1)
        own = jax.nn.log_softmax(scores)[jnp.arange(len(y)), jnp.asarray(y)]
        return -(jnp.asarray(weight) * own).sum() + 0.5 * (W[:, :d] ** 2).sum() / 0.7

    flat = theta.ravel()
    H = in_float64(lambda: np.asarray(jax.hessian(energy)(jnp.asarray(flat))))()
    slope = in_float64(lambda: np.asarray(jax.grad(energy)(jnp.asarray(flat))))()
    assert np.abs(slope).max() < 1e-7
    sigma = model.sigma_
    if c == 1:
        np.testing.assert_allclose(sigma, np.linalg.inv(H), rtol=1e-7)
    else:  # equal on all directions that change a probability
        centre = np.kron(np.eye(c) - 1 / c, np.eye(Z.shape[1]))
        inner = centre @ np.linalg.pinv(H, rcond=1e-12) @ centre
        np.testing.assert_allclose(centre @ sigma @ centre, inner, rtol=1e-6, atol=1e-9)


def test_the_evidence_is_the_integral_where_data_are_many(rng):
    """log ∫ p(S | w) N(w; 0, C) dw over two coefficients, by quadrature."""
    X, y = made(rng, n=150, d=2)
    found = fit_bayesian_logistic(X, y, 0.8, fit_intercept=False)
    mode, sign = found.model.coef, np.where(y == 1, 1.0, -1.0)

    def log_joint(w):
        prior = -0.5 * (w @ w) / 0.8 - np.log(2 * np.pi * 0.8)
        return -np.logaddexp(0.0, -sign * (X @ w)).sum() + prior

    top = log_joint(mode)
    reach = 7 * np.sqrt(np.diag(found.model.root[0] @ found.model.root[0].T))
    bounds = [*(mode[0] + np.array([-1, 1]) * reach[0]), *(mode[1] + np.array([-1, 1]) * reach[1])]
    integral, _ = dblquad(
        lambda b, a: np.exp(log_joint(np.array([a, b])) - top), *bounds, epsabs=1e-6, epsrel=1e-6
    )
    exact = top + np.log(integral)
    assert abs(found.evidence["log_marginal_likelihood"] - exact) < 0.05


@pytest.mark.parametrize("k", [2, 3])
def test_predictions_are_those_of_posterior(k, rng):
    """Two ways to the same Gaussian: in closed form here, by automatic differentiation there."""
    X, y = made(rng, k=k)
    one = wl.BayesianLogisticRegression(C=0.5, tol=1e-9).fit(X, y)
    two = wl.Posterior(wl.LogisticRegression(C=0.5, tol=1e-9)).fit(X, y)
    rtol = 1e-6 if k == 2 else 2e-2  # points of a sequence in other axes
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=rtol, atol=rtol / 4)
    for a, b in zip(one.uncertainty(X), two.uncertainty(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 4)
    gamma = one.evidence_["effective_parameters"].value
    theirs = two.evidence_["effective_parameters"].value
    np.testing.assert_allclose(gamma, theirs, rtol=1e-5)


def test_many_samples_leave_no_doubt(rng):
    X, y = made(rng, n=20_000)
    one = wl.BayesianLogisticRegression().fit(X, y)
    np.testing.assert_allclose(
        one.predict_proba(X), wl.LogisticRegression().fit(X, y).predict_proba(X), atol=1e-3
    )


@pytest.mark.parametrize("k", [2, 3])
def test_the_best_weight_is_a_maximum(k, rng):
    X, y = made(rng, n=120, d=4, k=k)
    best = wl.BayesianLogisticRegression("evidence", tol=1e-8).fit(X, y)
    assert best.evidence_["evidence_slope"].holds
    value = best.evidence_["log_marginal_likelihood"].value
    for factor in (0.3, 0.9, 1.1, 3.0):
        other = wl.BayesianLogisticRegression(best.C_ * factor, tol=1e-8).fit(X, y)
        assert other.evidence_["log_marginal_likelihood"].value <= value + 1e-4


@pytest.mark.slow
def test_probabilities_are_calibrated_under_the_prior(rng):
    """Coefficients drawn from the prior, few samples: averages are honest, modes too sure."""
    said, plain, right = [], [], []
    for _ in range(1500):
        w = rng.normal(size=3) * 2.0
        X = rng.normal(size=(22, 3))
        y = rng.uniform(size=22) < expit(X @ w)
        if len(set(y[:20])) < 2:
            continue
        model = wl.BayesianLogisticRegression(C=4.0, fit_intercept=False).fit(X[:20], y[:20])
        said.append(model.predict_proba(X[20:])[:, 1])
        plain.append(expit(model.decision_function(X[20:])))
        right.append(y[20:])
    said, plain, right = (np.concatenate(part).astype(float) for part in (said, plain, right))

    def excess(p):  # Σ (y − p)(2·1[p > ½] − 1): how much surer than right
        return float(((right - p) * np.sign(p - 0.5)).mean())

    def loss(p):
        return float(-np.log(np.where(right > 0, p, 1 - p)).mean())

    assert abs(excess(said)) < 0.04
    assert loss(said) < loss(plain)


@few
@given(data=labelled(), rng=generators())
def test_laws(data, rng):
    part = wl.BayesianLogisticRegression(tol=1e-9)
    counts = rng.integers(1, 4, size=len(data[0]))
    wl.testing.weights_are_repetition(part, *data, counts=counts, rtol=1e-5)
    wl.testing.saving_keeps_every_bit(part, *data)
    wl.testing.clones_and_pickles(part, *data)
    required = ["log_marginal_likelihood", "effective_parameters", "gradient_norm"]
    wl.testing.evidence_is_plain(part, *data, required=required)


@pytest.mark.parametrize(
    "wrong", [{"C": -1.0}, {"C": np.inf}, {"C": "evidences"}, {"tol": -1}, {"solver": "x"}]
)
def test_bad_parameters(wrong, rng):
    with pytest.raises(wl.InputError) as caught:
        wl.BayesianLogisticRegression(**wrong).fit(*made(rng))
    assert all([caught.value.came, caught.value.expected, caught.value.todo])
