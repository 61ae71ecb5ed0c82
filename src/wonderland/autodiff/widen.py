"""Run somebody's function in float64 to look at it closely, whatever it was written for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from wonderland.autodiff.arguments import moving, restricted
from wonderland.autodiff.programs import inner

__all__ = ["Wide", "coarsest", "widened"]


class Wide(NamedTuple):
    """A program with the point it is looked at.

    Attributes:
        closed: The program, from the flat list of moving leaves of x.
        at: These leaves.
        tree: The same leaves in the structure of x.
    """

    closed: jex.ClosedJaxpr
    at: list[jax.Array]
    tree: Any


@contextmanager
def widened(f: Callable[..., Any], x: Any, args: tuple[Any, ...]) -> Iterator[Wide]:
    """The program of f(x, *args) in float64, in a scope where float64 exists.

    A function that insists on another precision (a `scan` whose carry is float32, say) gets the
    one x came in, or at last the one JAX would have used; the dtype of `at` tells.
    """
    with jax.enable_x64(True):  # noqa: FBT003
        moves, stays = moving(x)
        g = restricted(f, stays, args)
        for attempt in (_double, _as_it_is):
            try:
                wide = jax.tree.map(attempt, moves)
                closed = jax.make_jaxpr(g)(wide)
                break
            except TypeError:
                continue
        else:
            wide = jax.tree.map(_single, moves)
            closed = jax.make_jaxpr(g)(wide)
        yield Wide(closed, jax.tree.leaves(wide), wide)


def _double(leaf: jax.Array) -> jax.Array:
    return leaf.astype(jnp.complex128 if jnp.iscomplexobj(leaf) else jnp.float64)


def _as_it_is(leaf: jax.Array) -> jax.Array:
    return leaf


def _single(leaf: jax.Array) -> jax.Array:
    return leaf.astype(jnp.complex64 if jnp.iscomplexobj(leaf) else jnp.float32)


def coarsest(closed: jex.ClosedJaxpr) -> float:
    """The unit roundoff of the least precise floating-point type a program computes in."""
    worst = 0.0
    for eqn in closed.jaxpr.eqns:
        inside = [body.jaxpr for body in inner(eqn)]
        worst = max([worst, *(coarsest(jex.ClosedJaxpr(body, ())) for body in inside)])
        kinds = [getattr(out.aval, "dtype", None) for out in eqn.outvars]
        floating = [k for k in kinds if k is not None and jnp.issubdtype(k, jnp.inexact)]
        worst = max([worst, *(float(jnp.finfo(kind).eps) for kind in floating)])
    return worst
