"""Gradient descent with the step taken from the measured curvature, with and without momentum.

    u   = w_t + β_t (w_t − w_{t−1})
    w_{t+1} = u − η ∇f(u)

Plain (β = 0): η = 2/(m + L) where f is m-strongly convex, 1/L otherwise. Momentum (Nesterov 1983):
η = 1/L and β = (√κ − 1)/(√κ + 1), or β_t = (t)/(t + 3) where m = 0. The rates are in
`solve.theory`; steps found without L, proximal steps and heavy balls in `solve.proximal`.
Shapes: w (d, t).
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from wonderland.core.errors import InputError

__all__ = ["Composite", "Descent", "DescentState", "Quadratic", "Smooth", "refuse_kinks"]


class Smooth(eqx.Module):
    """A differentiable objective that knows its curvature."""

    lipschitz: eqx.AbstractVar[jax.Array]
    strong_convexity: eqx.AbstractVar[jax.Array]

    @abstractmethod
    def gradient(self, w: jax.Array) -> jax.Array:
        """∇f(w), of the shape of w."""

    @abstractmethod
    def certificate(self, gradient: jax.Array) -> jax.Array:
        """The scalar that `tol` bounds, from the gradient."""


class Composite(Smooth):
    """f + ρ with f smooth and ρ known by its proximal step; `gradient` is that of f.

    Attributes:
        smooth: Whether ρ is zero, so that methods without a proximal step apply.
    """

    smooth: eqx.AbstractVar[bool]

    @abstractmethod
    def value(self, w: jax.Array) -> jax.Array:
        """f(w), the smooth part."""

    @abstractmethod
    def total(self, w: jax.Array) -> jax.Array:
        """f(w) + ρ(w)."""

    @abstractmethod
    def prox(self, w: jax.Array, step: jax.Array) -> jax.Array:
        """argmin_v ρ(v) + ‖v − w‖² / (2·step)."""

    @abstractmethod
    def residual(self, w: jax.Array, gradient: jax.Array) -> jax.Array:
        """The element of ∇f(w) + ∂ρ(w) nearest to zero, from the gradient of f."""


class Quadratic(Smooth):
    """f(w) = (½ tr wᵀ(G + diag α)w − tr Hᵀw) / mass: least squares and ridge in second moments.

    Attributes:
        gram: G (d, d).
        cross: H (d, t).
        alpha: Penalty per output (t,).
        mass: Σω, so that f is a mean over samples.
        norms: ‖x_j‖‖y_t‖ (d, t), which make the certificate free of units.
        lipschitz: L = (λ_max(G) + max α)/mass.
        strong_convexity: m = (λ_min(G) + min α)/mass.
    """

    gram: jax.Array
    cross: jax.Array
    alpha: jax.Array
    mass: jax.Array
    norms: jax.Array
    lipschitz: jax.Array
    strong_convexity: jax.Array

    def value(self, w: jax.Array) -> jax.Array:
        """f(w), without the constant part of the squares."""
        curved = self.gram @ w + w * self.alpha[None, :]
        return (0.5 * jnp.sum(w * curved) - jnp.sum(self.cross * w)) / self.mass

    def gradient(self, w: jax.Array) -> jax.Array:
        """∇f(w) = (Gw + wα − H)/mass."""
        return (self.gram @ w + w * self.alpha[None, :] - self.cross) / self.mass

    def certificate(self, gradient: jax.Array) -> jax.Array:
        """Largest cosine between a column and the residual: max |∇f|·mass/(‖x‖‖y‖)."""
        return jnp.max(jnp.abs(gradient) * self.mass / self.norms)


class DescentState(eqx.Module):
    """What the next step needs, and what the stopping rules read.

    Attributes:
        w: Current iterate.
        previous: The iterate before.
        count: Steps taken.
        certificate: Of the gradient at `w`.
        moved: ‖w_{t+1} − w_t‖².
    """

    w: jax.Array
    previous: jax.Array
    count: jax.Array
    certificate: jax.Array
    moved: jax.Array


class Descent(eqx.Module):
    """Gradient descent as init / step; the objective brings its own curvature.

    Attributes:
        momentum: Whether to use Nesterov's momentum.
        cautious: Whether the step stays 1/L also where 2/(m + L) is allowed.
    """

    momentum: bool = eqx.field(static=True, default=True)
    cautious: bool = eqx.field(static=True, default=False)

    def init(self, objective: Smooth, w: jax.Array) -> DescentState:
        """The state before the first step."""
        refuse_kinks(self, objective)
        start = objective.certificate(objective.gradient(w))
        return DescentState(w, w, jnp.zeros((), int), start, jnp.full((), jnp.inf, w.dtype))

    def step(self, objective: Smooth, state: DescentState) -> DescentState:
        """One step, at the cost of two gradients: one to move by, one to certify with."""
        beta, eta = self._beta(objective, state.count), self._eta(objective)
        u = state.w + beta * (state.w - state.previous)
        w = u - eta * objective.gradient(u)
        certificate = objective.certificate(objective.gradient(w))
        moved = jnp.sum((w - state.w) ** 2)
        return DescentState(w, state.w, state.count + 1, certificate, moved)

    def _eta(self, objective: Smooth) -> jax.Array:
        L, m = objective.lipschitz, objective.strong_convexity
        # A flat objective (L = 0) is at its minimum everywhere: no step.
        short = jnp.where(L > 0, 1.0 / jnp.where(L > 0, L, 1.0), 0.0)
        return short if self.momentum or self.cautious else jnp.where(m > 0, 2.0 / (m + L), short)

    def _beta(self, objective: Smooth, count: jax.Array) -> jax.Array:
        if not self.momentum:
            return jnp.zeros_like(objective.lipschitz)
        L, m = jnp.sqrt(objective.lipschitz), jnp.sqrt(jnp.maximum(objective.strong_convexity, 0.0))
        return jnp.where(m > 0, (L - m) / (L + m), count / (count + 3.0))


def refuse_kinks(solver: Any, objective: Any) -> None:
    """A method that only follows gradients would forget a ρ that has none."""
    if isinstance(objective, Composite) and not objective.smooth:
        raise InputError(
            f"{type(solver).__name__} on an objective with a penalty that is not smooth",
            "a smooth objective",
            "Use wl.solve.Proximal(), which takes proximal steps",
        )
