"""Losses and softmax against closed forms, SciPy and one another; extremes; names; bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize as optimize
import scipy.special as special
from sklearn import metrics

import wonderland as wl
from tests.registry import LOSSES
from wonderland import losses
from wonderland.losses.roots import newton_within, wright_omega

VARIANTS = ("forgiving", "untilted", "between logistic and exponential", "tilted to exponential")
each = pytest.mark.parametrize(
    "part",
    [pytest.param(p, marks=[pytest.mark.slow] * (p.name in VARIANTS), id=p.name) for p in LOSSES],
)
HUGE = np.array([-1e4, -1e3, -800.0, -40.0, 0.0, 40.0, 800.0, 1e3, 1e4])


@each
def test_nothing_is_nan_at_large_logits(part):
    loss = part.make()
    kinds = {"signs": [-1, 1], "bits": [0, 1], "classes": [0, 1], "numbers": [-1e4, 0.0, 1e4]}
    y = np.repeat(kinds[loss.targets], len(HUGE))
    z = np.resize(HUGE, len(y))
    z = np.column_stack([z, -z]) if loss.targets == "classes" else z
    with jax.enable_x64(True):
        traced = jax.jit(_everything)(loss, z, y, 1.0)
    for name, came in {**_everything(loss, z, y, 1.0), **traced}.items():
        assert not np.isnan(came).any(), name
        assert np.isfinite(came).all() or not np.isfinite(loss.smoothness), name
    for step in (1e-3, 1e3):
        assert np.isfinite(loss.prox(z, y, step)).all()


@each
def test_single_precision_stays_single(part):
    """Also with y in whole numbers, and under JAX's default of 32 bits."""
    loss = part.make()
    y = np.array([0, 1]) if loss.targets in ("bits", "classes") else np.array([-1, 1])
    z = np.ones((2, 3) if loss.targets == "classes" else 2, np.float32)
    step, slope = np.float32(0.5), np.zeros_like(z)
    for array in (np.asarray, jnp.asarray):
        for name in ("value", "derivative", "curvature"):
            assert getattr(loss, name)(array(z), array(y)).dtype == np.float32, name
        assert loss.prox(array(z), array(y), step).dtype == np.float32
        assert loss.conjugate(array(slope), array(y)).dtype == np.float32
        assert loss.dual(array(slope), array(y)).dtype == np.float32


def test_one_number_goes_with_many():
    z = np.array([0.5, -1.0])
    np.testing.assert_array_equal(losses.Hinge().value(z, 1), losses.Hinge().value(z, np.ones(2)))
    assert losses.Hinge().value(0.5, 1) == 0.5
    assert losses.Squared().prox(3.0, 1.0, 1.0) == 2.0


def _everything(loss, z, y, step):
    came = {name: getattr(loss, name)(z, y) for name in ("value", "derivative", "curvature")}
    came["prox"] = loss.prox(z, y, step)
    if isinstance(z, jax.Array):
        came["slope"] = jax.vmap(jax.grad(loss.value))(z, y)
    return came


def test_softmax_and_its_limits(rng):
    z = rng.normal(size=(5, 4)) * 10
    np.testing.assert_allclose(losses.softmax(z), special.softmax(z, axis=1), rtol=1e-12)
    np.testing.assert_allclose(losses.log_softmax(z), special.log_softmax(z, axis=1), atol=1e-14)
    np.testing.assert_allclose(losses.logsumexp(z), special.logsumexp(z, axis=1), rtol=1e-13)
    np.testing.assert_allclose(losses.logsumexp(z, 0), special.logsumexp(z, axis=0), rtol=1e-13)
    best = losses.one_hot(z.argmax(axis=1), 4)
    np.testing.assert_array_equal(losses.softmax(z, 0.0), best)
    np.testing.assert_allclose(losses.softmax(z, 1e-3), best, atol=1e-12)
    np.testing.assert_allclose(losses.softmax(z, 1e9), 0.25, rtol=1e-6)
    np.testing.assert_array_equal(losses.softmax(z, np.inf), 0.25)
    np.testing.assert_allclose(losses.softmax(2.5 * z, 2.5), losses.softmax(z), rtol=1e-12)
    huge = np.array([[1e4, -1e4], [-1e4, -1e4], [1e4, 1e4 - 1.0]])
    assert np.isfinite(losses.logsumexp(huge)).all()
    np.testing.assert_allclose(losses.softmax(huge)[2], special.softmax([1.0, 0.0]), rtol=1e-12)
    np.testing.assert_allclose(losses.sigmoid(HUGE), special.expit(HUGE), rtol=1e-13, atol=0)
    np.testing.assert_allclose(losses.softplus(HUGE), np.logaddexp(0, HUGE), rtol=1e-13, atol=0)


