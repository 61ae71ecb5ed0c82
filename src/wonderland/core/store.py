"""Saving: one file, a JSON recipe and raw arrays, no pickle; anything altered is refused.

Layout of the file (format 1):

    8 bytes   magic "WNDRLND1"
    8 bytes   length of the header, little-endian
    32 bytes  SHA-256 of the length and of everything after this field
    header    JSON: {"format", "version", "recipe", "arrays": [{"dtype", "shape", "offset"}]}
    arrays    little-endian, C order, each on a 64-byte boundary

The recipe is a tree of plain values; an array is {"array": index}, an object is
{"object": "module:Class", "state": …}. Loading builds objects by `cls.__new__` and their stored
state, never by calling code named in the file. Only classes and functions of this library, of JAX,
NumPy and equinox, and those registered with `storable` are found.
"""

import hashlib
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np

from wonderland.core.errors import InputTypeError, StoreError
from wonderland.core.evidence import Evidence

__all__ = ["load", "save", "storable"]

MAGIC = b"WNDRLND1"
FORMAT = 1
HEAD = len(MAGIC) + 8 + 32
ALIGN = 64

T = TypeVar("T")
TRUSTED = frozenset({"wonderland", "jax", "numpy", "equinox"})
_registered: dict[str, Any] = {}


