"""From a stated logistic problem to its optimum: which solver, why, and the run.

newton        Cholesky of the whole Hessian at every step
lbfgs         L-BFGS in the metric of one Hessian taken near the optimum, for tables where a Hessian
              costs more than a few gradients; the metric is the whole Hessian, its blocks by class
              or its diagonal, the best that the size of the table allows
trust-region  conjugate gradients on Hessian products within a region that is trusted
descent       accelerated gradient descent with the step 1/L from the measured curvature

A tall table is first solved on a sample of its rows, which gives the start and the metric.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.status import Status
from wonderland.linear.logistic_curvature import Curvature, Shared, Spread, Whole
from wonderland.linear.logistic_problem import Logistic, objective, product, sweep
from wonderland.linear.logistic_single import single_of
from wonderland.solve.newton import Ask, End, Found, Pair, Rules, Search, drive, search
from wonderland.solve.newton_metric import Metric
from wonderland.solve.newton_trust import accelerated, trust_region

__all__ = ["ROUTES", "Route", "choose", "minimise", "oracle"]

# scikit-learn's names mean the family they belong to; what was run is told in the evidence.
ROUTES = {
    "auto": "auto",
    "lbfgs": "auto",
    "newton": "newton",
    "newton-cholesky": "newton",
    "newton-cg": "trust-region",
    "trust-region": "trust-region",
    "liblinear": "trust-region",
    "descent": "descent",
    "sag": "descent",
    "saga": "descent",
}
SMALL = 2e8  # multiplications of one Hessian below which Newton's method is not worth improving on
DENSE = 2500  # parameters of the widest Hessian that is factored whole
CLASS = 4000  # columns of the widest block of one class
SAMPLE = 50_000  # rows above which a sample of them comes first
SHARE = 10  # a sample is one row in so many
QUARTER = 4  # of the rows lead the way in single precision,
LEAD = 8  # for so many steps
LOOSE: dict[type[Curvature], float] = {
    Shared: 1e7
}  # precision is looser where the metric is far from the Hessian


class Route(NamedTuple):
    """A way to the optimum: the solver's name, why it was taken, what it stands on.

    Attributes:
        name: Of the solver.
        reason: Why it was taken.
        curvature: What its metric is made of.
        renew: As in `Rules`.
        sample: Take one row in so many for the start; zero for none.
        single: Whether a copy in single precision leads up to the last steps.
    """

    name: str
    reason: str
    curvature: Curvature
    renew: float = np.inf
    sample: int = 0
    single: bool = False


def choose(problem: Logistic, named: str = "auto") -> Route:
    """The route for a solver's name; "auto" goes by the size of the table."""
    family = ROUTES[named]
    metric = _metric(problem)
    if family == "newton":
        return Route("newton", f"asked for by solver={named!r}", Whole())
    if family != "auto":
        return Route(family, f"asked for by solver={named!r}", metric)
    n, p = problem.X.shape[0], problem.columns * problem.width
    cost = float(n) * p * problem.width * (problem.columns + 1) / 2
    if isinstance(metric, Whole) and cost <= SMALL:
        return Route("newton", f"a Hessian of {p} parameters costs little", metric)
    tall = not sp.issparse(problem.X) and n >= SAMPLE and isinstance(metric, Whole)
    if tall and n >= 20 * SHARE * p:
        reason = f"start and Hessian from one row in {SHARE}, then exact gradients of all rows"
        return Route("lbfgs", reason, metric, renew=4.0, sample=SHARE)
    if isinstance(metric, Shared):
        reason = f"{p} parameters: single precision in a Kronecker metric, ended in double"
        return Route("lbfgs", reason, metric, renew=0.0, single=True)
    words = "the whole Hessian" if isinstance(metric, Whole) else "its diagonal"
    reason = f"{p} parameters: L-BFGS in the metric of {words}"
    return Route("lbfgs", reason, metric, renew=4.0 if isinstance(metric, Whole) else 0.0)


def _metric(problem: Logistic) -> Curvature:
    p, sparse = problem.columns * problem.width, sp.issparse(problem.X)
    if p <= (500 if sparse else DENSE):
        return Whole()
    return Shared() if not sparse and problem.width <= CLASS else Spread()


