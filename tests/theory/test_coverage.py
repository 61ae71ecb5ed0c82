"""Coverage over repetitions against what finite-sample theory promises, exactly.

Re-splitting a pool is exact for methods with one model; methods that refit do so on fresh draws.
The full table is printed by `python -m benchmarks trust`.
"""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

import wonderland as wl
from wonderland.trust.conformal_labels import LabelRule
from wonderland.trust.conformal_trials import ERRORS, interval_trials, label_trials
from wonderland.trust.scores import APS, LAC, Margin

ALPHAS = (0.01, 0.05, 0.1, 0.2)
ROUNDS = 300


@pytest.fixture(scope="module")
def pool():
    """Probabilities and classes of rows the model has not seen; four classes, one of them rare."""
    X, y = make_classification(
        1400,
        6,
        n_informative=5,
        n_redundant=0,
        n_classes=4,
        weights=[0.4, 0.3, 0.2],
        random_state=1,
    )
    model = GaussianNB().fit(X[:400], y[:400])
    return model.predict_proba(X[400:]), y[400:], (X[400:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("score", "randomise"),
    [(LAC(), False), (APS(), True), (APS(0.1, 1), True), (Margin(), False)],
    ids=["lac", "aps", "raps", "margin"],
)
def test_sets_cover_within_the_exact_band(pool, score, randomise, rng):
    p, y, _ = pool
    trials = label_trials(
        LabelRule(score, by_class=False),
        p,
        y,
        ALPHAS,
        calibration=400,
        repetitions=ROUNDS,
        randomise=randomise,
        seed=int(rng.integers(2**31)),
    )
    assert trials.distinct
    assert trials.holds().all(), (trials.coverage, trials.bands())
    # A beta-binomial band of 99 % is discrete: it holds at least that share of repetitions.
    assert np.all(trials.inside(0.99) >= 0.99 - ERRORS * np.sqrt(0.99 * 0.01 / ROUNDS))


def test_with_ties_coverage_is_at_least_that(pool, rng):
    p, y, _ = pool
    coarse = 0.1 + 0.6 * (p == p.max(axis=1, keepdims=True))
    for score in (LAC(), APS()):
        trials = label_trials(
            LabelRule(score, by_class=False), coarse, y, ALPHAS, calibration=400, repetitions=50
        )
        assert not trials.distinct
        assert trials.holds().all()


@pytest.mark.parametrize("by_class", [True, False])
def test_each_class_and_each_group_is_covered(pool, by_class, rng):
    p, y, side = pool
    trials = label_trials(
        LabelRule(LAC(), by_class=by_class),
        p,
        y,
        ALPHAS,
        calibration=500,
        repetitions=ROUNDS,
        groups=side,
        seed=int(rng.integers(2**31)),
    )
    assert trials.coverage.shape == (4, 4 if by_class else 2)
    assert trials.holds().all(), (trials.coverage, trials.bands())


def test_one_threshold_fails_a_rare_class(pool):
    """What class-conditional thresholds are for."""
    p, y, _ = pool
    trials = label_trials(
        LabelRule(LAC(), by_class=False), p, y, [0.1], calibration=500, repetitions=50, groups=y
    )
    single = LabelRule(LAC(), by_class=False)
    assert trials.holds().all(), "groups that are classes are covered"
    threshold = single.calibrate(_rows(p[:500], y[:500])).quantiles(0.1)[0]
    covered = -p[500:][np.arange(500), y[500:]] <= threshold
    shares = [covered[y[500:] == c].mean() for c in range(4)]
    assert min(shares) < 0.87


def _rows(p, codes):
    from wonderland.trust.conformal_labels import LabelRows

    return LabelRows(p, codes)


@pytest.mark.parametrize("score", ["absolute", "normalised", "quantile"])
def test_intervals_cover_within_the_exact_band(score, rng):
    X = rng.normal(size=(1200, 2))
    y = X[:, 0] + (0.2 + np.abs(X[:, 0])) * rng.standard_t(3, size=1200)
    middle, unit = Ridge().fit(X[:300], y[:300]).predict(X[300:]), np.ones(900)
    low = high = middle
    if score == "normalised":
        unit = 0.3 + np.abs(X[300:, 0])
    if score == "quantile":
        low, high = middle - np.abs(X[300:, 0]), middle + np.abs(X[300:, 0])
    groups = (np.abs(X[300:, 0]) > 1).astype(int)
    for kinds in (None, groups):
        trials = interval_trials(
            (low, high, unit),
            y[300:],
            ALPHAS,
            calibration=450,
            repetitions=ROUNDS,
            groups=kinds,
            seed=int(rng.integers(2**31)),
        )
        assert trials.distinct
        assert trials.holds().all(), (trials.coverage, trials.bands())


@pytest.mark.parametrize(
    ("method", "loss"), [("jackknife+", 2), ("cv+", 2), ("jackknife-minmax", 1)]
)
def test_methods_that_refit_cover_as_promised(method, loss, rng):
    """Fresh draws of a heavy-tailed task: at least 1 − 2α, in fact about 1 − α."""
    repetitions, n, m = 60, 60, 60
    share = np.zeros((repetitions, len(ALPHAS)))
    for number in range(repetitions):
        X = rng.normal(size=(n + m, 4))
        y = X @ np.ones(4) + rng.standard_t(2, size=n + m)
        fitted = wl.ConformalRegressor(Ridge(), method, alpha=0.05, random_state=number)
        fitted.fit(X[:n], y[:n])
        levels = [alpha for alpha in ALPHAS if alpha >= 0.05]
        found = fitted.predict_interval(X[n:], levels)
        share[number] = [1.0, *(intervals.contains(y[n:]).mean() for intervals in found)]
    error = share.std(axis=0, ddof=1) / np.sqrt(repetitions)
    assert np.all(share.mean(axis=0) >= 1 - loss * np.array(ALPHAS) - ERRORS * error)
    if loss == 2:
        assert np.all(np.abs(share.mean(axis=0) - 1 + ALPHAS)[1:] < 0.03)


def test_weights_restore_coverage_under_covariate_shift(rng):
    """Rows from N(0, 1), predictions for N(1, 1): the likelihood ratio is exp(x − ½)."""

    def draw(n, centre):
        X = rng.normal(centre, 1.0, size=(n, 1))
        return X, X[:, 0] + (0.2 + np.exp(X[:, 0])) * rng.normal(size=n)

    X, y = draw(2000, 0.0)
    model = Ridge().fit(X, y)
    shares = []
    for _ in range(100):
        known, new = draw(400, 0.0), draw(200, 1.0)
        plain = wl.ConformalRegressor(model, cv="prefit").fit(*known)
        told = wl.ConformalRegressor(model, cv="prefit", shift=lambda X: np.exp(X[:, 0] - 0.5)).fit(
            *known
        )
        shares.append(
            [fitted.predict_interval(new[0]).contains(new[1]).mean() for fitted in (plain, told)]
        )
    naive, weighed = np.mean(shares, axis=0)
    error = np.std(shares, axis=0)[1] / 10
    assert naive < 0.8
    assert 0.9 - ERRORS * error <= weighed <= 0.95
