"""Tables from files, by PyArrow: Parquet, Arrow IPC (Feather) and CSV."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wonderland.core.errors import InputError, nearest, optional

__all__ = ["columns_of", "read"]

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
    if not Path(path).is_file():
        raise InputError(
            f"there is no file {path}", "a table to read", "Check the path and its spelling"
        )
    try:
        return getattr(optional(module, "arrow"), function)(path)
    except ValueError as error:  # what PyArrow raises for content it cannot read
        raise InputError(
            f"{path} cannot be read: {str(error).splitlines()[0]}",
            f"a {Path(path).suffix} table",
            "Check that the file is complete and of the kind its name says",
        ) from error


def columns_of(table: Any, names: Sequence[str], path: str) -> Any:
    """Those columns of a table; a name that is not there gets its neighbours."""
    for name in names:
        if name not in table.column_names:
            raise InputError(
                f"{path} has no column {name!r}",
                "names of its columns",
                nearest(name, table.column_names),
            )
    return table.select(list(names))
