"""Calibration errors as statistics of sums over rows.

    top-label   Σ_b |Σ_{i∈b} ω_i (o_i − c_i)| / Σω                              (ECE)
    classwise   (1/k) Σ_j Σ_b |Σ_{i∈b} ω_i (1{y_i = j} − p_ij)| / Σω
    l2          { Σ_b share_b [ (a_b − c_b)² − a_b(1 − a_b)/(n_b − 1) ] }^½      (debiased)
    smooth      |residuals|, smoothed by a kernel as wide as the error itself

A measure says what each row adds to which of s sums, and turns sums into numbers; so sums of blocks
can be drawn again (bootstrap), and sums under the hypothesis of calibration can be put in place.
`plain` is the functional of a population that had these sums, `estimate` its estimator from a
sample: they differ where a bias is taken off. Both are monotone in the `published` number.

Shapes: n rows, k classes, b bins, s sums, any number of replicates in front.

Reference: Naeini, Cooper, Hauskrecht (2015) and Guo et al. (2017) for ECE; Kull et al. (2019) for
classwise; Kumar, Liang, Ma (2019) for the debiased l2; Błasiok and Nakkiran (2023) for smooth.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wonderland.core.blocks import workers
from wonderland.metrics.bins import assign, edges_of
from wonderland.metrics.intervals import BLOCKS
from wonderland.metrics.probabilities import Forecast, Judged
from wonderland.metrics.smooth import CELLS, on_grid, smooth_error

__all__ = ["Classwise", "Measure", "Smooth", "Squared", "Statement", "TopLabel"]

LARGEST = 1 << 24  # sums of all blocks together: 128 MB
LEAST_BLOCKS = 256


class Share(NamedTuple):
    """What each row adds to one cell among `cells` that begin with `first`.

    Attributes:
        first: The first cell of these.
        cells: How many they are.
        place: Which of them (n,).
        value: What is added (n,).
    """

    first: int
    cells: int
    place: np.ndarray
    value: np.ndarray


@dataclass(frozen=True)
class Measure:
    """A statistic of sums of residuals ω(o − c) over cells, and of Σω, the last of all sums.

    Attributes:
        cells: Number of cells of residuals.
    """

    cells: int

    @property
    def blocks(self) -> int:
        """Into how many blocks rows are dealt: fewer where each holds very many sums."""
        return max(LEAST_BLOCKS, min(BLOCKS, LARGEST // self.cells))

    @abstractmethod
    def shares(self) -> Iterator[Share]:
        """What each row adds: one `Share` or several."""

    @abstractmethod
    def weights(self) -> np.ndarray:
        """ω (n,)."""

    def sums(self, block: np.ndarray, count: int) -> np.ndarray:
        """Sums of the rows of each block (count, s)."""
        total = np.bincount(block, self.weights(), count)
        return np.column_stack([self.residuals(self.shares(), block, count), total])

    def residuals(self, shares: Iterable[Share], block: np.ndarray, count: int) -> np.ndarray:
        """Sums (count, cells) of what the rows of each block add."""
        found, shares = np.zeros((count, self.cells)), list(shares)

        def add(share: Share) -> np.ndarray:
            cell = block * share.cells + share.place
            return np.bincount(cell, share.value, count * share.cells).reshape(count, share.cells)

        with ThreadPoolExecutor(workers()) as pool:
            for share, part in zip(shares, pool.map(add, shares), strict=True):
                found[:, share.first : share.first + share.cells] += part
        return found

    def with_residuals(self, residuals: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """The sums (…, s) with residuals (…, cells) in place of those measured."""
        total = np.broadcast_to(sums[-1], (*residuals.shape[:-1], 1))
        return np.concatenate([residuals, total], axis=-1)

    @abstractmethod
    def plain(self, sums: np.ndarray) -> np.ndarray:
        """The functional (…) of a population with these sums."""

    def estimate(self, sums: np.ndarray) -> np.ndarray:
        """Its estimate (…) from a sample with these sums."""
        return self.plain(sums)

    def published(self, value: float) -> float:
        """The number to show."""
        return value


@dataclass(frozen=True)
class Statement(Measure):
    """A measure of one confidence in each row.

    Attributes:
        found: The confidences, and what came true.
        place: The cell of each row (n,).
    """

    found: Judged
    place: np.ndarray

    @classmethod
    def over(cls, found: Judged, bins: int, strategy: str) -> "Statement":
        """The measure over the bins asked for."""
        edges = edges_of(found.confidence, found.weight, bins, strategy)
        return cls(len(edges) - 1, found, assign(found.confidence, edges))

    def weights(self) -> np.ndarray:
        """ω (n,)."""
        return self.found.weights

    def residual(self) -> np.ndarray:
        """ω(o − c) (n,)."""
        gap = self.found.correct - self.found.confidence
        return gap if self.found.weight is None else self.found.weight * gap

    def shares(self) -> Iterator[Share]:
        """The whole residual goes to the row's bin."""
        yield Share(0, self.cells, self.place, self.residual())


