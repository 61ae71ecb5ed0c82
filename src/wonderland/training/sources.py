"""Where minibatches come from: a table on the device, a table on the host, or anything that yields.

    Resident   the whole table lies on the device; minibatches are gathered by index there
    Hosted     the table stays on the host (or on disk, as `numpy.memmap`); a thread gathers the
               next block of minibatches while the device works on this one
    Streamed   batches of any size come from an iterable, or from a function of the epoch's number;
               they are cut into minibatches of one size, a block ahead

The minibatches are the same whichever of the first two is taken, bit for bit.
"""

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from wonderland.core.errors import InputError
from wonderland.training import check
from wonderland.training.batches import Plan, order, spans
from wonderland.training.epoch import Span, Table

__all__ = ["Hosted", "Resident", "Source", "Streamed", "ahead", "size_of"]

BLOCK = 64 * 2**20  # bytes of a block that travels to the device
AHEAD = 2  # blocks that wait there

Piece = tuple[Table, Span]


class Source(ABC):
    """Minibatches, epoch by epoch."""

    @abstractmethod
    def pieces(self, epoch: int, skip: int = 0) -> Iterator[Piece]:
        """Table and span of each call of the compiled program, but for the first `skip`."""

    @abstractmethod
    def batch(self, epoch: int, update: int) -> Table | None:
        """The samples of one update of an epoch, on the host; None where they are gone."""

    @abstractmethod
    def places(self, epoch: int, update: int) -> np.ndarray | None:
        """Their row numbers."""


