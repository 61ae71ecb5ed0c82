"""Kinks are found where they are and only there, and the library's choice is the one it states."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wonderland.autodiff import KinkWarning, kinks
from wonderland.autodiff.subgradients import absolute, hinge, largest, maximum, relu


def found(f, x):
    return kinks(f, jnp.asarray(x), warn=False)


ON = {
    "abs": (lambda x: jnp.abs(x).sum(), [1.0, 0.0], "abs", "kink", 1),
    "relu": (lambda x: jax.nn.relu(x).sum(), [0.0, 2.0], "relu", "kink", 0),
    "max": (lambda x: jnp.maximum(x, 3.0).sum(), [1.0, 3.0], "max", "kink", 1),
    "two": (lambda x: jnp.maximum(x[0], x[1]), [5.0, 5.0], "max", "kink", 0),
    "hinge": (lambda m: jnp.maximum(0, 1 - m).sum(), [2.0, 1.0], "max", "kink", 1),
    "clip": (lambda x: jnp.clip(x, -1, 1).sum(), [0.5, 1.0], "min", "kink", 1),
    "largest": (lambda x: x.max(), [3.0, 1.0, 3.0], "reduce_max", "kink", 0),
    "sort": (lambda x: jnp.sort(x)[0], [3.0, 1.0, 1.0], "sort", "kink", 0),
    "pool": (
        lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2,), (2,), "VALID").sum(),
        [0.0, 1.0, 3.0, 3.0],
        "reduce_window_max",
        "kink",
        1,
    ),
    "sign": (lambda x: jnp.sign(x).sum(), [1.0, 0.0], "sign", "jump", 1),
    "floor": (lambda x: jnp.floor(x).sum(), [1.5, 2.0], "floor", "jump", 1),
    "where": (lambda x: jnp.where(x > 1, 2 * x, x).sum(), [0.0, 1.0], "gt", "branch", 1),
    "norm": (lambda x: jnp.linalg.norm(x), [0.0, 0.0], "sqrt", "singular", 0),
    "sqrt": (lambda x: jnp.sqrt(x).sum(), [1.0, 0.0], "sqrt", "singular", 1),
    "large": (lambda x: jnp.maximum(x[0], x[1]), [5e8, 5e8], "max", "kink", 0),
    "small": (lambda x: 1e-12 * jnp.abs(x).sum(), [0.0], "abs", "kink", 0),
}


@pytest.mark.parametrize("name", ON)
def test_a_point_on_a_kink_is_told_and_nowhere_else(name):
    f, x, primitive, kind, index = ON[name]
    report = found(f, x)
    assert [(k.primitive, k.kind, k.entry) for k in report] == [(primitive, kind, index)]
    assert report.visible
    away = jnp.asarray(x) + jnp.asarray([0.11, 0.23, 0.37, 0.53])[: len(x)] * jnp.abs(
        jnp.asarray(x) + 1
    )
    assert not found(f, away)


SMOOTH = {
    "softplus": (lambda x: jax.nn.softplus(x).sum(), [0.0, 1.0]),
    "same twice": (lambda x: jnp.maximum(x, x).sum(), [0.0, 1.0]),
    "at a minimum": (lambda x: jnp.sqrt(1 + (x**2).sum()), [0.0, 0.0]),
    "constant kink": (lambda x: x.sum() + jnp.abs(jnp.zeros(2)).sum(), [0.0, 1.0]),
    "padding": (lambda x: jnp.abs(jnp.pad(x, 3)).sum(), [1.0, 2.0]),
    "loop": (lambda x: jax.lax.fori_loop(0, 5, lambda _, c: jnp.sin(c), x).sum(), [0.0, 1.0]),
    "tied zeros": (lambda x: jax.nn.relu(x).max(), [-1.0, -2.0, 3.0]),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_points_are_silent(name):
    f, x = SMOOTH[name]
    assert len(kinks(f, jnp.asarray(x))) == 0  # warnings are errors here


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (jnp.abs(x) ** 2).sum(),
        lambda x: 0 * jnp.abs(x).sum() + x.sum(),
        lambda x: jax.nn.logsumexp(jnp.append(x, x)),
    ],
)
def test_a_kink_that_cancels_is_listed_without_a_warning(f):
    report = kinks(f, jnp.zeros(2))
    assert len(report) > 0
    assert not report.visible


def test_the_warning_names_operation_and_line():
    with pytest.warns(KinkWarning, match=r"abs at test_kinks.py:\d+ .*kink in 1 entry"):
        kinks(lambda x: jnp.abs(x).sum(), jnp.array([1.0, 0.0]))


def scanned(x):
    return jax.lax.scan(lambda c, t: (jnp.abs(c - t), c), x, jnp.arange(4.0))[0]


def looped(x):
    return jax.lax.while_loop(
        lambda s: s[1] < 3, lambda s: (jnp.abs(s[0] - s[1]), s[1] + 1), (x, 0)
    )[0]


def branched(x):
    return jax.lax.cond(x > 5, lambda z: z, lambda z: jnp.abs(z - 2), x)


@pytest.mark.parametrize(("f", "on"), [(scanned, 0.0), (looped, 1.0), (branched, 2.0)])
def test_loops_and_branches_are_followed(f, on):
    assert "abs" in {kink.primitive for kink in found(f, on)}
    assert len(found(f, on + 0.37)) == 0
    assert [kink.path for kink in found(jax.jit(f), on)][-1][0] == f.__name__


def test_chosen_slopes_are_measured():
    def slope(f, x):
        kink = found(f, x)[0]
        return kink.left, kink.right, kink.taken

    np.testing.assert_allclose(slope(jax.nn.relu, 0.0), (0, 1, 0), atol=1e-6)
    np.testing.assert_allclose(slope(relu, 0.0), (0, 1, 0), atol=1e-6)
    np.testing.assert_allclose(slope(absolute, 0.0), (-1, 1, 0), atol=1e-6)
    np.testing.assert_allclose(slope(hinge, 1.0), (-1, 0, 0), atol=1e-6)
    np.testing.assert_allclose(slope(lambda x: jnp.maximum(x, 0.0), 0.0), (0, 1, 0.5), atol=1e-6)
    np.testing.assert_allclose(slope(jnp.abs, 0.0)[2], jax.grad(jnp.abs)(0.0), atol=1e-6)
    assert found(absolute, 0.0)[0].choice == "0.5 × left + 0.5 × right"


def test_report_prints_and_becomes_json():
    report = found(lambda x: jnp.abs(x).sum(), [0.0])
    assert "1 kink, visible in f" in repr(report)
    assert json.loads(json.dumps(report.to_dict()))["kinks"][0]["primitive"] == "abs"
    assert "smooth" in repr(found(jnp.sin, 1.0))


def test_rules_with_a_reverse_mode_only_are_looked_at():
    @jax.custom_vjp
    def bend(x):
        return jnp.abs(x)

    bend.defvjp(lambda x: (jnp.abs(x), x), lambda x, u: (u * jnp.sign(x),))
    assert [kink.primitive for kink in found(bend, 0.0)] == ["bend"]
    assert len(found(bend, 1.0)) == 0


def test_programs_that_insist_on_single_precision():
    def f(x):
        step = jnp.zeros(3, jnp.float32)
        return jax.lax.scan(lambda c, _: (jnp.abs(c), None), x, step)[0].sum()

    assert len(found(f, jnp.array([0.0, 1.0], jnp.float32))) == 1
    assert len(found(f, jnp.array([0.5, 1.0], jnp.float32))) == 0


# The library's choice: the shortest subgradient -------------------------------------------------

CHOICES = [
    (absolute, 0.0, 0.0),
    (relu, 0.0, 0.0),
    (hinge, 1.0, 0.0),
    (lambda x: maximum(x, -x), 0.0, 0.0),
    (lambda x: maximum(x, 2 * x), 0.0, 1.5),
]


@pytest.mark.parametrize(("f", "at", "slope"), CHOICES)
def test_choice_at_the_kink_in_both_modes(f, at, slope):
    assert jax.grad(f)(at) == slope
    assert jax.jvp(f, (at,), (1.0,))[1] == slope
    assert jax.jit(jax.vmap(jax.grad(f)))(jnp.full(2, at)).tolist() == [slope, slope]


@pytest.mark.parametrize(
    ("ours", "reference"),
    [
        (absolute, np.abs),
        (relu, lambda x: np.maximum(x, 0)),
        (hinge, lambda m: np.maximum(0, 1 - m)),
        (lambda x: maximum(x, 0.3), lambda x: np.maximum(x, 0.3)),
    ],
)
def test_values_and_slopes_away_from_the_kink(ours, reference):
    x = np.linspace(-2.05, 2.1, 23)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(ours(x), reference(x))
        slope = (reference(x + 1e-6) - reference(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(jax.vmap(jax.grad(ours))(x), slope, atol=1e-8)


def test_every_choice_is_a_subgradient_of_least_norm():
    """f(y) ≥ f(x) + gᵀ(y − x) for all y, and no shorter g does it (by brute force in the plane)."""
    ys = np.stack(np.meshgrid(np.linspace(-3, 3, 25), np.linspace(-3, 3, 25)), -1).reshape(-1, 2)
    for f, x in [
        (lambda z: maximum(z[0], z[1]), np.array([1.0, 1.0])),
        (lambda z: absolute(z[0]) + relu(z[1]), np.zeros(2)),
        (lambda z: hinge(z[0]) + absolute(z[1]), np.array([1.0, 0.0])),
        (largest, np.array([0.5, 0.5])),
    ]:
        g = np.asarray(jax.grad(f)(x))
        values = np.asarray(jax.vmap(f)(ys))
        grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 21)] * 2), -1).reshape(-1, 2)
        legal = [h for h in [g, *grid] if (values >= f(x) + (ys - x) @ h - 1e-5).all()]
        assert legal[0] is g
        assert np.linalg.norm(g) <= min(np.linalg.norm(h) for h in legal) + 1e-6


def test_largest_shares_among_ties_under_vmap():
    x = jnp.array([[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]])
    slopes = jax.jit(jax.vmap(jax.grad(largest)))(x)
    np.testing.assert_allclose(slopes, [[0.5, 0, 0.5], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)
