"""Losses of the residual r = z − y.

    squared                 ½r²                     absolute                |r|
    Huber                   ½r² up to δ, δ(|r| − ½δ) beyond
    ε-insensitive           max(0, |r| − ε)         its square              max(0, |r| − ε)²
    quantile                max(−τr, (1 − τ)r)      Gaussian NLL            ½ log 2πσ² + r²/2σ²

The squared loss carries ½, the squared ε-insensitive one none, as in scikit-learn. Where a kink is,
the derivative is 0 if that is a subgradient.
"""

from math import log, pi
from typing import Any

import numpy as np

from wonderland.core.arrays import is_traced
from wonderland.core.errors import InputError
from wonderland.losses.loss import ResidualLoss, agree, namespace

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "GaussianNLL",
    "Huber",
    "Quantile",
    "Squared",
    "SquaredEpsilonInsensitive",
]

INF = float("inf")


def _positive(name: str, value: Any) -> Any:
    """A hyperparameter, refused unless > 0."""
    if not is_traced(value) and not np.all(np.asarray(value) > 0):
        raise InputError(f"{name} is {value!r}", "a number > 0", f"Pass for instance {name}=1.0")
    return value


def _not_negative(name: str, value: Any) -> Any:
    """A hyperparameter, refused unless ≥ 0."""
    if not is_traced(value) and not np.all(np.asarray(value) >= 0):
        raise InputError(f"{name} is {value!r}", "a number ≥ 0", f"Pass for instance {name}=0.1")
    return value


class Squared(ResidualLoss):
    """φ(r) = ½r². L = m = 1; z estimates the mean.

    >>> Squared().value([3.0, 1.0], [1.0, 1.0])
    array([2., 0.])
    """

    convex = True
    smoothness = 1.0
    strong_convexity = 1.0
    link = "identity"

    def phi(self, residual: Any) -> Any:
        """½r²."""
        return 0.5 * residual**2

    def phi_slope(self, residual: Any) -> Any:
        """The residual r."""
        return residual

    def phi_curvature(self, residual: Any) -> Any:
        """1."""
        return 0.0 * residual + 1.0

    def phi_conjugate(self, slope: Any) -> Any:
        """½s²."""
        return 0.5 * slope**2

    def phi_domain(self) -> tuple[float, float]:
        """All s."""
        return -INF, INF

    def phi_prox(self, point: Any, step: Any) -> Any:
        """p / (1 + t)."""
        return point / (1.0 + step)


class Absolute(ResidualLoss):
    """φ(r) = |r|: z estimates the median; φ'(0) = 0.

    >>> Absolute().value([3.0, 1.0], [1.0, 1.0])
    array([2., 0.])
    """

    convex = True
    smoothness = INF
    strong_convexity = 0.0
    link = None

    def phi(self, residual: Any) -> Any:
        """|r|."""
        return namespace(residual).abs(residual)

    def phi_slope(self, residual: Any) -> Any:
        """The sign of r."""
        return namespace(residual).sign(residual)

    def phi_curvature(self, residual: Any) -> Any:
        """0."""
        return 0.0 * residual

    def phi_conjugate(self, slope: Any) -> Any:
        """0 on [−1, 1]."""
        return 0.0 * slope

    def phi_domain(self) -> tuple[float, float]:
        """[−1, 1]."""
        return -1.0, 1.0

    def phi_prox(self, point: Any, step: Any) -> Any:
        """Move towards 0 by t, not beyond."""
        return shrink(point, step)


