"""Large problems of intervals, a few rows at a time: sample, sift, verify.

At the optimum nearly every row is far from the ends of its interval, where its loss is a straight
line: 0, or c(l − z). Straight lines add up to one vector (p, q), so that only rows near an end need
to be kept as rows. A stratified sample gives the first guess; rows near an end for that guess are
solved as they are (`interior_lagrangian`), all rows are then looked at again, and those whose line
was the wrong one join. Lines lie below the losses they replace, so each round's optimum is a lower
bound, and the certificate is always that of the whole problem: nothing is left out unverified.

References: Joachims (1998), Making large-scale SVM learning practical (working sets); Ghaoui,
Viallon & Rabbani (2012), Safe feature elimination.
"""

from typing import NamedTuple

import numpy as np

from wonderland.solve.interior_lagrangian import (
    Outer,
    Plan,
    Pull,
    Smoothed,
    State,
    gap_of,
    solve_lagrangian,
    start,
)
from wonderland.solve.interior_problem import (
    Intervals,
    Point,
    complementarity,
    losses,
)

__all__ = ["Sifted", "natural_width", "sift"]

SMALL = 8192  # rows that are solved as they are
FACTOR = 8  # rows per row of the sample
PART = 4  # rows per row that is kept at first
ROUNDS = 40
TINY = 1e-12  # least width of a smoothed kink
CROWDED = 1e-2  # of the natural width: predictions so near the ends are not told apart
FLOOR = 1e-4  # of the natural width: smallest width a round starts with
FIRST = 1e-3  # relative gap to which the sample is solved


class Sifted(NamedTuple):
    """A point, its gap (in units of P), Newton steps, and the rows kept at the end."""

    point: Point
    gap: float
    steps: int
    kept: int


