"""The pure functions: host and traced agree, derivatives are those of the optimum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl


def problem(rng, n=40, d=3):
    X = rng.normal(size=(n, d))
    return X, np.where(X @ rng.normal(size=d) + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_traced_classifiers(loss, rng):
    """One compiled program gives values and derivatives in C, weights and data."""
    X, y = problem(rng)
    host = wl.fit_linear_svc(X, y, 0.7, loss=loss)
    estimator = wl.LinearSVC(loss=loss, C=0.7, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(host.model.coef, estimator.coef_[0], atol=1e-8)
    assert host.ended.ok
    turn = rng.normal(size=X.shape)

    def value(C, omega, t):
        table = jnp.asarray(X) + t * jnp.asarray(turn)
        model = wl.fit_linear_svc(table, jnp.asarray(y), C, omega, loss=loss).model
        return (model.coef**2).sum() + model.intercept * model.coef[0]

    with jax.enable_x64(True):
        at = (jnp.asarray(0.7), jnp.ones(len(y)), jnp.asarray(0.0))
        found = wl.fit_linear_svc(jnp.asarray(X), jnp.asarray(y), 0.7, loss=loss)
        np.testing.assert_allclose(found.model.coef, host.model.coef, atol=1e-7)
        np.testing.assert_allclose(found.model.intercept, host.model.intercept, atol=1e-7)
        assert float(found.evidence["duality_gap"]) <= 1e-9
        both = jax.jit(jax.value_and_grad(value, argnums=(0, 1, 2)))
        slopes = both(*at)[1]
        step = 1e-6
        pushed = rng.normal(size=len(y))
        for slope, moved in (
            (slopes[0], (step, 0.0, 0.0)),
            (slopes[1] @ pushed, (0.0, step * pushed, 0.0)),
            (slopes[2], (0.0, 0.0, step)),
        ):
            ahead, _ = both(*(a + m for a, m in zip(at, moved, strict=True)))
            behind, _ = both(*(a - m for a, m in zip(at, moved, strict=True)))
            np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_regression_on_the_host_and_traced(rng):
    X, _ = problem(rng)
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=len(X))
    host = wl.fit_linear_svr(X, y, 2.0, 0.3)
    estimator = wl.LinearSVR(C=2.0, epsilon=0.3, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(host.model.coef, estimator.coef_, atol=1e-8)
    with jax.enable_x64(True):
        traced = wl.fit_linear_svr(jnp.asarray(X), jnp.asarray(y), 2.0, 0.3)
        np.testing.assert_allclose(traced.model.coef, host.model.coef, atol=1e-7)

        def first(epsilon):
            return wl.fit_linear_svr(jnp.asarray(X), jnp.asarray(y), 2.0, epsilon).model.coef[0]

        step = 1e-6
        slope = (first(0.3 + step) - first(0.3 - step)) / (2 * step)
        np.testing.assert_allclose(jax.grad(first)(0.3), slope, rtol=1e-4, atol=1e-5)


def test_float32_in_float32_out(rng):
    X, y = problem(rng)
    found = wl.fit_linear_svc(jnp.asarray(X, jnp.float32), jnp.asarray(y, jnp.float32))
    assert found.model.coef.dtype == jnp.float32
    host = wl.fit_linear_svc(X.astype(np.float32).astype(float), y)
    np.testing.assert_allclose(found.model.coef, host.model.coef, atol=1e-6)


def test_numbers_that_state_no_problem(rng):
    X, y = problem(rng)
    with pytest.raises(wl.InputError, match="come from the same rows"):
        wl.fit_linear_svc(X, y[:-1])
    with pytest.raises(wl.InputError, match="C > 0"):
        wl.fit_linear_svc(X, y, 0.0)
    with pytest.raises(wl.InputError, match="Did you mean 'hinge'"):
        wl.fit_linear_svc(X, y, loss="hing")
