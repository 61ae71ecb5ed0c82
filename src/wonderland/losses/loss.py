"""What a loss is: ℓ(z, y) of one prediction z and one target y, and what is known about it.

    value        ℓ(z, y)
    derivative   dℓ/dz, a stated subgradient where there is a kink
    curvature    d²ℓ/dz²
    conjugate    ℓ*(u, y) = sup_z uz − ℓ(z, y), infinite outside `domain`
    prox         argmin_z ℓ(z, y) + (z − p)² / 2t
    dual         −ℓ*(−a·s, y), s the direction of y: what the dual problem adds up

All are elementwise, NumPy in, NumPy out, JAX in, JAX out. With them the two problems

    min_w  ½‖w‖² + C Σ ℓ(w·x_i, y_i)      max_a  C Σ dual(a_i, y_i) − ½‖C Σ a_i s_i x_i‖²

have the same value. Reference: Rockafellar, Convex Analysis (1970), §12 and §31.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.errors import InputError

__all__ = ["Loss", "MarginLoss", "ResidualLoss", "agree", "namespace"]


class Loss(eqx.Module):
    """A loss and its facts; a subclass states each as a class attribute or a property."""

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Whether ℓ(·, y) is convex."""

    @property
    @abstractmethod
    def smoothness(self) -> Any:
        """L = sup |d²ℓ/dz²|, infinite where the derivative jumps."""

    @property
    @abstractmethod
    def strong_convexity(self) -> Any:
        """m = inf d²ℓ/dz² of a convex loss; zero promises nothing."""

    @property
    @abstractmethod
    def classification_calibrated(self) -> bool | None:
        """Whether least risk has the sign of the likelier class (`losses.calibrated`).

        Bartlett's criterion: a convex φ of the margin is calibrated exactly if it is
        differentiable at 0 with φ'(0) < 0. None for losses of numbers.
        """

    @property
    @abstractmethod
    def link(self) -> str | None:
        """Of the mean of y where z estimates it: 'identity', 'logit', …; None otherwise."""

    @property
    @abstractmethod
    def targets(self) -> str:
        """What y is: 'signs' −1 and +1, 'bits' 0 and 1, 'classes' 0 … k − 1, or 'numbers'."""

    @abstractmethod
    def value(self, prediction: Any, target: Any) -> Any:
        """ℓ(z, y)."""

    @abstractmethod
    def derivative(self, prediction: Any, target: Any) -> Any:
        """dℓ/dz; at a kink the subgradient that the class names."""

    @abstractmethod
    def curvature(self, prediction: Any, target: Any) -> Any:
        """d²ℓ/dz², zero on straight pieces."""

    @abstractmethod
    def conjugate(self, dual: Any, target: Any) -> Any:
        """ℓ*(u, y) = sup_z uz − ℓ(z, y), infinite outside the domain."""

    @abstractmethod
    def domain(self, target: Any) -> tuple[Any, Any]:
        """(low, high): the closed interval in which ℓ*(·, y) is finite, ends of the shape of y."""

    @abstractmethod
    def prox(self, point: Any, target: Any, step: Any) -> Any:
        """argmin_z ℓ(z, y) + (z − point)² / (2·step)."""

    @abstractmethod
    def dual(self, multiplier: Any, target: Any) -> Any:
        """−ℓ*(−a·s, y): what sample y with multiplier a adds to the dual objective."""


class MarginLoss(Loss):
    """ℓ(z, y) = φ(yz) for y ∈ {−1, +1}: only the margin v = yz counts.

    That y is a sign is not checked at every call; the doors of estimators see to it.
    Then dℓ/dz = y φ'(yz) and ℓ*(u, y) = φ*(uy). Here w = C Σ a_i y_i x_i and dual = −φ*(−a), so
    that the hinge gives the box 0 ≤ a ≤ 1 and the sum of a of the textbook.
    """

    targets = "signs"

    @abstractmethod
    def phi(self, margin: Any) -> Any:
        """φ(v)."""

    @abstractmethod
    def phi_slope(self, margin: Any) -> Any:
        """φ'(v)."""

    @abstractmethod
    def phi_curvature(self, margin: Any) -> Any:
        """φ''(v)."""

    @abstractmethod
    def phi_conjugate(self, slope: Any) -> Any:
        """φ*(s) for s inside `phi_domain`."""

    @abstractmethod
    def phi_domain(self) -> tuple[float, float]:
        """The ends of the slopes s at which φ* is finite."""

    @abstractmethod
    def phi_prox(self, point: Any, step: Any) -> Any:
        """argmin_v φ(v) + (v − point)² / (2·step)."""

    def value(self, prediction: Any, target: Any) -> Any:
        """φ(yz)."""
        z, y = agree(prediction, target)
        return self.phi(y * z)

    def derivative(self, prediction: Any, target: Any) -> Any:
        """y φ'(yz)."""
        z, y = agree(prediction, target)
        return y * self.phi_slope(y * z)

    def curvature(self, prediction: Any, target: Any) -> Any:
        """φ''(yz), since y² = 1."""
        z, y = agree(prediction, target)
        return self.phi_curvature(y * z)

    def conjugate(self, dual: Any, target: Any) -> Any:
        """φ*(uy)."""
        u, y = agree(dual, target)
        return within(u * y, self.phi_domain(), self.phi_conjugate)

    def domain(self, target: Any) -> tuple[Any, Any]:
        """That of φ*, turned round where y = −1."""
        y, _ = agree(target, target)
        xp, (low, high) = namespace(y), self.phi_domain()
        return xp.where(y > 0, low, -high), xp.where(y > 0, high, -low)

    def prox(self, point: Any, target: Any, step: Any) -> Any:
        """y·prox_φ(y·p)."""
        p, y = agree(point, target)
        return y * self.phi_prox(y * p, step)

    def dual(self, multiplier: Any, target: Any) -> Any:
        """−φ*(−a); minus infinity where −a is no slope of φ."""
        a, _ = agree(multiplier, target)
        return -within(-a, self.phi_domain(), self.phi_conjugate)


