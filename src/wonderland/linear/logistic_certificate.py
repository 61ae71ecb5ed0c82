"""What proves a logistic fit: its Fenchel dual, and whether the classes can be separated at all.

    D(g) = −Σ_i s_i ℓ*(g_i) − ½ Σ_j (Σ_i s_i g_i x_ij)²/λ_j + μᵀΣ s g x ,   Σ_i s_i g_i = 0

with −ℓ*(g) = ℓ(z) − gᵀz at any z whose residual p(z) − y is g. Residuals of the fit itself break
the condition by a little; moving every score by the same t repairs it, with t from Newton's
method on the scores alone. Where nothing is penalised the condition binds every column; there the
residuals are corrected along one Newton step, g − (diag p − ppᵀ)Xδ, and the dual is given only if
these stay probabilities.

Shapes: scores Z (c, n), x̃ = [x, 1].
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import map_rows
from wonderland.linear.logistic_problem import (
    CACHE,
    Logistic,
    back,
    bend,
    losses,
    part_of,
    scores,
)
from wonderland.solve.newton import End
from wonderland.solve.newton_metric import Dense

__all__ = ["Certificate", "certify", "least_margin"]

ENOUGH = 16  # one row in so many is moved where a pass over the table is felt


class Certificate(NamedTuple):
    """Numbers in the unit of F.

    Attributes:
        loss: Σωℓ/Σω at the fit.
        primal: F.
        dual: D ≤ F; −inf where no dual point was at hand.
        margin: The least lead of the own class over another; positive where the fit separates.
        extreme: The largest lead.
    """

    loss: float
    primal: float
    dual: float
    margin: float
    extreme: float


def certify(problem: Logistic, end: End, Z: np.ndarray) -> Certificate:
    """The certificate of one problem at `end`, whose scores are Z (c, n)."""
    weight = _flat(problem)
    mass = float(problem.mass[0])
    loss = float(losses(Z[None], problem.codes, weight)[0][0]) / mass
    least, most = least_margin(Z, problem.codes, weight)
    free = np.flatnonzero(problem.penalty[0] == 0)
    if free.size == 0:
        dual = _penalised(problem, end, Z)
    elif free.size == problem.X.shape[1] and isinstance(end.metric, Dense):
        dual = _free(problem, end, Z)
    else:
        dual = -np.inf
    return Certificate(loss, end.value, dual, least, most)


def _flat(problem: Logistic) -> np.ndarray | None:
    weight = problem.weight
    return weight[0] if weight is not None and weight.ndim == 2 else weight


def least_margin(
    Z: np.ndarray, codes: np.ndarray, weight: np.ndarray | None
) -> tuple[float, float]:
    """Least and largest lead of the own class over the best other one, among weighted samples."""
    if len(Z) == 1:
        lead = Z[0] * (2.0 * codes - 1.0)
    else:
        rows = np.arange(len(codes))
        others = Z.copy()
        others[codes, rows] = -np.inf
        lead = Z[codes, rows] - others.max(axis=0)
    if weight is not None:
        lead = lead[weight > 0]
    return float(lead.min()), float(lead.max())


def _penalised(problem: Logistic, end: End, Z: np.ndarray) -> float:
    """D at the residuals of the scores, some or all of them moved so that they sum to zero."""
    some = problem.fit_intercept and problem.X.size > CACHE * ENOUGH
    dual = _some_moved(problem, end, Z) if some else None
    return _all_moved(problem, Z) if dual is None else dual


def _some_moved(problem: Logistic, end: End, Z: np.ndarray) -> float | None:
    """D with the residuals of one row in so many moved: ∇F holds the sums over all rows.

    None where the rows moved cannot make up for the rest.
    """
    coef, _ = problem.split(end.theta)
    slopes, rest = problem.split(end.gradient)
    away = coef if problem.centre is None else coef - problem.centre
    few, mass = problem.rows(slice(None, None, ENOUGH)), float(problem.mass[0])
    weight, part = _flat(few), Z[:, ::ENOUGH]
    loss, R, _ = losses(Z[None], problem.codes, _flat(problem))
    before = losses(part[None], few.codes, weight)
    t, left = _level(few, part, mass * rest - before[1][0].sum(axis=1))
    if left > 1e-14 * mass:
        return None
    after = losses((part + t[:, None])[None], few.codes, weight)
    change = _gathered(few, after[1][0] - before[1][0])[:, : problem.X.shape[1]]
    G = slopes - away * problem.penalty[0] + change / mass
    # ℓ − rz of all rows, then of the rows moved in place of what they were.
    total = float(loss[0]) - float(np.vdot(R[0], Z))
    total += float(after[0][0]) - float(np.vdot(after[1][0], part + t[:, None]))
    total -= float(before[0][0]) - float(np.vdot(before[1][0], part))
    return _bound(problem, total / mass, G)


def _bound(problem: Logistic, loss: float, G: np.ndarray) -> float:
    dual = loss - 0.5 * float((G**2 / problem.penalty[0]).sum())
    return dual if problem.centre is None else dual + float(np.vdot(G, problem.centre))


def _all_moved(problem: Logistic, Z: np.ndarray) -> float:
    if problem.fit_intercept:
        t, left = _level(problem, Z, np.zeros(len(Z)))
        if left > 1e-12 * float(problem.mass[0]):  # no dual point
            return -np.inf
        Z = Z + t[:, None]
    weight, mass = _flat(problem), float(problem.mass[0])
    loss, R, _ = losses(Z[None], problem.codes, weight)
    G = _gathered(problem, R[0])[:, : problem.X.shape[1]] / mass
    return _bound(problem, (float(loss[0]) - float(np.vdot(R[0], Z))) / mass, G)


def _level(problem: Logistic, Z: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, float]:
    """t (c,) with Σω(p(z + t) − y) + rest = 0, by Newton's method from zero; what is left of it."""
    weight, t, slope = _flat(problem), np.zeros(len(Z)), rest
    for _ in range(8):
        _, R, P = losses((Z + t[:, None])[None], problem.codes, weight)
        slope = R[0].sum(axis=1) + rest
        if np.abs(slope).max() <= 1e-15 * float(problem.mass[0]):
            break
        share = P[0] if weight is None else P[0] * weight
        if len(Z) == 1:
            curved = float((share * (1.0 - P[0])).sum())
            if curved <= 1e-8 * float(
                problem.mass[0]
            ):  # a step too far, or no sample between the classes
                break
            t = t - slope / curved
        else:
            t = t - np.linalg.lstsq(np.diag(share.sum(axis=1)) - share @ P[0].T, slope)[0]
    return t, float(np.abs(slope).max())


