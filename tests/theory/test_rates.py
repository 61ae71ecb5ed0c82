"""The three theorems beside what happens: under the bound, and the bound is not idle talk.

convex              Huber and logistic losses without penalty, step 1/L              (thm 8.5)
strongly convex     logistic loss with L2, step 2/(m + L)                            (thm 8.7)
not convex          the sigmoid loss, and waves, step 1/L                            (thm 8.8)
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl
from wonderland import losses, penalties
from wonderland.core.arrays import in_float64
from wonderland.solve.gradient import Smooth
from wonderland.solve.theory import convex_bound, non_convex_bound, strongly_convex_bound

STEPS = 150
PLAIN = wl.solve.Descent(momentum=False)


@in_float64
def made(rng, loss, penalty=None, *, fit_intercept=False, scale=(1.0, 0.3, 0.1)):
    X = rng.normal(size=(40, 3)) * scale
    # Noise keeps the classes apart from being separable, where no optimum is near and D is huge.
    score = X @ [1.0, -2.0, 3.0] + 2.0 * rng.normal(size=40)
    y = score if loss.targets == "numbers" else np.where(score > 0, 1.0, -1.0)
    return wl.solve.empirical_risk(X, y, loss, penalty, C=1 / 40, fit_intercept=fit_intercept)


@in_float64
def ran(solver, f, steps=STEPS):
    return wl.solve.record(solver, f, f.start(), steps=steps)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Huber(0.2)], ids=str)
def test_convex(rng, loss):
    run = ran(wl.solve.Descent(momentum=False, cautious=True), made(rng, loss))
    report = wl.solve.rate_report(run)
    assert report.holds
    gaps = run.values - run.lowest
    for k in range(1, STEPS + 1):
        assert gaps[k] <= convex_bound(k, run.lipschitz, run.distance) * (1 + 1e-9)
    assert np.all(np.diff(run.values) <= 1e-14), "each step with 1/L descends"
    assert 0.001 < report.tightness <= 1.0, "the bound is within a thousand of what happens"


def test_strongly_convex(rng):
    run = ran(PLAIN, made(rng, losses.Logistic(), penalties.L2(0.02)))
    report = wl.solve.rate_report(run)
    assert run.strong_convexity == pytest.approx(0.02)
    assert report.holds
    assert "(L − m)/(L + m)" in report.theorem
    assert 0.01 < report.tightness <= 1.0
    gaps = np.maximum(run.values - run.lowest, 0.0)
    L, m, D = run.lipschitz, run.strong_convexity, run.distance
    assert gaps[10] <= strongly_convex_bound(10, L, m, D)
    # Geometric: the bound of the convex theorem alone is soon far too large.
    assert report.bound[-1] < 0.1 * convex_bound(STEPS, L, D)


@in_float64
def test_the_strongly_convex_bound_is_attained():
    """Two eigenvalues, the error along both: the contraction is exactly q, the bound almost met."""
    f = wl.solve.empirical_risk(
        np.diag([1.0, 10.0]), np.array([1.0, 0.01]), losses.Squared(), fit_intercept=False
    )
    report = wl.solve.rate_report(wl.solve.record(PLAIN, f, np.zeros(2), steps=30))
    assert report.holds
    # The slow direction carries m/L of the gap that the bound allows for.
    assert 0.5 * 0.01 < report.tightness <= 1.0


class Waves(Smooth):
    """f(w) = Σ (w_j² /8 + cos w_j): smooth with L = 5/4, not convex."""

    lipschitz: jax.Array
    strong_convexity: jax.Array
    convex = False

    def value(self, w):
        return jnp.sum(w**2 / 8 + jnp.cos(w))

    def gradient(self, w):
        return w / 4 - jnp.sin(w)

    def certificate(self, gradient):
        return jnp.max(jnp.abs(gradient))


@in_float64
def test_not_convex(rng):
    waves = Waves(jnp.asarray(1.25), jnp.asarray(0.0))
    start = rng.uniform(-6, 6, size=5)
    sigmoid = made(rng, losses.Tilted(-1.0))
    runs = [wl.solve.record(PLAIN, waves, start, steps=40), ran(PLAIN, sigmoid)]
    for run in runs:
        report = wl.solve.rate_report(run)
        assert not run.convex
        assert report.quantity.startswith("min")
        assert report.holds
        gap = run.values[0] - run.lowest
        for k in range(len(run.norms)):
            bound = non_convex_bound(k, run.lipschitz, gap)
            assert run.norms[: k + 1].min() <= bound * (1 + 1e-9)
    assert wl.solve.rate_report(runs[1]).tightness > 0.02


@pytest.mark.parametrize("backtracking", [False, True])
@pytest.mark.parametrize("momentum", [False, True])
def test_proximal_methods_keep_their_bounds(rng, momentum, backtracking):
    solver = wl.solve.Proximal(momentum=momentum, backtracking=backtracking, restart=False)
    for penalty in (None, penalties.L1(0.02)):
        run = ran(solver, made(rng, losses.Logistic(), penalty, fit_intercept=True))
        report = wl.solve.rate_report(run)
        assert report.holds
        assert report.tightness > 1e-4


def test_momentum_and_methods_without_a_theorem(rng):
    f = made(rng, losses.Logistic(), penalties.L2(0.02))
    fast = wl.solve.rate_report(ran(wl.solve.Descent(), f))
    slow = wl.solve.rate_report(ran(PLAIN, f))
    assert fast.holds
    assert fast.measured[20] < slow.measured[20]
    for solver in (wl.solve.HeavyBall(), wl.solve.QuasiNewton(), wl.solve.Proximal()):
        report = wl.solve.rate_report(ran(solver, f, steps=30))
        assert report.bound is None
        assert report.holds is None
        assert "no theorem" in str(report)
        assert report.measured[-1] < 1e-2 * report.measured[0]


def test_a_broken_bound_is_told(rng):
    run = ran(PLAIN, made(rng, losses.Logistic(), penalties.L2(0.02)))
    report = wl.solve.rate_report(run._replace(distance=0.05 * run.distance))
    assert not report.holds
    assert "BROKEN" in str(report)


def test_estimators(rng):
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.normal(size=30)
    for momentum in (True, False):
        model = wl.Ridge(0.5, solver="descent", momentum=momentum).fit(X, y)
        assert wl.solve.rate_report(model, X, y, steps=30).holds
    model.history_ = ran(PLAIN, made(rng, losses.Logistic()), steps=5)
    assert len(wl.solve.rate_report(model).measured) == 6
    with pytest.raises(wl.InputError, match="without a recorded run"):
        wl.solve.rate_report(wl.Ridge().fit(X, y))
    with pytest.raises(wl.InputError, match="at least one step"):
        wl.solve.record(PLAIN, made(rng, losses.Logistic()), np.zeros(3), steps=0)


def test_the_report_is_plain_and_drawn(rng):
    report = wl.solve.rate_report(ran(PLAIN, made(rng, losses.Logistic(), penalties.L2(0.02))))
    json.dumps(report.to_dict())
    lines = str(report).splitlines()
    assert lines[0].startswith("gradient descent")
    assert "the bound holds" in lines[-1]
    figure = report.plot()
    assert len(figure.axes[0].lines) == 2
    import matplotlib.pyplot as plt

    plt.close(figure)


def test_the_record_is_the_run(rng):
    """Recording changes no step, and what is recorded is the objective at each."""
    f = made(rng, losses.Logistic(), penalties.L2(0.02))
    run = ran(PLAIN, f, steps=20)
    with jax.enable_x64(True):
        rules = wl.solve.Stopping(tol=0.0, max_iter=20)
        state, _ = wl.solve.minimise(PLAIN, f, f.start(), rules)
        first = f.gradient(jnp.asarray(f.start()))
        np.testing.assert_array_equal(run.w, state.w)
        np.testing.assert_allclose(run.values[-1], f.value(state.w), rtol=1e-12)
        np.testing.assert_allclose(run.norms[0], np.linalg.norm(first), rtol=1e-12)
    assert len(run.values) == 21


def test_the_perceptron_bound():
    assert wl.solve.perceptron_bound(3.0, 1.5) == 4.0
    assert wl.solve.perceptron_bound(3.0, 0.0) == np.inf
