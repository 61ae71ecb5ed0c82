"""The rules behind intervals, without an estimator around them: scores in, ends out.

Shapes: n calibration rows, m new rows, K folds.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.blocks import map_rows
from wonderland.core.evidence import Claim
from wonderland.trust.conformal_evidence import Trial, claims_of, coverage_claims, halves
from wonderland.trust.conformal_parts import Groups
from wonderland.trust.conformal_plus import (
    ENTRIES,
    Ends,
    Pair,
    minmax_bounds,
    plus_bounds,
)
from wonderland.trust.conformal_ridge import LeftOut
from wonderland.trust.quantiles import rank_of, smallest_sample

__all__ = [
    "IntervalRows",
    "NewRows",
    "calibrate",
    "folded_bounds",
    "interval_claims",
    "left_out_bounds",
    "method_claim",
    "split_bounds",
]

BINS = 5  # of predictions, among which the evidence names the one covered least


class IntervalRows(NamedTuple):
    """Calibration rows, fold after fold; what evidence alone needs is dropped after the fit.

    Attributes:
        scores: s_i = max(low − y, y − high)/unit (n,).
        fold: Number of the fold (n,).
        groups: The group of each row (n,), or None.
        weights: Likelihood ratios (n,), or None.
        y: Targets (n,).
        low: Lower ends of the bands (n,).
        high: Upper ends (n,).
        unit: σ (n,).
        seed: Of the halves that coverage is tried on.
    """

    scores: np.ndarray
    fold: np.ndarray
    groups: np.ndarray | None
    weights: np.ndarray | None
    y: np.ndarray | None
    low: np.ndarray | None
    high: np.ndarray | None
    unit: np.ndarray | None
    seed: int


class NewRows(NamedTuple):
    """Of rows to be predicted for: the number of each one's group (m,), likelihood ratios (m,)."""

    places: np.ndarray
    weights: np.ndarray | None = None


def calibrate(rows: IntervalRows, kept: Any = slice(None), names: Any = None) -> Groups:
    """Order the scores, apart for each group."""
    groups = None if rows.groups is None else [rows.groups[kept]]
    weights = None if rows.weights is None else rows.weights[kept]
    return Groups.of([rows.scores[kept]], groups, weights, names)


def split_bounds(
    ends: tuple[np.ndarray, np.ndarray, np.ndarray], calibration: Groups, level: float, new: NewRows
) -> Pair:
    """[low − qσ, high + qσ] (m,) each."""
    low, high, unit = ends
    reach = calibration.bounds(level, new.places, new.weights) * unit
    return low - reach, high + reach


def folded_bounds(
    read: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    rows: IntervalRows,
    calibration: Groups,
    levels: Sequence[float],
    new: NewRows,
    widest: bool,  # noqa: FBT001  # the method
) -> list[Pair]:
    """Ends of the methods with folds, for each level.

    Args:
        read: Ends and units of the new rows under each fold's model.
        rows: Calibration rows.
        calibration: Their ordered scores.
        levels: α.
        new: Groups of the new rows.
        widest: Whether the method is minmax.
    """
    ends = Ends(*(np.column_stack(part) for part in zip(*read, strict=True)))
    if widest:
        return [minmax_bounds(ends, calibration.bounds(a, new.places, None)) for a in levels]

    def plus(kept: np.ndarray, chosen: np.ndarray, level: float) -> Pair:
        part = Ends(*(values[chosen] for values in ends))
        return plus_bounds(part, rows.scores[kept], rows.fold[kept], level)

    return [_in_groups(plus, rows, calibration, new, level) for level in levels]


def left_out_bounds(
    left: LeftOut,
    X: Any,
    middle: np.ndarray,
    rows: IntervalRows,
    calibration: Groups,
    levels: Sequence[float],
    new: NewRows,
    widest: bool,  # noqa: FBT001  # the method
) -> list[Pair]:
    """The same for the jackknife in closed form: the models are columns of one matrix product."""
    table = left.table(X)
    if widest:
        least, most = _extremes(left, table)
        reach = [calibration.bounds(level, new.places, None) for level in levels]
        return [(middle - most - q, middle - least + q) for q in reach]

    def plus(kept: np.ndarray, chosen: np.ndarray, level: float) -> Pair:
        own, here, rank = table[chosen], middle[chosen], rank_of(len(kept), level)
        if rank > len(kept):
            return np.full(len(here), -np.inf), np.full(len(here), np.inf)
        down, up = left.reach(own, kept, rows.scores[kept], rank)
        return here - down, here + up

    return [_in_groups(plus, rows, calibration, new, level) for level in levels]


