"""Pictures of fits; each function takes what a fit returned and gives back a matplotlib figure.

matplotlib is the optional extra `plot`, imported when a picture is asked for. Pass `axes=` to draw
into a figure of your own.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, optional
from wonderland.report.history import History, descent_history

__all__ = ["COLOURS", "plot_descent_rate", "plot_intervals", "plot_ridge_path", "prepare_axes"]

# Told apart also by readers who do not see all colours; the rest of many lines is grey.
COLOURS = ("#0b6fb8", "#d1495b", "#2e8b57", "#8a4fbd", "#c77700", "#00838f")
GREY, INK = "#b8bcc2", "#30343a"


def plot_ridge_path(
    path: Any, names: Sequence[str] | None = None, *, output: int = 0, axes: Any = None
) -> Any:
    """Coefficients over the penalty, and under them the exact leave-one-out error.

    Args:
        path: From `wl.ridge_path`.
        names: Of the columns (d,).
        output: Which output to draw, where there are several.
        axes: Two axes, upper and lower; None makes a figure.

    >>> import numpy as np, wonderland as wl
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> figure = plot_ridge_path(wl.ridge_path(X, X @ [1.0, 2.0] + X[:, 0] ** 2))
    >>> [axis.get_ylabel() for axis in figure.axes]
    ['coefficient', 'leave-one-out error']
    """
    coef = path.coef if path.coef.ndim == 2 else path.coef[:, output]
    error = path.error if path.error.ndim == 1 else path.error[:, output]
    labels = _labels(names, coef.shape[1])
    upper, lower = prepare_axes(axes, 2, (7.5, 6.0), [2, 1])
    _draw_coefficients(upper, path.alphas, coef, labels)
    best = int(np.argmin(error))
    lower.plot(path.alphas, error, color=INK, marker="o", markersize=3)
    lower.plot(path.alphas[best], error[best], "o", color=COLOURS[1], markersize=8)
    left = np.log(path.alphas[best]) < np.log(path.alphas).mean()  # write where there is room
    lower.annotate(
        f"least at alpha = {path.alphas[best]:.3g}",
        (path.alphas[best], error[best]),
        xytext=(8 if left else -8, 10),
        textcoords="offset points",
        ha="left" if left else "right",
        color=COLOURS[1],
    )
    for axis in (upper, lower):
        axis.axvline(path.alphas[best], color=COLOURS[1], linewidth=0.8, linestyle=":")
    lower.margins(y=0.2)
    lower.set(xscale="log", xlabel="penalty alpha", ylabel="leave-one-out error")
    return upper.figure


def _draw_coefficients(axis: Any, alphas: Any, coef: np.ndarray, labels: Sequence[str]) -> None:
    """One line for each column; the largest ones coloured and named at their left end."""
    order = np.argsort(-np.abs(coef[np.argmin(alphas)]))
    named = order[: len(COLOURS)]
    for j in order[len(COLOURS) :]:
        axis.plot(alphas, coef[:, j], color=GREY, linewidth=1)
    for j, colour in zip(named, COLOURS, strict=False):
        axis.plot(alphas, coef[:, j], color=colour, label=labels[j])
    axis.axhline(0.0, color=INK, linewidth=0.6)
    # The legend in the order in which the lines start, from above.
    start = coef[np.argmin(alphas), named]
    handles = [axis.get_legend_handles_labels()[0][k] for k in np.argsort(-start)]
    axis.legend(handles=handles, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    axis.set(xscale="log", ylabel="coefficient")
    axis.tick_params(labelbottom=False)


def plot_intervals(
    estimator: Any,
    X: Any = None,
    names: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    axes: Any = None,
) -> Any:
    """Coefficients with their confidence intervals, largest first; those that cover zero are grey.

    Args:
        estimator: A fitted linear estimator with one output.
        X: Samples (n, d); when given, each coefficient is multiplied by the standard deviation of
            its column, so that columns of different units can be compared.
        names: Of the coefficients; by default those the estimator knows.
        level: Of the intervals.
        axes: Where to draw; None makes a figure.

    >>> import numpy as np, wonderland as wl
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> figure = plot_intervals(wl.LinearRegression().fit(X, X @ [1.0, 2.0] + X[:, 0] ** 2))
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['x1', 'x0']
    """
    coef = np.asarray(estimator.coef_)
    if coef.ndim != 1:
        raise InputError(
            f"the estimator has {len(coef)} outputs", "one output", "Fit and draw them one by one"
        )
    scale = np.ones(len(coef)) if X is None else _deviations(estimator, X)
    low, high = (scale * end for end in estimator.confidence_interval(level))
    middle, known = scale * coef, names if names is not None else _known(estimator)
    labels = _labels(known, len(coef))
    order = np.argsort(-np.abs(middle))
    (axis,) = prepare_axes(axes, 1, (7.0, 1.2 + 0.32 * len(coef)), [1])
    axis.axvline(0.0, color=INK, linewidth=0.8)
    for row, j in enumerate(order):
        colour = GREY if low[j] <= 0 <= high[j] else COLOURS[0]
        axis.plot([low[j], high[j]], [row, row], color=colour, linewidth=3, solid_capstyle="butt")
        axis.plot(middle[j], row, "o", color=colour, markersize=6, markeredgecolor="white")
    axis.set_yticks(range(len(order)), [labels[j] for j in order])
    axis.invert_yaxis()
    unit = "coefficient" if X is None else "coefficient × standard deviation of the column"
    axis.set_xlabel(f"{unit}, {level:.0%} interval (grey: covers zero)")
    return axis.figure


def _deviations(estimator: Any, X: Any) -> np.ndarray:
    basis = estimator.model_.basis
    table = np.asarray(X, dtype=np.float64)
    return np.std(table if basis is None else np.asarray(basis(table)), axis=0)


def _known(estimator: Any) -> Sequence[str] | None:
    """Column names the estimator remembers, where they are those of the coefficients."""
    return (
        None
        if estimator.model_.basis is not None
        else getattr(estimator, "feature_names_in_", None)
    )


def plot_descent_rate(
    X: Any, y: Any, *, alpha: float = 0.0, steps: int = 200, axes: Any = None
) -> Any:
    """How fast gradient descent closes the gap f(w_k) − f*, beside what its theorem promises.

    Solid: what happened, with and without momentum. Dashed: the bound of the theorem with the
    constants measured on the data. A solid line above its dashed one would refute the theorem.

    Args:
        X: Dense samples (n, d); standardised columns make the picture readable.
        y: (n,) or (n, t).
        alpha: Ridge penalty.
        steps: Steps to take.
        axes: Where to draw; None makes a figure.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> figure = plot_descent_rate(X, X @ [1.0, 2.0, 3.0], steps=30)
    >>> len(figure.axes[0].lines)
    4
    """
    (axis,) = prepare_axes(axes, 1, (7.5, 4.5), [1])
    for momentum, colour in ((False, COLOURS[0]), (True, COLOURS[1])):
        found = descent_history(X, y, alpha=alpha, steps=steps, momentum=momentum)
        name = "with momentum" if momentum else "plain"
        _draw_history(axis, found, name, colour)
    kappa = found.lipschitz / found.strong_convexity if found.strong_convexity > 0 else np.inf
    axis.set(
        yscale="log",
        xlabel="step k",
        ylabel="f(w_k) − f*",
        title=f"gradient descent, condition L/m = {kappa:.3g}",
    )
    axis.legend(frameon=False)
    return axis.figure


def _draw_history(axis: Any, found: History, name: str, colour: str) -> None:
    # An error of some ε in w leaves a gap of about ε²·L·D²: below it there is only rounding.
    floor = (64 * np.finfo(float).eps) ** 2 * found.lipschitz * found.distance**2
    steps = np.arange(len(found.gap))
    shown = found.gap > floor
    axis.plot(steps[shown], found.gap[shown], color=colour, label=f"{name}: happened")
    above = found.bound > floor
    axis.plot(
        steps[above],
        found.bound[above],
        color=colour,
        linestyle="--",
        linewidth=1,
        label=f"{name}: theorem's bound",
    )


def _labels(names: Sequence[str] | None, count: int) -> list[str]:
    if names is None:
        return [f"x{j}" for j in range(count)]
    if len(names) != count:
        raise InputError(
            f"{len(names)} names for {count} coefficients",
            "one name for each coefficient",
            "Pass names after the basis, or None",
        )
    return [str(name) for name in names]


def prepare_axes(
    axes: Any, count: int, size: tuple[float, float], heights: Sequence[int]
) -> list[Any]:
    """The axes given, or those of a new figure."""
    if axes is None:
        pyplot = optional("matplotlib.pyplot", "plot")
        _, axes = pyplot.subplots(
            count, 1, figsize=size, height_ratios=heights, layout="constrained", squeeze=False
        )
    found = list(np.ravel(axes))
    if len(found) != count:
        raise InputError(f"{len(found)} axes", f"{count}", "Pass as many, or axes=None")
    for axis in found:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, color="#e6e8eb", linewidth=0.6)
        axis.set_axisbelow(True)
    return found
