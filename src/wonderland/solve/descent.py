"""Least squares by gradient descent, with its theorem beside what happened."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.linalg as sl

from wonderland.core.arrays import in_float64
from wonderland.core.status import Status
from wonderland.solve.gradient import Descent, Quadratic
from wonderland.solve.moments import Moments
from wonderland.solve.problem import Array
from wonderland.solve.run import Stopping, minimise
from wonderland.solve.theory import iteration_bound

__all__ = ["DescentFit", "solve_descent"]


class DescentFit(NamedTuple):
    """Where gradient descent ended.

    Attributes:
        coef: w (d, t).
        status: Which stopping rule ended it.
        iterations: Steps taken.
        bound: Steps after which the tolerance is guaranteed (`solve.theory`).
        lipschitz: L, the largest eigenvalue of the Hessian.
        strong_convexity: m, the smallest one, zero when at rounding level.
        certificate: Largest |x_jᵀr| / (‖x_j‖‖y‖).
    """

    coef: Array
    status: Status
    iterations: int
    bound: float
    lipschitz: float
    strong_convexity: float
    certificate: float


@in_float64
def solve_descent(
    moments: Moments,
    alpha: Array,
    stopping: Stopping,
    *,
    momentum: bool = True,
    progress: Callable[[Any], None] | None = None,
) -> DescentFit:
    """Minimise from w = 0 with the curvature measured on the second moments."""
    values, vectors = sl.eigh(moments.gram, check_finite=False)
    floor = 8 * values[-1] * len(values) * np.finfo(float).eps  # the Gram matrix was rounded, too
    smallest = values[0] if values[0] > floor else 0.0
    size = np.sqrt(np.maximum(np.diag(moments.gram), 0.0))
    norms = size[:, None] * np.sqrt(moments.power)
    norms = np.where(norms > 0, norms, 1.0)
    # Handed over in one go: made one by one, each number would be a little program.
    numbers = {
        "gram": moments.gram,
        "cross": moments.cross,
        "alpha": alpha,
        "mass": moments.mass,
        "norms": norms,
        "lipschitz": (values[-1] + alpha.max()) / moments.mass,
        "strong_convexity": (smallest + alpha.min()) / moments.mass,
    }
    objective = Quadratic(**jax.device_put({k: np.asarray(v) for k, v in numbers.items()}))
    start = jax.device_put(np.zeros(moments.cross.shape))
    state, status = minimise(
        Descent(momentum=momentum), objective, start, stopping, progress=progress
    )
    distance = _distance(values, vectors, floor, moments.cross, alpha)
    L, m = float(objective.lipschitz), float(objective.strong_convexity)
    # ‖∇f‖ below this makes every cosine at most tol: the theorem's ε in its own units.
    enough = stopping.tol * float(norms.min()) / float(moments.mass)
    return DescentFit(
        coef=np.asarray(state.w),
        status=status,
        iterations=int(state.count),
        bound=iteration_bound(L, m, distance, enough, momentum=momentum),
        lipschitz=L,
        strong_convexity=m,
        certificate=float(state.certificate),
    )


def _distance(values: Array, vectors: Array, floor: float, cross: Array, alpha: Array) -> float:
    """D = ‖0 − w*‖ to the nearest minimiser, which descent from zero approaches."""
    curve = values[:, None] + alpha
    turned = vectors.T @ cross
    w = np.where(curve > floor, turned / np.where(curve > floor, curve, 1.0), 0.0)
    return float(np.sqrt((w**2).sum()))
