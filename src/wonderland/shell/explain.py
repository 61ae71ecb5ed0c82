"""Turn "something is wrong with X" into which column, how many, and what to do."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
import scipy.sparse as sp

from wonderland.core.errors import InputError, InputTypeError

__all__ = ["column_names", "explained", "refuse_non_finite"]

T = TypeVar("T")
SHOWN = 5  # columns named in a message before "and k more"

_ADVICE = (
    # (fragment of scikit-learn's sentence, what was expected, what to do); first match wins
    ("0 sample(s)", "at least one row", "Check the filter or join that made the table"),
    ("0 feature(s)", "at least one column", "Pass the columns to learn from"),
    (
        "Expected 2D array",
        "a table of samples × features",
        "Reshape your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one sample",
    ),
    ("Found array with dim", "a two-dimensional X", "Flatten the further axes into columns"),
    (
        "inconsistent numbers of samples",
        "as many targets (and weights) as rows of X",
        "Check that X, y and sample_weight come from the same rows",
    ),
    (
        "feature names",
        "the columns seen in fit, in the same order",
        "Select them with X[list(estimator.feature_names_in_)]",
    ),
    (
        "features, but",
        "the number of columns seen in fit",
        "Pass the same columns as in fit",
    ),
    ("Complex data", "real numbers", "Pass real and imaginary parts as columns of their own"),
    ("requires y to be passed", "a target for every row", "Pass fit(X, y)"),
    ("Sample weights must be 1D", "one weight per row", "Pass sample_weight of shape (n,)"),
    ("sample_weight.shape ==", "one weight per row", "Pass sample_weight of shape (n,)"),
    ("sparse", "a dense table", "Use X.toarray() where memory allows"),
)


def explained(action: Callable[[], T], X: Any) -> T:
    """Run a validation; re-raise what it finds in three parts, naming columns where possible."""
    try:
        return action()
    except (ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        _explain(error, X)


def _explain(error: ValueError | TypeError, X: Any) -> NoReturn:
    kind = InputTypeError if isinstance(error, TypeError) else InputError
    text = str(error).strip()
    if "NaN" in text or "infinity" in text:
        refuse_non_finite(X, text)
    words = _text_columns(X)
    if words and ("could not convert" in text or "dtype" in text or "numeric" in text):
        raise kind(
            f"{text}; column {_listed(words)} holds text",
            "numbers",
            "Encode text columns first, for instance with sklearn.preprocessing.OneHotEncoder",
        ) from error
    for fragment, expected, todo in _ADVICE:
        if fragment in text:
            raise kind(text, expected, todo) from error
    raise kind(
        text, "input as the documentation of fit describes", "Check shapes and types"
    ) from error


def refuse_non_finite(X: Any, text: str = "", *, what: str = "X") -> None:
    """Raise naming the columns with NaN or infinity and how many; return when there are none."""
    table = X.data[:, None] if sp.issparse(X) else _floats(X)
    table = table[:, None] if table is not None and table.ndim == 1 else table
    if table is None or table.ndim != 2:
        _refuse(text or f"{what} contains NaN or infinity")
    nan, infinite = np.isnan(table).sum(axis=0), np.isinf(table).sum(axis=0)
    if not nan.any() and not infinite.any():
        if text:
            _refuse(text)
        return
    names = column_names(X, table.shape[1])
    found = [
        f"{_listed([names[j] for j in np.flatnonzero(count)])} ({count.sum()} {kind})"
        for count, kind in ((nan, "NaN"), (infinite, "infinity"))
        if count.any()
    ]
    _refuse(f"{text or f'Input {what} contains NaN or infinity'}: column {' and '.join(found)}")


def _refuse(came: str) -> NoReturn:
    raise InputError(
        " ".join(came.split("\n")[0].split()),
        "finite numbers",
        "Drop those rows (X.dropna()) or fill them in (sklearn.impute.SimpleImputer)",
    )


def _floats(X: Any) -> np.ndarray | None:
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _text_columns(X: Any) -> list[str]:
    """Names of the columns that do not convert to numbers."""
    table = np.asarray(X, dtype=object) if not sp.issparse(X) else np.empty((0, 0), object)
    if table.ndim != 2:
        return []
    names = column_names(X, table.shape[1])
    return [names[j] for j in range(table.shape[1]) if _floats(table[:, j]) is None]


def column_names(X: Any, count: int) -> list[str]:
    """The names X itself carries, else x0, x1, …."""
    names = getattr(X, "column_names", None)  # pyarrow
    names = getattr(X, "columns", None) if names is None else names  # pandas, polars
    if names is not None and not callable(names) and len(names) == count:
        return [str(name) for name in names]
    return [f"x{j}" for j in range(count)]


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(repr(str(name)) for name in names[:SHOWN])
    return text if len(names) <= SHOWN else f"{text} and {len(names) - SHOWN} more"
