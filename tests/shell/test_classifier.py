"""The base of classifiers, tried with the smallest rule there is: the nearest class mean."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import wonderland as wl
from wonderland.core.evidence import Evidence
from wonderland.core.status import Status
from wonderland.shell.classifier import Classifier


class NearestMean(Classifier):
    def __init__(self, class_weight=None):
        self.class_weight = class_weight

    def _fit(self, table):
        self.seen = table
        weight = np.ones(len(table.codes)) if table.weight is None else table.weight
        means = [
            np.average(table.X[table.codes == k], axis=0, weights=weight[table.codes == k])
            for k in range(len(table.classes))
        ]
        return {"means_": np.stack(means), "evidence_": Evidence(), "status_": Status.SOLVED}

    def _scores(self, X):
        scores = -((X[:, None] - self.means_) ** 2).sum(axis=-1)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


@pytest.fixture
def data(rng):
    X = rng.normal(size=(30, 2))
    return X + 8.0 * np.repeat([[0, 0], [1, 0], [0, 1]], 10, axis=0), np.repeat(list("cab"), 10)


def test_labels_come_back(data):
    X, y = data
    model = NearestMean().fit(X, y)
    assert list(model.classes_) == ["a", "b", "c"]
    assert model.score(X, y) > 0.9
    assert model.decision_function(X).shape == (30, 3)


def test_two_classes_have_one_score(data):
    X, y = data
    model = NearestMean().fit(X, y == "a")
    scores = model.decision_function(X)
    assert scores.shape == (30,)
    np.testing.assert_array_equal(model.predict(X), scores > 0)


def test_containers_carry_index_and_names(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["u", "v"], index=np.arange(30) + 7)
    model = NearestMean().set_output(predict="pandas").fit(frame, pd.Series(y, name="kind"))
    assert model.predict(frame).name == "kind"
    assert list(model.decision_function(frame).columns) == ["a", "b", "c"]
    assert list(model.decision_function(frame).index) == list(frame.index)


def test_class_weights_multiply_sample_weights(data):
    X, y = data
    weight = np.where(y == "a", 2.0, 1.0)
    read = {}
    for name, chosen in (("given", {"a": 3.0, "b": 1.0, "c": 1.0}), ("balanced", "balanced")):
        model = NearestMean(chosen)
        model._transact = lambda *d, m=model: m._learn(*d)
        model.fit(X, y, sample_weight=weight)
        read[name] = model.seen.weight
    np.testing.assert_allclose(read["given"][y == "a"], 6.0)
    # Balanced: each class weighs the same in all.
    totals = [read["balanced"][y == label].sum() for label in "abc"]
    np.testing.assert_allclose(totals, totals[0])


@pytest.mark.parametrize(
    ("X", "y", "fragment"),
    [
        (np.eye(3), ["a", "a", "a"], "one class only"),
        (np.eye(3), [0.1, 0.7, 0.9], "Unknown label type"),
        (np.eye(3), [0.0, np.nan, 1.0], "NaN"),
        (np.eye(3) * np.nan, [0, 1, 0], "'x2' (9 NaN)"),
        (sp.csr_array(np.eye(2)), [0, 1], "dense"),
        (pd.DataFrame({"t": ["u", "v"], "n": [1, 2]}), [0, 1], "'t' holds text"),
        (np.eye(3), None, "y to be passed"),
        (iter([(np.eye(2), [0, 1])]), None, "chunks"),
    ],
    ids=["one class", "continuous", "NaN label", "NaN", "sparse", "text", "no y", "chunks"],
)
def test_bad_data_gets_three_parts(X, y, fragment):
    with pytest.raises(wl.InputError) as caught:
        NearestMean().fit(X, y)
    assert fragment in str(caught.value)
    assert caught.value.expected
    assert caught.value.todo


def test_unknown_class_weight(data):
    with pytest.raises(wl.InputError, match="class_weight"):
        NearestMean({"z": 1.0}).fit(*data)
    with pytest.raises(wl.InputError, match="class_weight"):
        NearestMean("balance").fit(*data)
