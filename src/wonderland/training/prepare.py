"""From a model, a loss, data and a recipe to what the loop runs: checked, and as arrays."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland import losses
from wonderland.core.errors import InputError, InputTypeError
from wonderland.losses.loss import Loss
from wonderland.training import check, optimizers, schedules
from wonderland.training.batches import Plan, plan, room_for
from wonderland.training.epoch import Table
from wonderland.training.parameters import Parts, decays, split
from wonderland.training.recipe import Recipe
from wonderland.training.sources import Hosted, Resident, Source, Streamed, size_of
from wonderland.training.step import Structure, train_samples

__all__ = ["Fit", "accuracy", "changed", "held_out", "numbers_of", "prepare"]


@dataclass(frozen=True)
class Fit:
    """Everything a run needs, before its first update."""

    recipe: Recipe
    structure: Structure
    parts: Parts
    numbers: dict[str, Any]
    table: Table
    validation: Table | None
    plan: Plan
    words: np.ndarray
    apart: bool  # whether a last smaller minibatch may not be filled up
    source: Source
    room: int  # updates of one call of the program

    @property
    def samples(self) -> int:
        """Training samples of an epoch, as far as known."""
        return self.plan.samples

    @property
    def usual_rate(self) -> float:
        """The learning rate that the optimiser has where none is given."""
        return optimizers.resolve(self.recipe.optimizer).learning_rate

    @property
    def fixed_rate(self) -> bool:
        """Whether the recipe's learning rate is not what is stepped with."""
        given = not isinstance(self.recipe.optimizer, str)
        return given or isinstance(schedules.resolve(self.recipe.schedule), schedules.Rate)


def prepare(
    model: Any, loss: Any, data: Any, recipe: Recipe, validation: Any, key: tuple[np.ndarray, str]
) -> Fit:
    """Check everything that can be checked without compiling, and lay it out."""
    parts = split(model)
    dtype = parameter_type(parts)
    stream = Streamed(data, dtype) if _yields(data) else None
    table = check.table(data, dtype) if stream is None else stream.first
    table, held = _set_aside(table, validation, dtype, key[0], streamed=stream is not None)
    check.finite(table, "training data")
    if recipe.stopping.patience is not None and held is None:
        raise InputError(
            f"patience is {recipe.stopping.patience} and there are no validation data",
            "samples on which a score can be watched",
            "Pass validation=(X, y), or validation=0.1 to set a tenth of the data aside",
        )
    loss = loss_of(loss)
    optimizer = optimizers.resolve(recipe.optimizer, recipe.options)
    count = check.counted(table)
    size = check.batch_size(
        recipe.batch_size, None if stream else count, count, searches=optimizer.searches
    )
    structure = _structure(model, parts, loss, recipe, optimizer, key[1])
    apart = coupled(structure, parts, table)
    structure = replace(
        structure, weighted=table.weight is not None, full=apart, best=held is not None
    )
    module = loss if isinstance(loss, eqx.Module) else None
    check.fits(structure, parts.parameters, parts.statistics, table, module)
    made, source, room = _source(stream, table, parts, recipe, (size, apart, key[0]))
    numbers = numbers_of(recipe, optimizer, module, made, dtype)
    return Fit(recipe, structure, parts, numbers, table, held, made, key[0], apart, source, room)


def _yields(data: Any) -> bool:
    """Whether the data come batch by batch; a tuple is (X, y), a list of tuples is batches."""
    if isinstance(data, tuple):
        return False
    if isinstance(data, list):
        return all(isinstance(item, tuple) and len(item) in (2, 3) for item in data)
    return callable(data) or isinstance(data, Iterable)


def _set_aside(
    table: Table, validation: Any, dtype: Any, words: np.ndarray, *, streamed: bool
) -> tuple[Table, Table | None]:
    if validation is None:
        return table, None
    if isinstance(validation, float):
        if streamed:
            raise InputError(
                f"validation is {validation!r} and the data come in batches",
                "a table of validation samples",
                "Pass validation=(X, y)",
            )
        table, held = held_out(table, validation, words)
    else:
        held = check.table(validation, dtype)
    check.finite(held, "validation data")
    return table, held


