"""Turn "something is wrong with X" into which column, how many, and what to do."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import map_rows
from wonderland.core.errors import InputError, InputTypeError

__all__ = ["column_names", "explained", "refuse_non_finite"]

T = TypeVar("T")
LARGE = 1 << 20  # entries from which a pass for NaN is felt
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
    ("at least one non-zero", "a positive weight", "Pass sample_weight=None for equal weights"),
    ("Sample weights must be 1D", "one weight per row", "Pass sample_weight of shape (n,)"),
    ("sample_weight.shape ==", "one weight per row", "Pass sample_weight of shape (n,)"),
    (
        "Unknown label type",
        "class labels: strings, whole numbers or booleans",
        "For a continuous target use a regressor; else round or bin y first",
    ),
    (
        "class_weight",
        'None, "balanced", or a mapping from every label to its weight',
        "Check the labels in class_weight against np.unique(y)",
    ),
    ("sparse", "a dense table", "Use X.toarray() where memory allows"),
)


def explained(action: Callable[[], T], **given: Any) -> T:
    """Run a validation; re-raise what it finds in three parts, naming columns where possible.

    Args:
        action: The validation.
        **given: What is validated, by the names X, y, sample_weight.
    """
    try:
        return action()
    except (ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        _explain(error, given)


def _explain(error: ValueError | TypeError, given: dict[str, Any]) -> NoReturn:
    kind = InputTypeError if isinstance(error, TypeError) else InputError
    text = _brief(str(error))
    if given.get("X", 0) is None:
        raise InputTypeError(
            "X is None", "a table of samples × features", "Pass fit(X, y)"
        ) from error
    if "NaN" in text or "infinity" in text:
        what = next((name for name in given if f"Input {name} " in text), "X")
        refuse_non_finite(given.get(what), text, what=what)
    if any(part in text for part in ("convert", "dtype", "numeric", "Expected 2D")):
        _refuse_text(kind, text, given, error)
    for fragment, expected, todo in _ADVICE:
        if fragment in text:
            raise kind(text, expected, todo) from error
    raise kind(
        text, "input as the documentation of fit describes", "Check shapes and types"
    ) from error


def _brief(text: str) -> str:
    """The sentence without the data printed after it; lists of column names stay."""
    text = text.strip()
    return text if "feature names" in text else text.split("\n")[0].rstrip(":.")


def _refuse_text(
    kind: type[InputError], text: str, given: dict[str, Any], error: Exception
) -> None:
    """Name what holds text: columns of X, or y as a whole."""
    words = _text_columns(given.get("X"))
    what = f"column {_listed(words)}" if words else "y" if _text_columns(given.get("y")) else None
    if what is not None:
        raise kind(
            f"{text}; {what} holds text",
            "numbers",
            "Encode text columns first: wl.BagOfWords() for texts, "
            "sklearn.preprocessing.OneHotEncoder for categories"
            if words
            else "Pass numeric targets; classes are for classifiers",
        ) from error


def refuse_non_finite(X: Any, text: str = "", *, what: str = "X", source: Any = None) -> None:
    """Raise naming the columns with NaN or infinity and how many; return when there are none.

    Args:
        X: The table, or a vector.
        text: What was already found out about it.
        what: Its name in the message.
        source: The object that carries column names, when it is not X itself.
    """
    counts = None if not text and _surely_finite(X) else _count(X)
    if counts is None:
        if text:
            _refuse(text)
        return
    nan, infinite = counts
    if not nan.any() and not infinite.any():
        if text:
            _refuse(text)
        return
    names = column_names(X if source is None else source, len(nan))

    def where(count: np.ndarray, kind: str) -> str:
        if len(nan) == 1 and what != "X":
            return f"({count.sum()} {kind})"
        columns = _listed([names[j] for j in np.flatnonzero(count)])
        return f"column {columns} ({count.sum()} {kind})"

    found = [
        where(count, kind) for count, kind in ((nan, "NaN"), (infinite, "infinity")) if count.any()
    ]
    sentence = text or f"Input {what} contains NaN or infinity"
    between = "" if what != "X" and len(nan) == 1 else ":"
    _refuse(f"{sentence}{between} {' and '.join(found)}", rows_only=what != "X")


def _surely_finite(X: Any) -> bool:
    """Whether the sum of a large table is finite, so that every entry is: NaN survives a sum."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind != "f" or X.size < LARGE:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        parts = map_rows(lambda low, high: float(X[low:high].sum()), len(X), X.size)
    return bool(np.isfinite(sum(parts)))


def _count(X: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """NaN and infinities per column (d,) each; None where X is no table of numbers."""
    if sp.issparse(X):
        table = X.tocoo()
        columns = [table.col[test(table.data)] for test in (np.isnan, np.isinf)]
        nan, infinite = (np.bincount(column, minlength=X.shape[1]) for column in columns)
        return nan, infinite
    found = _floats(X)
    if found is None or found.ndim not in (1, 2):
        return None
    found = found[:, None] if found.ndim == 1 else found
    return np.isnan(found).sum(axis=0), np.isinf(found).sum(axis=0)


def _refuse(came: str, *, rows_only: bool = False) -> NoReturn:
    fill = "Drop those rows (X.dropna()) or fill them in (sklearn.impute.SimpleImputer)"
    todo = "Drop those rows from X, y and the weights" if rows_only else fill
    raise InputError(" ".join(came.split("\n")[0].split()), "finite numbers", todo)


def _floats(X: Any) -> np.ndarray | None:
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _text_columns(X: Any) -> list[str]:
    """Names of the columns that do not convert to numbers."""
    table = np.asarray(X, dtype=object) if not sp.issparse(X) else np.empty((0, 0), object)
    table = table[:, None] if table.ndim == 1 else table
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
