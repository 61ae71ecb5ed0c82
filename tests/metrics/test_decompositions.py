"""Proper scores beside scikit-learn's; parts that add up; the generalisation gap."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as their_log_loss

import wonderland as wl
from tests.metrics.test_calibration import made
from wonderland.metrics import brier_score, generalisation_gap, log_loss


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_scikit_learns_and_parts_add_up(k, weighted, rng):
    y, p = made(rng, 400, k, 1.7)
    w = rng.uniform(size=400) if weighted else None
    given = p[:, 1] if k == 2 else p
    for ours, theirs in (
        (brier_score(y, given, sample_weight=w), brier_score_loss(y, given, sample_weight=w)),
        (log_loss(y, given, sample_weight=w), their_log_loss(y, given, sample_weight=w)),
    ):
        assert ours.value == pytest.approx(theirs, rel=1e-10)
        assert ours.calibration.value + ours.refinement.value == pytest.approx(ours.value, 1e-15)
        assert ours.calibration.value > 0
        assert ours.value in ours.score
        assert float(ours) == ours.value
        assert "calibration" in str(ours)


def test_the_maps_are_the_best_ones(rng):
    y, p = made(rng, 400, 2, 1.7)
    g = IsotonicRegression().fit(p[:, 1], y).predict(p[:, 1])
    assert brier_score(y, p).refinement.value == pytest.approx(np.mean((g - y) ** 2), rel=1e-12)
    y, p = made(rng, 400, 4, 1.7)

    def loss(log_beta):
        q = p ** np.exp(log_beta)
        return their_log_loss(y, q / q.sum(axis=1, keepdims=True))

    best = minimize_scalar(loss, bracket=(-1, 0), options={"xtol": 1e-12}).fun
    assert log_loss(y, p).refinement.value == pytest.approx(best, rel=1e-12)


def test_what_was_called_impossible():
    found = log_loss([0, 1, 1, 0, 1], [0.0, 0.0, 1.0, 0.2, 0.7])
    assert found.value == np.inf
    assert np.isfinite(found.refinement.value)


def test_the_gap(rng):
    X = rng.normal(size=(80, 30))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, "up", "down")
    fitted = LogisticRegression(C=100.0, max_iter=1000).fit(X[:50], y[:50])
    found = generalisation_gap(fitted, (X[:50], y[:50]), (X[50:], y[50:]))
    seen, new = (
        their_log_loss(y[s], fitted.predict_proba(X[s])) for s in (slice(50), slice(50, None))
    )
    assert found.value == pytest.approx(new - seen, rel=1e-10)
    assert found.gap.low < found.value < found.gap.high
    assert found.loss == "log"
    brier = generalisation_gap(fitted, (X[:50], y[:50]), (X[50:], y[50:]), loss="brier")
    p = fitted.predict_proba(X)[:, 1]
    assert brier.expected.value == pytest.approx(brier_score_loss(y[50:], p[50:], pos_label="up"))
    weight = np.r_[np.ones(50), np.zeros(30)]
    same = generalisation_gap(
        fitted, (X[:50], y[:50]), (X, y, weight), loss=lambda z, y: (z != y).astype(float)
    )
    assert same.value == pytest.approx(0.0, abs=1e-12)


def test_gaps_of_regressors_cover_zero_on_their_own_kind(rng):
    X = rng.normal(size=(400, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=400)
    fitted = LinearRegression().fit(X[:200], y[:200])
    for loss in (None, "squared", "absolute"):
        found = generalisation_gap(fitted, (X[:200], y[:200]), (X[200:], y[200:]), loss=loss)
        assert abs(found.value) < 6 * (found.gap.high - found.value)
    for wrong in ("log", "quadratic"):
        with pytest.raises(wl.InputError):
            generalisation_gap(fitted, (X, y), (X, y), loss=wrong)
    with pytest.raises(wl.InputError, match="is a ndarray"):
        generalisation_gap(fitted, X, (X, y))
    with pytest.raises(wl.InputError, match="at least two"):
        generalisation_gap(fitted, (X, y), (X[:1], y[:1]))
