"""A run on disk: written beside the old one and moved over it, resumed bit for bit.

A snapshot holds every array of the state, the position in the epoch and the records so far, in the
format of `wl.save` (JSON, raw arrays, a checksum; no pickle). It also holds what the run was begun
with, digested part by part, so that a snapshot of another model, of other data or of another
recipe is refused with the part that differs.
"""

import hashlib
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from wonderland.core import store
from wonderland.core.errors import InputError, StoreError
from wonderland.training.epoch import State
from wonderland.training.history import Record
from wonderland.training.parameters import names

__all__ = ["Place", "Snapshots", "digests"]

FORMAT = "training snapshot 1"


class Place(NamedTuple):
    """How far a run has come: `piece` pieces of epoch `epoch`."""

    epoch: int
    piece: int


def digests(fit: Any) -> dict[str, str]:
    """What a run is begun with, digested: model, data, recipe, random key."""
    recipe = fit.recipe
    plain = {
        name: repr(getattr(recipe, name))
        for name in ("batch_size", "accumulate", "average", "precision", "shuffle", "optimizer")
        if isinstance(getattr(recipe, name), str | int | bool | None)
    }
    numbers = {name: value for name, value in fit.numbers.items() if name != "loss"}
    return {
        "model": _digest(names(fit.parts.parameters), fit.parts[:2]),
        "data": _digest([], (fit.table, fit.validation)),
        "recipe": _digest(sorted(plain.items()), numbers),
        "random key": _digest([], fit.words),
    }


def _digest(words: Any, arrays: Any) -> str:
    digest = hashlib.sha256(repr(words).encode())
    for leaf in jax.tree.leaves(arrays):
        array = np.ascontiguousarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


class Snapshots:
    """One file, written every so often."""

    def __init__(self, path: Any, minutes: float, begun: dict[str, str]) -> None:
        self.path, self._every, self._begun = Path(path), 60.0 * minutes, begun
        self._last = time.monotonic()
        self.failure = ""
        _writable(self.path)

    @property
    def due(self) -> bool:
        """Whether it is time for the next one."""
        return time.monotonic() - self._last >= self._every

    def save(self, state: State, place: Place, records: list[Record], seconds: float) -> None:
        """Write one; a disk that is full is told, the file before stays and training goes on."""
        held = {
            "format": FORMAT,
            "begun": self._begun,
            "place": list(place),
            "seconds": float(seconds),
            "records": [list(record) for record in records],
            "state": [np.asarray(leaf) for leaf in jax.tree.leaves(state)],
        }
        self._last = time.monotonic()
        try:
            store.save(held, self.path)
            self.failure = ""
        except OSError as error:
            self.failure = str(error)
            warnings.warn(
                f"No snapshot could be written to {self.path} ({error}). The one before is kept "
                "and training goes on. Free some space, or it cannot be resumed from here.",
                RuntimeWarning,
                stacklevel=2,
            )

    def load(self, like: State) -> tuple[State, Place, list[Record], float] | None:
        """What was saved, or None where nothing was; a snapshot of another run is refused."""
        if not self.path.exists():
            return None
        held = store.load(self.path)
        if not isinstance(held, dict) or held.get("format") != FORMAT:
            raise StoreError(
                f"{self.path} is no snapshot of a training run",
                "a file that training wrote, or none",
                "Name another file in snapshots=",
            )
        self._same(held["begun"])
        leaves, shape = jax.tree.flatten(like)
        kept = [
            jax.numpy.asarray(array, leaf.dtype)
            for array, leaf in zip(held["state"], leaves, strict=True)
        ]
        records = [Record(*row) for row in held["records"]]
        return jax.tree.unflatten(shape, kept), Place(*held["place"]), records, held["seconds"]

    def _same(self, begun: dict[str, str]) -> None:
        other = [name for name, digest in self._begun.items() if begun.get(name) != digest]
        if other:
            raise InputError(
                f"{self.path} is a snapshot of a run with another {' and another '.join(other)}",
                "the snapshot of this very run, or none",
                "Name another file in snapshots=, or remove this one; it was left as it is",
            )


def _writable(path: Path) -> None:
    """Refuse a place where nothing can be written before any work is done."""
    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(b"a snapshot could be written here")
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
    except OSError as error:
        raise InputError(
            f"snapshots cannot be written to {os.fspath(path)} ({error})",
            "a file in a folder that exists and can be written to",
            "Create the folder, or name another file",
        ) from error