def sift(problem: Intervals, tol: float, limit: int, guess: Point | None = None) -> Sifted:
    """Solve to a relative gap of `tol` within `limit` Newton steps."""
    n, d = problem.X.shape
    steps = 0
    if guess is None and n > max(SMALL, 40 * (d + 1)):
        sampled = sift(_sample(problem), max(tol, FIRST), limit)
        guess, steps = sampled.point, sampled.steps
    point = Point(np.zeros(d), 0.0, np.zeros(n)) if guess is None else guess
    scale = natural_width(problem)
    z = problem.X @ point.w + point.b
    near, reach = _near(problem, z, max(1, n // PART))
    # Predictions that all stand at an end (w = 0, say) leave nothing to sift by.
    crowded = reach <= CROWDED * scale
    if problem.squared or guess is None or n <= SMALL or crowded:
        width = 1.0 if guess is None or crowded else 0.05
        found = _whole(problem, point, Plan(tol, width * scale, steps=limit - steps))
    else:
        plan = Plan(0.5 * tol, max(0.25 * reach, FLOOR * scale), 3.0 * reach, limit - steps)
        found = _rounds(problem, point, z, near, plan)
    return found._replace(steps=found.steps + steps)


def _sample(problem: Intervals) -> Intervals:
    """A sample with at least so many rows of each kind (class) that the rarer one is seen."""
    n, d = problem.X.shape
    size = max(SMALL // 2, 20 * (d + 1), n // FACTOR)
    generator = np.random.default_rng(0)  # the same rows in every fit
    kind = np.isfinite(problem.low).astype(int) + 2 * np.isfinite(problem.high).astype(int)
    chosen, factor = [], []
    for value in np.unique(kind):
        rows = np.flatnonzero(kind == value)
        take = min(len(rows), max(size // 8, size * len(rows) // n))
        chosen.append(np.sort(generator.choice(rows, take, replace=False)))
        factor.append(np.full(take, len(rows) / take))
    part = problem.rows(np.concatenate(chosen))
    return part._replace(strength=part.strength * np.concatenate(factor))


def _value(problem: Intervals, w: np.ndarray, z: np.ndarray) -> float:
    return 0.5 * float(w @ w) + float(losses(problem, z).sum())


def natural_width(problem: Intervals) -> float:
    """A natural width in z: the mean distance of the ends from their middle; 1 for labels."""
    ends = np.where(np.isfinite(problem.low), problem.low, problem.high)
    if np.isfinite(problem.low).all():
        ends = ends - np.median(ends)
    return max(float(np.abs(ends).mean()), TINY)


def _whole(problem: Intervals, point: Point, plan: Plan) -> Sifted:
    """All rows at once."""
    now = start(problem, point.w, point.b)

    def measure(inner: Smoothed, state: State) -> tuple[float, float]:
        return gap_of(inner, state), _value(problem, state.w, state.z)

    out = solve_lagrangian(problem, now, _none(problem), plan, measure)
    state = out.state
    return Sifted(Point(state.w, state.b, state.beta), out.gap, out.steps, len(now.z))


def _rounds(
    problem: Intervals, point: Point, z: np.ndarray, keep: np.ndarray, plan: Plan
) -> Sifted:
    """Keep rows near an end, solve, look at all rows again, until the whole is certified."""
    n, scale = len(problem.low), natural_width(problem)
    w, b, beta = point.w, point.b, np.zeros(len(problem.low))
    steps, gap, moved = 0, np.inf, z
    for _ in range(ROUNDS):
        frozen = np.where(keep, 0.0, _lines(problem, z))
        left = plan._replace(steps=plan.steps - steps)
        out = _solve_kept(problem, Point(w, b, beta), frozen, keep, left, _value(problem, w, z))
        steps += out.steps
        if not out.within:  # too few rows to hold the others: the lines say nothing out there
            keep, reach = _near(problem, z, min(2 * int(keep.sum()), n))
            plan = plan._replace(reach=3.0 * reach if not keep.all() else np.inf)
            continue
        w, b, beta = out.state.w, out.state.b, frozen
        beta[keep] = out.state.beta
        moved = problem.X @ w + b
        gap = out.gap + float(complementarity(problem, beta, moved)[~keep].sum())
        if gap <= 2.0 * plan.target * _value(problem, w, moved):
            break
        if keep.all() or steps >= plan.steps:
            break
        shift = float(np.abs(moved - z).max())
        keep |= (_lines(problem, moved) != frozen) | (_distance(problem, moved) <= 0.25 * shift)
        width = max(0.1 * plan.width, FLOOR * scale)
        plan, z = plan._replace(width=width, reach=max(9.0 * shift, plan.reach)), moved
    return Sifted(Point(w, b, beta), gap, steps, int(keep.sum()))


def _solve_kept(
    problem: Intervals,
    point: Point,
    frozen: np.ndarray,
    keep: np.ndarray,
    plan: Plan,
    primal: float,
) -> Outer:
    rows = np.flatnonzero(keep)
    part = problem.rows(rows)
    pull = Pull(problem.X.T @ frozen, float(frozen.sum()))
    begin = start(part, point.w, point.b)._replace(beta=point.beta[rows])
    return solve_lagrangian(
        part, begin, pull, plan, lambda inner, state: (gap_of(inner, state), primal)
    )


def _none(problem: Intervals) -> Pull:
    return Pull(np.zeros(problem.X.shape[1]), 0.0)


def _lines(problem: Intervals, z: np.ndarray) -> np.ndarray:
    """The multiplier of the straight piece each prediction is on (n,)."""
    below = np.where(z < problem.low, problem.strength, 0.0)
    return np.where(z > problem.high, -problem.strength, below)


def _distance(problem: Intervals, z: np.ndarray) -> np.ndarray:
    """Distance of each prediction to the nearer end of its interval (n,)."""
    return np.minimum(np.abs(z - problem.low), np.abs(z - problem.high))


def _near(problem: Intervals, z: np.ndarray, count: int) -> tuple[np.ndarray, float]:
    """The `count` rows nearest to an end, and the largest distance among them."""
    distance = _distance(problem, z)
    reach = float(np.partition(distance, count - 1)[count - 1])
    return distance <= reach, reach
