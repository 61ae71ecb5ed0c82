"""The pictures hold the numbers they claim to show; test data join the evidence."""

import numpy as np
import pytest

import wonderland as wl
from wonderland.report import plot_coverage, plot_interval_band, plot_set_sizes

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture
def labels(rng):
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    return (
        wl.ConformalClassifier(wl.LogisticRegression(), random_state=0).fit(X[:300], y[:300]),
        X,
        y,
    )


@pytest.fixture
def numbers(rng):
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + rng.normal(size=400)
    return wl.ConformalRegressor(wl.Ridge(), random_state=0).fit(X[:300], y[:300]), X, y


def test_coverage_is_what_is_drawn(labels, numbers):
    for fitted, X, y in (labels, numbers):
        (axis,) = plot_coverage(fitted, X[300:], y[300:], [0.1, 0.3]).axes
        asked, found = axis.lines[-1].get_data()
        np.testing.assert_allclose(asked, [0.9, 0.7])
        predict = fitted.predict_set if fitted is labels[0] else fitted.predict_interval
        meant = [part.contains(y[300:]).mean() for part in predict(X[300:], [0.1, 0.3])]
        np.testing.assert_allclose(found, meant)
    with pytest.raises(wl.InputError, match="no level"):
        plot_coverage(fitted, X, y, [1e-4])


def test_set_sizes_are_what_is_drawn(labels):
    fitted, X, y = labels
    (axis,) = plot_set_sizes(fitted, X, y).axes
    heights = [bar.get_height() for bar in axis.patches]
    sizes = fitted.predict_set(X).size
    np.testing.assert_allclose(heights, np.bincount(sizes, minlength=3) / 400)


def test_intervals_along_a_feature(numbers):
    fitted, X, y = numbers
    (axis,) = plot_interval_band(fitted, X, y, column=1).axes
    assert axis.get_xlabel() == "x1"
    outside = ~fitted.predict_interval(X).contains(y)
    assert len(axis.lines[-1].get_xdata()) == outside.sum()


def test_verify_measures_on_test_data(labels, numbers):
    for fitted, X, y in (labels, numbers):
        evidence = wl.verify(fitted, X[300:], y[300:])
        low, high = evidence["test_coverage"].bound
        assert low < 0.9 < high
        assert evidence["test_coverage"].holds == (evidence["test_coverage"].value >= low)
        assert fitted.evidence_["promised_coverage"].value == 0.9
