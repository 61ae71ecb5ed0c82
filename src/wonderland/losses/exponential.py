"""Smooth losses of the margin v = yz, one family: sigmoid, logistic and exponential.

    φ_t(v) = ((1 + e^{−v})^t − 1) / t        t = −1 sigmoid,  t → 0 logistic,  t = 1 exponential

`Tilted` is the family: it tilts the logistic loss ℓ to (e^{tℓ} − 1)/t, which for t > 0 attends to
the worst samples and for t < 0 forgives them. Reference: Li, Beirami, Sanjabi and Smith, Tilted
Empirical Risk Minimization (2021).
"""

from math import log, sqrt
from typing import Any

import equinox as eqx
import numpy as np

from wonderland.core.errors import InputError
from wonderland.losses.loss import MarginLoss, namespace
from wonderland.losses.roots import entropy_term, newton_within, wright_omega
from wonderland.losses.softmax import sigmoid, softplus

__all__ = ["Exponential", "Logistic", "Tilted"]

INF = float("inf")


class Logistic(MarginLoss):
    """φ(v) = log(1 + e^{−v}): z estimates the log odds of y = +1. L = ¼.

    φ*(s) = a log a + (1 − a) log(1 − a) with a = −s in [0, 1]: the dual form is the entropy of a.

    >>> Logistic().value([-1e4, 0.0, 1e4], [1, 1, 1]).round(4).tolist()
    [10000.0, 0.6931, 0.0]
    """

    convex = True
    smoothness = 0.25
    strong_convexity = 0.0
    classification_calibrated = True
    link = "logit"

    def phi(self, margin: Any) -> Any:
        """log(1 + e^{−v})."""
        return softplus(-margin)

    def phi_slope(self, margin: Any) -> Any:
        """−1 / (1 + e^v)."""
        return -sigmoid(-margin)

    def phi_curvature(self, margin: Any) -> Any:
        """σ(v) σ(−v)."""
        return sigmoid(margin) * sigmoid(-margin)

    def phi_conjugate(self, slope: Any) -> Any:
        """The negative entropy of a = −s."""
        return entropy_term(-slope) + entropy_term(1.0 + slope)

    def phi_domain(self) -> tuple[float, float]:
        """[−1, 0]."""
        return -1.0, 0.0

    def phi_prox(self, point: Any, step: Any) -> Any:
        """The root of v − p = t σ(−v)."""
        return _rising_prox(self, point, step, point + step * sigmoid(-point), point)


class Exponential(MarginLoss):
    """φ(v) = e^{−v}: the loss of AdaBoost. L is infinite.

    φ*(s) = a log a − a with a = −s ≥ 0. The least risk is at z = ½ log(p / (1 − p)).

    >>> Exponential().value([-1.0, 0.0, 1e4], [1, 1, 1]).round(4).tolist()
    [2.7183, 1.0, 0.0]
    """

    convex = True
    smoothness = INF
    strong_convexity = 0.0
    classification_calibrated = True
    link = "half logit"

    def phi(self, margin: Any) -> Any:
        """e^{−v}."""
        with np.errstate(over="ignore"):  # beyond the range of floats infinity is the value
            return namespace(margin).exp(-margin)

    def phi_slope(self, margin: Any) -> Any:
        """−e^{−v}."""
        return -self.phi(margin)

    def phi_curvature(self, margin: Any) -> Any:
        """e^{−v}."""
        return self.phi(margin)

    def phi_conjugate(self, slope: Any) -> Any:
        """The term a log a − a with a = −s."""
        return entropy_term(-slope) + slope

    def phi_domain(self) -> tuple[float, float]:
        """All s ≤ 0."""
        return -INF, 0.0

    def phi_prox(self, point: Any, step: Any) -> Any:
        """p + ω(log t − p), since (v − p) e^{v − p} = t e^{−p}."""
        xp = namespace(point, step)
        shifted = xp.log(xp.asarray(step, dtype=point.dtype)) - point
        # v = log t − log ω is exact where p is very negative and p + ω would cancel.
        omega = wright_omega(shifted)
        far = point + shifted - xp.log(xp.where(omega > 0, omega, 1.0))
        return xp.where(shifted > 0, far, point + omega)