def minimise(
    problem: Logistic,
    starts: np.ndarray,
    route: Route,
    rules: Rules,
    metrics: Sequence[Metric | None] | None = None,
) -> list[End]:
    """Run the route on all m problems from θ (m, p).

    Args:
        problem: m problems.
        starts: (m, p).
        route: From `choose`.
        rules: When to stop.
        metrics: Of Hessians near the starts, where they are known; then no sample is taken.
    """
    if route.name == "trust-region":
        searches: list[Search] = [trust_region(theta, rules) for theta in starts]
        return drive(oracle(problem, route.curvature), searches)
    if route.name == "descent":
        bounds = lipschitz(problem)
        searches = [
            accelerated(*each)
            for each in zip(starts, [rules] * len(starts), bounds.tolist(), strict=True)
        ]
        return drive(oracle(problem, route.curvature), searches)
    loose = LOOSE.get(type(route.curvature), 1.0)
    rules = rules._replace(precision=float(np.clip(loose * rules.precision, 0, 1e-5)))
    if route.single:
        begun = _single(problem, starts, route, rules)
    elif metrics is None:
        begun = _sampled(problem, starts, route, rules)
    else:
        begun = [Start(*each) for each in zip(starts, metrics, strict=True)]
    rules = rules._replace(renew=route.renew)
    if route.name == "newton":  # the last step costs little and squares the error
        rules = rules._replace(precision=min(rules.precision, 1e-3 * rules.precision**1.25))
    searches = [search(one.theta, _left(rules, one), one.metric, one.pairs) for one in begun]
    ends = drive(oracle(problem, route.curvature), searches)
    return [
        end._replace(iterations=end.iterations + one.steps)
        for end, one in zip(ends, begun, strict=True)
    ]


class Start(NamedTuple):
    """Where the last search begins: θ (p,), a metric and pairs in it, and steps taken so far."""

    theta: np.ndarray
    metric: Metric | None = None
    pairs: Sequence[Pair] = ()
    steps: int = 0


def _left(rules: Rules, begun: Start) -> Rules:
    return rules._replace(max_iter=max(rules.max_iter - begun.steps, 0))


