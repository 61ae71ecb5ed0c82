"""Parquet, Arrow and CSV datasets, record batch by record batch: memory does not grow with them."""

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.errors import InputError, InputTypeError, nearest, optional
from wonderland.shell.files import ENTRIES, RowFile, find_files, in_words

__all__ = ["Source", "is_dataset", "named", "open_dataset"]

INDEX = re.compile(r"__index_level_\d+__")  # a pandas index without a name is no feature
COUNTED = 256  # files up to which the rows are counted beforehand
SHOWN = 10  # columns listed when none resembles what was asked for
AHEAD = 2  # record batches read while one is worked on


class Source(NamedTuple):
    """Pieces (X, y, weight) as they come, and what is known before the first.

    Attributes:
        pieces: Blocks of rows.
        names: Feature names, where the source has them.
        targets: Target names, where the source has them.
        total: Rows, where the source knows.
    """

    pieces: Iterator[tuple[Any, Any, Any]]
    names: list[str] | None = None
    targets: list[str] | None = None
    total: int | None = None


def is_dataset(X: Any) -> bool:
    """Whether X is a path, a pyarrow Dataset or a RecordBatchReader; does not import pyarrow."""
    if isinstance(X, str | Path):
        return True
    kinds = [kind for kind in type(X).__mro__ if kind.__module__.startswith("pyarrow")]
    return any(kind.__name__ in ("Dataset", "RecordBatchReader") for kind in kinds)


