"""Machines on features: with all landmarks they are the exact kernel machine."""

import numpy as np
import pytest
from sklearn import svm

import wonderland as wl
from wonderland.svm.approximate_machine import Machine, fit_machines


def data(rng, n=120):
    X = rng.normal(size=(n, 2))
    return X, np.where((X**2).sum(axis=1) + 0.3 * rng.normal(size=n) > 1.4, 1.0, -1.0)


def test_all_landmarks_give_the_exact_machine(rng):
    X, signs = data(rng)
    cost = rng.uniform(0.5, 3.0, size=len(X))
    phi = wl.kernels.Nystroem(len(X)).features(wl.kernels.Gaussian(0.7), X, rng)
    found = fit_machines(phi, X, [Machine("", np.arange(len(X)), signs, cost)], tol=1e-9)
    peer = svm.SVC(C=1.0, gamma=0.7, tol=1e-10).fit(X, signs, sample_weight=cost)
    np.testing.assert_allclose(found.model.predict(X), peer.decision_function(X), atol=1e-4)
    claims = {claim.name: claim for claim in found.claims}
    assert claims["duality_gap"].holds
    dual = peer.dual_coef_[0]
    K = wl.kernels.Gaussian(0.7).matrix(peer.support_vectors_)
    best = np.abs(dual).sum() - 0.5 * dual @ K @ dual
    np.testing.assert_allclose(claims["primal"].value, best, rtol=1e-7)
    assert claims["approximation_share"].value < 1e-9


def test_regression_and_several_problems(rng):
    X, signs = data(rng)
    target = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))
    kernel = wl.kernels.Gaussian(0.5)
    phi = wl.kernels.PivotedCholesky(len(X), tolerance=0.0).features(kernel, X, rng)
    rows, ones = np.arange(len(X)), np.ones(len(X))
    one = Machine("regression", rows, target, 2.0 * ones, epsilon=0.1)
    found = fit_machines(phi, X, [one], tol=1e-9)
    peer = svm.SVR(C=2.0, gamma=0.5, epsilon=0.1, tol=1e-10).fit(X, target)
    np.testing.assert_allclose(found.model.predict(X), peer.predict(X), atol=1e-4)
    half = rows[::2]
    two = [Machine("all", rows, signs, ones), Machine("half", half, signs[half], ones[half])]
    both = fit_machines(phi, X, two)
    assert both.model.predict(X).shape == (len(X), 2)
    assert both.status.ok


@pytest.mark.parametrize("recipe", [wl.kernels.Nystroem(60), wl.kernels.RandomFeatures(400)])
def test_few_features_classify(rng, recipe):
    X, signs = data(rng, n=2000)
    phi = recipe.features(wl.kernels.Gaussian(0.7), X, rng)
    found = fit_machines(phi, X, [Machine("", np.arange(len(X)), signs, np.ones(len(X)))])
    exact = svm.SVC(gamma=0.7).fit(X, signs)
    agree = np.mean(np.sign(found.model.predict(X)) == exact.predict(X))
    assert agree > 0.97
