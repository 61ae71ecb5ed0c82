"""The one loop: each rule ends it, interrupts are heard, and its optimum is differentiable."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.solve.problems import make, textbook
from tests.solve.test_gradient import quadratic
from wonderland.core.arrays import in_float64
from wonderland.core.status import Status
from wonderland.solve.gradient import Descent, Quadratic
from wonderland.solve.moments import traced_moments
from wonderland.solve.run import Stopping, _next_burst, minimise, optimum

START = np.zeros((4, 2))


def run(f, *, solver=None, **rules):
    with jax.enable_x64(True):
        return minimise(solver or Descent(), f, jnp.zeros((4, 2)), Stopping(**rules))


def test_certified(rng):
    f = quadratic(rng)
    state, status = run(f, tol=1e-9, max_iter=10**6)
    assert status is Status.CONVERGED
    assert float(state.certificate) <= 1e-9
    with jax.enable_x64(True):
        again = f.certificate(f.gradient(state.w))
    np.testing.assert_allclose(again, state.certificate, rtol=1e-4)


def test_it_stops_at_the_first_certified_step(rng):
    f = quadratic(rng)
    state, _ = run(f, tol=1e-6, max_iter=10**6)
    count = int(state.count)
    before, status = run(f, tol=1e-6, max_iter=count - 1)
    assert status is Status.ITERATIONS
    assert float(before.certificate) > 1e-6
    same, status = run(f, tol=1e-6, max_iter=count)
    assert status is Status.CONVERGED
    np.testing.assert_array_equal(same.w, state.w)


@pytest.mark.parametrize("limit", [1, 7, 256, 257, 1000])
def test_the_iteration_limit_is_exact(rng, limit):
    state, status = run(quadratic(rng, convex_only=True), tol=0.0, max_iter=limit)
    if status is not Status.CONVERGED:  # a gradient that rounds to zero is certified at tol = 0
        assert status is Status.ITERATIONS
        assert int(state.count) == limit


def test_a_small_step_stalls(rng):
    state, status = run(quadratic(rng), tol=0.0, step_tol=1e-8, max_iter=10**6)
    assert status is Status.STALLED
    assert float(state.moved) < 1e-8


def test_too_long_a_step_is_told(rng):
    f = quadratic(rng)
    with jax.enable_x64(True):
        short, flat = f.lipschitz / 100, f.strong_convexity / 1000
    wrong = Quadratic(f.gram, f.cross, f.alpha, f.mass, f.norms, short, flat)
    _, status = run(wrong, solver=Descent(momentum=False), max_iter=10**6)
    assert status is Status.DIVERGED


def test_the_clock(rng):
    state, status = run(
        quadratic(rng, convex_only=True), tol=-1.0, max_iter=10**12, time_limit=0.05
    )
    assert status is Status.TIME
    assert int(state.count) >= 256


def test_an_interrupt_keeps_the_best_so_far(rng):
    seen = []

    def progress(state):
        seen.append(state)
        if len(seen) == 3:
            raise KeyboardInterrupt

    f = quadratic(rng, convex_only=True)
    with jax.enable_x64(True):
        rules = Stopping(tol=-1.0, max_iter=10**9)
        state, status = minimise(Descent(), f, jnp.zeros((4, 2)), rules, progress=progress)
    assert status is Status.INTERRUPTED
    np.testing.assert_array_equal(state.w, seen[-1].w)
    assert int(state.count) > 0


def test_an_optimal_start_takes_no_step(rng):
    f = quadratic(rng)
    with jax.enable_x64(True):
        w = jnp.linalg.solve(f.gram, f.cross)
        state, status = minimise(Descent(), f, w, Stopping(tol=1e-6))
    assert status is Status.CONVERGED
    assert int(state.count) == 0


def test_bursts_grow_while_short_and_shrink_while_long():
    assert _next_burst(8, 0.01) == 16
    assert _next_burst(8, 0.2) == 8
    assert _next_burst(8, 1.0) == 4
    assert _next_burst(1, 1.0) == 1


def test_the_loop_compiles_once_for_all_values(rng):
    compiled = []
    run(quadratic(rng), tol=1e-3)
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, *_, **__: compiled.append(name) if "compile" in name else None
    )
    try:
        run(quadratic(rng), tol=1e-5, max_iter=300, step_tol=1e-30)
    finally:
        jax.monitoring.clear_event_listeners()
    assert not compiled


@in_float64
def ridge_problem(rng):
    problem = make(rng, 25, 4, 2, alpha=[0.5, 2.0])
    return problem, (jnp.asarray(problem.X), jnp.asarray(problem.y), jnp.asarray(problem.alpha))


def ridge_objective(parameters):
    X, y, alpha = parameters
    moments = traced_moments(X, y, None, fit_intercept=True)
    values = jax.lax.stop_gradient(jnp.linalg.eigvalsh(moments.gram))
    mass = jnp.asarray(moments.mass)
    return Quadratic(
        gram=moments.gram,
        cross=moments.cross,
        alpha=alpha,
        mass=mass,
        norms=jnp.ones_like(moments.cross),
        lipschitz=(values[-1] + alpha.max()) / mass,
        strong_convexity=(values[0] + alpha.min()) / mass,
    )


@pytest.mark.parametrize("momentum", [False, True])
def test_the_optimum_is_differentiable(rng, momentum):
    """dw*/dθ from the implicit function theorem equals finite differences of exact refits."""
    problem, parameters = ridge_problem(rng)
    direction = rng.normal(size=(4, 2))
    rules = Stopping(tol=1e-11, max_iter=100_000)

    def loss(parameters):
        w = optimum(
            Descent(momentum=momentum), ridge_objective, parameters, jnp.zeros((4, 2)), rules
        )
        return jnp.sum(direction * w)

    def exact(X, y, alpha):
        changed = problem._replace(X=np.asarray(X), y=np.asarray(y), alpha=np.asarray(alpha))
        return np.sum(direction * textbook(changed)[0])

    with jax.enable_x64(True):
        np.testing.assert_allclose(loss(parameters), exact(*parameters), rtol=1e-8, atol=1e-9)
        slopes = jax.jit(jax.grad(loss))(parameters)
        _, tangent = jax.jvp(loss, (parameters,), (parameters,))
    inner = sum(np.vdot(s, p) for s, p in zip(slopes, parameters, strict=True))
    np.testing.assert_allclose(tangent, inner, rtol=1e-7, atol=1e-9)
    for k in range(3):
        value = np.asarray(parameters[k])
        index = tuple(rng.integers(size) for size in value.shape)
        up, down = (list(map(np.array, parameters)) for _ in range(2))
        up[k][index] += 1e-5
        down[k][index] -= 1e-5
        difference = (exact(*up) - exact(*down)) / 2e-5
        slope = np.asarray(slopes[k])[index]
        assert abs(difference - slope) <= 1e-6 * max(1.0, abs(difference))


def test_the_optimum_needs_no_global_setting(rng):
    """In JAX's default 32 bits it runs without a warning, to 32-bit accuracy."""
    problem = make(rng, 25, 4, 2, alpha=[50.0, 50.0])
    parameters = tuple(jnp.asarray(a, jnp.float32) for a in (problem.X, problem.y, problem.alpha))
    rules = Stopping(tol=1e-3, max_iter=5000)
    w = optimum(Descent(), ridge_objective, parameters, jnp.zeros((4, 2), jnp.float32), rules)
    np.testing.assert_allclose(w, textbook(problem)[0], atol=1e-3)
