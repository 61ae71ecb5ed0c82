"""Predictions that can be acted on: calibration, cost, coverage, averaging, for any estimator."""

from wonderland.trust import diagnostics
from wonderland.trust.sampling import Effort, Sample, Summary, sample

__all__ = ["Effort", "Sample", "Summary", "diagnostics", "sample"]
