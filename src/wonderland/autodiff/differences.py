"""Central differences that know their own error.

    D(h) = (g(x + h v) − g(x − h v)) / 2h = g'(x) v + h²/6 g''' + …
    R(h) = (r² D(h/r) − D(h)) / (r² − 1)         (Richardson: the h² term is gone)

A long step has a truncation error, a short one a rounding error ε|g|/h. On a ladder of steps the
error of each R is estimated from its distance to the one before, from the noise of the shorter
ones, and from that rounding; the step with the least estimate is taken, entry by entry.

Reference: W. Squire and G. Trapp, SIAM Review 40, 1998; C. Ridders, Adv. Eng. Software 4, 1982.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Slope", "central"]

_RATIO = 4.0


class Slope(NamedTuple):
    """A derivative along a direction, and how far off it may be."""

    value: jax.Array
    error: jax.Array


def central(
    g: Callable[..., Sequence[Any]],
    at: Sequence[Any],
    along: Sequence[Any],
    *,
    first: float = 0.1,
    levels: int = 11,
    eps: float,
) -> list[Slope]:
    """The slope of every real output of g at `at` along `along`.

    Args:
        g: A function of arrays that returns a list of arrays.
        at: Its arguments.
        along: A direction for each.
        first: The longest step.
        levels: How many steps, each a quarter of the one before.
        eps: The relative accuracy with which g is computed.

    >>> (slope,) = central(lambda x: [jnp.exp(x)], [0.0], [1.0], eps=1e-7, levels=6)
    >>> bool(abs(slope.value - 1) <= slope.error)
    True
    """
    steps = [first / _RATIO**level for level in range(levels)]
    rungs = [_difference(g, at, along, h) for h in steps]
    return [_best([rung[k] for rung in rungs], steps, eps) for k in range(len(rungs[0]))]


def _difference(
    g: Callable[..., Sequence[Any]], at: Sequence[Any], along: Sequence[Any], h: float
) -> list[tuple[jax.Array, jax.Array]]:
    """D(h) and the size of g, for each output."""
    ahead, behind = (
        g(*(a + jnp.asarray(s * h, jnp.result_type(a)) * v for a, v in zip(at, along, strict=True)))
        for s in (1, -1)
    )
    return [
        ((p - m) / (2 * h), jnp.maximum(jnp.abs(p), jnp.abs(m)))
        for p, m in zip(ahead, behind, strict=True)
    ]


def _best(rungs: list[tuple[jax.Array, jax.Array]], steps: list[float], eps: float) -> Slope:
    slopes = jnp.stack([slope for slope, _ in rungs])
    sizes = jnp.stack([size for _, size in rungs])
    lengths = jnp.asarray(steps, slopes.dtype).reshape(-1, *[1] * (slopes.ndim - 1))
    finer = (_RATIO**2 * slopes[1:] - slopes[:-1]) / (_RATIO**2 - 1)
    rounding = 4 * eps * sizes[2:] / lengths[2:]
    changes = jnp.abs(finer[1:] - finer[:-1])
    errors = changes + _noise(changes) + rounding
    errors = jnp.where(jnp.isfinite(errors), errors, jnp.inf)
    best = jnp.argmin(errors, axis=0)[None]
    value = jnp.take_along_axis(finer[1:], best, 0)[0]
    return Slope(value, jnp.take_along_axis(errors, best, 0)[0])


def _noise(changes: jax.Array) -> jax.Array:
    """What the shorter steps say of the noise at each: it grows as the step shrinks.

    A small change may be an accident; the larger ones after it, scaled back, are not.
    """
    levels = list(changes)
    for k in range(len(levels) - 2, -1, -1):
        levels[k] = jnp.maximum(levels[k], jnp.nan_to_num(levels[k + 1], posinf=0) / _RATIO)
    return jnp.stack(levels)
