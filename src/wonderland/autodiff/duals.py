"""The tangent and the adjoint of a program, as programs.

tangent   (x, ẋ) ↦ (f(x), J(x) ẋ)      value and tangent side by side: nothing is stored
adjoint   (x, ȳ) ↦ (f(x), J(x)ᵀ ȳ)     the values first, then backward through what was stored
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from wonderland.autodiff.programs import drop_dead, inline, part

__all__ = ["adjoint_of", "movable", "pruned", "tangent_of"]

Flat = Callable[..., list[Any]]


def movable(leaf: Any) -> bool:
    """Whether a value can carry a derivative."""
    return bool(jnp.issubdtype(jnp.result_type(leaf), jnp.inexact))


def tangent_of(flat: Flat, shapes: Sequence[Any]) -> core.ClosedJaxpr:
    """The program of values and one directional derivative; inputs are x, then ẋ."""
    places = [place for place, leaf in enumerate(shapes) if movable(leaf)]

    def pushed(xs: list[Any], directions: list[Any]) -> Any:
        def run(*moving: Any) -> tuple[list[Any], list[Any]]:
            outs = flat(*_filled(xs, places, moving))
            return [out for out in outs if movable(out)], [o for o in outs if not movable(o)]

        at = tuple(xs[place] for place in places)
        outs, tangents, rest = jax.jvp(run, at, tuple(directions), has_aux=True)
        return [*outs, *rest], tangents

    program = jax.make_jaxpr(pushed)(list(shapes), [shapes[place] for place in places])
    return pruned(inline(program))


def adjoint_of(flat: Flat, shapes: Sequence[Any]) -> core.ClosedJaxpr:
    """The program of values and one pull-back; inputs are x, then ȳ for each moving output."""
    places = [place for place, leaf in enumerate(shapes) if movable(leaf)]
    weights = [out for out in jax.eval_shape(flat, *shapes) if movable(out)]

    def pulled(xs: list[Any], cotangents: list[Any]) -> Any:
        def run(*moving: Any) -> tuple[list[Any], list[Any]]:
            outs = flat(*_filled(xs, places, moving))
            return [out for out in outs if movable(out)], [o for o in outs if not movable(o)]

        outs, pull, rest = jax.vjp(run, *(xs[place] for place in places), has_aux=True)
        return [*outs, *rest], pull(cotangents)

    return pruned(inline(jax.make_jaxpr(pulled)(list(shapes), weights)))


def _filled(xs: Sequence[Any], places: Sequence[int], moving: Sequence[Any]) -> list[Any]:
    full = list(xs)
    for place, value in zip(places, moving, strict=True):
        full[place] = value
    return full


def pruned(closed: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """The program without equations that nobody reads."""
    jaxpr = closed.jaxpr
    eqns = drop_dead(jaxpr.eqns, jaxpr.outvars)
    bare = part(jaxpr, eqns, [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars)
    return core.ClosedJaxpr(
        core.Jaxpr(
            jaxpr.constvars,
            jaxpr.invars,
            jaxpr.outvars,
            eqns,
            effects=jaxpr.effects,
            debug_info=bare.debug_info,
        ),
        closed.consts,
    )
