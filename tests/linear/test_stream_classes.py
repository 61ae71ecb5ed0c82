"""Classifiers and tubes on more rows than memory holds: the same optimum, each with its proof."""

import functools
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import wonderland as wl
from wonderland.shell import rows as held_rows
from wonderland.svm import linear_stream

NAMES = ["a", "b", "c", "d", "e"]
ROWS = 6000


@pytest.fixture
def frame(rng):
    X = rng.normal(size=(ROWS, 5)) * [1.0, 10.0, 0.1, 1.0, 2.0] + [0.0, 5.0, 1.0, -2.0, 0.0]
    table = pd.DataFrame(X, columns=NAMES)
    scores = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(5, 3)) * 1.5
    table["price"] = scores[:, 0] + 0.3 * rng.standard_t(3, size=ROWS)
    table["kind"] = np.array(["blue", "green", "red"])[
        (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    ]
    table["sold"] = scores[:, 1] + rng.logistic(size=ROWS) > 0
    table["share"] = rng.uniform(0.1, 2.0, size=ROWS)
    return table


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """So few rows may be held that passes are needed."""
    monkeypatch.setattr(held_rows, "HELD", 5 * 1500)
    monkeypatch.setattr(linear_stream, "KEPT", 5 * 1500)


def written(frame, folder, name="rows.parquet"):
    path = folder / name
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=900)
    else:
        frame.to_csv(path, index=False)
    return path


def chunks(frame, target, size=700, weight=None):
    X, y = frame[NAMES].to_numpy(), frame[target].to_numpy()
    for i in range(0, len(X), size):
        part = slice(i, i + size)
        yield (X[part], y[part], *([frame[weight].to_numpy()[part]] if weight else []))


def same(streamed, memory, tol):
    """Objectives within the gap of both; then coefficients."""
    ours, theirs = (fit.evidence_["primal"].value for fit in (streamed, memory))
    assert abs(ours - theirs) <= 2 * tol * theirs
    assert streamed.coef_.shape == memory.coef_.shape
    assert np.shape(streamed.intercept_) == np.shape(memory.intercept_)
    scale = np.abs(memory.coef_).max()
    np.testing.assert_allclose(streamed.coef_, memory.coef_, atol=30 * np.sqrt(tol) * scale)
    assert streamed.evidence_["passes"].value >= 1


SMOOTH = [
    wl.LogisticRegression(),
    wl.LogisticRegression(C=np.inf, fit_intercept=False),
    wl.LogisticRegression(C=0.1, class_weight="balanced", tol=1e-8),
    wl.LinearSVC(tol=1e-8),
]
KINKED = [
    wl.LinearSVC(loss="hinge", tol=1e-8),
    wl.LinearSVC(loss="hinge", tol=1e-8, C=0.01, fit_intercept=False, class_weight="balanced"),
]


@pytest.mark.parametrize("target", ["kind", "sold"])
@pytest.mark.parametrize("estimator", SMOOTH + KINKED, ids=str)
def test_a_parquet_file(estimator, target, frame, tmp_path):
    path = written(frame[[*NAMES, target]], tmp_path)
    streamed = clone(estimator).fit(path, target)
    memory = clone(estimator).fit(frame[NAMES], frame[target])
    same(streamed, memory, 1e-8)
    np.testing.assert_array_equal(streamed.classes_, memory.classes_)
    assert list(streamed.feature_names_in_) == NAMES
    agree = streamed.predict(frame[NAMES]) == memory.predict(frame[NAMES])
    assert np.mean(agree) > 0.999
    assert streamed.evidence_["separable"].value in (None, "undecided", False)


@pytest.mark.parametrize(
    "estimator",
    [
        wl.LinearSVR(tol=1e-8),
        wl.LinearSVR(epsilon=0.5, C=0.1, tol=1e-8),
        wl.LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1, tol=1e-8),
    ],
    ids=str,
)
def test_tubes(estimator, frame, tmp_path):
    path = written(frame[[*NAMES, "price", "share"]], tmp_path)
    streamed = clone(estimator).fit(path, "price", "share")
    memory = clone(estimator).fit(frame[NAMES], frame["price"], frame["share"])
    same(streamed, memory, 1e-8)
    assert streamed.evidence_["duality_gap"].holds


