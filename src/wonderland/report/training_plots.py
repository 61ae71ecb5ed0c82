"""Curves of a training run: losses, score and learning rate against the epochs."""

from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.report.plots import COLOURS, GREY, prepare_axes

__all__ = ["plot_training"]


def plot_training(history: Any, *, member: int | None = None, axes: Any = None) -> Any:
    """Training and validation loss over the epochs, and under them the learning rate.

    Args:
        history: `solution.evidence["history"]` of `wl.train` or `training.fit_many`.
        member: Which fit, where there are many; None draws the mean and all of them in grey.
        axes: Two axes, upper and lower; None makes a figure.

    >>> from wonderland.training import History, Record
    >>> records = [Record(e, e, 1.0 / (e + 1), 1.2 / (e + 1), 0, 1e-3, 0, 0, e) for e in range(5)]
    >>> figure = plot_training(History.of(records))
    >>> [axis.get_ylabel() for axis in figure.axes]
    ['loss', 'learning rate']
    """
    if len(history) == 0:
        raise InputError("the history is empty", "at least one epoch", "Train for an epoch first")
    upper, lower = prepare_axes(axes, 2, (6.4, 5.4), (3, 1))
    epochs = np.asarray(history.epoch) + 1
    curves = (("training", history.loss), ("validation", history.validation_loss))
    for (name, values), colour in zip(curves, COLOURS, strict=False):
        _draw(upper, epochs, _chosen(values, member), name, colour)
    upper.set_ylabel("loss")
    upper.legend(frameon=False)
    score = _middle(_chosen(history.score, member))
    if np.isfinite(score).any():
        upper.axvline(epochs[int(np.nanargmax(score))], color=GREY, linestyle="--", zorder=0)
    lower.plot(epochs, _middle(_chosen(history.learning_rate, member)), color=COLOURS[2])
    lower.set_xlabel("epoch")
    lower.set_ylabel("learning rate")
    return upper.figure


def _chosen(values: Any, member: int | None) -> np.ndarray:
    values = np.asarray(values, float)
    return values if member is None or values.ndim < 2 else values[:, member]


def _middle(values: np.ndarray) -> np.ndarray:
    """The mean over members that are still under way; NaN where none is."""
    if values.ndim < 2:
        return values
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=1)
    return np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.nan)


def _draw(axis: Any, epochs: np.ndarray, values: np.ndarray, name: str, colour: str) -> None:
    if not np.isfinite(values).any():
        return
    if values.ndim > 1:
        axis.plot(epochs, values, color=GREY, linewidth=0.6, zorder=1)
    axis.plot(epochs, _middle(values), color=colour, label=name, zorder=2)
