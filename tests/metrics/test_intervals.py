"""Intervals beside SciPy's, exact tails and the loop over resampled rows."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest, ttest_1samp

import wonderland as wl
from wonderland.metrics import intervals
from wonderland.metrics.intervals import (
    bootstrap,
    check_fraction,
    clopper_pearson,
    coverage_band,
    mean_interval,
)


@pytest.mark.parametrize(("s", "n"), [(0, 7), (7, 7), (3, 20), (250, 1000)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_clopper_pearson_is_scipys(s, n, level):
    theirs = binomtest(s, n).proportion_ci(level, method="exact")
    np.testing.assert_allclose(clopper_pearson(s, n, level), theirs, rtol=1e-9, atol=1e-15)


def test_clopper_pearson_covers_everywhere():
    n, counts = 30, np.arange(31)
    low, high = clopper_pearson(counts, n, 0.9)
    for p in np.linspace(0.01, 0.99, 50):
        assert binom.pmf(counts, n, p) @ ((low <= p) & (p <= high)) >= 0.9


def test_clopper_pearson_of_arrays_and_of_no_trials():
    low, high = clopper_pearson(np.array([0, 1]), np.array([0, 2]))
    assert low.shape == (2,)
    assert (low[0], high[0]) == (0.0, 1.0)
    with pytest.raises(wl.InputError, match="successes ≤ trials"):
        clopper_pearson(3, 2)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.2])
def test_the_coverage_band_holds_what_conformal_prediction_covers(alpha, rng):
    n, m, turns = 300, 200, 20_000
    # Uniform scores: the threshold is an order statistic, the coverage of m more is binomial.
    rank = int(np.ceil((n + 1) * (1 - alpha)))
    threshold = rng.beta(rank, n + 1 - rank, size=turns)
    share = rng.binomial(m, threshold) / m
    low, high = coverage_band(n, m, alpha, 0.9)
    assert 0.9 - 0.01 <= np.mean((low <= share) & (share <= high)) <= 1
    assert coverage_band(5, m, 0.01) == (1.0, 1.0)


def test_the_mean_interval_is_students(rng):
    values = rng.normal(size=30)
    found = mean_interval(values, level=0.9)
    theirs = ttest_1samp(values, 0.0).confidence_interval(0.9)
    np.testing.assert_allclose([found.low, found.high], theirs, rtol=1e-12)
    assert found.value in found
    assert mean_interval(values, np.full(30, 7.0), 0.9)[:3] == pytest.approx(found[:3])


def _means(sums):
    return sums[..., 1] / sums[..., 0]


def _loop(values, draws, rng):
    return np.array([rng.choice(values, len(values)).mean() for _ in range(draws)])


@pytest.mark.parametrize("blocks", [4096, 200])
def test_the_bootstrap_is_the_loop_over_rows(blocks, rng, monkeypatch):
    """Rows themselves, or sums of random blocks: the same spread up to the errors stated."""
    monkeypatch.setattr(intervals, "BLOCKS", blocks)
    values = np.sort(rng.exponential(size=3000))
    rows = np.column_stack([np.ones(3000), values])
    found = bootstrap(_means, rows, draws=2000, level=0.9, random_state=int(rng.integers(99)))
    low, high = np.quantile(_loop(values, 2000, rng), [0.05, 0.95])
    slack = (0.12 if blocks < 3000 else 0.06) * (high - low) + 0.1 * (high - low)
    np.testing.assert_allclose([found.low, found.high], [low, high], atol=slack)
    assert found.value == pytest.approx(values.mean())


def test_levels_are_fractions():
    for wrong in (0, 1, 1.5, -0.1, "0.9", True, float("nan")):
        with pytest.raises(wl.InputError, match="strictly between 0 and 1"):
            check_fraction(wrong)
