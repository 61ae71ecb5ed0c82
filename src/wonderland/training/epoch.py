"""One compiled epoch: minibatches by index, updates in a loop, the verdict at its end.

The loop counts to a number that is an argument, so that a fit that has ended, a shorter epoch and a
resumed one run in the same program. A non-finite loss ends the loop before its update is made: the
weights before it, and the number of the step, are what remains.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.training import optimizers, stopping
from wonderland.training.step import Batch, Structure, infer, losses_of, rate, update

__all__ = ["Measured", "Span", "State", "Table", "compiled", "evaluated", "start", "starting"]

TOGETHER = 8192  # validation samples predicted at once
KEPT = 256  # compiled programs kept in a process


class Table(NamedTuple):
    """Samples on the device: X, y trees of arrays (n, …), weight (n,) or None."""

    X: Any
    y: Any
    weight: Any


class Span(NamedTuple):
    """Which updates to make: rows (steps, accumulate, b), −1 where there is none; tail (r,)."""

    rows: Any
    count: Any
    tail: Any
    last: Any


class State(NamedTuple):
    """Everything that changes while training."""

    parameters: Any
    statistics: Any
    optimizer: Any
    average: Any  # (parameters, statistics), or None
    best: Any  # (parameters, statistics) of the best score, or None
    verdict: stopping.Verdict
    step: Any
    epoch: Any
    key: Any  # words of the random key
    loss: Any  # Σ ωℓ of this epoch, and
    mass: Any  # Σ ω
    bad: Any  # whether a loss was not finite
    watched: Any  # for stopping rules that look at the parameters


class Measured(NamedTuple):
    """What was measured of an epoch."""

    loss: Any
    validation_loss: Any
    score: Any
    learning_rate: Any
    gradient_norm: Any
    moved: Any
    status: Any
    step: Any


def evaluated(structure: Structure, state: State) -> tuple[Any, Any]:
    """The parameters and statistics that are judged and returned."""
    if state.average is not None:
        return state.average
    if structure.game is not None:
        return state.parameters, state.statistics
    stepped = state.parameters
    return optimizers.evaluated(structure.optimizer, state.optimizer, stepped), state.statistics


@lru_cache(maxsize=128)
def starting(structure: Structure) -> Callable[..., State]:
    """The compiled start: (parameters, statistics, numbers, key) → State."""
    return jax.jit(lambda *args: start(structure, *args))


@lru_cache(maxsize=128)
def program(structure: Structure) -> Any:
    """The compiled epoch: (state, table, span, numbers, validation) → (state, record)."""
    return jax.jit(lambda *args: epoch(structure, *args), donate_argnums=0)


_compiled: dict[Any, Any] = {}


def compiled(structure: Structure, *args: Any) -> Any:
    """The program of arguments of these shapes, with XLA's own analysis of cost and memory."""
    leaves, shape = jax.tree.flatten(args)
    key = (structure, shape, tuple((np.shape(x), np.dtype(x.dtype)) for x in leaves))
    if key not in _compiled:
        if len(_compiled) >= KEPT:
            _compiled.pop(next(iter(_compiled)))
        with warnings.catch_warnings():
            # State that a program does not read (a fit that watches nothing) need not be donated.
            warnings.filterwarnings("ignore", message="Some donated buffers were not usable")
            _compiled[key] = program(structure).lower(*args).compile()
    return _compiled[key]


def start(structure: Structure, parameters: Any, statistics: Any, numbers: Any, key: Any) -> State:
    """Before the first update."""

    def fresh() -> tuple[Any, Any]:
        # Copies: buffers given to the next epoch may not be shared.
        return jax.tree.map(jnp.copy, (parameters, statistics))

    roles = () if structure.game is None else (len(structure.game.parts),)
    zero = jnp.zeros((), jnp.promote_types(jnp.float32, jax.tree.leaves(parameters)[0].dtype))
    watched = {}
    if "gradient_norm" in structure.watches:
        watched["gradient"] = jax.tree.map(jnp.zeros_like, parameters)
        watched["first"] = jnp.zeros((), jnp.int32)
    if "moved" in structure.watches:
        watched["before"] = fresh()[0]
    return State(
        *fresh(),
        optimizer=jax.tree.map(_own, _memory(structure, parameters, numbers)),
        average=None if structure.average is None else fresh(),
        best=fresh() if structure.best else None,
        verdict=stopping.unjudged(),
        step=jnp.zeros((), jnp.int32),
        epoch=jnp.zeros((), jnp.int32),
        key=jnp.copy(key),
        loss=jnp.broadcast_to(zero, roles),
        mass=jnp.copy(zero),
        bad=jnp.zeros((), bool),
        watched=watched,
    )


