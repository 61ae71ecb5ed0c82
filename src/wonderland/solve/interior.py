"""A primal–dual interior point method for the quadratic programs of support vector machines.

With one multiplier α ∈ [0, c] for each end that can pull (s = 1 for a lower end r = l, s = −1 for
an upper end r = −u, so that β = Σ sα), the optimality conditions are

    w = Xᵀβ,   Σβ = 0,   s·z − r + ξ − a = 0,   α·a = 0,   (c − α)·ξ = 0,   a, ξ ≥ 0 .

The products are kept at μ > 0 and μ is led to zero (Mehrotra's predictor and corrector, one
factorisation for both). Eliminating all that belongs to a row leaves one system in w and b,

    [ I + XᵀΘX   XᵀΘ1 ] [dw]                  θ = 1/(a/α + ξ/(c − α)),
    [ 1ᵀΘX       1ᵀΘ1 ] [db]  = right side ,

whose matrix is formed by row blocks on all cores. A few tens of steps whatever the data: where the
augmented Lagrangian of `interior_lagrangian.py` is given up, this method brings it near enough.
Shapes: X (n, d), α, a, ξ (e, n) for e ends.

References: Mehrotra (1992); Ferris & Munson (2002), Interior-point methods for massive support
vector machines; Wright, Primal-Dual Interior-Point Methods (1997).
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import map_rows
from wonderland.solve.interior_linear import solve_bordered
from wonderland.solve.interior_problem import Intervals, Point

__all__ = ["Interior", "solve_interior"]

STEPS = 60
BACK = 0.995  # share of the way to the boundary that a step may take
BLOCK = 4096  # rows multiplied at once


class Interior(NamedTuple):
    """A point inside the box, its relative gap α·a + (c − α)·ξ over P, and the steps taken."""

    point: Point
    gap: float
    steps: int


class Ends(NamedTuple):
    """The ends that pull: s (e, 1) and r (e, n); `on` (e, n) marks those that exist."""

    sign: np.ndarray
    reach: np.ndarray
    on: np.ndarray
    strength: np.ndarray


class Iterate(NamedTuple):
    """w, b, the multipliers α, the slacks a and the shortfalls ξ (e, n)."""

    w: np.ndarray
    b: float
    alpha: np.ndarray
    slack: np.ndarray
    short: np.ndarray


def solve_interior(problem: Intervals, tol: float, steps: int = STEPS) -> Interior:
    """Follow the central path until the relative gap is at most `tol`.

    Args:
        problem: Not squared, with finite strengths.
        tol: Relative gap, as rounding allows it (about 1e-8).
        steps: Most steps.
    """
    ends = _ends(problem)
    now = _begin(problem, ends)
    gap, taken = np.inf, 0
    while taken < steps:
        z = problem.X @ now.w + now.b
        gap = _gap(problem, ends, now, z)
        if gap <= tol:
            break
        after = _step(problem, ends, now, z)
        if after is None:
            break
        now, taken = after, taken + 1
    beta = _pull(ends, now.alpha)
    return Interior(Point(now.w, now.b, beta), gap, taken)


def _ends(problem: Intervals) -> Ends:
    both = np.stack([problem.low, -problem.high])
    on = np.isfinite(both)
    one_each = not np.any(on[0] & on[1])
    if one_each:  # labels: one end for each row, whichever it is
        sign = np.where(on[0], 1.0, -1.0)[None, :]
        reach = np.where(on[0], both[0], both[1])[None, :]
        return Ends(sign, reach, np.ones_like(reach, dtype=bool), problem.strength[None, :])
    sign = np.array([[1.0], [-1.0]])
    return Ends(sign, np.where(on, both, 0.0), on, problem.strength[None, :])


def _pull(ends: Ends, alpha: np.ndarray) -> np.ndarray:
    """β = Σ sα (n,)."""
    return np.where(ends.on, ends.sign * alpha, 0.0).sum(axis=0)


def _begin(problem: Intervals, ends: Ends) -> Iterate:
    """The middle of the box, with slacks of the size of the data."""
    d = problem.X.shape[1]
    alpha = np.broadcast_to(0.5 * ends.strength, ends.reach.shape).copy()
    size = np.maximum(np.abs(ends.reach), 1.0)
    return Iterate(np.zeros(d), 0.0, alpha, size + np.maximum(-ends.reach, 0.0), size)


def _gap(problem: Intervals, ends: Ends, now: Iterate, z: np.ndarray) -> float:
    beta = _pull(ends, now.alpha)
    off = now.w - problem.X.T @ beta
    products = now.alpha * now.slack + (ends.strength - now.alpha) * now.short
    residual = np.abs(ends.sign * z - ends.reach + now.short - now.slack) * ends.strength
    paid = np.where(ends.on, np.maximum(ends.reach - ends.sign * z, 0.0) * ends.strength, 0.0)
    primal = 0.5 * float(now.w @ now.w) + float(paid.sum())
    total = float(np.where(ends.on, products + residual, 0.0).sum())
    unequal = abs(float(beta.sum()) * now.b) if problem.intercept else 0.0
    least = 1e-12 * float(np.where(ends.on, np.abs(ends.reach) * ends.strength, 0.0).sum())
    return (total + 0.5 * float(off @ off) + unequal) / max(primal, least, np.finfo(float).tiny)


def _step(problem: Intervals, ends: Ends, now: Iterate, z: np.ndarray) -> Iterate | None:
    """Predictor, then corrector with its centring, by one factorisation."""
    room = ends.strength - now.alpha
    theta = np.where(ends.on, 1.0 / (now.slack / now.alpha + now.short / room), 0.0)
    solve = _factor(problem, theta.sum(axis=0))
    off = problem.X.T @ _pull(ends, now.alpha) - now.w
    miss = ends.sign * z - ends.reach + now.short - now.slack

    def direction(to_slack: np.ndarray, to_short: np.ndarray) -> Iterate:
        """Newton's step towards αa = … and (c − α)ξ = …, given what is missing of each."""
        h = -miss - to_short / room + to_slack / now.alpha
        push = np.where(ends.on, ends.sign * theta * h, 0.0).sum(axis=0)
        balance = float(_pull(ends, now.alpha).sum()) + float(push.sum())
        dw, db = solve(problem.X.T @ push + off, balance)
        dz = problem.X @ dw + db
        alpha = theta * (h - ends.sign * dz)
        slack = np.where(ends.on, (to_slack - now.slack * alpha) / now.alpha, 0.0)
        short = np.where(ends.on, (to_short + now.short * alpha) / room, 0.0)
        return Iterate(dw, db, alpha, slack, short)

    count = 2 * int(ends.on.sum())
    mu = _products(ends, now, room) / count
    guess = direction(-now.alpha * now.slack, -room * now.short)
    far = _length(ends, now, guess, room)
    ahead = _moved(now, guess, far)
    centring = (_products(ends, ahead, ends.strength - ahead.alpha) / count / mu) ** 3 * mu
    final = direction(
        centring - now.alpha * now.slack - guess.alpha * guess.slack,
        centring - room * now.short + guess.alpha * guess.short,
    )
    t = min(1.0, BACK * _length(ends, now, final, room))
    after = _moved(now, final, t)
    sound = np.isfinite(after.w).all() and np.isfinite(after.alpha).all()
    return after if sound and t > 1e-10 else None


