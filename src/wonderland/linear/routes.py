"""From a stated problem and a solver's name to an answer: every way least squares is solved here.

direct    measured conditioning chooses (`solve.direct`, `solve.sparse` for CSR tables)
descent   gradient descent on the second moments (`solve.descent`)
lsqr      Krylov iterations on the table itself (`solve.sparse`)
positive  active set for coefficients ≥ 0 (`solve.nonnegative`)
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.status import Status
from wonderland.solve.bounds import UNIT
from wonderland.solve.choose import Method
from wonderland.solve.descent import DescentFit, solve_descent
from wonderland.solve.direct import solve_direct, ties_of_gram
from wonderland.solve.moments import Moments
from wonderland.solve.nonnegative import solve_nonnegative
from wonderland.solve.normal import Scaled, residual_moments, scale, spread_intercept
from wonderland.solve.problem import Array, LeastSquares, LinearFit
from wonderland.solve.run import Stopping
from wonderland.solve.sparse import EXACT, solve_lsqr, solve_sparse, table_moments

__all__ = ["ROUTES", "Outcome", "Plan", "answer"]

# scikit-learn's names mean the family they belong to; what was run is told in the evidence.
ROUTES = {
    "auto": "direct",
    "direct": "direct",
    "svd": "direct",
    "cholesky": "direct",
    "descent": "descent",
    "sag": "descent",
    "saga": "descent",
    "lsqr": "lsqr",
    "sparse_cg": "lsqr",
    "lbfgs": "positive",
}


class Plan(NamedTuple):
    """How a problem is to be solved.

    Attributes:
        route: A value of `ROUTES`.
        stopping: Rules for iterative routes.
        momentum: Whether descent uses Nesterov's momentum.
        progress: Told about the state of a long iteration.
    """

    route: str
    stopping: Stopping
    momentum: bool = True
    progress: Callable[[Any], None] | None = None


class Outcome(NamedTuple):
    """An answer, how it ended, and what descent measured on the way."""

    fit: LinearFit
    status: Status = Status.SOLVED
    descent: DescentFit | None = None


def answer(problem: LeastSquares, plan: Plan) -> Outcome:
    """Solve the problem by the planned route."""
    if plan.route == "positive":
        return Outcome(solve_nonnegative(problem))
    if plan.route == "descent":
        return _descend(problem, plan)
    if plan.route == "lsqr":
        return _krylov(problem, plan.stopping)
    if sp.issparse(problem.X):
        return _ended(solve_sparse(problem, min(plan.stopping.tol, EXACT), None))
    return Outcome(solve_direct(problem))


def _krylov(problem: LeastSquares, stopping: Stopping) -> Outcome:
    table = problem if sp.issparse(problem.X) else problem._replace(X=sp.csr_array(problem.X))
    return _ended(solve_lsqr(table, stopping.tol, stopping.max_iter))


def _ended(fit: LinearFit) -> Outcome:
    if fit.iterations is None:
        return Outcome(fit)
    return Outcome(fit, Status.CONVERGED if fit.converged else Status.ITERATIONS)


def _descend(problem: LeastSquares, plan: Plan) -> Outcome:
    """Descent on the moments, certified: ‖w − w*‖ ≤ ‖∇f(w)‖/m."""
    moments = table_moments(problem)
    found = solve_descent(
        moments, problem.alpha, plan.stopping, momentum=plan.momentum, progress=plan.progress
    )
    scaled = scale(moments.gram, float(problem.alpha.min()))
    one_penalty = np.all(problem.alpha == problem.alpha[0])
    inverse = scaled.inverse() if one_penalty and scaled.root is not None else None
    ties = ties_of_gram(moments.gram, problem.alpha)
    coef, intercept = found.coef, moments.mean_y - moments.mean_x @ found.coef
    fit = LinearFit(
        coef=coef,
        intercept=intercept,
        inverse=_whole(problem, moments, inverse),
        rss=residual_moments(problem, coef, intercept)[2],
        rank=len(coef) - len(ties),
        condition=scaled.condition,
        condition_how=scaled.how,
        gradient=found.certificate,
        error=_descent_error(problem, moments, scaled, found),
        collinear=ties,
        solver=str(Method.DESCENT),
        reason="step and momentum from the measured curvature of the second moments",
        iterations=(found.iterations,) * coef.shape[1],
    )
    return Outcome(fit, found.status, found)


def _whole(problem: LeastSquares, moments: Moments, inverse: Array | None) -> Array | None:
    if inverse is None or not problem.fit_intercept:
        return inverse
    return spread_intercept(moments, inverse)


def _descent_error(
    problem: LeastSquares, moments: Moments, scaled: Scaled, found: DescentFit
) -> Array:
    """‖∇f‖/m for each slope, and what it moves the intercept by; infinite where m = 0."""
    error = np.full((problem.parameters, found.coef.shape[1]), np.inf)
    if found.strong_convexity <= 0:
        return error
    slack = moments.gram @ found.coef + problem.alpha * found.coef - moments.cross
    # The rounding of G and H enters the solution like a gradient of its own size.
    rounding = np.abs(moments.gram) @ np.abs(found.coef) + np.abs(moments.cross)
    reach = np.sqrt((slack**2).sum(axis=0)) + 64 * UNIT * np.sqrt((rounding**2).sum(axis=0))
    error[:] = reach / (found.strong_convexity * float(moments.mass))
    if problem.fit_intercept:
        error[0] *= np.sqrt((moments.mean_x**2).sum())
        error[0] += 4 * UNIT * np.abs(moments.mean_y)
    return error
