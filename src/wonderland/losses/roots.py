"""Roots of increasing functions of one variable, elementwise: what proximal steps come down to.

    newton_within    r with f(r) = 0 inside a bracket, by Newton's steps or by halving
    wright_omega     ω with ω + log ω = x
    entropy_term     a log a, continued by 0 at a = 0

A fixed number of turns, so that JAX can trace them; NumPy stops as soon as nothing moves.
Reference: Corless and Jeffrey, The Wright ω Function (2002).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.losses.loss import namespace

__all__ = ["entropy_term", "newton_within", "wright_omega"]

TURNS = 100  # halving alone finds 53 bits of a bracket as wide as 2⁴⁷ times the root
OMEGA_TURNS = 12  # from the start below Newton needs at most 8


def newton_within(
    function: Callable[[Any], tuple[Any, Any]], low: Any, high: Any, start: Any
) -> Any:
    """The root of an increasing function between low and high.

    Args:
        function: x to (f(x), f'(x)), elementwise, increasing.
        low: Where f ≤ 0.
        high: Where f ≥ 0.
        start: Between them.

    >>> round(float(newton_within(lambda x: (x**3 - 2.0, 3 * x**2), 0.0, 2.0, 1.0)), 12)
    1.259921049895
    """
    xp = namespace(low, high, start)

    def turn(now: tuple[Any, ...]) -> tuple[Any, ...]:
        low, high, x, size, best, least = now
        value, slope = function(x)
        nearer = xp.abs(value) < least
        best, least = xp.where(nearer, x, best), xp.where(nearer, xp.abs(value), least)
        low, high = xp.where(value <= 0, x, low), xp.where(value >= 0, x, high)
        step = value / xp.where(slope > 0, slope, 1.0)
        # A Newton step that is no shorter than half the last one may be going round in circles.
        good = (slope > 0) & (x - step >= low) & (x - step <= high) & (xp.abs(step) <= 0.5 * size)
        after = xp.where(good, x - step, 0.5 * (low + high))
        return low, high, after, xp.abs(after - x), best, least

    low, high, x = xp.broadcast_arrays(xp.asarray(low), xp.asarray(high), xp.asarray(start))
    now = (low, high, x, 2 * (high - low), x, xp.full_like(x, xp.inf))
    if xp is jnp:
        return jax.lax.fori_loop(0, TURNS, lambda _, now: turn(now), now)[4]
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite f only means: bisect
        for _ in range(TURNS):
            now = turn(now)
            if not np.any(now[3] > np.finfo(x.dtype).eps * np.abs(now[2])):
                break
    return now[4][()]


def wright_omega(x: Any) -> Any:
    """ω(x) with ω + log ω = x: Lambert's W of eˣ, without forming eˣ.

    >>> round(float(wright_omega(np.float64(1.0))), 15), float(wright_omega(np.float64(-1e4)))
    (1.0, 0.0)
    """
    xp = namespace(x)
    tiny = xp.finfo(x.dtype).tiny
    # From below the root Newton's steps on the concave ω + log ω − x rise to it.
    above = xp.maximum(x, 1.0)
    small = xp.exp(xp.minimum(x, 1.0))
    omega = xp.maximum(xp.where(x > 1, above - xp.log(above), small / (1.0 + small)), tiny)

    def turn(omega: Any) -> Any:
        return xp.maximum(omega * ((1.0 + x - xp.log(omega)) / (1.0 + omega)), tiny)

    if xp is jnp:
        omega = jax.lax.fori_loop(0, OMEGA_TURNS, lambda _, now: turn(now), omega)
    else:
        for _ in range(OMEGA_TURNS):
            omega = turn(omega)
    return xp.where(omega > tiny, omega, 0.0)[()]


def entropy_term(a: Any) -> Any:
    """The term a log a for a ≥ 0, 0 at 0.

    >>> entropy_term(np.array([0.0, 1.0]))
    array([0., 0.])
    """
    xp = namespace(a)
    return xp.where(a > 0, a * xp.log(xp.where(a > 0, a, 1.0)), 0.0)
