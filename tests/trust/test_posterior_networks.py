"""Averages over networks: Laplace's method and ensembles trained in one program."""

import numpy as np
import pytest

import wonderland as wl

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def curve(rng, n=200):
    X = rng.uniform(-1, 1, size=(n, 1)).astype(np.float32)
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=n)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bits", "classes", "squared"])
def test_laplace_around_networks(kind, rng):
    X, y = curve(rng)
    options = {"max_iter": 200, "alpha": 1e-2, "random_state": 0, "solver": "lbfgs", "tol": 1e-6}
    if kind == "squared":
        network = wl.MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", **options)
    else:
        network = wl.MLPClassifier((8,), activation="tanh", **options)
        y = np.digitize(y + 0.3 * rng.normal(size=len(y)), [0.0] if kind == "bits" else [-0.5, 0.5])
    found = wl.Posterior(network).fit(X, y)
    assert found.evidence_["gradient_norm"].value < 1e-2
    assert 1 < found.evidence_["effective_parameters"].value < 50
    near, far = found.uncertainty(X[:50]), found.uncertainty(4 * np.sign(X[:50]))
    assert np.median(far.epistemic) > np.median(near.epistemic)
    np.testing.assert_allclose(near.total, near.epistemic + near.aleatoric)
    if kind == "squared":
        low, high = found.prediction_interval(X, 0.9)
        assert 0.8 < np.mean((low <= y) & (y <= high)) < 0.98
        np.testing.assert_allclose(found.predict(X), found.estimator_.predict(X), atol=1e-4)
    else:
        np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)
        assert found.score(X, y) > 0.6


def test_members_of_networks_train_together(rng):
    X, y = curve(rng)
    network = wl.MLPRegressor(hidden_layer_sizes=(16,), max_iter=60, learning_rate_init=0.05)
    for bootstrap in (True, False):
        found = wl.Posterior(
            network, method="ensemble", members=4, bootstrap=bootstrap, random_state=0
        ).fit(X, y)
        assert found.evidence_["together"].value
        assert np.ptp(found.predict_members(X), axis=0).max() > 0
        assert found.score(X, y) > 0.2


def test_what_has_no_posterior_is_told(rng):
    X, y = curve(rng, n=60)
    network = wl.MLPRegressor(hidden_layer_sizes=(4,), loss="gaussian", max_iter=2)
    with pytest.raises(wl.InputError, match="gaussian"):
        wl.Posterior(network).fit(X, y)
