"""Chunks and datasets: the same numbers as in memory, and what is wrong with them in words."""

import decimal
import re
import subprocess
import sys
import textwrap

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from wonderland.core.errors import InputError, InputTypeError
from wonderland.shell.streams import is_stream, read_stream
from wonderland.solve.sweep import accumulate, solve_sweep


class Learner(BaseEstimator):
    def __init__(self, fit_intercept=True):
        self.fit_intercept = fit_intercept


def read(X, y=None, sample_weight=None, learner=None):
    return read_stream(learner or Learner(), X, y, sample_weight)


def joined(stream):
    """All chunks as one table."""
    parts = list(stream.chunks)
    X, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return X, y, None if parts[0][2] is None else np.concatenate([part[2] for part in parts])


@pytest.fixture
def frame(rng):
    table = pd.DataFrame(rng.normal(size=(500, 3)), columns=["a", "b", "c"])
    table["flag"] = rng.integers(0, 2, 500).astype(bool)
    table["count"] = rng.integers(0, 99, 500)
    table["price"] = table["a"] - 2 * table["b"] + table["count"] + rng.normal(size=500)
    table["weight"] = rng.uniform(size=500)
    return table


FEATURES = ["a", "b", "c", "flag", "count"]


def same(stream, frame, *, weighted=False):
    X, y, weight = joined(stream)
    np.testing.assert_array_equal(X, frame[FEATURES].to_numpy(float))
    np.testing.assert_array_equal(y[:, 0], frame["price"])
    if weighted:
        np.testing.assert_array_equal(weight, frame["weight"])
    assert stream.names == FEATURES
    assert stream.targets == ["price"]
    assert stream.flat


@pytest.mark.parametrize("kind", ["parquet", "arrow", "ipc", "feather"])
def test_a_file(frame, tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "arrow":
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=77)
    elif kind == "ipc":
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=77)
    else:
        feather.write_feather(frame, path)
    learner = Learner()
    stream = read(path, "price", "weight", learner)
    assert stream.total == (500 if kind == "parquet" else None)
    same(stream, frame, weighted=True)
    assert learner.n_features_in_ == 5
    assert list(learner.feature_names_in_) == FEATURES
    same(read(str(path), "price", "weight"), frame, weighted=True)


def test_a_folder_a_pattern_and_a_dataset(frame, tmp_path):
    frame = frame.drop(columns="weight")
    for k in range(4):
        frame[125 * k : 125 * (k + 1)].to_parquet(tmp_path / f"part{k}.parquet")
    (tmp_path / "README.txt").write_text("not data")
    (tmp_path / "_SUCCESS").write_text("")
    same(read(tmp_path, "price"), frame)
    same(read(f"{tmp_path}/part*.parquet", "price"), frame)
    same(read(ds.dataset([str(tmp_path / f"part{k}.parquet") for k in range(4)]), "price"), frame)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    same(read(table.to_reader(max_chunksize=99), "price"), frame)


def test_hive_folders_give_their_column(frame, tmp_path):
    table = pa.Table.from_pandas(
        frame[["a", "price"]].assign(year=np.repeat([2020, 2021], 250)), preserve_index=False
    )
    pq.write_to_dataset(table, tmp_path / "numbers", partition_cols=["year"])
    stream = read(tmp_path / "numbers", "price")
    assert stream.names == ["a", "year"]
    np.testing.assert_array_equal(joined(stream)[0], table.select(["a", "year"]))
    words = table.append_column("city", pa.array(["Rome"] * 500))
    pq.write_to_dataset(words, tmp_path / "words", partition_cols=["city"])
    refused("'city' .folder city=Rome. holds no numbers", tmp_path / "words", "price")


def test_files_of_one_dataset_may_differ_in_type_but_not_in_columns(frame, tmp_path):
    first, second = frame[[*FEATURES, "price"]][:250], frame[[*FEATURES, "price"]][250:]
    first.to_parquet(tmp_path / "0.parquet")
    second.astype({"count": float, "flag": "int8"}).to_parquet(tmp_path / "1.parquet")
    same(read(tmp_path, "price"), frame)
    second.drop(columns="c").to_parquet(tmp_path / "1.parquet")
    refused("'c' is missing", tmp_path, "price")
    second.astype({"c": str}).replace({"c": {second["c"].astype(str).iloc[0]: "x"}}).to_parquet(
        tmp_path / "1.parquet"
    )
    refused("'c' holds", tmp_path, "price")


