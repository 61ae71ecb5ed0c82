"""A fit under way: the state on the device, the records and the clock on the host."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np

from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.shell.progress import Progress
from wonderland.training.blame import Failure, layer_of, stable_rate
from wonderland.training.epoch import (
    Measured,
    Span,
    State,
    Table,
    compiled,
    evaluated,
    start,
    starting,
)
from wonderland.training.evidence import measured
from wonderland.training.history import Record
from wonderland.training.parameters import join
from wonderland.training.prepare import Fit
from wonderland.training.snapshots import Place, Snapshots, digests

__all__ = ["Run"]

_TRUE = np.bool_(1)


class Call(NamedTuple):
    """What a call of the compiled program measured, and whether it ended an epoch."""

    measured: Measured
    last: bool


class Run:
    """One fit, from its first update to its solution."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        self.validation = jax.device_put(fit.validation)
        self.records: list[Record] = []
        self.status = Status.RUNNING
        self.verdict = Status.RUNNING  # that of the last record
        self.place = Place(0, 0)
        self.spent = 0.0
        self.program: Any = None
        self.shape: Any = None
        recipe = fit.recipe
        self.snapshots = (
            None
            if recipe.snapshots is None
            else Snapshots(recipe.snapshots, recipe.snapshot_minutes, digests(fit))
        )
        self.state = self._begin()
        self.made = self.records[-1].step if self.records else 0
        self.made = self.place.piece * fit.room + self.made
        self.began = time.perf_counter()

    def _begin(self) -> State:
        """The state of the snapshot, or a fresh one."""
        fit, parts = self.fit, self.fit.parts
        given = (parts.parameters, parts.statistics, fit.numbers, fit.words)
        if self.snapshots is not None:
            like = jax.eval_shape(lambda *args: start(fit.structure, *args), *given)
            found = self.snapshots.load(like)
            if found is not None:
                state, self.place, self.records, self.spent = found
                self.status = self.verdict = Status(int(state.verdict.status))
                return state
        return starting(fit.structure)(*given)

    @property
    def seconds(self) -> float:
        """Since training began, earlier processes included."""
        return self.spent + time.perf_counter() - self.began

    def go(self) -> None:
        """Run the epochs; an interruption keeps what there is."""
        with _interruptible() as pressed:
            try:
                self._epochs(pressed)
            except KeyboardInterrupt:
                self.status = Status.INTERRUPTED
        if self.status == Status.RUNNING:
            self.status = Status.EPOCHS
        if self.status != Status.DIVERGED:
            self._save()

    def _epochs(self, pressed: threading.Event) -> None:
        """Each call is looked at while the next one runs, at once for callbacks and snapshots."""
        at_once = bool(self.fit.recipe.callbacks)
        waiting: Call | None = None
        with Progress("updates", int(self.fit.numbers["total"])) as progress:
            for table, span in self._pieces():
                made = self._call(table, span)
                saves = self.snapshots is not None and self.snapshots.due
                for call in (waiting, made if at_once or saves else None):
                    self._look(call)
                waiting = None if at_once or saves else made
                if saves and self.status == Status.RUNNING:
                    self._save()
                self._clock(pressed)
                if self.status != Status.RUNNING:
                    break
                if self.fit.recipe.progress:
                    progress(self.made, self._note())
            self._look(waiting)

    def _pieces(self) -> Iterator[tuple[Table, Span]]:
        """What is left to do, cut short where `stopping.steps` says so."""
        limit = self.fit.recipe.stopping.steps
        for epoch in range(self.place.epoch, self.fit.recipe.epochs):
            for table, span in self.fit.source.pieces(epoch, self.place.piece):
                left = np.inf if limit is None else limit - self.made
                if left <= 0:
                    self._end(Status.ITERATIONS)
                if self.status != Status.RUNNING:
                    return
                if _updates(span) > left:
                    span = Span(span.rows, np.int32(min(left, span.count)), span.tail, _TRUE)
                yield table, span

    def _call(self, table: Table, span: Span) -> Call:
        """One call of the compiled program."""
        fit = self.fit
        given = (self.state, table, span, fit.numbers, self.validation)
        if self.program is None or self.shape != (span.rows.shape, np.shape(span.tail)):
            self.program = compiled(fit.structure, *given)
            self.shape = (span.rows.shape, np.shape(span.tail))
        self.state, measured = self.program(*given)
        self.made += _updates(span)
        last = bool(span.last)
        epoch, piece = self.place
        self.place = Place(epoch + 1, 0) if last else Place(epoch, piece + 1)
        return Call(measured, last)

    def _look(self, call: Call | None) -> None:
        """Read what a call measured; its verdict counts before any other end."""
        if call is None:
            return
        named = {
            name: np.asarray(value).tolist()
            for name, value in zip(Measured._fields, call.measured, strict=True)
        }
        status = Status(int(named.pop("status")))
        if call.last or status != Status.RUNNING:
            if self.verdict != Status.RUNNING:
                return  # a call that was under way when the one before it ended the run
            record = Record(epoch=len(self.records), seconds=self.seconds, **named)
            self.records.append(record)
            self.verdict = status
            if status != Status.RUNNING:
                self.status = status
            elif True in [callback(record) for callback in self.fit.recipe.callbacks]:
                self._end(Status.INTERRUPTED)

    def _clock(self, pressed: threading.Event) -> None:
        limit = self.fit.recipe.stopping.seconds
        if pressed.is_set():
            self._end(Status.INTERRUPTED)
        elif limit is not None and self.seconds >= limit:
            self._end(Status.TIME)

    def _end(self, status: Status) -> None:
        if self.status == Status.RUNNING:
            self.status = status

    def _note(self) -> str:
        if not self.records:
            return ""
        last = self.records[-1]
        held = "" if np.isnan(last.score) else f", score {last.score:.4g}"
        return f", epoch {last.epoch + 1}, loss {np.sum(last.loss):.4g}{held}"

    def _save(self) -> None:
        if self.snapshots is not None:
            self.snapshots.save(self.state, self.place, self.records, self.seconds)

    def _kept(self) -> tuple[Any, Any]:
        """The weights to return: the best where early stopping or an interruption asks for them."""
        state = self.state
        if state.best is not None and np.asarray(state.verdict.epoch).item() >= 0:
            early = self.status in (Status.INTERRUPTED, Status.DIVERGED)
            if self.fit.recipe.restores or early:
                return state.best
        return jax.tree.map(jax.numpy.asarray, evaluated(self.fit.structure, state))

    def solution(self) -> Solution:
        """The model, how training ended, and what was measured."""
        parameters, statistics = self._kept()
        model = join(parameters, statistics, self.fit.structure.static)
        found = measured(self, (parameters, statistics))
        solution = Solution(model, np.int32(self.status), found)
        if self.status == Status.DIVERGED:
            failure = self._failure()
            error = failure.error()
            error.solution, error.failure = solution, failure
            raise error
        return solution

    def _failure(self) -> Failure:
        """What made a loss infinite, found by running its minibatch once more."""
        fit, state = self.fit, self.state
        step, epoch = int(state.step), int(state.epoch) - 1
        if fit.structure.game is not None:
            role = "in the loss of a role"
            return Failure(step, epoch, None, role, self.records[-1].learning_rate, None, 0)
        within = step - (self.records[-2].step if len(self.records) > 1 else 0)
        batch = fit.source.batch(epoch, within)
        key = jax.random.wrap_key_data(state.key, impl=fit.structure.key)
        layer = "in a minibatch that is gone"
        if batch is not None:
            key = jax.random.fold_in(key, step)
            loss = fit.numbers["loss"]
            layer = layer_of(fit.structure, state.parameters, state.statistics, batch, key, loss)
        rate = self.records[-1].learning_rate
        stable, updates = (
            (None, 0) if fit.fixed_rate else stable_rate(self._trial, rate, step, fit.usual_rate)
        )
        return Failure(step, epoch, fit.source.places(epoch, within), layer, rate, stable, updates)

    def _trial(self, rate: float, updates: int) -> float:
        """The mean loss of the last of so many updates from the start, at another learning rate."""
        fit, parts = self.fit, self.fit.parts
        numbers = fit.numbers | {"learning_rate": np.asarray(rate, fit.numbers["l2"].dtype)}
        state = starting(fit.structure)(parts.parameters, parts.statistics, numbers, fit.words)
        found, left = np.nan, updates
        for epoch in range(fit.recipe.epochs):
            for table, span in fit.source.pieces(epoch):
                count = np.int32(min(left, span.count))
                given = (state, table, Span(span.rows, count, span.tail, _TRUE), numbers)
                state, record = compiled(fit.structure, *given, self.validation)(
                    *given, self.validation
                )
                found, left = float(record.loss), left - int(count)
                if left <= 0 or not np.isfinite(found):
                    return found
        return found


def _updates(span: Span) -> int:
    return int(span.count) + (span.tail is not None)


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Ctrl-C sets the event, so that no call is torn apart; a second one interrupts at once."""
    pressed = threading.Event()
    default = signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not default:
        yield pressed
        return

    def press(number: int, frame: Any) -> None:
        if pressed.is_set():
            default(number, frame)
        pressed.set()

    signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, default)
