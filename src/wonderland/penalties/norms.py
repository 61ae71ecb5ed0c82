"""Penalties that are norms: L2, L1, elastic net, groups.

L2            ½ s ‖w‖²                        L1      s ‖w‖₁
elastic net   s (ρ‖w‖₁ + ½ (1 − ρ) ‖w‖²)      group   s Σ_g √|g| ‖w_g‖
"""

from typing import Any

import equinox as eqx
import numpy as np

from wonderland.core.arrays import is_traced
from wonderland.core.errors import InputError
from wonderland.penalties.penalty import Penalty, namespace, require_strength, shrink

__all__ = ["L1", "L2", "ElasticNet", "Group", "NoPenalty"]

INF = float("inf")


class NoPenalty(Penalty):
    """ρ(w) = 0.

    >>> float(NoPenalty().distance(np.zeros(2), np.array([0.5, -2.0])))
    2.0
    """

    convex = True
    smoothness = 0.0
    strong_convexity = 0.0

    def value(self, w: Any) -> Any:
        """0."""
        return namespace(w).sum(0.0 * w)

    def prox(self, w: Any, step: Any) -> Any:
        """The point w itself."""
        return w

    def conjugate(self, u: Any) -> Any:
        """0 at u = 0, infinite elsewhere."""
        xp = namespace(u)
        return xp.where((u == 0).all(), 0.0, xp.inf)[()]

    def residual(self, w: Any, gradient: Any) -> Any:
        """The gradient."""
        return gradient


class L2(Penalty):
    """ρ(w) = ½ s ‖w‖². L = m = s.

    Args:
        strength: s ≥ 0, a number or one for each entry of w.

    >>> float(L2(2.0).value(np.array([1.0, 2.0])))
    5.0
    """

    strength: Any = eqx.field(converter=require_strength)
    convex = True

    def __init__(self, strength: Any = 1.0) -> None:
        self.strength = strength

    @property
    def smoothness(self) -> Any:
        """The largest s."""
        return namespace(self.strength).max(self.strength)

    @property
    def strong_convexity(self) -> Any:
        """The smallest s."""
        return namespace(self.strength).min(self.strength)

    def value(self, w: Any) -> Any:
        """½ Σ s w²."""
        return 0.5 * namespace(w, self.strength).sum(self.strength * w**2)

    def prox(self, w: Any, step: Any) -> Any:
        """w / (1 + ts)."""
        return w / (1.0 + step * self.strength)

    def conjugate(self, u: Any) -> Any:
        """½ Σ u²/s; infinite where s = 0 and u ≠ 0."""
        xp = namespace(u, self.strength)
        s = self.strength + 0.0 * u
        return xp.where((s == 0) & (u != 0), xp.inf, 0.5 * u**2 / xp.where(s > 0, s, 1.0)).sum()

    def residual(self, w: Any, gradient: Any) -> Any:
        """The gradient of the sum: g + sw."""
        return gradient + self.strength * w


class L1(Penalty):
    """ρ(w) = s ‖w‖₁: entries whose gradient stays below s are exactly zero.

    Args:
        strength: s ≥ 0, a number or one for each entry of w.

    >>> L1(1.0).prox(np.array([3.0, -0.5]), 1.0)
    array([2., 0.])
    """

    strength: Any = eqx.field(converter=require_strength)
    convex = True
    smoothness = INF
    strong_convexity = 0.0

    def __init__(self, strength: Any = 1.0) -> None:
        self.strength = strength

    def value(self, w: Any) -> Any:
        """Σ s|w|."""
        xp = namespace(w, self.strength)
        return xp.sum(self.strength * xp.abs(w))

    def prox(self, w: Any, step: Any) -> Any:
        """Each entry towards zero by ts, not beyond."""
        return shrink(w, step * self.strength)

    def conjugate(self, u: Any) -> Any:
        """0 where every |u| ≤ s, infinite elsewhere."""
        xp = namespace(u, self.strength)
        return xp.where((xp.abs(u) <= self.strength).all(), 0.0, xp.inf)[()]

    def residual(self, w: Any, gradient: Any) -> Any:
        """g + s·sign(w) where w ≠ 0; what |g| has beyond s where w = 0."""
        return _beyond(w, gradient, self.strength)


