"""A model taken apart: what is trained, what it remembers, and what it is.

Its parameters are its inexact arrays, but for those inside `nn.Statistic`; its statistics all its
other arrays (batch-norm moments, dropout rates, whole numbers); its static part what is no array:
activation functions, names, the shape of the tree.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland import nn
from wonderland.core.errors import InputError

__all__ = ["Frozen", "Parts", "decays", "join", "names", "split"]


class Frozen:
    """A tree of plain values that can be hashed: two of them are equal if they hold the same.

    >>> Frozen({"a": 1}) == Frozen({"a": 1}), Frozen({"a": 1}) == Frozen({"a": True})
    (True, False)
    """

    def __init__(self, tree: Any) -> None:
        leaves, self._structure = jax.tree.flatten(tree)
        self._leaves = tuple(leaves)
        self._key = (self._structure, tuple((type(leaf), leaf) for leaf in leaves))
        try:
            self._hash = hash(self._key)
        except TypeError as error:
            raise InputError(
                f"the model holds something that cannot be compared ({error})",
                "arrays, numbers, strings, functions and modules as its fields",
                "Make the field an array (jnp.asarray), a tuple, or eqx.field(static=True)",
            ) from error

    @property
    def tree(self) -> Any:
        """The tree itself."""
        return jax.tree.unflatten(self._structure, self._leaves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Frozen({self.tree})"


class Parts(NamedTuple):
    """A model in three trees of its own shape, None where a leaf belongs to another."""

    parameters: Any
    statistics: Any
    static: Frozen


def split(model: Any) -> Parts:
    """Take a model apart.

    >>> model = eqx.nn.Linear(2, 3, key=jax.random.key(0))
    >>> [leaf.shape for leaf in jax.tree.leaves(split(model).parameters)]
    [(3, 2), (3,)]
    """
    model = jax.tree.map(_array, model, is_leaf=_is_statistic)
    chosen = jax.tree.map(eqx.is_inexact_array, model, is_leaf=_is_statistic)
    spread = jax.tree.map(
        lambda flag, node: jax.tree.map(lambda _: flag is True, node), chosen, model
    )
    parameters, rest = eqx.partition(model, spread)
    statistics, static = eqx.partition(rest, eqx.is_array)
    return Parts(parameters, statistics, Frozen(static))


def join(parameters: Any, statistics: Any, static: Frozen) -> Any:
    """The model again."""
    return eqx.combine(parameters, statistics, static.tree)


def decays(model: Any) -> tuple[bool, ...]:
    """Which parameters weight decay pulls at: matrices, but not those of norms and embeddings."""
    flags = jax.tree.map(_decays, model, is_leaf=lambda node: _is_statistic(node) or _spared(node))
    return tuple(jax.tree.leaves(flags))


def names(parameters: Any) -> list[str]:
    """The path of each parameter, such as `layers[0].weight`."""
    found, _ = jax.tree_util.tree_flatten_with_path(parameters)
    return [jax.tree_util.keystr(path).lstrip(".") for path, _ in found]


def _array(node: Any) -> Any:
    if _is_statistic(node):
        return jax.tree.map(_array, node)
    return jnp.asarray(node) if isinstance(node, np.ndarray) else node


def _is_statistic(node: Any) -> bool:
    kind = getattr(nn, "Statistic", None)
    return kind is not None and isinstance(node, kind)


def _spared(node: Any) -> bool:
    """Norms and embeddings, ours and those of Equinox."""
    kind = type(node).__name__
    return isinstance(node, eqx.Module) and (
        kind.endswith(("Norm", "Embedding")) or getattr(node, "decays", True) is False
    )


def _decays(node: Any) -> Any:
    """A flag for each trained leaf under the node, None for the others."""
    if _is_statistic(node):
        return None
    if _spared(node):
        return [False for _ in jax.tree.leaves(split(node).parameters)]
    inexact = eqx.is_inexact_array(node) or (
        isinstance(node, np.ndarray) and np.issubdtype(node.dtype, np.inexact)
    )
    return node.ndim > 1 if inexact else None
