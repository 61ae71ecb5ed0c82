"""Every container in, the container asked for out, names remembered."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wonderland as wl

NAMES = ["age", "dose", "weight"]


def table(rng):
    X = rng.normal(size=(40, 3)).astype(np.float32).astype(np.float64)
    return X, X @ [1.0, -2.0, 0.5] + 3.0 + rng.normal(size=40)


FORMS = {
    "numpy": lambda X: X,
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "list": np.ndarray.tolist,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "arrow": lambda X: pa.table({name: X[:, j] for j, name in enumerate(NAMES)}),
    "jax": jnp.asarray,
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
    "coo": sp.coo_array,
}
NAMED = {"pandas", "polars", "arrow"}


@pytest.mark.parametrize("estimator", [wl.LinearRegression(), wl.Ridge(0.5)], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_the_container_does_not_matter(form, estimator, rng):
    X, y = table(rng)
    expected = clone(estimator).fit(X, y)
    fitted = clone(estimator).fit(FORMS[form](X), y)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=1e-6)
    found = fitted.predict(FORMS[form](X))
    np.testing.assert_allclose(found, expected.predict(X), rtol=1e-6, atol=1e-5)
    assert isinstance(fitted.predict(FORMS[form](X)), np.ndarray)
    assert hasattr(fitted, "feature_names_in_") is (form in NAMED)


@pytest.mark.parametrize(
    "form",
    [np.ndarray.tolist, pd.Series, lambda y: pl.Series("t", y), jnp.asarray, pa.array, lambda y: y],
)
def test_the_target_may_be_anything(form, rng):
    X, y = table(rng)
    fitted = wl.LinearRegression().fit(X, form(y))
    np.testing.assert_allclose(fitted.coef_, wl.LinearRegression().fit(X, y).coef_, rtol=1e-6)


def test_predictions_as_pandas_keep_index_and_names(rng):
    X, y = table(rng)
    frame = pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(40)])
    fitted = (
        wl.LinearRegression().set_output(predict="pandas").fit(frame, pd.Series(y, name="cost"))
    )
    # A Series aligns by its own index; values are matched by position, as in scikit-learn.
    found = fitted.predict(frame)
    assert isinstance(found, pd.Series)
    assert found.name == "cost"
    assert list(found.index) == list(frame.index)
    low, high = fitted.prediction_interval(frame)
    assert isinstance(low, pd.Series)
    assert (low < found).all()
    assert (found < high).all()


def test_several_outputs_become_a_frame(rng):
    X, y = table(rng)
    both = pl.DataFrame({"cost": y, "gain": -y})
    fitted = wl.Ridge().set_output(transform="polars").fit(X, both)
    found = fitted.predict(X)
    assert isinstance(found, pl.DataFrame)
    assert found.columns == ["cost", "gain"]
    assert fitted.set_output(predict="default").predict(X).shape == (40, 2)


def test_the_container_survives_clone_and_pipelines(rng):
    X, y = table(rng)
    chosen = wl.LinearRegression().set_output(predict="pandas")
    assert isinstance(clone(chosen).fit(X, y).predict(X), pd.Series)
    assert isinstance(make_pipeline(StandardScaler(), chosen).fit(X, y).predict(X), pd.Series)


def test_single_precision_stays_single(rng):
    X, y = table(rng)
    fitted = wl.Ridge().fit(X.astype(np.float32), y)
    assert fitted.coef_.dtype == np.float32
    assert fitted.predict(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(fitted.coef_, wl.Ridge().fit(X, y).coef_, rtol=1e-5)


@pytest.mark.parametrize("copy_X", [True, False])
def test_data_are_never_written_to(copy_X, rng):
    X, y = table(rng)
    weight = rng.random(40)
    kept = X.copy(), y.copy(), weight.copy()
    for estimator in (wl.LinearRegression(copy_X=copy_X), wl.Ridge("loo", copy_X=copy_X)):
        estimator.fit(X, y, weight)
    for now, before in zip((X, y, weight), kept, strict=True):
        np.testing.assert_array_equal(now, before)
