"""Layers one after another, and around one another."""

from collections.abc import Iterable
from typing import Any

import equinox as eqx

from wonderland.core.errors import InputError
from wonderland.nn.activations import identity
from wonderland.nn.layer import keys_of, train_through

__all__ = ["Residual", "Sequential"]


class Sequential(eqx.Module):
    """f_l(… f_2(f_1(x))).

    Args:
        layers: Functions or layers.

    >>> import jax.numpy as jnp
    >>> from wonderland.nn import Linear, relu
    >>> Sequential([Linear(2, 3, key=0), relu, Linear(3, 1, key=1)])(jnp.ones(2)).shape
    (1,)
    """

    layers: tuple[Any, ...]

    def __init__(self, layers: Iterable[Any]) -> None:
        self.layers = tuple(layers)

    def __call__(self, x: Any) -> Any:
        """The layers in inference."""
        for layer in self.layers:
            x = layer(x)
        return x

    def training(self, x: Any, *, key: Any) -> tuple[Any, "Sequential"]:
        """The layers in training, and themselves with renewed statistics."""
        renewed = []
        for layer, own in zip(self.layers, keys_of(key, self.layers), strict=True):
            x, layer = train_through(layer, x, key=own)
            renewed.append(layer)
        return x, Sequential(renewed)


class Residual(eqx.Module):
    """skip(x) + inner(x): what is learnt is a change.

    Args:
        inner: A layer from (c,) to (c',).
        skip: A layer of the same shapes; the identity where c = c'.

    >>> import jax.numpy as jnp
    >>> Residual(jnp.square)(jnp.array([3.0])).tolist()
    [12.0]
    """

    inner: Any
    skip: Any = identity

    def __call__(self, x: Any) -> Any:
        """skip(x) + inner(x) in inference."""
        return _sum(self.skip(x), self.inner(x))

    def training(self, x: Any, *, key: Any) -> tuple[Any, "Residual"]:
        """skip(x) + inner(x) in training."""
        first, second = keys_of(key, (self.skip, self.inner))
        kept, skip = train_through(self.skip, x, key=first)
        change, inner = train_through(self.inner, x, key=second)
        return _sum(kept, change), Residual(inner, skip)


def _sum(kept: Any, change: Any) -> Any:
    if kept.shape != change.shape:
        raise InputError(
            f"a residual block adds shapes {kept.shape} and {change.shape}",
            "an inner layer whose output has the shape of what skips it",
            "Pass Residual(inner, skip=Linear(c, c', key=...))",
        )
    return kept + change
