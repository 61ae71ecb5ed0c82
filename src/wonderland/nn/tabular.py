"""A network for tables: numbers and categories embedded, then residual blocks.

    z = [x, embed(x_1), …, embed(x_d), E_1(i_1), …, E_c(i_c)],   h_0 = W z + b
    h_{i+1} = h_i + W₂ dropout(φ(W₁ norm(h_i) + b₁)) + b₂,       f = W φ(norm(h_l)) + b

One sample is a vector: d numbers, then c category numbers.

References: Gorishniy et al. (2021, 2022).
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from wonderland.nn.activations import activation as resolve_activation
from wonderland.nn.compose import Residual, Sequential
from wonderland.nn.dropout import Dropout
from wonderland.nn.embeddings import Embedding, NumericalEmbedding, Periodic
from wonderland.nn.initialisers import Source, source
from wonderland.nn.linear import Linear
from wonderland.nn.norms import LayerNorm

__all__ = ["TabularNet"]


class TabularNet(eqx.Module):
    """Residual blocks over embedded columns.

    Args:
        numbers: d.
        categories: How many categories each of the further c columns has.
        outputs: Length of f.
        width: Of the residual stream.
        blocks: How many.
        embedding: A `NumericalEmbedding` of the d numbers, None for the numbers alone, or
            "periodic".
        activation: φ.
        dropout: The rate inside of each block.
        key: Of the weights.

    >>> net = TabularNet(2, (3,), 1, width=8, key=0)
    >>> net(jnp.array([0.5, -1.0, 2.0])).shape
    (1,)
    """

    embedding: NumericalEmbedding | None
    categories: tuple[Embedding, ...]
    body: Sequential
    numbers: int = eqx.field(static=True)

    def __init__(
        self,
        numbers: int,
        categories: Sequence[int],
        outputs: int,
        *,
        width: int = 128,
        blocks: int = 2,
        embedding: NumericalEmbedding | str | None = "periodic",
        activation: Any = "relu",
        dropout: Any = 0.1,
        key: Any,
    ) -> None:
        draws = source(key)
        self.numbers = numbers
        self.embedding = _embedding(embedding, numbers, draws)
        sizes = [min(16, 1 + (1 + count) // 2) for count in categories]
        self.categories = tuple(
            Embedding(count, size, key=draws) for count, size in zip(categories, sizes, strict=True)
        )
        inputs = numbers + sum(sizes) + _length(self.embedding)
        act = resolve_activation(activation, width)
        self.body = Sequential(
            [
                Linear(inputs, width, key=draws),
                *(_block(width, act, dropout, draws) for _ in range(blocks)),
                LayerNorm(width),
                act,
                Linear(width, outputs, key=draws),
            ]
        )

    def _embed(self, x: Any) -> Any:
        d = self.numbers
        parts = [x[:d]] if self.embedding is None else [x[:d], self.embedding(x[:d])]
        parts += [embed(x[d + j]) for j, embed in enumerate(self.categories)]
        return jnp.concatenate(parts)

    def __call__(self, x: Any) -> Any:
        """F(x) (outputs,) for x (d + c,)."""
        return self.body(self._embed(x))

    def training(self, x: Any, *, key: Any) -> tuple[Any, "TabularNet"]:
        """F(x) in training, and the network with renewed statistics."""
        y, body = self.body.training(self._embed(x), key=key)
        return y, eqx.tree_at(lambda net: net.body, self, body)


def _embedding(choice: Any, numbers: int, draws: Source) -> NumericalEmbedding | None:
    if choice is None or numbers == 0:
        return None
    if not isinstance(choice, str):
        return choice
    return NumericalEmbedding(Periodic(numbers, 16, key=draws), numbers, 8, key=draws)


def _length(embedding: NumericalEmbedding | None) -> int:
    return 0 if embedding is None else embedding.bias.size


def _block(width: int, act: Any, dropout: Any, draws: Source) -> Residual:
    inner = [
        LayerNorm(width),
        Linear(width, width, key=draws),
        act,
        Dropout(dropout),
        Linear(width, width, key=draws),
    ]
    return Residual(Sequential(inner))
