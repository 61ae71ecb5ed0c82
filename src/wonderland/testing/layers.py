"""Laws of layers: gradients, compiled form, batch, statistics, training against inference, storage.

A layer comes with one sample on which it is smooth. Parameters are what `nn.partition` calls so.
"""

import tempfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import in_float64
from wonderland.core.store import load, save
from wonderland.nn import partition
from wonderland.nn.layer import BATCH, train_through
from wonderland.testing.compare import close, same
from wonderland.testing.differentiable import (
    gradient_is_finite_difference,
    jit_is_eager,
    vmap_is_a_loop,
)

__all__ = [
    "dropout_keeps_mean_and_variance",
    "gradients_reach_every_parameter_of_the_layer",
    "inference_draws_nothing",
    "layer_gradients_are_finite_differences",
    "layer_is_stored",
    "layer_maps_batches",
    "training_keeps_parameters",
]


def in_double(model: Any) -> Any:
    """The same model with every floating array in float64 (inside an x64 scope)."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, jnp.float64) if eqx.is_inexact_array(leaf) else leaf, model
    )


def _signs(shape: tuple[int, ...]) -> np.ndarray:
    """Fixed numbers of mixed signs, so that no two outputs cancel by symmetry."""
    return np.cos(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


@in_float64
def layer_gradients_are_finite_differences(layer: Any, x: Any, *, rtol: float = 1e-5) -> None:
    """∂/∂θ and ∂/∂x of a weighted sum of outputs equal central differences, in float64.

    Args:
        layer: A layer, in inference.
        x: One sample (c,) of floats, or a whole number, which has no derivative.
        rtol: What is allowed.

    >>> import wonderland as wl
    >>> x = np.array([1.0, -2.0, 0.5])
    >>> layer_gradients_are_finite_differences(wl.nn.Linear(3, 2, key=0), x)
    """
    parameters, rest = partition(in_double(layer))
    leaves, structure = jax.tree.flatten(parameters)
    floating = np.issubdtype(np.asarray(x).dtype, np.floating)
    given = [np.asarray(x)] if floating else []

    def weighted(*values: Any) -> Any:
        model = eqx.combine(jax.tree.unflatten(structure, values[: len(leaves)]), rest)
        y = model(values[-1] if floating else jnp.asarray(x))
        return jnp.sum(y * _signs(y.shape))

    if leaves or given:
        gradient_is_finite_difference(weighted, *map(np.asarray, leaves), *given, rtol=rtol)


@in_float64
def gradients_reach_every_parameter_of_the_layer(layer: Any, X: Any) -> None:
    """∂/∂θ of a weighted sum over the samples X (n, …) is finite, and not zero in every leaf θ.

    >>> import wonderland as wl
    >>> gradients_reach_every_parameter_of_the_layer(wl.nn.Linear(1, 2, key=0), np.ones((2, 1)))
    """
    parameters, rest = partition(in_double(layer))

    def weighted(parameters: Any) -> Any:
        Y = jax.vmap(eqx.combine(parameters, rest))(jnp.asarray(X))
        return jnp.sum(Y * _signs(Y.shape))

    for path, slope in jax.tree_util.tree_leaves_with_path(jax.grad(weighted)(parameters)):
        if not jnp.isfinite(slope).all() or not jnp.any(slope != 0):
            raise AssertionError(f"no gradient reaches {jax.tree_util.keystr(path)}")


@in_float64
def layer_maps_batches(layer: Any, X: Any) -> None:
    """Compiled = eager, and over a batch each sample is as if alone.

    >>> import wonderland as wl
    >>> layer_maps_batches(wl.nn.relu, np.ones((2, 3)))
    """
    model = in_double(layer)
    jit_is_eager(model, X[0])
    vmap_is_a_loop(model, X)


def training_keeps_parameters(layer: Any, X: Any) -> None:
    """`training` gives back the same layer: parameters bit for bit, statistics of the same shapes.

    >>> import wonderland as wl
    >>> training_keeps_parameters(wl.nn.BatchNorm(3), np.ones((4, 3), np.float32))
    """
    Y, renewed = trained_batch(layer, X, jax.random.key(0))
    if not same(partition(renewed)[0], partition(layer)[0]):
        raise AssertionError("training changed a parameter")
    shapes = [[np.shape(leaf) for leaf in jax.tree.leaves(model)] for model in (renewed, layer)]
    if shapes[0] != shapes[1]:
        raise AssertionError("training gave back a layer of other shapes")
    if Y.shape != jax.vmap(layer)(X).shape:
        raise AssertionError("training and inference give different shapes")


def inference_draws_nothing(layer: Any, X: Any) -> None:
    """`layer(x)` needs no key and is the same every time; training leaves the original untouched.

    >>> import wonderland as wl
    >>> inference_draws_nothing(wl.nn.Dropout(0.5), np.ones((4, 3), np.float32))
    """
    before = np.asarray(jax.vmap(layer)(X))
    trained_batch(layer, X, jax.random.key(1))
    if not same(np.asarray(jax.vmap(layer)(X)), before):
        raise AssertionError("inference changed after a batch of training")


def dropout_keeps_mean_and_variance(layer: Any, x: Any, *, rate: float, draws: int = 4000) -> None:
    """E[y] = x and Var[y_j] = x_j²·rate/(1 − rate) within five standard errors over many keys.

    Args:
        layer: Drops entries in training.
        x: One sample (c,), no entry zero.
        rate: The stated probability of absence.
        draws: How many keys.

    >>> import wonderland as wl
    >>> dropout_keeps_mean_and_variance(wl.nn.Dropout(0.3), np.ones(3, np.float32), rate=0.3)
    """
    keys = jax.random.split(jax.random.key(7), draws)
    Y = np.asarray(jax.vmap(lambda key: layer.training(jnp.asarray(x), key=key)[0])(keys), float)
    x = np.asarray(x, float)
    error = 5.0 * np.sqrt(x**2 * rate / (1.0 - rate) / draws) + 1e-5 * np.abs(x)
    if np.any(np.abs(Y.mean(axis=0) - x) > error):
        raise AssertionError("the mean over masks is not the input")
    spread = x**2 * rate / (1.0 - rate)
    if np.any(np.abs(Y.var(axis=0) - spread) > 10.0 * x**2 / np.sqrt(draws) / (1.0 - rate) ** 2):
        raise AssertionError("the variance over masks is not that of dropout")
    absent = np.mean(Y == 0.0)
    allowed = 5.0 * np.sqrt(rate * (1.0 - rate) / Y.size) + 2.0**-16
    if abs(absent - rate) > allowed:
        raise AssertionError(f"{absent:.4f} of the entries are absent where the rate is {rate}")


def layer_is_stored(layer: Any, X: Any) -> None:
    """Saved and loaded, a layer is the same and computes the same bits.

    >>> import wonderland as wl
    >>> layer_is_stored(wl.nn.PReLU(3), np.ones((2, 3), np.float32))
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.wl"
        save(layer, path)
        again = load(path)
    if not same(np.asarray(jax.vmap(again)(X)), np.asarray(jax.vmap(layer)(X))):
        raise AssertionError("a saved and loaded layer computes something else")
    close(
        len(jax.tree.leaves(partition(again)[0])),
        len(jax.tree.leaves(partition(layer)[0])),
        "a saved and loaded layer has as many parameters",
    )


def trained_batch(layer: Any, X: Any, key: Any) -> tuple[Any, Any]:
    """(outputs, renewed layer) of one training batch, without compiling a function leaf."""
    held, rest = eqx.partition(layer, eqx.is_array)
    keys = jax.random.split(key, len(X))

    def one(x: Any, key: Any) -> tuple[Any, Any]:
        y, renewed = train_through(eqx.combine(held, rest), x, key=key)
        return y, eqx.filter(renewed, eqx.is_array)

    Y, renewed = jax.vmap(one, axis_name=BATCH, out_axes=(0, None))(jnp.asarray(X), keys)
    return Y, eqx.combine(renewed, rest)
