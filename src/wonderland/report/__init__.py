"""What a fit is worth: claims checked on new data, and pictures of them."""

from wonderland.report.history import History, descent_history
from wonderland.report.plots import plot_descent_rate, plot_intervals, plot_ridge_path
from wonderland.report.rates import RateReport, rate_report

__all__ = [
    "History",
    "RateReport",
    "descent_history",
    "plot_descent_rate",
    "plot_intervals",
    "plot_ridge_path",
    "rate_report",
]
