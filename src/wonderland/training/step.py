"""One update: the loss of a minibatch, its gradient, and what the optimiser makes of it.

    f(w) = Σ_i ω_i ℓ(m_w(x_i), y_i) / Σ_i ω_i + ½λ Σ_matrices ‖W‖²       over the minibatch
    g    = ∇f(w), shortened to the clipping length
    w    ← w + u(g; η_t) − η_t λ' W                                      u by the optimiser

Samples that fill up the last minibatch have weight zero. Models whose samples see one another
(batch norm) get no such samples: their last minibatch is a smaller one.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from wonderland.losses.likelihood import CrossEntropy
from wonderland.losses.loss import Loss
from wonderland.training.optimizers import Optimizer
from wonderland.training.parameters import Frozen, join

__all__ = [
    "AXIS",
    "Batch",
    "Structure",
    "Update",
    "infer",
    "losses_of",
    "rate",
    "stepped",
    "train_samples",
]

AXIS = "batch"


@dataclass(frozen=True)
class Structure:
    """What a compiled program depends on beside shapes: two fits with the same share it."""

    static: Frozen
    decays: tuple[bool, ...]
    loss: Any  # a function; None where the loss is a module, which crosses as an argument
    optimizer: Optimizer
    key: str  # the kind of random numbers
    clips: bool = False
    average: str | None = None
    precision: str = "float32"
    accumulate: int = 1
    memory: str | float | None = None
    score: Any = None
    weighted: bool = False
    full: bool = True  # no minibatch holds samples that only fill it up
    best: bool = False
    watches: frozenset[str] = frozenset()
    game: Any = None  # several models in turn


class Batch(NamedTuple):
    """Samples with their weights; rows that only fill it up weigh nothing."""

    X: Any
    y: Any
    weight: Any


class Update(NamedTuple):
    """What one step gives."""

    parameters: Any
    statistics: Any
    optimizer: Any
    loss: jax.Array  # Σ ωℓ, and
    mass: jax.Array  # Σ ω
    gradient: Any


def losses_of(structure: Structure, loss: Any, prediction: Any, target: Any) -> jax.Array:
    """ℓ of each sample (b,): a loss of several outputs is their mean."""
    if isinstance(loss, CrossEntropy) and jnp.shape(target) == prediction.shape[:-1]:
        return _cross_entropy(prediction, target)
    if isinstance(loss, Loss):
        value = jax.vmap(loss.value)(prediction, target)
    else:
        value = jax.vmap(structure.loss if loss is None else loss)(prediction, target)
    value = jnp.asarray(value, jnp.promote_types(value.dtype, jnp.float32))
    return value.reshape(value.shape[0], -1).mean(axis=1) if value.ndim > 1 else value


def _cross_entropy(z: jax.Array, y: jax.Array) -> jax.Array:
    """logsumexp z − z_y, (b, …, k) → (b,): fewer passes than the loss that keeps every digit."""
    top = jax.lax.stop_gradient(z.max(axis=-1, keepdims=True))
    chosen = jax.lax.broadcasted_iota(y.dtype, z.shape, z.ndim - 1) == jnp.expand_dims(y, -1)
    own = jnp.sum(jnp.where(chosen, z - top, 0.0), axis=-1)
    value = jnp.log(jnp.sum(jnp.exp(z - top), axis=-1)) - own
    return value.reshape(len(value), -1).mean(axis=1)


def infer(structure: Structure, parameters: Any, statistics: Any, X: Any) -> Any:
    """Predictions of a batch as at inference."""
    model = _cast(structure, join(parameters, statistics, structure.static))
    if not callable(getattr(model, "training", None)):
        model = eqx.nn.inference_mode(model)
    return _single(jax.vmap(model)(_cast(structure, X)))


def train_samples(
    structure: Structure,
    parameters: Any,
    statistics: Any,
    X: Any,
    key: jax.Array,
    *,
    axis: str | None = AXIS,
) -> tuple[Any, Any]:
    """Predictions of a batch as in training, and the statistics renewed by it."""
    model = join(_cast(structure, parameters), statistics, structure.static)
    keys = jax.random.split(key, jax.tree.leaves(X)[0].shape[0])
    X = _cast(structure, X)
    training = getattr(model, "training", None)
    if not callable(training):
        return _single(jax.vmap(_plain(model), axis_name=axis)(X, keys)), statistics

    def one(x: Any, key: jax.Array) -> tuple[Any, Any]:
        prediction, renewed = training(x, key=key)
        kept = jax.tree.map(eqx.is_array, statistics, is_leaf=lambda node: node is None)
        return prediction, eqx.filter(renewed, kept)

    out = (0, jax.tree.map(lambda _: None, statistics))
    prediction, renewed = jax.vmap(one, out_axes=out, axis_name=axis)(X, keys)
    # Statistics keep their precision whatever the arithmetic of the model was.
    renewed = jax.tree.map(lambda new, old: new.astype(old.dtype), renewed, statistics)
    return _single(prediction), renewed


def _plain(model: Any) -> Callable[..., Any]:
    """Anybody's module: it gets a key where its signature has room for one."""
    try:
        takes = "key" in inspect.signature(type(model).__call__).parameters
    except (TypeError, ValueError):
        takes = False
    return (lambda x, key: model(x, key=key)) if takes else (lambda x, key: model(x))


