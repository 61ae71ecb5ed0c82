"""The wall: coefficients between bounds, as a penalty that is zero inside and infinite outside."""

from typing import Any

import numpy as np

from wonderland.core.arrays import is_traced
from wonderland.core.errors import InputError
from wonderland.penalties.penalty import Penalty, namespace

__all__ = ["Box"]

INF = float("inf")


class Box(Penalty):
    """ρ(w) = 0 where low ≤ w ≤ high, infinite elsewhere; the prox is the projection.

    Args:
        low: A number or one for each entry of w; may be minus infinity.
        high: The same; may be infinity.

    >>> Box(0.0, 1.0).prox(np.array([-2.0, 0.5, 3.0]), 1.0)
    array([0. , 0.5, 1. ])
    >>> Box(0.0).distance(np.array([0.0, 2.0]), np.array([5.0, 0.25]))
    np.float64(0.25)
    """

    low: Any
    high: Any
    convex = True
    smoothness = INF
    strong_convexity = 0.0

    def __init__(self, low: Any = -INF, high: Any = INF) -> None:
        if not is_traced(low, high) and not np.all(np.asarray(low) <= np.asarray(high)):
            raise InputError(
                f"low = {low!r}, high = {high!r}",
                "bounds with low ≤ high",
                "Pass for instance Box(0.0) for coefficients ≥ 0",
            )
        self.low, self.high = low, high

    def value(self, w: Any) -> Any:
        """0 inside, infinite outside."""
        xp = namespace(w, self.low, self.high)
        return xp.where(((w >= self.low) & (w <= self.high)).all(), 0.0, xp.inf)[()]

    def prox(self, w: Any, step: Any) -> Any:
        """The nearest point of the box."""
        return namespace(w, self.low, self.high).clip(w, self.low, self.high)

    def conjugate(self, u: Any) -> Any:
        """Σ max(low·u, high·u)."""
        xp = namespace(u, self.low, self.high)
        end = xp.where(u > 0, self.high, self.low)
        return xp.where(u == 0, 0.0, xp.where(u == 0, 0.0, end) * u).sum()

    def residual(self, w: Any, gradient: Any) -> Any:
        """The gradient, without what only presses against a wall that w touches."""
        xp = namespace(w, gradient, self.low, self.high)
        pressed = ((w <= self.low) & (gradient > 0)) | ((w >= self.high) & (gradient < 0))
        return xp.where(pressed, 0.0, gradient)
