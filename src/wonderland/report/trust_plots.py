"""Pictures of calibration: what was said beside what came true."""

from typing import Any

import numpy as np

from wonderland.report.plots import COLOURS, prepare_axes

__all__ = ["plot_calibration", "plot_reliability"]

INK = "#30343a"


def plot_reliability(table: Any, *, axes: Any = None) -> Any:
    """The reliability diagram: accuracy over confidence with exact intervals, and the rows below.

    Points on the diagonal are calibrated; under it the model says more than is true.

    Args:
        table: From `wl.metrics.reliability`.
        axes: Two axes, upper and lower; None makes a figure.

    >>> import numpy as np, wonderland as wl
    >>> p = np.random.default_rng(0).uniform(size=500)
    >>> figure = plot_reliability(wl.metrics.reliability(p > 0.5, p, label=True))
    >>> [axis.get_ylabel() for axis in figure.axes]
    ['came true', 'rows']
    """
    upper, lower = prepare_axes(axes, 2, (5.5, 6.0), [4, 1])
    upper.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle="--", label="calibrated")
    upper.vlines(table.confidence, table.low, table.high, color=COLOURS[0], alpha=0.35, linewidth=4)
    upper.plot(
        table.confidence,
        table.accuracy,
        "o-",
        color=COLOURS[0],
        markersize=4,
        linewidth=1,
        label=f"measured, {table.level:.0%} intervals",
    )
    upper.set(ylabel="came true", ylim=(-0.02, 1.02), title=f"calibration error {table.error:.3f}")
    upper.legend(frameon=False, loc="upper left")
    width = table.right - table.left
    lower.bar(table.left, table.count, width=width, align="edge", color=COLOURS[0], alpha=0.6)
    said = "largest probability" if table.label is None else f"probability of {table.label!r}"
    lower.set(xlabel=said, ylabel="rows")
    for axis in (upper, lower):
        axis.set_xlim(-0.02, 1.02)
    upper.tick_params(labelbottom=False)
    return upper.figure


def plot_calibration(estimator: Any, *, axes: Any = None) -> Any:
    """What calibration was worth: error and log loss on held-out rows, before and after.

    Args:
        estimator: A fitted `wl.CalibratedClassifier`.
        axes: Two axes; None makes a figure.

    >>> import wonderland as wl
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> fitted = wl.CalibratedClassifier(wl.LogisticRegression(), cv=3).fit(X, y)
    >>> [axis.get_xlabel() for axis in plot_calibration(fitted).axes]
    ['calibration error', 'log loss']
    """
    found = prepare_axes(axes, 2, (6.5, 3.2), [1, 1])
    for axis, name in zip(found, ("calibration_error", "log_loss"), strict=True):
        for row, when in enumerate(("before", "after")):
            claim = estimator.evidence_[f"{name}_{when}"].value
            ends = [claim.low, claim.high]
            if np.all(np.isfinite(ends)):
                axis.plot(ends, [row, row], color=COLOURS[1 - row], linewidth=4, alpha=0.4)
            axis.plot(claim.value, row, "o", color=COLOURS[1 - row])
        axis.set_yticks([0, 1], ["before", "after"])
        axis.set_ylim(1.6, -0.6)
        axis.set_xlabel(name.replace("_", " "))
    return found[0].figure
