"""The reliability table: how often was what was said with confidence p true?

In bin i with rows B_i:   p_i = Σ_{B_i} ω c / Σ_{B_i} ω (confidence),   a_i = Σ ω o / Σ ω (accuracy)

A calibrated model has a_i = p_i up to chance; each a_i comes with its exact (Clopper–Pearson)
interval. Shapes: n rows, b bins.

Reference: Murphy and Winkler (1977); Guo, Pleiss, Sun, Weinberger (2017).
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from wonderland.core.errors import optional
from wonderland.metrics.bins import assign, check_bins, edges_of
from wonderland.metrics.intervals import clopper_pearson
from wonderland.metrics.probabilities import Judged, judged, read_forecast

__all__ = ["Reliability", "reliability", "table_of"]


@dataclass(frozen=True)
class Reliability:
    """Bins of confidence and what came true in them; empty bins are left out.

    Attributes:
        left: Lower edges (b,).
        right: Upper edges (b,).
        count: Rows (b,).
        weight: Σω (b,); the counts where no weights were given.
        confidence: p_i (b,).
        accuracy: a_i (b,).
        low: Lower end of the exact interval for the accuracy (b,).
        high: Upper end (b,).
        level: Of the intervals.
        label: The label whose probability was judged; None for the most probable label.
    """

    left: np.ndarray
    right: np.ndarray
    count: np.ndarray
    weight: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: float
    label: Any = None

    @property
    def gap(self) -> np.ndarray:
        """a_i − p_i (b,): positive where the model is too modest."""
        return self.accuracy - self.confidence

    @property
    def error(self) -> float:
        """Σ_i share_i |a_i − p_i|, the expected calibration error of these bins."""
        return float(self.weight @ np.abs(self.gap) / self.weight.sum())

    def __len__(self) -> int:
        return len(self.count)

    def _columns(self) -> dict[str, np.ndarray]:
        names = ("left", "right", "count", "confidence", "accuracy", "low", "high")
        return {name: getattr(self, name) for name in names} | {"gap": self.gap}

    def to_frame(self) -> Any:
        """The table as a pandas frame, one row for each bin."""
        return optional("pandas", "frames").DataFrame(self._columns())

    def plot(self, *, axes: Any = None) -> Any:
        """The reliability diagram: accuracy over confidence, and how many rows are where."""
        # Pictures live a floor above; this one is asked for, not built upon.
        return import_module("wonderland.report.trust_plots").plot_reliability(self, axes=axes)

    def __repr__(self) -> str:
        what = "most probable label" if self.label is None else f"label {self.label!r}"
        rows = [("confidence", "rows", "mean", "true", f"{100 * self.level:g} % interval", "gap")]
        for i in range(len(self)):
            rows.append(
                (
                    f"{self.left[i]:.3f}–{self.right[i]:.3f}",
                    str(self.count[i]),
                    f"{self.confidence[i]:.3f}",
                    f"{self.accuracy[i]:.3f}",
                    f"{self.low[i]:.3f}–{self.high[i]:.3f}",
                    f"{self.gap[i]:+.3f}",
                )
            )
        widths = [max(len(row[j]) for row in rows) for j in range(6)]
        lines = ["  ".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
        total = f"calibration error {self.error:.4f} over {self.count.sum()} rows, {what}"
        return "\n".join([*lines, total])

    __str__ = __repr__


def reliability(
    y: Any,
    p: Any,
    *,
    bins: int = 15,
    strategy: str = "width",
    label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    level: float = 0.95,
) -> Reliability:
    """Accuracy beside confidence, bin by bin.

    Args:
        y: Labels (n,), or class numbers.
        p: Probabilities (n, k), or (n,) of the second of two labels.
        bins: Their number.
        strategy: "width" (equal intervals of [0, 1]) or "mass" (equally many rows).
        label: Judge the probability of this label; None: the largest probability of each row.
        sample_weight: ω (n,) ≥ 0. Intervals then count Kish's (Σω)²/Σω² rows in a bin.
        classes: Labels of the columns (k,), where y does not hold them all.
        level: Of the intervals.

    >>> table = reliability([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.9], bins=2, label=1)
    >>> print(table)
     confidence  rows   mean   true  95 % interval     gap
    0.000–0.500     3  0.200  0.333    0.008–0.906  +0.133
    0.500–1.000     1  0.900  1.000    0.025–1.000  +0.100
    calibration error 0.1250 over 4 rows, label 1
    """
    check_bins(bins, strategy)
    found = judged(read_forecast(y, p, sample_weight, classes), label)
    return table_of(found, edges_of(*found[::2], bins, strategy), level, label)


def table_of(found: Judged, edges: np.ndarray, level: float, label: Any = None) -> Reliability:
    """The table over given edges (b + 1,)."""
    b, place = len(edges) - 1, assign(found.confidence, edges)
    count = np.bincount(place, minlength=b)
    rows: np.ndarray
    if found.weight is None:
        weight = rows = count.astype(np.float64)
        said = np.bincount(place, found.confidence, b)
        true = np.bincount(place, found.correct, b)
    else:
        omega = found.weight
        weight = np.bincount(place, omega, b)
        said = np.bincount(place, omega * found.confidence, b)
        true = np.bincount(place, omega * found.correct, b)
        square = np.bincount(place, omega**2, b)
        rows = np.divide(weight**2, square, out=np.zeros(b), where=square > 0)
    kept = weight > 0
    accuracy = np.clip(true[kept] / weight[kept], 0.0, 1.0)
    low, high = clopper_pearson(accuracy * rows[kept], rows[kept], level)
    return Reliability(
        edges[:-1][kept],
        edges[1:][kept],
        count[kept],
        weight[kept],
        said[kept] / weight[kept],
        accuracy,
        low,
        high,
        level,
        label,
    )