def _memory(structure: Structure, parameters: Any, numbers: Any) -> Any:
    """What the optimiser remembers before its first update."""
    if structure.game is not None:
        return structure.game.init(parameters, numbers)
    made = structure.optimizer.transformation(numbers["learning_rate"], numbers["options"])
    return made.init(parameters)


def _own(leaf: Any) -> jax.Array:
    """A buffer of its own with a definite type."""
    return jnp.copy(jax.lax.convert_element_type(leaf, jnp.asarray(leaf).dtype))


def epoch(
    structure: Structure,
    state: State,
    table: Table,
    span: Span,
    numbers: Any,
    validation: Table | None,
) -> tuple[State, Measured]:
    """The updates of the span and, where it is the last of its epoch, the verdict."""
    going = state.verdict.status == 0
    state = _loop(structure, state, table, span._replace(count=span.count * going), numbers)
    if span.tail is not None:
        state = jax.lax.cond(
            going & span.last & ~state.bad,
            lambda state: _one(structure, state, table, span.tail[None], numbers),
            lambda state: state,
            state,
        )
    return jax.lax.cond(
        (span.last | state.bad) & going,
        lambda state: _close(structure, state, numbers, validation),
        lambda state: (state, _blank(state, numbers)),
        state,
    )


def _loop(structure: Structure, state: State, table: Table, span: Span, numbers: Any) -> State:
    def more(carried: tuple[jax.Array, State]) -> jax.Array:
        return (carried[0] < span.count) & ~carried[1].bad

    def body(carried: tuple[jax.Array, State]) -> tuple[jax.Array, State]:
        place, state = carried
        return place + 1, _one(structure, state, table, span.rows[place], numbers)

    return jax.lax.while_loop(more, body, (jnp.zeros_like(span.count), state))[1]


def _one(structure: Structure, state: State, table: Table, rows: Any, numbers: Any) -> State:
    """One update; none where the loss is not finite."""
    key = jax.random.wrap_key_data(state.key, impl=structure.key)
    batches = _gathered(structure, table, rows)
    made = update(structure, numbers, state, batches, jax.random.fold_in(key, state.step))
    good = jnp.isfinite(made.loss).all()
    moved = state._replace(
        parameters=made.parameters,
        statistics=made.statistics,
        optimizer=made.optimizer,
        loss=state.loss + made.loss,
        mass=state.mass + made.mass,
        step=state.step + 1,
    )
    if structure.average is not None:
        moved = moved._replace(average=_averaged(structure, moved, state, numbers))
    if "gradient_norm" in structure.watches:
        summed = jax.tree.map(jnp.add, state.watched["gradient"], made.gradient)
        moved = moved._replace(watched=moved.watched | {"gradient": summed})
    kept = jax.tree.map(lambda new, old: jnp.where(good, new, old), moved, state)
    return kept._replace(bad=~good)


def _gathered(structure: Structure, table: Table, rows: Any) -> Batch:
    """The samples of these rows; a weight of zero where the row is −1."""

    def take(values: Any) -> Any:
        places = rows if structure.full else jnp.maximum(rows, 0)
        return jax.tree.map(lambda x: x.at[places].get(mode="promise_in_bounds"), values)

    weight = take(table.weight) if structure.weighted else None
    if not structure.full:
        there = (rows >= 0).astype(jnp.float32)
        weight = there if weight is None else weight * there
    return Batch(take(table.X), take(table.y), weight)


def _averaged(structure: Structure, new: State, old: State, numbers: Any) -> Any:
    """The mean of the weights so far: exponential, or uniform from a stated moment on."""
    t = old.step.astype(jnp.float32)
    if structure.average == "ema":
        # A young mean forgets faster: otherwise it would remember the random start.
        part = 1.0 - jnp.minimum(numbers["average_decay"], (1.0 + t) / (10.0 + t))
    else:
        since = t - jnp.floor(numbers["average_decay"] * numbers["total"])
        part = jnp.where(since < 0, 1.0, 1.0 / (since + 1.0))

    def mix(mean: Any, value: Any) -> Any:
        if not jnp.issubdtype(value.dtype, jnp.inexact):
            return value
        return mean + part.astype(mean.dtype) * (value - mean)

    return jax.tree.map(mix, old.average, (new.parameters, new.statistics))


