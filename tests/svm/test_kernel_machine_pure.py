"""The pure kernel machine: host and traced agree; derivatives are those of the optimum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.svm as sk

import wonderland as wl


def problem(rng, n=40):
    X = rng.normal(size=(n, 2))
    return X, np.where((X**2).sum(axis=1) + 0.5 * rng.normal(size=n) > 1.4, 1.0, -1.0)


@pytest.mark.parametrize("C", [0.02, 1.0, 30.0])
def test_host_and_traced_are_libsvms(C, rng):
    X, y = problem(rng)
    weight = rng.uniform(0.5, 2.0, size=len(y))
    theirs = sk.SVC(C=C, gamma=0.7, tol=1e-10).fit(X, y, weight).decision_function(X)
    host = wl.fit_svc(X, y, wl.kernels.Gaussian(0.7), C, weight)
    assert host.ended.ok
    if C > 0.02:  # where all of a class are at their bound, b is not unique
        np.testing.assert_allclose(host.model.predict(X), theirs, atol=1e-5)
    with jax.enable_x64(True):
        traced = wl.fit_svc(
            jnp.asarray(X), jnp.asarray(y), wl.kernels.Gaussian(0.7), C, jnp.asarray(weight)
        )
        assert traced.ended.ok
        assert abs(float(traced.evidence["duality_gap"])) <= 1e-9
        np.testing.assert_allclose(traced.evidence["primal"], host.evidence["primal"], rtol=1e-8)
        np.testing.assert_allclose(
            traced.model.predict(jnp.asarray(X)), host.model.predict(X), atol=1e-6
        )


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 40])
def test_derivatives_in_kernel_cost_weights_and_samples(n, rng):
    X, y = problem(rng, n)
    turn, at = rng.normal(size=X.shape), rng.normal(size=(3, 2))

    def value(gamma, C, share, move):
        table = jnp.asarray(X) + move * jnp.asarray(turn)
        weight = jnp.ones(n).at[: n // 2].mul(1.0 + share)
        fit = wl.fit_svc(table, jnp.asarray(y), wl.kernels.Gaussian(gamma), C, weight)
        return (fit.model.predict(jnp.asarray(at)) ** 2).sum() + fit.model.intercept

    with jax.enable_x64(True):
        place = [jnp.asarray(number) for number in (0.7, 2.0, 0.0, 0.0)]
        plain, slope = jax.jit(value), jax.jit(jax.grad(value, argnums=(0, 1, 2, 3)))
        slopes, step = slope(*place), 1e-5
        for k, found in enumerate(slopes):
            ahead, behind = (
                plain(*(p + sign * step * (i == k) for i, p in enumerate(place)))
                for sign in (1.0, -1.0)
            )
            np.testing.assert_allclose(found, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("C", [0.01, 5.0])
def test_no_free_sample_and_equal_samples(C, copies):
    X = np.repeat([[-1.5], [-0.5], [0.5], [1.7]], copies, axis=0)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    host = wl.fit_svc(X, y, wl.kernels.Gaussian(0.4), C)

    def bias(gamma):
        fit = wl.fit_svc(jnp.asarray(X), jnp.asarray(y), wl.kernels.Gaussian(gamma), C)
        return fit.model.intercept, fit

    with jax.enable_x64(True):
        slope, fit = jax.grad(bias, has_aux=True)(0.4)
        assert fit.ended.ok, fit.evidence
        np.testing.assert_allclose(fit.model.predict(X), host.model.predict(X), atol=1e-6)
        change = (bias(0.4 + 1e-5)[0] - bias(0.4 - 1e-5)[0]) / 2e-5
        np.testing.assert_allclose(slope, change, rtol=1e-5, atol=1e-6)


def test_signs_and_cost_are_checked(rng):
    X, y = problem(rng)
    for signs, C in ((np.ones(40), 1.0), (y, 0.0), (y, np.inf)):
        with pytest.raises(wl.InputError, match="C is"):
            wl.fit_svc(X, signs, wl.kernels.Linear(), C)
