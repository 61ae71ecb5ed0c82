"""Intervals: definitions written out with refits and sorts, manners, evidence, bad input."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import Lasso, QuantileRegressor, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wonderland as wl
from wonderland.trust.conformal_bands import quantile_names
from wonderland.trust.conformal_ridge import leave_one_out


@pytest.fixture
def data(rng):
    X = rng.normal(size=(200, 3)) + 0.5
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=200) * (0.5 + np.abs(X[:, 0]))
    return X, y


def plus_by_definition(model, X, y, new, folds, *alphas):
    """Order statistics of μ_{−k(i)}(x) ∓ R_i for each level, with a refit for each fold."""
    low, high = np.empty((len(new), len(y))), np.empty((len(new), len(y)))
    for train, test in folds:
        fitted = clone(model).fit(X[train], y[train])
        error = np.abs(y[test] - fitted.predict(X[test]))
        low[:, test] = fitted.predict(new)[:, None] - error
        high[:, test] = fitted.predict(new)[:, None] + error
    ranks = [int(np.ceil((len(y) + 1) * (1 - alpha) - 1e-9)) for alpha in alphas]
    return [(np.sort(low)[:, len(y) - rank], np.sort(high)[:, rank - 1]) for rank in ranks]


@pytest.mark.parametrize(
    "model",
    [
        wl.Ridge(0.7),
        wl.Ridge(0.7, fit_intercept=False),
        wl.LinearRegression(),
        wl.Ridge(0.5, basis=wl.bases.Polynomial(2)),
        Ridge(3.0),
    ],
    ids=["ridge", "origin", "least squares", "basis", "scikit-learn"],
)
def test_closed_form_is_refitting(data, model):
    X, y, new, levels = data[0][:25], data[1][:25], data[0][40:60], (0.05, 0.1, 0.3)
    ours = wl.ConformalRegressor(model, "jackknife+").fit(X, y)
    assert ours.left_out_ is not None
    assert "closed form" in ours.evidence_["solver"].meaning
    folds = [(np.delete(np.arange(25), i), np.array([i])) for i in range(25)]
    meant = plus_by_definition(model, X, y, new, folds, *levels)
    for found, (low, high) in zip(ours.predict_interval(new, levels), meant, strict=True):
        np.testing.assert_allclose(found.lower, low, atol=1e-9)
        np.testing.assert_allclose(found.upper, high, atol=1e-9)


def test_closed_form_with_weights_and_wide_tables(rng):
    X, y = rng.normal(size=(30, 40)), rng.normal(size=30)
    weight = rng.random(30) + 0.1
    model = Ridge(2.0).fit(X, y, sample_weight=weight)
    left = leave_one_out(model, X, y, weight)
    rows = np.arange(30)
    for i in (0, 7, 29):
        own = Ridge(2.0).fit(X[rows != i], y[rows != i], sample_weight=weight[rows != i])
        np.testing.assert_allclose(model.predict(X) - left.shifts(X)[:, i], own.predict(X))
        assert np.isclose(left.errors[i], y[i] - own.predict(X[i : i + 1])[0])


def test_what_is_no_ridge_is_refitted(data):
    X, y, new = data[0][:15], data[1][:15], data[0][40:45]
    folds = [(np.delete(np.arange(15), i), np.array([i])) for i in range(15)]
    for model in (
        Lasso(0.1),
        KNeighborsRegressor(3),
        make_pipeline(StandardScaler(), Ridge()),
        wl.LinearRegression(positive=True),
    ):
        ours = wl.ConformalRegressor(model, "jackknife+", alpha=0.2).fit(X, y)
        assert ours.left_out_ is None
        assert "refitted" in ours.evidence_["solver"].meaning
        ((low, high),) = plus_by_definition(model, X, y, new, folds, 0.2)
        found = ours.predict_interval(new)
        np.testing.assert_allclose(found.lower, low, atol=1e-6)
        np.testing.assert_allclose(found.upper, high, atol=1e-6)
    assert leave_one_out(RidgeCV().fit(X, y), X, y) is None, "the data chose its penalty"


def test_folds_are_their_definition(data):
    X, y, new = data[0][:60], data[1][:60], data[0][60:80]
    cv = KFold(4, shuffle=True, random_state=0)
    found = wl.ConformalRegressor(Ridge(), "cv+", cv=cv).fit(X, y).predict_interval(new)
    ((low, high),) = plus_by_definition(Ridge(), X, y, new, cv.split(X), 0.1)
    np.testing.assert_allclose(found.lower, low)
    np.testing.assert_allclose(found.upper, high)


def test_the_widest_contains_the_plus(data):
    X, y = data
    for kind in ("cv", "jackknife"):
        plus = wl.ConformalRegressor(wl.Ridge(), f"{kind}+", random_state=0).fit(X, y)
        widest = wl.ConformalRegressor(wl.Ridge(), f"{kind}-minmax", random_state=0).fit(X, y)
        inner, outer = plus.predict_interval(X), widest.predict_interval(X)
        assert np.all(outer.lower <= inner.lower + 1e-12)
        assert np.all(outer.upper >= inner.upper - 1e-12)
        assert widest.promise_ == 0.9


def test_split_scores_are_their_definitions(data):
    X, y = data
    train, rest, new = slice(0, 80), slice(80, 150), X[150:]
    model = Ridge().fit(X[train], y[train])
    spread = Ridge().fit(X[train], np.log(np.abs(y[train] - model.predict(X[train])) + 0.1))
    rank = int(np.ceil(71 * 0.9))
    ours = wl.ConformalRegressor(model, cv="prefit").fit(X[rest], y[rest])
    q = np.sort(np.abs(y[rest] - model.predict(X[rest])))[rank - 1]
    assert np.isclose(ours.threshold_[0], q)
    np.testing.assert_allclose(ours.predict_interval(new).width, 2 * q)
    ours = wl.ConformalRegressor(
        model, cv="prefit", conformity_score="normalised", scale=spread
    ).fit(X[rest], y[rest])
    unit = np.exp(spread.predict(X[rest]))
    q = np.sort(np.abs(y[rest] - model.predict(X[rest])) / unit)[rank - 1]
    np.testing.assert_allclose(
        ours.predict_interval(new).width, 2 * q * np.exp(spread.predict(new))
    )
    low, high = (QuantileRegressor(quantile=t, alpha=0).fit(X[train], y[train]) for t in (0.1, 0.9))
    ours = wl.ConformalRegressor(low, cv="prefit", conformity_score="quantile", upper=high)
    found = ours.fit(X[rest], y[rest]).predict_interval(new)
    ends = low.predict(X[rest]), high.predict(X[rest])
    q = np.sort(np.maximum(np.minimum(*ends) - y[rest], y[rest] - np.maximum(*ends)))[rank - 1]
    np.testing.assert_allclose(found.lower, np.minimum(low.predict(new), high.predict(new)) - q)
    np.testing.assert_allclose(ours.predict(new), (low.predict(new) + high.predict(new)) / 2)


@pytest.mark.parametrize(
    ("model", "parameter", "names"),
    [
        (GradientBoostingRegressor(n_estimators=5), None, ("alpha", "loss")),
        (HistGradientBoostingRegressor(max_iter=5), None, ("quantile", "loss")),
        (QuantileRegressor(alpha=0), None, ("quantile", None)),
        (
            make_pipeline(StandardScaler(), QuantileRegressor(alpha=0)),
            "quantileregressor__quantile",
            ("quantileregressor__quantile", None),
        ),
    ],
)
def test_quantile_parameters_are_found(data, model, parameter, names):
    assert quantile_names(model, parameter) == names
    ours = wl.ConformalRegressor(
        model, conformity_score="quantile", quantile_parameter=parameter, random_state=0
    ).fit(*data)
    found = ours.predict_interval(data[0])
    assert found.contains(data[1]).mean() > 0.6  # 50 calibration rows: 0.9 with a wide spread
    assert ours.band_.low.get_params()[names[0]] == 0.05
    assert ours.band_.high.get_params()[names[0]] == 0.95


def test_crossed_ends_become_a_point(data):
    X, y = data
    wide = wl.Ridge().fit(X, y + 50), wl.Ridge().fit(X, y - 50)
    ours = wl.ConformalRegressor(
        wide[0], cv="prefit", conformity_score="quantile", upper=wide[1], alpha=0.5
    ).fit(X, y)
    assert np.all(ours.predict_interval(X).width >= 0)
    assert ours.threshold_[0] < -40


@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
def test_groups_are_fitted_alone(data, method):
    X, y = data
    wide = np.abs(X[:, 0]) > 1
    ours = wl.ConformalRegressor(
        wl.Ridge(), method, groups=lambda X: np.abs(X[:, 0]) > 1, random_state=0
    ).fit(X, y)
    found = ours.predict_interval(X)
    assert found.width[wide].mean() > 1.2 * found.width[~wide].mean()
    given = wl.ConformalRegressor(wl.Ridge(), method, random_state=0).fit(X, y, groups=wide)
    np.testing.assert_array_equal(given.predict_interval(X, groups=wide).lower, found.lower)


def test_manners(data):
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X, columns=list("abc"), index=range(5, 205))
    ours = wl.ConformalRegressor(make_pipeline(StandardScaler(), Ridge()), random_state=0)
    found = ours.fit(frame, y).predict_interval(frame, alpha=[0.05, 0.2])
    assert [intervals.alpha for intervals in found] == [0.05, 0.2]
    assert np.all(found[0].width >= found[1].width)
    assert list(found[0].to_frame().columns) == ["lower", "upper", "width"]
    assert list(found[0].to_frame().index) == list(frame.index)
    assert "200 samples" in repr(found[0])
    lower, upper = ours.prediction_interval(frame, level=0.95)
    np.testing.assert_array_equal(lower, found[0].lower)
    np.testing.assert_array_equal(upper, found[0].upper)
    search = GridSearchCV(
        wl.ConformalRegressor(wl.Ridge(), random_state=0),
        {"estimator__alpha": [0.1, 10.0], "method": ["split", "jackknife+"]},
    ).fit(X, y)
    assert search.best_estimator_.predict_interval(X[:3]).width.shape == (3,)


@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
def test_saving(data, method, tmp_path):
    X, y = data
    ours = wl.ConformalRegressor(wl.Ridge(), method, random_state=0).fit(X, y)
    wl.save(ours, tmp_path / "intervals.wl")
    again = wl.load(tmp_path / "intervals.wl")
    np.testing.assert_array_equal(again.predict_interval(X).lower, ours.predict_interval(X).lower)
    np.testing.assert_array_equal(again.predict(X), ours.predict(X))


def test_evidence(data):
    X, y = data
    evidence = wl.ConformalRegressor(wl.Ridge(), random_state=0).fit(X, y).evidence_
    assert evidence["promised_coverage"].value == 0.9
    assert {"coverage", "mean_width", "worst_bin", "solver"} <= set(evidence)
    jackknife = wl.ConformalRegressor(wl.Ridge(), "jackknife+").fit(X, y)
    assert jackknife.evidence_["promised_coverage"].value == 0.8
    assert jackknife.evidence_["coverage"].bound is None, "no exact band there"
    wl.testing.evidence_is_plain(wl.ConformalRegressor(wl.Ridge()), X, y, required=["coverage"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.5}, "strictly between 0 and 1"),
        ({"alpha": 1e-3}, "at least 999 calibration rows"),
        ({"method": "jackknife"}, r"Did you mean 'jackknife\+'"),
        ({"conformity_score": "quantile"}, "quantile_parameter"),
        ({"conformity_score": "quantile", "quantile_parameter": "q"}, "no parameter 'q'"),
        ({"conformity_score": "residual"}, "one of absolute"),
        ({"cv": "prefit"}, "not fitted"),
        ({"method": "cv+", "cv": 1}, "at least 2 folds"),
        ({"groups": "class"}, "wl.ConformalClassifier"),
        ({"method": "cv+", "shift": lambda X: np.ones(len(X))}, "method='split'"),
    ],
)
def test_bad_parameters(data, options, message):
    with pytest.raises(wl.InputError, match=message):
        wl.ConformalRegressor(wl.Ridge(), **options).fit(*data)


def test_second_estimators_that_are_not_fitted(data):
    X, y = data
    fitted = Ridge().fit(X, y)
    for options in (
        {"conformity_score": "normalised"},
        {"conformity_score": "normalised", "scale": Ridge()},
        {"conformity_score": "quantile", "upper": Ridge()},
    ):
        with pytest.raises(wl.InputError, match="fitted"):
            wl.ConformalRegressor(fitted, cv="prefit", **options).fit(X, y)


@pytest.mark.parametrize("scale", [0.1, 1.0, 1e4])
def test_candidates_of_the_closed_form_miss_nothing(rng, scale):
    """Also for rows far away, where leaving out one row changes much."""
    X, y = rng.normal(size=(300, 4)) + 3.0, rng.standard_t(2, size=300)
    left = leave_one_out(Ridge().fit(X, y), X, y)
    new = 3.0 + scale * rng.standard_t(2, size=(600, 4))
    error, kept = np.abs(left.errors), np.arange(300)
    for rank in (1, 150, 271, 300):
        down, up = left.reach(new, kept, error, rank)
        shift = left.shifts(new)
        np.testing.assert_allclose(down, np.sort(error + shift)[:, rank - 1], rtol=1e-9)
        np.testing.assert_allclose(up, np.sort(error - shift)[:, rank - 1], rtol=1e-9, atol=1e-12)
