"""Sums of residuals as they would be if the model were calibrated.

Under that hypothesis the labels are draws from the probabilities themselves, P(y_i = j) = p_ij, and
what a calibration error then comes to by chance alone is seen by drawing them: a consistency
resampling. The p-value (1 + #{drawn ≥ measured})/(1 + draws) needs no asymptotics.

    up to BLOCKS rows    every label is drawn: exact
    more, one statement  what comes true in a cell is a Poisson-binomial number, drawn from the
                         binomial of its mean and variance (unequal weights: the normal)
    more, all classes    labels are drawn once; sums over random blocks are drawn again with normal
                         multipliers, which keeps their covariance over cells and classes

Shapes: n rows, r draws, m cells.

Reference: Bröcker and Smith (2007); Vaicenavicius et al. (2019).
"""

import numpy as np
import scipy.sparse as sp

from wonderland.metrics.intervals import BLOCKS, deal
from wonderland.metrics.measures import Classwise, Measure, Smooth, Statement
from wonderland.metrics.probabilities import Judged

__all__ = ["consistent_residuals"]

CHUNK = 128  # draws in memory together


def consistent_residuals(
    measure: Measure, draws: int, generator: np.random.Generator
) -> np.ndarray:
    """Residual sums (r, m) of labels drawn from the probabilities."""
    if isinstance(measure, Classwise):
        few = len(measure.forecast.codes) <= BLOCKS
        return (_every_label if few else _multiplied)(measure, draws, generator)
    if not isinstance(measure, Statement):
        raise TypeError(f"no way to draw labels for a {type(measure).__name__}")
    if len(measure.place) <= BLOCKS:
        return _every_row(measure, draws, generator)
    drawn = _cell_by_cell(measure.found, measure.place, measure.cells, draws, generator)
    return _spread(measure, drawn) if isinstance(measure, Smooth) else drawn


def _every_row(measure: Statement, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Each statement comes true with its own confidence."""
    n, c = len(measure.place), measure.found.confidence
    # Shares of a row are linear in its residual: take them at a residual of one.
    unit = type(measure)(**{**vars(measure), "found": Judged(np.zeros(n), np.ones(n), None)})
    rows = np.arange(n)
    adds = sum(sp.csr_array((s.value, (s.place, rows)), (measure.cells, n)) for s in unit.shares())
    adds = adds @ sp.dia_array((measure.weights()[None], [0]), (n, n))
    found = np.empty((draws, measure.cells))
    for start in range(0, draws, CHUNK):
        size = min(CHUNK, draws - start)
        gap = (generator.random((n, size)) < c[:, None]) - c[:, None]
        found[start : start + size] = (adds @ gap).T
    return found


def _cell_by_cell(
    found: Judged, place: np.ndarray, cells: int, draws: int, generator: np.random.Generator
) -> np.ndarray:
    """The residual of each cell as one number, of the right mean and variance (r, m)."""
    c, omega = found.confidence, found.weight
    if omega is not None:
        variance = np.bincount(place, omega**2 * c * (1 - c), cells)
        return np.sqrt(variance) * generator.standard_normal((draws, cells))
    said = np.bincount(place, c, cells)
    missed = np.bincount(place, 1 - c, cells)
    spread = np.bincount(place, c * (1 - c), cells)
    # Count the rarer side: mean μ, variance v = μ(1 − q) of Binomial(μ/q, q).
    mean = np.minimum(said, missed)
    share = np.clip(1 - spread / np.where(mean > 0, mean, 1.0), 0.0, 1.0)
    trials = np.maximum(np.round(mean / np.where(share > 0, share, 1.0)), np.ceil(mean))
    chance = np.clip(mean / np.where(trials > 0, trials, 1.0), 0.0, 1.0)
    drawn = generator.binomial(trials.astype(np.int64), chance, size=(draws, cells)) - mean
    return np.where(said <= missed, drawn, -drawn)


def _spread(measure: Smooth, drawn: np.ndarray) -> np.ndarray:
    """Residuals of the lower cells shared with the cells above, as their rows are."""
    rows = np.bincount(measure.place, minlength=measure.cells)
    share = np.bincount(measure.place, measure.share, measure.cells) / np.maximum(rows, 1)
    found = drawn * (1 - share)
    found[:, 1:] += (drawn * share)[:, :-1]
    return found


def _draw_labels(p: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """Class numbers (n, size) drawn from the rows of p (n, k)."""
    drawn = np.zeros((len(p), size), dtype=np.intp)
    uniform, reached = generator.random((len(p), size)), np.zeros(len(p))
    for column in p.T[:-1]:
        reached = reached + column
        drawn += uniform >= reached[:, None]
    return drawn


def _every_label(measure: Classwise, draws: int, generator: np.random.Generator) -> np.ndarray:
    p, n = measure.forecast.p, len(measure.forecast.codes)
    adds = [
        sp.csr_array((measure.weights(), (place, np.arange(n))), (measure.bins, n))
        for place in measure.places
    ]
    found = np.empty((draws, measure.cells))
    for start in range(0, draws, CHUNK):
        size = min(CHUNK, draws - start)
        labels = _draw_labels(p, size, generator)
        for j, add in enumerate(adds):
            columns = slice(j * measure.bins, (j + 1) * measure.bins)
            gap = (labels == j) - p[:, [j]]
            found[start : start + size, columns] = (add @ gap).T
    return found


def _multiplied(measure: Classwise, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Σ_blocks g · (residuals of labels drawn once), g standard normal."""
    labels = _draw_labels(measure.forecast.p, 1, generator)[:, 0]
    block, count = deal(len(labels), generator, measure.blocks)
    sums = measure.residuals(measure.shares(labels), block, count)
    return generator.standard_normal((draws, count)) @ sums