def test_softmax_on_jax(rng):
    z = rng.normal(size=(5, 4)) * 10
    with jax.enable_x64(True):
        for function in (losses.softmax, losses.log_softmax, losses.logsumexp, losses.sigmoid):
            np.testing.assert_allclose(function(jnp.asarray(z)), function(z), rtol=1e-12)
        cold = jax.jit(losses.softmax)(jnp.asarray(z), 0.0)
        np.testing.assert_array_equal(cold, losses.softmax(z, 0.0))
        slope = jax.grad(lambda z: losses.logsumexp(z).sum())(jnp.asarray(z))
        np.testing.assert_allclose(slope, losses.softmax(z), rtol=1e-11)
        slope = jax.vmap(jax.grad(losses.sigmoid))(jnp.zeros(2))
        np.testing.assert_allclose(slope, 0.25)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: losses.softmax(np.ones(2), -1.0),
        lambda: losses.one_hot([0, 3], 3),
        lambda: losses.one_hot([0.5, 1.0], 3),
        lambda: losses.CrossEntropy().value(np.ones((2, 3)), [0, -1]),
        lambda: losses.CrossEntropy().domain(np.array([0])),
        lambda: losses.Huber(0.0),
        lambda: losses.Huber(float("nan")),
        lambda: losses.EpsilonInsensitive(-0.1),
        lambda: losses.Quantile(1.0),
        lambda: losses.GaussianNLL(0.0),
        lambda: losses.Tilted(2.0),
        lambda: losses.Tilted(float("nan")),
        lambda: losses.resolve("hing"),
        lambda: losses.resolve(3.0),
        lambda: losses.excess_risk(losses.Hinge(), 0.5),
    ],
)
def test_bad_input_has_three_parts(wrong):
    with pytest.raises(wl.InputError) as told:
        wrong()
    assert told.value.came
    assert told.value.expected
    assert told.value.todo


def test_names():
    for name, make in losses.NAMES.items():
        assert losses.resolve(name) == make()
    assert losses.resolve(losses.Huber(2.0)) == losses.Huber(2.0)
    assert losses.Huber(2.0) != losses.Huber(1.0)
    assert losses.resolve("squared_error") == losses.Squared()
    with pytest.raises(wl.InputError, match="Did you mean 'hinge'"):
        losses.resolve("hing")


def test_against_scikit_learn(rng):
    n, k = 50, 4
    y, z = rng.integers(0, k, size=n), rng.normal(size=(n, k)) * 3
    ours = losses.CrossEntropy().value(z, y).mean()
    np.testing.assert_allclose(ours, metrics.log_loss(y, losses.softmax(z)), rtol=1e-10)
    bits = np.where(y > 1, 1, 0)
    ours = losses.BinaryCrossEntropy().value(z[:, 0], bits).mean()
    np.testing.assert_allclose(ours, metrics.log_loss(bits, losses.sigmoid(z[:, 0])), rtol=1e-10)
    logistic = losses.Logistic().value(z[:, 0], 2 * bits - 1).mean()
    np.testing.assert_allclose(logistic, ours, rtol=1e-13)
    hinge = losses.Hinge().value(z[:, 0], 2 * bits - 1).mean()
    np.testing.assert_allclose(hinge, metrics.hinge_loss(2 * bits - 1, z[:, 0]), rtol=1e-12)
    pinball = losses.Quantile(0.8).value(z[:, 0], z[:, 1]).mean()
    oracle = metrics.mean_pinball_loss(z[:, 1], z[:, 0], alpha=0.8)
    np.testing.assert_allclose(pinball, oracle, rtol=1e-12)
    np.testing.assert_allclose(
        losses.Huber(0.7).value(z[:, 0], z[:, 1]), special.huber(0.7, z[:, 0] - z[:, 1])
    )
    variance = losses.GaussianNLL.fitted(z[:, 0], z[:, 1])
    near = [
        losses.GaussianNLL(s * variance.variance).value(z[:, 0], z[:, 1]).sum()
        for s in (0.9, 1, 1.1)
    ]
    assert near[1] < min(near[0], near[2])