@dataclass(frozen=True)
class TopLabel(Statement):
    """The notes' expected calibration error, and the measure of a single label's probability."""

    def plain(self, sums: np.ndarray) -> np.ndarray:
        """Σ_b |residual_b| / Σω."""
        return np.abs(sums[..., :-1]).sum(axis=-1) / sums[..., -1]


@dataclass(frozen=True)
class Squared(Statement):
    """Σ_b share_b (a_b − c_b)², with what chance adds to it taken off in the estimate."""

    def sums(self, block: np.ndarray, count: int) -> np.ndarray:
        """Residuals, then Σω, Σω², Σωo in each bin, then Σω of all."""
        omega, correct = self.weights(), self.found.correct
        cell, size = block * self.cells + self.place, count * self.cells
        columns = (self.residual(), omega, omega**2, omega * correct)
        parts = [np.bincount(cell, v, size).reshape(count, self.cells) for v in columns]
        return np.column_stack([*parts, np.bincount(block, omega, count)])

    def with_residuals(self, residuals: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Residuals move the number of those that came true along."""
        measured, weight, square, true, total = self._parts(sums)
        shape = residuals.shape
        fixed = [np.broadcast_to(v, shape) for v in (weight, square)]
        moved = true - measured + residuals
        last = np.broadcast_to(total[..., None], (*shape[:-1], 1))
        return np.concatenate([residuals, *fixed, moved, last], axis=-1)

    def _parts(self, sums: np.ndarray) -> tuple[np.ndarray, ...]:
        b = self.cells
        return (*(sums[..., i * b : (i + 1) * b] for i in range(4)), sums[..., -1])

    def plain(self, sums: np.ndarray) -> np.ndarray:
        """Σ_b residual_b²/ω_b / Σω."""
        residual, weight, _, _, total = self._parts(sums)
        return (residual**2 / np.where(weight > 0, weight, 1.0)).sum(axis=-1) / total

    def estimate(self, sums: np.ndarray) -> np.ndarray:
        """Less a(1 − a)/(n_b − 1), n_b = (Σω)²/Σω²; bins of one row say nothing and are left."""
        _, weight, square, true, total = self._parts(sums)
        held = np.where(weight > 0, weight, 1.0)
        a = np.clip(true / held, 0.0, 1.0)
        rows = weight**2 / np.where(square > 0, square, 1.0)
        chance = np.where(rows > 1, a * (1 - a) / np.maximum(rows - 1, 1e-12), 0.0)
        return self.plain(sums) - (weight * chance).sum(axis=-1) / total

    def published(self, value: float) -> float:
        """The root; chance alone can make the debiased square negative, which is shown as 0."""
        return float(np.sqrt(max(value, 0.0)))


@dataclass(frozen=True)
class Smooth(Statement):
    """smECE: see `metrics/smooth.py`."""

    share: np.ndarray  # of the cell above (n,)

    @classmethod
    def over(cls, found: Judged, bins: int, strategy: str) -> "Smooth":
        """There are no bins to choose."""
        cell, share = on_grid(found.confidence)
        return cls(CELLS, found, cell, share)

    def shares(self) -> Iterator[Share]:
        """Each row is shared by the cells below and above it."""
        residual = self.residual()
        upper = self.share * residual
        yield Share(0, self.cells, self.place, residual - upper)
        yield Share(0, self.cells, self.place + 1, upper)

    def plain(self, sums: np.ndarray) -> np.ndarray:
        """The error at the bandwidth that equals it."""
        return smooth_error(sums[..., :-1], sums[..., -1])[0]


@dataclass(frozen=True)
class Classwise(Measure):
    """The mean over classes of the error of each class's own probability.

    Attributes:
        forecast: p and what came true.
        columns: pᵀ (k, n).
        places: Bin of p_ij (k, n).
        bins: In each class.
    """

    forecast: Forecast
    columns: np.ndarray
    places: np.ndarray
    bins: int

    @classmethod
    def over(cls, forecast: Forecast, bins: int, strategy: str) -> "Classwise":
        """The measure over the bins asked for, those of equal mass chosen class by class."""
        columns = np.clip(np.ascontiguousarray(forecast.p.T), 0.0, 1.0)
        edges = [edges_of(column, forecast.weight, bins, strategy) for column in columns]
        bins = max(len(edge) for edge in edges) - 1
        with ThreadPoolExecutor(workers()) as pool:
            places = np.stack(list(pool.map(assign, columns, edges)))
        return cls(bins * len(columns), forecast, columns, places, bins)

    def weights(self) -> np.ndarray:
        """ω (n,)."""
        weight = self.forecast.weight
        return np.ones(len(self.forecast.codes)) if weight is None else weight

    def shares(self, codes: np.ndarray | None = None) -> Iterator[Share]:
        """One for each class; other labels than those measured may be put in."""
        codes, weight = self.forecast.codes if codes is None else codes, self.forecast.weight
        for j, place in enumerate(self.places):
            gap = (codes == j) - self.columns[j]
            value = gap if weight is None else weight * gap
            yield Share(j * self.bins, self.bins, place, value)

    def plain(self, sums: np.ndarray) -> np.ndarray:
        """Σ_j Σ_b |residual_jb| / (k Σω)."""
        return np.abs(sums[..., :-1]).sum(axis=-1) / (sums[..., -1] * len(self.places))