class ResidualLoss(Loss):
    """ℓ(z, y) = φ(z − y): only the residual r = z − y counts.

    Then ℓ*(u, y) = uy + φ*(u). Here w = C Σ a_i x_i and dual = a·y − φ*(−a).
    """

    targets = "numbers"
    classification_calibrated = None

    @abstractmethod
    def phi(self, residual: Any) -> Any:
        """φ(r)."""

    @abstractmethod
    def phi_slope(self, residual: Any) -> Any:
        """φ'(r)."""

    @abstractmethod
    def phi_curvature(self, residual: Any) -> Any:
        """φ''(r)."""

    @abstractmethod
    def phi_conjugate(self, slope: Any) -> Any:
        """φ*(s) for s inside `phi_domain`."""

    @abstractmethod
    def phi_domain(self) -> tuple[Any, Any]:
        """The ends of the slopes s at which φ* is finite."""

    @abstractmethod
    def phi_prox(self, point: Any, step: Any) -> Any:
        """argmin_r φ(r) + (r − point)² / (2·step)."""

    def value(self, prediction: Any, target: Any) -> Any:
        """φ(z − y)."""
        z, y = agree(prediction, target)
        return self.phi(z - y)

    def derivative(self, prediction: Any, target: Any) -> Any:
        """φ'(z − y)."""
        z, y = agree(prediction, target)
        return self.phi_slope(z - y)

    def curvature(self, prediction: Any, target: Any) -> Any:
        """φ''(z − y)."""
        z, y = agree(prediction, target)
        return self.phi_curvature(z - y)

    def conjugate(self, dual: Any, target: Any) -> Any:
        """uy + φ*(u)."""
        u, y = agree(dual, target)
        return u * y + within(u, self.phi_domain(), self.phi_conjugate)

    def domain(self, target: Any) -> tuple[Any, Any]:
        """That of φ*, whatever y."""
        y, _ = agree(target, target)
        low, high = self.phi_domain()
        return low + 0.0 * y, high + 0.0 * y

    def prox(self, point: Any, target: Any, step: Any) -> Any:
        """y + prox_φ(p − y)."""
        p, y = agree(point, target)
        return y + self.phi_prox(p - y, step)

    def dual(self, multiplier: Any, target: Any) -> Any:
        """ay − φ*(−a)."""
        a, y = agree(multiplier, target)
        return a * y - within(-a, self.phi_domain(), self.phi_conjugate)


def namespace(*values: Any) -> Any:
    """`jax.numpy` where any value is a JAX array or tracer, NumPy otherwise."""
    return jnp if any(isinstance(value, jax.Array) for value in values) else np


def floating(value: Any, xp: Any) -> Any:
    """`value` as a floating array of `xp`, in its own precision where it has one."""
    array = xp.asarray(value)
    return array if xp.issubdtype(array.dtype, xp.floating) else array.astype(float)


def agree(prediction: Any, target: Any) -> tuple[Any, Any]:
    """Both as floating arrays, or an error where their shapes would broadcast into a table.

    >>> agree(np.zeros(3), np.zeros((3, 1)))
    Traceback (most recent call last):
    ...
    wonderland.core.errors.InputError: The prediction has shape (3,), the target (3, 1). ...
    """
    xp = namespace(prediction, target)
    z = floating(prediction, xp)
    y = xp.asarray(target, dtype=z.dtype)
    if z.shape != y.shape and z.ndim and y.ndim:
        raise InputError(
            f"The prediction has shape {z.shape}, the target {y.shape}",
            "one target for each prediction, in the same shape",
            "Drop or add the axis of length one: target.ravel() or target[:, None]",
        )
    return z, y


def within(slope: Any, ends: tuple[Any, Any], conjugate: Any) -> Any:
    """φ*(s) inside its closed domain, infinite outside; NaN stays NaN."""
    xp = namespace(slope, *ends)
    inside = (slope >= ends[0]) & (slope <= ends[1])
    # Outside, the formula may be undefined: it is asked at the nearest point where it is not.
    found = conjugate(xp.clip(slope, ends[0], ends[1]))
    return xp.where(inside | xp.isnan(slope), found, xp.inf)[()]
