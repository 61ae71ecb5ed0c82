"""The curves of a run are those of its history."""

import numpy as np
import pytest

import wonderland as wl
from wonderland.report.training_plots import plot_training
from wonderland.training import History, Record

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def close(figure):
    from matplotlib import pyplot

    pyplot.close(figure)


def history(members=()):
    rng = np.random.default_rng(0)
    return History.of(
        Record(e, e, *(rng.uniform(size=members) for _ in range(6)), float(e)) for e in range(6)
    )


def test_curves_hold_the_numbers():
    one = history()
    figure = plot_training(one)
    upper, lower = figure.axes
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), one.loss)
    np.testing.assert_array_equal(upper.lines[1].get_ydata(), one.validation_loss)
    np.testing.assert_array_equal(lower.lines[0].get_ydata(), one.learning_rate)
    close(figure)


def test_many_fits_show_their_mean_or_one_of_them():
    many = history((3,))
    figure = plot_training(many)
    np.testing.assert_allclose(figure.axes[0].lines[3].get_ydata(), many.loss.mean(axis=1))
    close(figure)
    figure = plot_training(many, member=2)
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), many.loss[:, 2])
    close(figure)


def test_an_empty_history_is_told():
    with pytest.raises(wl.InputError, match="the history is empty"):
        plot_training(History.of([]))
