"""Kinds of stationary points of functions whose Hessian is known, and the way out of each."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wonderland.autodiff import stationary
from wonderland.autodiff.lanczos import extremes, unseen
from wonderland.core.errors import InputError


def never(_):
    return False


def rotated(values, seed=0):
    """A symmetric matrix with these eigenvalues, and its eigenvectors as columns."""
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    return (Q * np.asarray(values, float)) @ Q.T, Q


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "minimum"),
        ([1e-4, 1, 1], "minimum"),
        ([-1, -2, -3], "maximum"),
        ([-1, 2, 3], "saddle"),
        ([-1e-4, 1, 1], "saddle"),
        ([0, 1, 2], "undecided"),
        ([-2, -1, 0], "undecided"),
        ([5], "minimum"),
        ([-5], "maximum"),
    ],
)
def test_quadratics_by_their_eigenvalues(values, kind):
    H, Q = rotated(values)
    at = np.arange(1.0, len(values) + 1)
    found = stationary(lambda x: 0.5 * (x - at) @ H @ (x - at) + 7, at)
    assert found.kind == kind
    assert found.lowest == pytest.approx(min(values), abs=1e-12)
    assert found.highest == pytest.approx(max(values), abs=1e-12)
    assert found.value == 7
    if min(values) < 0:
        assert abs(np.asarray(found.escape) @ Q[:, np.argmin(values)]) == pytest.approx(1, abs=1e-9)
        assert found.drop > 0
    else:
        assert found.escape is None


def test_large_saddle_without_a_hessian():
    """n = 3000 with one negative curvature among 3000: found, and followed downhill."""
    n = 3000
    curvature = np.linspace(0.5, 2.0, n)
    curvature[1234] = -0.3

    def f(x):
        return 0.5 * (curvature * x**2).sum() + 0.25 * (x**4).sum()

    found = stationary(f, np.zeros(n))
    assert found.kind == "saddle"
    assert found.lowest == pytest.approx(-0.3, rel=1e-6)
    assert found.products < 300
    assert abs(found.escape[1234]) == pytest.approx(1, abs=1e-5)
    assert found.drop == pytest.approx(0.3**2 / 4, rel=0.5)  # min of −0.15 t² + t⁴/4


def test_large_minimum_states_how_sure_it_is():
    curvature = np.linspace(0.5, 2.0, 3000)
    found = stationary(lambda x: (curvature * x**2).sum(), np.zeros(3000))
    assert found.kind == "minimum"
    assert 0 < found.chance < 1e-3
    hasty = stationary(lambda x: (curvature * x**2).sum(), np.zeros(3000), steps=5)
    assert hasty.kind == "undecided"
    assert "raise steps" in hasty.sentence


def test_rosenbrock_and_himmelblau():
    def rosenbrock(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def himmelblau(x):
        return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2

    assert stationary(rosenbrock, np.ones(5)).kind == "minimum"
    assert stationary(rosenbrock, np.zeros(5)).kind == "not stationary"
    assert stationary(himmelblau, np.array([3.0, 2.0])).kind == "minimum"
    assert stationary(himmelblau, np.array([-0.270845, -0.923039])).kind == "maximum"
    assert stationary(himmelblau, np.array([0.0866775, 2.884255])).kind == "saddle"


def test_network_at_its_symmetric_saddle():
    """Two hidden units that are copies of one another: the textbook saddle of a network."""
    x = np.linspace(-2, 2, 21)
    y = np.tanh(x) - np.tanh(2 * x - 1)

    def loss(p):
        return ((jnp.tanh(jnp.outer(x, p["w"]) + p["b"][None]) @ p["v"] - y) ** 2).mean()

    def tied(p):
        return loss({"w": jnp.full(2, p[0]), "b": jnp.full(2, p[1]), "v": jnp.full(2, p[2])})

    with jax.enable_x64(True):
        p = jnp.array([0.5, 0.3, 0.2])

        def newton(_, p):  # on the tied problem, whose solution is stationary untied
            values, vectors = jnp.linalg.eigh(jax.hessian(tied)(p))
            step = vectors @ ((vectors.T @ jax.grad(tied)(p)) / jnp.maximum(jnp.abs(values), 1e-3))
            return p - jnp.clip(step, -0.3, 0.3)

        p = jax.lax.fori_loop(0, 60, newton, p)
        point = {"w": jnp.full(2, p[0]), "b": jnp.full(2, p[1]), "v": jnp.full(2, p[2])}
        found = stationary(loss, point)
        assert found.kind == "saddle", found
        assert set(found.escape) == {"w", "b", "v"}
        lower = jax.tree.map(lambda a, d: a + 0.01 * d, point, found.escape)
        assert loss(lower) < loss(point)
        # The way out pulls the copies apart.
        assert float(found.escape["w"] @ jnp.array([1.0, -1.0])) != 0
        assert float(jnp.abs(found.escape["w"].sum())) < 1e-4


@pytest.mark.parametrize(
    ("f", "kind"),
    [
        (lambda x: x**4, "minimum"),
        (lambda x: -(x**4), "maximum"),
        (lambda x: x**3, "saddle"),
        (lambda x: x**6, "undecided"),
        (lambda x: 0 * x, "undecided"),
    ],
)
def test_flat_points_of_one_variable_ask_higher_derivatives(f, kind):
    assert stationary(f, 0.0).kind == kind


def test_flat_directions_of_several_variables():
    def f(power, sign):
        return lambda x: x[0] ** 2 + sign * x[1] ** power

    assert stationary(f(4, -1), np.zeros(2)).kind == "saddle"
    assert stationary(f(3, 1), np.zeros(2)).kind == "saddle"
    assert stationary(f(4, 1), np.zeros(2)).kind == "undecided"
    found = stationary(f(3, 1), np.zeros(2))
    assert np.asarray(found.escape)[1] == pytest.approx(-1)
    assert found.drop > 0


def test_not_stationary_gives_the_way_down():
    found = stationary(lambda x: ((x - 1) ** 2).sum(), np.zeros(3))
    assert found.kind == "not stationary"
    np.testing.assert_allclose(found.escape, np.ones(3) / np.sqrt(3), rtol=1e-12)
    assert found.drop > 0


def test_single_precision_point_and_data():
    A = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    y = A @ np.ones(4, np.float32)
    found = stationary(lambda w, A, y: ((A @ w - y) ** 2).sum(), jnp.ones(4), A, y)
    assert found.kind == "minimum"
    values = np.linalg.eigvalsh(2 * A.T.astype(float) @ A)
    assert found.lowest == pytest.approx(values[0], rel=1e-5)
    assert found.highest == pytest.approx(values[-1], rel=1e-5)


def test_report_prints_and_becomes_json():
    found = stationary(lambda p: p["a"] ** 2 - p["b"] ** 2, {"a": 0.0, "b": 0.0})
    assert str(found).startswith("saddle: ")
    assert "Hessian-vector products" in str(found)
    plain = json.loads(json.dumps(found.to_dict()))
    assert abs(plain["escape"]["b"]) == pytest.approx(1)


def test_vector_functions_are_refused():
    with pytest.raises(InputError, match="shape"):
        stationary(lambda x: x, np.ones(2))


def test_not_finite_derivatives_are_undecided():
    assert stationary(lambda x: jnp.sqrt(x @ x), np.zeros(2)).kind == "undecided"


# Lanczos ---------------------------------------------------------------------------------------


def test_lanczos_error_bounds_hold():
    values = np.concatenate([np.linspace(-1, 1, 398), [1.7, -3.1]])
    H, _ = rotated(values, 3)
    for steps in (12, 25, 60):
        found = extremes(
            lambda v: H @ v, 400, steps=steps, enough=never, rng=np.random.default_rng(1)
        )
        for ritz in (found.lowest, found.highest):
            assert np.abs(values - ritz.value).min() <= ritz.error + 1e-12
            assert np.linalg.norm(H @ ritz.vector - ritz.value * ritz.vector) <= ritz.error + 1e-10
    assert found.lowest.value == pytest.approx(-3.1, abs=1e-10)


def test_lanczos_sees_everything_after_n_steps():
    """Multiple eigenvalues end the Krylov space early; begun anew beside it, it finds the rest."""
    for values in ([1, 1, 1, 1], [0, 0, 0], [2, 2, -1, -1, -1, 5]):
        H, _ = rotated(values)
        n = len(values)
        found = extremes(
            lambda v, H=H: H @ v, n, steps=n, enough=never, rng=np.random.default_rng(2)
        )
        assert found.complete
        assert found.lowest.value == pytest.approx(min(values), abs=1e-12)
        assert found.highest.value == pytest.approx(max(values), abs=1e-12)
        assert unseen(found, 0.1, n) == 0


def test_the_probability_of_missing_an_end_is_kept():
    """Over 200 random starts the misses stay below the stated probability."""
    values = np.concatenate([np.linspace(0, 1, 199), [-0.08]])
    fraction, misses, stated = 0.08 / 1.08, 0, 0.0
    for seed in range(200):
        found = extremes(
            lambda v: values * v, 200, steps=14, enough=never, rng=np.random.default_rng(seed)
        )
        stated = unseen(found, fraction, 200)
        misses += found.lowest.value > -0.08 + fraction * 1.08
    assert stated < 0.05
    assert misses / 200 <= stated + 3 * np.sqrt(stated / 200)
