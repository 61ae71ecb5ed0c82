"""The hard tube: LinearSVR with C = ∞.

    minimise over w, b    ½‖w‖²    subject to    |wᵀx_i + b − y_i| ≤ ε

The narrowest tube around all targets, min max_i |wᵀx_i + b − y_i| = τ, is a linear program. For
τ > ε there is no answer, and its multipliers prove it: β with Σ|β| = 1, Xᵀβ = 0, Σβ = 0 gives
Σβy = τ, which no w could if all residuals were at most ε. For τ < ε the multipliers of the optimum
obey Σ|β| ≤ ‖w_τ‖²/(4(ε − τ)), w_τ being the plane of the narrowest tube: with that for C the soft
problem has the same optimum. What it finds is moved towards w_τ until every target is inside.
Shapes: X (n, d), y (n,).
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.errors import InputError
from wonderland.core.status import Status
from wonderland.solve.interior_problem import Intervals, Point, judge
from wonderland.solve.interior_routes import Answer, solve_intervals

__all__ = ["Narrowest", "narrowest", "solve_tube"]

ROOM = 1e-9  # of the size of y: a tube narrower than ε by less leaves no room for a bound
FINER = 0.1
SLACK = 1e-12  # of ε − τ: residuals rounded past ε would cost infinitely much


class Narrowest(NamedTuple):
    """The narrowest tube: w (d,), b, its half-width τ, and the multipliers β (n,) that prove τ."""

    w: np.ndarray
    b: float
    width: float
    weights: np.ndarray


def narrowest(X: Any, y: np.ndarray, *, intercept: bool) -> Narrowest:
    """min over w, b of max |wᵀx + b − y|, by linear programming.

    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 4.0])
    >>> found = narrowest(X, y, intercept=True)
    >>> round(found.width, 6), found.w.round(6).tolist()
    (0.5, [2.0])
    """
    from scipy.optimize import linprog  # only where it is asked

    n, d = X.shape
    free = np.ones((n, 1)) if intercept else np.zeros((n, 1))
    stack, kind = (sp.hstack, sp.vstack) if sp.issparse(X) else (np.hstack, np.vstack)
    table = stack([X, free])
    rows = kind([stack([table, -np.ones((n, 1))]), stack([-table, -np.ones((n, 1))])])
    cost = np.append(np.zeros(d + 1), 1.0)
    found = linprog(cost, A_ub=rows, b_ub=np.concatenate([y, -y]), bounds=(None, None))
    if found.x is None:
        raise ArithmeticError(f"the linear program ended without an answer: {found.message}")
    w, b = found.x[:d], float(found.x[d]) if intercept else 0.0
    width = float(np.abs(np.asarray(X @ w) + b - y).max())
    up, down = -found.ineqlin.marginals[:n], -found.ineqlin.marginals[n:]
    return Narrowest(w, b, width, down - up)


def solve_tube(problem: Intervals, tol: float, limit: int) -> Answer:
    """The flattest plane with every target in its interval, or an InputError with the proof.

    Args:
        problem: Rows of infinite strength; low and high are y − ε and y + ε.
        tol: Relative duality gap wanted.
        limit: Most Newton steps.
    """
    y, epsilon = 0.5 * (problem.low + problem.high), 0.5 * float((problem.high - problem.low).max())
    tight = narrowest(problem.X, y, intercept=problem.intercept)
    room = epsilon - tight.width
    if room <= ROOM * max(epsilon, float(np.abs(y).max(initial=0.0))):
        raise _too_narrow(tight, epsilon)
    wall = max(float(tight.w @ tight.w) / (4.0 * room), np.finfo(float).tiny)
    soft = problem._replace(strength=np.full(len(y), wall), squared=False)
    found = solve_intervals(soft, FINER * tol, limit)
    hard = problem._replace(squared=False)
    point = _inside(hard, found.point, Point(tight.w, tight.b, found.point.beta), y)
    certificate = judge(hard, point, problem.X.T @ point.beta)
    reason = f"C is infinite; no multiplier exceeds {wall:.3g}, as a tube of half-width "
    reason += f"{tight.width:.3g} exists, so C = {wall:.3g} has the same optimum: {found.reason}"
    status = Status.CONVERGED if certificate.gap <= tol else Status.ITERATIONS
    return found._replace(point=point, certificate=certificate, reason=reason, status=status)


def _inside(problem: Intervals, point: Point, tight: Point, y: np.ndarray) -> Point:
    """The point, moved towards the narrowest tube until every residual is at most ε."""
    half = 0.5 * (problem.high - problem.low)
    off, near = (np.asarray(problem.X @ each.w) + each.b - y for each in (point, tight))
    room = half - np.abs(near)
    past = np.abs(off) - half * (1.0 - SLACK)
    share = float(np.max(np.where(past > 0, past / (past + room), 0.0), initial=0.0))
    while share < 1.0:
        moved = Point(
            point.w + share * (tight.w - point.w),
            point.b + share * (tight.b - point.b),
            point.beta,
        )
        z = np.asarray(problem.X @ moved.w) + moved.b
        if np.all((z >= problem.low) & (z <= problem.high)):
            return moved
        share = min(1.0, 2.0 * share + SLACK)
    return tight


def _too_narrow(tight: Narrowest, epsilon: float) -> InputError:
    rows = np.flatnonzero(tight.weights)
    error = InputError(
        f"C is inf, but no plane keeps every target within epsilon={epsilon:g}: the narrowest tube "
        f"has half-width {tight.width:.6g}, proved by {len(rows)} samples, among them rows "
        f"{rows[:4].tolist()}",
        "a tube wide enough for every target, for C = inf",
        f"Pass epsilon > {tight.width:.6g}, or a finite C; the weights that prove it are in this "
        "error's `certificate`",
    )
    error.certificate = tight  # type: ignore[attr-defined]
    return error
