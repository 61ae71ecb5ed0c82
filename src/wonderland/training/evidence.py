"""What is known about a finished run: curves, gap, stationarity, size, cost.

gap       R − R̂ = mean ℓ over validation − mean ℓ over training samples, at the weights returned,
          with the interval ± 1.96 √(s²_validation/v + s²_training/n)
gradient  ‖∇f‖ at the weights returned; zero at a stationary point
spectrum  the extreme eigenvalues of ∇²f by Lanczos, on request: they tell a minimum from a saddle
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.autodiff.stationary import Stationary, stationary
from wonderland.core.evidence import Claim, Evidence
from wonderland.training.epoch import Table
from wonderland.training.history import History
from wonderland.training.parameters import join, split
from wonderland.training.step import Structure, infer, losses_of

__all__ = ["Gap", "claims", "gap_and_gradient", "measured", "spectrum"]

SAMPLES = 4096  # of each kind at most: a subset tells the mean well enough
NORMAL = 1.96

MEANINGS = {
    "epochs": "passes over the data",
    "steps": "updates made",
    "loss": "mean training loss of the last epoch, while the weights moved",
    "validation_loss": "mean loss of the validation samples at the weights returned",
    "score": "score of the validation samples at the weights returned, higher is better",
    "best_epoch": "the epoch with the best validation score",
    "generalisation_gap": "validation loss minus training loss at the weights returned, interval",
    "gradient_norm": "‖∇f‖ at the weights returned, zero at a stationary point",
    "parameters": "trained numbers of the model",
    "flops_per_step": "FLOPs of the compiled epoch's body, one update, by XLA's own count",
    "memory": "bytes the compiled epoch takes beside the data: weights, states and temporaries",
    "seconds": "seconds of training",
    "samples_per_second": "training samples a second, compilation included",
}


class Gap(NamedTuple):
    """Validation loss minus training loss, with its 95 % interval."""

    value: float
    low: float
    high: float


def some(table: Table, seed: int = 0) -> Table:
    """At most SAMPLES samples, drawn evenly."""
    count = jax.tree.leaves(table.X)[0].shape[0]
    if count <= SAMPLES:
        return table
    places = np.sort(np.random.default_rng(seed).choice(count, SAMPLES, replace=False))
    return jax.tree.map(lambda a: np.asarray(a[places]), table)


@lru_cache(maxsize=64)
def _looked_at(structure: Structure) -> Callable[..., Any]:
    """Compiled: mean, variance and count of the losses of both tables, and the gradient norm."""

    def moments(losses: jax.Array, weight: Any) -> tuple[Any, Any, Any]:
        weight = jnp.ones_like(losses) if weight is None else weight
        mass = weight.sum()
        mean = (weight * losses).sum() / mass
        spread = (weight * (losses - mean) ** 2).sum() / mass
        return mean, spread, mass**2 / (weight**2).sum()

    def risk(parameters: Any, statistics: Any, table: Table, loss: Any) -> Any:
        prediction = infer(structure, parameters, statistics, table.X)
        found = moments(losses_of(structure, loss, prediction, table.y), table.weight)
        return found[0], found

    @jax.jit
    def look(parameters: Any, statistics: Any, train: Table, held: Any, loss: Any) -> Any:
        gradient, found = jax.grad(risk, has_aux=True)(parameters, statistics, train, loss)
        squares = sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(gradient))
        other = None if held is None else risk(parameters, statistics, held, loss)[1]
        return jnp.sqrt(jnp.asarray(squares)), found, other

    return look


def gap_and_gradient(
    structure: Structure, model: tuple[Any, Any], table: Table, held: Table | None, loss: Any
) -> tuple[float, Gap | None]:
    """‖∇f‖ and the generalisation gap, on at most SAMPLES samples each."""
    held = None if held is None else some(held)
    norm, train, other = jax.device_get(_looked_at(structure)(*model, some(table), held, loss))
    if other is None:
        return float(norm), None
    apart = float(other[0] - train[0])
    half = NORMAL * float(np.sqrt(train[1] / train[2] + other[1] / other[2]))
    return float(norm), Gap(apart, apart - half, apart + half)


def measured(run: Any, model: tuple[Any, Any]) -> dict[str, Any]:
    """Everything that is known at the end of a run, by the names of MEANINGS."""
    fit, seconds = run.fit, run.seconds
    history = History.of(run.records)
    found: dict[str, Any] = {"history": history, "epochs": len(history), "steps": run.made}
    if len(history):
        found["loss"] = history.loss[-1]
    best = int(np.asarray(run.state.verdict.epoch))
    if fit.validation is not None and best >= 0:
        found["best_epoch"] = best
        shown = best if fit.recipe.restores else len(history) - 1
        found["validation_loss"] = float(history.validation_loss[shown])
        found["score"] = float(history.score[shown])
    found["parameters"] = sum(leaf.size for leaf in jax.tree.leaves(fit.parts.parameters))
    found |= _cost(run.program)
    found["seconds"] = seconds
    found["samples_per_second"] = len(history) * fit.samples / max(seconds, 1e-9)
    if fit.structure.game is not None:
        return found
    norm, gap = gap_and_gradient(
        fit.structure, model, fit.table, fit.validation, fit.numbers["loss"]
    )
    found["gradient_norm"] = norm
    if gap is not None:
        found["generalisation_gap"] = gap
    return found


def _cost(program: Any) -> dict[str, Any]:
    """What XLA says of the compiled epoch: a loop is counted as one turn of it."""
    if program is None:
        return {}
    found: dict[str, Any] = {}
    analysis, memory = program.cost_analysis(), program.memory_analysis()
    if analysis:
        found["flops_per_step"] = float(analysis.get("flops", np.nan))
    if memory is not None:
        found["memory"] = int(memory.output_size_in_bytes + memory.temp_size_in_bytes)
    return found


def spectrum(model: Any, loss: Any, data: Any, *, samples: int = SAMPLES) -> Stationary:
    """Minimum, saddle or neither: the extreme eigenvalues of the Hessian of the training loss.

    Args:
        model: A trained module.
        loss: As for `train`.
        data: (X, y) or (X, y, sample_weight).
        samples: How many of them are used, from the first on.

    >>> import equinox as eqx
    >>> model = eqx.nn.Linear(1, 1, use_bias=False, key=jax.random.key(0))
    >>> model = eqx.tree_at(lambda m: m.weight, model, jnp.full((1, 1), 2.0))
    >>> X = np.ones((4, 1))
    >>> spectrum(model, "squared", (X, 2 * X)).kind
    'minimum'
    """
    from wonderland.training import check
    from wonderland.training.prepare import loss_of

    parts = split(model)
    loss = loss_of(loss)
    table = jax.tree.map(lambda a: a[:samples], check.table(data, np.float32))

    def f(parameters: Any) -> jax.Array:
        whole = join(parameters, parts.statistics, parts.static)
        if not callable(getattr(whole, "training", None)):
            whole = eqx.nn.inference_mode(whole)
        prediction = jax.vmap(whole)(table.X)
        values = jax.vmap(getattr(loss, "value", loss))(prediction, table.y)
        values = values.reshape(len(values), -1).mean(axis=1)
        weight = jnp.ones_like(values) if table.weight is None else table.weight
        return (values * weight).sum() / weight.sum()

    return stationary(f, parts.parameters)


def claims(measured: dict[str, Any]) -> Evidence:
    """The measured values of a run as claims with their meanings."""
    found = []
    for name, meaning in MEANINGS.items():
        if name in measured:
            found.append(_claim(name, measured[name], meaning))
    return Evidence(found)


def _claim(name: str, value: Any, meaning: str) -> Claim:
    if isinstance(value, Gap):
        # No gap at all is possible as long as the interval holds zero.
        return Claim(name, value, 0.0, value.low <= 0.0, meaning)
    return Claim.fact(name, value, meaning)
