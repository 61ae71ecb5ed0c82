"""Logistic regression on more rows than memory holds: one pass for each step.

The objective, its gradient and its Hessian are sums over rows, so that a pass over the chunks gives
what Newton's method asks for; wide problems take L-BFGS in a metric summed in the first pass, or
conjugate gradients with a pass for each product. A sample of the rows gives the start. What proves
the fit (dual, margins) is summed in the last pass, one Newton step further.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.blocks import calm
from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim
from wonderland.core.status import Status
from wonderland.linear.logistic_certificate import Certificate, least_margin
from wonderland.linear.logistic_check import l1_share, loss_weight
from wonderland.linear.logistic_curvature import Curvature, Shared, Whole
from wonderland.linear.logistic_evidence import Report
from wonderland.linear.logistic_fit import CLASS, DENSE, ROUTES, choose, minimise, objective
from wonderland.linear.logistic_problem import Logistic, Total, product, scores, sweep
from wonderland.linear.logistic_separation import FAR, Verdict
from wonderland.linear.logistic_solve import Prior, rules_of, state
from wonderland.shell.rows import Rows
from wonderland.solve.newton import Ask, End, Found, Rules, drive, search
from wonderland.solve.newton_metric import Dense
from wonderland.solve.newton_trust import trust_region

__all__ = ["regress_rows"]

BALANCED = 1e-12  # of Σω: residuals that sum to less are a point of the dual


class _Shape(NamedTuple):
    """Stands for the table where only its size is asked."""

    shape: tuple[int, int]


class _Passes:
    """Sums over all rows of one problem.

    Attributes:
        problem: Its numbers; X has a shape only.
        curvature: What the metric is made of.
        count: Passes made.
    """

    def __init__(self, rows: Rows, problem: Logistic, curvature: Curvature) -> None:
        self.rows, self.problem, self.curvature = rows, problem, curvature
        self.count = 0

    def summed(self, work: Callable[[Logistic], Any]) -> Any:
        """Σ work(chunk)."""
        self.count += 1
        total = None
        for X, codes, weight in self.rows.chunks():
            found = work(self.problem._replace(X=X, codes=codes, weight=weight))
            total = found if total is None else total + found
        return total

    def evaluate(self, which: Sequence[int], asks: Sequence[Ask]) -> list[Found]:
        """What the search asks for (see `solve.newton.drive`)."""
        ask = asks[0]
        return [self._value(ask) if ask.vector is None else self._product(ask)]

    def _value(self, ask: Ask) -> Found:
        total = self.at(ask.theta, hessian=ask.hessian)
        value, gradient = objective(self.problem, ask.theta[None], total)
        metric = self.curvature.metric(total.hessian[0], self.problem) if ask.hessian else None
        return Found(float(value[0]), gradient[0], metric)

    def at(self, theta: np.ndarray, *, hessian: bool) -> Total:
        """Sums at θ."""
        free = self.problem.fit_intercept

        def curved(X: Any, P: np.ndarray, weight: np.ndarray | None) -> Any:
            return self.curvature.sums(X, P, weight, intercept=free)

        total = self.summed(lambda part: sweep(part, theta[None], curved if hessian else None))
        if not isinstance(total, Total):
            raise TypeError("a pass sums to a Total")
        return total

    def _product(self, ask: Ask) -> Found:
        theta, vector = ask.theta[None], np.asarray(ask.vector)[None]
        bare = np.zeros_like(self.problem.penalty)
        image = self.summed(
            lambda part: product(part._replace(penalty=bare), theta, vector) * part.mass[:, None]
        )
        coef, intercept = self.problem.split(vector)
        pull = self.problem.join(coef * self.problem.penalty[:, None], np.zeros_like(intercept))
        return Found(np.nan, ask.theta, None, (image / self.problem.mass[:, None] + pull)[0])


def regress_rows(model: Any, rows: Rows) -> tuple[Report, list[Claim]]:
    """Solve, prove, and say how many passes it took."""
    _refuse(model)
    C = loss_weight(model)
    prior = None if model.prior is None else Prior(*model.prior)
    problem, first = _stated(model, rows, C, prior)
    family, p = ROUTES[str(model.solver)], problem.columns * problem.width
    narrow = p <= DENSE
    wide = Shared() if problem.width <= CLASS else choose(problem).curvature
    passes = _Passes(rows, problem, Whole() if narrow else wide)
    rules = rules_of(first, float(model.tol), int(model.max_iter))
    # Σℓ below log 2 means that every sample has p > ½; weights of all rows are not known.
    even = rows.sample.weight is None and not problem.penalty.any()
    rules = rules._replace(floor=np.log(2.0) / float(problem.mass[0]) if even else -np.inf)
    start = _sampled(first, rules)
    with calm(0.0):
        if not narrow and family == "trust-region":
            name, reason = family, f"{p} parameters: a pass for each Hessian product"
            run = trust_region(start, rules)
        elif narrow:
            name, reason = "newton", f"a Hessian of {p} parameters, summed in each pass"
            sharp = min(rules.precision, 1e-3 * rules.precision**1.25)
            run = search(start, rules._replace(renew=np.inf, precision=sharp))
        else:
            name, reason = "lbfgs", f"{p} parameters: L-BFGS in a metric from the first pass"
            run = search(start, rules)
        end = drive(passes.evaluate, [run])[0]
        end, proof = _proved(passes, end)
    verdict = _judged(problem, end, proof)
    if not problem.penalty.any() and verdict.separable:
        end = end._replace(status=Status.SEPARATED)
    passed = Claim.fact("passes", passes.count, "over all rows, after the first")
    reason = f"more rows than are held in memory; {reason}"
    return Report(problem, end, proof, verdict, name, reason, C), [passed]


def _refuse(model: Any) -> None:
    if l1_share(model):
        raise InputError(
            f"penalty={model.penalty!r}, l1_ratio={model.l1_ratio!r} for data in chunks",
            "the ℓ₂ penalty or none; the ℓ₁ norm works on columns, which chunks cut",
            "Pass l1_ratio=0, or a table in memory",
        )
    if isinstance(model.C, str) and model.penalty is not None:
        raise InputError(
            f"C={model.C!r} for data in chunks",
            "a number: left-out losses are computed in memory",
            "Tune C on a sample of the rows, then pass it",
        )


def _stated(model: Any, rows: Rows, C: float, prior: Prior | None) -> tuple[Logistic, Logistic]:
    """The problem over all rows, and over the sample with the weights of all."""
    held, k = rows.sample, 0 if rows.classes is None else len(rows.classes)
    weight = held.factor if held.weight is None else held.factor * held.weight
    intercept = bool(model.fit_intercept)
    sample = state(held.X, held.y, k, weight, C, fit_intercept=intercept, prior=prior)
    mass = np.array([float(rows.mass.sum())])
    whole = sample._replace(
        X=_Shape((rows.size, held.X.shape[1])),
        weight=mass,
        penalty=sample.penalty * (sample.mass[0] / mass[0]),
    )
    return whole, sample


def _sampled(sample: Logistic, rules: Rules) -> np.ndarray:
    """θ (p,) of the sample; zero where its classes are separated, or one has no weight."""
    zero = np.zeros(sample.columns * sample.width)
    mass = np.bincount(sample.codes, sample.weight, sample.classes)
    if rules.max_iter == 0 or np.any(mass == 0):
        return zero
    loose = rules._replace(tol=np.inf, precision=1e-3)
    with calm(0.0):
        end = minimise(sample, zero[None], choose(sample), loose)[0]
    sound = end.status in (Status.CONVERGED, Status.STALLED) and np.isfinite(end.theta).all()
    return end.theta if sound else zero


class _Lead(NamedTuple):
    """Sums, and the least and largest lead of the own class."""

    total: Total
    least: float
    most: float

    def __add__(self, other: Any) -> "_Lead":
        least, most = min(self.least, other.least), max(self.most, other.most)
        return _Lead(self.total + other.total, least, most)


def _proved(passes: _Passes, end: End) -> tuple[End, Certificate]:
    """The last pass: at the Newton step out of the end, unless that leads up."""
    problem, theta = passes.problem, end.theta
    if isinstance(end.metric, Dense) and end.status in (Status.CONVERGED, Status.STALLED):
        theta = theta - end.metric.solve(end.gradient)
    found = _led(passes, theta)
    value, gradient = objective(problem, theta[None], found.total)
    if not value[0] <= end.value + 1e-14 * abs(end.value) and theta is not end.theta:
        theta, found = end.theta, _led(passes, end.theta)
        value, gradient = objective(problem, theta[None], found.total)
    end = end._replace(theta=theta, value=float(value[0]), gradient=gradient[0])
    loss = float(found.total.loss[0]) / float(problem.mass[0])
    dual = _dual(problem, theta, found.total)
    if np.isinf(dual) and problem.penalty.all():
        level = _levelled(passes, theta)
        dual = _dual(problem, level, passes.at(level, hessian=False))
    return end, Certificate(loss, end.value, dual, found.least, found.most)


def _levelled(passes: _Passes, theta: np.ndarray) -> np.ndarray:
    """θ with its intercepts moved by a Newton step, so that residuals sum to (nearly) zero."""
    problem, d = passes.problem, passes.problem.X.shape[1]

    def curved(_: Any, P: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        share = P[0] if weight is None else P[0] * weight
        A = np.diag(share.sum(axis=1)) - share @ P[0].T
        return (share * (1.0 - P[0])).sum(axis=1).reshape(1, 1, 1) if len(A) == 1 else A[None]

    total = passes.summed(lambda part: sweep(part, theta[None], curved))
    t = np.linalg.lstsq(total.hessian[0], total.gradient[0][:, d])[0]
    table = theta.reshape(problem.columns, problem.width).copy()
    table[:, d] -= t
    return table.ravel()


def _led(passes: _Passes, theta: np.ndarray) -> _Lead:
    coef, intercept = passes.problem.split(theta)

    def work(part: Logistic) -> _Lead:
        weight = part.weight
        least, most = np.inf, -np.inf
        if weight is None or np.any(weight > 0):
            Z = scores(part.X, coef[None], intercept[None])[0]
            least, most = least_margin(Z, part.codes, weight)
        return _Lead(sweep(part, theta[None]), least, most)

    found = passes.summed(work)
    if not isinstance(found, _Lead):
        raise TypeError("a pass sums to a lead")
    return found


def _dual(problem: Logistic, theta: np.ndarray, total: Total) -> float:
    """D at the residuals: their sums are in the gradient, and Σ r·z = θ·Σ r x̃."""
    mass, d = float(problem.mass[0]), problem.X.shape[1]
    if not problem.penalty.all():
        return -np.inf
    G = total.gradient[0] / mass
    if problem.fit_intercept and np.abs(G[:, d:]).max() > BALANCED:
        return -np.inf
    table = theta.reshape(problem.columns, problem.width)
    dual = float(total.loss[0]) / mass - float(np.vdot(table, G))
    slopes = G[:, :d]
    dual -= 0.5 * float((slopes**2 / problem.penalty[0]).sum())
    return dual if problem.centre is None else dual + float(np.vdot(slopes, problem.centre))


def _judged(problem: Logistic, end: End, proof: Certificate) -> Verdict:
    own = end.theta.reshape(problem.columns, problem.width)
    if proof.margin > 0:
        meaning = "proved by the fit itself: every sample scores highest for its own class"
        return Verdict(meaning, separable=True, direction=own)
    sound = end.status in (Status.CONVERGED, Status.STALLED)
    if not problem.penalty.any() and sound and proof.extreme < FAR:
        meaning = "proved by the residuals, weights under which the classes meet: see gradient_norm"
        return Verdict(meaning, separable=False)
    return Verdict("not decided: this fit does not separate; another plane might", separable=None)
