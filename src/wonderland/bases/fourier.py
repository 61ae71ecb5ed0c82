"""Sines and cosines of each variable: the basis of periodic functions."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np

from wonderland.bases.basis import Basis, namespace
from wonderland.core.errors import InputError

__all__ = ["Fourier"]


class Fourier(Basis):
    """sin(2πjx/T), cos(2πjx/T) for j = 1 … k, for each variable x.

    Args:
        k: Number of harmonics ≥ 1.
        period: T > 0, in the units of x; 2π by default.

    >>> import numpy as np
    >>> Fourier(1, period=4.0)(np.array([[1.0]])).round(12)
    array([[1., 0.]])
    """

    k: int = eqx.field(static=True)
    period: float = eqx.field(static=True)

    def __init__(self, k: int, *, period: float = 2.0 * math.pi) -> None:
        if not isinstance(k, int | np.integer) or k < 1 or not period > 0:
            raise InputError(
                f"k = {k!r}, period = {period!r}",
                "k ≥ 1 harmonics and a period > 0",
                "Pass for instance Fourier(3, period=12) for monthly data",
            )
        self.k, self.period = int(k), float(period)

    def __call__(self, X: Any) -> Any:
        """φ(X): (n, d) → (n, 2kd), harmonic by harmonic."""
        xp = namespace(X)
        angle = X * (2.0 * math.pi / self.period)
        waves = [wave(j * angle) for j in range(1, self.k + 1) for wave in (xp.sin, xp.cos)]
        return xp.concatenate(waves, axis=1)

    def names(self, features: Sequence[str]) -> list[str]:
        """Names such as 'sin 2·month'."""
        harmonics = range(1, self.k + 1)
        return [f"{w} {j}·{f}" for j in harmonics for w in ("sin", "cos") for f in features]
