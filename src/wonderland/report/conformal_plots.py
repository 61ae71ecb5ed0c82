"""Pictures of prediction sets and intervals; each function gives back a matplotlib figure."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.metrics.intervals import coverage_band
from wonderland.report.plots import COLOURS, GREY, INK, prepare_axes

__all__ = ["plot_coverage", "plot_interval_band", "plot_set_sizes"]

LEVELS = np.linspace(0.02, 0.5, 25)


def plot_coverage(
    estimator: Any, X: Any, y: Any, alphas: Sequence[float] | None = None, *, axes: Any = None
) -> Any:
    """Coverage on test data against the level asked for, in its exact band.

    Args:
        estimator: A fitted conformal classifier or regressor, of one group.
        X: Test samples (m, d).
        y: Their truth (m,).
        alphas: Levels; None for 25 between 2 % and 50 % that the calibration rows allow.
        axes: Where to draw; None makes a figure.

    >>> import wonderland as wl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 1)); y = X[:, 0] + rng.normal(size=600)
    >>> fitted = wl.ConformalRegressor(wl.Ridge(), random_state=0).fit(X[:400], y[:400])
    >>> figure = plot_coverage(fitted, X[400:], y[400:])
    >>> figure.axes[0].get_ylabel()
    'share of truths covered'
    """
    n = int(estimator.calibration_.counts.sum())
    asked = LEVELS if alphas is None else np.sort(np.asarray(alphas, dtype=float))
    levels = [float(level) for level in asked if level * (n + 1) >= 1]
    if not levels:
        raise InputError(
            f"no level that {n} calibration rows allow", f"alpha ≥ {1 / (n + 1):.3g}", "Pass others"
        )
    found = [part.contains(y).mean() for part in _predicted(estimator, X, levels)]
    wanted = 1 - np.array(levels)
    (axis,) = prepare_axes(axes, 1, (6.0, 5.0), [1])
    if estimator.calibration_.plain:
        band = np.array([coverage_band(n, len(y), level, 0.95) for level in levels])
        axis.fill_between(
            wanted, band[:, 0], band[:, 1], color=GREY, alpha=0.5, label="exact 95 % band"
        )
    axis.plot(wanted, wanted, color=INK, linewidth=1, linestyle="--", label="asked for")
    axis.plot(wanted, found, "o-", color=COLOURS[0], markersize=4, label="found")
    axis.set(xlabel="coverage asked for, 1 − alpha", ylabel="share of truths covered")
    axis.legend(frameon=False, loc="upper left")
    return axis.figure


def _predicted(estimator: Any, X: Any, levels: list[float]) -> Any:
    sets = hasattr(estimator, "predict_set")
    return (estimator.predict_set if sets else estimator.predict_interval)(X, levels)


def plot_set_sizes(
    estimator: Any, X: Any, y: Any = None, alpha: float | None = None, *, axes: Any = None
) -> Any:
    """How many labels the sets hold; with the truth also the coverage of each size.

    Args:
        estimator: A fitted conformal classifier.
        X: Samples (m, d).
        y: Their labels (m,), or None.
        alpha: The level; None for that of the fit.
        axes: Where to draw; None makes a figure.

    >>> import wonderland as wl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1)); y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    >>> fitted = wl.ConformalClassifier(wl.LogisticRegression(), random_state=0).fit(X, y)
    >>> plot_set_sizes(fitted, X, y).axes[0].get_xlabel()
    'labels in the set'
    """
    sets = estimator.predict_set(X, alpha)
    size, most = sets.size, len(sets.classes)
    share = np.bincount(size, minlength=most + 1) / len(size)
    (axis,) = prepare_axes(axes, 1, (6.5, 4.0), [1])
    bars = axis.bar(np.arange(most + 1), share, color=COLOURS[0], width=0.7)
    if y is not None:
        hit = sets.contains(y)
        for number, bar in enumerate(bars):
            if (size == number).any():
                axis.annotate(
                    f"{hit[size == number].mean():.0%} covered",
                    (number, bar.get_height()),
                    xytext=(0, 3),
                    textcoords="offset points",
                    ha="center",
                    fontsize=8,
                    color=INK,
                )
    axis.set_xticks(range(most + 1))
    axis.margins(y=0.12)
    axis.grid(visible=False, axis="x")
    axis.set(xlabel="labels in the set", ylabel="share of samples")
    axis.set_title(f"alpha = {sets.alpha:g}: mean size {size.mean():.2f}", loc="left", fontsize=10)
    return axis.figure


def plot_interval_band(
    estimator: Any,
    X: Any,
    y: Any = None,
    column: int = 0,
    *,
    alpha: float | None = None,
    axes: Any = None,
) -> Any:
    """Intervals along one feature, with the targets; those outside are marked.

    Args:
        estimator: A fitted conformal regressor.
        X: Samples (m, d).
        y: Their targets (m,), or None.
        column: The feature along which to draw.
        alpha: The level; None for that of the fit.
        axes: Where to draw; None makes a figure.

    >>> import wonderland as wl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1)); y = X[:, 0] + rng.normal(size=300)
    >>> fitted = wl.ConformalRegressor(wl.Ridge(), random_state=0).fit(X, y)
    >>> plot_interval_band(fitted, X, y).axes[0].get_xlabel()
    'x0'
    """
    names = getattr(X, "columns", None)
    values = np.asarray(X, dtype=float)[:, column]
    order = np.argsort(values)
    found = estimator.predict_interval(X, alpha)
    middle = np.asarray(estimator.predict(X))
    (axis,) = prepare_axes(axes, 1, (7.5, 4.5), [1])
    if np.asarray(X).shape[1] == 1:
        axis.fill_between(
            values[order], found.lower[order], found.upper[order], color=COLOURS[0], alpha=0.18
        )
        axis.plot(values[order], middle[order], color=COLOURS[0], label="prediction")
    else:  # other features move the ends: a bar for each sample instead of a band
        axis.vlines(values, found.lower, found.upper, color=COLOURS[0], alpha=0.25, linewidth=1)
        axis.plot(values, middle, ".", color=COLOURS[0], markersize=4, label="prediction")
    if y is not None:
        y = np.asarray(y, dtype=float)
        inside = found.contains(y)
        axis.plot(values[inside], y[inside], ".", color=INK, markersize=4, label="inside")
        share = f"outside ({np.mean(~inside):.1%})"
        axis.plot(values[~inside], y[~inside], "x", color=COLOURS[1], markersize=5, label=share)
    axis.legend(frameon=False, loc="best")
    axis.set(xlabel=f"x{column}" if names is None else str(names[column]), ylabel="y")
    axis.set_title(f"intervals for alpha = {found.alpha:g}", loc="left", fontsize=10)
    return axis.figure
