"""Run somebody's function in float64 to look at it closely, whatever it was written for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

__all__ = ["widened"]


@contextmanager
def widened(f: Callable[[Any], Any], x: Any) -> Iterator[tuple[jex.ClosedJaxpr, list[jax.Array]]]:
    """The program of f and its flat input in float64, in a scope where float64 exists.

    A function that insists on another precision (a `scan` whose carry is float32, say) is left
    as it is; the caller sees it by the dtype of the input.
    """
    with jax.enable_x64(True):  # noqa: FBT003
        try:
            wide = jax.tree.map(_double, x)
            closed = jax.make_jaxpr(f)(wide)
        except TypeError:
            wide = x
            closed = jax.make_jaxpr(f)(wide)
        yield closed, jax.tree.leaves(wide)


def _double(leaf: jax.Array) -> jax.Array:
    kind = jnp.complex128 if jnp.iscomplexobj(leaf) else jnp.float64
    return leaf.astype(kind)
