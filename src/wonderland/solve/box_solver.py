"""From a kernel problem to its certified optimum.

Variables that matter (free ones and those that violate the conditions most) are gathered in blocks
of the kernel matrix and settled there by compiled steps of two (`working_set`), in float32 while
that decides. Where the tolerance lies below what float32 can tell, or steps of two become many,
Newton's method on the free variables takes over in float64 (`box_active`). The end is judged by the
duality gap and the violation together, on a gradient computed from β itself.
"""

from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.status import Status
from wonderland.solve.box_active import Point, newton, walk
from wonderland.solve.box_gram import Gram
from wonderland.solve.box_linear import fits_linear, solve_linear
from wonderland.solve.box_problem import BoxProblem, Certificate, certify, pulls
from wonderland.solve.working_set import Room, leave, settle, times

__all__ = ["BoxFit", "Limits", "solve_box"]

SINGLE = float(np.finfo(np.float32).eps)
TINY = 1e-300
CLOSE = 1e-3  # violation, relative to p, below which Newton's method is near enough
FLOOR = 1e-4  # the same that float32 is asked for at most
PATIENCE = 0.5  # seconds for that where Newton's method alone does not settle
ENTRY = 30  # multiplications that an entry of the kernel costs besides its inner product
CHEAP = 5e7  # multiplications that are made without being asked for
TRUST = 0.1  # of the tolerance: rounding that may be left to float32
GOAL = 0.5  # of the tolerance: violation left in a block that holds everything
STEPS = 40  # steps of two per variable of a block before Newton's method is tried
FEW = 4  # the same between two calls of it
NEXT = 8.0  # times the smallest goal: what is nearer to it goes there at once
ROUNDS = 400
WHOLE = 6144  # variables that are settled together without a choice
BLOCK = 4096  # variables in a block that is chosen
CROWDED = 0.9  # of a block: free variables from which larger blocks are used
STALLED = 0.5  # of the violation: what is left of it where the block's precision is used up
CROWD = 1.3  # blocks: variables that move, from which only some of the others join the worst
WORST = 0.4  # share of the worst in such a block
PART = 4  # the rough start is found on a fourth of the samples
ROUGH = 0.3  # violation that is left there, relative to p
NEAREST = 0.05  # distance from violating, relative to p, within which variables join a block
REACH = 0.2  # the same, of the violation
SHARE = 0.02  # of the violation of all variables that is left in a block
FAR_SHARE = 0.1  # the same far from the optimum


class Limits(NamedTuple):
    """When to stop.

    Attributes:
        tol: Bound on the relative gap and on the violation.
        max_iter: Most steps of two; −1 for no limit.
        seconds: Most seconds, or None.
        block: Most variables in one block.
        gap: Whether the gap must be closed, too.
    """

    tol: float
    max_iter: int = -1
    seconds: float | None = None
    block: int = 12288
    gap: bool = True


class BoxFit(NamedTuple):
    """The answer and how it was found.

    Attributes:
        beta: β (n,).
        g: p − Kβ (n,).
        certificate: Gap and violation, from β and g.
        status: How it ended.
        steps: Steps of two.
        turns: Blocks settled.
        solver: What was done, in words.
    """

    beta: np.ndarray
    g: np.ndarray
    certificate: Certificate
    status: Status
    steps: int
    turns: int
    solver: str


def solve_box(
    problem: BoxProblem, gram: Gram, limits: Limits, start: np.ndarray | None = None
) -> BoxFit:
    """Minimise D over the box.

    Args:
        problem: Bounds, linear term, kink, total.
        gram: K (n, n).
        limits: When to stop.
        start: A feasible β; None for the nearest to zero.
    """
    if start is None and limits.max_iter < 0 and fits_linear(problem, gram):
        flat = solve_linear(problem, gram, limits.tol)
        found = flat.certificate
        if found.violation <= limits.tol and (found.gap <= limits.tol or not limits.gap):
            told = f"w by the {flat.solver}, since the kernel is linear"
            return BoxFit(flat.beta, flat.g, found, Status.CONVERGED, flat.steps, 1, told)
        start = flat.beta if np.isfinite(found.dual) else None
    return _Descent(problem, gram, limits).run(start)


