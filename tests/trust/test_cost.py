"""Decisions of least expected cost beside a loop over decisions, and what a person hands in."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import wonderland as wl
from tests.laws.strategies import generators
from wonderland.trust.cost import CostSensitiveClassifier, UncalibratedWarning
from wonderland.trust.cost_evidence import expected_costs, realised_costs
from wonderland.trust.cost_matrix import cost_matrix, threshold

few = settings(max_examples=15)
COSTS = np.array([[0.0, 10.0], [1.0, 0.0]])


def task(n=400, k=2):
    X, y = make_classification(
        n, 6, n_informative=4, n_redundant=0, n_classes=k, flip_y=0.1, random_state=1
    )
    return X, np.array(["ant", "bee", "cat"])[y]


@given(rng=generators(), k=st.integers(2, 5), own=st.booleans(), abstaining=st.booleans())
@few
def test_the_decision_is_the_cheapest(rng, k, own, abstaining):
    p = rng.dirichlet(np.ones(k), size=30)
    costs = rng.uniform(size=(30, k, k) if own else (k, k))
    abstain = rng.uniform(size=k) * 0.5 if abstaining else None
    codes = rng.integers(k, size=30)
    found = expected_costs(p, costs, abstain)
    chosen = found.argmin(axis=1)
    spent = realised_costs(chosen, codes, costs, abstain)
    for i in range(30):
        C = costs[i] if own else costs
        each = [sum(C[a, j] * p[i, j] for j in range(k)) for a in range(k)]
        each += [float(abstain @ p[i])] if abstaining else []
        np.testing.assert_allclose(found[i], each, rtol=1e-12)
        true = abstain[codes[i]] if chosen[i] == k else C[chosen[i], codes[i]]
        assert spent[i] == true


@given(rng=generators(), abstaining=st.booleans())
@few
def test_the_threshold_is_where_the_decision_changes(rng, abstaining):
    costs = rng.uniform(size=(2, 2)) + np.array([[0.0, 1.0], [1.0, 0.0]])
    abstain = rng.uniform(size=2) * 0.8 if abstaining else None
    low, high = threshold(costs, abstain)
    p = np.linspace(0, 1, 2001)
    p = p[np.minimum(abs(p - low), abs(p - high)) > 1e-9]
    chosen = expected_costs(np.column_stack([1 - p, p]), costs, abstain).argmin(axis=1)
    expected = np.where(p < low, 0, np.where(p > high, 1, 2))
    np.testing.assert_array_equal(chosen, expected)


def test_two_classes_are_scikit_learns_fixed_threshold():
    X, y = task()
    inner = LogisticRegression()
    ours = CostSensitiveClassifier(inner, COSTS).fit(X, y)
    theirs = FixedThresholdClassifier(inner, threshold=1 / 11, pos_label="bee").fit(X, y)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.threshold_ == pytest.approx((1 / 11, 1 / 11))


def test_no_costs_are_those_of_the_most_probable_label():
    X, y = task(k=3)
    inner = LogisticRegression()
    ours = CostSensitiveClassifier(inner).fit(X, y)
    assert np.array_equal(ours.predict(X), inner.fit(X, y).predict(X))
    assert ours.score(X, y) == pytest.approx(inner.score(X, y) - 1)
    assert ours.evidence_["saving"].value.value == 0
    assert not hasattr(ours, "threshold_")


def test_costs_in_every_form_are_one_matrix():
    pd = pytest.importorskip("pandas")
    classes = np.array(["ant", "bee"])
    frame = pd.DataFrame([[0.0, 1.0], [10.0, 0.0]], index=["bee", "ant"], columns=["bee", "ant"])
    pairs = {("ant", "bee"): 10.0, ("bee", "ant"): 1.0}
    for costs in (COSTS, COSTS.tolist(), frame, pairs):
        np.testing.assert_array_equal(cost_matrix(costs, classes), COSTS)
    with pytest.raises(wl.InputError, match="says nothing about"):
        cost_matrix({("ant", "bee"): 10.0}, classes)
    with pytest.raises(wl.InputError, match="has the key"):
        cost_matrix({("ant", "cow"): 10.0}, classes)
    with pytest.raises(wl.InputError, match="decisions"):
        cost_matrix(frame.rename(index={"bee": "cow"}), classes)


def test_abstention_has_a_label_and_a_mask():
    X, y = task()
    fitted = CostSensitiveClassifier(LogisticRegression(), COSTS, abstain_cost=0.3).fit(X, y)
    said, mask = fitted.predict(X), fitted.abstains(X)
    assert set(said) == {"ant", "bee", "abstain"}
    assert np.array_equal(said == "abstain", mask)
    assert 0 < fitted.evidence_["abstained"].value < 1
    low, high = fitted.threshold_
    p = fitted.predict_proba(X)[:, 1]
    assert np.array_equal(mask, (p > low) & (p < high))
    numbers = CostSensitiveClassifier(LogisticRegression(), COSTS, 0.3).fit(X, y == "bee")
    assert numbers.abstain_label_ == -1
    with pytest.raises(wl.InputError, match="one of the labels"):
        fitted.set_params(abstain_label="ant").fit(X, y)
    codes = (y == "bee").astype(int)
    spent = realised_costs(
        np.where(mask, 2, said == "bee").astype(int), codes, COSTS, np.full(2, 0.3)
    )
    assert fitted.set_params(abstain_label=None).fit(X, y).score(X, y) == pytest.approx(
        -spent.mean()
    )


def test_costs_of_single_rows():
    X, y = task()
    fitted = CostSensitiveClassifier(LogisticRegression()).fit(X, y)
    own = np.where(np.arange(400)[:, None, None] < 200, COSTS, 1 - np.eye(2))
    said = fitted.predict(X, costs=own)
    assert np.array_equal(said[:200], fitted.predict(X[:200], costs=COSTS))
    assert np.array_equal(said[200:], fitted.predict(X[200:]))
    found = fitted.cost(X, y, costs=own)
    codes = (y == "bee").astype(int)
    spent = own[np.arange(400), (said == "bee").astype(int), codes]
    assert found.value == pytest.approx(spent.mean())
    assert fitted.score(X, y, costs=own) == pytest.approx(-spent.mean())
    with pytest.raises(wl.InputError, match="400 matrices of costs for 5 rows"):
        fitted.predict(X[:5], costs=own)
    with pytest.raises(wl.InputError, match="one matrix"):
        CostSensitiveClassifier(LogisticRegression(), own).fit(X, y)


def test_evidence_is_measured_on_held_out_rows():
    X, y = task()
    fitted = CostSensitiveClassifier(LogisticRegression(), COSTS, 0.5).fit(X, y)
    evidence = fitted.evidence_
    found = evidence["expected_cost"].value
    assert found.low < found.value < found.high
    assert evidence["saving"].value.value > 0
    assert evidence["promised_cost"].value in found
    assert evidence["constant_cost"].value.value > found.value
    wl.testing.estimators.evidence_is_plain(fitted, X, y, required=["expected_cost", "calibrated"])


def test_uncalibrated_probabilities_are_warned_of():
    X, y = task(1500)
    copies = np.repeat(X, 5, axis=1)
    with pytest.warns(UncalibratedWarning, match="GaussianNB are not calibrated"):
        CostSensitiveClassifier(GaussianNB(), COSTS).fit(copies, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inner = wl.CalibratedClassifier(GaussianNB(), method="isotonic")
        fitted = CostSensitiveClassifier(inner, COSTS).fit(copies, y)
    assert fitted.evidence_["calibrated"].holds


@pytest.mark.filterwarnings("ignore::wonderland.trust.cost.UncalibratedWarning")
def test_prefit_search_weights_and_clone():
    X, y = task()
    inner = LogisticRegression().fit(X[:200], y[:200])
    ready = CostSensitiveClassifier(inner, COSTS, cv="prefit").fit(X[200:], y[200:])
    assert ready.estimator_ is inner
    pairs = {("ant", "bee"): 10.0, ("bee", "ant"): 1.0}
    searched = GridSearchCV(
        CostSensitiveClassifier(wl.LogisticRegression(), pairs, cv=3),
        {"estimator__C": [1e-3, 1.0], "abstain_cost": [None, 0.2]},
        cv=3,
    ).fit(X, y)
    assert searched.best_params_["abstain_cost"] == 0.2
    assert clone(searched.best_estimator_).costs == pairs
    w = np.r_[np.ones(300), np.zeros(100)]
    fitted = CostSensitiveClassifier(LogisticRegression(), COSTS).fit(X, y, w)
    assert fitted.cost(X, y, w).value == pytest.approx(fitted.cost(X[:300], y[:300]).value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"costs": [[0, -1], [1, 0]]}, r"costs holds -1 at \(0, 1\)"),
        ({"costs": {("ant", "bee"): -2.0, ("bee", "ant"): 1}}, r"holds -2 at \('ant', 'bee'\)"),
        ({"costs": [[0, np.nan], [1, 0]]}, "holds nan"),
        ({"costs": [[0, "much"], [1, 0]]}, "does not hold numbers"),
        ({"costs": np.ones((3, 3))}, r"have the shape \(3, 3\)"),
        ({"abstain_cost": -0.1}, "abstain_cost holds -0.1"),
        ({"abstain_cost": [1, 2, 3]}, r"abstain_cost has the shape \(3,\)"),
        ({"estimator": LinearSVC()}, "LinearSVC has no predict_proba"),
    ],
)
def test_refusals_come_before_any_fit(options, sentence):
    X, y = task()
    fitted = CostSensitiveClassifier(**{"estimator": _Never(), **options})
    with pytest.raises(wl.InputError, match=sentence):
        fitted.fit(X, y)
    assert not hasattr(fitted, "estimator_")


class _Never(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("nothing may be fitted before the costs are read")
