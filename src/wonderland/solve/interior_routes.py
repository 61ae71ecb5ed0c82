"""From a problem of intervals to a certified answer: which way, and why.

Rows of strength 0 are left out; a dense table with more columns than rows is turned into one with
as many columns as rows (Xᵀ = QR, the inner products are those of R), which changes no prediction;
large tables are sifted. Whatever the way, the certificate is computed on the problem as stated.
"""

from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import calm
from wonderland.core.status import Status
from wonderland.solve.interior import solve_interior
from wonderland.solve.interior_problem import (
    Certificate,
    Intervals,
    Point,
    balance,
    judge,
    losses,
    norms,
    settled,
)
from wonderland.solve.interior_sift import SMALL, Sifted, sift

__all__ = ["Answer", "quiet", "solve_hard", "solve_intervals"]

CHEAP = 20_000  # rows up to which digits beyond `tol` cost next to nothing
DIGITS = 1e-12  # the relative gap aimed at there
LOUD = 20_000_000  # entries from which products with all rows are worth several threads
FORMED = 3000  # columns whose d × d matrix an interior point may form
FINER = 0.1  # and elsewhere the share of `tol`
HAIR = 1e-7  # by which a vector is stretched at most
SLACK = 1e-14
NOTHING = 1e-14  # of P
FAINT = 1e-9  # what is given up at most to call a zero a zero
ROTATED = 4000  # rows of a wide table that are still factorised


class Answer(NamedTuple):
    """A point with its certificate, Newton steps, how it was found and why, how it ended."""

    point: Point
    certificate: Certificate
    steps: int
    solver: str
    reason: str
    status: Status


def solve_intervals(problem: Intervals, tol: float, limit: int) -> Answer:
    """The optimum to a relative duality gap of `tol`, in at most `limit` Newton steps."""
    with quiet(problem.X):
        return _solve(problem, tol, limit)


def quiet(X: Any) -> AbstractContextManager[None]:
    """One BLAS thread for all but very large dense tables.

    Products with few rows last microseconds, less than threads of a busy machine wait for one
    another; the large ones are split among cores by `core.blocks.map_rows`.
    """
    loud = not sp.issparse(X) and X.shape[0] * X.shape[1] > LOUD
    return calm(np.inf if loud else 0.0)