def storable(thing: T) -> T:
    """Decorator: allow a class or function from outside this library in saved files.

    >>> @storable
    ... def squares(X):
    ...     return X**2
    """
    _registered[_path(thing)] = thing
    return thing


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted (or unfitted) estimator or model to one file, atomically.

    >>> import wonderland as wl, numpy as np, tempfile, os
    >>> model = wl.LinearRegression().fit(np.arange(6.0).reshape(3, 2), [1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wl.save(model, os.path.join(folder, "model.wl"))
    ...     again = wl.load(os.path.join(folder, "model.wl"))
    >>> bool(np.all(again.coef_ == model.coef_))
    True
    """
    arrays: list[np.ndarray] = []
    recipe = _encode(estimator, arrays.append, lambda: len(arrays))
    body = _body(recipe, arrays)
    length = len(body[0]).to_bytes(8, "little")
    head = MAGIC + length + _digest(length, *body)
    target = Path(path)
    # Written beside the target and moved over it: a crash leaves the old file, never half a one.
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        try:
            file.write(head)
            file.writelines(body)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            # Closing writes what is still in memory: on a full disk that fails once more.
            with suppress(OSError):
                file.close()
            os.unlink(file.name)
            raise
    os.replace(file.name, target)


def load(path: str | os.PathLike[str]) -> Any:
    """Read what `save` wrote; a truncated, altered or foreign file is refused with a sentence."""
    raw = Path(path).read_bytes()
    name = Path(path).name
    if not raw.startswith(MAGIC):
        raise StoreError(
            f"{name} does not begin like a wonderland file",
            "a file written by wl.save",
            "Check the path; pickles and other formats are not read",
        )
    length = int.from_bytes(raw[8:16], "little")
    if _digest(raw[8:16], raw[HEAD:]) != raw[16:HEAD]:
        raise StoreError(
            f"{name} was truncated or altered: its checksum does not match its content",
            "the very bytes wl.save wrote",
            "Copy the file again from its source, or save the estimator again",
        )
    return _read(raw, HEAD + length, name)


def _read(raw: bytes, start: int, name: str) -> Any:
    """Decode what the header, which ends at `start`, describes."""
    try:
        header = json.loads(raw[HEAD:start])
        if header["format"] != FORMAT:
            raise StoreError(
                f"{name} has format {header['format']!r}, written by version {header['version']}",
                f"format {FORMAT}",
                "Load it with the version that wrote it, or a later one",
            )
        arrays = [_array(raw, start, entry) for entry in header["arrays"]]
        return _decode(header["recipe"], arrays)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, StoreError):
            raise
        # The checksum held: somebody wrote this on purpose, not wl.save.
        raise StoreError(
            f"{name} has a valid checksum but no readable content ({error})",
            "a recipe as wl.save writes it",
            "Save the estimator again; load files only from sources you trust",
        ) from error


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def _body(recipe: Any, arrays: list[np.ndarray]) -> list[bytes]:
    """Header and padded arrays as byte strings."""
    from wonderland import __version__

    entries, chunks, offset = [], [], 0
    for array in arrays:
        data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        entries.append({"dtype": array.dtype.str, "shape": array.shape, "offset": offset})
        padding = -len(data) % ALIGN
        chunks.append(data + bytes(padding))
        offset += len(data) + padding
    header = {"format": FORMAT, "version": __version__, "recipe": recipe, "arrays": entries}
    return [json.dumps(header, separators=(",", ":")).encode(), *chunks]


def _array(raw: bytes, start: int, entry: Mapping[str, Any]) -> np.ndarray:
    dtype = np.dtype(entry["dtype"]).newbyteorder("<")
    count = int(np.prod(entry["shape"], dtype=np.int64))
    flat = np.frombuffer(raw, dtype, count, start + entry["offset"])
    return flat.reshape(entry["shape"]).astype(np.dtype(entry["dtype"]))


def _encode(value: Any, keep: Callable[[np.ndarray], None], count: Callable[[], int]) -> Any:
    """Turn a value into plain JSON, handing each array to `keep`."""

    def inner(item: Any) -> Any:
        return _encode(item, keep, count)

    if value is None or (isinstance(value, bool | str) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, Enum):
        return {"object": _path(type(value)), "state": inner(value.value)}
    if isinstance(value, int | float) and not isinstance(value, np.generic):
        return value if isinstance(value, int) or isfinite(value) else {"number": repr(value)}
    if isinstance(value, np.dtype):
        return {"dtype": value.str}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _encode_array(value, keep, count)
    if isinstance(value, list):
        return [inner(item) for item in value]
    if isinstance(value, Evidence) or _buildable(type(value)):
        return {"object": _path(type(value)), "state": _state(value, inner)}
    if isinstance(value, tuple):
        return {"tuple": [inner(item) for item in value]}
    if isinstance(value, Mapping):
        return {"mapping": [[inner(key), inner(item)] for key, item in value.items()]}
    if isinstance(value, type):
        return {"type": _path(value)}
    if callable(value) and _allowed(_path(value)):
        return {"function": _path(value)}
    raise InputTypeError(
        f"a {type(value).__module__}.{type(value).__qualname__} cannot be stored without pickle",
        "arrays, numbers, strings, containers, and objects of wonderland",
        "Decorate its class (or the function) with wl.storable, or replace it before saving",
    )


def _encode_array(value: Any, keep: Callable[[np.ndarray], None], count: Callable[[], int]) -> Any:
    array = np.asarray(value)
    kind = {"scalar": True} if isinstance(value, np.generic) else {}
    if isinstance(value, jax.Array):
        kind = {"jax": True}
    if array.dtype == object or array.dtype.kind in "US":
        # Names and labels: JSON holds them exactly, whatever their length.
        items = array.ravel().tolist()
        if not all(item is None or isinstance(item, str | int | float | bool) for item in items):
            raise InputTypeError(
                "an array of Python objects cannot be stored without pickle",
                "numbers or strings",
                "Convert the column to numbers or strings before fitting",
            )
        return {"array": items, "dtype": array.dtype.str, "shape": list(array.shape), **kind}
    index = count()
    keep(array)
    return {"array": index, **kind}


def _state(value: Any, inner: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple):
        return [inner(item) for item in value]
    if isinstance(value, Evidence):
        return [inner(item) for item in value.values()]
    return [[name, inner(item)] for name, item in vars(value).items()]


def _decode(value: Any, arrays: list[np.ndarray]) -> Any:
    """Rebuild what `_encode` took apart."""

    def inner(item: Any) -> Any:
        return _decode(item, arrays)

    if isinstance(value, list):
        return [inner(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return _decode_array(value, arrays)
    if "object" in value:
        return _rebuild(_class(value["object"]), inner(value["state"]))
    if "tuple" in value:
        return tuple(inner(item) for item in value["tuple"])
    if "mapping" in value:
        return {inner(key): inner(item) for key, item in value["mapping"]}
    if "number" in value:
        return float(value["number"])
    if "dtype" in value:
        return np.dtype(value["dtype"])
    return _find(value.get("type") or value["function"])


def _decode_array(value: Mapping[str, Any], arrays: list[np.ndarray]) -> Any:
    if "shape" in value:
        flat = np.array(value["array"], dtype=np.dtype(value["dtype"]))
        array = flat.reshape(value["shape"])
    else:
        array = arrays[value["array"]]
    if value.get("scalar"):
        return array[()]
    return jax.numpy.asarray(array) if value.get("jax") else array


def _rebuild(cls: type, state: Any) -> Any:
    if issubclass(cls, tuple):
        return cls(*state)
    if cls is Evidence:
        return Evidence(state)
    if issubclass(cls, Enum):
        return cls(state)
    instance = object.__new__(cls)
    for name, item in state:
        object.__setattr__(instance, name, item)
    return instance


def _path(thing: Any) -> str:
    name = getattr(thing, "__qualname__", type(thing).__qualname__)
    return f"{getattr(thing, '__module__', '')}:{name}"


def _allowed(path: str) -> bool:
    return path in _registered or path.partition(":")[0].partition(".")[0] in TRUSTED


def _buildable(cls: type) -> bool:
    """Whether instances of the class may be rebuilt from a file."""
    if issubclass(cls, Enum | np.ndarray | np.generic):
        return False
    if issubclass(cls, tuple) and not hasattr(cls, "_fields"):
        return False  # a plain tuple is written as one; named tuples are objects with fields
    path = _path(cls)
    ours = path.startswith("wonderland.") or path in _registered
    return ours or (issubclass(cls, eqx.Module) and _allowed(path))


def _find(path: str) -> Any:
    """The class or function `module:name`, refusing what this library would not write."""
    module, _, name = path.partition(":")
    if path in _registered:
        return _registered[path]
    if not _allowed(path):
        raise StoreError(
            f"the file needs {path}, which is not known here",
            "classes and functions of wonderland, or registered with wl.storable",
            f"Import {module} where it is decorated with wl.storable, then load again",
        )
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise StoreError(
            f"the file needs {path}, which does not exist here",
            "the version of the library that wrote the file",
            "Install that version, or save the estimator again",
        ) from error
    # A path may wander through a trusted module into one it imports: what was found must itself
    # come from where the path says it may.
    if isinstance(found, ModuleType) or not _allowed(_path(found)):
        raise StoreError(
            f"the file needs {path}, which is not of this library",
            "classes and functions of wonderland, or registered with wl.storable",
            "Load files only from sources you trust",
        )
    return found


def _class(path: str) -> type:
    """A class whose instances `save` would have written."""
    found = _find(path)
    if isinstance(found, type) and (_buildable(found) or issubclass(found, Enum)):
        return found
    raise StoreError(
        f"the file needs an instance of {path}",
        "instances of classes of wonderland, or registered with wl.storable",
        "Load files only from sources you trust",
    )
