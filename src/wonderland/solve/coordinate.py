"""Cyclic coordinate descent for a quadratic with a separable penalty, as a solver of the one loop.

    minimise over w (d,)   ½ wᵀGw − hᵀw + Σ_j λ_j|w_j| + ½ Σ_j μ_j w_j²,    low_j ≤ w_j ≤ high_j .

One step is a sweep: every coordinate in turn goes to its exact minimum, the others fixed,

    w_j ← clip( soft(w_j G_jj − g_j, λ_j) / (G_jj + μ_j), low_j, high_j ),   g = Gw − h ,

and g follows by the column G_j. The lasso has G = XᵀX, h = Xᵀy; the box alone gives bounded least
squares and the dual of a support vector machine without intercept. The objective never rises; it
converges for every positive semidefinite G. The certificate is the largest distance of −g to the
subdifferential of the penalty, in units of what |g_j| was at w = 0. Shapes: G (d, d), others (d,).

Reference: Tseng (2001), Convergence of a block coordinate descent method for nondifferentiable
minimization; Friedman, Hastie & Tibshirani (2010).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

__all__ = ["CoordinateDescent", "CoordinateState", "SeparableQuadratic", "separable_quadratic"]


class SeparableQuadratic(eqx.Module):
    """½ wᵀGw − hᵀw + λᵀ|w| + ½ Σ μw² within a box.

    Attributes:
        gram: G (d, d), symmetric positive semidefinite.
        linear: h (d,).
        l1: λ (d,) ≥ 0.
        l2: μ (d,) ≥ 0.
        low: (d,), −inf where there is no bound.
        high: (d,), inf where there is no bound.
    """

    gram: jax.Array
    linear: jax.Array
    l1: jax.Array
    l2: jax.Array
    low: jax.Array
    high: jax.Array

    def value(self, w: jax.Array) -> jax.Array:
        """The objective at w (d,)."""
        smooth = 0.5 * jnp.vdot(w, self.gram @ w) - jnp.vdot(self.linear, w)
        return smooth + jnp.vdot(self.l1, jnp.abs(w)) + 0.5 * jnp.vdot(self.l2, w * w)

    def gradient(self, w: jax.Array) -> jax.Array:
        """∇ of the part without absolute values: Gw − h + μw (d,)."""
        return self.gram @ w - self.linear + self.l2 * w

    def certificate(self, w: jax.Array, gradient: jax.Array) -> jax.Array:
        """Largest distance of −∇ to ∂(λ|w| + box), divided by max |h|."""
        up = jnp.where(w >= 0, gradient + self.l1, gradient - self.l1)  # slope to the right
        down = jnp.where(w > 0, gradient + self.l1, gradient - self.l1)  # slope to the left
        rises = jnp.where(w < self.high, jnp.maximum(-up, 0.0), 0.0)
        falls = jnp.where(w > self.low, jnp.maximum(down, 0.0), 0.0)
        unit = jnp.max(jnp.abs(self.linear))
        return jnp.max(jnp.maximum(rises, falls)) / jnp.where(unit > 0, unit, 1.0)


class CoordinateState(eqx.Module):
    """What the next sweep needs, and what the stopping rules read.

    Attributes:
        w: Current iterate (d,).
        slope: Gw − h (d,).
        count: Sweeps taken.
        certificate: At `w`.
        moved: ‖w_{t+1} − w_t‖².
    """

    w: jax.Array
    slope: jax.Array
    count: jax.Array
    certificate: jax.Array
    moved: jax.Array


class CoordinateDescent(eqx.Module):
    """Sweeps over all coordinates in order, as init / step."""

    def init(self, objective: SeparableQuadratic, w: jax.Array) -> CoordinateState:
        """The state before the first sweep; w is brought into the box."""
        w = jnp.clip(w, objective.low, objective.high)
        never = jnp.full((), jnp.inf, w.dtype)
        return self._at(objective, w, jnp.zeros((), int), never)

    def step(self, objective: SeparableQuadratic, state: CoordinateState) -> CoordinateState:
        """One sweep; the slope is computed anew after it, so that rounding does not gather."""

        def coordinate(j: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple:
            w, slope = now
            curvature = objective.gram[j, j]
            aim = w[j] * curvature - slope[j]
            soft = jnp.sign(aim) * jnp.maximum(jnp.abs(aim) - objective.l1[j], 0.0)
            total = curvature + objective.l2[j]
            # Without curvature the coordinate runs to the bound its slope points at, or stays.
            flat = jnp.where(soft == 0, w[j], jnp.sign(soft) * jnp.inf)
            target = jnp.where(total > 0, soft / jnp.where(total > 0, total, 1.0), flat)
            new = jnp.clip(target, objective.low[j], objective.high[j])
            return w.at[j].set(new), slope + objective.gram[j] * (new - w[j])

        before = (state.w, state.slope)
        w, _ = jax.lax.fori_loop(0, state.w.shape[0], coordinate, before)
        return self._at(objective, w, state.count + 1, jnp.sum((w - state.w) ** 2))

    def _at(
        self, objective: SeparableQuadratic, w: jax.Array, count: jax.Array, moved: jax.Array
    ) -> CoordinateState:
        gradient = objective.gradient(w)
        certificate = objective.certificate(w, gradient)
        return CoordinateState(w, gradient - objective.l2 * w, count, certificate, moved)


def separable_quadratic(
    gram: jax.Array,
    linear: jax.Array,
    l1: Any = 0.0,
    l2: Any = 0.0,
    box: tuple[Any, Any] = (-jnp.inf, jnp.inf),
) -> SeparableQuadratic:
    """The objective from numbers or arrays, each spread over the d coordinates.

    >>> import jax.numpy as jnp
    >>> from wonderland.solve.run import Stopping, minimise
    >>> lasso = separable_quadratic(jnp.eye(2), jnp.array([3.0, 0.5]), l1=1.0)
    >>> state, status = minimise(CoordinateDescent(), lasso, jnp.zeros(2), Stopping())
    >>> state.w.tolist(), status.name
    ([2.0, 0.0], 'CONVERGED')
    """

    def spread(part: Any) -> jax.Array:
        return jnp.broadcast_to(jnp.asarray(part, linear.dtype), linear.shape)

    return SeparableQuadratic(gram, linear, spread(l1), spread(l2), spread(box[0]), spread(box[1]))
