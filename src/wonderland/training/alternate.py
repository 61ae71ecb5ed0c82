"""Several models in turn, each down its own loss: adversaries, actors and critics, students.

In every round each role makes `steps` updates of its own model, one minibatch each, while the other
models stand still:

    w_r ← w_r + u_r(∇_{w_r} f_r(w_1, …, w_R; minibatch); η_r)        r = 1 … R

It is the same compiled loop as everywhere: epochs, schedules, averages, snapshots, a loss that is
not finite, and callbacks that see the loss of each role.

Reference: Goodfellow et al., Generative adversarial nets, NeurIPS 2014.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp

from wonderland.core.cache import enable_compile_cache
from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.core.solution import Solution
from wonderland.training import check, optimizers
from wonderland.training.batches import key_words, plan, room_for
from wonderland.training.parameters import decays, join, split
from wonderland.training.prepare import Fit, numbers_of, parameter_type
from wonderland.training.recipe import Recipe, recipe_of
from wonderland.training.run import Run
from wonderland.training.sources import Resident
from wonderland.training.step import Batch, Structure, Update, rate, stepped

__all__ = ["Role", "alternate"]


@dataclass(frozen=True, kw_only=True)
class Role:
    """Who learns what.

    Attributes:
        name: Of the model that is updated.
        loss: (models, X, y, key) → number, of a minibatch X (b, …), y (b, …) and all models by
            name; or → (number, models) where statistics were renewed.
        steps: Updates in a round.
        optimizer: A name, or an optax object.
        options: Its other settings.
        learning_rate: None for the optimiser's own.
        weight_decay: On matrices; None for the optimiser's own.
    """

    name: str
    loss: Callable[..., Any]
    steps: int = 1
    optimizer: Any = "adam"
    options: Mapping[str, Any] = field(default_factory=dict)
    learning_rate: Any = None
    weight_decay: Any = None


def alternate(
    models: Mapping[str, Any],
    roles: Sequence[Role],
    data: Any,
    *,
    recipe: Recipe | None = None,
    key: Any = 0,
    **fields: Any,
) -> Solution:
    """Train several models in turn.

    Args:
        models: Name → module.
        roles: In the order of their turns.
        data: (X, y), (X, y, sample_weight) as for `train`, or X alone: the losses then get y = X.
        recipe: As for `train`; optimiser, learning rate and decay are the roles'.
        key: A JAX random key, or a seed.
        **fields: Fields of `Recipe`.

    Returns:
        The models by name, how training ended, and `history`, whose `loss` is (epochs, roles).

    >>> import equinox as eqx, numpy as np
    >>> two = {"a": eqx.nn.Linear(1, 1, key=jax.random.key(0)),
    ...        "b": eqx.nn.Linear(1, 1, key=jax.random.key(1))}
    >>> def apart(name, goal):
    ...     return lambda models, X, y, key: jnp.mean((jax.vmap(models[name])(X) - goal) ** 2)
    >>> roles = [Role(name="a", loss=apart("a", 1.0)), Role(name="b", loss=apart("b", -1.0))]
    >>> found = alternate(two, roles, np.ones((64, 1)), epochs=200, batch_size=32)
    >>> bool(found.evidence["history"].loss[-1].max() < found.evidence["history"].loss[0].min())
    True
    """
    enable_compile_cache()
    run = Run(_prepared(dict(models), tuple(roles), data, recipe_of(recipe, fields), key))
    run.go()
    return run.solution()


@dataclass(frozen=True)
class Part:
    """What of a role the compiled program depends on."""

    name: str
    loss: Callable[..., Any]
    steps: int
    optimizer: optimizers.Optimizer
    decays: tuple[bool, ...]


@dataclass(frozen=True)
class Game:
    """How roles play; stands where a single fit has its step."""

    parts: tuple[Part, ...]

    def init(self, parameters: Any, numbers: Any) -> Any:
        """The memory of each optimiser."""
        return {
            part.name: part.optimizer.transformation(own["learning_rate"], own["options"]).init(
                parameters[part.name]
            )
            for part, own in zip(self.parts, numbers["roles"], strict=True)
        }

    def update(
        self, structure: Structure, numbers: Any, state: Any, batches: Batch, key: jax.Array
    ) -> Update:
        """One round."""
        parameters, memory = dict(state.parameters), dict(state.optimizer)
        statistics, losses, place = state.statistics, [], 0
        for part, own in zip(self.parts, numbers["roles"], strict=True):
            total = jnp.zeros(())
            for _ in range(part.steps):
                batch = jax.tree.map(lambda x, i=place: x[i], batches)
                here = (parameters, statistics, memory[part.name])
                chance = jax.random.fold_in(key, place)
                eta = rate(numbers | {"learning_rate": own["learning_rate"]}, state.step)
                made = _turn(structure, part, own | {"rate": eta}, here, batch, chance)
                parameters[part.name], statistics, memory[part.name], loss = made
                total, place = total + loss, place + 1
            losses.append(total / part.steps)
        stacked = jnp.stack(losses)
        return Update(parameters, statistics, memory, stacked, jnp.ones(()), None)


def _turn(
    structure: Structure, part: Part, own: Any, here: tuple[Any, Any, Any], batch: Batch, key: Any
) -> tuple[Any, Any, Any, jax.Array]:
    """One update of one role: its parameters, the statistics, its optimiser's memory, its loss."""
    parameters, statistics, memory = here

    def value(mine: Any) -> tuple[jax.Array, Any]:
        everyone = join(parameters | {part.name: mine}, statistics, structure.static)
        found = part.loss(everyone, batch.X, batch.y, key)
        if isinstance(found, tuple):
            return jnp.mean(found[0]), split(found[1]).statistics
        return jnp.mean(found), statistics

    (loss, renewed), gradient = jax.value_and_grad(value, has_aux=True)(parameters[part.name])
    moved, memory = stepped(structure, part, own, (gradient, memory, parameters[part.name]))
    return moved, renewed, memory, loss