def _cast(structure: Structure, tree: Any) -> Any:
    if structure.precision == "float32":
        return tree
    lower = jnp.dtype(structure.precision)
    return jax.tree.map(lambda x: x.astype(lower) if eqx.is_inexact_array(x) else x, tree)


def _single(prediction: Any) -> Any:
    """Half precision ends where the loss begins."""
    return jax.tree.map(
        lambda z: (
            z.astype(jnp.promote_types(z.dtype, jnp.float32)) if eqx.is_inexact_array(z) else z
        ),
        prediction,
    )


def rate(numbers: dict[str, Any], step: Any) -> jax.Array:
    """η_t."""
    return numbers["schedule"].rate(numbers["learning_rate"], step, numbers["total"])


def update(
    structure: Structure,
    numbers: dict[str, Any],
    state: Any,
    batches: Batch,
    key: jax.Array,
) -> Update:
    """One update from `accumulate` minibatches, stacked along the first axis of `batches`."""
    if structure.game is not None:
        return structure.game.update(structure, numbers, state, batches, key)
    (loss, mass, statistics), gradient = _gradient(structure, numbers, state, batches, key)
    if structure.optimizer.searches:
        gradient = _with_decay(structure.decays, gradient, state.parameters, numbers["l2"])
        extra = _search(structure, numbers, state, batches, key, (loss / mass, gradient))
        own = numbers | {"l2": jnp.zeros_like(numbers["l2"])}
    else:
        extra, own = {}, numbers
    own = own | {"rate": rate(numbers, state.step)}
    here = (gradient, state.optimizer, state.parameters)
    moved, memory = stepped(structure, structure, own, here, **extra)
    return Update(moved, statistics, memory, loss, mass, gradient)


def stepped(
    structure: Structure, part: Any, own: dict[str, Any], here: tuple[Any, Any, Any], **extra: Any
) -> tuple[Any, Any]:
    """New parameters and memory of the optimiser of `part`, from (gradient, memory, parameters)."""
    gradient, memory, parameters = here
    if structure.clips:
        gradient = _clipped(gradient, own["clip"])
    gradient = _with_decay(part.decays, gradient, parameters, own["l2"])
    optimizer = part.optimizer.transformation(own["rate"], own["options"])
    change, memory = optimizer.update(gradient, memory, parameters, **extra)
    change = _with_decay(part.decays, change, parameters, -own["rate"] * own["weight_decay"])
    return jax.tree.map(lambda w, u: w + u.astype(w.dtype), parameters, change), memory


def _gradient(
    structure: Structure, numbers: dict[str, Any], state: Any, batches: Batch, key: jax.Array
) -> tuple[tuple[jax.Array, jax.Array, Any], Any]:
    """Σωℓ, Σω and the statistics; ∇ Σωℓ/Σω."""
    if structure.accumulate == 1:
        batch = jax.tree.map(lambda x: x[0], batches)
        value, gradient = _one_gradient(structure, numbers, state, batch, key)
        loss, mass, statistics = value
    else:
        (loss, mass, statistics), gradient = _accumulated(structure, numbers, state, batches, key)
    safe = jnp.where(mass > 0, mass, 1.0)
    return (loss, mass, statistics), jax.tree.map(lambda g: g / safe.astype(g.dtype), gradient)


