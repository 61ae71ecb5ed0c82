"""Proper scores, taken apart into what recalibration could mend and what it could not.

    S̄(p) = calibration + refinement,     refinement = S̄(g(p)),  calibration = S̄(p) − S̄(g(p)) ≥ 0

g is the best map of the probabilities alone: it may say other numbers, and knows nothing more.

    two classes           g non-decreasing (isotonic): the CORP decomposition, for both scores
    Brier, more classes   the same for each class's own probability; the score is their sum
    log loss, more        g(p) ∝ p^β, the best β: what temperature scaling would gain

The sum is exact: calibration is defined as what is left. Intervals are Student's for the means over
rows, the map g taken as given. Shapes: n rows, k classes.

Reference: Bröcker (2009), Reliability, sufficiency, and the decomposition of proper scores;
Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wonderland.metrics.intervals import Interval, check_fraction, mean_interval
from wonderland.metrics.isotonic import isotonic
from wonderland.metrics.probabilities import Forecast, read_forecast
from wonderland.metrics.sharpness import best_sharpness, power_loss

__all__ = ["Score", "brier_score", "log_loss"]


@dataclass(frozen=True)
class Score:
    """A mean proper score and its two parts, each with its interval.

    Attributes:
        name: Which score; less is better.
        score: S̄(p).
        calibration: What g gains.
        refinement: S̄(g(p)), what even g leaves.
        recalibration: Which maps g were tried, and which was best.
    """

    name: str
    score: Interval
    calibration: Interval
    refinement: Interval
    recalibration: str

    @property
    def value(self) -> float:
        """S̄(p) = calibration.value + refinement.value."""
        return self.score.value

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return (
            f"{self.name} {self.score}\n"
            f"  calibration {self.calibration}: what would be gained by {self.recalibration}\n"
            f"  refinement {self.refinement}: what would be left"
        )

    __str__ = __repr__


def brier_score(
    y: Any, p: Any, *, sample_weight: Any = None, classes: Any = None, level: float = 0.95
) -> Score:
    """The mean squared distance of probabilities from what came true.

    Two classes: E (p − o)². More: E Σ_j (p_j − o_j)², as scikit-learn scales them.

    Args:
        y: Labels (n,), or class numbers.
        p: Probabilities (n, k), or (n,) of the second of two labels.
        sample_weight: ω (n,) ≥ 0.
        classes: Labels of the columns (k,), where y does not hold them all.
        level: Of the intervals.

    >>> found = brier_score([0, 1, 0, 1], [0.2, 0.2, 0.8, 0.8])
    >>> round(found.value, 3), round(found.calibration.value, 3), round(found.refinement.value, 3)
    (0.34, 0.09, 0.25)
    """
    forecast = read_forecast(y, p, sample_weight, classes)
    columns = [1] if forecast.p.shape[1] == 2 else range(forecast.p.shape[1])
    said, mended = np.zeros(len(forecast.codes)), np.zeros(len(forecast.codes))
    for j in columns:
        true, column = (forecast.codes == j).astype(np.float64), forecast.p[:, j]
        said += (column - true) ** 2
        mended += (isotonic(column, true, forecast.weight)(column) - true) ** 2
    how = "the best rising function of the probability" + ", class by class" * (len(columns) > 1)
    return _score("Brier score", said, mended, forecast, level, how)


def log_loss(
    y: Any, p: Any, *, sample_weight: Any = None, classes: Any = None, level: float = 0.95
) -> Score:
    """The mean of −log p of what came true; infinite where that was said to be impossible.

    Args:
        y: Labels (n,), or class numbers.
        p: Probabilities (n, k), or (n,) of the second of two labels.
        sample_weight: ω (n,) ≥ 0.
        classes: Labels of the columns (k,), where y does not hold them all.
        level: Of the intervals.

    >>> found = log_loss([0, 1, 0, 1], [0.2, 0.2, 0.8, 0.8])
    >>> round(found.value, 4), round(found.refinement.value, 4)  # log 2 is left
    (0.9163, 0.6931)
    """
    forecast = read_forecast(y, p, sample_weight, classes)
    codes, k = forecast.codes, forecast.p.shape[1]
    with np.errstate(divide="ignore"):
        said = -np.log(forecast.p[np.arange(len(codes)), codes])
    if k == 2:
        true, column = (codes == 1).astype(np.float64), forecast.p[:, 1]
        g = isotonic(column, true, forecast.weight)(column)
        how = "the best rising function of the probability"
        with np.errstate(divide="ignore"):
            mended = -np.log(np.clip(np.where(codes == 1, g, 1 - g), 0.0, 1.0))
        return _score("log loss", said, mended, forecast, level, how)
    z = np.log(np.maximum(forecast.p, np.finfo(float).tiny))
    beta = best_sharpness(z, codes, forecast.weight).beta
    mended = power_loss(z, codes, beta)
    return _score("log loss", said, mended, forecast, level, f"the best power of p, {beta:.4g}")


def _score(
    name: str, said: np.ndarray, mended: np.ndarray, forecast: Forecast, level: float, how: str
) -> Score:
    check_fraction(level)
    held = slice(None) if forecast.weight is None else forecast.weight > 0
    weight = None if forecast.weight is None else forecast.weight[held]
    score = _mean(said[held], weight, level)
    rest = _mean(mended[held], weight, level)
    gain = _mean(said[held] - mended[held], weight, level)
    # By subtraction, so that the parts add up to the last bit that subtraction leaves.
    gain = gain._replace(value=score.value - rest.value)
    return Score(name, score, gain, rest, how)


def _mean(values: np.ndarray, weight: np.ndarray | None, level: float) -> Interval:
    if not np.all(np.isfinite(values)):
        return Interval(np.inf, np.inf, np.inf, level)
    if len(values) < 2:
        return Interval(float(values[0]), -np.inf, np.inf, level)
    return mean_interval(values, weight, level)
