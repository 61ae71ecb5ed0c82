"""Least squares with coefficients ≥ 0 (the intercept stays free).

The optimum solves, on its support, an unconstrained problem; off it the gradient points outward:

    w_j > 0  ⇒  x_jᵀr = αw_j ,      w_j = 0  ⇒  x_jᵀr ≤ 0 .

The active set is found on the d × d triangle (Lawson & Hanson 1974), then the support is solved
again on the data with certified digits, and both conditions are measured.
"""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from wonderland.solve.choose import Method
from wonderland.solve.direct import FAINT, solve_direct, ties_of_gram
from wonderland.solve.moments import Moments
from wonderland.solve.normal import residual_moments
from wonderland.solve.problem import Array, LeastSquares, LinearFit
from wonderland.solve.sparse import EXACT, solve_sparse, table_moments

__all__ = ["solve_nonnegative"]


def solve_nonnegative(problem: LeastSquares) -> LinearFit:
    """Solve each output by itself; claims take the worst."""
    moments = table_moments(problem)
    coef = np.stack([_one(moments, k, a) for k, a in enumerate(problem.alpha)], axis=1)
    fits = [_polish(problem, coef[:, k], k) for k in range(coef.shape[1])]
    worst = max(fits, key=lambda fit: fit.condition)
    coef = np.concatenate([fit.coef for fit in fits], axis=1)
    intercept = np.concatenate([fit.intercept for fit in fits])
    return worst._replace(
        coef=coef,
        intercept=intercept,
        inverse=None,
        rss=np.concatenate([fit.rss for fit in fits]),
        rank=len(coef) - len(ties_of_gram(moments.gram, problem.alpha)),
        gradient=_violation(problem, coef, intercept),
        error=np.concatenate([fit.error for fit in fits], axis=1),
        collinear=(),
        solver=str(Method.NON_NEGATIVE),
        reason="positive=True: active set on the d × d triangle, support solved on the data",
    )


def _one(moments: Moments, output: int, alpha: float) -> Array:
    """min wᵀ(G + αI)w − 2hᵀw over w ≥ 0, as ‖Rw − R⁻ᵀh‖ with RᵀR = G + αI."""
    gram, cross = moments.gram, moments.cross[:, output]
    diagonal = np.diag(gram) + alpha
    # A column that centring left at rounding level is constant: its coefficient is zero.
    varies = diagonal > FAINT * (diagonal + moments.mass * moments.mean_x**2)
    scale = np.where(varies, 1.0 / np.sqrt(np.where(varies, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh((gram + alpha * np.eye(len(gram))) * scale * scale[:, None])
    # Directions at rounding level hold no information: kept, they would steer the active set.
    real = values > values[-1] * len(gram) * np.finfo(float).eps
    root, vectors = np.sqrt(values[real]), vectors[:, real]
    right = (vectors.T @ (scale * cross)) / root
    return scale * nnls(root[:, None] * vectors.T, right, maxiter=30 * len(gram))[0]


def _polish(problem: LeastSquares, start: Array, output: int) -> LinearFit:
    """Lawson and Hanson's active set for output `output`, begun where `_one` ended.

    The support is solved for; a coefficient that would turn negative stops the step there and
    leaves; when none does, the column whose coefficient would most gladly grow joins. The
    objective falls with every round, so that no support comes twice.

    Reference: Lawson & Hanson, Solving Least Squares Problems (1974), chapter 23.
    """
    one = problem._replace(y=problem.y[:, [output]], alpha=problem.alpha[[output]])
    at, support, fit = _feasible(one, start, start > 0)
    for _ in range(3 * len(start)):
        eager = np.where(support, 0.0, _slack(one, at[:, None], fit.intercept)[:, 0])
        joining = np.arange(len(start)) == eager.argmax()
        if not np.any(eager > EXACT):
            break
        at, support, fit = _feasible(one, at, support | joining)
        if not np.any(support & joining):
            break  # it left at once: what asked for it was rounding
    return _spread(one, support, fit)


def _feasible(
    problem: LeastSquares, at: Array, support: np.ndarray
) -> tuple[Array, np.ndarray, LinearFit]:
    """The optimum on the largest part of `support` that a straight way from `at` reaches."""
    while True:
        kept = np.flatnonzero(support)
        fit = _solve_support(problem, kept)
        aim = np.zeros_like(at)
        aim[kept] = fit.coef[:, 0]
        blocking = support & (aim < 0)
        if not blocking.any():
            return aim, support, fit
        share = np.where(blocking, at / np.where(blocking, at - aim, 1.0), np.inf)
        support = support & (share > share.min())  # the first to reach zero leaves
        at = np.where(support, np.maximum(at + share.min() * (aim - at), 0.0), 0.0)


def _spread(problem: LeastSquares, support: np.ndarray, fit: LinearFit) -> LinearFit:
    """Coefficients and error bounds of all columns, zero outside the support."""
    kept, first = np.flatnonzero(support), int(problem.fit_intercept)
    coef = np.zeros((len(support), 1))
    error = np.zeros((problem.parameters, 1))
    coef[kept], error[first + kept], error[:first] = fit.coef, fit.error[first:], fit.error[:first]
    return fit._replace(coef=coef, error=error)


def _solve_support(problem: LeastSquares, kept: np.ndarray) -> LinearFit:
    if sp.issparse(problem.X):
        return solve_sparse(problem._replace(X=problem.X[:, kept]), EXACT, None)
    low = None if problem.low is None else problem.low[:, kept]
    wobble = None if problem.wobble is None else problem.wobble[:, :, kept]
    X = np.ascontiguousarray(problem.X[:, kept])
    return solve_direct(problem._replace(X=X, low=low, wobble=wobble))


def _violation(problem: LeastSquares, coef: Array, intercept: Array) -> float:
    """How far the two conditions above are from holding, in cosines."""
    slack = _slack(problem, coef, intercept)
    return float(np.max(np.where(coef > 0, np.abs(slack), np.maximum(slack, 0.0)), initial=0.0))


def _slack(problem: LeastSquares, coef: Array, intercept: Array) -> Array:
    """(x_jᵀΩr − αw_j) / (‖x_j‖‖y‖) (d, t): how gladly each coefficient would grow."""
    moment, _, _ = residual_moments(problem, coef, intercept)
    weight = np.ones(problem.X.shape[0]) if problem.weight is None else problem.weight
    squares = problem.X.multiply(problem.X) if sp.issparse(problem.X) else problem.X**2
    norms = np.sqrt(squares.T @ weight)[:, None] * np.sqrt(weight @ problem.y**2)
    return (moment - problem.alpha * coef) / np.where(norms > 0, norms, 1.0)