def _single(problem: Logistic, starts: np.ndarray, route: Route, rules: Rules) -> list[Start]:
    """Steps in single precision: first on some of the rows, with the metric at the start."""
    if rules.max_iter < LEAD:
        return [Start(theta) for theta in starts]
    first = rules._replace(tol=0.0, max_iter=LEAD, renew=0.0)
    # Below these, f and ∇f in single precision are noise.
    rest = rules._replace(tol=max(rules.tol, 1e-6), precision=max(rules.precision, 1e-6), renew=0.0)
    table = single_of(problem)
    if table is not None:
        [end] = drive(
            table.part(-(-len(table.blocks) // QUARTER)).oracle(),
            [search(table.shorten(starts[0], problem), first)],
        )
        [end] = drive(table.oracle(), [search(end.theta, rest)])
        if end.status is Status.DIVERGED:  # columns beyond the range of single precision
            return [Start(starts[0])]
        theta = table.lengthen(end.theta, starts[0], problem)
        return [Start(theta, *table.learnt(end, problem), end.iterations)]
    single = problem._replace(X=problem.X.astype(np.float32))
    part = single.rows(slice(None, None, QUARTER)) if len(problem.codes) >= SAMPLE // 10 else single
    part = part._replace(X=np.ascontiguousarray(part.X))
    ends = drive(oracle(part, route.curvature), [search(theta, first) for theta in starts])
    again = [search(end.theta, rest) for end in ends]
    ends = drive(oracle(single, route.curvature), again)
    return [Start(end.theta, end.metric, end.pairs, end.iterations) for end in ends]


def _sampled(problem: Logistic, starts: np.ndarray, route: Route, rules: Rules) -> list[Start]:
    """Start and metric from one row in `route.sample`, solved well enough for a start."""
    plain = [Start(theta) for theta in starts]
    if not route.sample or rules.max_iter == 0:
        return plain
    part = problem.rows(slice(None, None, route.sample))
    part = part._replace(X=np.ascontiguousarray(part.X))
    if np.any(np.bincount(part.codes, minlength=problem.classes) == 0) or not np.all(part.mass > 0):
        return plain
    # The Newton step out of the end squares this; the sample's optimum itself is further off.
    loose = rules._replace(tol=np.inf, precision=1e-3, renew=np.inf, max_iter=20)
    starts = _first(part, starts, route, loose)
    ends = drive(oracle(part, route.curvature), [search(theta, loose) for theta in starts])
    if any(end.status.value > 4 for end in ends):
        return plain
    # The last point and its step: the Newton step out of it has been computed and costs nothing.
    return [Start(end.theta - end.metric.solve(end.gradient), end.metric) for end in ends]


def _first(part: Logistic, starts: np.ndarray, route: Route, loose: Rules) -> np.ndarray:
    """The first steps, far from the optimum, on a sample of the sample."""
    if len(part.codes) < 10 * SHARE * starts.shape[1]:  # ten rows a parameter lead most of the way
        return starts
    few = part.rows(slice(None, None, SHARE))
    few = few._replace(X=np.ascontiguousarray(few.X))
    if np.any(np.bincount(few.codes, minlength=few.classes) == 0) or not np.all(few.mass > 0):
        return starts
    rough = loose._replace(precision=1e-2)  # about how far the two samples' optima lie apart
    ends = drive(oracle(few, route.curvature), [search(theta, rough) for theta in starts])
    if any(end.status.value > 4 for end in ends):
        return starts
    return np.stack([end.theta for end in ends])


def lipschitz(problem: Logistic) -> np.ndarray:
    """L (m,): ¼ (two classes) or ½ times the trace bound λ_max(Σωx̃x̃ᵀ/Σω), plus max λ."""
    top = np.zeros(problem.fits)
    theta = np.zeros((problem.fits, problem.columns * problem.width))
    vector = np.random.default_rng(0).normal(size=theta.shape)
    # At θ = 0 every p is 1/k, so that H there times k²/4·… bounds all others (Böhning 1992).
    factor = 1.0 if problem.classes == 2 else problem.classes / 2
    bare = problem._replace(penalty=np.zeros_like(problem.penalty))
    for _ in range(30):
        vector /= np.linalg.norm(vector, axis=1)[:, None]
        image = product(bare, theta, vector)
        top = np.linalg.norm(image, axis=1)
        vector = image
    # Thirty power iterations come within a few per cent from below; the margin covers them.
    return 1.1 * factor * top + problem.penalty.max(axis=1)


def oracle(
    problem: Logistic, curvature: Curvature
) -> Callable[[Sequence[int], Sequence[Ask]], list[Found]]:
    """evaluate(which, asks) for `drive`: what several searches ask for, in one pass."""

    def evaluate(which: Sequence[int], asks: Sequence[Ask]) -> list[Found]:
        found: dict[int, Found] = {}
        for asked in (_products, _values):
            chosen = [k for k, ask in enumerate(asks) if (ask.vector is None) == (asked is _values)]
            if chosen:
                part = problem.pick([which[k] for k in chosen])
                answers = asked(part, [asks[k] for k in chosen], curvature)
                found.update(zip(chosen, answers, strict=True))
        return [found[k] for k in range(len(asks))]

    return evaluate


def _products(part: Logistic, asks: Sequence[Ask], _: Curvature) -> list[Found]:
    thetas = np.stack([ask.theta for ask in asks])
    vectors = np.stack([ask.vector for ask in asks if ask.vector is not None])
    images = product(part, thetas, vectors)
    return [Found(np.nan, theta, None, image) for theta, image in zip(thetas, images, strict=True)]


def _values(part: Logistic, asks: Sequence[Ask], curvature: Curvature) -> list[Found]:
    thetas = np.stack([ask.theta for ask in asks])
    wanted = [k for k, ask in enumerate(asks) if ask.hessian]

    def summed(X: Any, P: np.ndarray, weight: np.ndarray | None) -> Any:
        if weight is not None and weight.ndim == 2:
            weight = weight[wanted]
        return curvature.sums(X, P[wanted], weight, intercept=part.fit_intercept)

    total = sweep(part, thetas, summed if wanted else None)
    values, gradients = objective(part, thetas, total)
    metrics: list[Metric | None] = [None] * len(asks)
    for place, k in enumerate(wanted):
        metrics[k] = curvature.metric(total.hessian[place], part.pick([k]))
    return [Found(*each) for each in zip(values.tolist(), gradients, metrics, strict=True)]
