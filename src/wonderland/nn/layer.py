"""A layer is a function of one sample; some have another one for training.

    layer(x)                                  inference, always: no key, no flag
    layer.training(x, key=key) → (y, layer)   one sample of a batch, under vmap with axis "batch";
                                              gives back the layer with its renewed statistics

There is no mode to forget: which of the two was meant stands where it is called.
"""

from typing import Any

import jax

__all__ = ["BATCH", "keys_of", "train_through"]

BATCH = "batch"  # the axis over which statistics of a batch are taken


def train_through(layer: Any, x: Any, *, key: Any) -> tuple[Any, Any]:
    """One layer in training: its `training` where it has one, itself where there is no difference.

    >>> import jax.numpy as jnp
    >>> train_through(jnp.abs, jnp.array(-1.0), key=None)[0].item()
    1.0
    """
    training = getattr(layer, "training", None)
    return (layer(x), layer) if training is None else training(x, key=key)


def keys_of(key: Any, layers: tuple[Any, ...]) -> list[Any]:
    """One key for each layer that may draw numbers, and none for the others.

    A split for each layer would cost more than a small layer itself.
    """
    drawing = [key is not None and hasattr(layer, "training") for layer in layers]
    return [jax.random.fold_in(key, j) if draws else None for j, draws in enumerate(drawing)]
