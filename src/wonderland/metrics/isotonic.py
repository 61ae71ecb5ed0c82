"""The best non-decreasing function of a score: isotonic regression.

    minimise over non-decreasing g    Σ_i ω_i (t_i − g(x_i))²

Its values are means of pooled neighbours, so that it also minimises every other proper loss of a
probability. Equal x are one point. Shapes: n rows, m knots.

Reference: Ayer et al. (1955); Barlow and Brunk (1972).
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

__all__ = ["Steps", "isotonic"]


class Steps(NamedTuple):
    """A non-decreasing function through knots, linear between them and constant outside.

    Attributes:
        x: Knots, rising (m,).
        y: Values, not falling (m,).
    """

    x: np.ndarray
    y: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """g(x), of the shape of x."""
        return np.interp(x, self.x, self.y)


def isotonic(x: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> Steps:
    """g through all distinct x of positive weight.

    >>> isotonic(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.0])).y.tolist()
    [0.0, 0.5, 0.5]
    """
    omega = np.ones(len(x)) if weight is None else weight
    held = omega > 0
    knots, place = np.unique(x[held], return_inverse=True)
    mass = np.bincount(place, omega[held])
    mean = np.bincount(place, omega[held] * target[held]) / mass
    return Steps(knots, isotonic_regression(mean, weights=mass).x)
