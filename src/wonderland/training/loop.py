"""The one training loop: compiled epochs, dispatched from the host one after another.

    min_w  f(w) = Σ_i ω_i ℓ(m_w(x_i), y_i) / Σ_i ω_i

by updates on shuffled minibatches. The host draws the order of an epoch while the one before runs,
reads its record one epoch later, and looks at the clock; all decisions that depend on what was
measured are part of the compiled epoch.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from wonderland.core.cache import enable_compile_cache
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.training.batches import key_words, order, spans
from wonderland.training.epoch import Measured, State, Table, evaluated, program, starting
from wonderland.training.history import History, Record
from wonderland.training.parameters import join
from wonderland.training.prepare import Fit, prepare
from wonderland.training.recipe import Recipe, recipe_of

__all__ = ["train"]


def train(
    model: Any,
    loss: Any,
    data: Any,
    *,
    recipe: Recipe | None = None,
    validation: Any = None,
    key: Any = 0,
    **fields: Any,
) -> Solution:
    """Train a model, an `equinox.Module` of one sample.

    Args:
        model: m_w(x): `model(x)`, with a method `training(x, key=key) → (prediction, model)` where
            training differs from inference; anybody's module may take `key=` in its call instead.
        loss: ℓ(prediction, target) of one sample: a name, an object of `wonderland.losses`, a
            function.
        data: (X, y) or (X, y, sample_weight), arrays or trees of arrays with samples along the
            first axis.
        recipe: How to train; its fields are also accepted as keyword arguments.
        validation: Data of the same form, or a fraction of `data` to set aside.
        key: A JAX random key, or a seed.
        **fields: Fields of `Recipe`.

    Returns:
        The trained model, how training ended, and the evidence: `history` and what is computed
        from it.

    >>> import equinox as eqx, numpy as np
    >>> X = np.linspace(-1, 1, 64)[:, None]
    >>> model = eqx.nn.Linear(1, 1, key=jax.random.key(0))
    >>> found = train(model, "squared", (X, 3 * X), epochs=50, optimizer="momentum", batch_size=16)
    >>> round(float(found.model.weight[0, 0]), 2)
    3.0
    """
    enable_compile_cache()
    fit = prepare(model, loss, data, recipe_of(recipe, fields), validation, key_words(key))
    run = Run(fit)
    run.go()
    return run.solution()


class Run:
    """A fit under way: the state on the device, the records on the host."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        self.table: Table = jax.device_put(fit.table)
        self.validation = jax.device_put(fit.validation)
        self.epoch_program = program(fit.structure)
        parts = fit.parts
        self.state: State = starting(fit.structure)(
            parts.parameters, parts.statistics, fit.numbers, fit.words
        )
        self.records: list[Record] = []
        self.status = Status.RUNNING
        self.began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since training began."""
        return time.perf_counter() - self.began

    def go(self) -> None:
        """Run the epochs; an interruption keeps what there is."""
        with warnings.catch_warnings():
            # The last record of an ended fit is not used, nor the buffers it was given.
            warnings.filterwarnings("ignore", message="Some donated buffers were not usable")
            try:
                self._epochs()
            except KeyboardInterrupt:
                self.status = Status.INTERRUPTED
        if self.status == Status.RUNNING:
            self.status = Status.EPOCHS

    def _epochs(self) -> None:
        patient = not self.fit.recipe.callbacks
        waiting: tuple[int, Measured] | None = None
        for epoch in range(self.fit.recipe.epochs):
            measured = self._epoch(epoch)
            # Without callbacks the host looks at an epoch while the next one runs.
            if waiting is not None and self._look(*waiting):
                return
            waiting = (epoch, measured)
            if not patient:
                waiting = None
                if self._look(epoch, measured):
                    return
            if self._late():
                break
        if waiting is not None:
            self._look(*waiting)

    def _epoch(self, epoch: int) -> Measured:
        measured = None
        for span in self._spans(epoch):
            self.state, measured = self.epoch_program(
                self.state, self.table, span, self.fit.numbers, self.validation
            )
        if measured is None:
            raise RuntimeError("an epoch without minibatches")
        return measured

    def _spans(self, epoch: int) -> Iterator[Any]:
        fit = self.fit
        places = order(fit.words, epoch, fit.plan.samples, shuffle=fit.recipe.shuffle)
        yield from spans(fit.plan, places)

    def _look(self, epoch: int, measured: Measured) -> bool:
        """Read a record; whether training has ended."""
        found = [np.asarray(value).item() for value in measured]
        named = dict(zip(Measured._fields, found, strict=True))
        status = Status(int(named.pop("status")))
        record = Record(epoch=epoch, seconds=self.seconds, **named)
        self.records.append(record)
        if status != Status.RUNNING:
            self.status = status
            return True
        asked = [callback(record) for callback in self.fit.recipe.callbacks]
        if any(answer is True for answer in asked):
            self.status = Status.INTERRUPTED
            return True
        return False

    def _late(self) -> bool:
        limit = self.fit.recipe.stopping.seconds
        if limit is not None and self.seconds >= limit:
            self.status = Status.TIME
            return True
        return False

    def solution(self) -> Solution:
        """The model to keep, and what is known about it."""
        structure, state = self.fit.structure, self.state
        parameters, statistics = evaluated(structure, state)
        if self._restores():
            parameters, statistics = state.best
        model = join(parameters, statistics, structure.static)
        history = History.of(self.records)
        return Solution(model, np.int32(self.status), {"history": history})

    def _restores(self) -> bool:
        if self.state.best is None:
            return False
        found = np.asarray(self.state.verdict.epoch).item() >= 0
        return found and (self.fit.recipe.restores or self.status == Status.INTERRUPTED)
