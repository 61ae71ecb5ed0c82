"""What a penalty is: ρ(w), and what is known about it.

    value        ρ(w), infinite where w is not allowed
    prox         argmin_v ρ(v) + ‖v − w‖² / 2t
    conjugate    ρ*(u) = sup_w ⟨u, w⟩ − ρ(w)
    residual     the smallest element of g + ∂ρ(w), entry by entry
    distance     its largest entry: zero exactly where w minimises f + ρ and g = ∇f(w)

w is (d,) or (d, t); NumPy in, NumPy out, JAX in, JAX out. The intercept is not part of w.
Reference: Parikh and Boyd, Proximal Algorithms (2014).
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import is_traced
from wonderland.core.errors import InputError

__all__ = ["Penalty", "namespace", "shrink"]


class Penalty(eqx.Module):
    """A penalty and its facts; a subclass states each as a class attribute or a property."""

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Whether ρ is convex."""

    @property
    @abstractmethod
    def smoothness(self) -> Any:
        """L of its gradient, infinite where there is a kink or a wall."""

    @property
    @abstractmethod
    def strong_convexity(self) -> Any:
        """The largest m for which ρ − ½m‖w‖² is convex."""

    @abstractmethod
    def value(self, w: Any) -> Any:
        """ρ(w), one number."""

    @abstractmethod
    def prox(self, w: Any, step: Any) -> Any:
        """argmin_v ρ(v) + ‖v − w‖² / (2·step), of the shape of w."""

    @abstractmethod
    def conjugate(self, u: Any) -> Any:
        """ρ*(u), one number."""

    @abstractmethod
    def residual(self, w: Any, gradient: Any) -> Any:
        """The element of gradient + ∂ρ(w) nearest to zero, of the shape of w."""

    def distance(self, w: Any, gradient: Any) -> Any:
        """The largest entry of the residual, at an allowed w; the optimality certificate."""
        rest = self.residual(w, gradient)
        return namespace(rest).max(namespace(rest).abs(rest), initial=0.0)


def namespace(*values: Any) -> Any:
    """`jax.numpy` where any value is a JAX array or tracer, NumPy otherwise."""
    return jnp if any(isinstance(value, jax.Array) for value in values) else np


def shrink(w: Any, step: Any) -> Any:
    """sign(w) max(0, |w| − t): towards zero by t, not beyond.

    >>> shrink(np.array([-3.0, 0.5]), 1.0)
    array([-2.,  0.])
    """
    xp = namespace(w, step)
    return w - xp.clip(w, -step, step)


def require_strength(strength: Any) -> Any:
    """A strength that is no penalty at all, or rewards size, is refused."""
    if not is_traced(strength) and not (np.all(np.isreal(strength)) and np.all(strength >= 0)):
        raise InputError(
            f"strength is {strength!r}", "a number ≥ 0", "Pass strength=0.0 for no penalty"
        )
    return strength
