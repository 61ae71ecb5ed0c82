"""The ℓ₁ norm and elastic net, handed to the proximal Newton solver of `solve.sparse_newton`."""

from typing import Any, NamedTuple

import numpy as np

from wonderland.core.status import Status
from wonderland.linear.logistic_certificate import Certificate, least_margin
from wonderland.linear.logistic_check import l1_share
from wonderland.linear.logistic_evidence import Report
from wonderland.linear.logistic_problem import losses, scores
from wonderland.linear.logistic_separation import judge
from wonderland.linear.logistic_solve import Wish, state
from wonderland.shell.inputs import Classes
from wonderland.solve.newton import End
from wonderland.solve.newton_metric import Diagonal

__all__ = ["regress_sparse"]

CHEAP = 1_000_000  # entries of a table that is solved to rounding level
LOOSE = 1e-5  # relative gap above which a fit that stalled is told as one that fell short


class _Start(NamedTuple):
    coef: np.ndarray
    intercept: np.ndarray


def regress_sparse(model: Any, table: Classes, wish: Wish) -> Report:
    """Fit with λ₁ = l1_ratio and λ₂ = 1 − l1_ratio beside C Σωℓ, and report as for L2."""
    from wonderland.solve.sparse_newton import solve_l1  # only where it is asked

    share, k = l1_share(model), len(table.classes)
    found = solve_l1(
        table.X,
        2.0 * table.codes - 1.0 if k == 2 else table.codes,
        table.weight,
        float(model.C),
        share,
        bool(model.fit_intercept),
        None if wish.start is None else _Start(*wish.start),
        _gap(table, wish),
        wish.max_iter,
        loss="logistic" if k == 2 else "softmax",
    )
    problem = state(
        table.X, table.codes, k, table.weight, model.C, fit_intercept=bool(model.fit_intercept)
    )
    unit = float(problem.mass[0]) * float(model.C)
    theta = problem.join(found.coef, found.intercept)
    Z = scores(problem.X, found.coef[None], found.intercept[None])[0]
    loss = float(losses(Z[None], table.codes, table.weight)[0][0]) / float(problem.mass[0])
    proof = Certificate(
        loss, found.primal / unit, found.dual / unit, *least_margin(Z, table.codes, table.weight)
    )
    end = End(
        theta,
        proof.primal,
        np.array([found.gradient_norm / unit]),
        Diagonal(np.zeros_like(theta)),
        0.5 * found.duality_gap / unit,
        found.iterations,
        0,
        _status(found),
        np.zeros_like(theta),
    )
    verdict = judge(problem, end, proof, at=Z)
    reason = f"proximal Newton on working sets: the penalty has an ℓ₁ share of {share:g}"
    return Report(problem, end, proof, verdict, "sparse-newton", reason, float(model.C))


def _gap(table: Classes, wish: Wish) -> float:
    """The relative gap asked for: where steps cost little, down to where coefficients settle."""
    return min(1e-14 if np.prod(table.X.shape) <= CHEAP else 1e-8, wish.tol)


def _status(found: Any) -> Status:
    """A search that stalled far above its lower bound has not reached the standard."""
    short = found.duality_gap > LOOSE * max(found.primal, 1e-300)
    return Status.ITERATIONS if found.status is Status.STALLED and short else found.status
