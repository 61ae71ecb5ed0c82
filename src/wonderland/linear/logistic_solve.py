"""One logistic regression, start to proof: from numbers to a `Report`."""

from typing import Any, NamedTuple

import numpy as np

from wonderland.core.blocks import calm
from wonderland.core.status import Status
from wonderland.linear.logistic_certificate import certify
from wonderland.linear.logistic_evidence import Report
from wonderland.linear.logistic_fit import choose, minimise
from wonderland.linear.logistic_problem import Logistic, scores
from wonderland.linear.logistic_separation import judge
from wonderland.solve.newton import Rules

__all__ = ["Prior", "Wish", "regress", "rules_of", "state"]


class Prior(NamedTuple):
    """w_j ~ N(μ_j, 1/precision_j): the penalty ½ Σ precision (w − μ)² in place of ½‖w‖².

    Attributes:
        mean: Scalar, (d,) or (c, d).
        precision: Scalar or (d,), ≥ 0.
    """

    mean: Any = 0.0
    precision: Any = 1.0


class Wish(NamedTuple):
    """How to solve: solver name, bound on the certificate, most steps, start W (c, d), b (c,)."""

    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int = 100
    start: tuple[np.ndarray, np.ndarray] | None = None


def state(
    X: Any,
    codes: np.ndarray,
    classes: int,
    weight: np.ndarray | None,
    C: Any,
    *,
    fit_intercept: bool,
    prior: Prior | None = None,
) -> Logistic:
    """The problem for one C, or for several (m,) that share passes."""
    d, Cs = X.shape[1], np.atleast_1d(np.asarray(C, dtype=np.float64))
    mass = float(len(codes)) if weight is None else weight.sum(axis=-1)
    prior = Prior() if prior is None else prior
    precision = np.broadcast_to(np.asarray(prior.precision, dtype=np.float64), (d,))
    strength = 1.0 / (Cs * mass)
    centre = np.asarray(prior.mean, dtype=np.float64)
    columns = 1 if classes == 2 else classes
    return Logistic(
        X,
        codes,
        classes,
        weight,
        strength[:, None] * precision,
        np.broadcast_to(centre, (columns, d)) if centre.any() else None,
        fit_intercept,
    )


def regress(problem: Logistic, C: float, wish: Wish) -> Report:
    """Solve one problem and prove it."""
    route = choose(problem, wish.solver)
    start = _start(problem, wish)
    with calm(0.0):  # BLAS threads that wait for work would take cores from those that share rows
        ends = minimise(problem, start[None], route, rules_of(problem, wish.tol, wish.max_iter))
    return _proved(problem, ends[0], C, route.name, route.reason)


def rules_of(problem: Logistic, tol: float, max_iter: int) -> Rules:
    """When to stop: f within rounding of its minimum costs a pass or two more than `tol` does."""
    weight = problem.weight
    least = 1.0 if weight is None else float(weight[weight > 0].min())
    # Σωℓ below ω_min·log 2 means that every sample has p > ½: the classes are separated.
    floor = -np.inf if problem.penalty.any() else least * np.log(2.0) / float(problem.mass[0])
    precision = float(np.clip(1e-4 * tol**2, 1e-20, 1e-12))
    return Rules(tol, precision, max_iter, floor=floor)


def _start(problem: Logistic, wish: Wish) -> np.ndarray:
    """θ (p,): zero, or a warm start, moved to sum to zero over classes where nothing tells."""
    if wish.start is None:
        return np.zeros(problem.columns * problem.width)
    coef, intercept = (np.asarray(part, dtype=np.float64).copy() for part in wish.start)
    if problem.columns > 1:
        intercept -= intercept.mean()
        undetermined = problem.penalty[0] == 0
        coef[:, undetermined] -= coef[:, undetermined].mean(axis=0)
    return problem.join(coef, intercept)


def _proved(problem: Logistic, end: Any, C: float, name: str, reason: str) -> Report:
    coef, intercept = problem.split(end.theta)
    Z = scores(problem.X, coef[None], intercept[None])[0]
    proof = certify(problem, end, Z)
    verdict = judge(problem, end, proof, at=Z)
    if not problem.penalty.any() and (verdict.separable or verdict.weakly):
        end = end._replace(status=Status.SEPARATED)
    return Report(problem, end, proof, verdict, name, reason, C)
