"""Tables from files, by PyArrow: Parquet, Arrow IPC (Feather) and CSV."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wonderland.core.errors import InputError, nearest, optional

__all__ = ["columns_of", "read", "scan"]

READERS = {
    ".parquet": ("pyarrow.parquet", "read_table"),
    ".csv": ("pyarrow.csv", "read_csv"),
    ".feather": ("pyarrow.feather", "read_table"),
    ".arrow": ("pyarrow.feather", "read_table"),
}


def read(path: str) -> Any:
    """The whole file as a PyArrow table."""
    module, function = READERS.get(Path(path).suffix.lower(), ("", ""))
    if not module:
        raise InputError(
            f"{path} ends in {Path(path).suffix or 'nothing'!r}",
            f"a file ending in {', '.join(READERS)}",
            "Convert the table to Parquet or CSV",
        )
    _refuse_missing(path)
    try:
        return getattr(optional(module, "arrow"), function)(path)
    except ValueError as error:  # what PyArrow raises for content it cannot read
        raise _unreadable(path, error) from error


def scan(path: str, names: Sequence[str] | None = None) -> Any:
    """Those columns of a file, or of a folder of files, as a reader of record batches."""
    _refuse_missing(path)
    kind = "parquet" if Path(path).is_dir() else Path(path).suffix.lower().lstrip(".")
    try:
        dataset = optional("pyarrow.dataset", "arrow").dataset(path, format=kind)
    except ValueError as error:
        raise _unreadable(path, error) from error
    known = dataset.schema.names
    columns = known if names is None else names
    _refuse_unknown(columns, known, path)
    return dataset.scanner(columns=list(columns)).to_reader()


def _refuse_missing(path: str) -> None:
    if not Path(path).exists():
        raise InputError(
            f"there is no file {path}", "a table to read", "Check the path and its spelling"
        )


def _unreadable(path: str, error: ValueError) -> InputError:
    return InputError(
        f"{path} cannot be read: {str(error).splitlines()[0]}",
        f"a {Path(path).suffix} table",
        "Check that the file is complete and of the kind its name says",
    )


def columns_of(table: Any, names: Sequence[str], path: str) -> Any:
    """Those columns of a table; a name that is not there gets its neighbours."""
    _refuse_unknown(names, table.column_names, path)
    return table.select(list(names))


def _refuse_unknown(names: Sequence[str], known: Sequence[str], path: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(
                f"{path} has no column {name!r}", "names of its columns", nearest(name, known)
            )
