"""What a fit is worth: claims checked on new data, and pictures of them."""

from wonderland.report.history import History, descent_history
from wonderland.report.plots import plot_descent_rate, plot_intervals, plot_ridge_path

__all__ = [
    "History",
    "descent_history",
    "plot_descent_rate",
    "plot_intervals",
    "plot_ridge_path",
]
