"""Readers of files that a user has: nothing is fetched, the user says where it comes from."""

import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from wonderland.core.errors import InputError
from wonderland.datasets.dataset import Dataset

__all__ = ["load_idx", "load_libsvm", "load_sms", "read_idx"]

PathLike = str | os.PathLike[str]

# Third byte of an IDX file → the type of its numbers, big-endian.
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def load_libsvm(
    path: PathLike, *, columns: int | None = None, first: int | None = None, source: str = ""
) -> Dataset:
    r"""A table in the text format of LIBSVM, a sample a line: label column:value column:value ….

    Args:
        path: Plain, .gz or .xz.
        columns: d, where the file may lack the last ones.
        first: The number of the first column, 0 or 1; None takes 0 when it occurs and 1 otherwise.
        source: Where it comes from, for the record.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two.txt"
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     sample = load_libsvm(path)
    >>> sample.y.tolist(), sample.X.toarray().tolist()
    ([1.0, -1.0], [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]])
    """
    lines = [line.partition(b"#")[0].strip() for line in _bytes(path).splitlines()]
    lines = [line for line in lines if line]
    counts = np.array([line.count(b":") for line in lines])
    numbers = _numbers(lines, counts, path)
    # In each line a label, then pairs.
    starts = np.concatenate([[0], np.cumsum(1 + 2 * counts)])
    pairs = np.delete(numbers, starts[:-1]).reshape(-1, 2)
    index = pairs[:, 0].astype(np.int64)
    origin = first if first is not None else int(len(index) > 0 and index.min() >= 1)
    width = int(index.max(initial=origin - 1)) + 1 - origin
    if np.any(index != pairs[:, 0]) or np.any(index < origin) or width > (columns or width):
        raise InputError(
            f"{Path(path).name} has columns from {index.min()} to {index.max()}",
            f"whole numbers from {origin}" + (f" to {columns - 1 + origin}" if columns else ""),
            "Pass first=0 where columns count from zero, or a larger columns",
        )
    ends = np.concatenate([[0], np.cumsum(counts)])
    X = sp.csr_array((pairs[:, 1], index - origin, ends), shape=(len(lines), columns or width))
    X.sort_indices()
    return Dataset(Path(path).name, X, numbers[starts[:-1]], (), source or str(path), {})


def _numbers(lines: list[bytes], counts: np.ndarray, path: PathLike) -> np.ndarray:
    """All numbers of all lines, the colons read as spaces."""
    if not lines:
        raise InputError(f"{Path(path).name} has no samples", "at least one line", "Check the path")
    words = [line.replace(b":", b" ").split() for line in lines]
    try:
        numbers = np.array([word for line in words for word in line], dtype=np.float64)
        fits = np.array([len(line) for line in words]) == 1 + 2 * counts
        bad = None if fits.all() else int(np.flatnonzero(~fits)[0])
    except ValueError:
        bad = next(i for i, line in enumerate(words) if not all(map(_is_number, line)))
    if bad is not None:
        raise InputError(
            f"{Path(path).name}, sample {bad + 1}: {lines[bad][:60].decode(errors='replace')!r}",
            "a label, then column:value pairs with spaces between",
            "Labels with commas and qid: entries are not read; remove them first",
        )
    return numbers


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def read_idx(path: PathLike) -> np.ndarray:
    """The array of a file in the IDX format of MNIST, plain or .gz, in its own type and shape.

    Raises:
        InputError: When the file is of another kind, or ends too early.
    """
    raw = _bytes(path)
    name = Path(path).name
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in TYPES:
        raise InputError(
            f"{name} begins with {raw[:4]!r}",
            "an IDX file: two zero bytes, a type, a number of dimensions",
            "Check the path; images and labels lie in files of their own",
        )
    axes = raw[3]
    start = 4 + 4 * axes
    head = raw[4 : min(start, len(raw) - len(raw) % 4)]
    shape = tuple(int(size) for size in np.frombuffer(head, ">u4"))
    kind = np.dtype(TYPES[raw[2]])
    if len(shape) < axes or len(raw) - start != int(np.prod(shape)) * kind.itemsize:
        raise InputError(
            f"{name} holds {len(raw) - start} bytes for an array of shape {shape}",
            f"{int(np.prod(shape)) * kind.itemsize} bytes",
            "Copy the file again from its source",
        )
    return np.frombuffer(raw, kind, offset=start).reshape(shape).astype(kind.newbyteorder("="))


def load_idx(images: PathLike, labels: PathLike, *, source: str = "") -> Dataset:
    """Images and their labels from two IDX files; each image becomes a row of its pixels.

    Args:
        images: Such as train-images-idx3-ubyte.gz.
        labels: Such as train-labels-idx1-ubyte.gz.
        source: Where they come from, for the record.
    """
    X, y = read_idx(images), read_idx(labels)
    if len(X) != len(y) or y.ndim != 1:
        raise InputError(
            f"images of shape {X.shape} with labels of shape {y.shape}",
            "one label for each image",
            "Pass two files of the same part, images first",
        )
    size = " × ".join(map(str, X.shape[1:]))
    name = f"{len(X)} images of {size} pixels"
    return Dataset(name, X.reshape(len(X), -1), y, (), source or str(images), {})


def load_sms(path: PathLike, *, source: str = "") -> Dataset:
    r"""Messages, one a line: a label, a tabulator, the text (the format of SMSSpamCollection).

    Args:
        path: Plain, .gz or .xz, in UTF-8.
        source: Where they come from, for the record.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "messages.tsv"
    ...     _ = path.write_text("ham\tSee you at six\nspam\tWin a prize\n")
    ...     sample = load_sms(path)
    >>> sample.X.tolist(), sample.y.tolist()
    (['See you at six', 'Win a prize'], ['ham', 'spam'])
    """
    lines = [line for line in _bytes(path).decode("utf-8").split("\n") if line.strip()]
    parts = [line.rstrip("\r").partition("\t") for line in lines]
    bad = next((i for i, part in enumerate(parts) if not part[1]), None)
    if bad is not None or not parts:
        raise InputError(
            f"{Path(path).name}, line {(bad or 0) + 1}, has no tabulator",
            "label, tabulator, text in every line",
            "Check the path and the separator",
        )
    texts = np.array([text for _, _, text in parts], dtype=object)
    labels = np.array([label for label, _, _ in parts])
    return Dataset(f"{len(texts)} messages", texts, labels, (), source or str(path), {})


def _bytes(path: PathLike) -> bytes:
    """The content of a file, unpacked by its ending."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror})", "a file", "Check the path"
        ) from error
    opener = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(Path(path).suffix)
    try:
        return opener(raw) if opener else raw
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InputError(
            f"{Path(path).name} cannot be unpacked ({error})",
            "a complete file of that ending",
            "Copy the file again from its source",
        ) from error