def named(y: Any, weight: Any, columns: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """(features, targets, weight) as column names; refuses names that are not there."""
    targets = [y] if isinstance(y, str) else y
    if not isinstance(targets, list | tuple) or not all(isinstance(k, str) for k in targets):
        raise InputTypeError(
            "y is None" if y is None else f"y is a {type(y).__name__}",
            "the name of the target column, or a list of names",
            f"Pass one of the columns as y. {_choice('', columns)}",
        )
    if weight is not None and not isinstance(weight, str):
        raise InputTypeError(
            f"sample_weight is a {type(weight).__name__}",
            "the name of a column of weights, or None",
            "Store the weights in the dataset, or pass chunks (X, y, weight)",
        )
    weights = [] if weight is None else [weight]
    for name, what in [*((k, "target") for k in targets), *((k, "sample_weight") for k in weights)]:
        if name not in columns:
            raise InputError(
                f"the {what} {name!r} is not among the {len(columns)} columns of the data",
                f"the name of a column as {what}",
                _choice(name, columns),
            )
    taken = {*targets, *weights}
    features = [name for name in columns if name not in taken]
    if not features or not targets:
        raise InputError(
            f"{len(features)} feature columns and {len(targets)} targets are left",
            "at least one of each",
            _choice("", columns),
        )
    return features, list(targets), weights


def _choice(name: str, columns: Sequence[str]) -> str:
    """The columns that resemble a name; else the first few there are."""
    close = difflib.get_close_matches(name, columns, n=1, cutoff=0.4)
    if close or len(columns) <= SHOWN:
        return nearest(name, columns)
    return f"{nearest(name, columns[:SHOWN])} or {len(columns) - SHOWN} more"


def open_dataset(X: Any, y: Any, sample_weight: Any, *, labels: bool = False) -> Source:
    """Look at the schema, refuse what cannot be learned from, and read on demand.

    Args:
        X: A path, a pyarrow Dataset or a RecordBatchReader.
        y: Name (or names) of the target.
        sample_weight: Name of the weights, or None.
        labels: Whether the target holds class labels, which may be text.
    """
    if isinstance(X, str | Path):
        return _from_files(find_files(X), y, sample_weight, labels=labels)
    reader = isinstance(X, optional("pyarrow", "arrow").RecordBatchReader)
    roles = _roles(X.schema, {}, y, sample_weight, labels=labels)
    batches = X if reader else _scan(X, roles.columns)
    return Source(
        pieces=(roles.cut(batch, {}) for batch in _watched(batches)),
        names=roles.features,
        targets=roles.targets,
        total=None if reader else X.count_rows(),
    )


def _from_files(files: list[RowFile], y: Any, sample_weight: Any, *, labels: bool) -> Source:
    roles = _roles(files[0].schema(), files[0].keys, y, sample_weight, labels=labels)
    counts = [file.rows() for file in files] if len(files) <= COUNTED else [None]
    known = [count for count in counts if count is not None]
    return Source(
        pieces=(
            roles.cut(batch, file.keys) for file in files for batch in file.batches(roles.columns)
        ),
        names=roles.features,
        targets=roles.targets,
        total=sum(known) if len(known) == len(counts) else None,
    )


class _Roles(NamedTuple):
    """What each column is for; `flat` when there is one target, given as a name.

    `labels` says that the target holds class labels and is taken as it is.
    """

    features: list[str]
    targets: list[str]
    weights: list[str]
    flat: bool
    labels: bool = False

    @property
    def columns(self) -> list[str]:
        """All that must be read."""
        return [*self.features, *self.targets, *self.weights]

    def cut(self, batch: Any, keys: dict[str, str]) -> tuple[Any, Any, Any]:
        """A record batch as (X (b, d), y (b,) or (b, t), weight (b,) or None)."""
        if self.labels:
            weight = _floats(batch, self.weights, keys)[:, 0] if self.weights else None
            return _floats(batch, self.features, keys), _words(batch, self.targets[0], keys), weight
        y = _floats(batch, self.targets, keys)
        weight = _floats(batch, self.weights, keys)[:, 0] if self.weights else None
        return _floats(batch, self.features, keys), y[:, 0] if self.flat else y, weight


def _roles(
    schema: Any, keys: dict[str, str], y: Any, sample_weight: Any, *, labels: bool
) -> _Roles:
    columns = [name for name in schema.names if not INDEX.fullmatch(name)]
    columns += [name for name in keys if name not in columns]
    features, targets, weights = named(y, sample_weight, columns)
    if labels and not isinstance(y, str):
        raise InputTypeError(
            f"y names {len(targets)} columns",
            "the name of one column of labels",
            f"Pass one of the columns as y. {_choice('', columns)}",
        )
    roles = _Roles(features, targets, weights, isinstance(y, str), labels)
    _refuse_text(schema, keys, [*features, *weights] if labels else roles.columns)
    return roles


def _refuse_text(schema: Any, keys: dict[str, str], columns: list[str]) -> None:
    """Columns must be numbers or booleans; the others are named with their type."""
    types = optional("pyarrow", "arrow").types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    kinds = {name: schema.field(name).type for name in columns if name in schema.names}
    words = [f"{k!r} ({kind})" for k, kind in kinds.items() if not any(t(kind) for t in tests)]
    words += [f"{k!r} (folder {k}={v})" for k, v in keys.items() if _number(v) is None]
    if words:
        shown = ", ".join(words[:SHOWN])
        more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
        raise InputError(
            f"column {shown}{more} holds no numbers",
            "numeric or boolean columns",
            "Encode text columns first, for instance with sklearn.preprocessing.OneHotEncoder; or "
            "leave them out: pass pyarrow.dataset.dataset(path).scanner(columns=[…]).to_reader()",
        )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _scan(data: Any, columns: list[str]) -> Iterator[Any]:
    """Record batches of the columns asked for, in order, few at a time."""
    ds = optional("pyarrow.dataset", "arrow")
    options = {}
    if isinstance(getattr(data, "format", None), ds.ParquetFileFormat):
        # Without this the scanner holds all bytes of a file until its end.
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(pre_buffer=False)
    return data.scanner(
        columns=columns,
        batch_size=max(1024, ENTRIES // len(columns)),
        batch_readahead=AHEAD,
        fragment_readahead=1,
        **options,
    ).to_batches()


def _watched(batches: Any) -> Iterator[Any]:
    with in_words("the dataset"):
        yield from batches


def _floats(batch: Any, columns: list[str], keys: dict[str, str]) -> np.ndarray:
    """Columns of a record batch as float64 (b, k), column after column in memory."""
    pa = optional("pyarrow", "arrow")
    table = np.empty((len(columns), batch.num_rows))
    for row, name in zip(table, columns, strict=True):
        if name not in batch.schema.names:
            row[:] = _from_folder(name, keys)
            continue
        column = batch.column(name)
        if column.null_count:
            raise InputError(
                f"column {name!r} holds {column.null_count} nulls",
                "a number in every row",
                "Drop those rows or fill them in, for instance with pyarrow.compute.fill_null",
            )
        row[:] = _cast(column, name, pa.float64())
    return table.T


def _words(batch: Any, name: str, keys: dict[str, str]) -> np.ndarray:
    """A column of labels (b,), in the type it has."""
    if name not in batch.schema.names:
        return np.full(batch.num_rows, _from_folder(name, keys, text=True))
    column = batch.column(name)
    if column.null_count:
        raise InputError(
            f"column {name!r} holds {column.null_count} nulls",
            "a label in every row",
            "Drop those rows, or give what is unknown a label of its own",
        )
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _cast(column: Any, name: str, kind: Any) -> np.ndarray:
    try:
        return column.cast(kind, safe=False).to_numpy(zero_copy_only=False)
    except optional("pyarrow", "arrow").ArrowException as error:
        raise InputError(
            f"column {name!r} holds {column.type}",
            "numbers, as in the first file",
            "Write all files with the same types",
        ) from error


def _from_folder(name: str, keys: dict[str, str], *, text: bool = False) -> Any:
    value = keys.get(name) if text else _number(keys.get(name, ""))
    if value is None:
        raise InputError(
            f"column {name!r} is missing",
            "the columns of the first file in all files",
            "Write all files with the same columns",
        )
    return value
