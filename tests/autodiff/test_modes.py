"""The modes against closed forms, matrices and JAX's own transformations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wonderland.autodiff import (
    LinearMap,
    directional_derivative,
    gradient,
    hvp,
    jvp,
    linearise,
    value_and_gradient,
    vjp,
)
from wonderland.core.errors import InputError


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


A = np.arange(12.0).reshape(4, 3) / 7


def quadratic(x, c=1.0):
    return c * (A @ x) ** 2


def jacobian_of_quadratic(x):
    return 2 * (A @ x)[:, None] * A


def close(a, b, tol=1e-13):
    jax.tree.map(lambda p, q: np.testing.assert_allclose(p, q, rtol=tol, atol=tol), a, b)


def test_jvp_and_vjp_equal_the_closed_form():
    x, v, u = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.1, -1.0]), np.arange(4.0)
    value, slope = jvp(quadratic, x, v)
    close(value, (A @ x) ** 2)
    close(slope, jacobian_of_quadratic(x) @ v)
    value, pull = vjp(quadratic, x)
    close(pull(u), jacobian_of_quadratic(x).T @ u)
    close(pull(2 * u), 2 * jacobian_of_quadratic(x).T @ u)


def test_modes_are_dual_on_pytrees():
    def f(tree):
        return {"out": jnp.outer(jnp.sin(tree["a"]), tree["b"][0]), "n": 3, "s": tree["b"][1] ** 2}

    rng = np.random.default_rng(0)
    x = {"a": rng.normal(size=3), "b": (rng.normal(size=2), 0.7), "k": 5}
    v = {"a": rng.normal(size=3), "b": (rng.normal(size=2), 1.1), "k": None}
    u = {"out": rng.normal(size=(3, 2)), "n": 0, "s": -0.4}
    _, slope = jvp(lambda t: {k: p for k, p in f(t).items() if k != "n"}, x, v)
    _, pull = vjp(f, x)
    back = pull(u)
    forward = (u["out"] * slope["out"]).sum() + u["s"] * slope["s"]
    backward = (v["a"] * back["a"]).sum() + (v["b"][0] * back["b"][0]).sum() + 1.1 * back["b"][1]
    close(forward, backward)
    assert back["k"] is None


def test_direction_may_be_a_whole_copy_of_the_point():
    x = {"a": jnp.ones(2), "k": 5}
    close(jvp(lambda t: t["a"].sum(), x, x)[1], 2.0)


def test_gradient_equals_closed_form_and_takes_data():
    x = np.array([1.0, -2.0, 0.5])
    close(gradient(lambda z, c: quadratic(z, c).sum(), x, 3.0), 3 * jacobian_of_quadratic(x).sum(0))
    value, slope = value_and_gradient(lambda z: quadratic(z).sum(), x)
    close(value, ((A @ x) ** 2).sum())
    close(slope, jacobian_of_quadratic(x).sum(0))


def test_gradient_of_a_module_keeps_its_structure():
    layer = eqx.nn.MLP(2, 1, 4, 1, key=jax.random.key(0))
    slope = gradient(lambda m, x: m(x).sum(), layer, jnp.ones(2))
    ours = jax.tree.leaves(slope)
    theirs = jax.tree.leaves(eqx.filter_grad(lambda m, x: m(x).sum())(layer, jnp.ones(2)))
    assert len(ours) == len(theirs) == 4
    close(ours, theirs)


def test_hvp_equals_the_dense_hessian():
    x, v = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.1, -1.0])

    def f(z):
        return jnp.sum(jnp.exp(A @ z)) + jnp.prod(z)

    H = A.T @ np.diag(np.exp(A @ x)) @ A
    H += np.array([[0, x[2], x[1]], [x[2], 0, x[0]], [x[1], x[0], 0]])
    close(hvp(f, x, v), H @ v, 1e-12)
    close(jax.jit(lambda z, w: hvp(f, z, w))(x, v), H @ v, 1e-12)
    close(jax.vmap(lambda w: hvp(f, x, w))(np.eye(3)), H, 1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_directional_derivatives_to_every_order(order):
    x, v = np.array([0.3, -0.2]), np.array([1.5, -0.5])
    # f(x + t v) = exp(a + b t): the k-th derivative is bᵏ exp(a).
    a, b = x @ [2.0, 3.0], v @ [2.0, 3.0]
    got = directional_derivative(lambda z: jnp.exp(z @ jnp.array([2.0, 3.0])), x, v, order=order)
    close(got, b**order * np.exp(a))


def test_directional_derivative_order_zero_is_refused():
    with pytest.raises(InputError, match="order is 0"):
        directional_derivative(jnp.sin, 1.0, 1.0, order=0)


def test_linear_map_is_called_transposed_and_made_a_matrix():
    x = np.array([1.0, -2.0, 0.5])
    L, J = linearise(quadratic, x), jacobian_of_quadratic(x)
    v, u = np.array([0.3, 0.1, -1.0]), np.arange(4.0)
    assert isinstance(L, LinearMap)
    assert L.shape == (4, 3)
    assert L.T.shape == (3, 4)
    close(L(v), J @ v)
    close(L.T(u), J.T @ u)
    close(L.T.T(v), J @ v)
    close(L.transpose()(u), J.T @ u)
    close(L.matrix(), J)
    close(L.T.matrix(), J.T)
    close(L.value, (A @ x) ** 2)
    close(L.approximate(x + v), (A @ x) ** 2 + J @ v)


def test_wide_map_takes_rows():
    L = linearise(lambda x: (x**2).sum(), np.arange(5.0))
    close(L.matrix(), 2 * np.arange(5.0)[None])


def test_linear_map_of_pytrees_has_the_block_matrix():
    def f(t):
        return (t["a"] * t["b"], t["a"].sum())

    x = {"a": np.array([1.0, 2.0]), "b": np.array(3.0)}
    wanted = [[3, 0, 1], [0, 3, 2], [1, 1, 0]]
    close(linearise(f, x).matrix(), np.array(wanted, float))


def test_linear_map_crosses_jit_and_vmap():
    x = np.array([1.0, -2.0, 0.5])
    L = jax.jit(lambda z: linearise(quadratic, z))(x)
    close(L.matrix(), jacobian_of_quadratic(x))
    points = np.stack([x, 2 * x])
    many = jax.vmap(lambda z: linearise(quadratic, z).matrix())(points)
    close(many, np.stack([jacobian_of_quadratic(z) for z in points]))
    close(jax.jit(lambda z, v: jvp(quadratic, z, v)[1])(x, x), jacobian_of_quadratic(x) @ x)


def test_integer_point_is_refused_with_three_parts():
    with pytest.raises(InputError, match=r"no real or complex leaf.*Expected.*Pass floats"):
        gradient(lambda x: x * 1.0, 3)


def test_vector_function_has_no_gradient():
    with pytest.raises(InputError, match="jacobian"):
        gradient(lambda x: x, jnp.ones(3))
    with pytest.raises(InputError, match=r"complex(64|128)"):
        gradient(lambda x: x.sum() * 1j, jnp.ones(3))


@pytest.mark.parametrize("v", [jnp.ones(2), (jnp.ones(3),), jnp.ones((3, 1)), 1j * jnp.ones(3)])
def test_wrong_directions_are_refused(v):
    with pytest.raises(InputError):
        jvp(quadratic, jnp.ones(3), v)


def test_wrong_weights_are_refused():
    _, pull = vjp(quadratic, jnp.ones(3))
    with pytest.raises(InputError):
        pull(jnp.ones(3))


def test_single_precision_stays_single():
    with jax.enable_x64(False):
        x = jnp.ones(3, jnp.float32)
        assert gradient(lambda z: (z**2).sum(), x).dtype == jnp.float32
        assert hvp(lambda z: (z**3).sum(), x, np.ones(3)).dtype == jnp.float32
        assert linearise(jnp.sin, x).matrix().dtype == jnp.float32
        second = directional_derivative(lambda z: (z**3).sum(), x, x, order=2)
        assert second.dtype == jnp.float32
        assert float(second) == pytest.approx(18.0)
