"""Problems of intervals on more rows than memory holds: passes, each with its certificate.

Squared distances: Newton's method, whose Hessian is summed in the pass; it ends after finitely many
steps. Others: the rows nearest to an end of their interval are kept and solved as they are, by
`interior_lagrangian`, beside the sum of all other rows, each on a straight line; where that leads
further than what was kept, a step of Newton's method on kinks smoothed to a width μ that shrinks
with the steps. Lines lie below the losses they replace, so that the optimum of what was kept bounds
P from below; P itself is summed over all rows, and their difference is the duality gap, whatever
the way to the point.

References: Joachims (1998); Chapelle (2007), Training a support vector machine in the primal;
Franc & Sonnenburg (2008), Optimized cutting plane algorithm (bounds from lines).
"""

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

import numpy as np

from wonderland.core.blocks import calm
from wonderland.core.status import Status
from wonderland.solve.interior_lagrangian import Plan, gap_of, solve_lagrangian, start
from wonderland.solve.interior_passes import Ask, Block, Held, Seen, look
from wonderland.solve.interior_problem import balance, supports
from wonderland.solve.newton_metric import Dense

__all__ = ["Ended", "Passing", "Wish", "solve_passing"]

FINER = 0.1  # of tol is aimed at: what the last pass leaves costs nothing
FLAT = 1e-4  # of the natural width: smallest width a kept problem starts with
PATIENCE = 30  # passes without a lower P or higher D
NARROWER = 0.1  # of a width is the next at least,
LEAST = 1e-9  # and of the natural width
SHORTEST = 1e-4  # of a Newton step
NEWTON = 200  # steps of one problem that is kept
BEYOND = 1.5  # of the reach of what was kept is gone at most
NEAR = 0.5  # share of the way to a kept optimum below which Newton's step is tried first


class Passing(NamedTuple):
    """k problems over the same rows.

    Attributes:
        blocks: Starts a pass over the rows.
        intercept: Whether b is free.
        squared: Whether distances are squared.
        hold: Rows each problem may keep.
    """

    blocks: Callable[[], Iterator[Block]]
    intercept: bool
    squared: bool
    hold: int


class Wish(NamedTuple):
    """Where to begin, what to reach.

    Attributes:
        w: (d,).
        b: Intercept.
        width: First width of smoothed kinks.
        scale: Natural width in z.
        tol: Relative duality gap.
        limit: Most passes.
    """

    w: np.ndarray
    b: float
    width: float
    scale: float
    tol: float
    limit: int


class Ended(NamedTuple):
    """The answer to one problem.

    Attributes:
        w: (d,).
        b: Intercept.
        primal: P.
        dual: D.
        multipliers: How many rows have a multiplier that is not zero.
        wrong: Rows on the wrong side of the hyperplane.
        gradient: Largest entry of ∇P where squared, else None.
        kept: Rows kept at the end.
        passes: Over the rows.
        status: How it ended.
    """

    w: np.ndarray
    b: float
    primal: float
    dual: float
    multipliers: int
    wrong: int
    gradient: float | None
    kept: int
    passes: int
    status: Status


Search = Generator[Ask, Seen, Ended]


def solve_passing(problems: Passing, wishes: list[Wish]) -> list[Ended]:
    """Solve all problems side by side: each pass serves all that are still going."""
    with calm(0.0):  # many small products; blocks of rows are split among cores
        return _solved(problems, wishes)


def _solved(problems: Passing, wishes: list[Wish]) -> list[Ended]:
    searches = [_smooth(problems, wish) for wish in wishes]
    if not problems.squared:
        searches = [_sifted(problems, wish) for wish in wishes]
    asks = {index: next(one) for index, one in enumerate(searches)}
    ends: dict[int, Ended] = {}
    while asks:
        found = look(
            problems.blocks(),
            list(asks),
            list(asks.values()),
            intercept=problems.intercept,
            squared=problems.squared,
        )
        going: dict[int, Ask] = {}
        for index, seen in zip(asks, found, strict=True):
            try:
                going[index] = searches[index].send(seen)
            except StopIteration as stopped:
                ends[index] = stopped.value
        asks = going
    return [ends[index] for index in range(len(searches))]


class _Place(NamedTuple):
    """A point, what a pass saw there, and P."""

    w: np.ndarray
    b: float
    seen: Seen
    primal: float


def _place(ask: Ask, seen: Seen) -> _Place:
    return _Place(ask.w, ask.b, seen, 0.5 * float(ask.w @ ask.w) + seen.paid)


