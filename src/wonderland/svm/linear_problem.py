"""Labels and targets as problems of intervals (`solve/interior_problem.py`)."""

from typing import Any

import numpy as np

from wonderland.solve.interior_problem import Intervals

__all__ = ["of_signs", "of_targets", "strengths"]


def strengths(C: float, weight: np.ndarray | None, n: int) -> np.ndarray:
    """c = C·ω (n,); zero where ω is, also under C = ∞."""
    if weight is None:
        return np.full(n, float(C))
    if np.isfinite(C):
        return float(C) * weight
    return np.where(weight > 0, np.inf, 0.0)


def of_signs(
    X: Any, signs: np.ndarray, strength: np.ndarray, *, intercept: bool, squared: bool
) -> Intervals:
    """max(0, 1 − y z) is the distance of z to [1, ∞) for y = 1, to (−∞, −1] for y = −1."""
    positive = signs > 0
    low = np.where(positive, 1.0, -np.inf)
    high = np.where(positive, np.inf, -1.0)
    return Intervals(X, low, high, strength, intercept, squared)


def of_targets(
    X: Any, y: np.ndarray, epsilon: float, strength: np.ndarray, *, intercept: bool, squared: bool
) -> Intervals:
    """max(0, |z − y| − ε) is the distance of z to [y − ε, y + ε]."""
    return Intervals(X, y - epsilon, y + epsilon, strength, intercept, squared)