class _Descent:
    """One solve: the counts, the precision in use, and the block at hand."""

    def __init__(self, problem: BoxProblem, gram: Gram, limits: Limits) -> None:
        self.problem, self.gram, self.limits = problem, gram, limits
        self.everything = np.arange(gram.n)
        self.kind: np.dtype = np.dtype(np.float32)
        self.steps = self.turns = self.newtons = 0
        self.began = monotonic()
        self.size = max(float(np.abs(problem.linear).max()), float(problem.total != 0), TINY)
        self.block: tuple[np.ndarray, Room] | None = None
        self.space: Any = None  # memory of the last block
        self.newton_below = np.inf  # violation at which Newton's method is tried next
        self.tired = False  # whether the last block ran out of steps, or gained nothing
        self.before = np.inf  # violation before a block of everything was settled

    def run(self, start: np.ndarray | None) -> BoxFit:
        point = self._at(self._warm() if start is None else start)
        while True:
            found = certify(self.problem, *point)
            self.tired |= found.violation > STALLED * self.before
            status = self._judge(point, found)
            if status is not Status.RUNNING:
                break
            point = self._next(point, found)
        space = self._memory()
        if space is not None and self.kind == np.float32:
            leave(space)
        if status is Status.CONVERGED and not self.newtons and self.limits.gap:
            point, found = self._free_of_charge(point, found)
        return BoxFit(*point, found, status, self.steps, self.turns, self._told())

    def _free_of_charge(self, point: Point, found: Certificate) -> tuple[Point, Certificate]:
        """A small problem is taken to rounding level: it costs less than starting it did."""
        free = (point.beta > self.problem.low) & (point.beta < self.problem.high)
        count = int(np.count_nonzero(free & (point.beta != 0)))
        entries = float(count) * self.gram.n
        if float(count) ** 3 + entries * (self.gram.d + ENTRY) > CHEAP:
            return point, found
        self._precisely()
        exact = self._at(point.beta)
        better = newton(self.problem, self.gram, exact, found.bias, 1e-3 * self.limits.tol)
        if better is None:
            tight = self.limits._replace(tol=1e-6 * self.limits.tol, gap=False, seconds=PATIENCE)
            better = Point(*solve_box(self.problem, self.gram, tight, point.beta)[:2])
        better = self._at(better.beta)
        sure = certify(self.problem, *better)
        if sure.violation > found.violation or not sure.dual >= found.dual - abs(found.dual) * 1e-6:
            return point, found
        self.newtons += 1
        return better, sure

    def _warm(self) -> np.ndarray:
        """A feasible β to begin with: the rough optimum of a part of the samples, else zero."""
        problem, n = self.problem, self.gram.n
        if n <= WHOLE or problem.total != 0 or self.limits.max_iter >= 0:
            return nearest_to_zero(problem)
        some = np.sort(np.random.default_rng(n).permutation(n)[: n // PART])
        rough = self.limits._replace(tol=ROUGH * self.size, gap=False)
        fit = solve_box(problem.part(some), self.gram.part(some), rough)
        self.steps, self.turns = fit.steps, fit.turns
        beta = np.zeros(n)
        beta[some] = fit.beta
        return beta

    def _judge(self, point: Point, found: Certificate) -> Status:
        limits = self.limits
        closed = found.gap <= limits.tol or not limits.gap
        if found.violation <= limits.tol and closed and self._trusted(point):
            return Status.CONVERGED
        if limits.max_iter >= 0 and self.steps >= limits.max_iter:
            return Status.ITERATIONS
        if limits.seconds is not None and monotonic() - self.began > limits.seconds:
            return Status.TIME
        if self.turns > ROUNDS:
            return Status.ITERATIONS
        return Status.RUNNING if np.isfinite(found.dual) else Status.DIVERGED

    def _next(self, point: Point, found: Certificate) -> Point:
        """Newton's method where it promises to end, else a block of steps of two."""
        if self._close(found) or self.tired:
            self._precisely()
            point = self._at(point.beta)
            better = self._newton(point, found)
            if better is not None:
                return better
            point = walk(self.problem, self.gram, point)
            point = self._at(balanced(self.problem, point.beta))
            found = certify(self.problem, *point)
        return self._settled(point, found.violation)

    def _close(self, found: Certificate) -> bool:
        """Whether float64 and Newton's method are what is needed from here on."""
        tol = self.limits.tol
        if found.violation > max(CLOSE * self.size, tol):
            return False
        # What float32 can still settle it settles sooner than a matrix is factorised.
        return found.violation <= tol or tol < FLOOR * self.size

    def _promise(self, point: Point) -> tuple[np.ndarray, float]:
        """How far each variable is from obeying the conditions, below zero where it does."""
        up, down = pulls(self.problem, *point)
        highest, lowest = float(up.max()), float(down.min())
        middle = 0.5 * (highest + lowest)
        return np.maximum(up - middle, middle - down), highest - lowest

    def _goal(self, violation: float) -> float:
        """What is left to violate within a block that does not hold everything."""
        share = (FAR_SHARE if violation > self.size else SHARE) * violation
        least = self._least()
        return least if share < NEXT * least else share

    def _least(self) -> float:
        """The smallest violation that is worth asking for."""
        return max(GOAL * self.limits.tol, 0.0 if self.kind == np.float64 else FLOOR * self.size)

    def _newton(self, point: Point, found: Certificate) -> Point | None:
        """The optimum, where its active set is found from here; tried again when it is nearer."""
        if found.violation >= self.newton_below:
            return None
        self.newton_below = 0.1 * found.violation
        better = newton(self.problem, self.gram, point, found.bias, 0.1 * self.limits.tol)
        if better is None:
            return None
        self.newtons += 1
        return self._at(balanced(self.problem, better.beta))

    def _precisely(self) -> None:
        """From here on in float64."""
        if self.kind != np.float64:
            self.kind, self.block = np.dtype(np.float64), None

    def _trusted(self, point: Point) -> bool:
        """Whether what float32 rounds in the kernel's entries lies below the tolerance."""
        rounding = SINGLE * float(np.sqrt(np.square(point.beta).sum()))
        return self.kind == np.float64 or rounding <= TRUST * self.limits.tol

    def _at(self, beta: np.ndarray) -> Point:
        """g computed from β alone."""
        support = np.flatnonzero(beta)
        f = self.gram.product(None, support, beta[support], self.kind)
        return Point(beta, self.problem.linear - f)

    def _settled(self, point: Point, violation: float) -> Point:
        """One block of variables settled, the others left where they are."""
        limits, problem = self.limits, self.problem
        index, block = self._gather(point)
        whole = len(index) == self.gram.n
        goal = self._least() if whole else self._goal(violation)
        self.before = violation if whole and self.turns else np.inf
        before = point.beta[index]
        missing = problem.total - float(point.beta.sum())
        part = problem.part(index)._replace(total=float(before.sum()) + missing)
        most = (STEPS if self.kind == np.float32 else FEW) * len(index) + 1000
        if limits.max_iter >= 0:
            most = min(most, limits.max_iter - self.steps)
        after, steps = settle(block, part, before, point.g[index], goal, most)
        self.steps, self.turns, self.tired = self.steps + steps, self.turns + 1, steps <= 1
        self.tired |= steps >= most or self.kind == np.float64
        beta = point.beta.copy()
        beta[index] = balanced(part, after)
        if whole:
            return Point(beta, problem.linear - times(block, beta))
        changed = np.flatnonzero(beta != point.beta)
        change = (beta - point.beta)[changed]
        return Point(beta, point.g - self.gram.product(None, changed, change, self.kind))

    def _gather(self, point: Point) -> tuple[np.ndarray, Room]:
        """The block of the variables that promise most; the last one where they are the same."""
        index = self._choose(point)
        if self.block is not None and np.array_equal(self.block[0], index):
            return self.block
        self.block = index, self.gram.room(index, self.kind, self._memory())
        return self.block

    def _memory(self) -> Any:
        """What the last block lay in; it is given away, since XLA writes into it."""
        space = self.space if self.block is None else self.block[1].space
        self.block = self.space = None
        return space

    def _choose(self, point: Point) -> np.ndarray:
        """Violating variables, free ones, and those nearest to becoming so."""
        most = self.limits.block
        if self.kind == np.float64:
            most //= 2
        if self.gram.n <= min(most, WHOLE):
            return self.everything
        promise, apart = self._promise(point)
        # Far from the optimum only what violates matters; near it, what may soon do so.
        reach = 0.0 if apart > self.size else max(NEAREST * self.size, REACH * apart)
        moving = int(np.count_nonzero(promise >= -reach))
        free = (point.beta > self.problem.low) & (point.beta < self.problem.high)
        if np.count_nonzero(free & (point.beta != 0)) < CROWDED * BLOCK:
            most = min(most, BLOCK)
        if moving > CROWD * most:
            return self._drawn(promise, np.flatnonzero(promise >= -reach), most)
        wanted = min(moving, most)
        return np.sort(np.argpartition(-promise, wanted - 1)[:wanted])

    def _drawn(self, promise: np.ndarray, moving: np.ndarray, count: int) -> np.ndarray:
        """The worst of those that move, and a fair sample of the others.

        The worst alone lie on one side of the margin: settled by themselves they go too far.
        """
        first = int(WORST * count)
        worst = np.argpartition(-promise, first - 1)[:first]
        others = np.random.default_rng(self.turns).permutation(np.setdiff1d(moving, worst))
        return np.sort(np.concatenate([worst, others[: count - first]]))

    def _told(self) -> str:
        """What was done, in words."""
        told = f"{self.steps} steps of two variables in {self.turns} blocks"
        if self.newtons:
            told += ", then Newton's method on the free ones in float64"
        return told


def nearest_to_zero(problem: BoxProblem) -> np.ndarray:
    """A feasible β: the same share of every bound."""
    if problem.total == 0:
        return np.zeros(len(problem.linear))
    side = problem.high if problem.total > 0 else problem.low
    return side * (problem.total / float(side.sum()))


def balanced(problem: BoxProblem, beta: np.ndarray) -> np.ndarray:
    """Σβ = c again after rounding, by moving free variables within their bounds."""
    for _ in range(3):
        excess = float(beta.sum()) - problem.total
        free = (beta > problem.low) & (beta < problem.high) & (beta != 0)
        if excess == 0 or not free.any():
            return beta
        beta = beta.copy()
        beta[free] = np.clip(
            beta[free] - excess / free.sum(), problem.low[free], problem.high[free]
        )
    return beta
