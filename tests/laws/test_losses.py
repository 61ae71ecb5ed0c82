"""Every law of losses over every loss of the registry; and offenders that the laws must catch."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.laws.strategies import generators
from tests.registry import LOSSES
from wonderland.losses import Hinge, Logistic, MarginLoss, Squared

every = pytest.mark.parametrize("part", LOSSES, ids=lambda part: part.name)
few = settings(max_examples=6)
steps = st.sampled_from([1e-3, 0.3, 1.0, 7.0, 1e3])
N = 24


def targets(loss, rng, n=N):
    """Targets of the kind the loss has."""
    return {
        "signs": lambda: rng.choice([-1, 1], size=n),
        "bits": lambda: rng.choice([0.0, 1.0], size=n),
        "classes": lambda: rng.integers(0, 3, size=n),
        "numbers": lambda: rng.integers(-4, 5, size=n) / 2,
    }[loss.targets]()


def predictions(loss, rng, n=N, size=3.0):
    """Half of them anywhere, half on multiples of ½, where the kinks are."""
    shape = (n, 3) if loss.targets == "classes" else (n,)
    anywhere = rng.normal(size=shape) * size * rng.choice([0.1, 1.0, 4.0])
    return np.where(rng.random(shape) < 0.5, anywhere, np.round(2 * anywhere) / 2)


@every
@few
@given(rng=generators())
def test_derivatives(part, rng):
    loss = part.make()
    z, y = predictions(loss, rng), targets(loss, rng)
    wl.testing.loss_derivative_is_finite_difference(loss, z, y)
    wl.testing.loss_curvature_is_finite_difference(loss, z, y)


@every
@few
@given(rng=generators(), step=steps)
def test_conjugates_and_proximal_steps(part, rng, step):
    loss = part.make()
    z, other, y = predictions(loss, rng), predictions(loss, rng), targets(loss, rng)
    wl.testing.loss_and_conjugate_are_fenchel_young(loss, z, other, y)
    wl.testing.loss_prox_minimises(loss, z, y, step)
    wl.testing.loss_prox_splits_by_moreau(loss, z, y, step)
    wl.testing.loss_duality_gap_closes(loss, y, step)


@every
def test_the_conjugate_is_the_supremum(part, rng):
    loss = part.make()
    if loss.targets != "classes":
        wl.testing.loss_conjugate_is_the_supremum(
            loss, rng.uniform(0.02, 0.98, N), targets(loss, rng)
        )


@every
def test_stated_facts(part, rng):
    loss = part.make()
    wl.testing.loss_bends_as_stated(loss, np.unique(targets(loss, rng))[:2])
    wl.testing.loss_is_calibrated_as_stated(loss)


@every
def test_host_and_jax(part, rng):
    loss = part.make()
    z, y = predictions(loss, rng), targets(loss, rng)
    wl.testing.loss_is_the_same_on_host_and_jax(loss, z, y, 0.7)
    wl.testing.jit_is_eager(loss.value, z, y)
    wl.testing.vmap_is_a_loop(loss.derivative, z[:4], y[:4])


@every
def test_storage_and_equality(part, rng, tmp_path):
    loss = part.make()
    wl.save(loss, tmp_path / "loss.wl")
    again = wl.load(tmp_path / "loss.wl")
    assert wl.testing.same(again, loss)
    assert again == loss
    assert hash(again) == hash(loss)
    z, y = predictions(loss, rng), targets(loss, rng)
    np.testing.assert_array_equal(again.value(z, y), loss.value(z, y))


@every
def test_shapes_must_agree(part, rng):
    loss = part.make()
    z, y = predictions(loss, rng), targets(loss, rng)
    for method in (loss.value, loss.derivative, loss.curvature, loss.conjugate, loss.dual):
        for wrong in (y[:, None], y[:-1], y[None, :]):
            for array in (np.asarray, jnp.asarray):
                with pytest.raises(wl.InputError, match="prediction has shape"):
                    method(array(z), array(wrong))
    with pytest.raises(wl.InputError, match="prediction has shape"):
        loss.prox(z, y[:, None], 1.0)


class Steep(Logistic):
    """A logistic loss with a derivative that is not its own."""

    def phi_slope(self, margin):
        return 1.01 * super().phi_slope(margin)


class Late(Hinge):
    """A hinge whose prox stops too early."""

    def phi_prox(self, point, step):
        return np.maximum(point, np.minimum(point + step, 0.9))


class Boastful(Logistic):
    """Claims a smoothness, a strong convexity and a calibration that it does not have."""

    smoothness = 0.2
    classification_calibrated = False


class Modest(Logistic):
    smoothness = 0.3


class Stiff(Squared):
    strong_convexity = 2.0


class Crooked(Hinge):
    """A conjugate off by a constant."""

    def phi_conjugate(self, slope):
        return slope + 0.1


class Wide(Hinge):
    def phi_domain(self):
        return -1.5, 0.0


class Hollow(Hinge):
    convex = False


class Torn(Hinge):
    def phi(self, margin):
        return super().phi(margin) * (1.0 if isinstance(margin, np.ndarray) else 1.5)


Z, Y, U = np.array([0.3, 0.97, -2.0]), np.ones(3), np.array([0.2, 0.5, 0.9])


@pytest.mark.parametrize(
    ("law", "offender", "arguments", "match"),
    [
        ("loss_derivative_is_finite_difference", Steep(), (Z, Y), "derivative"),
        ("loss_curvature_is_finite_difference", Steep(), (Z, Y), "curvature"),
        ("loss_prox_minimises", Late(), (Z, Y, 1.0), "minimises"),
        ("loss_prox_splits_by_moreau", Late(), (Z, Y, 1.0), "Moreau"),
        ("loss_bends_as_stated", Boastful(), (Y,), "smoothness"),
        ("loss_bends_as_stated", Modest(), (Y,), "smoothness"),
        ("loss_bends_as_stated", Stiff(), (Y,), "strong_convexity"),
        ("loss_bends_as_stated", Hollow(), (Y,), "no chord"),
        ("loss_is_calibrated_as_stated", Boastful(), (), "risks"),
        ("loss_and_conjugate_are_fenchel_young", Crooked(), (Z, Z, Y), "exceeds"),
        ("loss_conjugate_is_the_supremum", Crooked(), (U, Y), "supremum"),
        ("loss_conjugate_is_the_supremum", Wide(), (U, Y), "supremum"),
        ("loss_duality_gap_closes", Crooked(), (Y, 1.0), "meets"),
        ("loss_is_the_same_on_host_and_jax", Torn(), (Z, Y, 1.0), "value"),
    ],
)
def test_offenders_are_caught(law, offender, arguments, match):
    assert isinstance(offender, MarginLoss | Squared)
    with pytest.raises(AssertionError, match=match):
        getattr(wl.testing, law)(offender, *arguments)
