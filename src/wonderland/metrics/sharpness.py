"""The best common sharpness of scores: one convex problem in one number.

    minimise over β ≥ 0    F(β) = Σ_i ω_i [ log Σ_j exp(β z_ij) − β z_iy ] / Σω

    F' = E[ m_i − z_iy ],  F'' = E[ v_i ],    m, v: mean and variance of z_i under softmax(β z_i)

β = 1/T is the inverse temperature. Newton's method inside a bracket of the sign of F', first on
some of the rows, then on all: each pass is one exponential for every score, in blocks that stay in
the cache. F falls for ever, and no β is best, exactly when every z_iy is its row's largest; then
the labels are softened to (1 − ε) + ε/k, ε = k/(n + k), one row's worth of doubt, and the result
says so. F grows from β = 0 on when the scores point the wrong way: β = 0, all classes alike.

Shapes: n rows, k classes; z (n, k).
"""

from typing import NamedTuple

import numpy as np

from wonderland.core.blocks import map_rows

__all__ = ["Sharpness", "best_sharpness", "power_loss"]

BLOCK = 4096  # rows of a block: with ten classes they and their exponentials stay in the cache
FEW = 1 << 16  # rows of the first solve
TURNS = 100
TOLERANCE = 1e-10  # last relative step; what it leaves is its square


class Sharpness(NamedTuple):
    """The solution and how it was reached.

    Attributes:
        beta: β.
        loss: F(β).
        slope: F' at the last β but one Newton step of relative length ≤ 1e-10.
        passes: Over all rows.
        separable: Whether no finite β is best, so that the labels were softened.
        converged: Whether the last step was that short.
    """

    beta: float
    loss: float
    slope: float
    passes: int
    separable: bool
    converged: bool


class _Terms(NamedTuple):
    """Weighted means over rows of: log Σ exp, m, v, all with z less its row's maximum."""

    level: float
    mean: float
    variance: float


class _Targets(NamedTuple):
    """Weighted means of z_y and of the row means of z, both less the row maximum: ≤ 0."""

    truth: float
    middle: float


def best_sharpness(z: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> Sharpness:
    """β for scores z (n, k) of rows whose classes are `codes` (n,)."""
    truth, middle = _targets(z, codes, weight)
    separable = truth == 0.0
    if separable:
        doubt = z.shape[1] / (len(z) + z.shape[1])
        truth = doubt * middle
    if truth <= middle:  # F'(0) ≥ 0: the scores say nothing, or the opposite
        level = float(np.log(z.shape[1]))
        return Sharpness(0.0, level, middle - truth, 1, separable=False, converged=True)
    # A scale on which the search begins: scores of spread one have β about one.
    start = 1.0 / max(-middle, np.finfo(float).tiny)
    if len(z) > 2 * FEW and not separable:
        some = slice(None, None, len(z) // FEW)
        part = None if weight is None else weight[some]
        if part is None or part.sum() > 0:
            few = best_sharpness(np.ascontiguousarray(z[some]), codes[some], part)
            start = few.beta if few.beta > 0 else start
    return _newton(z, weight, truth, start)._replace(separable=separable)


def _newton(z: np.ndarray, weight: np.ndarray | None, truth: float, beta: float) -> Sharpness:
    low, high = 0.0, np.inf
    for turn in range(1, TURNS + 1):
        at = _terms(z, weight, beta)
        slope = at.mean - truth
        low, high = (beta, high) if slope < 0 else (low, beta)
        step = -slope / at.variance if at.variance > 0 else -np.sign(slope) * np.inf
        loss = at.level - beta * truth
        if abs(step) <= TOLERANCE * beta or high - low <= TOLERANCE * beta:
            return Sharpness(beta + step, loss, slope, turn, separable=False, converged=True)
        to = beta + step
        if not low < to < high:
            to = 0.5 * (low + high) if np.isfinite(high) else 4.0 * beta
        # Far out the curvature vanishes and Newton's step is too long to be believed.
        beta = min(to, 4.0 * beta)
    return Sharpness(beta, loss, slope, TURNS, separable=False, converged=False)


def _share(weight: np.ndarray | None, n: int) -> float:
    return 1.0 / n if weight is None else 1.0 / float(weight.sum())


def _targets(z: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> _Targets:
    def part(start: int, stop: int) -> np.ndarray:
        found = np.zeros(2)
        for low in range(start, stop, BLOCK):
            rows = slice(low, min(low + BLOCK, stop))
            columns = np.ascontiguousarray(z[rows].T)
            top = columns.max(axis=0)
            own = z[rows][np.arange(len(top)), codes[rows]] - top
            middle = columns.mean(axis=0) - top
            omega = np.ones(len(top)) if weight is None else weight[rows]
            found += omega @ own, omega @ middle
        return found

    total = np.sum(map_rows(part, len(z), z.size), axis=0) * _share(weight, len(z))
    return _Targets(float(total[0]), float(total[1]))


def _terms(z: np.ndarray, weight: np.ndarray | None, beta: float) -> _Terms:
    k = z.shape[1]

    def part(start: int, stop: int) -> np.ndarray:
        found = np.zeros(3)
        # Classes in rows: sums over them are then sums of whole vectors.
        d, e = np.empty((k, BLOCK)), np.empty((k, BLOCK))
        for low in range(start, stop, BLOCK):
            rows = slice(low, min(low + BLOCK, stop))
            m = rows.stop - low
            np.subtract(z[rows].T, z[rows].T.max(axis=0), out=d[:, :m])
            np.exp(np.multiply(d[:, :m], beta, out=e[:, :m]), out=e[:, :m])
            total = e[:, :m].sum(axis=0)
            e[:, :m] *= d[:, :m]
            mean = e[:, :m].sum(axis=0) / total
            e[:, :m] *= d[:, :m]
            variance = e[:, :m].sum(axis=0) / total - mean**2
            omega = np.ones(m) if weight is None else weight[rows]
            found += omega @ np.log(total), omega @ mean, omega @ variance
        return found

    total = np.sum(map_rows(part, len(z), z.size), axis=0) * _share(weight, len(z))
    return _Terms(*(float(value) for value in total))


def power_loss(z: np.ndarray, codes: np.ndarray, beta: float) -> np.ndarray:
    """−log softmax(β z)_y of each row (n,)."""
    scaled = beta * z
    top = scaled.max(axis=1)
    level = np.log(np.exp(scaled - top[:, None]).sum(axis=1)) + top
    return level - scaled[np.arange(len(z)), codes]
