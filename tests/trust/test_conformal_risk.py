"""Risk control against its definition, its guarantee over repetitions, and bad input."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

import wonderland as wl
from wonderland.trust.risk import control_risk, false_negatives, miscoverage


@pytest.fixture
def labels(rng):
    """Three labels at once, and a model of each."""
    X = rng.normal(size=(500, 3))
    y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(500, 4)) > 0.5).astype(int)
    return X, y, MultiOutputClassifier(LogisticRegression()).fit(X[:200], y[:200])


def test_the_threshold_is_the_infimum(labels):
    X, y, model = labels
    p = np.column_stack([part[:, 1] for part in model.predict_proba(X[200:])])
    for loss in (false_negatives, miscoverage):
        ours = wl.RiskControl(model, loss, alpha=0.2, cv="prefit").fit(X[200:], y[200:])

        def bound(threshold, loss=loss):
            risk = loss(p >= threshold, y[200:].astype(bool)).mean()
            return 300 / 301 * risk + 1 / 301

        assert bound(ours.threshold_) <= 0.2 + 1e-12
        assert bound(np.unique(p)[np.searchsorted(np.unique(p), ours.threshold_) + 1]) > 0.2
        settings = np.unique(p)[::-1]
        table = np.stack([loss(p >= t, y[200:].astype(bool)) for t in settings], axis=1)
        assert settings[control_risk(table, 0.2)] == ours.threshold_


def test_miscoverage_is_split_conformal_prediction(rng):
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 3, size=300)
    X[:, 0] += y
    model = GaussianNB().fit(X[:100], y[:100])
    risk = wl.RiskControl(model, "miscoverage", cv="prefit").fit(X[100:], y[100:])
    sets = wl.ConformalClassifier(model, cv="prefit").fit(X[100:], y[100:])
    assert risk.threshold_ == sets.threshold_[0]
    np.testing.assert_array_equal(risk.predict_set(X).mask, sets.predict_set(X).mask)


def test_the_risk_of_new_rows_is_controlled(rng):
    """E L(λ̂) ≤ α over draws of the calibration rows, and not far below it."""
    n, found = 60, []
    for _ in range(400):
        p = rng.random((2 * n, 5))
        truth = rng.random((2 * n, 5)) < p
        settings = np.linspace(1, 0, 101)
        table = np.stack([false_negatives(p[:n] >= t, truth[:n]) for t in settings], axis=1)
        threshold = settings[control_risk(table, 0.1)]
        found.append(false_negatives(p[n:] >= threshold, truth[n:]).mean())
    error = np.std(found) / 20
    assert 0.1 - 2 / n - 0.01 - 4.5 * error <= np.mean(found) <= 0.1 + 4.5 * error


def test_manners(labels, tmp_path):
    X, y, _ = labels
    model = MultiOutputClassifier(LogisticRegression())
    ours = wl.RiskControl(model, random_state=0).fit(X, y)
    assert {"promised_risk", "calibration_risk", "risk", "mean_size"} <= set(ours.evidence_)
    assert ours.predict(X).shape == y.shape
    again = clone(ours).set_params(estimator__estimator__C=0.1).fit(X, y)
    assert again.threshold_ != ours.threshold_
    named = np.array(["a", "b", "c"])[y[:, :2].sum(axis=1)]
    one = wl.RiskControl(wl.LogisticRegression(), alpha=0.2, random_state=0).fit(X, named)
    assert set(one.predict_set(X).labels()[0]) <= {"a", "b", "c"}
    wl.save(one, tmp_path / "risk.wl")
    assert wl.load(tmp_path / "risk.wl").threshold_ == one.threshold_


def test_bad_input(labels):
    X, y, model = labels

    def control(**options):
        return wl.RiskControl(model, **{"cv": "prefit", **options})

    with pytest.raises(wl.InputError, match="Did you mean 'miscoverage'"):
        control(loss="coverage").fit(X, y)
    with pytest.raises(TypeError, match="a function"):
        control(loss=3).fit(X, y)
    with pytest.raises(wl.InputError, match="strictly between"):
        control(alpha=1.5).fit(X, y)
    with pytest.raises(wl.InputError, match="at least 99 calibration rows"):
        control(alpha=0.01).fit(X[:50], y[:50])
    with pytest.raises(wl.InputError, match="losses between 0 and the bound"):
        control(loss=lambda mask, truth: 3.0 * (~mask).any(axis=1)).fit(X, y)
    with pytest.raises(wl.InputError, match="one loss for each"):
        control(loss=lambda mask, truth: mask).fit(X, y)
    with pytest.raises(wl.InputError, match="0 and 1"):
        control().fit(X, y + 1)
    with pytest.raises(wl.InputError, match="rises along"):
        control_risk([[0.0, 1.0]], 0.5)
    with pytest.raises(wl.InputError, match="most cautious"):
        control_risk([[0.9, 0.9]], 0.5)


def test_a_loss_that_is_not_monotone_is_refused(labels):
    X, y, model = labels

    def wavering(mask, truth):
        return 0.5 + 0.5 * np.cos(9.0 * mask.mean(axis=1)) * (mask.mean() < 0.99)

    with pytest.raises(wl.InputError, match=r"rises as sets grow|most cautious"):
        wl.RiskControl(model, wavering, alpha=0.52, cv="prefit").fit(X, y)