class Huber(ResidualLoss):
    """φ(r) = ½r² for |r| ≤ δ, δ(|r| − ½δ) beyond: squared near zero, absolute far away.

    Args:
        delta: δ > 0.

    >>> Huber(1.0).value([0.5, 3.0], [0.0, 0.0])
    array([0.125, 2.5  ])
    """

    delta: Any
    convex = True
    smoothness = 1.0
    strong_convexity = 0.0
    link = None

    def __init__(self, delta: Any = 1.0) -> None:
        self.delta = _positive("delta", delta)

    def phi(self, residual: Any) -> Any:
        """r·c − ½c² with c the residual clipped to [−δ, δ]."""
        near = namespace(residual, self.delta).clip(residual, -self.delta, self.delta)
        return near * (residual - 0.5 * near)

    def phi_slope(self, residual: Any) -> Any:
        """r clipped to [−δ, δ]."""
        return namespace(residual, self.delta).clip(residual, -self.delta, self.delta)

    def phi_curvature(self, residual: Any) -> Any:
        """1 where |r| ≤ δ."""
        return (namespace(residual).abs(residual) <= self.delta).astype(residual.dtype)

    def phi_conjugate(self, slope: Any) -> Any:
        """½s² on [−δ, δ]."""
        return 0.5 * slope**2

    def phi_domain(self) -> tuple[Any, Any]:
        """[−δ, δ]."""
        return -self.delta, self.delta

    def phi_prox(self, point: Any, step: Any) -> Any:
        """p − t·clip(p / (1 + t), ±δ)."""
        xp = namespace(point, step, self.delta)
        return point - step * xp.clip(point / (1.0 + step), -self.delta, self.delta)


class EpsilonInsensitive(ResidualLoss):
    """φ(r) = max(0, |r| − ε): support vector regression; φ'(±ε) = 0.

    Args:
        epsilon: ε ≥ 0.

    >>> EpsilonInsensitive(0.5).value([0.25, 3.0], [0.0, 0.0])
    array([0. , 2.5])
    """

    epsilon: Any
    convex = True
    smoothness = INF
    strong_convexity = 0.0
    link = None

    def __init__(self, epsilon: Any = 0.1) -> None:
        self.epsilon = _not_negative("epsilon", epsilon)

    def phi(self, residual: Any) -> Any:
        """max(0, |r| − ε)."""
        xp = namespace(residual, self.epsilon)
        return xp.maximum(xp.abs(residual) - self.epsilon, 0.0)

    def phi_slope(self, residual: Any) -> Any:
        """The sign of r where |r| > ε."""
        xp = namespace(residual, self.epsilon)
        return xp.sign(residual) * (xp.abs(residual) > self.epsilon)

    def phi_curvature(self, residual: Any) -> Any:
        """0."""
        return 0.0 * residual

    def phi_conjugate(self, slope: Any) -> Any:
        """ε|s| on [−1, 1]."""
        return self.epsilon * namespace(slope).abs(slope)

    def phi_domain(self) -> tuple[float, float]:
        """[−1, 1]."""
        return -1.0, 1.0

    def phi_prox(self, point: Any, step: Any) -> Any:
        """Move towards the tube by t, not beyond its wall."""
        xp = namespace(point, step, self.epsilon)
        return point - xp.clip(shrink(point, self.epsilon), -step, step)


class SquaredEpsilonInsensitive(ResidualLoss):
    """φ(r) = max(0, |r| − ε)², without ½ as in scikit-learn; so L = 2.

    Args:
        epsilon: ε ≥ 0.

    >>> SquaredEpsilonInsensitive(0.5).value([0.25, 3.0], [0.0, 0.0])
    array([0.  , 6.25])
    """

    epsilon: Any
    convex = True
    smoothness = 2.0
    strong_convexity = 0.0
    link = None

    def __init__(self, epsilon: Any = 0.1) -> None:
        self.epsilon = _not_negative("epsilon", epsilon)

    def phi(self, residual: Any) -> Any:
        """The square of the distance to the tube."""
        return shrink(residual, self.epsilon) ** 2

    def phi_slope(self, residual: Any) -> Any:
        """Twice the way out of the tube."""
        return 2.0 * shrink(residual, self.epsilon)

    def phi_curvature(self, residual: Any) -> Any:
        """2 where |r| ≥ ε."""
        outside = namespace(residual).abs(residual) >= self.epsilon
        return 2.0 * outside.astype(residual.dtype)

    def phi_conjugate(self, slope: Any) -> Any:
        """ε|s| + s²/4."""
        return self.epsilon * namespace(slope).abs(slope) + 0.25 * slope**2

    def phi_domain(self) -> tuple[float, float]:
        """All s."""
        return -INF, INF

    def phi_prox(self, point: Any, step: Any) -> Any:
        """p minus 2t / (1 + 2t) of its way to the tube."""
        return point - shrink(point, self.epsilon) * (2.0 * step / (1.0 + 2.0 * step))


