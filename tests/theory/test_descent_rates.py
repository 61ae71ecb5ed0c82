"""Gradient descent under its theorems, step by step, on problems whose optimum is known.

fixed step 1/L              f(w_k) − f* ≤ L·D² / (2k)                            (thm 8.5)
step 2/(m + L)              ‖w_k − w*‖ ≤ q^k·D,  q = (κ − 1)/(κ + 1)              (thm 8.7)
not convex, step 1/L        min_i ‖∇f(w_i)‖ ≤ √(2L(f(w₀) − f*)/(k + 1))           (thm 8.8)
Nesterov momentum           f(w_k) − f* ≤ 2L·D² / (k + 1)², and ≤ L·D²(1 − √(m/L))^k
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wonderland.core.arrays import in_float64
from wonderland.solve.gradient import Descent, Quadratic, Smooth
from wonderland.solve.theory import (
    convex_bound,
    momentum_bound,
    non_convex_bound,
    strongly_convex_bound,
)

STEPS = 300
SLACK = 1 + 1e-9


def quadratic(values, w_star, *, convexity):
    """f(w) = ½ Σ v_j (w_j − w*_j)², rotated by nothing: eigenvectors are the axes."""
    values = jnp.asarray(values)
    return Quadratic(
        gram=jnp.diag(values),
        cross=(values * w_star)[:, None],
        alpha=jnp.zeros(1),
        mass=jnp.ones(()),
        norms=jnp.ones((len(values), 1)),
        lipschitz=values.max(),
        strong_convexity=jnp.asarray(convexity, values.dtype),
    )


def gap(values, w_star, w):
    return float(0.5 * np.sum(np.asarray(values) * (np.asarray(w)[:, 0] - w_star) ** 2))


@in_float64
def walk(objective, start, *, momentum, steps=STEPS):
    """All iterates w_0 … w_steps (steps + 1, d, 1)."""
    solver = Descent(momentum=momentum)
    step = eqx.filter_jit(solver.step)
    state, iterates = solver.init(objective, start), [start]
    for _ in range(steps):
        state = step(objective, state)
        iterates.append(state.w)
    return np.stack(iterates)


SPECTRA = {
    "even": np.linspace(0.1, 1.0, 8),
    "spread": np.geomspace(1e-5, 1.0, 8),
    "two levels": np.array([1e-3] * 4 + [1.0] * 4),
    "singular": np.array([0.0, 1e-4, 1e-2, 1.0]),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@in_float64
def test_a_fixed_step_keeps_the_convex_bound(rng, spectrum):
    values = SPECTRA[spectrum]
    w_star = rng.normal(size=len(values)) * (values > 0)
    path = walk(
        quadratic(values, w_star, convexity=0.0), jnp.zeros((len(values), 1)), momentum=False
    )
    distance = np.linalg.norm(w_star)
    gaps = [gap(values, w_star, w) for w in path]
    for k in range(1, STEPS + 1):
        assert gaps[k] <= convex_bound(k, 1.0, distance) * SLACK
        assert gaps[k] <= gaps[k - 1] * SLACK, "each step with 1/L descends"


@pytest.mark.parametrize("spectrum", ["even", "spread", "two levels"])
@in_float64
def test_strong_convexity_contracts_at_the_rate_of_the_theorem(rng, spectrum):
    values = SPECTRA[spectrum]
    w_star = rng.normal(size=len(values))
    m, L = values.min(), values.max()
    path = walk(quadratic(values, w_star, convexity=m), jnp.zeros((len(values), 1)), momentum=False)
    q, distance = (L - m) / (L + m), np.linalg.norm(w_star)
    floor = 1e-14 * distance
    for k, w in enumerate(path):
        assert np.linalg.norm(w[:, 0] - w_star) <= q**k * distance * SLACK + floor
        bound = strongly_convex_bound(k, L, m, distance)
        assert gap(values, w_star, w) <= bound * SLACK + floor**2


@in_float64
def test_the_rate_is_attained():
    """With the error along the two extreme eigenvectors the contraction is exactly q."""
    values, w_star = np.array([0.01, 1.0]), np.array([1.0, 1.0])
    path = walk(quadratic(values, w_star, convexity=0.01), jnp.zeros((2, 1)), momentum=False)
    errors = np.linalg.norm(path[:, :, 0] - w_star, axis=1)
    np.testing.assert_allclose(errors[1:] / errors[:-1], 0.99 / 1.01, rtol=1e-9)


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("knows_m", [False, True])
@in_float64
def test_momentum_keeps_its_bound(rng, spectrum, knows_m):
    values = SPECTRA[spectrum]
    m = values.min() if knows_m else 0.0
    w_star = rng.normal(size=len(values)) * (values > 0)
    path = walk(quadratic(values, w_star, convexity=m), jnp.zeros((len(values), 1)), momentum=True)
    distance = np.linalg.norm(w_star)
    for k, w in enumerate(path):
        if knows_m and m > 0:
            # The constant-momentum method has the geometric theorem only.
            bound = distance**2 * (1 - np.sqrt(m)) ** k
        else:
            bound = momentum_bound(k, 1.0, m, distance)
        assert gap(values, w_star, w) <= bound * SLACK + 1e-28 * distance**2


@in_float64
def test_momentum_is_faster_where_the_theorem_says_so(rng):
    values = np.geomspace(1e-4, 1.0, 8)
    w_star = rng.normal(size=8)
    objective = quadratic(values, w_star, convexity=1e-4)
    slow = walk(objective, jnp.zeros((8, 1)), momentum=False)
    fast = walk(objective, jnp.zeros((8, 1)), momentum=True)
    assert gap(values, w_star, fast[-1]) < 1e-2 * gap(values, w_star, slow[-1])


class Waves(Smooth):
    """f(w) = Σ (w_j² /8 + cos w_j): smooth with L = 5/4, not convex."""

    lipschitz: jax.Array
    strong_convexity: jax.Array

    def gradient(self, w):
        return w / 4 - jnp.sin(w)

    def certificate(self, gradient):
        return jnp.max(jnp.abs(gradient))


@in_float64
def test_without_convexity_the_smallest_gradient_keeps_its_bound(rng):
    start = jnp.asarray(rng.uniform(-6, 6, size=(5, 1)))
    objective = Waves(jnp.asarray(1.25), jnp.asarray(0.0))
    path = walk(objective, start, momentum=False)
    values = (path**2 / 8 + np.cos(path)).sum(axis=(1, 2))
    grid = np.linspace(-10, 10, 200_001)
    lowest = 5 * (grid**2 / 8 + np.cos(grid)).min()
    norms = np.linalg.norm((path / 4 - np.sin(path))[:, :, 0], axis=1)
    for k in range(STEPS + 1):
        bound = non_convex_bound(k, 1.25, values[0] - lowest)
        assert norms[: k + 1].min() <= bound * SLACK
    assert np.all(np.diff(values) <= 1e-12), "each step with 1/L descends, convex or not"
