"""Newton's method and L-BFGS in a Newton metric, for many problems that share passes over the data.

    θ_{t+1} = θ_t − s_t B_t ∇f(θ_t),   s_t by Armijo's rule, first tried at 1,

where B_t is the inverse Hessian (Newton) or the L-BFGS update of a fixed metric B₀ that was close
to it. With B₀ from a Hessian nearby the updates only mend what has changed since, and each pass
over the data gains one to two digits.

A search is a generator: it yields the point where it wants the objective (`Ask`), is sent what was
found there (`Found`), and returns how it ended. It never sees the data, so that one pass can serve
many searches: `drive` evaluates all points that are asked for at once.

Two numbers decide about the end: the certificate max |∇f| ≤ tol, and the Newton decrement ½∇fᵀB∇f,
which predicts how far f is above its minimum. Shapes: θ (p,).

Reference: Nocedal & Wright, Numerical Optimization (2006), algorithms 3.2 and 7.4.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import numpy as np

from wonderland.core.status import Status
from wonderland.solve.newton_metric import Metric

__all__ = ["Ask", "End", "Found", "Pair", "Rules", "Search", "drive", "search"]

ARMIJO = 1e-4
MEMORY = 12
SHORTEST = 1e-12  # of the Newton step: below it nothing moves
CLOSE = 1e-2  # of ∇f: a smaller change has its image computed anew
UNIT = float(np.finfo(float).eps)


class Ask(NamedTuple):
    """What a search wants to know at θ.

    Attributes:
        theta: (p,).
        hessian: Whether the metric of the Hessian is wanted beside f and ∇f.
        vector: v (p,) whose product ∇²f v is wanted, or None.
    """

    theta: np.ndarray
    hessian: bool = False
    vector: np.ndarray | None = None


class Found(NamedTuple):
    """f, ∇f (p,); the metric and the product ∇²f v (p,) where they were asked for."""

    value: float
    gradient: np.ndarray
    metric: Metric | None = None
    product: np.ndarray | None = None


class Rules(NamedTuple):
    """When to stop, and how often to take a Hessian.

    Attributes:
        tol: Bound on max |∇f|.
        precision: Bound on the predicted decrease ½∇fᵀB∇f, relative to f.
        max_iter: Most steps.
        renew: A Hessian is taken at the next point unless the last step shrank the predicted
            decrease by this factor; infinite: always (Newton); zero: never.
        floor: f at which the search ends because no minimum is attained.
    """

    tol: float = 1e-4
    precision: float = 1e-12
    max_iter: int = 100
    renew: float = 0.0
    floor: float = -np.inf


class Pair(NamedTuple):
    """What a step has taught: s = Δθ, y = Δ∇f, B₀y (p,), and sᵀy."""

    step: np.ndarray
    change: np.ndarray
    image: np.ndarray
    curved: float


class End(NamedTuple):
    """Where a search ended.

    Attributes:
        theta: (p,).
        value: f.
        gradient: ∇f (p,).
        metric: The last metric, of a Hessian at or near θ.
        decrement: ½∇fᵀB∇f.
        iterations: Steps taken.
        hessians: Hessians taken.
        status: How it ended.
        step: The last step taken (p,).
        pairs: Of L-BFGS, gathered since the metric was taken.
    """

    theta: np.ndarray
    value: float
    gradient: np.ndarray
    metric: Metric
    decrement: float
    iterations: int
    hessians: int
    status: Status
    step: np.ndarray
    pairs: tuple[Pair, ...] = ()


Search = Generator[Ask, Found, End]


class _Place(NamedTuple):
    """A point of the search, B₀∇f there, and the direction out of it."""

    theta: np.ndarray
    value: float
    gradient: np.ndarray
    image: np.ndarray
    direction: np.ndarray
    decrement: float


class _Curvature:
    """B: a metric B₀ and the L-BFGS pairs gathered since it was taken.

    B₀ is applied once at each point: its images of y and of any combination of gradients follow.
    """

    def __init__(self, metric: Metric, pairs: Sequence[Pair] = ()) -> None:
        self.metric, self.pairs = metric, list(pairs)
        self.hessians = 0

    def leave(self, theta: np.ndarray, found: Found, before: _Place | None = None) -> _Place:
        """The way down from θ; where rounding has spoilt the pairs, by the metric alone."""
        if found.metric is not None and before is not None:
            self.metric, self.hessians = found.metric, self.hessians + 1
            self.pairs.clear()
            before = None
        image = self.metric.solve(found.gradient)
        if before is not None:
            self._learn(theta - before.theta, found.gradient, image, before)
        direction = self.direction(found.gradient, image)
        slope = float(found.gradient @ direction)
        if not slope < 0 and self.pairs:
            self.pairs.clear()
            direction = -image
            slope = float(found.gradient @ direction)
        decrement = max(-0.5 * slope, 0.0) if np.isfinite(slope) else np.inf
        return _Place(theta, found.value, found.gradient, image, direction, decrement)

    def _learn(
        self, step: np.ndarray, gradient: np.ndarray, image: np.ndarray, before: _Place
    ) -> None:
        """The pair of the step that led here."""
        change = gradient - before.gradient
        curved, size = float(step @ change), float(np.linalg.norm(change))
        # Below rounding the pair would tell of the noise in ∇f.
        if curved > UNIT * float(np.linalg.norm(step)) * size:
            # Of nearly equal gradients the images, in single precision perhaps, say nothing.
            near = size < CLOSE * float(np.linalg.norm(gradient))
            turned = self.metric.solve(change) if near else image - before.image
            self.pairs = [*self.pairs[1 - MEMORY :], Pair(step, change, turned, curved)]

    def direction(self, gradient: np.ndarray, image: np.ndarray) -> np.ndarray:
        """−B∇f by the two loops of L-BFGS; `image` is B₀∇f."""
        q, r, used = gradient.copy(), image.copy(), []
        for s, y, image_y, curved in reversed(self.pairs):
            share = float(s @ q) / curved
            q -= share * y
            r -= share * image_y
            used.append(share)
        if self.pairs:
            # The length B₀ gives a step, corrected by the curvature met along the last one.
            last = self.pairs[-1]
            r *= last.curved / max(float(last.change @ last.image), 1e-300)
        for (s, y, _, curved), share in zip(self.pairs, reversed(used), strict=True):
            r += (share - float(y @ r) / curved) * s
        return -r


def search(
    theta: np.ndarray, rules: Rules, metric: Metric | None = None, pairs: Sequence[Pair] = ()
) -> Search:
    """Minimise from θ; without a metric the Hessian at θ is taken first.

    Args:
        theta: Start (p,).
        rules: When to stop.
        metric: B₀, close to the inverse Hessian.
        pairs: What an earlier search has learnt in this metric.
    """
    found = yield Ask(theta, metric is None)
    first = found.metric if metric is None else metric
    if first is None:
        raise LookupError("the evaluation left out the metric it was asked for")
    curvature = _Curvature(first, pairs)
    place, before, count = curvature.leave(theta, found), np.inf, 0
    step = np.zeros_like(theta)
    while (status := _status(place, before, count, rules)) is Status.RUNNING:
        fresh = place.decrement * rules.renew > before if np.isfinite(before) else False
        moved = yield from _line(place, hessian=bool(fresh or rules.renew == np.inf))
        if moved is None:
            status = _stuck(place, rules)
            break
        to, found = moved
        step, before, count = to - theta, place.decrement, count + 1
        theta, place = to, curvature.leave(to, found, place)
    return End(
        theta,
        place.value,
        place.gradient,
        curvature.metric,
        place.decrement,
        count,
        curvature.hessians + (metric is None),
        status,
        step,
        tuple(curvature.pairs),
    )


def _status(place: _Place, before: float, count: int, rules: Rules) -> Status:
    """First rule that applies: not finite, no minimum, certified, at rounding, out of steps."""
    if not (np.isfinite(place.value) and np.isfinite(place.decrement)):
        return Status.DIVERGED
    if place.value <= rules.floor:
        return Status.SEPARATED
    certified = float(np.max(np.abs(place.gradient), initial=0.0)) <= rules.tol
    if certified and place.decrement <= rules.precision * abs(place.value):
        return Status.CONVERGED
    # f can no longer tell better from worse, and the decrease predicted has ceased to fall.
    if place.decrement <= UNIT * abs(place.value) and place.decrement * 4 > before:
        return _stuck(place, rules)
    return Status.ITERATIONS if count >= rules.max_iter else Status.RUNNING


def _stuck(place: _Place, rules: Rules) -> Status:
    certified = float(np.max(np.abs(place.gradient), initial=0.0)) <= rules.tol
    return Status.CONVERGED if certified else Status.STALLED


def _line(
    place: _Place, *, hessian: bool
) -> Generator[Ask, Found, tuple[np.ndarray, Found] | None]:
    """Backtrack from the full step until f has fallen enough; None where no step does."""
    slope, length = -2.0 * place.decrement, 1.0
    while length > SHORTEST:
        theta = place.theta + length * place.direction
        found = yield Ask(theta, hessian)
        end = float(found.gradient @ place.direction)
        if _fallen(place, found, length, slope, end):
            return theta, found
        # The zero of the slope along a straight line between both ends; convexity brackets it.
        guess = slope / (slope - end) if np.isfinite(end) and end > slope else 0.0
        length *= float(np.clip(guess, 0.1, 0.5))
    return None


def _fallen(place: _Place, found: Found, length: float, slope: float, end: float) -> bool:
    if not (np.isfinite(found.value) and np.isfinite(end)):
        return False
    if found.value <= place.value + ARMIJO * length * slope:
        return True
    # Where f differs by rounding only, its slope still tells: it must not have grown.
    close = abs(found.value - place.value) <= 64 * UNIT * abs(place.value)
    return close and abs(end) <= abs(slope)


def drive(
    evaluate: Callable[[Sequence[int], Sequence[Ask]], Sequence[Found]], searches: Sequence[Search]
) -> list[End]:
    """Run searches side by side: each call of `evaluate` answers all that are still going.

    Args:
        evaluate: evaluate(which searches, their asks) → what was found, in one pass.
        searches: Not yet started.
    """
    asks = {index: next(one) for index, one in enumerate(searches)}
    ends: dict[int, End] = {}
    while asks:
        found = evaluate(list(asks), list(asks.values()))
        going: dict[int, Ask] = {}
        for index, answer in zip(asks, found, strict=True):
            try:
                going[index] = searches[index].send(answer)
            except StopIteration as stopped:
                ends[index] = stopped.value
        asks = going
    return [ends[index] for index in range(len(searches))]