def test_a_pandas_index_is_no_feature(frame, tmp_path):
    frame.sample(frac=0.5, random_state=0).to_parquet(tmp_path / "rows.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "rows.parquet").names
    assert read(tmp_path / "rows.parquet", "price", "weight").names == FEATURES


def test_numbers_of_every_type(tmp_path):
    table = pa.table(
        {
            "i": pa.array([1, 2, 3], pa.int16()),
            "u": pa.array([1, 2, 3], pa.uint64()),
            "h": pa.array(np.array([0.5, 1, 2], np.float16)),
            "d": pa.array([decimal.Decimal("0.25")] * 3),
            "y": pa.array([1.0, 2.0, 4.0], pa.float32()),
        }
    )
    pq.write_table(table.drop_columns("h"), tmp_path / "t.parquet")
    X, y, _ = joined(read(table.to_reader(), ["y", "u"]))
    np.testing.assert_array_equal(X, [[1, 0.5, 0.25], [2, 1, 0.25], [3, 2, 0.25]])
    np.testing.assert_array_equal(y, [[1, 1], [2, 2], [4, 3]])
    assert not read(tmp_path / "t.parquet", ["y"]).flat


def pieces(frame, size=77):
    return [frame[i : i + size] for i in range(0, len(frame), size)]


@pytest.mark.parametrize(
    "convert",
    [lambda part: part, pl.from_pandas, pa.Table.from_pandas, pa.RecordBatch.from_pandas],
    ids=["pandas", "polars", "table", "batch"],
)
@pytest.mark.parametrize("lazily", [True, False])
def test_chunks_that_are_frames(frame, convert, lazily):
    if convert is pa.Table.from_pandas or convert is pa.RecordBatch.from_pandas:
        convert = lambda part, make=convert: make(part, preserve_index=False)  # noqa: E731  # a one-line map reads best
    parts = [convert(part) for part in pieces(frame)]
    assert is_stream(parts)
    learner = Learner()
    stream = read(iter(parts) if lazily else parts, "price", "weight", learner)
    same(stream, frame, weighted=True)
    assert list(learner.feature_names_in_) == FEATURES
    tuples = [(convert(part[FEATURES]), convert(part[["price"]])) for part in pieces(frame)]
    stream = read(tuples)
    X, _, weight = joined(stream)
    np.testing.assert_array_equal(X, frame[FEATURES])
    assert stream.names == FEATURES
    assert stream.targets == ["price"]
    assert (weight, stream.flat) == (None, False)


@pytest.mark.parametrize(
    "block", [np.asarray, np.ndarray.tolist, jnp.asarray, sp.csr_array, np.asfortranarray]
)
def test_chunks_that_are_arrays(rng, block):
    X = rng.integers(0, 5, (40, 3)).astype(np.float32)
    y = rng.normal(size=40)
    chunks = [(block(X[i : i + 7]), y[i : i + 7]) for i in range(0, 40, 7)]
    assert is_stream(chunks)
    learner = Learner()
    learner.feature_names_in_ = np.array(["old", "names", "here"], dtype=object)
    stream = read((list(chunk) for chunk in chunks), learner=learner)
    got, target, weight = joined(stream)
    np.testing.assert_array_equal(got, X)
    np.testing.assert_array_equal(target[:, 0], y)
    assert got.dtype == target.dtype == np.float64
    assert (weight, stream.names, stream.targets) == (None, ["x0", "x1", "x2"], ["y"])
    assert not hasattr(learner, "feature_names_in_")
    assert learner.n_features_in_ == 3


def test_what_is_a_stream(frame):
    X, y = np.ones((3, 2)), np.ones(3)
    streams = ["rows.parquet", iter([]), (c for c in []), zip([X], [y], strict=True), [(X, y)]]
    streams += [[(X, y, y)], ((X, y), (X, y)), [frame, frame], [([[1, 2]], [1])], {0: X}.items()]
    for X_ in streams[:-1]:
        assert is_stream(X_), X_
    tables = [X, X.tolist(), [[1, 2], [3, 4]], [(1, 2), (3, 4)], [(1, 2, 3), (4, 5, 6)], [], ()]
    tables += [
        frame,
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        frame["a"],
        jnp.ones((2, 2)),
    ]
    tables += [sp.csr_array(X), 3, None, {"a": [1]}, range(3), (X, y), [X, X], [[X, y]], [y, y]]
    tables += [[([1, 2], 3), ([4, 5], 6)], b"rows", {1, 2}, np.array(["a"]), [["a"], ["b"]]]
    for X_ in tables:
        assert not is_stream(X_), X_


def test_own_iterables_count():
    class Loader:
        def __iter__(self):
            yield np.ones((2, 2)), np.arange(2.0)

        def __len__(self):
            return 1

    assert is_stream(Loader())
    assert joined(read(Loader()))[0].shape == (2, 2)


def test_same_coefficients_as_in_memory(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=60)
    stream = read(tmp_path / "rows.parquet", "price", "weight")
    totals = accumulate(stream.chunks, fit_intercept=True)
    fit = solve_sweep(totals, np.zeros(1), True)
    root = np.sqrt(frame["weight"].to_numpy())[:, None]
    Z = np.hstack([np.ones((500, 1)), frame[FEATURES].to_numpy(float)])
    beta = np.linalg.lstsq(root * Z, root * frame[["price"]].to_numpy())[0]
    np.testing.assert_allclose(fit.coef, beta[1:], rtol=1e-10)
    np.testing.assert_allclose(fit.intercept, beta[0], rtol=1e-10)


def refused(match, *args, error=InputError):
    """Reading, or the end of reading, raises three sentences that match."""
    with pytest.raises(error, match=match) as caught:
        joined(read(*args))
    assert all([caught.value.came, caught.value.expected, caught.value.todo])


def test_names_that_are_not_there(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    path = tmp_path / "rows.parquet"
    refused(r"target 'prize' is not among.*Did you mean 'price'", path, "prize")
    refused("sample_weight 'wait' is not among.*Did you mean 'weight'", path, "price", "wait")
    refused("y is None.*Choose 'a'", path, error=InputTypeError)
    refused("y is a ndarray", path, np.ones(3), error=InputTypeError)
    refused("sample_weight is a list", path, "price", [1.0], error=InputTypeError)
    refused("0 feature columns", path, list(frame.columns))
    refused("no file or folder.*Did you mean 'rows.parquet'", tmp_path / "row.parquet", "price")
    refused("holds no file that is known", tmp_path / "*.txt", "price")
    refused("'prize' is not among", pieces(frame), "prize")
    wide = pd.DataFrame(np.ones((3, 40)), columns=[f"measure{k}" for k in range(40)])
    refused("or 30 more", [wide], "xyz")


def test_columns_that_are_not_numbers(frame, tmp_path):
    frame = frame.assign(city="Rome", day=pd.Timestamp("2020-01-01"))
    frame.to_parquet(tmp_path / "rows.parquet")
    refused("'city'.*'day'.*holds no numbers", tmp_path / "rows.parquet", "price")
    refused("'city' holds text", pieces(frame.drop(columns="day")), "price")


def test_missing_values(frame, tmp_path):
    frame = frame.astype({"count": float})
    frame.loc[[300, 301, 404], "b"] = np.nan
    frame.to_parquet(tmp_path / "nulls.parquet")
    refused("'b' holds 3 nulls", tmp_path / "nulls.parquet", "price")
    table = pa.table({k: pa.array(frame[k].to_numpy()) for k in frame})
    pq.write_table(table, tmp_path / "nans.parquet")
    refused(r"'b' \(3 NaN\)", tmp_path / "nans.parquet", "price")
    refused(r"chunk 3 \(rows from 300\).*'b' \(2 NaN\)", pieces(frame, 100), "price")
    X, y = np.ones((4, 2)), np.arange(4.0)
    refused("chunk 0.*2 infinity", [(np.array([[np.inf, 1.0], [-np.inf, 2.0]]), y[:2])])
    refused("chunk 1.*1 infinity", [(X, y), (X, np.r_[y[:3], np.inf])])
    refused("sample_weight.*1 NaN", [(X, y, np.r_[y[:3], np.nan])])


def test_chunks_that_do_not_agree(frame):
    X, y = np.ones((4, 2)), np.arange(4.0)
    parts = pieces(frame, 100)
    parts[2] = parts[2].rename(columns={"b": "bb"})
    refused(r"chunk 2 \(rows from 200\): column 1 is 'bb'. Expected 'b'", parts, "price")
    refused("chunk 1.*3 features. Expected 2", [(X, y), (np.ones((4, 3)), y)])
    refused("chunk 1.*X has 4, y 3", [(X, y), (X, y[:3])])
    refused("chunk 1.*y has shape", [(X, y), (X, y[:, None])])
    refused("chunk 1.*weights are missing", [(X, y, y), (X, y)])
    refused("chunk 1.*weights came", [(X, y), (X, y, y)])
    refused(r"sample_weight has shape \(3,\)", [(X, y, y[:3])])
    refused("2 sample weights are negative", [(X, y, np.array([1.0, -1, -2, 0]))])
    refused("2D", [(y, y)])


def test_things_that_are_no_chunks(frame):
    X, y = np.ones((4, 2)), np.arange(4.0)
    refused("a chunk is a ndarray", iter([X, y]), error=InputTypeError)
    refused("a chunk is a DataFrame", iter([frame]), error=InputTypeError)
    refused("y is the name of a column", iter([(X, y)]), "price", error=InputTypeError)
    refused("y is a ndarray", iter([(X, y)]), y, error=InputTypeError)
    refused("holds text", [(X, np.array(["a", "b", "c", "d"]))])


def test_wholes_that_determine_nothing():
    X, y = np.arange(8.0).reshape(4, 2), np.arange(4.0)
    refused("0 samples", iter([]))
    refused("0 samples", iter([(X[:0], y[:0])]))
    refused("one sample", iter([(X[:1], y[:1]), (X[:0], y[:0])]))
    refused("all 8 targets equal 3", iter([(X, 0 * y + 3)] * 2))
    refused("all sample weights are zero", iter([(X, y, 0 * y)] * 2))
    joined(read(iter([(X[:1], y[:1])]), learner=Learner(fit_intercept=False)))
    joined(read(iter([(X, 0 * y + 3), (X, y)])))
    joined(read(iter([(X, y, 0 * y), (X, y, y)])))
    joined(read(iter([(X * 2e307, y)])))


def test_files_that_cannot_be_read(frame, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"not at all")
    refused("could not be read", tmp_path / "bad.parquet", "price")
    frame.to_parquet(tmp_path / "cut.parquet", row_group_size=50)
    whole = (tmp_path / "cut.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    refused("could not be read", tmp_path / "cut.parquet", "price")
    (tmp_path / "bad.arrow").write_bytes(b"not at all")
    refused("could not be read", tmp_path / "bad.arrow", "price")


def test_without_pyarrow_the_extra_is_named(monkeypatch, tmp_path):
    (tmp_path / "rows.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=re.escape("wonderland[arrow]")):
        read(tmp_path / "rows.parquet", "price")


def test_estimator_is_asked_nothing_when_the_source_is_wrong(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    learner = Learner()
    with pytest.raises(InputError):
        read(tmp_path / "rows.parquet", "prize", learner=learner)
    assert not hasattr(learner, "n_features_in_")


@pytest.mark.slow
def test_memory_stays_bounded_while_a_large_file_passes(tmp_path):
    """A fresh process reads 1.3 GB of Parquet and grows by less than a quarter of it."""
    script = f"""
        import resource, numpy as np, pyarrow as pa, pyarrow.parquet as pq
        from sklearn.linear_model import LinearRegression
        from wonderland.shell.streams import read_stream
        from wonderland.solve.sweep import accumulate, solve_sweep
        rng = np.random.default_rng(0)
        names = [f"x{{k}}" for k in range(15)] + ["y"]
        block = rng.normal(size=(100_000, 16))
        block[:, 15] = block[:, :15] @ np.arange(15.0)
        table = pa.table(dict(zip(names, block.T)))
        with pq.ParquetWriter("{tmp_path}/large.parquet", table.schema) as writer:
            for _ in range(100):
                writer.write_table(table)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        stream = read_stream(LinearRegression(), "{tmp_path}/large.parquet", "y", None)
        totals = accumulate(stream.chunks, fit_intercept=True)
        fit = solve_sweep(totals, np.zeros(1), True)
        assert totals.seen == 10_000_000
        assert np.abs(fit.coef[:, 0] - np.arange(15)).max() < 1e-12
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 300_000, grown
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