def _source(
    stream: Streamed | None, table: Table, parts: Parts, recipe: Recipe, cut: tuple[int, bool, Any]
) -> tuple[Plan, Source, int]:
    """Where minibatches come from, and how many updates one call makes."""
    size, apart, words = cut
    each = size * recipe.accumulate
    room = room_for(sum(leaf.size for leaf in jax.tree.leaves(parts.parameters)), each)
    if stream is None:
        made = plan(check.counted(table), size, recipe.accumulate, apart=apart)
        kind = Hosted if size_of(table) > recipe.resident else Resident
        source = kind(table, made, words, shuffle=recipe.shuffle, room=room)
        return made, source, source.piece
    stream.prepare(size, recipe.accumulate, apart=apart, room=room)
    batches = stream.length()
    # Of a stream only its length in batches may be known: schedules need the number of updates.
    updates = 0 if batches is None else max(1, batches * check.counted(table) // each)
    needs = not isinstance(schedules.resolve(recipe.schedule), schedules.ENDLESS)
    if batches is None and recipe.stopping.steps is None and needs:
        raise InputError(
            f"schedule is {recipe.schedule!r} and the data do not say how many batches they have",
            "a run whose length is known",
            "Pass stopping=Stopping(steps=…), or data with a length, or a constant schedule",
        )
    return Plan(updates * each, size, recipe.accumulate, updates, 0), stream, stream.piece


def parameter_type(parts: Parts) -> Any:
    """float64 where the model has such parameters, else float32."""
    kinds = {leaf.dtype for leaf in jax.tree.leaves(parts.parameters)}
    if not kinds:
        raise InputError(
            "the model has no parameter that could be trained",
            "an equinox.Module with floating-point arrays",
            "Make its weights jax arrays of floats; nn.Statistic marks those that are not trained",
        )
    return np.dtype(np.float64) if jnp.dtype("float64") in kinds else np.dtype(np.float32)


def loss_of(loss: Any) -> Any:
    """A loss by name, an object of `wonderland.losses`, or a function of (prediction, target)."""
    if isinstance(loss, str):
        return losses.resolve(loss)
    if isinstance(loss, Loss) or callable(loss):
        return loss
    raise InputTypeError(
        f"loss is {loss!r}",
        "a name, an object of wonderland.losses, or a function (prediction, target) → number",
        'Pass loss="cross_entropy"',
    )


def _structure(
    model: Any, parts: Parts, loss: Any, recipe: Recipe, optimizer: Any, key: str
) -> Structure:
    watches = {
        name
        for name, rule in (
            ("gradient_norm", recipe.stopping.gradient_norm),
            ("moved", recipe.stopping.step_tol),
        )
        if rule is not None
    }
    return Structure(
        static=parts.static,
        decays=decays(model),
        loss=None if isinstance(loss, eqx.Module) else loss,
        optimizer=optimizer,
        key=key,
        clips=recipe.clip is not None,
        average=recipe.average,
        precision=recipe.precision,
        accumulate=recipe.accumulate,
        memory=recipe.memory,
        score=accuracy if recipe.score == "accuracy" else recipe.score,
        watches=frozenset(watches),
    )


def coupled(structure: Structure, parts: Parts, table: Table) -> bool:
    """Whether samples of a minibatch see one another: the model reduces over the batch axis."""
    one = jax.tree.map(lambda a: jax.ShapeDtypeStruct((2, *a.shape[1:]), a.dtype), table.X)
    key = jax.eval_shape(lambda: jax.random.key(0))
    trial = partial(train_samples, structure, axis=None)
    try:
        jax.eval_shape(trial, parts.parameters, parts.statistics, one, key)
    except NameError:  # JAX's word for an axis that is not there
        return True
    except (TypeError, ValueError):
        return False  # the model does not take these data; the checks that follow say so
    return False


def numbers_of(
    recipe: Recipe, optimizer: optimizers.Optimizer, loss: Any, made: Plan, dtype: Any
) -> dict[str, Any]:
    """Every number of the recipe as an array: a new value compiles nothing."""

    def number(value: Any) -> np.ndarray:
        return np.asarray(value, dtype)

    schedule = schedules.resolve(recipe.schedule)
    decay, averaging = recipe.weight_decay, recipe.average_decay
    default = 0.999 if recipe.average == "ema" else 0.75
    limit = recipe.stopping.steps
    total = recipe.epochs * made.updates or limit or 1
    return {
        "learning_rate": number(
            optimizer.learning_rate if recipe.learning_rate is None else recipe.learning_rate
        ),
        "weight_decay": number(optimizer.weight_decay if decay is None else decay),
        "l2": number(recipe.l2),
        "clip": number(np.inf if recipe.clip is None else recipe.clip),
        "average_decay": number(default if averaging is None else averaging),
        "options": {name: number(value) for name, value in optimizer.numbers.items()},
        "schedule": jax.tree.map(number, schedule),
        "stopping": recipe.stopping.numbers(),
        "total": np.int32(total if limit is None else min(total, limit)),
        "loss": jax.tree.map(lambda x: number(x) if isinstance(x, float) else x, loss),
    }


def held_out(table: Table, fraction: float, words: np.ndarray) -> tuple[Table, Table]:
    """Set a fraction of the samples aside, drawn from the key."""
    count = check.counted(table)
    aside = round(fraction * count)
    if not 0 < aside < count:
        raise InputError(
            f"validation is {fraction!r} of {count} samples",
            "a fraction that leaves samples on both sides",
            "Pass validation=0.1, or (X, y)",
        )
    places = np.random.default_rng([*words.tolist()]).permutation(count)

    def take(places: np.ndarray) -> Table:
        return jax.tree.map(lambda a: np.asarray(a)[places], table)

    return take(np.sort(places[aside:])), take(np.sort(places[:aside]))


def accuracy(prediction: Any, target: Any, weight: Any) -> Any:
    """Share of samples whose largest output, or the sign of the only one, is the target."""
    if prediction.ndim == 1 or prediction.shape[-1] == 1:
        right = (prediction.reshape(-1) > 0) == (target.reshape(-1) > 0)
    elif target.ndim == prediction.ndim:
        right = jnp.all((prediction > 0) == (target > 0), axis=-1)
    else:
        right = jnp.argmax(prediction, axis=-1) == target
    return jnp.sum(right * weight) / jnp.sum(weight)


def changed(numbers: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    """The numbers with some of them replaced; options of the optimiser by their own names."""
    found = dict(numbers)
    for name, value in values.items():
        if name in found["options"]:
            found["options"] = found["options"] | {name: value}
        elif name in found:
            found[name] = value
        else:
            known = ", ".join([*found["options"], "learning_rate", "weight_decay", "l2", "clip"])
            raise InputError(f"{name!r} is no number of the recipe", f"one of {known}", "Rename it")
    return found
