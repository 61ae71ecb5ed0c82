"""Gradient descent's parts: the gradient is the derivative, each step is the textbook's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wonderland.core.arrays import in_float64
from wonderland.solve.gradient import Descent, Quadratic


@in_float64
def quadratic(rng, d=4, t=2, *, convex_only=False) -> Quadratic:
    root = rng.normal(size=(d, d))
    if convex_only:
        root[-1] = 0.0
    gram = root.T @ root
    values = np.linalg.eigvalsh(gram)
    mass = 7.0
    return Quadratic(
        gram=jnp.asarray(gram),
        cross=jnp.asarray(gram @ rng.normal(size=(d, t))),
        alpha=jnp.zeros(t),
        mass=jnp.asarray(mass),
        norms=jnp.asarray(rng.uniform(1, 2, size=(d, t))),
        lipschitz=jnp.asarray(values[-1] / mass),
        strong_convexity=jnp.asarray(0.0 if convex_only else values[0] / mass),
    )


@in_float64
def test_the_gradient_is_the_derivative_of_the_objective(rng):
    f = quadratic(rng)
    f = Quadratic(
        f.gram, f.cross, jnp.asarray([0.5, 2.0]), f.mass, f.norms, f.lipschitz, f.lipschitz
    )
    w = jnp.asarray(rng.normal(size=(4, 2)))

    def value(w):
        inner = sum(w[:, k] @ (f.gram + f.alpha[k] * jnp.eye(4)) @ w[:, k] for k in range(2))
        return (0.5 * inner - jnp.sum(f.cross * w)) / f.mass

    np.testing.assert_allclose(f.gradient(w), jax.grad(value)(w), rtol=1e-10)


@in_float64
def test_the_certificate_is_the_largest_cosine(rng):
    f = quadratic(rng)
    g = rng.normal(size=(4, 2))
    expected = np.max(np.abs(g) * 7.0 / np.asarray(f.norms))
    np.testing.assert_allclose(f.certificate(jnp.asarray(g)), expected, rtol=1e-12)


@pytest.mark.parametrize("convex_only", [False, True])
@pytest.mark.parametrize("momentum", [False, True])
@in_float64
def test_steps_follow_the_textbook(rng, momentum, convex_only):
    f = quadratic(rng, convex_only=convex_only)
    L, m = float(f.lipschitz), float(f.strong_convexity)
    solver = Descent(momentum=momentum)
    state = solver.init(f, jnp.zeros((4, 2)))
    w = previous = np.zeros((4, 2))
    for t in range(6):
        if momentum:
            eta = 1 / L
            beta = t / (t + 3) if convex_only else (L**0.5 - m**0.5) / (L**0.5 + m**0.5)
        else:
            eta, beta = (1 / L if convex_only else 2 / (L + m)), 0.0
        u = w + beta * (w - previous)
        previous, w = w, u - eta * np.asarray(f.gradient(jnp.asarray(u)))
        state = solver.step(f, state)
        np.testing.assert_allclose(state.w, w, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.moved, np.sum((w - previous) ** 2), rtol=1e-9)
        g = f.gradient(jnp.asarray(w))
        np.testing.assert_allclose(state.certificate, f.certificate(g), rtol=1e-6)
    assert int(state.count) == 6


@pytest.mark.parametrize("momentum", [False, True])
@in_float64
def test_a_flat_objective_stays_where_it_is(momentum):
    zero = jnp.zeros(())
    flat = Quadratic(
        jnp.zeros((2, 2)), jnp.zeros((2, 1)), jnp.zeros(1), zero + 1, jnp.ones((2, 1)), zero, zero
    )
    solver = Descent(momentum=momentum)
    state = solver.step(flat, solver.init(flat, jnp.ones((2, 1))))
    np.testing.assert_array_equal(state.w, 1.0)
    assert float(state.certificate) == 0.0