def test_several_outputs(frame, tmp_path):
    path = written(frame[[*NAMES, "price", "share"]], tmp_path)
    streamed = wl.LinearSVR(tol=1e-7).fit(path, ["price", "share"])
    memory = wl.LinearSVR(tol=1e-7).fit(frame[NAMES], frame[["price", "share"]])
    same(streamed, memory, 1e-7)
    assert set(streamed.evidence_["per_problem"].value) == {"price", "share"}


@pytest.mark.parametrize("estimator", [wl.LogisticRegression(), wl.LinearSVC(loss="hinge")])
def test_every_kind_of_source_gives_the_same(estimator, frame, tmp_path):
    columns = frame[[*NAMES, "sold"]]
    first = clone(estimator).fit(written(columns, tmp_path), "sold")
    make = functools.partial(chunks, frame, "sold", 900)
    parts = [columns[i : i + 900] for i in range(0, ROWS, 900)]
    sources = [(make, None), (list(make()), None), (parts, "sold")]
    sources += [(ds.dataset(tmp_path), "sold")]
    for source, target in sources:
        other = clone(estimator).fit(source, target)
        np.testing.assert_allclose(other.coef_, first.coef_, rtol=1e-5, atol=1e-7)
        assert other.classes_.tolist() == [False, True]
    other = clone(estimator).fit(written(columns, tmp_path, "rows.csv"), "sold")
    np.testing.assert_allclose(other.coef_, first.coef_, rtol=1e-5, atol=1e-7)


def test_weights_in_the_chunks(frame):
    make = functools.partial(chunks, frame, "sold", 800, "share")
    streamed = wl.LinearSVC(loss="hinge", tol=1e-8).fit(make)
    memory = wl.LinearSVC(loss="hinge", tol=1e-8).fit(frame[NAMES], frame["sold"], frame["share"])
    same(streamed, memory, 1e-8)
    streamed = wl.LogisticRegression().fit(make)
    memory = wl.LogisticRegression().fit(frame[NAMES], frame["sold"], frame["share"])
    same(streamed, memory, 1e-8)
    np.testing.assert_allclose(streamed.standard_errors_, memory.standard_errors_, rtol=1e-5)


def test_rows_that_fit_are_taken_into_memory(frame):
    few = frame[:900]
    streamed = wl.LinearSVC(loss="hinge").fit(list(chunks(few, "kind", 100)))
    memory = wl.LinearSVC(loss="hinge").fit(few[NAMES].to_numpy(), few["kind"])
    np.testing.assert_allclose(streamed.coef_, memory.coef_, rtol=1e-6, atol=1e-8)
    assert streamed.dual_coef_.shape == (3, len(streamed.support_))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [wl.LogisticRegression(), wl.LinearSVC(loss="hinge")])