def _solve(problem: Intervals, tol: float, limit: int) -> Answer:
    used = np.flatnonzero(problem.strength > 0)
    part = problem if len(used) == len(problem.strength) else problem.rows(used)
    n, d = part.X.shape
    cheap = n <= CHEAP and (not sp.issparse(part.X) or min(n, d) <= ROTATED // 2)
    aim = min(tol, DIGITS) if cheap else tol * (0.3 if sp.issparse(part.X) else FINER)
    wide = not sp.issparse(part.X) and n < d and n <= ROTATED
    seen = part._replace(X=np.asarray(np.linalg.qr(part.X.T, mode="r")).T) if wide else part
    found, rescued = _rescued(seen, sift(seen, aim, limit), tol, limit)
    w = None if wide else found.point.w
    point, certificate = _published(part, w, found.point.b, balance(part, found.point.beta))
    beta = np.zeros(len(problem.strength))
    beta[used] = point.beta
    point = point._replace(beta=beta)
    solver, reason = _named(part, found.kept, wide=wide)
    if rescued:
        solver, reason = f"interior point, {solver}", f"{RESCUED}{reason}"
    status = Status.CONVERGED if certificate.gap <= tol else Status.ITERATIONS
    return Answer(point, certificate, found.steps, solver, reason, status)


def _rescued(problem: Intervals, found: Sifted, tol: float, limit: int) -> tuple[Sifted, bool]:
    """A second attempt from an interior point, where the first ended above `tol`."""
    n, d = problem.X.shape
    point = found.point
    primal = 0.5 * float(point.w @ point.w)
    primal += float(losses(problem, problem.X @ point.w + point.b).sum())
    missed = found.gap > tol * primal and found.steps < limit
    if not missed or problem.squared or d > FORMED or n * d > FORMED**2:
        return found, False
    inside = solve_interior(problem, 1e-8)
    again = sift(problem, min(tol, DIGITS), limit - found.steps, inside.point)
    steps = found.steps + inside.steps + again.steps
    best = again if again.gap < found.gap else found
    return best._replace(steps=steps), True


RESCUED = "the augmented Lagrangian stalled and was started anew from an interior point; "


def _published(
    problem: Intervals, w: np.ndarray | None, b: float, beta: np.ndarray
) -> tuple[Point, Certificate]:
    """Of the primal iterate w and the recovered Xᵀβ, each also a hair longer, the lowest P.

    Where c is large, rounding leaves predictions a few units short of their ends, and each unit
    costs c: a vector longer by that hair costs less. Where w is zero up to rounding, it is zero.
    """
    recovered = problem.X.T @ beta
    points = [Point(each, b, beta) for each in (recovered, w) if each is not None]
    points = [point._replace(b=settled(problem, point)) for point in points]
    judged = [judge(problem, point, recovered) for point in points]
    hair = 1.0 + 2.0 * min(found.kkt for found in judged)
    if 1.0 < hair < 1.0 + HAIR:
        points += [Point(point.w * hair, point.b * hair, beta) for point in points]
        judged += [judge(problem, point, recovered) for point in points[len(judged) :]]
    best = int(np.argmin([found.primal for found in judged]))
    if float(recovered @ recovered) <= NOTHING * judged[best].primal:
        flat = _flat(problem, b, beta, recovered)
        found = None if flat is None else judge(problem, flat, recovered)
        if flat is not None and found is not None and found.gap <= FAINT:
            return flat, found
    return points[best], judged[best]


def _flat(problem: Intervals, b: float, beta: np.ndarray, recovered: np.ndarray) -> Point | None:
    """w = 0 with b at the end it is nearest to, where the terms of Xᵀβ cancel to nine digits."""
    size = float(np.abs(beta) @ np.sqrt(norms(problem.X)))
    if float(np.sqrt(recovered @ recovered)) > FAINT * size:
        return None
    flat = Point(np.zeros_like(recovered), b, beta)
    ends = np.concatenate([problem.low, problem.high])
    near = float(ends[np.argmin(np.abs(ends - b))])
    snapped = problem.intercept and abs(near - b) <= FAINT * max(1.0, abs(near))
    return flat._replace(b=near if snapped else settled(problem, flat))


def _named(problem: Intervals, kept: int, *, wide: bool) -> tuple[str, str]:
    n, d = problem.X.shape
    how = (
        "squared distances are smooth: Newton's method with an exact line search ends after "
        "finitely many steps"
        if problem.squared
        else "augmented Lagrangian, each inner problem by semismooth Newton on the rows between "
        "their bounds"
    )
    if wide:
        return "rotated newton" if problem.squared else "rotated lagrangian", (
            f"{d} columns for {n} rows: solved in the {n} coordinates of the rows; {how}"
        )
    if n > SMALL and not problem.squared and kept < n:
        return "sifted lagrangian", (
            f"started on a sample; {kept} of {n} rows were near an end of their interval and kept, "
            f"the others verified; {how}"
        )
    return "newton" if problem.squared else "lagrangian", how


def solve_hard(problem: Intervals, tol: float, limit: int, guess: Point) -> Answer:
    """The hard margin of separable labels: ½‖w‖² under y(xᵀw + b) ≥ 1.

    Multipliers of the optimum are ≥ 0 with Σβ = ‖w*‖², so none exceeds ‖w‖² of any feasible w: with
    that for C the soft margin has the same optimum. What it finds is scaled to be feasible,
    w/min y(xᵀw + b), and so is its dual, β·Σ|β|/‖Xᵀβ‖².

    Args:
        problem: Rows of infinite strength.
        tol: Relative duality gap wanted.
        limit: Most Newton steps.
        guess: Any feasible w, b.
    """
    n = len(problem.low)
    wall = float(guess.w @ guess.w)
    soft = problem._replace(strength=np.full(n, wall))
    found = solve_intervals(soft, tol * FINER, limit)
    point = _feasible(problem, found.point)
    points = [guess] if point is None else [point, guess._replace(beta=point.beta)]
    judged = [judge(problem, each, problem.X.T @ each.beta) for each in points]
    best = int(np.argmin([each.primal for each in judged]))
    status = Status.CONVERGED if judged[best].gap <= tol else Status.ITERATIONS
    reason = f"C is infinite; no multiplier exceeds {wall:.3g}, the ‖w‖² of a separating plane, so "
    return found._replace(
        point=points[best],
        certificate=judged[best],
        reason=f"{reason}C = {wall:.3g} has the same optimum: {found.reason}",
        status=status,
    )


def _feasible(problem: Intervals, point: Point) -> Point | None:
    """Scaled to margin one and to the best multiple of its multipliers; None if not separating."""
    signs = np.where(np.isfinite(problem.low), 1.0, -1.0)
    margin = float((signs * (problem.X @ point.w + point.b)).min())
    pulled = problem.X.T @ point.beta
    square = float(pulled @ pulled)
    if margin <= 0 or square == 0:
        return None
    margin *= 1.0 - SLACK  # predictions rounded below their end would cost infinitely much
    share = float(np.abs(point.beta).sum()) / square
    return Point(point.w / margin, point.b / margin, point.beta * share)
