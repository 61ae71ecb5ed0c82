"""Conformal predictors before scikit-learn's public checker, and beside MAPIE where it is there."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl
from wonderland.trust.conformal_labels import LabelRows, LabelRule, NewRows
from wonderland.trust.scores import APS

CHECKED = [
    wl.ConformalClassifier(wl.LogisticRegression(), alpha=0.4, random_state=0),
    wl.ConformalClassifier(LogisticRegression(), "cross", cv=2, conformity_score="aps", alpha=0.4),
    wl.ConformalRegressor(wl.Ridge(), alpha=0.4, random_state=0),
    wl.ConformalRegressor(Ridge(), "jackknife+", alpha=0.4),
]


@parametrize_with_checks(CHECKED)
def test_scikit_learns_public_checker(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checker asks for what has to be warned about
        check(estimator)


@pytest.fixture
def labels(rng):
    X, y = make_classification(
        1200, 8, n_informative=6, n_classes=4, random_state=int(rng.integers(99))
    )
    return X, y, LogisticRegression(max_iter=500).fit(X[:400], y[:400])


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
def test_thresholds_and_sets_are_mapies(labels, alpha):
    mapie = pytest.importorskip("mapie.classification")
    X, y, model = labels
    ours = wl.ConformalClassifier(model, alpha=alpha, cv="prefit").fit(X[400:700], y[400:700])
    theirs = mapie.SplitConformalClassifier(
        model, confidence_level=1 - alpha, conformity_score="lac", prefit=True
    ).conformalize(X[400:700], y[400:700])
    mask = theirs.predict_set(X[700:])[1][:, :, 0]
    np.testing.assert_array_equal(ours.predict_set(X[700:]).mask, mask)
    assert np.isclose(ours.threshold_[0], 1 - theirs._mapie_classifier.quantiles_[0], rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
def test_adaptive_sets_are_mapies(labels, alpha):
    """With the uniform numbers MAPIE draws (it calls u what is 1 − u in the paper)."""
    mapie = pytest.importorskip("mapie.classification")
    X, y, model = labels
    theirs = mapie.SplitConformalClassifier(
        model, confidence_level=1 - alpha, conformity_score="aps", prefit=True, random_state=5
    ).conformalize(X[400:700], y[400:700])
    mask = theirs.predict_set(
        X[700:], conformity_score_params={"include_last_label": "randomized"}
    )[1][:, :, 0]
    u = 1 - np.random.RandomState(5).uniform(size=500)
    rule = LabelRule(APS(), by_class=False)
    seen = LabelRows(model.predict_proba(X[400:700]), y[400:700], u=u[:300])
    calibration = rule.calibrate(seen)
    new = NewRows(np.zeros(500, int), None, u)
    found = rule.masks(calibration, [model.predict_proba(X[700:])], [alpha], new)[0]
    assert np.isclose(calibration.quantiles(alpha)[0], theirs._mapie_classifier.quantiles_[0])
    np.testing.assert_array_equal(found, mask)


@pytest.mark.parametrize("model", [Ridge(2.0), Ridge(1.0, fit_intercept=False), LinearRegression()])
def test_jackknife_plus_is_mapies(rng, model):
    mapie = pytest.importorskip("mapie.regression")
    X = rng.normal(size=(60, 4)) + 1.0
    y = X @ rng.normal(size=4) + rng.standard_t(3, size=60)
    new = rng.normal(size=(25, 4)) + 1.0
    ours = wl.ConformalRegressor(model, "jackknife+", alpha=0.1).fit(X, y)
    assert ours.left_out_ is not None
    theirs = mapie.CrossConformalRegressor(
        model, confidence_level=0.9, cv=60, method="plus"
    ).fit_conformalize(X, y)
    _, ends = theirs.predict_interval(new)
    found = ours.predict_interval(new)
    np.testing.assert_allclose(found.lower, ends[:, 0, 0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.upper, ends[:, 1, 0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("method", ["plus", "minmax"])
def test_cross_intervals_are_mapies(rng, method):
    mapie = pytest.importorskip("mapie.regression")
    from sklearn.model_selection import KFold

    X = rng.normal(size=(100, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=100)
    cv = KFold(5, shuffle=True, random_state=3)
    ours = wl.ConformalRegressor(
        Ridge(), "cv+" if method == "plus" else "cv-minmax", cv=cv, alpha=0.2
    )
    theirs = mapie.CrossConformalRegressor(Ridge(), confidence_level=0.8, cv=cv, method=method)
    _, ends = theirs.fit_conformalize(X, y).predict_interval(X[:30] + 0.1)
    found = ours.fit(X, y).predict_interval(X[:30] + 0.1)
    np.testing.assert_allclose(found.lower, ends[:, 0, 0], atol=1e-8)
    np.testing.assert_allclose(found.upper, ends[:, 1, 0], atol=1e-8)


def test_split_intervals_are_mapies(rng):
    mapie = pytest.importorskip("mapie.regression")
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=300)
    model = Ridge().fit(X[:100], y[:100])
    ours = wl.ConformalRegressor(model, cv="prefit", alpha=0.05).fit(X[100:200], y[100:200])
    theirs = mapie.SplitConformalRegressor(model, confidence_level=0.95, prefit=True)
    _, ends = theirs.conformalize(X[100:200], y[100:200]).predict_interval(X[200:])
    found = ours.predict_interval(X[200:])
    np.testing.assert_allclose(np.column_stack([*found]), ends[:, :, 0], atol=1e-10)
