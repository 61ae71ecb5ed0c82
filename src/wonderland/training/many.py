"""Many fits at once: the same compiled epoch, run for every member of a stack of models.

Each member has its own weights, numbers (learning rate, decay, …), random key and samples (rows of
one shared table), and ends by its own verdict. What comes out is what `train` gives for each alone.

    together   one program with a further axis: matrix products of all members in one call
    in turn    one program that takes the members one after another, on each core a part of them

Small matrices are faster in turn on a processor with caches, and together on an accelerator.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.cache import enable_compile_cache
from wonderland.core.errors import InputError
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.training import check
from wonderland.training.batches import Plan, key_words, order, plan, spans
from wonderland.training.epoch import Measured, Span, State, Table, epoch, evaluated, start
from wonderland.training.history import History
from wonderland.training.parameters import Parts, join, split
from wonderland.training.prepare import Fit, changed, prepare
from wonderland.training.recipe import Recipe, recipe_of
from wonderland.training.step import Structure

__all__ = ["fit_many", "stacked"]

# Parts that start at the same moment would each compile the program they share.
FIRST = threading.Lock()


def stacked(models: Sequence[Any]) -> Any:
    """Models of one structure as one, their arrays along a new first axis.

    >>> import equinox as eqx
    >>> two = stacked([eqx.nn.Linear(2, 3, key=jax.random.key(i)) for i in range(2)])
    >>> two.weight.shape
    (2, 3, 2)
    """
    parts = [split(model) for model in models]
    if any(part.static != parts[0].static for part in parts):
        raise InputError(
            "the models differ in structure",
            "models that differ in their arrays only",
            "Fit those with different layers or activations one by one",
        )
    try:
        arrays = [(part.parameters, part.statistics) for part in parts]
        together = jax.tree.map(lambda *leaves: np.stack([np.asarray(x) for x in leaves]), *arrays)
    except ValueError as error:
        raise InputError(
            f"the models differ in shape ({error})", "arrays of the same shapes", "Group by shape"
        ) from error
    parameters, statistics = jax.tree.map(jnp.asarray, together)
    return join(parameters, statistics, parts[0].static)


def fit_many(
    models: Any,
    loss: Any,
    data: Any,
    *,
    recipe: Recipe | None = None,
    numbers: Mapping[str, Any] | None = None,
    rows: Any = None,
    counts: Any = None,
    keys: Any = None,
    validation: Any = None,
    held_out: Any = None,
    held_counts: Any = None,
    lowering: str = "auto",
    **fields: Any,
) -> Solution:
    """Train m models at once.

    Args:
        models: A list of models of one structure, or one whose arrays have a first axis m.
        loss: As for `train`.
        data: (X, y) or (X, y, sample_weight), shared by all.
        recipe: How to train; the same for all but for `numbers`.
        numbers: Name → (m,): learning_rate, weight_decay, l2, clip, average_decay, or a setting of
            the optimiser such as b1.
        rows: (m, n_max) the samples of each member; None for all of them.
        counts: (m,) how many of its row each member uses; None for all.
        keys: (m,) random keys or seeds; None for 0 … m − 1.
        validation: (X, y) or (X, y, sample_weight) on which all are judged, or
        held_out: (m, v_max) the samples of `data` on which each is judged, and
        held_counts: (m,) how many of them.
        lowering: "together", "in turn", or "auto".
        **fields: Fields of `Recipe`.

    Returns:
        The stacked models, a status for each (m,), and `history` of arrays (epochs, m).
    """
    enable_compile_cache()
    recipe = recipe_of(recipe, fields)
    models = stacked(models) if isinstance(models, list | tuple) else models
    members = _members(models)
    crowd = _crowd(
        models, loss, data, recipe, validation, _keys(keys, members), (held_out, held_counts)
    )
    crowd = _numbered(crowd, numbers or {}, _samples(rows, counts, members, crowd))
    groups = _groups(crowd)
    parts = [part for group in groups for part in _parts(crowd, group, lowering)]
    together = _lowering(crowd, lowering) == "together"
    if len(parts) == 1:
        done = [_run(crowd, parts[0], together=together)]
    else:
        with ThreadPoolExecutor(_cores()) as pool:
            done = list(pool.map(lambda part: _run(crowd, part, together=together), parts))
    return _gathered(crowd, parts, done)


@dataclass(frozen=True)
class Crowd:
    """All members, before their first update; arrays lead with m."""

    fit: Fit
    members: int
    parts: Parts  # stacked
    numbers: dict[str, Any]  # stacked
    words: np.ndarray  # (m, …)
    places: list[np.ndarray]  # the samples of each
    plans: list[Plan]
    held: np.ndarray | None  # (m, v_max), −1 where there is none
    device: Any  # (table, validation) where the program finds them


def _members(models: Any) -> int:
    leaves = jax.tree.leaves(split(models).parameters)
    counts = {leaf.shape[0] if leaf.ndim else None for leaf in leaves}
    if len(counts) != 1 or None in counts:
        raise InputError(
            f"the arrays of the models have first axes of length {counts}",
            "one axis of members in front of every array",
            "Pass a list of models, or stack them with training.stacked",
        )
    return int(counts.pop() or 0)


def _keys(keys: Any, members: int) -> tuple[np.ndarray, str]:
    given = list(range(members)) if keys is None else keys
    if len(given) != members:
        raise InputError(f"{len(given)} keys for {members} models", "one key for each", "Add keys")
    found = [key_words(key if np.ndim(key) or hasattr(key, "dtype") else int(key)) for key in given]
    return np.stack([words for words, _ in found]), found[0][1]


def _crowd(
    models: Any, loss: Any, data: Any, recipe: Recipe, validation: Any, keys: Any, held: Any
) -> Crowd:
    """Everything checked on the first member."""
    parts = split(models)
    members = _members(models)
    own, remembered = jax.tree.map(lambda leaf: np.asarray(leaf[0]), parts[:2])
    words, kind = keys
    apart = _held(held, members)
    # A member's own samples are judged below; here any sample stands for them.
    stand = data if apart is not None else validation
    fit = prepare(join(own, remembered, parts.static), loss, data, recipe, stand, (words[0], kind))
    validation = None if apart is not None else fit.validation
    device = jax.device_put((fit.table, validation))
    return Crowd(fit, members, parts, fit.numbers, words, [], [], apart, device)


def _held(held: Any, members: int) -> np.ndarray | None:
    rows, counts = held
    if rows is None:
        return None
    rows = np.array(rows, np.int32)
    if rows.ndim != 2 or len(rows) != members:
        raise InputError(
            f"held_out has shape {rows.shape}", f"({members}, v_max)", "Give each model a row"
        )
    if counts is not None:
        rows[np.arange(rows.shape[1])[None, :] >= np.asarray(counts)[:, None]] = -1
    return rows


def _samples(rows: Any, counts: Any, members: int, crowd: Crowd) -> list[np.ndarray]:
    total = check.counted(crowd.fit.table)
    if rows is None:
        return [np.arange(total, dtype=np.int32)] * members
    rows = np.asarray(rows, np.int32)
    if rows.ndim != 2 or len(rows) != members:
        raise InputError(f"rows has shape {rows.shape}", f"({members}, n_max)", "Pad them")
    lengths = [rows.shape[1]] * members if counts is None else np.asarray(counts).tolist()
    found = [row[:length] for row, length in zip(rows, lengths, strict=True)]
    for place, row in enumerate(found):
        if not len(row) or row.min() < 0 or row.max() >= total:
            raise InputError(
                f"the rows of member {place} are not among the {total} samples",
                f"at least one number from 0 to {total - 1} each",
                "Pass counts= where rows are padded",
            )
    return found


def _numbered(crowd: Crowd, numbers: Mapping[str, Any], places: list[np.ndarray]) -> Crowd:
    """Numbers of every member, and its own number of updates."""
    fit, m = crowd.fit, crowd.members
    shared = jax.tree.map(
        lambda x: np.broadcast_to(np.asarray(x), (m, *np.shape(x))), dict(fit.numbers)
    )
    own = {}
    for name, values in numbers.items():
        array = np.asarray(values, np.asarray(fit.numbers["learning_rate"]).dtype)
        if array.shape != (m,):
            raise InputError(f"{name} has shape {array.shape}", f"({m},)", "One for each model")
        own[name] = array
    structure = fit.structure
    if "clip" in own:
        structure = replace(structure, clips=True)
    plans = [_plan(fit, len(place)) for place in places]
    limit = fit.recipe.stopping.steps
    totals = [fit.recipe.epochs * made.updates for made in plans]
    own["total"] = np.asarray(totals if limit is None else np.minimum(totals, limit), np.int32)
    structure = replace(structure, best=crowd.held is not None or structure.best)
    return replace(
        crowd,
        fit=replace(fit, structure=structure),
        numbers=changed(shared, **own),
        places=places,
        plans=plans,
    )


def _plan(fit: Fit, count: int) -> Plan:
    return plan(count, min(fit.plan.batch, count), fit.recipe.accumulate, apart=fit.apart)


def _groups(crowd: Crowd) -> list[list[int]]:
    """Members that share shapes: where samples see one another, those with as many samples."""
    sizes = [len(place) for place in crowd.places]
    smallest = min(sizes) < crowd.fit.plan.batch
    if not crowd.fit.apart and not smallest:
        return [list(range(crowd.members))]
    return [[i for i, n in enumerate(sizes) if n == size] for size in sorted(set(sizes))]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _lowering(crowd: Crowd, asked: str) -> str:
    if asked not in ("auto", "together", "in turn"):
        raise InputError(
            f"lowering is {asked!r}", "auto, together or in turn", 'Pass lowering="auto"'
        )
    if asked != "auto":
        return asked
    return "in turn" if jax.default_backend() == "cpu" else "together"


def _parts(crowd: Crowd, group: list[int], lowering: str) -> list[list[int]]:
    """One part for each core, as equal as can be: they share a program where they are equal."""
    if _lowering(crowd, lowering) == "together":
        return [group]
    cores = min(_cores(), len(group))
    return [group[i::cores] for i in range(cores)]


@lru_cache(maxsize=128)
def _starting(structure: Structure) -> Callable[..., State]:
    return jax.jit(jax.vmap(lambda *args: start(structure, *args)))


@lru_cache(maxsize=128)
def _program(structure: Structure, *, together: bool) -> Callable[..., tuple[State, Measured]]:
    """The compiled epoch of a part."""

    def all_of_them(
        state: State, table: Table, validation: Any, span: Span, numbers: Any, held: Any
    ) -> tuple[State, Measured]:
        def one(own: tuple[Any, ...]) -> tuple[State, Measured]:
            state, rows, count, tail, numbers, held = own
            judged = validation if held is None else _taken(table, held)
            piece = Span(rows, count, tail, span.last)
            return epoch(structure, state, table, piece, numbers, judged)

        own = (state, span.rows, span.count, span.tail, numbers, held)
        return jax.vmap(one)(own) if together else jax.lax.map(one, own)

    return jax.jit(all_of_them, donate_argnums=0)


def _taken(table: Table, held: Any) -> Table:
    """The samples that a member is judged on; those that fill up its row weigh nothing."""
    there = held >= 0
    X, y, weight = jax.tree.map(lambda a: a[jnp.maximum(held, 0)], table)
    return Table(X, y, there * (1.0 if weight is None else weight))


def _run(crowd: Crowd, part: list[int], *, together: bool) -> tuple[Any, np.ndarray, list[Any]]:
    """Run one part to its end: stacked arrays of its models, statuses, records."""
    fit, structure = crowd.fit, crowd.fit.structure
    places = np.asarray(part)

    def own(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: np.asarray(leaf)[places], tree)

    numbers = own(crowd.numbers)
    parameters, statistics = own(tuple(crowd.parts[:2]))
    with FIRST:
        state = _starting(structure)(parameters, statistics, numbers, crowd.words[places])
    program = _program(structure, together=together)
    held = None if crowd.held is None else crowd.held[places]
    records: list[Measured] = []
    for number in range(fit.recipe.epochs):
        measured = None
        for span in _spans(crowd, part, number):
            with nullcontext() if number else FIRST:
                state, measured = program(state, *crowd.device, span, numbers, held)
        # The verdicts are read one epoch late, so that the device never waits for the host.
        if records and np.all(np.asarray(records[-1].status)):
            break
        if measured is not None:
            records.append(measured)
    statuses = np.asarray(state.verdict.status)
    statuses = np.where(statuses == Status.RUNNING, int(Status.EPOCHS), statuses)
    return _kept(structure, state, restores=fit.recipe.restores), statuses, records


def _spans(crowd: Crowd, part: list[int], number: int) -> list[Span]:
    """The minibatches of all members in pieces, padded to the longest."""
    fit = crowd.fit
    orders: dict[Any, np.ndarray] = {}
    most = max(crowd.plans[member].steps for member in part)
    listed = []
    for member in part:
        count, words = len(crowd.places[member]), crowd.words[member]
        known = (count, words.tobytes())
        if known not in orders:
            orders[known] = order(words, number, count, shuffle=fit.recipe.shuffle)
        places = crowd.places[member][orders[known]]
        listed.append(spans(crowd.plans[member], places, most=most))
    return [_side_by_side(pieces) for pieces in zip(*listed, strict=True)]


def _side_by_side(pieces: Sequence[Span]) -> Span:
    rows, count, tail = (
        None if pieces[0][i] is None else np.stack([piece[i] for piece in pieces]) for i in range(3)
    )
    return Span(rows, count, tail, pieces[0].last)


def _kept(structure: Structure, state: State, *, restores: bool) -> Any:
    """Parameters and statistics to return, on the host."""
    kept = jax.vmap(lambda state: evaluated(structure, state))(state)
    if not restores or state.best is None:
        return jax.tree.map(np.asarray, kept)
    found = np.asarray(state.verdict.epoch) >= 0

    def choose(best: Any, last: Any) -> np.ndarray:
        return np.where(found.reshape(-1, *[1] * (best.ndim - 1)), best, last)

    return jax.tree.map(choose, state.best, kept)


def _gathered(crowd: Crowd, parts: list[list[int]], done: list[Any]) -> Solution:
    """The parts in the order of the members."""
    back = np.argsort(np.concatenate(parts))
    parameters, statistics = jax.tree.map(
        lambda *leaves: jnp.asarray(np.concatenate(leaves)[back]), *[part[0] for part in done]
    )
    statuses = np.concatenate([part[1] for part in done])[back].astype(np.int32)
    epochs = max(map(_lasted, done))
    columns = [_columns(part[2], len(own), epochs) for part, own in zip(done, parts, strict=True)]
    joined = [np.concatenate(column, axis=1)[:, back] for column in zip(*columns, strict=True)]
    named = dict(zip(Measured._fields, joined, strict=True))
    del named["status"]
    number = np.arange(epochs)
    history = History(epoch=number, seconds=np.full(epochs, np.nan), **named)
    model = join(parameters, statistics, crowd.parts.static)
    return Solution(model, statuses, {"history": history})


def _lasted(done: Any) -> int:
    """Epochs until the last member of a part ended."""
    ended = [bool(np.all(np.asarray(record.status))) for record in done[2]]
    return ended.index(True) + 1 if True in ended else len(ended)


def _columns(records: list[Measured], members: int, epochs: int) -> list[np.ndarray]:
    """Each measured quantity as (epochs, members), NaN after a member's last epoch."""
    statuses = np.stack([np.asarray(record.status) for record in records])
    gone = np.vstack([np.zeros((1, members), bool), statuses[:-1] != Status.RUNNING])
    found = []
    for name, column in zip(Measured._fields, zip(*records, strict=True), strict=True):
        measured = np.stack([np.asarray(value) for value in column])
        if name != "step":
            measured = np.where(gone, np.nan, measured)
        fill = np.repeat(measured[-1:], max(0, epochs - len(measured)), axis=0)
        found.append(np.vstack([measured, fill if name == "step" else fill * np.nan])[:epochs])
    return found
