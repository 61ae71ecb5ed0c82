"""The equation of kernel least squares, (K + αΩ⁻¹) a = y, solved with what it proves.

    minimise over f = Σ_i a_i k(x_i, ·):   P(f) = Σ_i ω_i (y_i − f(x_i))² + α‖f‖²

With S = √Ω, M = SKS + αI and a = Sb the equation is M b = Sy. The dual of P is
D(a) = 2α aᵀy − α aᵀKa − α² aᵀΩ⁻¹a, and what an inexact b leaves between them is the residual alone:

    P − D = ‖Sy − M b‖² .

Leaving out sample i changes its prediction to y_i − e_i with √ω_i e_i = b_i / (M⁻¹)_ii, exactly, so
that one triangle gives the fit, its leave-one-out error and its degrees of freedom n − α tr M⁻¹.
M is factored where it lies: Cholesky needs one triangle, the other keeps M for the residuals.
Shapes: K (n, n), y (n, t), ω (n,), α (t,).
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
from scipy.linalg import blas, lapack

from wonderland.core.errors import InputError
from wonderland.solve.problem import Array

__all__ = ["ShiftedFit", "solve_shifted"]

EPS = float(np.finfo(np.float64).eps)
ROUNDS = 2  # corrections on the residual
WORTH = 1e8  # condition number from which residuals are summed in extended precision
STRIP = 256  # rows worked on together
SLACK = 8.0  # units of n·ε·‖K‖ that a zero eigenvalue may come out at


class ShiftedFit(NamedTuple):
    """What was found, per output where an output has its own.

    Attributes:
        dual: a (n, t).
        error: √ω e, weighted leave-one-out residuals (n, t).
        freedom: Effective degrees of freedom, tr(SKS M⁻¹) (t,).
        condition: 1-norm condition number of M, estimated; the largest over α.
        gradient: Largest |Sy − M b| relative to the largest |Sy|.
        primal: P (t,).
        gap: P − D (t,).
        solver: Name of the method.
        reason: Why it was chosen: one sentence.
    """

    dual: Array
    error: Array
    freedom: Array
    condition: float
    gradient: float
    primal: Array
    gap: Array
    solver: str
    reason: str


class _Answer(NamedTuple):
    b: Array
    spare: Array  # diagonal of M⁻¹ (n,)
    freedom: float
    residual: Array
    condition: float
    solver: str


def solve_shifted(K: Array, y: Array, weight: Array | None, alpha: Array) -> ShiftedFit:
    """Solve for every output; outputs of equal α share one factorisation. K is overwritten.

    Args:
        K: Symmetric (n, n), C-ordered.
        y: (n, t).
        weight: ω (n,) ≥ 0, or None for ones.
        alpha: (t,) ≥ 0.

    >>> fit = solve_shifted(np.eye(2), np.array([[2.0], [4.0]]), None, np.ones(1))
    >>> fit.dual.ravel().round(12), round(fit.freedom.item(), 12)
    (array([1., 2.]), 1.0)
    """
    root = None if weight is None else np.sqrt(weight)[:, None]
    right = y if root is None else root * y
    if root is not None:
        K *= root
        K *= root.T
    levels = np.unique(alpha)
    dual, error = np.empty_like(right), np.empty_like(right)
    freedom, primal, gap = (np.empty(len(alpha)) for _ in range(3))
    answers = []
    for count, level in enumerate(levels):
        here = np.flatnonzero(alpha == level)
        last = count == len(levels) - 1
        found = _solve(K if last else K.copy(), right[:, here], float(level))
        answers.append(found)
        dual[:, here] = found.b if root is None else root * found.b
        error[:, here] = found.b / found.spare[:, None]
        freedom[here] = found.freedom
        primal[here], gap[here] = _values(found, right[:, here], float(level))
    worst = max(answers, key=lambda answer: answer.condition)
    largest = float(np.abs(right).max(initial=0.0))
    slack = max(float(np.abs(answer.residual).max(initial=0.0)) for answer in answers)
    return ShiftedFit(
        dual,
        error,
        freedom,
        worst.condition,
        slack / largest if largest else slack,
        primal,
        gap,
        worst.solver,
        _REASONS[worst.solver],
    )


_REASONS = {
    "cholesky": "K + αΩ⁻¹ is positive definite; two corrections on the residual",
    "eigenvalues": "K + αΩ⁻¹ is singular to rounding: the shortest of all solutions",
}


def _values(found: _Answer, right: Array, alpha: float) -> tuple[Array, Array]:
    """P and P − D per output, from b and its residual."""
    b, residual = found.b, found.residual
    misfit = ((alpha * b + residual) ** 2).sum(axis=0)
    norm = np.maximum((b * (right - residual - alpha * b)).sum(axis=0), 0.0)
    return misfit + alpha * norm, (residual**2).sum(axis=0)


def _solve(M: Array, right: Array, alpha: float) -> _Answer:
    """M b = right for M = SKS + αI, which is made and factored in place."""
    n = len(M)
    flat = M.reshape(-1)[:: n + 1]
    flat += alpha
    diagonal = flat.copy()
    norm = _one_norm(M)
    # In Fortran's eyes M.T lies in its own order: its lower triangle is factored, the upper stays.
    triangle, failed = lapack.dpotrf(M.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        M = _restored(triangle, diagonal)
        return _solve_singular(M, right, norm, alpha)
    inverse_condition, _ = lapack.dpocon(triangle, norm, uplo="L")
    if inverse_condition < (EPS if alpha else n * EPS):
        return _solve_singular(_restored(triangle, diagonal), right, norm, alpha)
    b = np.asfortranarray(right)
    b = lapack.dpotrs(triangle, b, lower=1)[0]
    times = _times if inverse_condition * WORTH > 1.0 else _long_times
    for _ in range(ROUNDS):
        residual = np.asfortranarray(right - times(triangle, diagonal, b), np.float64)
        b = b + lapack.dpotrs(triangle, residual, lower=1)[0]
    residual = np.asarray(right - times(triangle, diagonal, b), np.float64)
    inverse, _ = lapack.dtrtri(triangle, lower=1, overwrite_c=1)
    spare = _column_squares(inverse)
    freedom = n - alpha * float(spare.sum())
    return _Answer(b, spare, freedom, residual, 1.0 / inverse_condition, "cholesky")


def _times(triangle: Array, diagonal: Array, b: Array) -> Array:
    """M b, M taken from the triangle above the factor and its own diagonal."""
    product = blas.dsymm(1.0, triangle, b, side=0, lower=0)
    return product + (diagonal - triangle.diagonal())[:, None] * b


def _long_times(triangle: Array, diagonal: Array, b: Array) -> Any:
    """The same in extended precision, strip by strip: b is large where M is nearly singular."""
    wide = b.astype(np.longdouble)
    product = diagonal[:, None] * wide
    for i in range(0, len(b), STRIP):
        strip = np.triu(triangle[i : i + STRIP, i:], 1).astype(np.longdouble)
        product[i : i + STRIP] += strip @ wide[i:]
        product[i:] += strip.T @ wide[i : i + STRIP]
    return product


def _restored(triangle: Array, diagonal: Array) -> Array:
    M = np.triu(triangle, 1)
    M += M.T
    np.fill_diagonal(M, diagonal)
    return M


def _one_norm(M: Array) -> float:
    strips = [np.abs(M[i : i + STRIP]).sum(axis=1) for i in range(0, len(M), STRIP)]
    return float(np.concatenate(strips).max())


def _column_squares(lower: Array) -> Array:
    """diag(L⁻ᵀL⁻¹): squared lengths of the columns of a lower triangle in Fortran's order."""
    rows, n = lower.T, len(lower)
    total = np.empty(n)
    for i in range(0, n, STRIP):
        strip = np.triu(rows[i : i + STRIP, i:])
        total[i : i + STRIP] = np.einsum("ij,ij->i", strip, strip)
    return total


