"""Embeddings: categories and numbers become vectors that are learnt.

    Embedding           i ↦ row i of a table (k, e)
    NumericalEmbedding  x_j ↦ relu(φ_j(x_j) W_j + b_j) (e,) for each feature j, W (d, m, e)

with φ periodic, φ_j(x) = [sin 2πf_j x, cos 2πf_j x], frequencies f (d, m/2) learnt, or piecewise
linear over given edges t_0 < … < t_m: φ_jl(x) = (x − t_{l−1})/(t_l − t_{l−1}) within [0, 1], the
first piece going on to the left and the last one to the right.

Reference: Gorishniy, Rubachev & Babenko (2022), On embeddings for numerical features.
"""

from math import pi
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.errors import InputError
from wonderland.nn.activations import relu
from wonderland.nn.initialisers import source
from wonderland.nn.statistic import Statistic

__all__ = ["Embedding", "NumericalEmbedding", "Periodic", "PiecewiseLinear"]

FEW = 128  # categories up to which a product with an indicator is cheaper than a scattered gradient


class Embedding(eqx.Module):
    """Row i of a table for category i; NaN for a number that is no category.

    Args:
        categories: k.
        size: e.
        key: Of the table, normal with deviation 1/√e.

    >>> Embedding(3, 2, key=0)(jnp.array(1)).shape
    (2,)
    """

    table: jax.Array

    decays: ClassVar[bool] = False

    def __init__(self, categories: int, size: int, *, key: Any) -> None:
        self.table = source(key).normal((categories, size)) / np.float32(size**0.5)

    def __call__(self, index: Any) -> Any:
        """(e,) for a whole number, also where it is held as a float."""
        count = len(self.table)
        whole = jnp.asarray(index).astype(jnp.int32)
        if count <= FEW:
            row = (whole == jnp.arange(count)).astype(self.table.dtype) @ self.table
        else:
            row = jnp.take(self.table, jnp.clip(whole, 0, count - 1), axis=0)
        return jnp.where((whole >= 0) & (whole < count), row, jnp.nan)


class Periodic(eqx.Module):
    """φ_j(x) = [sin 2πf_j x, cos 2πf_j x] (d, m).

    Args:
        features: d.
        size: m, even.
        scale: Deviation of the first frequencies.
        key: Of the frequencies.

    >>> Periodic(3, 8, key=0)(jnp.zeros(3)).shape
    (3, 8)
    """

    frequencies: jax.Array

    decays: ClassVar[bool] = False

    def __init__(self, features: int, size: int, *, key: Any, scale: float = 0.1) -> None:
        self.frequencies = np.float32(scale) * source(key).normal((features, size // 2))

    @property
    def size(self) -> int:
        """m."""
        return 2 * self.frequencies.shape[1]

    def __call__(self, x: Any) -> Any:
        """(d, m) for x (d,)."""
        angle = 2.0 * pi * self.frequencies * x[:, None]
        return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=1)


class PiecewiseLinear(eqx.Module):
    """How much of each piece between the edges lies below x (d, m).

    Args:
        edges: (d, m + 1), rising in each row; equal neighbours leave out a piece.

    >>> PiecewiseLinear([[0.0, 1.0, 3.0]])(jnp.array([2.0])).tolist()
    [[1.0, 0.5]]
    """

    edges: Statistic

    decays: ClassVar[bool] = False

    def __init__(self, edges: Any) -> None:
        edges = np.asarray(edges, np.float32)
        if edges.ndim != 2 or edges.shape[1] < 2 or np.any(np.diff(edges, axis=1) < 0):
            raise InputError(
                f"edges of shape {edges.shape} that do not rise in each row",
                "(d, m + 1) edges, each row sorted",
                "Pass quantiles: np.quantile(X, np.linspace(0, 1, 9), axis=0).T",
            )
        self.edges = Statistic(jnp.asarray(edges))

    @property
    def size(self) -> int:
        """m."""
        return self.edges.value.shape[1] - 1

    def __call__(self, x: Any) -> Any:
        """(d, m) for x (d,)."""
        low, high = self.edges.value[:, :-1], self.edges.value[:, 1:]
        wide = high > low
        share = (x[:, None] - low) / jnp.where(wide, high - low, 1.0)
        last = jnp.arange(self.size)[None, :] == self.size - 1
        first = jnp.arange(self.size)[None, :] == 0
        share = jnp.where(first, share, jnp.maximum(share, 0.0))
        return jnp.where(wide, jnp.where(last, share, jnp.minimum(share, 1.0)), 0.0)


class NumericalEmbedding(eqx.Module):
    """relu(φ_j(x_j) W_j + b_j) for each feature, one after another in one vector.

    Args:
        basis: `Periodic` or `PiecewiseLinear`, or any module (d,) → (d, m) with a `size` m.
        features: d.
        size: e.
        key: Of the weights.

    >>> embed = NumericalEmbedding(Periodic(3, 8, key=0), 3, 4, key=1)
    >>> embed(jnp.zeros(3)).shape
    (12,)
    """

    basis: Any
    weight: jax.Array
    bias: jax.Array

    decays: ClassVar[bool] = False

    def __init__(self, basis: Any, features: int, size: int, *, key: Any) -> None:
        draws = source(key)
        bound = np.float32(basis.size**-0.5)
        self.basis = basis
        self.weight = bound * draws.uniform((features, basis.size, size))
        self.bias = bound * draws.uniform((features, size))

    def __call__(self, x: Any) -> Any:
        """(d·e,) for x (d,)."""
        # Products (m)(m, e) for each feature: the contraction is written so that a batch becomes
        # one product of (n, m)(m, e) for each feature.
        basis = self.basis(x)
        weight = self.weight.astype(jnp.promote_types(basis.dtype, self.weight.dtype))
        made = jax.lax.dot_general(basis.astype(weight.dtype), weight, (((1,), (1,)), ((0,), (0,))))
        return relu(made + self.bias).reshape(-1)
