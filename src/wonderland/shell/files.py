"""Files of record batches on disk: found by name, opened once each, read a few megabytes at a time.

The readers of one file are used rather than the dataset scanner, which reads ahead by whole files:
here memory is bounded by one row group (Parquet), one record batch (Arrow) or one block (CSV).
"""

import difflib
import glob
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from wonderland.core.errors import InputError, nearest, optional

__all__ = ["ENTRIES", "RowFile", "find_files", "in_words"]

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".ipc", ".feather")
CSV = (".csv", ".csv.gz")
KNOWN = PARQUET + ARROW + CSV
ENTRIES = 1 << 20  # of one record batch: 8 MB
BUFFER = 1 << 20  # bytes read at once from one column of a Parquet file


class RowFile(NamedTuple):
    """One file, with the columns that its folders name (`year=2020/…`).

    Attributes:
        path: Where it is.
        keys: Column → value, from the names of folders.
    """

    path: Path
    keys: dict[str, str]

    @property
    def parquet(self) -> bool:
        """Whether the file is Parquet, else Arrow."""
        return self.path.suffix.lower() in PARQUET

    @property
    def text(self) -> bool:
        """Whether the file is comma-separated text with a line of names."""
        return self.path.name.lower().endswith(CSV)

    def schema(self) -> Any:
        """Names and types of the columns within the file; of text, as its first block shows."""
        with in_words(str(self.path)):
            if self.text:
                with optional("pyarrow.csv", "arrow").open_csv(self.path) as reader:
                    return reader.schema
            if self.parquet:
                return optional("pyarrow.parquet", "arrow").read_schema(self.path)
            return self._arrow().schema

    def rows(self) -> int | None:
        """How many, where the file says so without being read."""
        if not self.parquet:
            return None
        with in_words(str(self.path)):
            return int(optional("pyarrow.parquet", "arrow").read_metadata(self.path).num_rows)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Record batches with at least the columns asked for, where the file has them."""
        size = max(1024, ENTRIES // max(len(columns), 1))
        with in_words(str(self.path)):
            if self.text:
                yield from self._text_batches(columns)
                return
            yield from (
                self._parquet_batches(columns, size) if self.parquet else self._arrow_batches(size)
            )

    def _parquet_batches(self, columns: list[str], size: int) -> Iterator[Any]:
        pq = optional("pyarrow.parquet", "arrow")
        with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER) as file:
            there = [name for name in columns if name in file.schema_arrow.names]
            yield from file.iter_batches(batch_size=size, columns=there)

    def _text_batches(self, columns: list[str]) -> Iterator[Any]:
        """Whole numbers are read as float64: a later block may hold fractions."""
        csv, types = optional("pyarrow.csv", "arrow"), optional("pyarrow", "arrow").types
        schema = self.schema()
        there = [name for name in columns if name in schema.names]
        whole = [name for name in there if types.is_integer(schema.field(name).type)]
        options = csv.ConvertOptions(
            include_columns=there,
            column_types=dict.fromkeys(whole, optional("pyarrow", "arrow").float64()),
        )
        with csv.open_csv(self.path, convert_options=options) as reader:
            yield from reader

    def _arrow_batches(self, size: int) -> Iterator[Any]:
        reader = self._arrow()
        one = hasattr(reader, "get_batch")
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if one else reader:
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)

    def _arrow(self) -> Any:
        """A reader of the file format, or of the stream format under the same ending."""
        pa, ipc = optional("pyarrow", "arrow"), optional("pyarrow.ipc", "arrow")
        try:
            return ipc.open_file(pa.memory_map(str(self.path)))
        except pa.ArrowInvalid:
            return ipc.open_stream(pa.memory_map(str(self.path)))


class in_words:  # noqa: N801  # reads as a sentence: with in_words(name)
    """Turn what the reader says of a damaged file into three parts."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        self.damaged = (optional("pyarrow", "arrow").ArrowException, OSError)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self.damaged):
            raise InputError(
                f"{self.name} could not be read: {str(error).splitlines()[0]}",
                "a complete Parquet, Arrow or CSV file",
                "Write or copy the file again",
            ) from error


def find_files(path: str | Path) -> list[RowFile]:
    """One file, the files that match a pattern, or all of a folder and its folders, in order."""
    base = Path(path).expanduser()
    if glob.has_magic(str(base)) and not base.exists():
        found = [Path(name) for name in sorted(glob.glob(str(base), recursive=True))]
    elif base.is_dir():
        found = sorted(file for file in base.rglob("*") if not _hidden(file.relative_to(base)))
    elif base.exists():
        found = [base]
    else:
        raise _missing(base)
    files = [file for file in found if file.is_file() and file.name.lower().endswith(KNOWN)]
    if not files:
        raise InputError(
            f"{str(path)!r} holds no file that is known by its ending",
            f"files ending in {', '.join(KNOWN)}",
            "Convert the data, for instance with pandas.DataFrame.to_parquet",
        )
    return [RowFile(file, _keys(file, base)) for file in files]


def _missing(path: Path) -> InputError:
    beside = [file.name for file in path.parent.glob("*")] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, beside)
    return InputError(
        f"there is no file or folder {str(path)!r}",
        "a dataset on disk",
        nearest(path.name, close) if close else "Check the name and the folder",
    )


def _hidden(path: Path) -> bool:
    """Names that writers of datasets use for their own notes."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _keys(file: Path, base: Path) -> dict[str, str]:
    if not base.is_dir():
        return {}
    parts = [part.partition("=") for part in file.relative_to(base).parts[:-1]]
    return {name: value for name, sign, value in parts if sign}
