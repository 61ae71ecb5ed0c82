"""The multilayer perceptron.

    f(x) = W_lᵀ h_{l−1} + b_l,   h_i = dropout(φ(norm(W_iᵀ h_{i−1} + b_i))),   h_0 = x

with W_i (c_{i−1}, c_i) and b_i (c_i,). The last layer has neither norm, φ nor dropout.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax

from wonderland.core.errors import InputError, nearest
from wonderland.nn.activations import activation as resolve_activation
from wonderland.nn.compose import Sequential
from wonderland.nn.dropout import Dropout
from wonderland.nn.initialisers import source
from wonderland.nn.linear import Linear
from wonderland.nn.norms import BatchNorm, LayerNorm

__all__ = ["MLP"]

NORMS: dict[str, Callable[[int], Any]] = {"batch": BatchNorm, "layer": LayerNorm}


class MLP(eqx.Module):
    """A multilayer perceptron of any depth and width.

    Args:
        sizes: (c_0, c_1, …, c_l): inputs, hidden layers, outputs.
        activation: φ: a name ("prelu" gives each layer its own slopes) or a function.
        dropout: The rate behind each hidden layer, a number or an array; 0 leaves dropout out.
        norm: None, "batch" or "layer".
        initialiser: "he", "glorot", "orthogonal" or a function (shape, *, key).
        key: Of the weights.

    >>> import jax.numpy as jnp
    >>> MLP((2, 16, 16, 1), key=0)(jnp.ones(2)).shape
    (1,)
    """

    body: Sequential

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Any = "relu",
        *,
        dropout: Any = 0.0,
        norm: str | None = None,
        initialiser: str | Callable[..., jax.Array] = "he",
        key: Any,
    ) -> None:
        if len(sizes) < 2 or min(sizes) < 1:
            raise InputError(
                f"sizes is {tuple(sizes)}",
                "at least two sizes ≥ 1: inputs and outputs, hidden layers between them",
                "Pass for instance sizes=(20, 64, 64, 2)",
            )
        draws, layers = source(key), []
        for inputs, outputs in pairwise(sizes[:-1]):
            layers += [
                Linear(inputs, outputs, key=draws, initialiser=initialiser),
                *_norm(norm, outputs),
                resolve_activation(activation, outputs),
                *_dropout(dropout),
            ]
        layers.append(Linear(sizes[-2], sizes[-1], key=draws, initialiser=initialiser))
        self.body = Sequential(layers)

    @property
    def linears(self) -> list[Linear]:
        """The fully connected layers, first to last."""
        return [layer for layer in self.body.layers if isinstance(layer, Linear)]

    def __call__(self, x: Any) -> Any:
        """F(x) (c_l,) for x (c_0,)."""
        return self.body(x)

    def training(self, x: Any, *, key: Any) -> tuple[Any, "MLP"]:
        """F(x) in training, and the network with renewed statistics."""
        y, body = self.body.training(x, key=key)
        return y, eqx.tree_at(lambda net: net.body, self, body)


def _norm(name: str | None, size: int) -> list[Any]:
    if name is None:
        return []
    if name not in NORMS:
        raise InputError(f"norm is {name!r}", "None, 'batch' or 'layer'", nearest(name, NORMS))
    return [NORMS[name](size)]


def _dropout(rate: Any) -> list[Dropout]:
    # Only a plain zero leaves the layer out: an array may be batched and become another number.
    plain = isinstance(rate, int | float)
    return [] if plain and rate == 0 else [Dropout(rate)]
