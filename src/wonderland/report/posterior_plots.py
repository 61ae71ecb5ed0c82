"""Pictures of predictions that are averages over a posterior, and of chains."""

from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.report.plots import COLOURS, GREY, INK, prepare_axes

__all__ = ["plot_chains", "plot_predictive"]

POINTS = 300  # of a curve
FEW = 600  # samples drawn as points


def plot_predictive(
    estimator: Any, X: Any, y: Any, feature: int = 0, *, level: float = 0.95, axes: Any = None
) -> Any:
    """The predictive distribution along one feature, its band in two parts.

    The inner band is what is not known of f (epistemic), the outer one is where a new target lies
    with probability `level`: it holds the scatter (aleatoric) as well. Other features are at their
    means. The lower panel has both variances.

    Args:
        estimator: A fitted `BayesianLinearRegression`, or a `Posterior` around a regressor.
        X: Samples (n, d), an array.
        y: Their targets (n,).
        feature: Which column the horizontal axis shows.
        level: Of the bands.
        axes: Two axes, upper and lower; None makes a figure.

    >>> import wonderland as wl
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * x[:, 0])
    >>> model = wl.BayesianLinearRegression(basis=wl.bases.Polynomial(3)).fit(x, y)
    >>> [axis.get_ylabel() for axis in plot_predictive(model, x, y).axes]
    ['y', 'variance']
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if X.ndim != 2 or not 0 <= feature < X.shape[1]:
        raise InputError(
            f"feature {feature!r} of a table of shape {X.shape}",
            "a column number of a two-dimensional table",
            "Pass feature=0",
        )
    path = _path(X, feature)
    x = path[:, feature]
    mean = np.asarray(estimator.predict(path))
    low, high = (np.asarray(end) for end in estimator.prediction_interval(path, level))
    parts = estimator.uncertainty(path)
    epistemic, aleatoric = np.asarray(parts.epistemic), np.asarray(parts.aleatoric)
    inner = np.sqrt(epistemic / (epistemic + aleatoric))
    upper, lower = prepare_axes(axes, 2, (7.5, 6.0), [3, 1])
    shown = np.linspace(0, len(X) - 1, min(len(X), FEW)).astype(int)
    upper.scatter(X[shown, feature], y[shown], s=14, color=INK, alpha=0.6, linewidths=0, zorder=3)
    upper.fill_between(
        x, low, high, color=COLOURS[0], alpha=0.15, linewidth=0, label=f"{level:.0%} of targets"
    )
    upper.fill_between(
        x,
        mean - inner * (mean - low),
        mean + inner * (high - mean),
        color=COLOURS[0],
        alpha=0.35,
        linewidth=0,
        label=f"{level:.0%} of f",
    )
    upper.plot(x, mean, color=COLOURS[0], linewidth=2, label="mean")
    upper.legend(frameon=False, loc="best")
    upper.set(ylabel="y")
    upper.tick_params(labelbottom=False)
    lower.stackplot(
        x, aleatoric, epistemic, colors=(GREY, COLOURS[0]), labels=("aleatoric", "epistemic")
    )
    lower.legend(framealpha=0.9, edgecolor="white", loc="best", ncols=2)
    lower.set(xlabel=_name(estimator, feature), ylabel="variance", ylim=(0.0, None))
    upper.sharex(lower)
    return upper.figure


def _path(X: np.ndarray, feature: int) -> np.ndarray:
    """Rows along a feature, a tenth of its range beyond the data; the others at their means."""
    low, high = X[:, feature].min(), X[:, feature].max()
    reach = 0.1 * (high - low)
    path = np.tile(X.mean(axis=0), (POINTS, 1))
    path[:, feature] = np.linspace(low - reach, high + reach, POINTS)
    return path


def _name(estimator: Any, feature: int) -> str:
    names = getattr(estimator, "feature_names_in_", None)
    return f"x{feature}" if names is None else str(names[feature])


def plot_chains(draws: Any, names: Any = None, *, axes: Any = None) -> Any:
    """Traces of chains, one panel for each parameter: mixed chains cannot be told apart.

    Args:
        draws: (chains, draws, p) or (chains, draws), such as a leaf of `wl.trust.sample(…).draws`.
        names: Of the parameters (p,).
        axes: As many axes as parameters; None makes a figure.

    >>> figure = plot_chains(np.random.default_rng(0).normal(size=(4, 100, 2)), ["a", "b"])
    >>> [axis.get_ylabel() for axis in figure.axes]
    ['a', 'b']
    """
    draws = np.asarray(draws, dtype=np.float64)
    draws = draws[..., None] if draws.ndim == 2 else draws
    if draws.ndim != 3 or draws.shape[2] > 12:
        raise InputError(
            f"draws of shape {draws.shape}",
            "(chains, draws, p) with at most 12 parameters",
            "Choose some: draws[..., :6]",
        )
    count = draws.shape[2]
    panels = prepare_axes(axes, count, (7.5, 1.0 + 1.4 * count), [1] * count)
    for k, axis in enumerate(panels):
        for m, chain in enumerate(draws[..., k]):
            colour = COLOURS[m % len(COLOURS)]
            axis.plot(chain, color=colour, linewidth=0.6, alpha=0.8)
        axis.set(ylabel=f"x{k}" if names is None else str(names[k]))
        axis.tick_params(labelbottom=k == count - 1)
    panels[-1].set(xlabel="draw")
    return panels[0].figure