def _products(ends: Ends, now: Iterate, room: np.ndarray) -> float:
    return float(np.where(ends.on, now.alpha * now.slack + room * now.short, 0.0).sum())


def _length(ends: Ends, now: Iterate, step: Iterate, room: np.ndarray) -> float:
    """How far all of α, c − α, a and ξ stay positive; at most 1/BACK."""
    pairs = [(now.alpha, step.alpha), (room, -step.alpha), (now.slack, step.slack)]
    pairs.append((now.short, step.short))
    shares = [
        float(np.where(ends.on & (moved < 0), -moved / value, 0.0).max(initial=0.0))
        for value, moved in pairs
    ]
    return 1.0 / max(BACK, *shares)


def _moved(now: Iterate, step: Iterate, t: float) -> Iterate:
    return Iterate(
        now.w + t * step.w,
        now.b + t * step.b,
        now.alpha + t * step.alpha,
        now.slack + t * step.slack,
        now.short + t * step.short,
    )


def _factor(problem: Intervals, theta: np.ndarray) -> Any:
    """Solves the system in (w, b) for any right side."""
    H, column = _weighted_gram(problem.X, theta)
    H[np.diag_indices_from(H)] += 1.0
    return solve_bordered(H, column, float(theta.sum()), intercept=problem.intercept)


def _weighted_gram(X: Any, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """XᵀΘX (d, d) and XᵀΘ1 (d,), by row blocks that fit a cache, on all cores."""
    column = X.T @ theta
    if sp.issparse(X):
        return (X.T @ X.multiply(theta[:, None]).tocsr()).toarray(), column
    n, d = X.shape

    def part(start: int, stop: int) -> np.ndarray:
        total = np.zeros((d, d))
        for low in range(start, stop, BLOCK):
            rows = slice(low, min(low + BLOCK, stop))
            half = X[rows] * np.sqrt(theta[rows])[:, None]
            total += half.T @ half
        return total

    return np.sum(map_rows(part, n, n * d), axis=0), column
