"""Every law of layers over every layer of the registry; and offenders that the laws must catch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl
from tests.registry import LAYERS
from wonderland import nn

every = pytest.mark.parametrize("part", LAYERS, ids=lambda part: part.name)
N = 6


def samples(part, rng):
    """Samples (n, c): away from the kinks at 0, or category numbers."""
    if part.name == "embedding":
        return np.arange(N) % 5
    X = rng.normal(size=(N, part.features))
    X += 0.05 * np.sign(X)
    if "table" in part.name:
        X[:, -1] = np.arange(N) % 3
    return X


@every
def test_gradients(part, rng):
    layer, X = part.make(), samples(part, rng)
    if part.features and "table" in part.name:  # a category number has no derivative
        wl.testing.gradients_reach_every_parameter_of_the_layer(layer, X)
        return
    wl.testing.layer_gradients_are_finite_differences(layer, X[0], rtol=1e-4)
    wl.testing.gradients_reach_every_parameter_of_the_layer(layer, X)


@every
def test_compiled_and_batched(part, rng):
    wl.testing.layer_maps_batches(part.make(), samples(part, rng))


@every
def test_training_and_inference(part, rng):
    layer, X = part.make(), samples(part, rng)
    X = X if X.dtype.kind == "i" else X.astype(np.float32)
    wl.testing.training_keeps_parameters(layer, X)
    wl.testing.inference_draws_nothing(layer, X)


@every
def test_storage(part, rng):
    X = samples(part, rng)
    wl.testing.layer_is_stored(part.make(), X if X.dtype.kind == "i" else X.astype(np.float32))


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_statistics_of_dropout(rate, rng):
    x = (rng.normal(size=8) + 3.0).astype(np.float32)
    wl.testing.dropout_keeps_mean_and_variance(nn.Dropout(rate), x, rate=rate)


def test_the_laws_catch_unscaled_dropout():
    class Unscaled(nn.Dropout):
        """Forgets to divide by q."""

        def training(self, x, *, key):
            return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0.0), self

    with pytest.raises(AssertionError, match="mean over masks"):
        wl.testing.dropout_keeps_mean_and_variance(Unscaled(0.5), np.ones(4, np.float32), rate=0.5)


def test_the_laws_catch_a_parameter_without_gradient():
    class Deaf(eqx.Module):
        """Never looks at its weight."""

        weight: jax.Array

        def __call__(self, x):
            return x + jax.lax.stop_gradient(self.weight)

    with pytest.raises(AssertionError, match="no gradient reaches"):
        wl.testing.gradients_reach_every_parameter_of_the_layer(Deaf(jnp.ones(2)), np.ones((3, 2)))


def test_the_laws_catch_training_that_moves_a_weight():
    class Restless(eqx.Module):
        """Halves its weight at every batch."""

        weight: jax.Array

        def __call__(self, x):
            return x * self.weight

        def training(self, x, *, key):
            return self(x), Restless(self.weight / 2)

    with pytest.raises(AssertionError, match="changed a parameter"):
        wl.testing.training_keeps_parameters(Restless(jnp.ones(2)), np.ones((3, 2), np.float32))