class ElasticNet(Penalty):
    """ρ(w) = s (r‖w‖₁ + ½ (1 − r) ‖w‖²) with r the `ratio`, as in scikit-learn.

    Args:
        strength: s ≥ 0.
        ratio: r from 0 (L2) to 1 (L1).

    >>> float(ElasticNet(2.0, 0.5).value(np.array([2.0])))
    4.0
    """

    strength: Any = eqx.field(converter=require_strength)
    ratio: Any
    convex = True

    def __init__(self, strength: Any = 1.0, ratio: Any = 0.5) -> None:
        if not is_traced(ratio) and not 0 <= ratio <= 1:
            raise InputError(
                f"ratio is {ratio!r}", "a number from 0 to 1", "Pass ratio=1.0 for L1, 0.0 for L2"
            )
        self.strength, self.ratio = strength, ratio

    @property
    def smoothness(self) -> Any:
        """Infinite, or s where there is no L1 part."""
        xp = namespace(self.strength, self.ratio)
        return xp.where(self.strength * self.ratio > 0, xp.inf, self.strength)[()]

    @property
    def strong_convexity(self) -> Any:
        """s (1 − r)."""
        return self.strength * (1.0 - self.ratio)

    def value(self, w: Any) -> Any:
        """s Σ r|w| + ½ (1 − r) w²."""
        xp = namespace(w, self.strength, self.ratio)
        return self.strength * xp.sum(self.ratio * xp.abs(w) + 0.5 * (1.0 - self.ratio) * w**2)

    def prox(self, w: Any, step: Any) -> Any:
        """First towards zero by tsr, then divided by 1 + ts(1 − r)."""
        pulled = shrink(w, step * self.strength * self.ratio)
        return pulled / (1.0 + step * self.strength * (1.0 - self.ratio))

    def conjugate(self, u: Any) -> Any:
        """Σ max(0, |u| − sr)² / 2s(1 − r)."""
        xp, curve = namespace(u, self.strength, self.ratio), self.strong_convexity
        rest = shrink(u, self.strength * self.ratio)
        square = 0.5 * rest**2 / xp.where(curve > 0, curve, 1.0)
        return xp.where((curve == 0) & (rest != 0), xp.inf, square).sum()

    def residual(self, w: Any, gradient: Any) -> Any:
        """That of the L1 part at the gradient plus s(1 − r)w."""
        curved = gradient + self.strong_convexity * w
        return _beyond(w, curved, self.strength * self.ratio)


class Group(Penalty):
    """ρ(w) = s Σ_g √|g| ‖w_g‖: the rows of a group are zero together or not at all.

    With several outputs w (d, t) a group holds the whole rows of its features.

    Args:
        strength: s ≥ 0.
        groups: The number of the group of each feature, 0 … k − 1 (d,).

    >>> Group(1.0, [0, 0, 1]).prox(np.array([3.0, 4.0, 0.5]), 1.0).round(4)
    array([2.1515, 2.8686, 0.    ])
    """

    strength: Any = eqx.field(converter=require_strength)
    groups: tuple[int, ...] = eqx.field(static=True)
    convex = True
    smoothness = INF
    strong_convexity = 0.0

    def __init__(self, strength: Any = 1.0, groups: Any = ()) -> None:
        labels = np.asarray(groups)
        found = np.unique(labels)
        if labels.ndim != 1 or not len(labels) or not np.array_equal(found, np.arange(len(found))):
            raise InputError(
                f"groups is {groups!r}",
                "the number of the group of each feature, 0 … k − 1, none of them empty",
                "Number them with np.unique(names, return_inverse=True)[1]",
            )
        self.strength = strength
        self.groups = tuple(int(label) for label in labels)

    def value(self, w: Any) -> Any:
        """s Σ √|g| ‖w_g‖."""
        xp = namespace(w, self.strength)
        return xp.sum(self._threshold(1.0) * self._norms(w, xp))

    def prox(self, w: Any, step: Any) -> Any:
        """Each group towards zero by ts√|g|, not beyond."""
        xp = namespace(w, step, self.strength)
        size, reach = self._norms(w, xp), self._threshold(step)
        kept = xp.maximum(1.0 - reach / xp.where(size > 0, size, 1.0), 0.0)
        return self._spread(kept, w) * w

    def conjugate(self, u: Any) -> Any:
        """0 where every ‖u_g‖ ≤ s√|g|, infinite elsewhere."""
        xp = namespace(u, self.strength)
        return xp.where((self._norms(u, xp) <= self._threshold(1.0)).all(), 0.0, xp.inf)[()]

    def residual(self, w: Any, gradient: Any) -> Any:
        """g + s√|g| w_g/‖w_g‖ where w_g ≠ 0; what ‖g_g‖ has beyond s√|g| where w_g = 0."""
        xp = namespace(w, gradient, self.strength)
        size, pull, reach = self._norms(w, xp), self._norms(gradient, xp), self._threshold(1.0)
        alive = self._spread(1.0 * (size > 0), w)
        smooth = gradient + self._spread(reach / xp.where(size > 0, size, 1.0), w) * w
        outside = xp.maximum(1.0 - reach / xp.where(pull > 0, pull, 1.0), 0.0)
        return alive * smooth + (1.0 - alive) * self._spread(outside, w) * gradient

    def _threshold(self, step: Any) -> Any:
        """step·s·√|g| of each group (k,)."""
        return step * self.strength * np.sqrt(np.bincount(self.groups))

    def _norms(self, w: Any, xp: Any) -> Any:
        """‖w_g‖ (k,); its derivative at a group of zeros is zero."""
        if len(w) != len(self.groups):
            raise InputError(
                f"w has {len(w)} rows, groups {len(self.groups)}",
                "the group of each feature",
                "Pass groups of length d",
            )
        rows = (w**2).reshape((len(w), -1)).sum(axis=1)
        members = np.equal.outer(np.arange(max(self.groups) + 1), self.groups)
        squares = (rows[None, :] * members).sum(axis=1)
        return xp.where(squares > 0, xp.sqrt(xp.where(squares > 0, squares, 1.0)), 0.0)

    def _spread(self, values: Any, w: Any) -> Any:
        """The value of each feature's group, shaped to multiply w."""
        rows = values[np.asarray(self.groups)]
        return rows.reshape((len(w),) + (1,) * (w.ndim - 1))


def _beyond(w: Any, gradient: Any, reach: Any) -> Any:
    """The element of g + reach·∂|w| nearest to zero."""
    xp = namespace(w, gradient, reach)
    return xp.where(w == 0, shrink(gradient, reach), gradient + reach * xp.sign(w))
