"""Losses of the margin v = yz with straight or square pieces: what separating means, and hinges.

    0/1             1[v ≤ 0]            margin     −v
    perceptron      max(0, −v)          hinge      max(0, 1 − v)
    squared hinge   max(0, 1 − v)²

At a kink the derivative is the one towards smaller margins: a sample on the kink counts as wrong.
"""

from typing import Any

from wonderland.losses.loss import MarginLoss, namespace

__all__ = ["Hinge", "Margin", "Perceptron", "SquaredHinge", "ZeroOne"]

INF = float("inf")


class ZeroOne(MarginLoss):
    """φ(v) = 1 where v ≤ 0, 0 elsewhere: a prediction of zero is a mistake.

    Neither convex nor continuous; its conjugate is finite at 0 only. Its prox does not quite
    exist where it pays to cross zero: the smallest positive number stands for the limit.

    >>> ZeroOne().value([-2.0, 0.0, 3.0], [1, 1, 1])
    array([1., 1., 0.])
    """

    convex = False
    smoothness = INF
    strong_convexity = 0.0
    classification_calibrated = True
    link = None

    def phi(self, margin: Any) -> Any:
        """1[v ≤ 0]."""
        return (margin <= 0).astype(margin.dtype)

    def phi_slope(self, margin: Any) -> Any:
        """0, also at the jump."""
        return 0.0 * margin

    def phi_curvature(self, margin: Any) -> Any:
        """0."""
        return 0.0 * margin

    def phi_conjugate(self, slope: Any) -> Any:
        """φ*(0) = 0."""
        return 0.0 * slope

    def phi_domain(self) -> tuple[float, float]:
        """{0}."""
        return 0.0, 0.0

    def phi_prox(self, point: Any, step: Any) -> Any:
        """Cross zero where p² / 2t < 1, stay otherwise."""
        xp = namespace(point, step)
        crosses = (point <= 0) & (point**2 < 2 * step)
        return xp.where(crosses, xp.finfo(point.dtype).tiny, point)


class Margin(MarginLoss):
    """φ(v) = −v: the margin itself, unbounded below.

    >>> Margin().value([-2.0, 3.0], [1, 1])
    array([ 2., -3.])
    """

    convex = True
    smoothness = 0.0
    strong_convexity = 0.0
    classification_calibrated = True
    link = None

    def phi(self, margin: Any) -> Any:
        """−v."""
        return -margin

    def phi_slope(self, margin: Any) -> Any:
        """−1."""
        return 0.0 * margin - 1.0

    def phi_curvature(self, margin: Any) -> Any:
        """0."""
        return 0.0 * margin

    def phi_conjugate(self, slope: Any) -> Any:
        """φ*(−1) = 0."""
        return 0.0 * slope

    def phi_domain(self) -> tuple[float, float]:
        """{−1}."""
        return -1.0, -1.0

    def phi_prox(self, point: Any, step: Any) -> Any:
        """p + t."""
        return point + step


class Perceptron(MarginLoss):
    """φ(v) = max(0, −v): what the perceptron descends; φ'(0) = −1.

    Not calibrated: φ has a kink at 0, and the least risk of 0 is reached at z = 0 whichever class
    is likelier.

    >>> Perceptron().value([-2.0, 3.0], [1, 1])
    array([2., 0.])
    """

    convex = True
    smoothness = INF
    strong_convexity = 0.0
    classification_calibrated = False
    link = None

    def phi(self, margin: Any) -> Any:
        """max(0, −v)."""
        return namespace(margin).maximum(-margin, 0.0)

    def phi_slope(self, margin: Any) -> Any:
        """−1 where v ≤ 0."""
        return -(margin <= 0).astype(margin.dtype)

    def phi_curvature(self, margin: Any) -> Any:
        """0."""
        return 0.0 * margin

    def phi_conjugate(self, slope: Any) -> Any:
        """0 on [−1, 0]."""
        return 0.0 * slope

    def phi_domain(self) -> tuple[float, float]:
        """[−1, 0]."""
        return -1.0, 0.0

    def phi_prox(self, point: Any, step: Any) -> Any:
        """Move up by t, to 0 at most."""
        xp = namespace(point, step)
        return xp.maximum(point, xp.minimum(point + step, 0.0))


class Hinge(MarginLoss):
    """φ(v) = max(0, 1 − v): the support vector machine; φ'(1) = −1.

    φ*(s) = s on [−1, 0], so that its dual form is a on 0 ≤ a ≤ 1.

    >>> Hinge().value([-2.0, 0.5, 3.0], [1, 1, 1])
    array([3. , 0.5, 0. ])
    >>> Hinge().dual([0.25, 2.0], [1, -1])
    array([0.25, -inf])
    """

    convex = True
    smoothness = INF
    strong_convexity = 0.0
    classification_calibrated = True
    link = None

    def phi(self, margin: Any) -> Any:
        """max(0, 1 − v)."""
        return namespace(margin).maximum(1.0 - margin, 0.0)

    def phi_slope(self, margin: Any) -> Any:
        """−1 where v ≤ 1."""
        return -(margin <= 1).astype(margin.dtype)

    def phi_curvature(self, margin: Any) -> Any:
        """0."""
        return 0.0 * margin

    def phi_conjugate(self, slope: Any) -> Any:
        """The slope s on [−1, 0]."""
        return slope

    def phi_domain(self) -> tuple[float, float]:
        """[−1, 0]."""
        return -1.0, 0.0

    def phi_prox(self, point: Any, step: Any) -> Any:
        """Move up by t, to 1 at most."""
        xp = namespace(point, step)
        return xp.maximum(point, xp.minimum(point + step, 1.0))


class SquaredHinge(MarginLoss):
    """φ(v) = max(0, 1 − v)², as in scikit-learn and LIBLINEAR, without ½; so L = 2.

    φ*(s) = s + s²/4 on s ≤ 0: the dual form is a − a²/4 on a ≥ 0. At v = 1, φ'' = 2.

    >>> SquaredHinge().value([-2.0, 0.5, 3.0], [1, 1, 1])
    array([9.  , 0.25, 0.  ])
    """

    convex = True
    smoothness = 2.0
    strong_convexity = 0.0
    classification_calibrated = True
    link = None

    def phi(self, margin: Any) -> Any:
        """max(0, 1 − v)²."""
        return namespace(margin).maximum(1.0 - margin, 0.0) ** 2

    def phi_slope(self, margin: Any) -> Any:
        """−2 max(0, 1 − v)."""
        return -2.0 * namespace(margin).maximum(1.0 - margin, 0.0)

    def phi_curvature(self, margin: Any) -> Any:
        """2 where v ≤ 1."""
        return 2.0 * (margin <= 1).astype(margin.dtype)

    def phi_conjugate(self, slope: Any) -> Any:
        """s + s²/4 on s ≤ 0."""
        return slope + 0.25 * slope**2

    def phi_domain(self) -> tuple[float, float]:
        """All s ≤ 0."""
        return -INF, 0.0

    def phi_prox(self, point: Any, step: Any) -> Any:
        """(p + 2t) / (1 + 2t) below 1."""
        xp = namespace(point, step)
        return xp.where(point < 1, (point + 2 * step) / (1 + 2 * step), point)
