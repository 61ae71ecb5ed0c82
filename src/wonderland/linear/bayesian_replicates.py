"""Many logistic fits at once, to the same rows weighted in many ways: members of an ensemble.

    θ_m = argmin  C Σ_i ω_mi ℓ(Wx_i + b, y_i) + ½‖W‖² ,   m = 1, …, k

All start at the fit to the unweighted rows, in the metric of its Hessian, from which each weighting
differs by sampling noise alone: a few L-BFGS steps remain, and each pass over the rows serves all
members at once, as one matrix product.
"""

from typing import Any

import numpy as np

from wonderland.core.blocks import calm, map_rows
from wonderland.core.evidence import Claim, Evidence
from wonderland.linear.logistic_fit import Route, choose, minimise, oracle
from wonderland.linear.logistic_problem import Logistic, back, losses, part_of, scores
from wonderland.linear.logistic_solve import Prior, state
from wonderland.linear.model import LinearModel
from wonderland.shell.inputs import Classes
from wonderland.solve.newton import Ask, End, Rules
from wonderland.solve.newton_metric import Metric

__all__ = ["replicate"]

DIGITS = 1e-7  # of f: a member differs from the next by far more
BLOCK = 4096  # rows whose residuals, weighted in k ways, stay in the cache
CHUNK = 1 << 27  # entries of weights in memory at once


def replicate(estimator: Any, table: Classes, weights: np.ndarray) -> list[Any]:
    """Fitted estimators, one for each row of weights (k, n); `estimator` is fitted to all rows.

    Args:
        estimator: A fitted LogisticRegression without an ℓ₁ penalty.
        table: Its data; class weights in `table.weight`.
        weights: ω (k, n), beside those of the table.
    """
    own = weights if table.weight is None else weights * table.weight
    step = max(1, CHUNK // max(own.shape[1], 1))
    with calm(0.0):
        metric, start = _found(estimator, table)
        ends = [
            end
            for low in range(0, len(own), step)
            for end in _ends(estimator, table, own[low : low + step], metric, start)
        ]
    problem = _problem(estimator, table, own[:1])
    return [_member(estimator, problem, end, table) for end in ends]


def _problem(estimator: Any, table: Classes, weight: np.ndarray | None) -> Logistic:
    C = np.full(1 if weight is None else len(weight), float(estimator.C_))
    prior = None if estimator.prior is None else Prior(*estimator.prior)
    intercept = bool(estimator.fit_intercept)
    k = len(table.classes)
    return state(table.X, table.codes, k, weight, C, fit_intercept=intercept, prior=prior)


def _found(estimator: Any, table: Classes) -> tuple[Metric, np.ndarray]:
    """The metric at the fit to all rows, and the fit (p,)."""
    weight = None if table.weight is None else table.weight[None]
    problem = _problem(estimator, table, weight)
    coef = np.asarray(estimator.coef_, np.float64)
    intercept = np.broadcast_to(np.asarray(estimator.intercept_, np.float64), len(coef))
    theta = problem.join(coef, intercept)
    step = max(1, len(table.codes) // (200 * len(theta)))
    part = problem.rows(slice(None, None, step))  # the metric needs a digit, not sixteen
    part = part._replace(X=np.ascontiguousarray(part.X)) if step > 1 else problem
    found = oracle(part, choose(problem).curvature)([0], [Ask(theta, hessian=True)])[0]
    if found.metric is None:
        raise LookupError("the evaluation left out the metric it was asked for")
    return found.metric, theta


def _ends(
    estimator: Any, table: Classes, weights: np.ndarray, metric: Metric, start: np.ndarray
) -> list[End]:
    problem = _problem(estimator, table, weights)
    route = Route("lbfgs", "replicates of one fit", choose(problem).curvature)
    rules = Rules(float(estimator.tol), DIGITS, max(int(estimator.max_iter), 1))
    starts = _first_step(problem, metric, start)
    return minimise(problem, starts, route, rules, [metric] * len(weights))


def _first_step(problem: Logistic, metric: Metric, start: np.ndarray) -> np.ndarray:
    """θ − B∇F_m(θ) (k, p) from the common start, where scores and residuals are common too."""
    coef, intercept = (part[None] for part in problem.split(start))
    X, c, k = problem.X, problem.columns, problem.fits
    weight = problem.weight

    def work(low: int, high: int) -> np.ndarray:
        total = np.zeros((k, c, problem.width))
        for i in range(low, high, BLOCK):
            j = min(i + BLOCK, high)
            rows = part_of(X, i, j)
            R = losses(scores(rows, coef, intercept), problem.codes[i:j], None)[1][0]
            own = weight[:, None, i:j] * R[None]  # type: ignore[index]
            total += back(own, rows, fit_intercept=problem.fit_intercept)
        return total

    n = X.shape[0]
    slopes = np.sum(map_rows(work, n, n * k), axis=0) / problem.mass[:, None, None]
    away = coef[0] if problem.centre is None else coef[0] - problem.centre
    d = X.shape[1]
    slopes[..., :d] += away * problem.penalty[:, None, :]
    return np.stack([start - metric.solve(slope.ravel()) for slope in slopes])


def _member(estimator: Any, problem: Logistic, end: End, table: Classes) -> Any:
    """The estimator with other coefficients and its own evidence."""
    coef, intercept = (part.astype(table.dtype) for part in problem.split(end.theta))
    two = len(coef) == 1
    member = type(estimator)(**estimator.get_params(deep=False))
    member.__dict__.update(vars(estimator))
    member.__dict__.pop("_spread", None)
    slope = float(np.max(np.abs(end.gradient), initial=0.0))
    meaning = "largest entry of the gradient of the objective divided by C Σω"
    member.__dict__.update(
        coef_=coef,
        intercept_=intercept,
        n_iter_=np.array([end.iterations], dtype=np.int32),
        model_=LinearModel(*((coef[0], intercept[0]) if two else (coef, intercept))),
        status_=end.status,
        evidence_=Evidence(
            [
                Claim.fact("solver", "lbfgs", "fitted together with other members"),
                Claim.below("gradient_norm", slope, float(estimator.tol), meaning),
                Claim.fact("iterations", end.iterations, "steps of the solver over all rows"),
            ]
        ),
    )
    return member
