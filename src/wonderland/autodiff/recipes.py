"""Run a plan: few products of J with sums of unit vectors, then every entry read off where it lies.

Shapes: n inputs, m outputs, k products. Forward products are the rows of (k, m), reverse ones of
(k, n); `where` holds, for each non-zero, its place in both laid end to end.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .colouring import Acyclic

__all__ = ["Recipe", "Trees", "dense_recipe", "forward_products", "reverse_products", "values"]

Leaves = Sequence[Any]
Function = Callable[[Leaves, Any], Sequence[Any]]


class Trees(NamedTuple):
    """Inner steps of an acyclic recipe: rounds of (edges, vertices, colours, onto, under)."""

    rounds: tuple[tuple[Any, ...], ...]
    edges: int


class Recipe(NamedTuple):
    """Which products to run and where their numbers go.

    Attributes:
        columns: Seed of each input, −1 for none, shape (n,); None for one seed per input.
        rows: Seed of each output, shape (m,); None for one seed per output.
        forward: Number of products J s.
        reverse: Number of products uᵀ J.
        where: Place of each non-zero among the products, row by row, shape (entries,).
        trees: Substitution that comes first, for acyclic colourings.
    """

    columns: Any
    rows: Any
    forward: int
    reverse: int
    where: Any
    trees: Trees | None = None


def dense_recipe(shape: tuple[int, int], *, forward: bool) -> Recipe:
    """One product per input, or per output."""
    m, n = shape
    return Recipe(None, None, n if forward else 0, 0 if forward else m, None)


def tree_steps(found: Acyclic) -> Trees:
    """The rounds of an acyclic colouring as plain arrays."""
    rounds = tuple(tuple(part.astype(np.int32) for part in each) for each in found.rounds)
    return Trees(rounds, len(found.ends))


def values(
    f: Function, leaves: Leaves, rest: Any, recipe: Recipe, batch: int | None = None
) -> jax.Array:
    """The non-zeros in CSR order, shape (entries,); the whole matrix (m, n) for dense recipes."""
    parts = []
    if recipe.where is not None and not len(recipe.where):  # f depends on nothing
        return jnp.zeros(0, jnp.result_type(*jax.eval_shape(f, leaves, rest)))
    if recipe.forward:
        seeds = _seeds(recipe.columns, recipe.forward)
        parts.append(forward_products(f, leaves, rest, seeds, batch))
    if recipe.reverse:
        seeds = _seeds(recipe.rows, recipe.reverse)
        parts.append(reverse_products(f, leaves, rest, seeds, batch))
    if recipe.where is None:
        return parts[0].T if recipe.forward else parts[0]
    if recipe.trees is not None:
        flat = _substituted(parts[0], recipe.trees)
    else:
        flat = parts[0].ravel() if len(parts) == 1 else jnp.concatenate([p.ravel() for p in parts])
    return flat.at[recipe.where].get(mode="promise_in_bounds")


def forward_products(
    f: Function, leaves: Leaves, rest: Any, seeds: jax.Array, batch: int | None = None
) -> jax.Array:
    """J sₖ for every row sₖ of `seeds` (k, n); shape (k, m)."""
    leaves = tuple(leaves)

    def product(seed: jax.Array) -> jax.Array:
        return _ravel(jax.jvp(lambda *x: tuple(f(x, rest)), leaves, _cut(seed, leaves))[1])

    return _each(product, seeds, batch)


def reverse_products(
    f: Function, leaves: Leaves, rest: Any, seeds: jax.Array, batch: int | None = None
) -> jax.Array:
    """uₖᵀ J for every row uₖ of `seeds` (k, m); shape (k, n)."""
    outputs, pullback = jax.vjp(lambda *x: tuple(f(x, rest)), *leaves)

    def product(seed: jax.Array) -> jax.Array:
        return _ravel(pullback(_cut(seed, outputs)))

    return _each(product, seeds, batch)


def _each(
    product: Callable[[jax.Array], jax.Array], seeds: jax.Array, batch: int | None
) -> jax.Array:
    if len(seeds) == 1:  # a batch of one would only slow the program down
        return product(seeds[0])[None]
    if batch is not None and batch < len(seeds):
        return jax.lax.map(product, seeds, batch_size=batch)
    return jax.vmap(product)(seeds)


def _seeds(colours: Any, count: int) -> jax.Array:
    """Sums of unit vectors: row k is 1 where the colour is k. Host arrays become constants."""
    if colours is None:
        return jnp.eye(count, dtype=bool)
    numbers = np.arange(count, dtype=np.int32)
    return jnp.asarray(colours[None, :] == numbers[:, None])


def _substituted(products: jax.Array, trees: Trees) -> jax.Array:
    """Edge values by substitution along the trees, then all products (for the diagonal)."""
    known = jnp.zeros(trees.edges, products.dtype)
    open_products = products
    for edges, vertices, colours, onto, under in trees.rounds:
        value = open_products[colours, vertices]
        known = known.at[edges].set(value, unique_indices=True)
        open_products = open_products.at[under, onto].add(-value)
    return jnp.concatenate([known, products.ravel()])


def _cut(seed: jax.Array, like: Sequence[Any]) -> tuple[Any, ...]:
    """A flat seed as arrays of the shapes and dtypes of `like`."""
    edges = np.cumsum([0, *(int(np.prod(leaf.shape, dtype=int)) for leaf in like)])
    return tuple(
        seed[start:stop].reshape(leaf.shape).astype(leaf.dtype)
        for start, stop, leaf in zip(edges, edges[1:], like, strict=False)
    )


def _ravel(leaves: Sequence[jax.Array]) -> jax.Array:
    kind = jnp.result_type(*leaves)
    flat = [leaf.astype(kind).ravel() for leaf in leaves]
    return flat[0] if len(flat) == 1 else jnp.concatenate(flat)
