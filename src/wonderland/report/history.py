"""Gradient descent on least squares, step by step, beside its theorem.

    f(w) = (½ tr wᵀ(G + αI)w − tr Hᵀw) / Σω,    gap_k = f(w_k) − f(w*) ≤ bound_k

with the constants L, m and D = ‖w₀ − w*‖ measured on the data (`solve.theory` states the bounds).
Since f is quadratic, gap_k = ½ tr (w_k − w*)ᵀ(G + αI)(w_k − w*) / Σω has no cancellation.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import double, in_float64
from wonderland.core.errors import InputError
from wonderland.solve.gradient import Descent, Quadratic
from wonderland.solve.moments import Moments, host_moments
from wonderland.solve.problem import LeastSquares
from wonderland.solve.theory import convex_bound, momentum_bound, strongly_convex_bound

__all__ = ["History", "descent_history"]


class History(NamedTuple):
    """What happened at each step, and what was promised.

    Attributes:
        gap: f(w_k) − f* for k = 0 … steps (steps + 1,).
        bound: The theorem's bound on it (steps + 1,); at k = 0 it is L·D²/2 or more.
        lipschitz: L.
        strong_convexity: m; zero where columns are dependent and α = 0.
        distance: D.
    """

    gap: np.ndarray
    bound: np.ndarray
    lipschitz: float
    strong_convexity: float
    distance: float


@in_float64
def descent_history(
    X: Any, y: Any, *, alpha: float = 0.0, steps: int = 200, momentum: bool = False
) -> History:
    """Run `steps` steps from w = 0 and record the gap; X (n, d) and y (n,) or (n, t) are dense.

    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0], [4.0, 1.0]])
    >>> found = descent_history(X, np.array([1.0, 2.0, 3.0, 5.0]), steps=20)
    >>> bool(np.all(found.gap <= found.bound * (1 + 1e-9)))
    True
    """
    if steps < 1 or not alpha >= 0:
        raise InputError(
            f"steps = {steps!r}, alpha = {alpha!r}",
            "at least one step and a penalty ≥ 0",
            "Pass steps=200, alpha=0.0",
        )
    target = double(y)
    target = target[:, None] if target.ndim == 1 else target
    penalty = np.full(target.shape[1], float(alpha))
    moments = host_moments(LeastSquares(double(X), target, None, penalty, True))  # noqa: FBT003
    objective, optimum = _objective(moments, penalty)
    gap = np.asarray(_gaps(Descent(momentum=momentum), objective, jnp.asarray(optimum), steps))
    L, m = float(objective.lipschitz), float(objective.strong_convexity)
    distance = float(np.sqrt((optimum**2).sum()))
    bound = np.array([_bound(k, L, m, distance, momentum=momentum) for k in range(steps + 1)])
    return History(gap, bound, L, m, distance)


def _bound(k: int, L: float, m: float, distance: float, *, momentum: bool) -> float:
    """The theorem for the method and curvature at hand."""
    if momentum:
        return momentum_bound(k, L, m, distance)
    return strongly_convex_bound(k, L, m, distance) if m > 0 else convex_bound(k, L, distance)


def _objective(moments: Moments, alpha: np.ndarray) -> tuple[Quadratic, np.ndarray]:
    """F with its measured curvature, and its minimiser of smallest norm (d, t)."""
    values, vectors = np.linalg.eigh(moments.gram)
    floor = values[-1] * len(values) * np.finfo(float).eps
    curve = values[:, None] + alpha
    turned = vectors.T @ moments.cross
    optimum = vectors @ np.where(curve > floor, turned / np.where(curve > floor, curve, 1.0), 0.0)
    smallest = values[0] if values[0] > floor else 0.0
    mass = moments.mass
    objective = Quadratic(
        gram=jnp.asarray(moments.gram),
        cross=jnp.asarray(moments.cross),
        alpha=jnp.asarray(alpha),
        mass=jnp.asarray(mass),
        norms=jnp.ones(moments.cross.shape),
        lipschitz=jnp.asarray((values[-1] + alpha.max()) / mass),
        strong_convexity=jnp.asarray((smallest + alpha.min()) / mass),
    )
    return objective, optimum


def _gaps(solver: Descent, objective: Quadratic, optimum: jax.Array, steps: int) -> jax.Array:
    """f(w_k) − f* for k = 0 … steps, in one compiled scan."""

    def gap(w: jax.Array) -> jax.Array:
        apart = w - optimum
        curved = objective.gram @ apart + apart * objective.alpha[None, :]
        return 0.5 * jnp.sum(apart * curved) / objective.mass

    def step(state: Any, _: None) -> tuple[Any, jax.Array]:
        state = solver.step(objective, state)
        return state, gap(state.w)

    start = jnp.zeros_like(optimum)
    _, gaps = jax.lax.scan(step, solver.init(objective, start), length=steps)
    return jnp.concatenate([gap(start)[None], gaps])
