"""More data than memory: datasets on disk and iterables of chunks, validated as they pass by.

Every chunk is held to the standard of `shell.inputs`; what only the whole can tell (one sample, a
constant target, no positive weight) is told when the last chunk has gone by.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from wonderland.core.errors import InputError, InputTypeError
from wonderland.shell.chunks import Chunk, Reader, is_arrow, within
from wonderland.shell.datasets import Source, is_dataset, named, open_dataset
from wonderland.shell.explain import column_names
from wonderland.shell.inputs import target_names

__all__ = ["Stream", "begin_stream", "is_stream", "open_source", "read_stream"]


class Stream(NamedTuple):
    """Validated chunks, to be passed over once.

    Attributes:
        chunks: (X (b, d), y (b, t), ω (b,) or None), float64 and finite. The end of the iteration
            refuses data that determine nothing, as `shell.inputs` does for a table.
        names: Column names (d,).
        targets: Target names (t,).
        flat: Whether y came with one dimension, so that outputs lose theirs.
        total: Number of rows, where known beforehand.
    """

    chunks: Iterator[Chunk]
    names: list[str]
    targets: list[str]
    flat: bool
    total: int | None = None


def is_stream(X: Any) -> bool:
    """Whether X is to be read in chunks: a path, an Arrow dataset or reader, or chunks.

    A callable without arguments that returns chunks counts too: it is called for every pass.

    A list counts only when its items are frames or tuples that start with a two-dimensional
    block, so that no table written as nested lists is mistaken for one.

    >>> is_stream("rows.parquet"), is_stream(iter([])), is_stream([[1, 2], [3, 4]])
    (True, True, False)
    """
    if is_dataset(X):
        return True
    if _is_table(X) or isinstance(X, bytes | Mapping | Set):
        return False
    if isinstance(X, Sequence) or (hasattr(X, "__getitem__") and hasattr(X, "__len__")):
        return len(X) > 0 and all(_is_chunk(item) for item in X)
    return isinstance(X, Iterable) or (callable(X) and not isinstance(X, type))


def _is_table(X: Any) -> bool:
    """Arrays, frames, series and whatever else turns into an array by itself."""
    marks = ("__array__", "__array_interface__", "__dataframe__", "shape", "dtype")
    return sp.issparse(X) or any(hasattr(X, mark) for mark in marks)


def _is_frame(item: Any) -> bool:
    return hasattr(item, "columns") and not isinstance(item, np.ndarray | Mapping)


def _is_chunk(item: Any) -> bool:
    """A frame, or (X, y) or (X, y, weight) with a two-dimensional X."""
    if not isinstance(item, tuple):
        return _is_frame(item)
    return len(item) in (2, 3) and _dimensions(item[0]) == 2


def _dimensions(block: Any) -> int:
    if hasattr(block, "shape"):
        return len(block.shape)
    nested = isinstance(block, list | tuple) and len(block) > 0
    return 1 + _dimensions(block[0]) if nested else 0


def read_stream(estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any) -> Stream:
    """Look at the first chunk; remember the number and names of columns on the estimator.

    Args:
        estimator: Asked for `fit_intercept`; given `n_features_in_` and `feature_names_in_`.
        X: What `is_stream` accepts.
        y: For datasets and chunks that are frames the name of the target, or a list of names.
        sample_weight: The name of a column of weights, for the same.
    """
    return begin_stream(estimator, open_source(X, y, sample_weight))


def open_source(X: Any, y: Any, sample_weight: Any, *, labels: bool = False) -> Source:
    """Pieces of what `is_stream` accepts, from their beginning; `labels`: y may be text."""
    if is_dataset(X):
        return open_dataset(X, y, sample_weight, labels=labels)
    if callable(X) and not isinstance(X, Iterable):
        X = _called(X)
    return _open(X, y, sample_weight)


def _called(X: Any) -> Iterable[Any]:
    """The chunks a callable makes."""
    chunks = X()
    if not isinstance(chunks, Iterable):
        raise InputTypeError(
            f"X is a callable that returned {_kind(chunks)}",
            "an iterable of chunks",
            "Write it as a generator function that yields (X, y)",
        )
    return chunks


def begin_stream(estimator: BaseEstimator, source: Source, *, labels: bool = False) -> Stream:
    """Look at the first piece; remember the number and names of columns on the estimator."""
    first = next(source.pieces, None)
    if first is None:
        raise InputError(
            "the stream held 0 samples (no chunk at all)",
            "at least one chunk",
            "An iterator that was used up stays empty: make a new one for every fit",
        )
    with within(0, 0):
        reader = Reader(estimator, first, source, labels=labels)
    names = reader.names
    estimator.n_features_in_ = reader.width
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    return Stream(
        chunks=reader.chunks(chain([first], source.pieces)),
        names=column_names(first[0], reader.width) if names is None else names,
        targets=source.targets or target_names(first[1], reader.first_y),
        flat=reader.flat,
        total=source.total,
    )


def _open(X: Iterable[Any], y: Any, sample_weight: Any) -> Source:
    """Chunks of an iterable as pieces (X, y, weight)."""
    if y is None and sample_weight is None:
        return Source(_tuples(X))
    if isinstance(y, str) or (isinstance(y, list | tuple) and all(isinstance(k, str) for k in y)):
        targets = [y] if isinstance(y, str) else list(y)
        return Source(_frames(X, y, sample_weight), targets=targets)
    raise InputTypeError(
        f"y is {_kind(y)} and sample_weight {_kind(sample_weight)} beside an iterable of chunks",
        "targets and weights within the chunks, or the names of their columns",
        "Yield (X, y) or (X, y, weight) and call fit(chunks)",
    )


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _tuples(X: Iterable[Any]) -> Iterator[tuple[Any, Any, Any]]:
    for item in X:
        if not isinstance(item, tuple | list) or len(item) not in (2, 3):
            raise InputTypeError(
                f"a chunk is {_kind(item)}",
                "(X, y) or (X, y, weight)",
                "Yield such tuples; for frames pass the name of the target column as y",
            )
        yield item[0], item[1], item[2] if len(item) == 3 else None


def _frames(X: Iterable[Any], y: Any, weight: Any) -> Iterator[tuple[Any, Any, Any]]:
    for item in X:
        if not _is_frame(item):
            raise InputTypeError(
                f"a chunk is {_kind(item)}, and y is the name of a column",
                "frames (pandas, polars, Arrow) that hold that column",
                "Yield frames, or tuples (X, y) and call fit(chunks)",
            )
        features, targets, _ = named(y, weight, [str(k) for k in _columns(item)])
        targeted = _column(item, y) if isinstance(y, str) else _select(item, targets)
        yield _select(item, features), targeted, None if weight is None else _column(item, weight)


def _columns(frame: Any) -> list[Any]:
    return list(frame.column_names if is_arrow(frame) else frame.columns)


def _select(frame: Any, names: list[str]) -> Any:
    return frame.select(names) if is_arrow(frame) else frame[names]


def _column(frame: Any, name: str) -> Any:
    return frame.column(name) if is_arrow(frame) else frame[name]
