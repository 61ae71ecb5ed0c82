"""Sparse tables: second moments without densifying, LSQR where even those are too large."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from wonderland.solve.choose import GRAM, Method
from wonderland.solve.direct import moments_sound, solve_direct, solve_levels
from wonderland.solve.moments import Moments, host_moments
from wonderland.solve.normal import scale
from wonderland.solve.problem import Array, LeastSquares, LinearFit

__all__ = ["EXACT", "solve_lsqr", "solve_sparse", "sparse_moments", "table_moments"]

WIDE = 3000  # columns up to which the d × d Gram matrix is formed
EXACT = 1e-12  # what a direct solver asks of LSQR on a table too large for anything direct
OUT_OF_STEPS = 7  # LSQR's reason for stopping at the iteration limit
DENSE = 1 << 27  # entries (1 GB) up to which an ill-conditioned table is densified


def solve_sparse(problem: LeastSquares, tol: float, max_iter: int | None) -> LinearFit:
    """Solve for CSR X: Gram where it is small and sound, dense QR where that fits, else LSQR."""
    n, d = problem.X.shape
    if d <= min(n, WIDE):
        moments = sparse_moments(problem)
        scaled = scale(moments.gram, float(problem.alpha.min()))
        if moments_sound(moments) and scaled.condition <= GRAM:
            return solve_levels(problem, moments, corrected=True)
    if n * d <= DENSE:
        return solve_direct(problem._replace(X=problem.X.toarray()))
    return solve_lsqr(problem, tol, max_iter)


def table_moments(problem: LeastSquares) -> Moments:
    """Second moments of a dense or a sparse table."""
    return sparse_moments(problem) if sp.issparse(problem.X) else host_moments(problem)


def sparse_moments(problem: LeastSquares) -> Moments:
    """The moments of `solve.moments` from a sparse product; centring is done on d × d numbers."""
    X, y = problem.X, problem.y
    weight = np.ones(X.shape[0]) if problem.weight is None else problem.weight
    mass, keep = weight.sum(), float(problem.fit_intercept)
    mean_x, mean_y = keep * (X.T @ weight) / mass, keep * (weight @ y) / mass
    scaled = X.multiply(weight[:, None]).tocsr()
    gram = (scaled.T @ X).toarray() - mass * np.outer(mean_x, mean_x)
    cy = y - mean_y
    power = np.einsum("i,it,it->t", weight, cy, cy)
    return Moments(mass, mean_x, mean_y, gram, scaled.T @ cy, power)


def solve_lsqr(problem: LeastSquares, tol: float, max_iter: int | None) -> LinearFit:
    """LSQR (Paige & Saunders 1982) on the implicitly centred and weighted table."""
    X, y = problem.X, problem.y
    n, d = X.shape
    weight = np.ones(n) if problem.weight is None else problem.weight
    root, keep = np.sqrt(weight), float(problem.fit_intercept)
    mean_x, mean_y = keep * (X.T @ weight) / weight.sum(), keep * (weight @ y) / weight.sum()
    table = spl.LinearOperator(
        (n, d),
        matvec=lambda v: root * (X @ v - mean_x @ v),
        rmatvec=lambda u: X.T @ (root * u) - mean_x * (root @ u),
        dtype=np.float64,
    )
    target = root[:, None] * (y - mean_y)
    runs = [
        spl.lsqr(table, b, damp=np.sqrt(a), atol=tol, btol=tol, iter_lim=max_iter)
        for a, b in zip(problem.alpha, target.T, strict=True)
    ]
    coef = np.stack([run[0] for run in runs], axis=1)
    residual = target - np.stack([table.matvec(w) for w in coef.T], axis=1)
    slack = np.stack([table.rmatvec(r) for r in residual.T], axis=1) - problem.alpha * coef
    return LinearFit(
        coef=coef,
        intercept=mean_y - mean_x @ coef,
        inverse=None,
        rss=(residual**2).sum(axis=0),
        rank=min(n - int(problem.fit_intercept), d),  # at most: LSQR does not measure it
        condition=float(max(run[6] for run in runs)),
        condition_how="LSQR's running estimate",
        gradient=_cosine(slack, table, target, weight, X),
        error=np.full((problem.parameters, y.shape[1]), np.inf),
        collinear=(),
        solver=str(Method.LSQR),
        reason=f"{n} × {d} is too large for a Gram matrix or a dense factorisation",
        iterations=tuple(int(run[2]) for run in runs),
        converged=all(run[1] != OUT_OF_STEPS for run in runs),
    )


def _cosine(slack: Array, table: spl.LinearOperator, target: Array, weight: Array, X: Any) -> float:
    """Largest |x_jᵀr| / (‖x_j‖‖y‖)."""
    norms = np.sqrt(np.asarray(X.multiply(X).T @ weight)).reshape(-1, 1)
    norms = norms * np.sqrt((target**2).sum(axis=0))
    return float(np.max(np.abs(slack) / np.where(norms > 0, norms, 1.0), initial=0.0))
