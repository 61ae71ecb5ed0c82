"""Smooth losses of a row's scores, evaluated for all rows at once with everything Newton asks for.

A row i with scores z_i ∈ R^k (k = 1 for two classes) and target y_i has the loss ℓ(z_i, y_i):

    logistic        log(1 + e^{−yz})             y ∈ {−1, +1}
    squared hinge   max(0, 1 − yz)²              y ∈ {−1, +1}
    softmax         log Σ_c e^{z_c} − z_y        y ∈ {0, …, k − 1}

One pass gives value, slope u = ∇ℓ and what the curvature is made of: the exponentials are taken
once. A slope is also a point of the dual problem, where the conjugate ℓ*(u) = sup_z uᵀz − ℓ(z)
takes the place of the loss; an intercept demands Σ_i ω_i u_i = 0 there, which `balanced` grants
without leaving the domain of ℓ*. Shapes: Z (n, k), u (n, k), ω (n,).
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr

__all__ = ["Logistic", "RowLoss", "Rows", "Softmax", "SquaredHinge", "row_loss"]


ODDS = 1e-12  # least probability by which odds are taken


class Rows(NamedTuple):
    """A loss at given scores.

    Attributes:
        value: ℓ(z_i, y_i) (n,).
        slope: ∇ℓ (n, k).
        shape: What `RowLoss.curvature` needs again.
    """

    value: np.ndarray
    slope: np.ndarray
    shape: np.ndarray


class RowLoss(ABC):
    """A smooth convex loss of a row of scores; holds the targets."""

    outputs: int

    @abstractmethod
    def at(self, Z: np.ndarray) -> Rows:
        """Value and derivatives at the scores Z (n, k)."""

    @abstractmethod
    def curvature(self, rows: Rows, c: int, e: int) -> np.ndarray:
        """∂²ℓ/∂z_c∂z_e (n,)."""

    @abstractmethod
    def conjugate(self, slope: np.ndarray) -> np.ndarray:
        """ℓ*(u) (n,) for u in its domain."""

    @abstractmethod
    def stretch(self, rows: Rows) -> np.ndarray:
        """uᵀ∇²ℓ*(u)u (n,) at u = ∇ℓ: the curvature of ℓ* along its own ray."""

    @abstractmethod
    def balanced(self, slope: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """A point near u, in the domain of ℓ*, with Σ ω u = 0."""


class _Margin(RowLoss):
    """A loss of y·z; its dual points are u = −y·a with a ≥ 0."""

    outputs = 1

    def __init__(self, target: np.ndarray) -> None:
        self.sign = np.asarray(target, dtype=np.float64)

    def balanced(self, slope: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Shrink the heavier class: towards zero the domain is never left."""
        positive = self.sign > 0
        pull = weight * np.abs(slope[:, 0])
        up, down = pull[positive].sum(), pull[~positive].sum()
        share = min(up, down)
        factor = np.where(positive, share / (up or 1.0), share / (down or 1.0))
        return slope * factor[:, None]


class Logistic(_Margin):
    """log(1 + e^{−yz})."""

    def at(self, Z: np.ndarray) -> Rows:
        """Stable for margins of any size: only e^{−|yz|} is taken."""
        margin = self.sign * Z[:, 0]
        small = np.exp(-np.abs(margin))
        value = np.log1p(small) - np.minimum(margin, 0.0)
        one = 1.0 / (1.0 + small)
        wrong = np.where(margin >= 0, small * one, one)
        return Rows(value, (-self.sign * wrong)[:, None], small * one * one)

    def curvature(self, rows: Rows, c: int, e: int) -> np.ndarray:
        """σ(z)σ(−z)."""
        return rows.shape

    def conjugate(self, slope: np.ndarray) -> np.ndarray:
        """a log a + (1 − a) log(1 − a)."""
        a = np.abs(slope[:, 0])
        return -entr(a) - entr(1.0 - a)

    def stretch(self, rows: Rows) -> np.ndarray:
        """The odds a/(1 − a) against the own class."""
        a = np.abs(rows.slope[:, 0])
        return a / np.maximum(1.0 - a, ODDS)


class SquaredHinge(_Margin):
    """max(0, 1 − yz)²."""

    def at(self, Z: np.ndarray) -> Rows:
        """Rows beyond the margin have no slope and no curvature."""
        lack = np.maximum(1.0 - self.sign * Z[:, 0], 0.0)
        return Rows(lack * lack, (-2.0 * self.sign * lack)[:, None], np.where(lack > 0, 2.0, 0.0))

    def curvature(self, rows: Rows, c: int, e: int) -> np.ndarray:
        """2 within the margin: the generalised second derivative."""
        return rows.shape

    def conjugate(self, slope: np.ndarray) -> np.ndarray:
        """a²/4 − a."""
        a = np.abs(slope[:, 0])
        return a * (0.25 * a - 1.0)

    def stretch(self, rows: Rows) -> np.ndarray:
        """a²/2."""
        return 0.5 * rows.slope[:, 0] ** 2


class Softmax(RowLoss):
    """log Σ_c e^{z_c} − z_y."""

    def __init__(self, target: np.ndarray, outputs: int) -> None:
        self.outputs = outputs
        self.hot = np.asarray(target)[:, None] == np.arange(outputs)

    def at(self, Z: np.ndarray) -> Rows:
        """Probabilities p = softmax(z); the slope is p − onehot(y)."""
        shifted = Z - Z.max(axis=1, keepdims=True)
        powers = np.exp(shifted)
        total = powers.sum(axis=1)
        value = np.log(total) - shifted[self.hot]
        share = powers / total[:, None]
        return Rows(value, share - self.hot, share)

    def curvature(self, rows: Rows, c: int, e: int) -> np.ndarray:
        """p_c(δ_ce − p_e)."""
        share = rows.shape
        return share[:, c] * (float(c == e) - share[:, e])

    def conjugate(self, slope: np.ndarray) -> np.ndarray:
        """Σ_c q_c log q_c for q = u + onehot(y)."""
        return -entr(np.maximum(slope + self.hot, 0.0)).sum(axis=1)

    def stretch(self, rows: Rows) -> np.ndarray:
        """Σ_c u_c²/p_c, the odds against the own class."""
        own = rows.shape[self.hot]
        return (1.0 - own) / np.maximum(own, ODDS)

    def balanced(self, slope: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Move probability, row by row, from classes that have too much to those that lack it."""
        share = np.maximum(slope + self.hot, 0.0)
        excess = weight @ slope
        give = np.maximum(excess, 0.0) / np.maximum(weight @ share, np.finfo(float).tiny)
        moved = share * np.minimum(give, 1.0)
        lack = np.maximum(-excess, 0.0)
        taken = np.outer(moved.sum(axis=1), lack / (lack.sum() or 1.0))
        return slope - moved + taken


def row_loss(loss: Any, target: np.ndarray, outputs: int) -> RowLoss:
    """The loss of a name ("logistic", "squared_hinge", "softmax"), or a `RowLoss` itself."""
    if isinstance(loss, RowLoss):
        return loss
    if loss == "softmax":
        return Softmax(target, outputs)
    return {"logistic": Logistic, "squared_hinge": SquaredHinge}[loss](target)