def _solve_singular(M: Array, right: Array, norm: float, alpha: float) -> _Answer:
    """By eigenvalues: those at rounding level count as zero, clearly negative ones are refused."""
    values, vectors = sl.eigh(M, check_finite=False)
    floor = SLACK * len(M) * EPS * norm
    if values[0] < -floor:
        refuse_indefinite(vectors[:, 0], float(values[0]), alpha)
    # With a penalty no eigenvalue is truly below it; without one, rounding level means zero.
    values = np.maximum(values, alpha)
    kept = values > (0.0 if alpha else floor)
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    b = vectors @ (inverse[:, None] * (vectors.T @ right))
    # As the shift goes to zero the quotient b/spare is that of the eigenvalues held at the floor.
    held = np.maximum(values, floor)
    spare = (vectors**2) @ (1.0 / held)
    freedom = float(((values - alpha) * inverse).sum())
    return _Answer(b, spare, freedom, right - M @ b, float("inf"), "eigenvalues")


def refuse_indefinite(witness: Array, value: float, alpha: float) -> Any:
    """Say that the kernel is none, with what shows it."""
    largest = np.argsort(-np.abs(witness))[:3]
    shown = ", ".join(f"{witness[i]:+.3g} on row {i}" for i in largest)
    raise InputError(
        f"the kernel matrix is not positive semi-definite: αᵀKα = {value - alpha:.4g} for a unit "
        f"vector α, largest entries {shown}; with alpha={alpha:g} the objective has no minimum",
        "a kernel that meets Mercer's condition",
        "wl.kernels.mercer(kernel, X) gives the whole witness; choose a Gaussian, Laplace, Matern "
        "or polynomial kernel with coef0 ≥ 0, or a larger alpha",
    )
