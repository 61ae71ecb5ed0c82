"""First-order methods for f + ρ, f smooth and ρ with a proximal step, also where L is not known.

    u = w_k + β_k (w_k − w_{k−1}),   w_{k+1} = prox_{tρ}(u − t∇f(u))

`Proximal`: β = 0 is gradient descent, for ρ ≠ 0 ISTA; with β_k = (s_k − 1)/s_{k+1},
s_{k+1} = ½ + √(¼ + s_k²), it is Nesterov's method and FISTA. The step t is 1/L, or is found: halved
until f lies below the parabola through u,

    f(w) ≤ f(u) + ⟨∇f(u), w − u⟩ + ‖w − u‖² / 2t .

`HeavyBall`: w_{k+1} = w_k − η∇f(w_k) + β(w_k − w_{k−1}).

References: Beck and Teboulle, A Fast Iterative Shrinkage-Thresholding Algorithm (2009); O'Donoghue
and Candès, Adaptive Restart (2015); Polyak, Some Methods of Speeding up Convergence (1964).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from wonderland.solve.gradient import Composite, Smooth, refuse_kinks

__all__ = ["HeavyBall", "Proximal", "ProximalState", "certify"]

SAFE = 0.7  # β with which the heavy ball converges at η = 1/L
ROUNDING = 1e4  # in units of ε|f|: below it differences of f are not to be trusted
HALVINGS = 60  # of the step in one search: by then it has shrunk by 10¹⁸


class ProximalState(eqx.Module):
    """What the next step needs, and what the stopping rules read.

    Attributes:
        w: Current iterate.
        previous: The iterate before.
        count: Steps taken.
        certificate: The largest entry of ∇f + ∂ρ at `w`.
        moved: ‖w_{k+1} − w_k‖².
        length: The step t.
        pace: s_k of the momentum; of the heavy ball, by how much β has shrunk.
    """

    w: jax.Array
    previous: jax.Array
    count: jax.Array
    certificate: jax.Array
    moved: jax.Array
    length: jax.Array
    pace: jax.Array


class Proximal(eqx.Module):
    """Gradient descent, ISTA, Nesterov's method and FISTA as init / step.

    Attributes:
        momentum: Whether β > 0.
        backtracking: Whether t is found; then L is never asked for, and f must know its `value`.
        restart: Whether momentum begins anew where it points uphill. It helps where f is strongly
            convex without saying so; the theorem of FISTA is about False.
    """

    momentum: bool = eqx.field(static=True, default=True)
    backtracking: bool = eqx.field(static=True, default=False)
    restart: bool = eqx.field(static=True, default=True)

    def init(self, objective: Any, w: jax.Array) -> ProximalState:
        """The state before the first step."""
        one, far = jnp.ones((), w.dtype), jnp.full((), jnp.inf, w.dtype)
        start = certify(objective, w, objective.gradient(w))
        length = one if self.backtracking else _reciprocal(objective.lipschitz)
        return ProximalState(w, w, jnp.zeros((), int), start, far, length, one)

    def step(self, objective: Any, state: ProximalState) -> ProximalState:
        """One proximal step from u; with backtracking as many trials as the step needs."""
        pace = 0.5 + jnp.sqrt(0.25 + state.pace**2) if self.momentum else state.pace
        beta = (state.pace - 1.0) / pace
        u = state.w + beta * (state.w - state.previous)
        slope = objective.gradient(u)
        length = state.length
        if self.backtracking:
            # Without momentum the step may grow again; FISTA's proof wants it to shrink only.
            length = _search(objective, u, slope, length if self.momentum else 2.0 * length)
        w = _move(objective, u, slope, length)
        if self.momentum and self.restart:
            pace = jnp.where(jnp.vdot(u - w, w - state.w) > 0, 1.0, pace)
        certificate = certify(objective, w, objective.gradient(w))
        moved = jnp.sum((w - state.w) ** 2)
        return ProximalState(w, state.w, state.count + 1, certificate, moved, length, pace)


class HeavyBall(eqx.Module):
    """Momentum without looking ahead, for smooth f with known L.

    η = 1/L and β = (1 − √(m/L))², which on quadratics is as fast as Nesterov's method; k/(k + 3)
    where m = 0. On other functions such numbers can cycle: a step on which the momentum points
    uphill is taken without it, and β shrinks by 2 %, at most to 0.7, where with η = 1/L convergence
    is proved for every strongly convex f (Ghadimi, Feyzmahdavian and Johansson, 2015).
    """

    def init(self, objective: Smooth, w: jax.Array) -> ProximalState:
        """The state before the first step."""
        refuse_kinks(self, objective)
        one, far = jnp.ones((), w.dtype), jnp.full((), jnp.inf, w.dtype)
        start = objective.certificate(objective.gradient(w))
        length = _reciprocal(objective.lipschitz)
        return ProximalState(w, w, jnp.zeros((), int), start, far, length, one)

    def step(self, objective: Smooth, state: ProximalState) -> ProximalState:
        """One step; `pace` holds by how much β has shrunk."""
        slope, way = objective.gradient(state.w), state.w - state.previous
        uphill = jnp.vdot(slope, way) > 0
        pace = jnp.where(uphill, 0.98 * state.pace, state.pace)
        ratio = jnp.sqrt(jnp.maximum(objective.strong_convexity, 0.0) * state.length)
        beta = jnp.where(ratio > 0, (1.0 - ratio) ** 2, state.count / (state.count + 3.0))
        beta = jnp.minimum(beta, jnp.maximum(pace, SAFE))
        step = jnp.where(uphill, 0.0, beta) * way - state.length * slope
        w = state.w + step
        certificate = objective.certificate(objective.gradient(w))
        moved = jnp.sum(step**2)
        return ProximalState(w, state.w, state.count + 1, certificate, moved, state.length, pace)


def certify(objective: Any, w: jax.Array, gradient: jax.Array) -> jax.Array:
    """The certificate of f, or of f + ρ, from the gradient of f."""
    composite = isinstance(objective, Composite)
    return objective.certificate(objective.residual(w, gradient) if composite else gradient)


def _move(objective: Any, u: jax.Array, slope: jax.Array, length: jax.Array) -> jax.Array:
    w = u - length * slope
    return objective.prox(w, length) if isinstance(objective, Composite) else w


def _search(objective: Any, u: jax.Array, slope: jax.Array, length: jax.Array) -> jax.Array:
    """The longest of length, length/2, … whose parabola lies above f."""
    here = objective.value(u)
    hidden = ROUNDING * jnp.finfo(u.dtype).eps * jnp.abs(here)

    def below(way: jax.Array, bend: jax.Array) -> jax.Array:
        return objective.value(u + way) <= here + jnp.vdot(slope, way) + bend

    def steady(way: jax.Array, bend: jax.Array) -> jax.Array:
        return jnp.vdot(objective.gradient(u + way) - slope, way) <= bend

    def too_long(trial: tuple[jax.Array, jax.Array]) -> jax.Array:
        length, count = trial
        way = _move(objective, u, slope, length) - u
        bend = jnp.sum(way**2) / (2 * length)
        # Near the optimum both sides differ by less than f is rounded: there gradients decide,
        # ⟨∇f(w) − ∇f(u), w − u⟩ ≤ ‖w − u‖²/2t, which for convex f implies the parabola.
        fits = jax.lax.cond(bend > hidden, below, steady, way, bend)
        return ~fits & (count < HALVINGS)  # NaN does not fit

    def halve(trial: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return 0.5 * trial[0], trial[1] + 1

    return jax.lax.while_loop(too_long, halve, (length, jnp.zeros((), int)))[0]


def _reciprocal(number: jax.Array) -> jax.Array:
    """1/x; 0 for the flat objective, which is at its minimum everywhere."""
    return jnp.where(number > 0, 1.0 / jnp.where(number > 0, number, 1.0), 0.0)
