"""Bad input: three parts, the place named, and nothing half-fitted afterwards."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import wonderland as wl

N = 30


def first_row(X):
    return X[:1]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(N, 3))
    return X, X @ [1.0, 2.0, 3.0] + 1.0


def with_value(X, value, rows, column):
    X = X.copy()
    X[rows, column] = value
    return X


def frames(X):
    names = list("abc")
    return {
        "pandas": pd.DataFrame(X, columns=names),
        "polars": pl.DataFrame(X, schema=names),
        "arrow": pa.table({name: X[:, j] for j, name in enumerate(names)}),
    }


def refused(action, *fragments, kind=wl.InputError):
    """The error has its three parts and says what it should."""
    with pytest.raises(kind) as caught:
        action()
    error = caught.value
    assert error.came
    assert error.expected
    assert error.todo
    assert str(error).count(". ") >= 2
    for fragment in fragments:
        assert fragment in str(error)
    return error


ESTIMATORS = [
    wl.LinearRegression(),
    wl.Ridge(),
    wl.Ridge("loo"),
    wl.LinearRegression(solver="descent"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_non_finite_values_are_counted_by_column(estimator, data):
    X, y = data
    broken = with_value(with_value(X, np.nan, [3, 4], 1), np.inf, [0], 2)
    refused(lambda: estimator.fit(broken, y), "'x1' (2 NaN)", "'x2' (1 infinity)")
    for frame in frames(broken).values():
        refused(lambda frame=frame: estimator.fit(frame, y), "'b' (2 NaN)", "'c' (1 infinity)")
    refused(lambda: estimator.fit(sp.csr_array(broken), y), "'x1' (2 NaN)", "'x2' (1 infinity)")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_non_finite_values_in_large_tables_are_found_on_the_way(estimator, rng):
    X = rng.normal(size=(200_000, 6))
    y = X.sum(axis=1)
    X[777, 5] = np.nan
    refused(lambda: estimator.fit(X, y), "'x5' (1 NaN)")


def test_non_finite_targets_and_weights(data):
    X, y = data
    y_bad, weight = with_value(y[:, None], np.nan, [2, 3], 0)[:, 0], np.ones(N)
    refused(lambda: wl.LinearRegression().fit(X, y_bad), "y contains NaN", "(2 NaN)")
    weight[1] = np.inf
    refused(lambda: wl.LinearRegression().fit(X, y, weight), "sample_weight", "(1 infinity)")


def test_missing_values_of_nullable_columns(data):
    frame = pd.DataFrame({"a": pd.array([1, None] * (N // 2), dtype="Int64")})
    refused(lambda: wl.LinearRegression().fit(frame, data[1]), f"'a' ({N // 2} NaN)")


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (lambda X, y: (X[:, 0], y), ["2D array", "reshape(-1, 1)"]),
        (lambda X, y: (X[None], y), ["dim 3"]),
        (lambda X, y: (X, y[:10]), ["[30, 10]"]),
        (lambda X, y: (X, y, np.ones(4)), ["(4,)"]),
        (lambda X, y: (X + 1j, y), ["Complex data not supported"]),
        (lambda X, y: (np.empty((0, 3)), []), ["0 sample(s)"]),
        (lambda X, y: (np.empty((N, 0)), y), ["0 feature(s)"]),
        (lambda X, y: (X[:1], y[:1]), ["one sample", "fit_intercept=False"]),
        (lambda X, y: (X, np.ones(N)), ["y is constant", "equal 1"]),
        (lambda X, y: (X, y, -np.ones(N)), ["Negative values", "row 0"]),
        (lambda X, y: (X, y, np.zeros(N)), ["non-zero"]),
        (lambda X, y: (X, None), ["y is None"]),
        (lambda X, y: (None, y), ["X is None"]),
        (lambda X, y: (X, ["a"] * N), ["y holds text"]),
        (lambda X, y: ([["u", 1], ["v", 2]], [1, 2]), ["'x0' holds text"]),
        (lambda X, y: (pd.DataFrame({"a": [1, 2], "t": ["x", "y"]}), [1, 2]), ["'t' holds text"]),
    ],
)
def test_wrong_data(change, fragments, data):
    refused(lambda: wl.LinearRegression().fit(*change(*data)), *fragments)
    refused(lambda: wl.Ridge().fit(*change(*data)), *fragments)


@pytest.mark.parametrize(
    ("estimator", "fragments"),
    [
        (wl.Ridge(-1), ["alpha is -1", "alpha=0"]),
        (wl.Ridge("lo"), ["'loo'"]),
        (wl.Ridge(None), ["alpha is None"]),
        (wl.Ridge(np.nan), ["alpha is nan"]),
        (wl.Ridge([1.0, 2.0]), ["2 != 1"]),
        (wl.Ridge("loo", alphas=[-1.0]), ["alphas is [-1.0]"]),
        (wl.Ridge(solver="choleski"), ["Did you mean 'cholesky'"]),
        (wl.Ridge(solver="lbfgs"), ["positive=True"]),
        (wl.Ridge(solver="svd", positive=True), ["does not support positive"]),
        (wl.LinearRegression(solver="descnt"), ["Did you mean 'descent'"]),
        (wl.LinearRegression(tol="a"), ["tol is 'a'"]),
        (wl.LinearRegression(max_iter=-1), ["max_iter is -1"]),
        (wl.LinearRegression(n_jobs=0), ["n_jobs is 0"]),
        (wl.LinearRegression(fit_intercept="no"), ["fit_intercept is 'no'"]),
        (wl.LinearRegression(basis=3), ["basis is 3"]),
        (wl.LinearRegression(basis=first_row), ["the basis returned shape (1, 3)"]),
    ],
    ids=lambda value: str(value).partition(" at 0x")[0],  # workers must agree on names
)
def test_wrong_parameters(estimator, fragments, data):
    refused(lambda: estimator.fit(*data), *fragments)
    assert not hasattr(estimator, "coef_")


def test_sparse_tables_where_dense_is_needed(data):
    X, y = data
    positive = wl.LinearRegression(positive=True)
    refused(lambda: positive.fit(sp.csr_array(X), y), "Sparse data was passed", kind=TypeError)
    svd = wl.Ridge(solver="svd")
    refused(lambda: svd.fit(sp.csr_array(X), y), "solver='svd' does not support")


def test_a_mismatch_at_predict_says_which_column(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abc"))
    fitted = wl.LinearRegression().fit(frame, y)
    refused(lambda: fitted.predict(frame[["b", "a", "c"]]), "position 0", "'b'", "'a'")
    refused(lambda: fitted.predict(frame[["a", "b"]]), "now missing", "- c")
    refused(lambda: fitted.predict(frame.rename(columns={"a": "z"})), "- z", "- a")
    unnamed = wl.LinearRegression().fit(X, y)
    refused(lambda: unnamed.predict(X[:, :2].tolist()), "X has 2 features")
    broken = pd.DataFrame(with_value(X, np.nan, [0], 1), columns=list("abc"))
    refused(lambda: fitted.predict(broken), "'b' (1 NaN)")


def test_before_fit():
    with pytest.raises(NotFittedError):
        wl.LinearRegression().predict([[1.0]])
    refused(lambda: wl.evidence(wl.Ridge()), "no evidence yet")


def test_pure_functions_refuse_what_they_can_see(data):
    X, y = data
    refused(lambda: wl.fit_ridge(X, y, -1.0), "alpha")
    refused(lambda: wl.fit_ridge(X, y[:3]), "(3,)")
    refused(lambda: wl.fit_linear_regression(with_value(X, np.nan, [0], [0]), y), "1 NaN")
    refused(lambda: wl.fit_ridge(X, y, 1.0, -np.ones(N)), "sample_weight")


BAD_FITS = [
    lambda X, y: (with_value(X, np.nan, 0, 0), y),
    lambda X, y: (X[:, :2], y[:5]),
    lambda X, y: (X, np.ones(N)),
    lambda X, y: (X, y, -np.ones(N)),
]


@pytest.mark.parametrize("change", BAD_FITS)
def test_a_refused_fit_loses_nothing(change, data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abc"))
    fitted = wl.Ridge().fit(frame, y)
    before = dict(vars(fitted))
    refused(lambda: fitted.fit(*change(X, y)))
    assert vars(fitted) == before
    np.testing.assert_array_equal(fitted.predict(frame), wl.Ridge().fit(frame, y).predict(frame))
    fresh = wl.Ridge()
    refused(lambda: fresh.fit(*change(X, y)))
    assert vars(fresh) == vars(wl.Ridge())


def test_nothing_was_repaired_in_silence(data):
    """JAX arrays and lists meet the same refusals as NumPy."""
    X, y = data
    broken = with_value(X, np.nan, 0, 1)
    for form in (jnp.asarray, np.ndarray.tolist):
        refused(lambda form=form: wl.LinearRegression().fit(form(broken), y), "'x1' (1 NaN)")
