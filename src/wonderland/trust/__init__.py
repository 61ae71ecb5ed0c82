"""Predictions that can be acted on: calibration, cost, coverage, averaging, for any estimator."""
