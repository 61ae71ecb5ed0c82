"""How good, how calibrated, how certain: measures of predictions, each with its interval."""

from wonderland.metrics.calibration import CalibrationError, calibration_error
from wonderland.metrics.decompositions import Score, brier_score, log_loss
from wonderland.metrics.gap import Gap, generalisation_gap
from wonderland.metrics.intervals import (
    Interval,
    bootstrap,
    clopper_pearson,
    coverage_band,
    mean_interval,
)
from wonderland.metrics.reliability import Reliability, reliability

__all__ = [
    "CalibrationError",
    "Gap",
    "Interval",
    "Reliability",
    "Score",
    "bootstrap",
    "brier_score",
    "calibration_error",
    "clopper_pearson",
    "coverage_band",
    "generalisation_gap",
    "log_loss",
    "mean_interval",
    "reliability",
]
