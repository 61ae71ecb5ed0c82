"""Machines on features: with all landmarks they are the exact kernel machine."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.utils.estimator_checks import check_estimator

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


RECIPES = [wl.kernels.Nystroem(500), wl.kernels.PivotedCholesky(500, tolerance=0.0)]


@pytest.mark.parametrize("recipe", RECIPES, ids=["nystroem", "pivots"])
@pytest.mark.parametrize("against", ["ovo", "ovr"])
def test_svc_with_all_rows_as_landmarks_is_the_exact_one(recipe, against, rng):
    X = rng.normal(size=(120, 2))
    names = np.array(["low", "middle", "top"])[np.digitize(np.sin(X[:, 0]) + X[:, 1], [-0.5, 0.6])]
    weight = rng.integers(0, 3, size=120).astype(float)
    given = {"C": 3.0, "gamma": 0.7, "tol": 1e-9, "multi_class": against, "random_state": 0}
    exact = wl.SVC(**given).fit(X, names, weight)
    ours = wl.SVC(**given, approximation=recipe).fit(X, names, weight)
    np.testing.assert_array_equal(ours.predict(X), exact.predict(X))
    for shape in ("ovr", "ovo"):
        scores = [m.set_params(decision_function_shape=shape) for m in (ours, exact)]
        got, expected = (m.decision_function(X) for m in scores)
        np.testing.assert_allclose(got, expected, atol=1e-4)
    np.testing.assert_allclose(
        ours.evidence_["primal"].value, exact.evidence_["primal"].value, rtol=1e-7
    )
    assert ours.evidence_["dual"].value <= ours.evidence_["primal"].value * (1 + 1e-12)
    assert ours.evidence_["duality_gap"].holds
    assert ours.evidence_["approximation_error"].holds
    assert ours.evidence_["approximation_share"].value < 1e-9
    assert ours.intercept_.shape == exact.intercept_.shape
    assert ours.n_support_.sum() == len(ours.support_)
    assert not weight[ours.support_].min() <= 0


@pytest.mark.parametrize("recipe", RECIPES, ids=["nystroem", "pivots"])
def test_svr_with_all_rows_as_landmarks_is_the_exact_one(recipe, rng):
    X = rng.normal(size=(120, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=120)
    weight = rng.integers(0, 3, size=120).astype(float)
    given = {"C": 2.0, "gamma": 0.5, "epsilon": 0.05, "tol": 1e-9}
    exact = wl.SVR(**given).fit(X, y, weight)
    ours = wl.SVR(**given, approximation=recipe, random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), exact.predict(X), atol=1e-4)
    np.testing.assert_allclose(
        ours.evidence_["primal"].value, exact.evidence_["primal"].value, rtol=1e-7
    )
    assert ours.evidence_["duality_gap"].holds
    assert ours.evidence_["approximation_share"].value < 1e-9


def test_the_bound_tells_what_few_landmarks_lose(rng):
    X, signs = data(rng, n=400)
    exact = wl.SVC(gamma=0.7, tol=1e-8).fit(X, signs)
    errors, apart = [], []
    for rank in (5, 20, 80):
        recipe = wl.kernels.PivotedCholesky(rank, tolerance=0.0)
        ours = wl.SVC(gamma=0.7, tol=1e-8, approximation=recipe).fit(X, signs)
        errors.append(ours.evidence_["approximation_error"].value)
        apart.append(np.abs(ours.decision_function(X) - exact.decision_function(X)).max())
    assert errors[0] > errors[1] > errors[2]
    assert apart[0] > apart[1] > apart[2]


def _both():
    for recipe in (wl.kernels.Nystroem(15), wl.kernels.RandomFeatures(30)):
        yield wl.SVC(approximation=recipe, random_state=0), True
        yield wl.SVR(approximation=recipe, random_state=0), False


def test_laws(rng):
    X, signs = data(rng, n=60)
    for model, labels in _both():
        y = np.where(signs > 0, "in", "out") if labels else X[:, 0] ** 2 + X[:, 1]
        wl.testing.same_seed_same_fit(model, X, y)
        wl.testing.saving_keeps_every_bit(model, X, y)
        wl.testing.clones_and_pickles(model, X, y)
        wl.testing.failed_fit_changes_nothing(model, X, signs if labels else y)
        required = ["solver", "primal", "dual", "duality_gap", "approximation_error"]
        wl.testing.evidence_is_plain(model, X, y, required=required)
        if not labels:
            wl.testing.predictions_are_the_models(model, X, y)


def test_sparse_tables(rng):
    X, signs = data(rng, n=80)
    X[X < 0] = 0.0
    for model, _ in _both():
        dense = model.fit(X, signs).predict(X)
        table = sp.csr_array(X)
        np.testing.assert_allclose(model.fit(table, signs).predict(table), dense, atol=1e-2)


@pytest.mark.parametrize("make", [wl.SVC, wl.SVR])
def test_what_cannot_be_approximated_is_told(make, rng):
    X, signs = data(rng, n=30)
    recipe = wl.kernels.Nystroem(5)
    with pytest.raises(wl.InputError, match="Nystroem"):
        make(approximation="nystroem").fit(X, signs)
    with pytest.raises(wl.InputError, match="precomputed"):
        make(kernel="precomputed", approximation=recipe).fit(X @ X.T, signs)
    with pytest.raises(wl.InputError, match="C is inf"):
        make(C=np.inf, approximation=recipe).fit(X, signs)
    with pytest.raises(AttributeError, match="linear kernel"):
        make(kernel="linear", approximation=recipe).fit(X, signs).coef_  # noqa: B018  # reading it is the test
    if make is wl.SVC:
        with pytest.raises(wl.InputError, match="probability=True"):
            make(probability=True, approximation=recipe).fit(X, signs)


@pytest.mark.slow
@pytest.mark.parametrize("make", [wl.SVC, wl.SVR])
def test_public_checker(make):
    model = make(approximation=wl.kernels.Nystroem(200), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(model, on_skip=None)
