"""The differentiable solve: the textbook's answer, and derivatives equal to finite differences."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.solve.problems import make, textbook
from wonderland.core.arrays import in_float64
from wonderland.core.status import Status
from wonderland.solve.traced import solve_traced


@in_float64
def solve(problem):
    weight = None if problem.weight is None else jnp.asarray(problem.weight)
    return solve_traced(
        jnp.asarray(problem.X),
        jnp.asarray(problem.y),
        jnp.asarray(problem.alpha),
        weight,
        fit_intercept=problem.fit_intercept,
    )


@pytest.mark.parametrize(
    ("shape", "alpha", "weighted", "fit_intercept"),
    [
        case
        for case in itertools.product(
            [(30, 4, 2), (8, 20, 3)], [0.0, 0.7, (0.1, 5.0, 1e3)], [False, True], [False, True]
        )
        if not (case[0] == (8, 20, 3) and case[1] == 0.0)
    ],
)
def test_equals_the_textbook(rng, shape, alpha, weighted, fit_intercept):
    n, d, t = shape
    alpha = alpha[:t] if isinstance(alpha, tuple) else alpha
    problem = make(rng, n, d, t, alpha=alpha, weighted=weighted, fit_intercept=fit_intercept)
    fit = solve(problem)
    coef, intercept = textbook(problem)
    np.testing.assert_allclose(fit.coef, coef, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(fit.intercept, intercept, rtol=1e-9, atol=1e-11)
    assert Status(int(fit.status)) is Status.SOLVED
    assert float(fit.gradient) < 1e-12


@pytest.mark.parametrize("shape", [(12, 3, 2), (5, 9, 2)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_derivatives_equal_finite_differences(rng, shape, fit_intercept):
    n, d, t = shape
    problem = make(rng, n, d, t, alpha=[0.5, 2.0], weighted=True, fit_intercept=fit_intercept)
    Xv, yv = rng.normal(size=(7, d)), rng.normal(size=(7, t))

    def loss(X, y, alpha, weight):
        fit = solve_traced(X, y, alpha, weight, fit_intercept=fit_intercept)
        return jnp.mean((Xv @ fit.coef + fit.intercept[None, :] - yv) ** 2)

    point = [np.asarray(a) for a in (problem.X, problem.y, problem.alpha, problem.weight)]
    with jax.enable_x64(True):
        slopes = jax.grad(loss, argnums=(0, 1, 2, 3))(*map(jnp.asarray, point))
        value = jax.jit(loss)
        for k, slope in enumerate(slopes):
            for _ in range(4):
                index = tuple(rng.integers(size) for size in point[k].shape)
                up, down = (list(point) for _ in range(2))
                step = 1e-5
                up[k], down[k] = point[k].copy(), point[k].copy()
                up[k][index] += step
                down[k][index] -= step
                difference = (value(*up) - value(*down)) / (2 * step)
                assert abs(difference - slope[index]) <= 1e-6 * max(1.0, abs(difference))


@pytest.mark.parametrize("shape", [(12, 3, 2), (5, 9, 2)])
def test_the_derivative_at_weight_zero_is_finite(rng, shape):
    problem = make(rng, *shape, alpha=1.0, weighted=True)
    weight = problem.weight.copy()
    weight[0] = 0.0

    with jax.enable_x64(True):
        X, y = jnp.asarray(problem.X), jnp.asarray(problem.y)

        def loss(weight):
            return solve_traced(X, y, jnp.ones(2), weight).coef.sum()

        slope = jax.grad(loss)(jnp.asarray(weight))
        step = jnp.zeros(len(weight)).at[0].set(1e-6)
        forward = (loss(jnp.asarray(weight) + 2 * step) - loss(jnp.asarray(weight))) / 2e-6
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope[0], forward, rtol=1e-4)


def test_jit_and_vmap_give_the_eager_answer(rng):
    problem = make(rng, alpha=1.0)
    alphas = jnp.asarray([0.1, 1.0, 10.0])
    with jax.enable_x64(True):
        X, y = jnp.asarray(problem.X), jnp.asarray(problem.y)

        def coef(alpha):
            return solve_traced(X, y, alpha).coef

        together = jax.vmap(coef)(jnp.asarray([0.1, 1.0, 10.0]))
        for alpha, w in zip(alphas, together, strict=True):
            np.testing.assert_allclose(w, coef(jnp.float64(alpha)), rtol=1e-6)
            np.testing.assert_allclose(jax.jit(coef)(alpha), coef(alpha), rtol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 3.0, 1e5])
def test_dependent_columns_are_a_status_not_garbage(rng, scale):
    problem = make(rng)
    X = np.hstack([problem.X, scale * (problem.X[:, :1] + problem.X[:, 1:2])])
    assert Status(int(solve(problem._replace(X=X)).status)) is Status.SINGULAR
    wide = make(rng, 5, 9)
    assert Status(int(solve(wide).status)) is Status.SINGULAR


def test_a_constant_column_is_a_status_and_solved_with_a_penalty(rng):
    problem = make(rng)
    X = problem.X.copy()
    X[:, 1] = 3.0
    assert Status(int(solve(problem._replace(X=X)).status)) is Status.SINGULAR
    penalised = problem._replace(X=X, alpha=np.ones(2))
    fit = solve(penalised)
    np.testing.assert_allclose(fit.coef, textbook(penalised)[0], atol=1e-12)