def _smooth(problems: Passing, wish: Wish) -> Search:
    """Newton's method for squared distances; a step that does not descend is shortened."""
    ask = Ask(wish.w, wish.b, 0.0, 0)
    best = _place(ask, (yield ask))
    bound, count, length = _dual(problems, best.seen), 1, 1.0
    step = _newton(problems, best)
    while not _closed(best.primal, bound, FINER * wish.tol) and count < wish.limit:
        ask = Ask(best.w + length * step[0], best.b + length * step[1], 0.0, 0)
        here = _place(ask, (yield ask))
        count += 1
        before, bound = bound, max(bound, _dual(problems, here.seen))
        if here.primal < best.primal:
            best, length = here, 1.0
            step = _newton(problems, best)
        elif bound > before:
            length = 0.25 * length
        elif _closed(best.primal, bound, wish.tol) or length < 1e-6:
            break
        else:
            length = 0.25 * length
    gradient, along = _slopes(problems, best)
    steepest = max(float(np.abs(gradient).max(initial=0.0)), abs(along))
    return _end(best, bound, best.seen.multipliers, (steepest, 0, count), wish)


def _end(
    best: _Place, bound: float, multipliers: int, told: tuple[float | None, int, int], wish: Wish
) -> Ended:
    closed = _closed(best.primal, bound, wish.tol)
    status = Status.CONVERGED if closed else Status.ITERATIONS
    return Ended(best.w, best.b, best.primal, bound, multipliers, best.seen.outside, *told, status)


def _closed(primal: float, dual: float, tol: float) -> bool:
    return primal - dual <= tol * max(primal, np.finfo(float).tiny)


def _slopes(problems: Passing, place: _Place) -> tuple[np.ndarray, float]:
    """∇ of the (smoothed) objective: in w (d,), in b."""
    along = float(place.seen.total[1] - place.seen.total[0]) if problems.intercept else 0.0
    return place.w - place.seen.pulled.sum(axis=0), along


def _newton(problems: Passing, place: _Place) -> tuple[np.ndarray, float]:
    """−H⁻¹∇ of the (smoothed) objective."""
    gradient, along = _slopes(problems, place)
    H = place.seen.curvature.copy()
    d = len(gradient)
    H[range(d), range(d)] += 1.0
    if not problems.intercept or H[d, d] <= 0:
        return -Dense(H[:d, :d]).solve(gradient), 0.0
    step = -Dense(H).solve(np.append(gradient, along))
    return step[:d], float(step[d])


def _dual(problems: Passing, seen: Seen) -> float:
    """D of the multipliers of a pass, those of the heavier side scaled down until Σβ = 0."""
    share = np.ones(2)
    if problems.intercept and seen.total[0] != seen.total[1]:
        heavy = int(seen.total[1] > seen.total[0])
        share[heavy] = seen.total[1 - heavy] / seen.total[heavy]
    pulled = share @ seen.pulled
    value = float(share @ seen.ends) - float(share**2 @ seen.squares)
    return value - 0.5 * float(pulled @ pulled)


class _Trial(NamedTuple):
    """The optimum of what was kept: a point, its lower bound, how many multipliers it has.

    `share` of the way to it stays about where what was kept is all that bends.
    """

    w: np.ndarray
    b: float
    dual: float
    multipliers: int
    share: float


def _kept(place: _Place, held: Held, wish: Wish) -> _Trial:
    """Solve the rows kept beside the lines of the others."""
    width = max(0.25 * min(held.reach, wish.width), FLAT * wish.scale)
    plan = Plan(0.3 * FINER * wish.tol, width, steps=NEWTON)
    out = solve_lagrangian(
        held.rows,
        start(held.rows, place.w, place.b),
        held.pull,
        plan,
        lambda inner, state: (gap_of(inner, state), place.primal),
    )
    beta = balance(held.rows, out.state.beta, held.pull.b)
    pulled = held.pull.w + held.rows.X.T @ beta
    dual = held.supports + float(supports(held.rows, beta).sum()) - 0.5 * float(pulled @ pulled)
    left = abs(held.pull.b + float(beta.sum())) if held.rows.intercept else 0.0
    sound = left <= 1e-12 * (abs(held.pull.b) + float(np.abs(beta).sum()))
    count = held.multipliers + int(np.count_nonzero(beta))
    w, b = out.state.w, out.state.b
    moved = float(np.abs(held.rows.X @ (w - place.w) + (b - place.b)).max(initial=0.0))
    share = min(1.0, BEYOND * held.reach / moved) if moved > 0 else 1.0
    return _Trial(w, b, dual if sound else -np.inf, count, share)


class _Bound:
    """The highest D so far, and how many multipliers of it are not zero."""

    def __init__(self) -> None:
        self.value, self.multipliers = -np.inf, 0

    def raised(self, dual: float, multipliers: int) -> bool:
        """Take another in; whether it is higher."""
        higher = dual > self.value
        if higher:
            self.value, self.multipliers = dual, multipliers
        return higher


