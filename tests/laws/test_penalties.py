"""Every law of penalties over every penalty of the registry; and offenders they must catch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.laws.strategies import generators
from tests.registry import PENALTIES
from wonderland.penalties import L1, L2, Box

every = pytest.mark.parametrize("part", PENALTIES, ids=lambda part: part.name)
few = settings(max_examples=8)
steps = st.sampled_from([1e-3, 0.3, 1.0, 7.0])
outputs = st.sampled_from([(4,), (4, 1), (4, 2)])


def points(rng, shape, part):
    """Some entries zero, some on the walls of the boxes."""
    shape = (4,) if "each" in part.name else shape
    w = rng.normal(size=shape) * rng.choice([0.3, 1.0, 10.0])
    return np.where(rng.random(shape) < 0.3, rng.choice([0.0, -0.5, 1.0], size=shape), w)


@every
@few
@given(rng=generators(), step=steps, shape=outputs)
def test_proximal_steps(part, rng, step, shape):
    penalty, w = part.make(), points(rng, shape, part)
    wl.testing.penalty_prox_minimises(penalty, w, step)
    wl.testing.penalty_prox_splits_by_moreau(penalty, w, step)


@every
@few
@given(rng=generators(), shape=outputs)
def test_certificates_and_facts(part, rng, shape):
    penalty, w = part.make(), points(rng, shape, part)
    wl.testing.penalty_distance_certifies(penalty, w, rng.normal(size=w.shape))
    wl.testing.penalty_bends_as_stated(penalty, w, points(rng, w.shape, part))


@every
def test_host_and_jax(part, rng):
    w = points(rng, (4,), part)
    wl.testing.penalty_is_the_same_on_host_and_jax(part.make(), w, 0.7)


@every
def test_storage(part, tmp_path):
    wl.save(part.make(), tmp_path / "penalty.wl")
    assert wl.testing.same(wl.load(tmp_path / "penalty.wl"), part.make())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: L1(-1.0),
        lambda: L2(float("nan")),
        lambda: wl.penalties.ElasticNet(1.0, 1.5),
        lambda: wl.penalties.Group(1.0, [0, 2]),
        lambda: wl.penalties.Group(1.0, [0, 1]).value(np.ones(3)),
        lambda: Box(1.0, 0.0),
    ],
)
def test_bad_parameters(wrong):
    with pytest.raises(wl.InputError):
        wrong()


class Weak(L1):
    def prox(self, w, step):
        return super().prox(w, 0.5 * step)


class Blind(L1):
    def residual(self, w, gradient):
        return gradient + self.strength * np.sign(w)


class Easy(L1):
    def residual(self, w, gradient):
        return 0.0 * gradient


class Boastful(L2):
    strong_convexity = 3.0


class Modest(L2):
    strong_convexity = 0.1


class Torn(L2):
    def value(self, w):
        return super().value(w) + isinstance(w, np.ndarray)


W, G = np.array([2.0, 0.3, -1.0]), np.array([0.3, 0.4, -2.0])


@pytest.mark.parametrize(
    ("law", "offender", "arguments", "match"),
    [
        ("penalty_prox_minimises", Weak(1.0), (W, 1.0), "minimises"),
        ("penalty_prox_splits_by_moreau", Weak(1.0), (W, 1.0), "Moreau"),
        ("penalty_distance_certifies", Blind(1.0), (W, G), r"optimum|nearer"),
        ("penalty_distance_certifies", Easy(1.0), (W, G), "subgradient"),
        ("penalty_bends_as_stated", Boastful(1.0), (W, G), "strong_convexity"),
        ("penalty_bends_as_stated", Modest(1.0), (W, G), "could be"),
        ("penalty_is_the_same_on_host_and_jax", Torn(1.0), (W, 1.0), "value"),
    ],
)
def test_offenders_are_caught(law, offender, arguments, match):
    with pytest.raises(AssertionError, match=match):
        getattr(wl.testing, law)(offender, *arguments)
