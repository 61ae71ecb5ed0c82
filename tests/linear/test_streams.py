"""Fits on more data than memory: the same answer as in memory, and the same manners."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wonderland as wl

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def frame(rng):
    X = rng.normal(size=(3000, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 1e3, -2.0]
    table = pd.DataFrame(X, columns=NAMES)
    table["cost"] = X @ [1.0, -2.0, 3.0, 0.5] + rng.normal(size=3000)
    table["gain"] = rng.normal(size=3000)
    table["share"] = rng.uniform(0.0, 2.0, size=3000)
    return table


@pytest.fixture
def path(frame, tmp_path):
    target = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame[[*NAMES, "cost"]]), target, row_group_size=700)
    return target


def same(streamed, memory, rtol=1e-10):
    np.testing.assert_allclose(streamed.coef_, memory.coef_, rtol=rtol)
    np.testing.assert_allclose(streamed.intercept_, memory.intercept_, rtol=rtol)
    np.testing.assert_allclose(streamed.standard_errors_, memory.standard_errors_, rtol=1e-8)
    np.testing.assert_allclose(streamed.noise_variance_, memory.noise_variance_, rtol=1e-8)
    assert streamed.coef_.shape == memory.coef_.shape
    assert streamed.rank_ == memory.rank_


ESTIMATORS = [wl.LinearRegression(), wl.LinearRegression(fit_intercept=False), wl.Ridge(2.5)]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_parquet_file(estimator, path, frame):
    streamed = estimator.fit(path, "cost")
    assert streamed.fit(str(path), "cost") is streamed
    memory = type(estimator)(**estimator.get_params()).fit(frame[NAMES], frame["cost"])
    same(streamed, memory)
    assert list(streamed.feature_names_in_) == NAMES
    np.testing.assert_allclose(streamed.predict(frame[NAMES]), memory.predict(frame[NAMES]))
    claims = streamed.evidence_
    assert claims["solver"].value == "doubled-precision sweep"
    assert claims["rank"].holds
    assert claims["digits"].value > 8
    low, high = streamed.prediction_interval(frame[NAMES])
    assert ((low < high) & np.isfinite(low)).all()


def test_several_targets_and_weights_by_name(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    streamed = wl.Ridge([1.0, 5.0]).fit(tmp_path / "rows.parquet", ["cost", "gain"], "share")
    memory = wl.Ridge([1.0, 5.0]).fit(frame[NAMES], frame[["cost", "gain"]], frame["share"])
    np.testing.assert_allclose(streamed.coef_, memory.coef_, rtol=1e-10)
    assert list(streamed.set_output(predict="pandas").predict(frame[NAMES]).columns) == [
        "cost",
        "gain",
    ]


@pytest.mark.parametrize("size", [1, 7, 500, 5000])
def test_chunks_of_any_size(size, frame):
    X, y = frame[NAMES].to_numpy()[:600], frame["cost"].to_numpy()[:600]
    chunks = ((X[i : i + size], y[i : i + size]) for i in range(0, 600, size))
    same(wl.LinearRegression().fit(chunks), wl.LinearRegression().fit(X, y))


@pytest.mark.parametrize("form", [lambda f: f, pl.from_pandas, pa.Table.from_pandas])
def test_frames_as_chunks(form, frame):
    parts = [form(frame.iloc[i : i + 900][[*NAMES, "cost"]]) for i in range(0, 3000, 900)]
    streamed = wl.LinearRegression().fit(iter(parts), "cost")
    same(streamed, wl.LinearRegression().fit(frame[NAMES], frame["cost"]))
    assert list(streamed.feature_names_in_) == NAMES


def test_a_basis_is_expanded_chunk_by_chunk(frame):
    X, y = frame[["a", "d"]].to_numpy(), frame["cost"].to_numpy()
    model = wl.LinearRegression(basis=wl.bases.Polynomial(2))
    chunks = ((X[i : i + 999], y[i : i + 999]) for i in range(0, 3000, 999))
    same(model.fit(chunks), wl.LinearRegression(basis=wl.bases.Polynomial(2)).fit(X, y))


def test_dependent_columns_are_named(frame, tmp_path):
    table = frame[[*NAMES, "cost"]].assign(twice=2 * frame["a"])
    table.to_parquet(tmp_path / "rows.parquet")
    streamed = wl.LinearRegression().fit(tmp_path / "rows.parquet", "cost")
    memory = wl.LinearRegression().fit(table.drop(columns="cost"), table["cost"])
    np.testing.assert_allclose(streamed.coef_, memory.coef_, rtol=1e-9)
    named = streamed.evidence_["collinear"].value
    assert {"a", "twice"} <= {*named, *sum(named.values(), ())}
    assert streamed.evidence_["rank"].holds is False


def test_a_file_without_the_target(path):
    fresh = wl.LinearRegression()
    with pytest.raises(wl.InputError, match=r"'costs'.*cost"):
        fresh.fit(path, "costs")
    assert vars(fresh) == vars(wl.LinearRegression())
    with pytest.raises(wl.InputError):
        fresh.fit(path)
    with pytest.raises(wl.InputError, match=r"nowhere\.parquet"):
        fresh.fit(path.parent / "nowhere.parquet", "cost")


def test_bad_rows_far_into_the_file_lose_nothing(frame, path, tmp_path):
    broken = frame[[*NAMES, "cost"]].copy()
    broken.loc[2500, "b"] = np.nan
    broken.to_parquet(tmp_path / "broken.parquet")
    fitted = wl.Ridge().fit(path, "cost")
    before = dict(vars(fitted))
    with pytest.raises(wl.InputError, match="'b' holds 1 null"):
        fitted.fit(tmp_path / "broken.parquet", "cost")
    assert vars(fitted) == before


def test_an_interrupt_in_the_middle_of_a_stream(frame):
    X, y = frame[NAMES].to_numpy(), frame["cost"].to_numpy()

    def chunks():
        yield X[:1000], y[:1000]
        raise KeyboardInterrupt

    fresh = wl.LinearRegression()
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(chunks())
    assert vars(fresh) == vars(wl.LinearRegression())


@pytest.mark.parametrize(
    "estimator",
    [
        wl.LinearRegression(solver="descent"),
        wl.LinearRegression(positive=True),
        wl.Ridge("loo"),
        wl.Ridge(solver="lsqr"),
    ],
    ids=str,
)
def test_what_needs_the_data_twice_says_so(estimator, path):
    with pytest.raises(wl.InputError, match="chunks"):
        estimator.fit(path, "cost")
