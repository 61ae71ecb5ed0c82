"""The pure functions: derivatives of a validation loss, compiled form, batch, trace budget."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl
from wonderland.core.arrays import in_float64


@pytest.fixture
def data(rng):
    X, y = rng.normal(size=(15, 3)), rng.normal(size=15)
    return X, y, rng.uniform(0.5, 2.0, size=15), rng.normal(size=(6, 3)), rng.normal(size=6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("shape", [(15, 3), (5, 9)])
def test_gradients_of_a_validation_loss(rng, shape, outputs, fit_intercept):
    """With respect to alpha, X, y and weights: equal to finite differences."""
    n, d = shape
    tail = () if outputs == 1 else (outputs,)
    X, y, weight = rng.normal(size=(n, d)), rng.normal(size=(n, *tail)), rng.uniform(0.5, 2, size=n)
    Xv, yv = rng.normal(size=(6, d)), rng.normal(size=(6, *tail))

    def loss(alpha, X, y, weight):
        model = wl.fit_ridge(X, y, alpha, weight, fit_intercept=fit_intercept).model
        return jnp.mean((model.predict(jnp.asarray(Xv)) - yv) ** 2)

    wl.testing.gradient_is_finite_difference(loss, np.float64(0.7), X, y, weight)


def test_gradients_through_a_basis(rng, data):
    X, y, _, Xv, yv = data

    def loss(alpha, X, y):
        model = wl.fit_ridge(X, y, alpha, basis=wl.bases.Polynomial(2)).model
        return jnp.mean((model.predict(jnp.asarray(Xv)) - yv) ** 2)

    wl.testing.gradient_is_finite_difference(loss, np.float64(0.7), X, y)


def test_least_squares_has_gradients_too(data):
    X, y, weight, Xv, yv = data

    def loss(X, y, weight):
        model = wl.fit_linear_regression(X, y, weight).model
        return jnp.mean((model.predict(jnp.asarray(Xv)) - yv) ** 2)

    wl.testing.gradient_is_finite_difference(loss, X, y, weight)


def test_jit_and_vmap(data):
    X, y, _, _, _ = data

    def coef(alpha):
        return wl.fit_ridge(jnp.asarray(X), jnp.asarray(y), alpha).model.coef

    wl.testing.jit_is_eager(coef, np.float64(0.5))
    wl.testing.vmap_is_a_loop(coef, np.array([0.1, 1.0, 10.0]))


def test_neither_new_data_nor_new_penalties_compile(data):
    X, y, _, _, _ = data
    arrays = [tuple(map(jnp.asarray, pair)) for pair in ((X, y), (2 * X, y + 1))]
    wl.testing.nothing_compiles_again(
        lambda: wl.fit_ridge(*arrays[0], 1.0).model.coef,
        lambda: wl.fit_ridge(*arrays[1], 1.0).model.coef,
        lambda: wl.fit_ridge(*arrays[0], 0.3).model.coef,
    )


@in_float64
def test_host_and_jax_agree(data):
    X, y, weight, _, _ = data
    for alpha in (0.0, 0.5):
        host = wl.fit_ridge(X, y, alpha, weight)
        traced = wl.fit_ridge(jnp.asarray(X), jnp.asarray(y), alpha, jnp.asarray(weight))
        np.testing.assert_allclose(traced.model.coef, host.model.coef, rtol=1e-10)
        np.testing.assert_allclose(traced.model.intercept, host.model.intercept, rtol=1e-10)
        assert host.ended is traced.ended is wl.Status.SOLVED


def test_the_estimator_and_the_function_are_one(data):
    X, y, weight, _, _ = data
    model = wl.fit_ridge(X, y, 0.5, weight).model
    estimator = wl.Ridge(0.5).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.coef, estimator.coef_)
    np.testing.assert_array_equal(model.intercept, estimator.intercept_)


def test_a_solution_passes_through_jit(data):
    X, y, _, _, _ = data
    solution = jax.jit(lambda X, y: wl.fit_ridge(X, y, 1.0))(X, y)
    assert solution.ended is wl.Status.SOLVED
    assert set(solution.evidence) >= {"condition_number", "gradient_norm"}
    assert solution.model.coef.shape == (3,)


def test_dependent_columns_are_told_in_xla_and_answered_on_the_host(data):
    X, y, _, _, _ = data
    twice = np.hstack([X, X[:, :1]])
    traced = wl.fit_linear_regression(jnp.asarray(twice), jnp.asarray(y))
    assert traced.ended is wl.Status.SINGULAR
    host = wl.fit_linear_regression(twice, y)
    assert host.ended is wl.Status.SOLVED
    np.testing.assert_allclose(host.model.coef[0], host.model.coef[3], rtol=1e-9)