class Resident(Source):
    """A table on the device."""

    def __init__(
        self, table: Table, plan: Plan, words: np.ndarray, *, shuffle: bool, room: int
    ) -> None:
        self._host, self._plan, self._words = table, plan, words
        self._shuffle, self._room = shuffle, room
        self._device: Table = self._placed(table)

    @property
    def piece(self) -> int:
        """Updates of one call, but for the last of an epoch."""
        return -(-self._plan.steps // max(1, -(-self._plan.steps // self._room)))

    def _placed(self, table: Table) -> Table:
        return jax.device_put(table)

    def _order(self, epoch: int) -> np.ndarray:
        everyone = check.counted(self._host)
        return order(self._words, epoch, everyone, shuffle=self._shuffle)[: self._plan.samples]

    def pieces(self, epoch: int, skip: int = 0) -> Iterator[Piece]:
        """The same table each time, other rows."""
        for span in spans(self._plan, self._order(epoch), room=self._room)[skip:]:
            yield self._device, span

    def places(self, epoch: int, update: int) -> np.ndarray:
        """From the order of the epoch."""
        each = self._plan.batch * self._plan.accumulate
        return self._order(epoch)[update * each : (update + 1) * each]

    def batch(self, epoch: int, update: int) -> Table:
        """Gathered on the host."""
        places = self.places(epoch, update)
        return jax.tree.map(lambda a: np.asarray(a)[places], self._host)


class Hosted(Resident):
    """A table that stays on the host; blocks of it travel to the device ahead of their use."""

    def __init__(
        self, table: Table, plan: Plan, words: np.ndarray, *, shuffle: bool, room: int
    ) -> None:
        each = plan.batch * plan.accumulate
        per_update = max(1, size_of(table) * each // max(1, plan.samples))
        room = max(1, min(room, BLOCK // per_update))
        super().__init__(table, plan, words, shuffle=shuffle, room=room)

    def _placed(self, table: Table) -> Table:
        return table

    def pieces(self, epoch: int, skip: int = 0) -> Iterator[Piece]:
        """A block of gathered rows each, numbered as they lie in it."""
        made = spans(self._plan, self._order(epoch), room=self._room)[skip:]
        return ahead(self._block(span) for span in made)

    def _block(self, span: Span) -> Piece:
        flat = span.rows.ravel()
        tail = np.empty(0, np.int32) if span.tail is None else span.tail
        places = np.maximum(np.concatenate([flat, tail]), 0)
        block = jax.tree.map(lambda a: np.asarray(a[places]), self._device)
        near = np.arange(len(places), dtype=np.int32)
        rows = np.where(flat >= 0, near[: len(flat)], -1).reshape(span.rows.shape)
        near_tail = None if span.tail is None else near[len(flat) :]
        return jax.device_put(block), Span(rows, span.count, near_tail, span.last)


class Streamed(Source):
    """Batches from an iterable, or from a function of the epoch's number."""

    def __init__(self, data: Any, dtype: Any) -> None:
        self._data, self._dtype = data, dtype
        self._each, self._shape, self._apart, self._room = 0, (1, 1), False, 1
        self.first = self._first()

    def _first(self) -> Table:
        for given in self._given(0):
            return given
        raise InputError(
            "the data yield no batch",
            "batches (X, y) or (X, y, sample_weight)",
            "Pass a function of the epoch's number that returns a fresh iterator",
        )

    def _given(self, epoch: int) -> Iterator[Table]:
        if not callable(self._data) and iter(self._data) is self._data:
            raise InputError(
                "the data are an iterator, which ends with the first epoch",
                "an iterable that starts anew each time, or a function of the epoch's number",
                "Pass lambda epoch: make_batches()",
            )
        made: Iterable[Any] = self._data(epoch) if callable(self._data) else self._data
        for batch in made:
            found = check.table(batch, self._dtype)
            check.finite(found, "training data")
            yield found

    def length(self) -> int | None:
        """How many batches an epoch has, where the data say so."""
        try:
            return len(self._data)
        except TypeError:
            return None

    def prepare(self, batch: int, accumulate: int, *, apart: bool, room: int) -> None:
        """Minibatches of this size from now on."""
        self._each, self._shape, self._apart = batch * accumulate, (accumulate, batch), apart
        weight = size_of(self.first) * self._each // max(1, check.counted(self.first))
        self._room = max(1, min(room, BLOCK // max(1, weight)))

    @property
    def piece(self) -> int:
        """Updates of one call, but for the last of an epoch."""
        return self._room

    def pieces(self, epoch: int, skip: int = 0) -> Iterator[Piece]:
        """Blocks of `room` minibatches; the last one knows that it is the last."""
        return ahead(piece for place, piece in enumerate(self._blocks(epoch)) if place >= skip)

    def _blocks(self, epoch: int) -> Iterator[Piece]:
        most = self._each * self._room
        held: list[Table] = []
        count = 0
        for given in self._given(epoch):
            held.append(given)
            count += check.counted(given)
            while count > most:
                whole = _joined(held)
                yield self._piece(_cut(whole, 0, most), last=False)
                held, count = [_cut(whole, most, count)], count - most
        if count:
            yield self._piece(_joined(held), last=True)

    def _piece(self, table: Table, *, last: bool) -> Piece:
        count, most = check.counted(table), self._each * self._room
        spare = count % self._each if self._apart else 0
        rows = np.full(most, -1, np.int32)
        rows[: count - spare] = np.arange(count - spare)
        steps = -(-(count - spare) // self._each)
        tail = np.arange(count - spare, count, dtype=np.int32) if spare else None
        padded = jax.tree.map(lambda a: _padded(np.asarray(a), most + spare), table)
        shaped = rows.reshape(self._room, *self._shape)
        return jax.device_put(padded), Span(shaped, np.int32(steps), tail, np.bool_(last))

    def batch(self, epoch: int, update: int) -> Table | None:
        """Read again from the start, where that is possible."""
        low, seen = update * self._each, 0
        held = []
        for given in self._given(epoch):
            held.append(given)
            seen += check.counted(given)
            if seen >= low + self._each:
                break
        whole = _joined(held)
        return _cut(whole, low, min(seen, low + self._each)) if seen > low else None

    def places(self, epoch: int, update: int) -> None:
        """A stream has no row numbers."""
        return


def size_of(table: Table) -> int:
    """Bytes of all arrays."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(table))


def _joined(tables: list[Table]) -> Table:
    if len(tables) == 1:
        return tables[0]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *tables)


def _cut(table: Table, low: int, high: int) -> Table:
    return jax.tree.map(lambda a: np.asarray(a)[low:high], table)


def _padded(array: np.ndarray, length: int) -> np.ndarray:
    spare = length - len(array)
    return array if spare <= 0 else np.concatenate([array, np.repeat(array[:1], spare, axis=0)])


def ahead(items: Iterable[Piece]) -> Iterator[Piece]:
    """The items, made by a thread while the one before is in use.

    >>> list(ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    waiting: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(AHEAD)
    ended = threading.Event()

    def offer(item: Any, error: BaseException | None) -> None:
        while not ended.is_set():
            try:
                waiting.put((item, error), timeout=0.1)
                return
            except queue.Full:
                continue

    def fill() -> None:
        try:
            for item in items:
                offer((item,), None)
                if ended.is_set():
                    return
            offer(None, None)
        except BaseException as error:  # it is raised where the items are taken
            offer(None, error)

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    try:
        yield from _taken(waiting.get)
    finally:
        ended.set()
        thread.join()


def _taken(get: Callable[[], tuple[Any, BaseException | None]]) -> Iterator[Piece]:
    while True:
        item, error = get()
        if error is not None:
            raise error
        if item is None:
            return
        yield item[0]
