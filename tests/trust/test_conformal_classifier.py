"""Sets of labels: definition, manners of an estimator, evidence, bad input."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import wonderland as wl
from wonderland.trust.conformal_labels import uniform

NAMES = np.array(["cat", "dog", "eel"])


@pytest.fixture
def data(rng):
    X, y = make_classification(
        600, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=int(rng.integers(1000))
    )
    return X, NAMES[y]


def conformal(**options):
    return wl.ConformalClassifier(GaussianNB(), **{"random_state": 0, **options})


def test_cross_is_its_definition(data):
    X, y = data[0][:60], data[1][:60]
    cv = KFold(4, shuffle=True, random_state=1)
    ours = conformal(method="cross", cv=cv, alpha=0.2).fit(X, y)
    new = data[0][60:80]
    codes = np.searchsorted(NAMES, y)
    inside = np.zeros((20, 3), dtype=int)
    for train, test in cv.split(X):
        model = GaussianNB().fit(X[train], y[train])
        own = 1 - model.predict_proba(X[test])[np.arange(len(test)), codes[test]]
        strange = 1 - model.predict_proba(new)
        inside += (own[:, None, None] < strange[None]).sum(axis=0)
    np.testing.assert_array_equal(ours.predict_set(new).mask, inside < 0.8 * 61)


@pytest.mark.parametrize("score", ["lac", "aps", "raps", "margin"])
@pytest.mark.parametrize("randomise", [False, True])
def test_calibration_rows_are_covered_as_ranks_say(data, score, randomise):
    X, y = data
    model = GaussianNB().fit(X[:200], y[:200])
    ours = wl.ConformalClassifier(
        model, conformity_score=score, cv="prefit", randomise=randomise, random_state=3
    ).fit(X[200:], y[200:])
    rows = ours.calibration_.parts[0][0].scores
    assert np.mean(rows <= ours.calibration_.quantiles(0.1)[0]) >= 0.9
    np.testing.assert_array_equal(ours.predict(X), model.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), model.predict_proba(X))


def test_levels_share_one_fit(data):
    X, y = data
    ours = conformal(alpha=0.1).fit(X, y)
    found = ours.predict_set(X[:50], alpha=[0.05, 0.1, 0.3])
    assert [sets.alpha for sets in found] == [0.05, 0.1, 0.3]
    assert np.all(found[0].mask >= found[1].mask)
    assert np.all(found[1].mask >= found[2].mask)
    np.testing.assert_array_equal(found[1].mask, ours.predict_set(X[:50]).mask)


def test_classes_and_groups_have_their_own_thresholds(data):
    X, y = data
    model = GaussianNB().fit(X[:200], y[:200])
    p, codes = model.predict_proba(X[200:]), np.searchsorted(NAMES, y[200:])
    ours = wl.ConformalClassifier(model, cv="prefit", groups="class").fit(X[200:], y[200:])
    for c in range(3):
        own = np.sort(-p[codes == c, c])
        rank = int(np.ceil((len(own) + 1) * 0.9 - 1e-12))
        assert ours.threshold_[c] == -own[rank - 1]
    np.testing.assert_array_equal(
        ours.predict_set(X[:9]).mask, model.predict_proba(X[:9]) >= ours.threshold_
    )
    side = np.where(X[:, 0] > 0, "right", "left")
    grouped = wl.ConformalClassifier(model, cv="prefit").fit(X[200:], y[200:], groups=side[200:])
    called = wl.ConformalClassifier(
        model, cv="prefit", groups=lambda X: np.where(X[:, 0] > 0, "right", "left")
    ).fit(X[200:], y[200:])
    np.testing.assert_array_equal(
        grouped.predict_set(X, groups=side).mask, called.predict_set(X).mask
    )
    alone = wl.ConformalClassifier(model, cv="prefit").fit(
        X[200:][side[200:] == "left"], y[200:][side[200:] == "left"]
    )
    np.testing.assert_array_equal(
        called.predict_set(X).mask[side == "left"], alone.predict_set(X[side == "left"]).mask
    )


def test_equal_weights_change_nothing(data):
    X, y = data
    plain = conformal().fit(X, y)
    weighed = conformal(shift=lambda X: np.full(len(X), 7.0)).fit(X, y)
    given = conformal().fit(X, y, weights=np.ones(len(y)))
    mask = plain.predict_set(X).mask
    np.testing.assert_array_equal(weighed.predict_set(X).mask, mask)
    np.testing.assert_array_equal(given.predict_set(X, weights=np.ones(len(X))).mask, mask)
    assert np.all(given.predict_set(X, weights=np.full(len(X), 1e9)).size == 3), "mass at infinity"


def test_manners(data):
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcde"), index=range(100, 700))
    frame["side"] = np.where(X[:, 0] > 0, 1.0, 0.0)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    ours = wl.ConformalClassifier(pipeline, groups="side", random_state=0).fit(frame, y)
    sets = ours.predict_set(frame)
    assert list(sets.to_frame().columns) == [*NAMES, "size"]
    assert list(sets.to_frame().index) == list(frame.index)
    assert list(ours.feature_names_in_) == list(frame.columns)
    assert sets.contains(y).mean() > 0.85
    assert sets.labels()[0] == sets[0] == next(iter(sets))
    assert "600 samples" in repr(sets)
    again = clone(ours)
    assert not hasattr(again, "calibration_")
    np.testing.assert_array_equal(again.fit(frame, y).predict_set(frame).mask, sets.mask)
    search = GridSearchCV(
        wl.ConformalClassifier(LogisticRegression(), random_state=0),
        {"estimator__C": [0.01, 1.0], "conformity_score": ["lac", "aps"]},
    ).fit(X, y)
    assert search.best_estimator_.predict_set(X[:3]).mask.shape == (3, 3)
    assert make_pipeline(StandardScaler(), conformal()).fit(X, y)[-1].evidence_


def test_sources_of_calibration_rows(data):
    X, y = data
    assert conformal().fit(X, y).calibration_.counts[0] == 150
    assert conformal(cv=0.4).fit(X, y).calibration_.counts[0] == 240
    split = ShuffleSplit(1, test_size=100, random_state=0)
    assert conformal(cv=split).fit(X, y).calibration_.counts[0] == 100
    assert conformal(method="cross").fit(X, y).calibration_.counts[0] == 600
    assert conformal().fit(X[:30], y[:30]).calibration_.counts[0] == 9, "as the level needs"
    frozen = FrozenEstimator(GaussianNB().fit(X[:100], y[:100]))
    ours = wl.ConformalClassifier(frozen, random_state=0)
    np.testing.assert_array_equal(
        clone(ours).fit(X[100:], y[100:]).predict(X), frozen.predict(X), "cloning keeps it"
    )


def test_without_probabilities(data):
    X, y = data
    for part in (slice(None), y != "eel"):
        ours = wl.ConformalClassifier(LinearSVC(), conformity_score="aps", random_state=0)
        sets = ours.fit(X[part], y[part]).predict_set(X[part])
        assert sets.contains(y[part]).mean() > 0.8
        assert not hasattr(ours, "predict_proba")


def test_saving_and_seeds(data, tmp_path):
    X, y = data
    ours = wl.ConformalClassifier(
        wl.LogisticRegression(), "cross", conformity_score="aps", randomise=True, random_state=1
    ).fit(X, y)
    wl.save(ours, tmp_path / "sets.wl")
    again = wl.load(tmp_path / "sets.wl")
    np.testing.assert_array_equal(again.predict_set(X).mask, ours.predict_set(X).mask)
    np.testing.assert_array_equal(ours.predict_set(X).mask, ours.predict_set(X).mask)


def test_evidence(data):
    X, y = data
    evidence = conformal().fit(X, y).evidence_
    assert evidence["promised_coverage"].value == 0.9
    low, high = evidence["coverage"].bound
    assert low < 0.9 < high
    assert evidence["coverage"].holds == bool(evidence["coverage"].value >= low)
    assert {"mean_size", "singletons", "empty", "worst_class"} <= set(evidence)
    sorted_rows = conformal(method="cross", groups=lambda X: X[:, 0] > 0).fit(X, y).evidence_
    assert "worst_group" in sorted_rows
    assert sorted_rows["promised_coverage"].value == 0.8
    assert "coverage" not in conformal(alpha=0.01).fit(X, y).evidence_, "too few for halves"
    wl.testing.evidence_is_plain(conformal(), X, y, required=["coverage", "calibration_rows"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "strictly between 0 and 1"),
        ({"alpha": 90}, "Pass alpha=0.1 for 90% coverage"),
        ({"alpha": 1e-3}, "at least 999 calibration rows"),
        ({"method": "splt"}, "Did you mean 'split'"),
        ({"conformity_score": "asp"}, "Did you mean 'aps'"),
        ({"penalty": -1.0}, "≥ 0"),
        ({"cv": 5}, "a share of the rows between 0 and 1"),
        ({"cv": "prefit"}, "not fitted"),
        ({"method": "cross", "cv": 1}, "at least 2 folds"),
        ({"shift": "estimate"}, "X_target is None"),
        ({"method": "cross", "shift": lambda X: np.ones(len(X))}, "method='split'"),
        ({"shift": lambda X: -np.ones(len(X))}, "likelihood ratio ≥ 0"),
        ({"groups": lambda X: X}, "one group for each"),
    ],
)
def test_bad_parameters(data, options, message):
    with pytest.raises(wl.InputError, match=message):
        conformal(**options).fit(*data)


def test_bad_data(data):
    X, y = data
    model = GaussianNB().fit(X[y != "eel"], y[y != "eel"])
    with pytest.raises(wl.InputError, match="'eel'"):
        wl.ConformalClassifier(model, cv="prefit").fit(X, y)
    model = GaussianNB().fit(X, y)
    few = np.flatnonzero(y != "eel")[:100]
    with pytest.raises(wl.InputError, match="0 calibration rows in class 'eel'"):
        wl.ConformalClassifier(model, cv="prefit", groups="class").fit(X[few], y[few])
    fitted = conformal().fit(X, y)
    with pytest.raises(wl.InputError, match="at least 999"):
        fitted.predict_set(X, alpha=0.001)
    with pytest.raises(wl.InputError, match="one entry for each"):
        fitted.predict_set(X).contains(y[:5])
    grouped = conformal().fit(X, y, groups=np.arange(600) % 2)
    with pytest.raises(wl.InputError, match="the group of each row"):
        grouped.predict_set(X)
    with pytest.raises(wl.InputError, match="row 0 is in group 7"):
        grouped.predict_set(X[:1], groups=[7])
    with pytest.raises(wl.InputError, match="the likelihood ratio of each row"):
        conformal().fit(X, y, weights=np.ones(600)).predict_set(X)


class Wild(GaussianNB):
    """Probabilities that are none, in the rows where the first column says so."""

    def predict_proba(self, X):
        p = super().predict_proba(X)
        p[X[:, 0] > 9] *= 2.0
        return p


def test_probabilities_that_are_none_are_named_by_row(data):
    X, y = data
    fitted = wl.ConformalClassifier(Wild(), random_state=0).fit(X, y)
    strange = X[:20].copy()
    strange[[3, 7], 0] = 10.0
    with pytest.raises(wl.InputError, match="row 3, 7 sum to 2"):
        fitted.predict_set(strange)


def test_uniform_numbers_do_not_depend_on_data_of_the_same_seed():
    rng = np.random.default_rng(0)
    y = rng.random(4000)
    drawn = uniform(0, "calibration", 4000), uniform(0, "prediction", 4000)
    for first, second in ((y, drawn[0]), (y, drawn[1]), drawn):
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.08
