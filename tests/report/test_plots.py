"""The pictures hold the numbers they claim to show."""

import numpy as np
import pytest

import wonderland as wl
from wonderland.core.errors import InputError
from wonderland.report.plots import plot_descent_rate, plot_intervals, plot_ridge_path

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def data(rng):
    X = rng.normal(size=(60, 8)) * np.arange(1, 9)
    return X, X @ rng.normal(size=8) + rng.normal(size=60)


@pytest.fixture(autouse=True)
def _closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_ridge_path_draws_every_coefficient_and_marks_the_least_error(data, tmp_path):
    path = wl.ridge_path(*data, np.logspace(-2, 4, 13))
    figure = plot_ridge_path(path, [f"column {j}" for j in range(8)])
    upper, lower = figure.axes
    drawn = [line.get_ydata() for line in upper.lines if len(line.get_ydata()) == 13]
    assert len(drawn) == 8
    for column in path.coef.T:
        assert any(np.array_equal(column, line) for line in drawn)
    best = int(np.argmin(path.error))
    assert f"{path.alphas[best]:.3g}" in lower.texts[0].get_text()
    figure.savefig(tmp_path / "path.png")
    assert (tmp_path / "path.png").stat().st_size > 10_000


def test_ridge_path_of_one_output_among_several(data):
    X, y = data
    path = wl.ridge_path(X, np.column_stack([y, y**2]), [0.1, 1.0, 10.0])
    _, lower = plot_ridge_path(path, output=1).axes
    assert np.array_equal(lower.lines[0].get_ydata(), path.error[:, 1])


def test_intervals_are_those_of_the_estimator_in_units_of_the_columns(data):
    X, y = data
    model = wl.LinearRegression().fit(X, y)
    (axis,) = plot_intervals(model, X, level=0.9).axes
    low, high = model.confidence_interval(0.9)
    rows = {label.get_text(): row for row, label in enumerate(axis.get_yticklabels())}
    bars = {tuple(line.get_ydata()): line.get_xdata() for line in axis.lines}
    for j, spread in enumerate(X.std(axis=0)):
        row = rows[f"x{j}"]
        np.testing.assert_allclose(bars[(row, row)], [low[j] * spread, high[j] * spread])


def test_intervals_with_a_basis_and_names(data):
    X, y = data
    model = wl.LinearRegression(basis=wl.bases.Polynomial(2)).fit(X[:, :1], y)
    (axis,) = plot_intervals(model, X[:, :1], ["x", "x²"]).axes
    assert {label.get_text() for label in axis.get_yticklabels()} == {"x", "x²"}


def test_descent_is_drawn_under_its_bound(data):
    X, y = data
    (axis,) = plot_descent_rate(X / X.std(axis=0), y, alpha=1.0, steps=50).axes
    lines = {line.get_label(): line for line in axis.lines}
    for name in ("plain", "with momentum"):
        happened, bound = lines[f"{name}: happened"], lines[f"{name}: theorem's bound"]
        promised = dict(zip(*bound.get_data(), strict=True))
        shared = [
            (gap, promised[k]) for k, gap in zip(*happened.get_data(), strict=True) if k in promised
        ]
        assert len(shared) > 5
        assert all(gap <= limit * (1 + 1e-9) for gap, limit in shared)


def test_draws_into_axes_given(data):
    from matplotlib import pyplot

    figure, axis = pyplot.subplots()
    assert plot_descent_rate(*data, steps=5, axes=axis) is figure


def test_what_cannot_be_drawn_is_refused(data):
    X, y = data
    two = wl.LinearRegression().fit(X, np.column_stack([y, y**2]))
    with pytest.raises(InputError, match="2 outputs"):
        plot_intervals(two)
    with pytest.raises(InputError, match="1 names for 8"):
        plot_ridge_path(wl.ridge_path(X, y, [1.0, 2.0]), ["alone"])
    with pytest.raises(InputError, match="1 axes"):
        plot_ridge_path(wl.ridge_path(X, y, [1.0, 2.0]), axes=[None])