class Tilted(MarginLoss):
    """φ_t(v) = ((1 + e^{−v})^t − 1) / t: sigmoid loss at t = −1, logistic at 0, exponential at 1.

    Convex for 0 ≤ t ≤ 1; for t < 0 bounded by 1/|t|, so that no single sample can dominate.

    Args:
        t: At most 1. It chooses among formulas, so each value is compiled for itself.

    >>> Tilted(-1.0).value([-50.0, 0.0], [1, 1]).round(4)
    array([1. , 0.5])
    >>> bool(Tilted(1.0).value(0.3, 1) == Exponential().value(0.3, 1))
    True
    """

    t: float = eqx.field(static=True)
    strong_convexity = 0.0
    classification_calibrated = True

    def __init__(self, t: float = -1.0) -> None:
        if not isinstance(t, int | float | np.number) or not -INF < t <= 1:
            raise InputError(
                f"t is {t!r}",
                "a finite number of at most 1",
                "Pass t=-1.0 for robustness, t=0.5 to stress the worst samples",
            )
        self.t = float(t)

    @property
    def convex(self) -> bool:
        """Whether t ≥ 0."""
        return self.t >= 0

    @property
    def link(self) -> str | None:
        """That of its two named members; none in between."""
        return {0.0: "logit", 1.0: "half logit"}.get(self.t)

    @property
    def smoothness(self) -> float:
        """sup |φ''|, at the roots of 1 + (3t − 1)u + t²u² with u = e^{−v}."""
        t = self.t
        if t > 0:
            return INF
        if t == 0:
            return 0.25
        return max(abs(u * (1 + u) ** (t - 2) * (1 + t * u)) for u in self._spots())

    def phi(self, margin: Any) -> Any:
        """(e^{tℓ} − 1) / t of the logistic ℓ."""
        if self.t == 0:
            return softplus(-margin)
        if self.t == 1:
            return Exponential().phi(margin)
        with np.errstate(over="ignore"):
            return namespace(margin).expm1(self.t * softplus(-margin)) / self.t

    def phi_slope(self, margin: Any) -> Any:
        """−(1 + e^{−v})^t σ(−v)."""
        with np.errstate(over="ignore"):
            return -namespace(margin).exp(self.t * softplus(-margin)) * sigmoid(-margin)

    def phi_curvature(self, margin: Any) -> Any:
        """(1 + e^{−v})^t σ(−v) (σ(v) + t σ(−v))."""
        left = sigmoid(-margin)
        return -self.phi_slope(margin) * (sigmoid(margin) + self.t * left)

    def phi_conjugate(self, slope: Any) -> Any:
        """−a v − φ(v) at the v with −φ'(v) = a = −s, found by Newton in u = log e^{−v}."""
        if self.t < 0:
            return 0.0 * slope  # bounded below by 0 and above: only s = 0 gives a finite value
        if self.t == 0:
            return Logistic().phi_conjugate(slope)
        xp = namespace(slope)
        a = xp.where(slope < 0, -slope, 1.0)
        goal = xp.log(a)

        def excess(u: Any) -> tuple[Any, Any]:
            return u + (self.t - 1) * softplus(u) - goal, 1 + (self.t - 1) * sigmoid(u)

        # u − (1 − t) softplus(u) lies between min(u, tu) − (1 − t) log 2 and u.
        above = goal + (1 - self.t) * log(2.0)
        u = newton_within(excess, goal, xp.maximum(above, above / self.t), goal)
        return xp.where(slope < 0, a * u - self.phi(-u), 0.0)

    def phi_domain(self) -> tuple[float, float]:
        """All s ≤ 0 where convex; [−1, 0] for the logistic loss; {0} where bounded."""
        return (-INF if self.t > 0 else -1.0 if self.t == 0 else 0.0), 0.0

    def phi_prox(self, point: Any, step: Any) -> Any:
        """The root of v − p = −step·φ'(v); of two where φ is not convex, the better one."""
        xp = namespace(point, step)
        if self.t >= 0:
            # φ'(v) falls below e^{−v} by the factor 2^{1 − t} at most, so the exponential's
            # own step reaches as far.
            return _rising_prox(self, point, step, Exponential().phi_prox(point, step), point)
        left, right = self._convex_pieces(point, step)
        steepest = -self.phi_slope(xp.asarray(log(-self.t), point.dtype))
        end = point + step * steepest
        low = _rising_prox(self, xp.minimum(point, left), step, left, point)
        high = _rising_prox(self, xp.maximum(point, right), step, xp.maximum(end, right), point)

        def cost(v: Any) -> Any:
            return self.phi(v) + (v - point) ** 2 / (2 * step)

        return xp.where(cost(low) < cost(high), low, high)

    def _convex_pieces(self, point: Any, step: Any) -> tuple[Any, Any]:
        """(v₁, v₂): φ + square bends upwards before v₁ and after v₂; equal where everywhere."""
        xp = namespace(point, step)
        middle = -log(self._spots()[1]) + 0.0 * point  # where φ'' is least
        crest = log(-self.t) + 0.0 * point  # where φ'' turns positive
        size = xp.log1p(xp.asarray(step, point.dtype) * abs(self.t)) / abs(self.t)
        far = middle - size - 10.0 / abs(self.t) - 10.0  # where step·|φ''| < 1

        def bends(v: Any) -> tuple[Any, Any]:
            return 1.0 + step * self.phi_curvature(v), 0.0 * v

        def sinks(v: Any) -> tuple[Any, Any]:
            return -1.0 - step * self.phi_curvature(v), 0.0 * v

        return newton_within(sinks, far, middle, far), newton_within(bends, middle, crest, crest)

    def _spots(self) -> tuple[float, float]:
        """Where φ'' is extreme for t ≤ 0, in u = e^{−v}."""
        t = self.t
        half = (1 - 3 * t) / 2
        far = half + sqrt(half**2 - t**2)
        return 1 / far, far / t**2


def _rising_prox(loss: MarginLoss, low: Any, step: Any, high: Any, point: Any) -> Any:
    """argmin of φ plus the square, where that is convex between `low` and `high`."""

    def slope(v: Any) -> tuple[Any, Any]:
        return v - point + step * loss.phi_slope(v), 1.0 + step * loss.phi_curvature(v)

    return newton_within(slope, low, high, high)
