"""L-BFGS for smooth objectives on JAX arrays: curvature learnt from the last few steps.

    w_{k+1} = w_k − t H_k ∇f(w_k)

H_k is applied by the two-loop recursion over the pairs s = w_{k+1} − w_k, y = ∇f_{k+1} − ∇f_k, and
t satisfies Wolfe's conditions, found by doubling and bisection. L is never asked for; f must know
its `value`. References: Nocedal and Wright, Numerical Optimization (2006), algorithm 7.4; Lewis and
Overton, Nonsmooth Optimization via Quasi-Newton Methods (2013), §2, for the line search.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from wonderland.solve.gradient import refuse_kinks

__all__ = ["QuasiNewton", "QuasiNewtonState"]

ARMIJO, CURVATURE = 1e-4, 0.9
TRIALS = 40


class QuasiNewtonState(eqx.Module):
    """What the next step needs, and what the stopping rules read.

    Attributes:
        w: Current iterate.
        gradient: ∇f(w).
        value: f(w).
        steps: The last s (memory, size of w), newest first; zeros where there is none.
        changes: The last y (memory, size of w).
        count: Steps taken.
        certificate: Of the gradient.
        moved: ‖s‖² of the last step.
    """

    w: jax.Array
    gradient: jax.Array
    value: jax.Array
    steps: jax.Array
    changes: jax.Array
    count: jax.Array
    certificate: jax.Array
    moved: jax.Array


class _Trial(NamedTuple):
    """A point of the line search and the bracket around its step."""

    length: jax.Array
    low: jax.Array
    high: jax.Array
    value: jax.Array
    gradient: jax.Array
    tried: jax.Array
    found: jax.Array


class QuasiNewton(eqx.Module):
    """L-BFGS as init / step.

    Attributes:
        memory: Pairs kept.
    """

    memory: int = eqx.field(static=True, default=10)

    def init(self, objective: Any, w: jax.Array) -> QuasiNewtonState:
        """The state before the first step."""
        refuse_kinks(self, objective)
        gradient = objective.gradient(w)
        empty = jnp.zeros((self.memory, w.size), w.dtype)
        certificate, far = objective.certificate(gradient), jnp.full((), jnp.inf, w.dtype)
        count = jnp.zeros((), int)
        value = objective.value(w)
        return QuasiNewtonState(w, gradient, value, empty, empty, count, certificate, far)

    def step(self, objective: Any, state: QuasiNewtonState) -> QuasiNewtonState:
        """One step along −H∇f, with a Wolfe step length."""
        slope = state.gradient.ravel()
        way = -_two_loop(state.steps, state.changes, slope)
        # Rounding may leave no descent in it: then the gradient is followed, and memory emptied.
        sound = jnp.vdot(way, slope) < 0
        way = jnp.where(sound, way, -slope)
        fresh = ~jnp.any(state.steps[0] != 0) | ~sound
        size = jnp.sqrt(jnp.sum(slope**2))
        first = jnp.where(fresh, jnp.minimum(1.0, 1.0 / jnp.where(size > 0, size, 1.0)), 1.0)
        found = _wolfe(objective, state, way.reshape(state.w.shape), first)
        w = state.w + found.length * way.reshape(state.w.shape)
        s, y = (w - state.w).ravel(), (found.gradient - state.gradient).ravel()
        kept = jnp.vdot(s, y) > 1e-14 * jnp.sqrt(jnp.sum(s**2) * jnp.sum(y**2))
        alive = jnp.where(found.found & sound, 1.0, 0.0)  # a failed search begins anew
        steps, changes = (
            alive * jnp.where(kept, jnp.concatenate([new[None], old[:-1]]), old)
            for new, old in ((s, state.steps), (y, state.changes))
        )
        certificate = objective.certificate(found.gradient)
        moved, count = jnp.sum(s**2), state.count + 1
        return QuasiNewtonState(
            w, found.gradient, found.value, steps, changes, count, certificate, moved
        )


def _two_loop(steps: jax.Array, changes: jax.Array, slope: jax.Array) -> jax.Array:
    """H·slope; pairs of zeros count for nothing."""
    inner = jnp.sum(steps * changes, axis=1)
    rho = jnp.where(inner > 0, 1.0 / jnp.where(inner > 0, inner, 1.0), 0.0)

    def back(q: jax.Array, pair: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        s, y, r = pair
        a = r * jnp.vdot(s, q)
        return q - a * y, a

    def forth(q: jax.Array, pair: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        s, y, r, a = pair
        return q + (a - r * jnp.vdot(y, q)) * s, None

    q, a = jax.lax.scan(back, slope, (steps, changes, rho))
    newest = jnp.sum(changes[0] ** 2)
    scale = jnp.where(newest > 0, inner[0] / jnp.where(newest > 0, newest, 1.0), 1.0)
    return jax.lax.scan(forth, scale * q, (steps, changes, rho, a), reverse=True)[0]


def _wolfe(objective: Any, state: QuasiNewtonState, way: jax.Array, first: jax.Array) -> _Trial:
    """A step that descends enough and has left the steepest part behind."""
    fall = jnp.vdot(state.gradient, way)
    rounding = 16 * jnp.finfo(way.dtype).eps * (1.0 + jnp.abs(state.value))

    def going(trial: _Trial) -> jax.Array:
        return ~trial.found & (trial.tried < TRIALS)

    def turn(trial: _Trial) -> _Trial:
        w = state.w + trial.length * way
        value, gradient = objective.value(w), objective.gradient(w)
        # Written so that a value beyond the floats, or NaN, is too long a step.
        short = value <= state.value + ARMIJO * trial.length * fall + rounding
        steep = jnp.vdot(gradient, way) < CURVATURE * fall
        low = jnp.where(short & steep, trial.length, trial.low)
        high = jnp.where(short, trial.high, trial.length)
        found = short & ~steep
        middle = jnp.where(jnp.isfinite(high), 0.5 * (low + high), 2.0 * trial.length)
        length = jnp.where(found, trial.length, middle)
        return _Trial(length, low, high, value, gradient, trial.tried + 1, found)

    zero, far = jnp.zeros_like(first), jnp.full_like(first, jnp.inf)
    start = _Trial(first, zero, far, state.value, state.gradient, jnp.zeros((), int), zero > 1)
    end = jax.lax.while_loop(going, turn, start)

    def stay(now: Any, before: Any) -> jax.Array:
        return jnp.where(end.found, now, before)

    return end._replace(
        length=stay(end.length, zero),
        value=stay(end.value, state.value),
        gradient=stay(end.gradient, state.gradient),
    )