def _free(problem: Logistic, end: End, Z: np.ndarray) -> float:
    """D at the residuals corrected along a Newton step; −inf where they leave [0, 1]."""
    weight, mass = _flat(problem), float(problem.mass[0])
    _, R, P = losses(Z[None], problem.codes, None)
    coef, intercept = problem.split(end.metric.solve(end.gradient))
    V = scores(problem.X, coef[None], intercept[None])
    g = (R - bend(P, V))[0]
    sums = _gathered(problem, g if weight is None else g * weight)
    scale = _gathered(problem, np.abs(g) if weight is None else np.abs(g) * weight, size=True)
    if np.any(np.abs(sums) > 1e-11 * np.maximum(scale, 1e-300)):
        return -np.inf
    q = _probabilities(g, problem.codes)
    if np.any(q < 0):
        return -np.inf
    entropy = -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=0)
    return float(entropy.sum() if weight is None else entropy @ weight) / mass


def _probabilities(g: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """p (k, n) from residuals p − y."""
    if len(g) == 1:
        p = g[0] + codes
        return np.stack([p, 1.0 - p])
    q = g.copy()
    q[codes, np.arange(len(codes))] += 1.0
    return q


def _gathered(problem: Logistic, R: np.ndarray, *, size: bool = False) -> np.ndarray:
    """Σ r x̃ (c, q); with `size` Σ r|x̃|, what rounding is measured by."""
    n, d = problem.X.shape

    def work(start: int, stop: int) -> np.ndarray:
        X: Any = part_of(problem.X, start, stop)
        part = R[None, :, start:stop]
        return back(part, abs(X) if size else X, fit_intercept=problem.fit_intercept)[0]

    if sp.issparse(problem.X):
        return work(0, n)
    return np.sum(map_rows(work, n, n * d), axis=0)