def _one_gradient(
    structure: Structure, numbers: dict[str, Any], state: Any, batch: Batch, key: jax.Array
) -> tuple[tuple[jax.Array, jax.Array, Any], Any]:
    def total(parameters: Any) -> tuple[jax.Array, Any]:
        prediction, statistics = train_samples(
            structure, parameters, state.statistics, batch.X, key
        )
        losses = losses_of(structure, numbers["loss"], prediction, batch.y)
        weighed = losses if batch.weight is None else losses * batch.weight
        return weighed.sum(), statistics

    if structure.memory is not None:
        from wonderland.autodiff.checkpoint import checkpoint

        total = checkpoint(total, structure.memory)
    (loss, statistics), gradient = jax.value_and_grad(total, has_aux=True)(state.parameters)
    size = jax.tree.leaves(batch.X)[0].shape[0]
    mass = jnp.asarray(size, loss.dtype) if batch.weight is None else batch.weight.sum()
    return (loss, mass, statistics), gradient


def _accumulated(
    structure: Structure, numbers: dict[str, Any], state: Any, batches: Batch, key: jax.Array
) -> tuple[tuple[jax.Array, jax.Array, Any], Any]:
    def add(carried: Any, given: Any) -> tuple[Any, None]:
        (loss, mass, statistics), gradient = carried
        place, batch = given
        here = state._replace(statistics=statistics)
        value, more = _one_gradient(structure, numbers, here, batch, jax.random.fold_in(key, place))
        summed = (loss + value[0], mass + value[1], value[2])
        return (summed, jax.tree.map(jnp.add, gradient, more)), None

    zeros = jax.tree.map(jnp.zeros_like, state.parameters)
    zero = jnp.zeros((), jnp.promote_types(jnp.float32, jax.tree.leaves(zeros)[0].dtype))
    start = ((zero, zero, state.statistics), zeros)
    count = jax.tree.leaves(batches.X)[0].shape[0]
    return jax.lax.scan(add, start, (jnp.arange(count), batches))[0]


def _clipped(gradient: Any, longest: Any) -> Any:
    length = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(gradient)))
    factor = jnp.where(length > longest, longest / length, 1.0)
    return jax.tree.map(lambda g: g * factor.astype(g.dtype), gradient)


def _with_decay(decays: tuple[bool, ...], tree: Any, parameters: Any, factor: Any) -> Any:
    """tree + factor · W, for matrices W."""
    leaves, shape = jax.tree.flatten(tree)
    weights = jax.tree.leaves(parameters)
    decayed = [
        leaf + jnp.asarray(factor, leaf.dtype) * w if flag else leaf
        for leaf, w, flag in zip(leaves, weights, decays, strict=True)
    ]
    return jax.tree.unflatten(shape, decayed)


def _search(
    structure: Structure,
    numbers: dict[str, Any],
    state: Any,
    batches: Batch,
    key: jax.Array,
    found: tuple[jax.Array, Any],
) -> dict[str, Any]:
    """What a line search asks for: f, and its value and gradient here."""

    def penalised(parameters: Any, value: jax.Array) -> jax.Array:
        weights = zip(jax.tree.leaves(parameters), structure.decays, strict=True)
        squares = [jnp.sum(jnp.square(w)) for w, flag in weights if flag]
        return value + 0.5 * numbers["l2"] * sum(squares, jnp.zeros((), value.dtype))

    def f(parameters: Any) -> jax.Array:
        there = state._replace(parameters=parameters)
        batch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batches)
        prediction, _ = train_samples(structure, parameters, there.statistics, batch.X, key)
        losses = losses_of(structure, numbers["loss"], prediction, batch.y)
        if batch.weight is None:
            return penalised(parameters, losses.mean())
        mass = batch.weight.sum()
        return penalised(parameters, (losses * batch.weight).sum() / jnp.where(mass > 0, mass, 1.0))

    return {"value": penalised(state.parameters, found[0]), "grad": found[1], "value_fn": f}
