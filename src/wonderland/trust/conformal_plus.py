"""Intervals from many models at once: CV+, jackknife+, and their cautious relative.

Row i of the sample has the score R_i under the model that has not seen it, the one of fold k(i).
With l_k(x), u_k(x) the ends (for plain regression both μ_{−k}(x)) and w_k(x) the unit of fold k,

    plus     from the ⌊α(n+1)⌋-th smallest of l_{k(i)} − R_i w_{k(i)}
             to the r-th smallest of u_{k(i)} + R_i w_{k(i)}
    minmax   [ min_k (l_k − q w_k),  max_k (u_k + q w_k) ],  q = R_(r)

with r = ⌈(n+1)(1−α)⌉; the two ranks add up to n + 1. "plus" covers with probability 1 − 2α at least
(1 − α as a rule), "minmax" with 1 − α.

Values at rank r are selected, not sorted, on blocks of rows, so that memory stays bounded.
Shapes: n calibration rows, K folds, m new rows.

Reference: Barber, Candès, Ramdas, Tibshirani (2021), Predictive inference with the jackknife+.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from wonderland.core.blocks import map_rows
from wonderland.trust.quantiles import rank_of

__all__ = ["Ends", "minmax_bounds", "plus_bounds", "select_bounds"]

ENTRIES = 1 << 20  # of a block of new rows × calibration rows: 8 MiB, two of them in use


class Ends(NamedTuple):
    """What the folds' models say of new rows, before anything is added: (m, K) each."""

    low: np.ndarray
    high: np.ndarray
    unit: np.ndarray


Pair = tuple[np.ndarray, np.ndarray]


def select_bounds(
    block: Callable[[slice], Pair], m: int, n: int, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends (m,) from all n candidates of each row, a block of rows at a time.

    Args:
        block: From a slice of rows to candidates for the lower and the upper end (b, n) each, which
            may be overwritten.
        m: New rows.
        n: Candidates of each.
        alpha: The level.
    """
    rank = rank_of(n, alpha)
    if rank > n:
        return np.full(m, -np.inf), np.full(m, np.inf)
    low, high = np.empty(m), np.empty(m)
    step = max(1, ENTRIES // max(n, 1))

    def work(start: int, stop: int) -> None:
        for i in range(start, stop, step):
            rows = slice(i, min(i + step, stop))
            lower, upper = block(rows)
            lower.partition(n - rank, axis=1)  # the ⌊α(n+1)⌋-th smallest, counted from one
            low[rows] = lower[:, n - rank]
            upper.partition(rank - 1, axis=1)
            high[rows] = upper[:, rank - 1]

    map_rows(work, m, m * n)
    return low, high


def plus_bounds(
    ends: Ends, scores: np.ndarray, fold: np.ndarray, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of CV+ (jackknife+ where each row is its own fold) (m,) each.

    Args:
        ends: Of the new rows under each fold's model.
        scores: R (n,).
        fold: k(i) (n,).
        alpha: The level.

    >>> ends = Ends(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0]]), np.ones((1, 2)))
    >>> plus_bounds(ends, np.array([0.5, 1.0, 0.25]), np.array([0, 0, 1]), 0.25)
    (array([0.]), array([2.25]))
    """

    def block(rows: slice) -> Pair:
        reach = ends.unit[rows][:, fold] * scores
        return ends.low[rows][:, fold] - reach, ends.high[rows][:, fold] + reach

    return select_bounds(block, len(ends.low), len(scores), alpha)


def minmax_bounds(ends: Ends, quantile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The widest of the folds' intervals (m,): cautious, covers with probability 1 − α.

    Args:
        ends: Of the new rows under each fold's model.
        quantile: q for each row (m,), or one for all (1,).
    """
    reach = quantile[:, None] * ends.unit
    return (ends.low - reach).min(axis=1), (ends.high + reach).max(axis=1)