class _Way(NamedTuple):
    """Where steps start, and the next one.

    Attributes:
        place: The start.
        trial: The optimum of what was kept there.
        width: Of the kinks smoothed there.
        length: Of the next Newton step.
        by: What the next step is: "kept", "between" or "newton".
    """

    place: _Place
    trial: _Trial
    width: float
    length: float
    by: str


def _sifted(problems: Passing, wish: Wish) -> Search:
    """From place to place until the gap is closed; the answer is the place of lowest P."""
    bound, count, idle = _Bound(), 1, 0
    ask = Ask(wish.w, wish.b, wish.width, problems.hold)
    best = place = _place(ask, (yield ask))
    bound.raised(_dual(problems, place.seen), place.seen.multipliers)
    way = _from(place, ask.width, 1.0, wish)
    bound.raised(way.trial.dual, way.trial.multipliers)
    while idle < PATIENCE and count < wish.limit:
        if _closed(best.primal, bound.value, FINER * wish.tol):
            break
        ask = _step(problems, wish, way, best)
        here = _place(ask, (yield ask))
        count += 1
        higher = bound.raised(_dual(problems, here.seen), here.seen.multipliers)
        better = here.primal < best.primal
        best = here if better else best
        if better if way.by != "newton" else _descends(way, here, ask.width):
            way = _from(here, ask.width, min(1.0, 2.0 * way.length), wish)
            higher |= bound.raised(way.trial.dual, way.trial.multipliers)
        else:
            way = _after(problems, way, here)
        idle = 0 if better or higher else idle + 1
    kept = 0 if best.seen.held is None else len(best.seen.held.rows.low)
    return _end(best, bound.value, bound.multipliers, (None, kept, count), wish)


def _from(place: _Place, width: float, length: float, wish: Wish) -> _Way:
    """The way out of a new place: to the optimum of what was kept, unless that is far away."""
    if place.seen.held is None:
        raise ValueError("the pass kept no rows")
    trial = _kept(place, place.seen.held, wish)
    return _Way(place, trial, width, length, "kept" if trial.share >= NEAR else "newton")


def _after(problems: Passing, way: _Way, failed: _Place) -> _Way:
    """Another way out of the same place, where one has led up."""
    if way.by == "newton":
        shorter = 0.25 * way.length
        tried = shorter < SHORTEST and way.trial.share > 0
        return way._replace(length=shorter, by="kept" if tried else "newton")
    if way.by == "kept":
        t = _meeting(problems, way.place, failed)
        w = way.place.w + t * (failed.w - way.place.w)
        b = way.place.b + t * (failed.b - way.place.b)
        return way._replace(trial=way.trial._replace(w=w, b=b, share=1.0), by="between")
    return way._replace(by="newton")


def _step(problems: Passing, wish: Wish, way: _Way, best: _Place) -> Ask:
    """The next place to look at."""
    place, trial, width = way.place, way.trial, way.width
    if way.by != "newton":
        t = trial.share
        w, b = place.w + t * (trial.w - place.w), place.b + t * (trial.b - place.b)
        return Ask(w, b, width, problems.hold)
    dw, db = _newton(problems, place)
    if _settled(problems, wish, place):
        width = max(NARROWER * width, LEAST * wish.scale)
    return Ask(place.w + way.length * dw, place.b + way.length * db, width, problems.hold)


def _settled(problems: Passing, wish: Wish, place: _Place) -> bool:
    """Whether kinks of this width have told all they can: ½‖∇‖² is lost to the dual."""
    gradient, _ = _slopes(problems, place)
    return 0.5 * float(gradient @ gradient) <= FINER * wish.tol * place.primal


def _descends(way: _Way, here: _Place, width: float) -> bool:
    """Whether a Newton step lowered the smoothed objective, whose width may have shrunk."""
    values = [0.5 * float(each.w @ each.w) + each.seen.smooth for each in (way.place, here)]
    return width != way.width or values[1] <= values[0]


def _meeting(problems: Passing, place: _Place, trial: _Place) -> float:
    """t where slopes at both ends have P lowest on the way to a trial too far.

    Near the place P is what was kept, so that the trial lies downhill from it.
    """
    dw, db = trial.w - place.w, trial.b - place.b
    slopes = []
    for each in (place, trial):
        gradient, along = _slopes(problems, each)
        slopes.append(float(gradient @ dw) + along * db)
    if not slopes[0] < 0 < slopes[1]:
        return 0.25
    return float(np.clip(-slopes[0] / (slopes[1] - slopes[0]), 0.02, 0.7))