def _prepared(
    models: dict[str, Any], roles: tuple[Role, ...], data: Any, recipe: Recipe, key: Any
) -> Fit:
    """The game laid out as a fit: a round takes one minibatch for each turn."""
    _checked(models, roles, recipe)
    words, kind = key_words(key)
    parts = split(models)
    dtype = parameter_type(parts)
    pair = data if isinstance(data, tuple) else (data, data)
    table = check.table(pair, dtype)
    check.finite(table, "training data")
    count = check.counted(table)
    turns = sum(role.steps for role in roles)
    size = check.batch_size(recipe.batch_size, count, count, searches=False)
    made = plan(count, min(size, max(1, count // turns)), turns, apart=False)
    # A last round with fewer samples than turns is left out: a loss of a batch has no room for it.
    steps = max(1, count // (made.batch * turns))
    made = made._replace(steps=steps, samples=steps * made.batch * turns)
    resolved = [optimizers.resolve(role.optimizer, role.options) for role in roles]
    game = Game(
        tuple(
            Part(role.name, role.loss, role.steps, optimizer, decays(models[role.name]))
            for role, optimizer in zip(roles, resolved, strict=True)
        )
    )
    structure = Structure(
        static=parts.static,
        decays=(),
        loss=None,
        optimizer=resolved[0],
        key=kind,
        clips=recipe.clip is not None,
        average=recipe.average,
        accumulate=turns,
        game=game,
    )
    numbers = numbers_of(recipe, resolved[0], None, made, dtype)
    numbers["roles"] = tuple(
        {
            name: value
            for name, value in numbers_of(_recipe_of(recipe, role), own, None, made, dtype).items()
            if name in ("learning_rate", "weight_decay", "l2", "clip", "options")
        }
        for role, own in zip(roles, resolved, strict=True)
    )
    room = room_for(sum(leaf.size for leaf in jax.tree.leaves(parts.parameters)), made.batch)
    source = Resident(table, made, words, shuffle=recipe.shuffle, room=room)
    laid = (recipe, structure, parts, numbers, table, None, made, words)
    return Fit(*laid, apart=False, source=source, room=source.piece)


def _recipe_of(recipe: Recipe, role: Role) -> Recipe:
    return replace(recipe, learning_rate=role.learning_rate, weight_decay=role.weight_decay)


def _checked(models: dict[str, Any], roles: tuple[Role, ...], recipe: Recipe) -> None:
    for role in roles:
        if role.name not in models:
            raise InputError(
                f"a role has the name {role.name!r}",
                "the name of a model",
                nearest(role.name, models),
            )
        if not callable(role.loss):
            raise InputTypeError(
                f"the loss of {role.name!r} is {role.loss!r}",
                "a function (models, X, y, key) → number",
                "Write it with jax.numpy",
            )
    if not roles:
        raise InputError("there are no roles", "at least one", "Pass [Role(name=…, loss=…)]")
    if recipe.stopping.patience is not None:
        raise InputError(
            "patience is set for models that play against one another",
            "rules that need no validation score",
            "Judge the models in a callback, which ends training by returning True",
        )