def test_soft_bits(rng):
    """Binary cross-entropy of a probability: the mean over its two outcomes."""
    z, p = rng.normal(size=9) * 5, rng.random(9)
    loss = losses.BinaryCrossEntropy()
    mixed = p * loss.value(z, np.ones(9)) + (1 - p) * loss.value(z, np.zeros(9))
    np.testing.assert_allclose(loss.value(z, p), mixed, rtol=1e-12)
    wl.testing.loss_and_conjugate_are_fenchel_young(loss, z, z[::-1], p)
    wl.testing.loss_prox_minimises(loss, z, p, 0.7)


def test_cross_entropy_of_two_classes_is_the_logistic_loss(rng):
    z, y = rng.normal(size=20) * 4, rng.integers(0, 2, size=20)
    pair = np.column_stack([-0.5 * z, 0.5 * z])
    expected = losses.Logistic().value(z, 2 * y - 1)
    np.testing.assert_allclose(losses.CrossEntropy().value(pair, y), expected, rtol=1e-12)


def test_curvature_products_are_the_hessian(rng):
    z, y, d = rng.normal(size=(6, 3)), rng.integers(0, 3, size=6), rng.normal(size=(6, 3))
    loss = losses.CrossEntropy()
    with jax.enable_x64(True):
        hessian = jax.vmap(jax.hessian(loss.value))(jnp.asarray(z), jnp.asarray(y))
    np.testing.assert_allclose(
        loss.curvature_product(z, y, d), np.einsum("nij,nj->ni", hessian, d), rtol=1e-10, atol=1e-14
    )


def test_a_hyperparameter_is_an_argument_of_the_program():
    """A new value of delta compiles nothing."""
    step = jax.jit(lambda loss, z, y: loss.prox(z, y, 0.5))
    wl.testing.nothing_compiles_again(
        lambda: step(losses.Huber(1.0), jnp.ones(3), jnp.zeros(3)),
        lambda: step(losses.Huber(2.0), jnp.ones(3), jnp.zeros(3)),
    )


def test_tilting_interpolates(rng):
    v = rng.normal(size=30) * 4
    np.testing.assert_allclose(losses.Tilted(1.0).phi(v), np.exp(-v), rtol=1e-12)
    np.testing.assert_allclose(losses.Tilted(0.0).phi(v), np.logaddexp(0, -v), rtol=1e-12)
    np.testing.assert_allclose(losses.Tilted(-1.0).phi(v), special.expit(-v), rtol=1e-12)
    np.testing.assert_allclose(losses.Tilted(1e-9).phi(v), np.logaddexp(0, -v), rtol=1e-6)


def test_long_proximal_steps():
    """Newton alone goes round in circles between the ends of the bracket here."""
    loss = losses.Logistic()
    for point in (-30.0, -20.0, -8.0, 0.0, 5.0):
        for step in (1e-3, 30.0, 1e3, 1e6):
            found = optimize.brentq(
                lambda v, p, t: v - p - t * special.expit(-v), point, point + step, (point, step)
            )
            np.testing.assert_allclose(loss.prox(point, 1, step), found, rtol=1e-9, atol=1e-9)


def test_roots():
    x = np.concatenate([np.linspace(-700, 700, 501), [-1e4, 1e4, 1e300]])
    np.testing.assert_allclose(wright_omega(x), special.wrightomega(x), rtol=1e-14, atol=1e-300)
    with jax.enable_x64(True):
        np.testing.assert_allclose(wright_omega(jnp.asarray(x)), wright_omega(x), rtol=1e-13)
    found = newton_within(lambda x: (np.arctan(x), 1 / (1 + x**2)), -1e6, 3e8, 2e8)
    assert abs(found) < 1e-7
