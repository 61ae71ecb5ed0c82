"""The reliability table and its edges."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from wonderland.metrics import reliability
from wonderland.metrics.bins import assign, edges_of


def test_the_table_is_scikit_learns_curve(rng):
    p = rng.uniform(size=500)
    y = rng.uniform(size=500) < p**2
    for strategy, theirs in (("width", "uniform"), ("mass", "quantile")):
        table = reliability(y, p, bins=10, strategy=strategy, label=True)
        true, said = calibration_curve(y, p, n_bins=10, strategy=theirs)
        slack = 1e-12 if strategy == "width" else 0.02  # quantiles of their own definition
        np.testing.assert_allclose(table.accuracy, true, atol=slack + 0.05 * (slack > 1e-3))
        np.testing.assert_allclose(table.confidence, said, atol=slack)


def test_decimal_confidences_lie_where_people_say():
    edges = edges_of(np.zeros(1), None, 10, "width")
    tenths = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert assign(tenths, edges).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9]


def test_equal_mass_keeps_equal_confidences_together(rng):
    confidence = np.repeat([0.2, 0.5, 0.9], [10, 80, 10])
    for weight in (None, np.ones(100)):
        edges = edges_of(confidence, weight, 10, "mass")
        assert len(np.unique(assign(confidence, edges)[10:90])) == 1
    many = rng.uniform(size=1000)
    counts = np.bincount(assign(many, edges_of(many, None, 8, "mass")))
    assert counts.tolist() == [125] * 8


def test_it_prints_and_becomes_a_frame(rng):
    pd = pytest.importorskip("pandas")
    p = rng.uniform(size=50)
    table = reliability(rng.uniform(size=50) < p, p, bins=4)
    frame = table.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == len(table)
    assert str(table).splitlines()[-1].startswith("calibration error")
    assert np.all((table.low <= table.accuracy) & (table.accuracy <= table.high))
