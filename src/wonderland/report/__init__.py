"""What a fit is worth: claims checked on new data, and pictures of them."""

from wonderland.report.conformal_plots import plot_coverage, plot_interval_band, plot_set_sizes
from wonderland.report.history import History, descent_history
from wonderland.report.plots import plot_descent_rate, plot_intervals, plot_ridge_path
from wonderland.report.posterior_plots import plot_chains, plot_predictive
from wonderland.report.rates import RateReport, rate_report
from wonderland.report.trust_plots import plot_calibration, plot_reliability

__all__ = [
    "History",
    "RateReport",
    "descent_history",
    "plot_calibration",
    "plot_chains",
    "plot_coverage",
    "plot_descent_rate",
    "plot_interval_band",
    "plot_intervals",
    "plot_predictive",
    "plot_reliability",
    "plot_ridge_path",
    "plot_set_sizes",
    "rate_report",
]
