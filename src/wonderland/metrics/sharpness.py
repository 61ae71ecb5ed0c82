"""The best common sharpness of scores: one convex problem in one number.

    minimise over β ≥ 0    F(β) = Σ_i ω_i [ log Σ_j exp(β z_ij) − β z_iy ] / Σω

    F' = E[ m_i − z_iy ],  F'' = E[ v_i ],  F''' = E[ t_i ]

m, v, t being the mean, variance and third central moment of z_i under softmax(β z_i). β = 1/T is
the inverse temperature. Newton's method inside a bracket of the sign of F'; each pass is one
exponential for every score, in blocks that stay in the cache. Of many rows, some are solved first;
from there one step with the third derivative (Halley's), in single precision on all rows, is right
to about seven digits, and a pass in float64 ends it and says how steep F still was.

F falls for ever, and no β is best, exactly when every z_iy is its row's largest: the labels are
then softened to (1 − ε) + ε/k, ε = k/(n + k), one row's worth of doubt, and the result says so. F
grows from β = 0 on when the scores point the wrong way: β = 0, all classes alike.

Shapes: n rows, k classes; z (n, k).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from wonderland.core.blocks import map_rows

__all__ = ["Sharpness", "best_sharpness", "power_loss"]

ENTRIES = 1 << 16  # of a block, which with its exponentials stays in the cache
FEW = 1 << 16  # rows of the first solve
TURNS = 100
TOLERANCE = 1e-6  # last relative step; what it leaves is of the order of its square


class Sharpness(NamedTuple):
    """The solution and how it was reached.

    Attributes:
        beta: β.
        loss: F(β).
        slope: F' where the last step, of relative length ≤ 1e-6, began.
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
    """Weighted means over rows of: log Σ exp, m, v, t, all with z less its row's maximum."""

    level: float
    mean: float
    variance: float
    third: float


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
        start = _ahead(z, weight, truth, start)
    return _search(z, weight, truth, start)._replace(separable=separable)


def _search(z: np.ndarray, weight: np.ndarray | None, truth: float, beta: float) -> Sharpness:
    low, high = 0.0, np.inf
    for turn in range(1, TURNS + 1):
        at = _terms(z, weight, beta)
        slope = at.mean - truth
        low, high = (beta, high) if slope < 0 else (low, beta)
        step = -slope / at.variance if at.variance > 0 else -float(np.sign(slope)) * np.inf
        loss = at.level - beta * truth
        if abs(step) <= TOLERANCE * beta or high - low <= 1e-12 * beta:
            loss += step * (slope + 0.5 * step * at.variance)
            return Sharpness(beta + step, loss, slope, turn, separable=False, converged=True)
        to = beta + step
        if not low < to < high:
            to = 0.5 * (low + high) if np.isfinite(high) else 4.0 * beta
        # Far out the curvature vanishes and Newton's step is too long to be believed.
        beta = min(to, 4.0 * beta)
    return Sharpness(beta, loss, slope, TURNS, separable=False, converged=False)


def _ahead(z: np.ndarray, weight: np.ndarray | None, truth: float, beta: float) -> float:
    """One step of Halley's, h/(1 + h t/2v) with Newton's h = −F'/v, in single precision.

    It only brings the search nearer, and is not taken where it is long.
    """
    at = _terms(z, weight, beta, np.float32)
    newton = (truth - at.mean) / max(at.variance, np.finfo(float).tiny)
    step = newton / max(1.0 + 0.5 * newton * at.third / max(at.variance, 1e-300), 0.5)
    return beta + step if abs(step) < 0.5 * beta else beta


def _share(weight: np.ndarray | None, n: int) -> float:
    return 1.0 / n if weight is None else 1.0 / float(weight.sum())


def _fill(room: np.ndarray, z: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Scores of some rows less their maxima, and the maxima (m,).

    Classes lie in rows (k, m): sums over them are then sums of whole vectors.
    """
    d = room[:, : rows.stop - rows.start]
    np.copyto(d, z[rows].T)
    top = d.max(axis=0)
    d -= top
    return d, top


def _blocks(start: int, stop: int, size: int) -> Iterator[slice]:
    return (slice(low, min(low + size, stop)) for low in range(start, stop, size))


def _sum(values: np.ndarray, omega: np.ndarray | None) -> float:
    return float(values.sum() if omega is None else omega @ values)


def _targets(z: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> _Targets:
    k = z.shape[1]
    size = max(1, ENTRIES // k)

    def part(start: int, stop: int) -> np.ndarray:
        found, room = np.zeros(2), np.empty((k, size))
        for rows in _blocks(start, stop, size):
            d, _ = _fill(room, z, rows)
            omega = None if weight is None else weight[rows]
            own = d[codes[rows], np.arange(d.shape[1])]
            found += _sum(own, omega), _sum(d.sum(axis=0), omega) / k
        return found

    total = np.sum(map_rows(part, len(z), z.size), axis=0) * _share(weight, len(z))
    return _Targets(float(total[0]), float(total[1]))


def _terms(
    z: np.ndarray, weight: np.ndarray | None, beta: float, dtype: type = np.float64
) -> _Terms:
    """The means at β; the third moment in single precision only, where a step will need it."""
    k, orders = z.shape[1], 3 if dtype is np.float32 else 2
    size = max(1, ENTRIES // k)

    def part(start: int, stop: int) -> np.ndarray:
        found, room, spare = np.zeros(4), np.empty((k, size), dtype), np.empty((k, size), dtype)
        for rows in _blocks(start, stop, size):
            d, _ = _fill(room, z, rows)
            e = spare[:, : d.shape[1]]
            np.exp(np.multiply(d, dtype(beta), out=e), out=e)
            total = e.sum(axis=0)
            moments = []
            for _ in range(orders):
                e *= d
                moments.append(e.sum(axis=0) / total)
            mean, variance = moments[0], moments[1] - moments[0] ** 2
            each = [np.log(total), mean, variance]
            if orders == 3:
                each.append(moments[2] - mean * (moments[1] + 2.0 * variance))
            omega = None if weight is None else weight[rows]
            found[: len(each)] += [_sum(v, omega) for v in each]
        return found

    total = np.sum(map_rows(part, len(z), z.size), axis=0) * _share(weight, len(z))
    return _Terms(*(float(value) for value in total))


def power_loss(z: np.ndarray, codes: np.ndarray, beta: float) -> np.ndarray:
    """−log softmax(β z)_y of each row (n,)."""
    scaled = beta * z
    top = scaled.max(axis=1)
    level = np.log(np.exp(scaled - top[:, None]).sum(axis=1)) + top
    return level - scaled[np.arange(len(z)), codes]
