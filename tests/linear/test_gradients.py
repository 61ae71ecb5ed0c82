"""Gradients of a validation loss through the fit: against finite differences, in every argument."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl

SHAPES = {"tall": (25, 4, 1), "outputs": (25, 4, 3), "wide": (6, 12, 1)}
STEP = 1e-6


def problem(rng, shape):
    n, d, t = shape
    X, X_new = rng.normal(size=(n, d)), rng.normal(size=(10, d))
    w = rng.normal(size=(d, t))
    y, y_new = X @ w + rng.normal(size=(n, t)), X_new @ w
    if t == 1:
        y, y_new = y[:, 0], y_new[:, 0]
    return (
        {"X": X, "y": y, "alpha": np.asarray(0.7), "weight": rng.uniform(0.2, 2, n)},
        X_new,
        y_new,
    )


def validation(arguments, X_new, y_new, **options):
    fitted = wl.fit_ridge(
        arguments["X"], arguments["y"], arguments["alpha"], arguments["weight"], **options
    )
    return ((fitted.model.predict(X_new) - y_new) ** 2).mean()


def differences(function, at, rng):
    """Central differences along each coordinate of a small argument, or some of a large one."""
    flat = np.asarray(at, float).ravel()
    chosen = rng.choice(flat.size, size=min(flat.size, 12), replace=False)
    slopes = []
    for k in chosen:
        up, down = flat.copy(), flat.copy()
        up[k] += STEP
        down[k] -= STEP
        rise = function(up.reshape(np.shape(at))) - function(down.reshape(np.shape(at)))
        slopes.append(float(rise) / (2 * STEP))
    return chosen, np.array(slopes)


@pytest.mark.parametrize("name", ["alpha", "X", "y", "weight"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_equals_finite_differences(shape, intercept, name, rng):
    arguments, X_new, y_new = problem(rng, SHAPES[shape])

    def loss(value):
        with_value = {**arguments, name: value}
        return validation(with_value, X_new, y_new, fit_intercept=intercept)

    with jax.enable_x64(True):
        found = np.asarray(jax.grad(loss)(jnp.asarray(arguments[name])))
    chosen, expected = differences(loss, arguments[name], rng)
    np.testing.assert_allclose(found.ravel()[chosen], expected, rtol=1e-6, atol=1e-6)


def test_single_precision_callers_get_double_precision_gradients(rng):
    """Without 64-bit JAX the fit still computes in float64; only the result is rounded."""
    arguments, X_new, y_new = problem(rng, SHAPES["tall"])
    single = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), arguments)

    def loss(alpha):
        return validation({**single, "alpha": alpha}, jnp.float32(X_new), jnp.float32(y_new))

    found = jax.jit(jax.grad(loss))(jnp.float32(0.7))
    assert found.dtype == jnp.float32

    def precise(alpha):
        return validation({**arguments, "alpha": alpha}, X_new, y_new)

    _, expected = differences(precise, np.asarray(0.7), rng)
    np.testing.assert_allclose(found, expected[0], rtol=1e-4)


def test_one_penalty_per_output(rng):
    arguments, X_new, y_new = problem(rng, SHAPES["outputs"])
    alphas = np.array([0.1, 1.0, 10.0])

    def loss(alpha):
        return validation({**arguments, "alpha": alpha}, X_new, y_new)

    with jax.enable_x64(True):
        found = np.asarray(jax.grad(loss)(jnp.asarray(alphas)))
    chosen, expected = differences(loss, alphas, rng)
    np.testing.assert_allclose(found[chosen], expected, rtol=1e-6, atol=1e-8)


def test_second_derivative_in_alpha(rng):
    """w = 4/(2 + α), so that w″ = 8/(2 + α)³."""
    X, y = jnp.array([[0.0], [1.0], [2.0]]), jnp.array([1.0, 3.0, 5.0])

    def slope(alpha):
        return wl.fit_ridge(X, y, alpha).model.coef[0]

    np.testing.assert_allclose(jax.grad(jax.grad(slope))(2.0), 8 / 4.0**3, rtol=1e-5)


def test_through_a_basis(rng):
    with jax.enable_x64(True):
        x = jnp.asarray(rng.uniform(-1, 1, size=(20, 1)))
        y = jnp.sin(3 * x[:, 0])
        basis = wl.bases.Polynomial(3)

        def loss(shift):
            fitted = wl.fit_ridge(x + shift, y, 0.1, basis=basis)
            return (fitted.model.predict(x) ** 2).sum()

        found = jax.grad(loss)(0.0)
        _, expected = differences(loss, np.asarray(0.0), rng)
    np.testing.assert_allclose(found, expected[0], rtol=1e-6)


def test_batches_of_problems(rng):
    X, y = rng.normal(size=(5, 20, 3)), rng.normal(size=(5, 20))
    with jax.enable_x64(True):
        many = jax.vmap(lambda X, y: wl.fit_ridge(X, y, 0.5).model.coef)(X, y)
    each = np.stack([wl.fit_ridge(X[k], y[k], 0.5).model.coef for k in range(5)])
    np.testing.assert_allclose(many, each, rtol=1e-10)


def test_host_and_xla_agree(rng):
    arguments, _, _ = problem(rng, SHAPES["outputs"])
    host = wl.fit_ridge(*(arguments[k] for k in ("X", "y", "alpha", "weight")))
    with jax.enable_x64(True):
        traced = jax.jit(wl.fit_ridge)(
            *(jnp.asarray(arguments[k]) for k in ("X", "y", "alpha", "weight"))
        )
    np.testing.assert_allclose(traced.model.coef, host.model.coef, rtol=1e-11)
    np.testing.assert_allclose(traced.model.intercept, host.model.intercept, rtol=1e-11)
    assert traced.ended.ok
    np.testing.assert_allclose(
        traced.evidence["condition_number"], host.evidence["condition_number"], rtol=1e-6
    )


def test_dependent_columns_have_a_status_in_xla(rng):
    X = rng.normal(size=(10, 2))
    X = jnp.asarray(np.hstack([X, X[:, :1]]))
    ended = wl.fit_linear_regression(X, jnp.asarray(rng.normal(size=10))).ended
    assert ended is wl.Status.SINGULAR
    assert "alpha > 0" in ended.sentence
