"""More data than memory: datasets on disk and iterables of chunks, validated as they pass by.

Every chunk is held to the standard of `shell.inputs`; what only the whole can tell (one sample, a
constant target, no positive weight) is told when the last chunk has gone by.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _get_feature_names, check_array

from wonderland.core.errors import InputError, InputTypeError
from wonderland.shell.datasets import Source, is_dataset, named, open_dataset
from wonderland.shell.explain import column_names, explained, refuse_non_finite
from wonderland.shell.inputs import _refuse_degenerate, _target_names

__all__ = ["Stream", "is_stream", "read_stream"]

Chunk = tuple[np.ndarray, np.ndarray, np.ndarray | None]


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
    return isinstance(X, Iterable)


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
    source = open_dataset(X, y, sample_weight) if is_dataset(X) else _open(X, y, sample_weight)
    first = next(source.pieces, None)
    if first is None:
        raise InputError(
            "the stream held 0 samples (no chunk at all)",
            "at least one chunk",
            "An iterator that was used up stays empty: make a new one for every fit",
        )
    with _within(0, 0):
        reader = _Reader(estimator, first, source)
    names = reader.names
    estimator.n_features_in_ = reader.width
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    return Stream(
        chunks=reader.chunks(chain([first], source.pieces)),
        names=column_names(first[0], reader.width) if names is None else names,
        targets=source.targets or _target_names(first[1], reader.first_y),
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
    return list(frame.column_names if _is_arrow(frame) else frame.columns)


def _select(frame: Any, names: list[str]) -> Any:
    return frame.select(names) if _is_arrow(frame) else frame[names]


def _column(frame: Any, name: str) -> Any:
    return frame.column(name) if _is_arrow(frame) else frame[name]


def _is_arrow(frame: Any) -> bool:
    return hasattr(type(frame), "column_names")


@contextmanager
def _within(chunk: int, start: int) -> Iterator[None]:
    """Say in which chunk something was wrong."""
    try:
        yield
    except InputError as error:
        place = f"chunk {chunk} (rows from {start:,}): "
        raise type(error)(place + error.came, error.expected, error.todo) from error


class _Reader:
    """Validates piece after piece against the first, and remembers what the end must check."""

    def __init__(
        self, estimator: BaseEstimator, first: tuple[Any, Any, Any], source: Source
    ) -> None:
        self.estimator, self.known = estimator, source.names
        self.names = source.names
        if self.names is None:
            self.names = _names(first[0])
        self.width = _table(first[0]).shape[1]
        self.first_y = _targets(first[1])
        self.flat = self.first_y.ndim == 1
        self.weighted = first[2] is not None
        self.rows, self.positive = 0, False
        self.varied = False
        self.constant: np.ndarray | None = None

    def chunks(self, pieces: Iterable[tuple[Any, Any, Any]]) -> Iterator[Chunk]:
        """Validated chunks; raises at the end when the whole determines nothing."""
        for count, piece in enumerate(pieces):
            with _within(count, self.rows):
                chunk = self._read(*piece)
            if len(chunk[0]):
                self._remember(*chunk)
                yield chunk
        self._refuse_degenerate()

    def _read(self, X: Any, y: Any, weight: Any) -> Chunk:
        self._match_names(X)
        table, target = _table(X), _targets(y)
        self._match_shapes(table, target, weighted=weight is not None)
        # NaN survives a sum: the columns are looked at one by one only where it came out.
        if not np.isfinite(table.sum()):
            refuse_non_finite(table, source=_Named(self.names) if self.names else X)
        if not np.isfinite(target.sum()):
            refuse_non_finite(target, what="y")
        return table, target[:, None] if self.flat else target, _weights(weight, len(table))

    def _match_names(self, X: Any) -> None:
        """The same columns in the same order; chunks without names go by position."""
        found = None if self.known else _names(X)
        if found is None or self.names is None:
            return
        for k, (name, first) in enumerate(zip(found, self.names, strict=False)):
            if name != first:
                raise InputError(
                    f"column {k} is {str(name)!r}",
                    f"{str(first)!r}, as in the first chunk",
                    "Yield chunks with the same columns in the same order",
                )

    def _match_shapes(self, X: np.ndarray, y: np.ndarray, *, weighted: bool) -> None:
        if X.shape[1] != self.width:
            raise InputError(
                f"X has {X.shape[1]} features",
                f"{self.width}, as in the first chunk",
                "Yield chunks with the same columns",
            )
        if y.shape[1:] != self.first_y.shape[1:]:
            raise InputError(
                f"y has shape {y.shape}",
                f"{('n', *self.first_y.shape[1:])} as in the first chunk".replace("'", ""),
                "Yield targets of one shape",
            )
        if len(y) != len(X):
            raise InputError(
                f"inconsistent numbers of samples: X has {len(X)}, y {len(y)}",
                "as many targets as rows",
                "Check that X and y come from the same rows",
            )
        if weighted != self.weighted:
            raise InputError(
                "weights are missing" if self.weighted else "weights came",
                "weights in every chunk or in none",
                "Yield ones where rows count fully",
            )

    def _remember(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
        self.rows += len(X)
        self.positive = self.positive or weight is None or bool(np.any(weight > 0))
        if self.constant is None:
            self.constant = y[:1].copy()
        self.varied = self.varied or bool(np.any(y != self.constant))

    def _refuse_degenerate(self) -> None:
        if self.constant is None:
            raise InputError(
                "the stream held 0 samples", "at least one row", "Check the filter that made it"
            )
        if not self.positive:
            raise InputError(
                "all sample weights are zero",
                "at least one positive weight",
                "Leave the weights out for equal weights",
            )
        if not self.varied:
            seen = np.broadcast_to(self.constant, (self.rows, self.constant.shape[1]))
            _refuse_degenerate(self.estimator, seen)


def _names(X: Any) -> list[str] | None:
    """Column names of a frame, where they are text."""
    if _is_arrow(X):
        return list(X.column_names)
    found = explained(lambda: _get_feature_names(X), X=X)
    return None if found is None else list(found)


class _Named(NamedTuple):
    """Carries column names to a message."""

    columns: list[str]


def _table(X: Any) -> np.ndarray:
    """Two-dimensional float64, dense."""
    if sp.issparse(X):
        X = X.toarray()
    return explained(
        lambda: check_array(X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0),
        X=X,
    )


def _targets(y: Any) -> np.ndarray:
    target = explained(lambda: np.asarray(y, dtype=np.float64), y=y)
    if target.ndim not in (1, 2):
        raise InputError(
            f"y has {target.ndim} dimensions",
            "one target per row (b,), or several (b, t)",
            "Yield (X, y) with one row of targets per row of X",
        )
    return target


def _weights(weight: Any, rows: int) -> np.ndarray | None:
    if weight is None:
        return None
    found = explained(lambda: np.asarray(weight, dtype=np.float64), sample_weight=weight)
    if found.shape != (rows,):
        raise InputError(
            f"sample_weight has shape {found.shape}",
            f"one weight per row: ({rows},)",
            "Yield (X, y, weight) from the same rows",
        )
    if not np.isfinite(found.sum()):
        refuse_non_finite(found, what="sample_weight")
    if np.any(found < 0):
        raise InputError(
            f"{np.count_nonzero(found < 0)} sample weights are negative",
            "weights ≥ 0",
            "Drop rows by weight 0; a negative weight makes the loss unbounded below",
        )
    return found