class Quantile(ResidualLoss):
    """φ(r) = max(−τr, (1 − τ)r): z estimates the τ-quantile of y; φ'(0) = 0.

    Args:
        level: τ between 0 and 1.

    >>> Quantile(0.75).value([0.0, 2.0], [1.0, 1.0])
    array([0.75, 0.25])
    """

    level: Any
    convex = True
    smoothness = INF
    strong_convexity = 0.0
    link = None

    def __init__(self, level: Any = 0.5) -> None:
        if not is_traced(level) and not 0 < level < 1:
            raise InputError(
                f"level is {level!r}", "a number between 0 and 1", "Pass level=0.5 for the median"
            )
        self.level = level

    def phi(self, residual: Any) -> Any:
        """max(−τr, (1 − τ)r)."""
        xp = namespace(residual, self.level)
        return xp.maximum(-self.level * residual, (1.0 - self.level) * residual)

    def phi_slope(self, residual: Any) -> Any:
        """−τ below, 1 − τ above, 0 at 0."""
        above, below = ((way > 0).astype(residual.dtype) for way in (residual, -residual))
        return (1.0 - self.level) * above - self.level * below

    def phi_curvature(self, residual: Any) -> Any:
        """0."""
        return 0.0 * residual

    def phi_conjugate(self, slope: Any) -> Any:
        """0 on [−τ, 1 − τ]."""
        return 0.0 * slope

    def phi_domain(self) -> tuple[Any, Any]:
        """[−τ, 1 − τ]."""
        return -self.level, 1.0 - self.level

    def phi_prox(self, point: Any, step: Any) -> Any:
        """Move towards 0 by (1 − τ)t from above or τt from below, not beyond."""
        xp = namespace(point, step, self.level)
        return point - xp.clip(point, -self.level * step, (1.0 - self.level) * step)


class GaussianNLL(ResidualLoss):
    """−log N(y | z, σ²) = ½ log 2πσ² + r²/2σ²: the squared loss with its noise. L = m = 1/σ².

    Args:
        variance: σ² > 0: a number, or one for each target.

    >>> GaussianNLL(4.0).value([3.0], [1.0]).round(4)
    array([2.1121])
    >>> GaussianNLL.fitted([3.0, 1.0], [1.0, 1.0]).variance
    np.float64(2.0)
    """

    variance: Any
    convex = True
    link = "identity"

    def __init__(self, variance: Any = 1.0) -> None:
        self.variance = _positive("variance", variance)

    @classmethod
    def fitted(cls, prediction: Any, target: Any) -> "GaussianNLL":
        """With the σ² that makes the sum of the loss least: the mean of r²."""
        z, y = agree(prediction, target)
        return cls(((z - y) ** 2).mean())

    @property
    def smoothness(self) -> Any:
        """1/σ² of the smallest σ²."""
        return 1.0 / namespace(self.variance).min(self.variance)

    @property
    def strong_convexity(self) -> Any:
        """1/σ² of the largest σ²."""
        return 1.0 / namespace(self.variance).max(self.variance)

    def _noise(self) -> Any:
        """½ log 2πσ²; of a Python number one of those, which keeps float32 what it is."""
        if isinstance(self.variance, int | float):
            return 0.5 * log(2 * pi * self.variance)
        return 0.5 * namespace(self.variance).log(2 * pi * self.variance)

    def phi(self, residual: Any) -> Any:
        """½ log 2πσ² + r²/2σ²."""
        return self._noise() + 0.5 * residual**2 / self.variance

    def phi_slope(self, residual: Any) -> Any:
        """r/σ²."""
        return residual / self.variance

    def phi_curvature(self, residual: Any) -> Any:
        """1/σ²."""
        return 0.0 * residual + 1.0 / self.variance

    def phi_conjugate(self, slope: Any) -> Any:
        """½σ²s² − ½ log 2πσ²."""
        return 0.5 * self.variance * slope**2 - self._noise()

    def phi_domain(self) -> tuple[float, float]:
        """All s."""
        return -INF, INF

    def phi_prox(self, point: Any, step: Any) -> Any:
        """pσ² / (σ² + t)."""
        return point * (self.variance / (self.variance + step))


def shrink(point: Any, step: Any) -> Any:
    """sign(p) max(0, |p| − t): towards zero by t, not beyond.

    >>> shrink(np.array([-3.0, 0.5]), 1.0)
    array([-2.,  0.])
    """
    xp = namespace(point, step)
    return point - xp.clip(point, -step, step)
