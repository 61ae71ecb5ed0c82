"""`jacobian` and `hessian` in one call: right, remembered, and only while nothing has changed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wonderland.autodiff.jacobian import _plans, forget_plans, hessian, jacobian


@pytest.fixture(autouse=True)
def fresh():
    forget_plans()
    with jax.enable_x64(True):
        yield
    forget_plans()


def chain(x):
    return x[1:] ** 2 * x[:-1]


def energy(x, weight=1.0):
    return weight * jnp.sum(x[1:] ** 2 * x[:-1]) + jnp.sum(x**4)


X = np.random.default_rng(1).standard_normal(9)


def test_jacobian_and_hessian_equal_jax_and_finite_differences():
    x = jnp.asarray(X)
    np.testing.assert_allclose(jacobian(chain, x), jax.jit(jax.jacfwd(chain))(x), atol=1e-13)
    np.testing.assert_allclose(hessian(energy, x), jax.jit(jax.hessian(energy))(x), atol=1e-12)
    ahead, behind = (jax.vmap(chain)(x[None] + step * np.eye(9)) for step in (1e-6, -1e-6))
    moved = (ahead - behind) / 2e-6
    np.testing.assert_allclose(jacobian(chain, x), moved.T, atol=1e-8)


@pytest.mark.parametrize("output", ["scipy", "bcoo"])
def test_sparse_outputs(output):
    found = hessian(energy, jnp.asarray(X), output=output)
    entries = found.toarray() if output == "scipy" else found.todense()
    np.testing.assert_allclose(entries, jax.jit(jax.hessian(energy))(jnp.asarray(X)), atol=1e-12)
    assert (found.nnz if output == "scipy" else found.nse) == 25


def test_plans_are_remembered_by_shape():
    x = jnp.asarray(X)
    for value in (x, 2 * x, -x):
        jacobian(chain, value)
    assert len(_plans) == 1
    jacobian(chain, x[:5])
    jacobian(chain, x.astype(jnp.float32))
    assert len(_plans) == 3


def test_fixed_arguments_are_part_of_the_plan():
    def power(x, k):
        return x**k

    x = jnp.asarray(X)
    np.testing.assert_allclose(jacobian(power, x, 2), np.diag(2 * X), atol=1e-13)
    np.testing.assert_allclose(jacobian(power, x, 3), np.diag(3 * X**2), atol=1e-13)
    np.testing.assert_allclose(jacobian(power, x, 2), np.diag(2 * X), atol=1e-13)


def test_arguments_that_vary_share_a_plan():
    x = jnp.asarray(X)
    for weight in (1.0, 2.5):
        expected = jax.jit(jax.hessian(energy))(x, weight)
        np.testing.assert_allclose(hessian(energy, x, weight), expected, atol=1e-12)
    assert len(_plans) == 1
    assert len(next(iter(_plans.values()))) == 1


def test_under_jit_and_vmap():
    xs = jnp.stack([jnp.asarray(X), jnp.asarray(-X)])
    found = jax.jit(jax.vmap(lambda x: jacobian(chain, x)))(xs)
    np.testing.assert_allclose(found, jax.jit(jax.vmap(jax.jacfwd(chain)))(xs), atol=1e-12)


def test_a_numpy_point_and_a_python_number():
    np.testing.assert_allclose(jacobian(chain, X), jax.jit(jax.jacfwd(chain))(X), atol=1e-13)
    assert float(jacobian(lambda x: x**3, 2.0)) == 12.0


def test_callables_that_cannot_be_hashed_are_planned_anew():
    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return x**2

    np.testing.assert_allclose(jacobian(Unhashable(), jnp.ones(3)), 2 * np.eye(3))
    assert not _plans


def test_points_made_inside_a_trace_leave_nothing_behind():
    """The first call may happen while tracing: its plan must hold no tracer."""
    jax.jit(lambda x: jacobian(chain, 2 * x))(jnp.asarray(X))
    np.testing.assert_allclose(
        jacobian(chain, jnp.asarray(X)), jax.jit(jax.jacfwd(chain))(X), atol=1e-13
    )
