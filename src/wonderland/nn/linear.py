"""The fully connected layer.

    y = xW + b,   x (c,), W (c, c'), b (c',): (c + 1)c' parameters

W lies as scikit-learn's `coefs_`. Over a batch `vmap` makes one matrix product (n, c)(c, c') of it.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from wonderland.core.arrays import product
from wonderland.core.errors import InputError
from wonderland.nn.initialisers import initialiser, source

__all__ = ["Linear"]


class Linear(eqx.Module):
    """xW + b.

    Args:
        inputs: c.
        outputs: c'.
        bias: Whether there is a b; it begins at zero.
        initialiser: "he", "glorot", "orthogonal", or a function (shape, *, key).
        key: Of the weights.

    >>> Linear(3, 2, key=0)(jnp.ones(3)).shape
    (2,)
    """

    weight: jax.Array
    bias: jax.Array | None

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        key: Any,
        bias: bool = True,
        initialiser: str | Callable[..., jax.Array] = "he",
    ) -> None:
        if inputs < 1 or outputs < 1:
            raise InputError(
                f"a linear layer from {inputs} to {outputs}",
                "at least one input and one output",
                "Check the sizes of the network",
            )
        self.weight = _initial(initialiser, (inputs, outputs), key)
        self.bias = jnp.zeros(outputs) if bias else None

    def __call__(self, x: Any) -> Any:
        """xW + b for x (c,)."""
        if x.ndim != 1 or x.shape[0] != self.weight.shape[0]:
            raise InputError(
                f"a linear layer was given an array of shape {x.shape}",
                f"one sample of shape ({self.weight.shape[0]},)",
                "Map the model over a batch: jax.vmap(model)(X)",
            )
        common = jnp.promote_types(x.dtype, self.weight.dtype)
        y = product(x.astype(common), self.weight.astype(common))
        return y if self.bias is None else y + self.bias


def _initial(name: Any, shape: tuple[int, ...], key: Any) -> jax.Array:
    return initialiser(name)(shape, key=source(key))
