"""One chunk after another held to the standard of `shell.inputs`, and to the first of them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _get_feature_names, check_array

from wonderland.core.errors import InputError
from wonderland.shell.datasets import Source
from wonderland.shell.explain import explained, refuse_non_finite
from wonderland.shell.inputs import _refuse_degenerate
from wonderland.shell.labels import read_labels

__all__ = ["Chunk", "Reader", "is_arrow", "within"]

Chunk = tuple[np.ndarray, np.ndarray, np.ndarray | None]


@contextmanager
def within(chunk: int, start: int) -> Iterator[None]:
    """Say in which chunk something was wrong."""
    try:
        yield
    except InputError as error:
        place = f"chunk {chunk} (rows from {start:,}): "
        raise type(error)(place + error.came, error.expected, error.todo) from error


class Reader:
    """Validates piece after piece against the first, and remembers what the end must check.

    With `labels` targets are class labels (b,) of any kind; else numbers (b, t).
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        first: tuple[Any, Any, Any],
        source: Source,
        *,
        labels: bool = False,
    ) -> None:
        self.estimator, self.known = estimator, source.names
        self.labels = labels
        self.targets = read_labels if labels else _targets
        self.names = source.names
        if self.names is None:
            self.names = _names(first[0])
        self.width = _table(first[0]).shape[1]
        self.first_y = self.targets(first[1])
        self.flat = self.first_y.ndim == 1
        self.weighted = first[2] is not None
        self.rows, self.positive = 0, False
        self.varied = False
        self.constant: np.ndarray | None = None

    def chunks(self, pieces: Iterable[tuple[Any, Any, Any]]) -> Iterator[Chunk]:
        """Validated chunks; raises at the end when the whole determines nothing."""
        for count, piece in enumerate(pieces):
            with within(count, self.rows):
                chunk = self._read(*piece)
            if len(chunk[0]):
                self._remember(*chunk)
                yield chunk
        self._refuse_degenerate()

    def _read(self, X: Any, y: Any, weight: Any) -> Chunk:
        self._match_names(X)
        table, target = _table(X), self.targets(y)
        self._match_shapes(table, target, weighted=weight is not None)
        # NaN survives a sum: the columns are looked at one by one only where it came out.
        with np.errstate(over="ignore", invalid="ignore"):
            suspect = [not np.isfinite(part.sum()) for part in (table, *self._numbers(target))]
        if suspect[0]:
            refuse_non_finite(table, source=_Named(self.names) if self.names else X)
        if any(suspect[1:]):
            refuse_non_finite(target, what="y")
        tall = self.flat and not self.labels
        return table, target[:, None] if tall else target, _weights(weight, len(table))

    def _numbers(self, target: np.ndarray) -> list[np.ndarray]:
        """The target, where it is to be checked as numbers: labels have been."""
        return [] if self.labels else [target]

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
        if not self.varied and not self.labels:
            seen = np.broadcast_to(self.constant, (self.rows, self.constant.shape[1]))
            _refuse_degenerate(self.estimator, seen)


def _names(X: Any) -> list[str] | None:
    """Column names of a frame, where they are text."""
    if is_arrow(X):
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
    if not np.isfinite(found).all():
        refuse_non_finite(found, what="sample_weight")
    if np.any(found < 0):
        raise InputError(
            f"{np.count_nonzero(found < 0)} sample weights are negative",
            "weights ≥ 0",
            "Drop rows by weight 0; a negative weight makes the loss unbounded below",
        )
    return found


def is_arrow(frame: Any) -> bool:
    """Whether a frame speaks pyarrow."""
    return hasattr(type(frame), "column_names")
