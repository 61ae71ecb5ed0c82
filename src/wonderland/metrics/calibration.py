"""How far from calibrated, with an interval, and whether chance alone explains it.

A model is calibrated when of all that it says with probability p, the share p comes true. The error
is measured on a sample, where it is never zero: each number here comes with an interval for the
error of the population, and with a p-value of the hypothesis that it is zero.

The interval is the bootstrap's, turned round at the measured value (which takes off what chance
adds to an absolute value), widened to hold the measured value; its lower end is 0 where the
hypothesis of calibration is not refuted at the level of one end. Shapes: n rows, k classes.

Reference: Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks; see
`metrics/measures.py` for each kind, `metrics/consistency.py` for the test.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, nearest
from wonderland.metrics.bins import check_bins
from wonderland.metrics.consistency import consistent_residuals
from wonderland.metrics.intervals import check_fraction, deal, resample
from wonderland.metrics.measures import Classwise, Measure, Smooth, Squared, Statement, TopLabel
from wonderland.metrics.probabilities import Forecast, judged, read_forecast

__all__ = ["KINDS", "CalibrationError", "calibration_error", "error_of"]

KINDS = ("top-label", "classwise", "l2", "smooth")


@dataclass(frozen=True)
class CalibrationError:
    """A calibration error, its interval, and the test of "is it calibrated".

    Attributes:
        value: The error measured.
        low: Lower end of the interval for the error of the population.
        high: Upper end.
        level: Of the interval; the hypothesis is refuted at 1 − level.
        p_value: How often chance alone gives as large an error to a calibrated model.
        kind: Which error.
        rows: n.
    """

    value: float
    low: float
    high: float
    level: float
    p_value: float
    kind: str
    rows: int

    @property
    def calibrated(self) -> bool:
        """Whether the sample does not refute that the model is calibrated."""
        return self.p_value >= 1 - self.level

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        verdict = "not refuted" if self.calibrated else "refuted"
        return (
            f"{self.kind} calibration error {self.value:.4f}, {100 * self.level:g} % interval "
            f"{self.low:.4f} to {self.high:.4f}; calibrated: {verdict} (p = {self.p_value:.3g})"
        )

    __str__ = __repr__


def calibration_error(
    y: Any,
    p: Any,
    kind: str = "top-label",
    *,
    bins: int = 15,
    strategy: str = "width",
    label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    level: float = 0.95,
    draws: int = 1000,
    random_state: int = 0,
) -> CalibrationError:
    """The calibration error of probabilities, with its interval and its test.

    Args:
        y: Labels (n,), or class numbers.
        p: Probabilities (n, k), or (n,) of the second of two labels.
        kind: "top-label" (ECE), "classwise", "l2" (debiased), "smooth" (no bins).
        bins: Their number.
        strategy: "width" or "mass".
        label: Judge the probability of this label instead of the largest one.
        sample_weight: ω (n,) ≥ 0.
        classes: Labels of the columns (k,), where y does not hold them all.
        level: Of the interval.
        draws: Of the bootstrap, and as many of the test.
        random_state: Seed of both.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < p
    >>> calibration_error(y, p).calibrated, calibration_error(y, p**2).calibrated
    (True, False)
    """
    if kind not in KINDS:
        raise InputError(f"kind is {kind!r}", f"one of {', '.join(KINDS)}", nearest(kind, KINDS))
    check_bins(bins, strategy)
    check_fraction(level)
    forecast = read_forecast(y, p, sample_weight, classes)
    measure = _measure(forecast, kind, label, bins, strategy)
    generator = np.random.default_rng(random_state)
    return error_of(measure, kind, level, draws, generator)


def _measure(forecast: Forecast, kind: str, label: Any, bins: int, strategy: str) -> Measure:
    if kind == "classwise" and label is None:
        return Classwise.over(forecast, bins, strategy)
    of: type[Statement] = {"l2": Squared, "smooth": Smooth}.get(kind, TopLabel)
    return of.over(judged(forecast, label), bins, strategy)


def error_of(
    measure: Measure, kind: str, level: float, draws: int, generator: np.random.Generator
) -> CalibrationError:
    """A measure's number, with its interval and test."""
    blocks = measure.sums(*deal(len(measure.weights()), generator, measure.blocks))
    sums = blocks.sum(axis=0)
    value, centre = float(measure.estimate(sums)), float(measure.plain(sums))
    supposed = measure.with_residuals(consistent_residuals(measure, draws, generator), sums)
    # Equal up to rounding is as large as.
    reached = measure.estimate(supposed) >= value - 1e-12 * max(1.0, abs(value))
    chance = float(1 + np.count_nonzero(reached)) / (1 + draws)
    tail = (1 - level) / 2
    drawn = measure.estimate(resample(blocks, draws, generator))
    low, high = value + centre - np.quantile(drawn, [1 - tail, tail])
    low = 0.0 if chance >= tail else min(low, value)
    low, at, high = (float(measure.published(max(v, 0.0))) for v in (low, value, max(high, value)))
    return CalibrationError(at, low, high, level, chance, kind, len(measure.weights()))
