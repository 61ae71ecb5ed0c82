"""A tree of arrays as one vector, and back."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["Layout", "names_of"]


class Layout(NamedTuple):
    """How a tree of arrays lies in one vector; hashable, so that a program is compiled once.

    >>> layout = Layout.of({"a": np.ones(2), "b": np.zeros(())})
    >>> layout.unflatten(np.arange(3.0))
    {'a': array([0., 1.]), 'b': array(2.)}
    """

    tree: Any
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, position: Any) -> "Layout":
        """Of a tree of arrays."""
        leaves, tree = jax.tree.flatten(position)
        return cls(tree, tuple(np.shape(leaf) for leaf in leaves))

    def flat(self, position: Any) -> jax.Array:
        """The vector (p,)."""
        leaves = [jnp.ravel(leaf) for leaf in jax.tree.leaves(position)]
        return jnp.concatenate(leaves) if leaves else jnp.zeros(0)

    def unflatten(self, flat: Any) -> Any:
        """The tree; leading axes of the vectors (…, p) stay in front of every leaf."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        parts = [
            flat[..., end - int(np.prod(shape)) : end].reshape((*flat.shape[:-1], *shape))
            for end, shape in zip(ends, self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.tree, parts)


def names_of(position: Any) -> list[str]:
    """A name for each number: the path of its leaf and the place in it.

    >>> names_of({"a": np.ones(2), "b": np.zeros(())})
    ['a[0]', 'a[1]', 'b']
    """
    names = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(position)[0]:
        stem = jax.tree_util.keystr(path, simple=True, separator=".") or "theta"
        shape = np.shape(leaf)
        places = np.ndindex(shape) if shape else [()]
        names += [stem + (f"[{', '.join(map(str, at))}]" if at else "") for at in places]
    return names