def _in_groups(
    plus: Callable[[np.ndarray, np.ndarray, float], Pair],
    rows: IntervalRows,
    calibration: Groups,
    new: NewRows,
    level: float,
) -> Pair:
    """Ends of all new rows, each group with the calibration rows of its own."""
    if calibration.names is None or rows.groups is None:
        return plus(np.arange(len(rows.scores)), np.arange(len(new.places)), level)
    low, high = np.empty(len(new.places)), np.empty(len(new.places))
    for number, name in enumerate(calibration.names):
        kept, chosen = np.flatnonzero(rows.groups == name), np.flatnonzero(new.places == number)
        if len(chosen):
            low[chosen], high[chosen] = plus(kept, chosen, level)
    return low, high


def _extremes(left: LeftOut, table: np.ndarray) -> Pair:
    """The least and the largest of μ(x) − μ_{−i}(x) over i (m,) each."""
    m, n = len(table), len(left.errors)
    least, most = np.empty(m), np.empty(m)
    step = max(1, ENTRIES // n)

    def work(start: int, stop: int) -> None:
        for i in range(start, stop, step):
            part = slice(i, min(i + step, stop))
            found = left.shifts(table[part])
            least[part], most[part] = found.min(axis=1), found.max(axis=1)

    map_rows(work, m, m * n)
    return least, most


def interval_claims(
    rows: IntervalRows, calibration: Groups, alpha: float, promise: float, *, exact: bool
) -> list[Claim]:
    """The evidence of calibrated intervals.

    Args:
        rows: Calibration rows with their targets.
        calibration: Their ordered scores.
        alpha: The level.
        promise: Of the method's theorem.
        exact: Whether there is one model, so that coverage is beta-binomial.
    """
    exact = exact and calibration.plain
    claims = claims_of(calibration, alpha, promise, exact=exact)
    first, second = halves(len(rows.scores), rows.seed)
    tried = calibrate(rows, first, calibration.names)
    short = not len(second) or tried.counts.min() < smallest_sample(alpha)
    if short or rows.low is None or rows.high is None or rows.unit is None:
        return claims
    weights = None if rows.weights is None else rows.weights[second]
    fresh = None if rows.groups is None else rows.groups[second]
    places = tried.places(fresh, len(second))
    reach = tried.bounds(alpha, places, weights) * np.ones(len(second))
    low, high, unit = rows.low[second], rows.high[second], rows.unit[second]
    width = np.maximum(high - low + 2 * reach * unit, 0.0)
    trial = Trial(rows.scores[second] <= reach, width, len(first))
    groups: np.ndarray
    if calibration.names is None:
        groups, labels = _binned((low + high) / 2)
    else:
        groups, labels = places, ("group", calibration.names.tolist())
    return claims + coverage_claims(
        trial, alpha, unit="interval", exact=exact, groups=groups, labels=labels
    )


def _binned(prediction: np.ndarray) -> tuple[np.ndarray, tuple[str, list[str]]]:
    """Rows in bins of equal numbers by their prediction, each named by its ends."""
    count = min(BINS, max(1, len(prediction) // 20))
    edges = np.quantile(prediction, np.linspace(0, 1, count + 1))
    number = np.searchsorted(edges[1:-1], prediction, side="right")
    names = [f"{a:.3g} to {b:.3g}" for a, b in pairwise(edges)]
    return number, ("bin", names)


def method_claim(method: str, left: LeftOut | None, models: int) -> Claim:
    """How the models came about, with the reason."""
    if left is not None:
        how = (
            "closed form (Sherman–Morrison), one matrix product; it reproduces the fit, largest "
            f"leverage {left.leverage:.3g}"
        )
        return Claim.fact("solver", method, how)
    how = "one model, calibrated on rows kept apart" if models == 1 else f"{models} models refitted"
    if method.startswith("jackknife"):
        how += ": no closed form for this estimator and score"
    return Claim.fact("solver", method, how)
