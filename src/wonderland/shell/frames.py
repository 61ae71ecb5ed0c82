"""Columns of a table as they are: numbers with holes, categories as text, from any container.

A column is one of categories where its type says so (pandas category, object, string; polars
String, Categorical, Enum; booleans) or where it does not convert to numbers; all others are
numbers, in which NaN, None and null are holes.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from wonderland.core.errors import InputError
from wonderland.shell.explain import column_names, explained

__all__ = ["Column", "read_columns"]


class Column(NamedTuple):
    """One column.

    Attributes:
        name: As the table calls it.
        values: float64 (n,) with NaN for holes; or object (n,) with None for holes.
        categorical: Whether it holds categories.
    """

    name: str
    values: np.ndarray
    categorical: bool


def read_columns(estimator: BaseEstimator, X: Any, *, reset: bool) -> list[Column]:
    """The columns of a table; remembers (or checks) their number and names on the estimator.

    Args:
        estimator: Given `n_features_in_` and `feature_names_in_`, or asked for them.
        X: NumPy, pandas, polars, Arrow, scipy sparse, lists.
        reset: Whether this is the table of a fit.
    """
    if hasattr(X, "to_pandas") and hasattr(X, "column_names"):
        X = X.to_pandas()  # an Arrow table
    if not hasattr(X, "columns"):
        X = _array(estimator, X)
    explained(lambda: validate_data(estimator, X, reset=reset, skip_check_array=True), X=X)
    names = column_names(X, X.shape[1])
    framed = hasattr(X, "columns")
    if framed and not len(X):
        raise InputError("X has 0 sample(s)", "at least one row", "Check the filter before it")
    return [
        _column(name, _framed(X, j) if framed else X[:, j], series=framed)
        for j, name in enumerate(names)
    ]


def _array(estimator: BaseEstimator, X: Any) -> Any:
    """A two-dimensional array of numbers or objects."""
    if sp.issparse(X):
        return X.toarray()
    return explained(
        lambda: _checked(estimator, X),
        X=X,
    )


def _checked(estimator: BaseEstimator, X: Any) -> np.ndarray:
    from sklearn.utils import check_array

    return check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator)


def _framed(X: Any, j: int) -> Any:
    return X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]


def _column(name: str, values: Any, *, series: bool) -> Column:
    numbers = None if series and _says_categories(values) else _numbers(values)
    if numbers is None:
        raw = np.asarray(values, dtype=object)
        hole = np.array([v is None or v != v or str(v) == "<NA>" for v in raw])
        text = np.array([None if h else v for v, h in zip(raw, hole, strict=True)], dtype=object)
        return Column(name, text, categorical=True)
    if np.isinf(numbers).any():
        raise InputError(
            f"Input X contains NaN or infinity: column {name!r} holds "
            f"{int(np.isinf(numbers).sum())} infinity",
            "finite numbers, or holes (NaN)",
            "Replace infinity by NaN, which is taken as missing",
        )
    return Column(name, numbers, categorical=False)


def _says_categories(values: Any) -> bool:
    kind = str(values.dtype).lower()
    return kind.startswith(("category", "categorical", "enum", "str", "bool", "boolean", "utf8"))


def _numbers(values: Any) -> np.ndarray | None:
    """float64 with NaN for holes; None where a value is no number."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise InputError(
            "Complex data not supported", "real numbers", "Pass real and imaginary parts apart"
        )
    try:
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    if hasattr(values, "to_numpy"):
        try:
            return np.array(values.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            return None
    return None
