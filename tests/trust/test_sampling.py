"""Sampling and its diagnostics: published formulas, known processes, known posteriors."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import wonderland as wl
from wonderland.trust import diagnostics
from wonderland.trust.sampling import Effort, sample

blackjax = pytest.importorskip("blackjax")
SHORT = Effort(draws=400, warmup=300)


def autoregressive(rng, phi, shape):
    """x_t = φx_{t−1} + √(1 − φ²)ε, stationary N(0, 1); ESS/S → (1 − φ)/(1 + φ)."""
    x = np.empty(shape)
    x[:, 0] = rng.normal(size=(shape[0], *shape[2:]))
    noise = np.sqrt(1 - phi**2) * rng.normal(size=shape)
    for t in range(1, shape[1]):
        x[:, t] = phi * x[:, t - 1] + noise[:, t]
    return x


@pytest.mark.parametrize("phi", [-0.4, 0.0, 0.5, 0.9])
def test_effective_draws_of_an_autoregression(phi, rng):
    draws = autoregressive(rng, phi, (4, 5000, 20))
    theory = 20_000 * (1 - phi) / (1 + phi)
    for measure in (diagnostics.bulk_ess, diagnostics.mean_ess):
        found = measure(draws)
        assert found.shape == (20,)
        np.testing.assert_allclose(found.mean(), theory, rtol=0.12)
    error = diagnostics.mean_error(draws)
    np.testing.assert_allclose(error.mean(), np.sqrt(1 / theory), rtol=0.1)


def test_the_unranked_parts_are_those_of_blackjax(rng):
    """Theirs neither split nor rank: given halves and raw draws both must agree."""
    draws = autoregressive(rng, 0.6, (3, 501, 4)) + 0.2 * np.arange(3.0)[:, None, None]
    halves = diagnostics._split(draws)
    assert halves.shape == (6, 250, 4)
    theirs = blackjax.diagnostics.potential_scale_reduction(halves)
    np.testing.assert_allclose(diagnostics._classic(halves), theirs, rtol=1e-5)
    theirs = blackjax.diagnostics.effective_sample_size(halves)
    np.testing.assert_allclose(diagnostics._ess(halves), theirs, rtol=2e-3)


def plain_ess(chains):
    """Stan's algorithm, lag by lag, as published."""
    m, n = chains.shape
    centred = chains - chains.mean(axis=1, keepdims=True)
    covariance = np.array(
        [(centred[:, : n - t] * centred[:, t:]).sum(axis=1) / n for t in range(n)]
    )
    mean = covariance.mean(axis=1)
    within = mean[0] * n / (n - 1)
    pooled = mean[0] + chains.mean(axis=1).var(ddof=1)
    rho = 1 - (within - mean) / pooled
    rho[0], t, kept, ceiling = 1.0, 0, [], np.inf
    while t + 1 < n and rho[t] + rho[t + 1] > 0:
        ceiling = min(ceiling, rho[t] + rho[t + 1])
        kept.append(ceiling)
        t += 2
    last = max(rho[t], 0.0) if t + 1 < n else 0.0
    return m * n / max(-1 + 2 * sum(kept) + last, 1 / np.log10(m * n))


@pytest.mark.parametrize("phi", [-0.7, 0.3, 0.95])
def test_effective_draws_are_the_published_loop(phi, rng):
    chains = autoregressive(rng, phi, (4, 200))
    np.testing.assert_allclose(diagnostics._ess(chains), plain_ess(chains), rtol=1e-9)


def test_rhat_sees_what_it_is_for(rng):
    mixed = rng.normal(size=(4, 1000))
    assert 0.99 < diagnostics.rhat(mixed) < 1.01
    assert diagnostics.rhat(mixed + 0.5 * np.arange(4)[:, None]) > 1.05  # other places
    assert diagnostics.rhat(mixed * np.array([1, 1, 1, 4.0])[:, None]) > 1.05  # other widths
    assert diagnostics.rhat(mixed + np.linspace(0, 3, 1000)) > 1.05  # a drift in all chains
    heavy = rng.standard_cauchy(size=(4, 1000))  # no moments, but ranks
    assert diagnostics.rhat(heavy) < 1.02
    monotone = diagnostics.rhat(np.exp(mixed))
    np.testing.assert_allclose(monotone, diagnostics.rhat(mixed), atol=5e-3)


def test_draws_that_do_not_move():
    still = np.ones((4, 100))
    assert diagnostics.rhat(still) == 1.0
    assert diagnostics.bulk_ess(still) == 400
    with pytest.raises(wl.InputError, match="draws"):
        diagnostics.rhat(np.ones(100))


def gaussian(theta, mean, precision):
    away = theta["x"] - mean
    return -0.5 * away @ (precision @ away)


def test_a_gaussian_is_recovered(rng):
    A = rng.normal(size=(3, 3)) * np.array([1.0, 5.0, 0.2])
    precision, mean = A.T @ A + 0.1 * np.eye(3), rng.normal(size=3)
    found = sample(gaussian, {"x": np.zeros(3)}, 1, data=(mean, precision), effort=SHORT)
    deviation = np.sqrt(np.diag(np.linalg.inv(precision)))
    assert np.all(np.abs(found.summary.mean - mean) < 5 * found.summary.mcse)
    np.testing.assert_allclose(found.summary.sd, deviation, rtol=0.2)
    assert found.draws["x"].shape == (4, 400, 3)
    assert found.draws["x"].dtype == np.float64
    assert found.summary.names == ["x[0]", "x[1]", "x[2]"]
    assert found.evidence["rhat"].holds
    assert found.evidence["divergences"].value == 0
    again = sample(gaussian, {"x": np.zeros(3)}, 1, data=(mean, precision), effort=SHORT)
    np.testing.assert_array_equal(found.draws["x"], again.draws["x"])
    assert "bulk_ess" in str(found.summary)
    assert list(found.summary.to_frame().index) == found.summary.names
    wl.testing.nothing_compiles_again(
        lambda: sample(gaussian, {"x": np.ones(3)}, 2, data=(mean + 1, precision), effort=SHORT),
        lambda: sample(
            gaussian,
            {"x": np.ones(3)},
            3,
            data=(mean, 2 * precision),
            effort=SHORT._replace(acceptance=0.9),
        ),
    )


def test_what_has_not_mixed_is_told():
    def two_hills(x):
        return jnp.logaddexp(-0.5 * (x - 30.0) ** 2, -0.5 * (x + 30.0) ** 2).sum()

    effort = Effort(draws=50, warmup=50, scatter=30.0)
    with pytest.warns(ConvergenceWarning, match="not mixed"):
        found = sample(two_hills, np.zeros(1), 3, effort=effort)
    assert not found.evidence["rhat"].holds


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"effort": Effort(chains=0)}, "chains"),
        ({"effort": Effort(draws=1.5)}, "draws"),
        ({"effort": Effort(acceptance=1.0)}, "acceptance"),
        ({"data": (np.inf,)}, "log_density"),
        ({"names": ["a", "b"], "data": (1.0,), "effort": Effort(draws=20, warmup=20)}, "names"),
    ],
)
def test_bad_requests(change, word):
    with pytest.raises(wl.InputError, match=word):
        sample(lambda x, scale: -(scale * x**2).sum(), np.ones(1), **{"data": (1.0,), **change})


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ImportError, match=r"wonderland\[sample\]"):
        sample(lambda x: -(x**2).sum(), np.ones(1))
