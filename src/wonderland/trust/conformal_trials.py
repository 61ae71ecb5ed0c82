"""Coverage measured: calibration and test rows dealt anew, over and over, from a pool.

Given a model that has seen none of them, rows are exchangeable: every way of dealing n of them for
calibration and m for testing is as likely as any other. With distinct scores the number covered is
then beta-binomial, whatever the model and the data, with r = ⌈(n + 1)(1 − α)⌉,

    mean  m r/(n + 1),      variance  m r (n + 1 − r)(n + 1 + m) / ((n + 1)² (n + 2)),

so that the mean over many deals is held against a band with no free parameter. Ties can only raise
coverage: then the lower edge alone counts.

Reference: Vovk (2012), Conditional validity of inductive conformal predictors.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import betabinom

from wonderland.trust.conformal_intervals import IntervalRows, calibrate, split_bounds
from wonderland.trust.conformal_intervals import NewRows as NewPoints
from wonderland.trust.conformal_labels import LabelRows, LabelRule, NewRows
from wonderland.trust.quantiles import rank_of

__all__ = ["Trials", "interval_trials", "label_trials"]

ERRORS = 4.5  # standard errors of a band: one sound mean in a hundred thousand falls outside


class Trials(NamedTuple):
    """Counts over repetitions, levels and groups (one group where there are none).

    Attributes:
        alphas: The levels (a,).
        covered: Rows covered (R, a, g).
        tested: Test rows (R, g).
        calibrated: Calibration rows (R, g).
        distinct: Whether no two scores of the pool are equal.
        size: Mean size of the sets, or width (a,).
    """

    alphas: tuple[float, ...]
    covered: np.ndarray
    tested: np.ndarray
    calibrated: np.ndarray
    distinct: bool
    size: np.ndarray

    @property
    def coverage(self) -> np.ndarray:
        """Share of rows covered over all repetitions (a, g)."""
        return self.covered.sum(axis=0) / self.tested.sum(axis=0)

    def bands(self) -> tuple[np.ndarray, np.ndarray]:
        """Between which the share should lie, from the exact mean and variance (a, g) each."""
        n, m = self.calibrated[:, None, :], self.tested[:, None, :]
        rank = np.minimum(self._ranks(), n + 1)
        mean = (m * rank / (n + 1)).sum(axis=0)
        spread = m * rank * (n + 1 - rank) * (n + 1 + m) / ((n + 1.0) ** 2 * (n + 2))
        half, total = ERRORS * np.sqrt(spread.sum(axis=0)), self.tested.sum(axis=0)
        return (mean - half) / total, (mean + half) / total

    def holds(self) -> np.ndarray:
        """Whether the share lies inside its band; with ties whether it is not below (a, g)."""
        low, high = self.bands()
        rounding = 1e-12
        above = self.coverage >= low - rounding
        return above & (self.coverage <= high + rounding) if self.distinct else above

    def inside(self, level: float = 0.99) -> np.ndarray:
        """Share of repetitions within the exact beta-binomial band of their own (a, g)."""
        parts = np.broadcast_arrays(
            self._ranks(), self.calibrated[:, None, :], self.tested[:, None, :]
        )
        cases, place = np.unique(
            np.stack(parts, axis=-1).reshape(-1, 3), axis=0, return_inverse=True
        )
        rank, n, m = cases.T
        finite, rank = rank <= n, np.minimum(rank, n)
        tails = np.array([[(1 - level) / 2], [(1 + level) / 2]])
        ends = np.where(finite, betabinom.ppf(tails, m, rank, n + 1 - rank), m)
        low, high = (end[place].reshape(self.covered.shape) for end in ends)
        return ((self.covered >= low) & (self.covered <= high)).mean(axis=0)

    def _ranks(self) -> np.ndarray:
        """r of each repetition, level and group (R, a, g)."""
        counts, place = np.unique(self.calibrated, return_inverse=True)
        table = np.array([[rank_of(int(n), alpha) for n in counts] for alpha in self.alphas])
        return np.moveaxis(table[:, place.reshape(self.calibrated.shape)], 0, 1)


def label_trials(
    rule: LabelRule,
    p: np.ndarray,
    codes: np.ndarray,
    alphas: Sequence[float],
    *,
    calibration: int,
    repetitions: int = 1000,
    groups: np.ndarray | None = None,
    randomise: bool = False,
    seed: int = 0,
) -> Trials:
    """Deal a pool of rows with probabilities from a model that has not seen them.

    Args:
        rule: Score, and whether classes have thresholds of their own.
        p: Probabilities (N, k).
        codes: True classes (N,).
        alphas: Levels.
        calibration: n rows for calibration; the rest are test rows.
        repetitions: Deals.
        groups: Whole numbers 0 … g − 1, each row's group (N,).
        randomise: Whether scores use uniform numbers.
        seed: Of the deals.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1.0, 1.0, 1.0], size=400)
    >>> codes = (p.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    >>> from wonderland.trust.scores import LAC
    >>> trials = label_trials(
    ...     LabelRule(LAC(), False), p, codes, [0.1], calibration=200, repetitions=100
    ... )
    >>> bool(trials.holds().all())
    True
    """
    kinds = codes if rule.by_class else groups
    names = None if kinds is None else np.arange(kinds.max() + 1)

    def once(known: np.ndarray, new: np.ndarray, rng: np.random.Generator) -> Any:
        u = rng.random(len(p)) if randomise else None
        rows = LabelRows(p, codes, groups, None, u).rows(known)
        scores = rule.calibrate(rows, None if rule.by_class else names)
        places = np.zeros(len(new), int) if groups is None or rule.by_class else groups[new]
        fresh = NewRows(places, None, None if u is None else u[new])
        masks = rule.masks(scores, [p[new]], alphas, fresh)
        truth = np.arange(len(new)), codes[new]
        return [mask[truth] for mask in masks], [mask.sum(axis=1).mean() for mask in masks]

    scores = rule.score.of(p, codes)
    distinct = randomise or _distinct(scores, kinds)
    return _deal(once, len(p), kinds, alphas, calibration, repetitions, seed, distinct)


def interval_trials(
    band: tuple[np.ndarray, np.ndarray, np.ndarray],
    y: np.ndarray,
    alphas: Sequence[float],
    *,
    calibration: int,
    repetitions: int = 1000,
    groups: np.ndarray | None = None,
    seed: int = 0,
) -> Trials:
    """The same for intervals around a band: low, high, unit (N,) each, and targets y (N,)."""
    low, high, unit = band
    scores = np.maximum(low - y, y - high) / unit

    def once(known: np.ndarray, new: np.ndarray, rng: np.random.Generator) -> Any:
        own = None if groups is None else groups[known]
        nothing = (None,) * 5
        rows = IntervalRows(scores[known], np.zeros(len(known), int), own, *nothing, seed=0)
        ordered = calibrate(rows, names=None if groups is None else np.arange(groups.max() + 1))
        places = np.zeros(len(new), int) if groups is None else groups[new]
        part = low[new], high[new], unit[new]
        found = [split_bounds(part, ordered, a, NewPoints(places)) for a in alphas]
        covered = [(a <= y[new]) & (y[new] <= b) for a, b in found]
        return covered, [np.median(b - a) for a, b in found]

    distinct = _distinct(scores, groups)
    return _deal(once, len(y), groups, alphas, calibration, repetitions, seed, distinct)


def _distinct(scores: np.ndarray, kinds: np.ndarray | None) -> bool:
    """Whether no two scores that are ranked together are equal."""
    if kinds is None:
        return len(np.unique(scores)) == len(scores)
    return all(_distinct(scores[kinds == kind], None) for kind in np.unique(kinds))


def _deal(
    once: Callable[[np.ndarray, np.ndarray, np.random.Generator], Any],
    total: int,
    kinds: np.ndarray | None,
    alphas: Sequence[float],
    calibration: int,
    repetitions: int,
    seed: int,
    distinct: bool,  # noqa: FBT001  # a fact of the pool
) -> Trials:
    kinds = np.zeros(total, int) if kinds is None else kinds
    rng, g = np.random.default_rng(seed), int(kinds.max()) + 1
    covered = np.zeros((repetitions, len(alphas), g), dtype=int)
    tested, calibrated = np.zeros((repetitions, g), int), np.zeros((repetitions, g), int)
    size = np.zeros((repetitions, len(alphas)))
    for number in range(repetitions):
        order = rng.permutation(total)
        known, new = order[:calibration], order[calibration:]
        hits, size[number] = once(known, new, rng)
        calibrated[number] = np.bincount(kinds[known], minlength=g)
        tested[number] = np.bincount(kinds[new], minlength=g)
        for a, hit in enumerate(hits):
            covered[number, a] = np.bincount(kinds[new], weights=hit, minlength=g)
    return Trials(tuple(alphas), covered, tested, calibrated, distinct, size.mean(axis=0))