def test_memory_does_not_grow_with_the_rows(estimator, rng):
    truth = rng.normal(size=5)

    def peak(n):
        def make():
            chance = np.random.default_rng(5)
            for _ in range(n // 1000):
                X = chance.normal(size=(1000, 5))
                yield X, X @ truth + chance.logistic(size=1000) > 0

        tracemalloc.start()
        assert clone(estimator).fit(make).status_.ok
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak(5000)  # imports and caches
    few, many = peak(10_000), peak(40_000)
    assert many < 1.3 * few
    assert many < 40_000 * 5 * 8


def test_a_separating_plane_is_its_own_proof(frame):
    X = frame[NAMES].to_numpy()
    above = X[:, 0] + 0.1 * X[:, 1] > 0.4
    kept = np.abs(X[:, 0] + 0.1 * X[:, 1] - 0.4) > 0.05
    parts = [(X[kept][i : i + 500], above[kept][i : i + 500]) for i in range(0, kept.sum(), 500)]
    for estimator in (wl.LinearSVC(loss="hinge", C=1e4), wl.LinearSVC(C=1e4)):
        assert estimator.fit(parts).evidence_["separable"].value is True
    assert wl.LogisticRegression(C=1e6).fit(parts).evidence_["separable"].value is True
    with pytest.warns(UserWarning, match="separable"):
        free = wl.LogisticRegression(C=np.inf).fit(parts)
    assert free.evidence_["separable"].value is True


@pytest.mark.parametrize("estimator", [wl.LogisticRegression(), wl.LinearSVC()])
def test_what_cannot_be_read_again_is_told(estimator, frame):
    fresh = clone(estimator)
    with pytest.raises(wl.InputError, match=r"read once.*several times.*make_chunks"):
        fresh.fit(chunks(frame, "sold"))
    reader = pa.Table.from_pandas(frame[[*NAMES, "sold"]]).to_reader()
    with pytest.raises(wl.InputError, match="RecordBatchReader, which can be read once"):
        fresh.fit(reader, "sold")
    assert vars(fresh) == vars(clone(estimator))
    with pytest.raises(wl.InputError, match="read once"):
        wl.LinearSVR().fit(chunks(frame, "price"))


def test_what_chunks_do_not_allow_is_told(frame):
    parts = list(chunks(frame, "kind"))
    refused = [
        (wl.LogisticRegression(C="gradient"), "C='gradient' for data in chunks"),
        (wl.LogisticRegression(l1_ratio=1.0, solver="saga"), "l1_ratio=1.0 for data in chunks"),
        (wl.LinearSVC(penalty="l1"), "penalty='l1' for data in chunks"),
        (wl.LinearSVC(multi_class="crammer_singer"), "multi_class='crammer_singer' for data"),
        (wl.LinearSVC(C=np.inf), "C is inf for data in chunks"),
    ]
    for estimator, words in refused:
        with pytest.raises(wl.InputError, match=words):
            estimator.fit(parts)


def test_bad_labels_are_told(frame, tmp_path):
    X = frame[NAMES].to_numpy()
    fit = wl.LogisticRegression().fit
    for y, words in [
        (np.repeat("yes", ROWS), "one class only: all 6,000 labels are 'yes'"),
        (np.linspace(0, 1, ROWS), "Unknown label type"),
        (np.where(np.arange(ROWS) == 4000, np.nan, 1.0), "NaN"),
        (np.array([*["a"] * 3000, None, *["b"] * 2999], dtype=object), "missing"),
    ]:
        with pytest.raises(wl.InputError, match=words):
            fit([(X[i : i + 500], y[i : i + 500]) for i in range(0, ROWS, 500)])
    mixed = [(X[:500], np.arange(500) % 2), (X[500:900], np.repeat("b", 400))]
    with pytest.raises(wl.InputError, match="labels of one kind"):
        fit(mixed)
    table = frame[[*NAMES, "kind"]].copy()
    table.loc[3000, "kind"] = None
    with pytest.raises(wl.InputError, match="'kind' holds 1 null"):
        fit(written(table, tmp_path), "kind")
    with pytest.raises(wl.InputError, match=r"'kind'.*holds no numbers"):
        wl.LinearSVC().fit(written(frame[[*NAMES, "kind", "sold"]], tmp_path), "sold")


def test_a_stream_that_changes_is_told(frame):
    calls = []

    def make():
        calls.append(1)
        whole = list(chunks(frame, "sold"))
        return whole if len(calls) < 3 else whole[:-1]

    fresh = wl.LogisticRegression()
    with pytest.raises(wl.InputError, match="rows in the first pass and"):
        fresh.fit(make)
    assert not hasattr(fresh, "coef_")
    with pytest.raises(wl.InputError, match="callable that returned None"):
        fresh.fit(lambda: None)


def test_imbalance_is_sampled_by_class(rng):
    """One in a thousand: the sample holds as many of them as there are."""
    X = rng.normal(size=(20_000, 5))
    y = X[:, 0] + 0.5 * rng.normal(size=len(X)) > 3.2
    parts = [(X[i : i + 3000], y[i : i + 3000]) for i in range(0, len(X), 3000)]
    for estimator in (
        wl.LogisticRegression(),
        wl.LinearSVC(loss="hinge", C=10.0, tol=1e-7, class_weight="balanced"),
    ):
        same(clone(estimator).fit(parts), clone(estimator).fit(X, y), 1e-7)