def _close(
    structure: Structure, state: State, numbers: Any, validation: Table | None
) -> tuple[State, Measured]:
    """The end of an epoch: what it measured, and the verdict."""
    model = evaluated(structure, state)
    record = _blank(state, numbers)
    if validation is not None:
        value, score = validated(structure, *model, numbers, validation)
        record = record._replace(validation_loss=value, score=score)
    record = record._replace(**_watched(state))
    verdict = stopping.judge(
        state.verdict,
        {
            "score": record.score,
            "loss": record.loss.sum(),
            "gradient_norm": record.gradient_norm,
            "moved": record.moved,
            "epoch": state.epoch,
            "bad": state.bad,
        },
        numbers["stopping"],
    )
    state = state._replace(
        best=_better(state, model, verdict),
        verdict=verdict,
        epoch=state.epoch + 1,
        loss=jnp.zeros_like(state.loss),
        mass=jnp.zeros_like(state.mass),
        watched=_renewed(state),
    )
    return state, record._replace(status=verdict.status)


def _better(state: State, model: Any, verdict: stopping.Verdict) -> Any:
    if state.best is None:
        return None
    better = (verdict.epoch == state.epoch) & ~state.bad
    return jax.tree.map(lambda new, old: jnp.where(better, new, old), model, state.best)


def _watched(state: State) -> dict[str, jax.Array]:
    """Norm of the mean gradient, squared distance from where the epoch began."""
    found = {}
    if "gradient" in state.watched:
        steps = (state.step - state.watched["first"]).astype(jnp.float32)
        squares = sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(state.watched["gradient"]))
        found["gradient_norm"] = jnp.sqrt(squares) / jnp.maximum(steps, 1.0)
    if "before" in state.watched:
        apart = jax.tree.map(jnp.subtract, state.parameters, state.watched["before"])
        found["moved"] = jnp.asarray(sum(jnp.sum(jnp.square(d)) for d in jax.tree.leaves(apart)))
    return found


def _renewed(state: State) -> dict[str, Any]:
    watched = dict(state.watched)
    if "gradient" in watched:
        watched["gradient"] = jax.tree.map(jnp.zeros_like, watched["gradient"])
        watched["first"] = state.step
    if "before" in watched:
        watched["before"] = state.parameters
    return watched


def _blank(state: State, numbers: Any) -> Measured:
    """What is known without a look at the validation data."""
    nothing = jnp.full((), jnp.nan, jnp.float32)
    mass = jnp.where(state.mass > 0, state.mass, 1.0)
    return Measured(
        loss=jnp.where(state.bad, jnp.nan, state.loss / mass),
        validation_loss=nothing,
        score=nothing,
        learning_rate=jnp.asarray(rate(numbers, jnp.maximum(state.step - 1, 0)), jnp.float32),
        gradient_norm=nothing,
        moved=nothing,
        status=state.verdict.status,
        step=state.step,
    )


def validated(
    structure: Structure, parameters: Any, statistics: Any, numbers: Any, validation: Table
) -> tuple[jax.Array, jax.Array]:
    """Mean loss and score of the validation samples."""
    count = jax.tree.leaves(validation.X)[0].shape[0]

    def predict(X: Any) -> Any:
        return infer(structure, parameters, statistics, X)

    if count <= TOGETHER:
        prediction = predict(validation.X)
    else:
        one = lambda x: jax.tree.map(lambda z: z[0], predict(jax.tree.map(lambda a: a[None], x)))  # noqa: E731
        prediction = jax.lax.map(one, validation.X, batch_size=TOGETHER)
    losses = losses_of(structure, numbers["loss"], prediction, validation.y)
    weight = jnp.ones_like(losses) if validation.weight is None else validation.weight
    # Samples that fill up a table may have any loss: they weigh nothing, also where it is infinite.
    loss = jnp.sum(jnp.where(weight > 0, losses * weight, 0.0)) / weight.sum()
    score = -loss
    if structure.score is not None:
        score = structure.score(prediction, validation.y, weight)
    return loss.astype(jnp.float32), jnp.asarray(score, jnp.float32)
