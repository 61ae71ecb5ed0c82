"""What went wrong when a loss was not finite: the step, the batch, the first layer, the rate.

The minibatch is run once more outside of the compiled loop, operation by operation. The first one
that makes something infinite out of finite numbers is named by the parameter that was read last
before it: layers read their own parameters. Then the run is begun again with smaller and smaller
learning rates, in the same compiled program, until one survives twice as many updates.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from wonderland.autodiff.probe import bind
from wonderland.core.errors import InputError
from wonderland.training.parameters import names
from wonderland.training.step import Structure, losses_of, train_samples

__all__ = ["DivergedError", "Failure", "layer_of", "stable_rate"]

TRIALS = 12  # learning rates tried, each a quarter of the one before
FEWEST, MOST = 20, 500  # updates of a trial


class DivergedError(InputError):
    """Training met a loss that is not finite.

    Attributes:
        solution: The model before that step, and the history up to it.
        failure: What was found out about it.
    """

    solution: Any = None
    failure: Any = None


class Failure(NamedTuple):
    """Where a loss was first not finite.

    Attributes:
        step: The update that was not made.
        epoch: Its epoch.
        rows: The samples of its minibatch, where they have numbers.
        layer: The first layer whose value is not finite, "the loss", or a sentence.
        learning_rate: η at that step.
        stable: The largest learning rate tried that survived, where one did.
        updates: For how many updates.
    """

    step: int
    epoch: int
    rows: Any
    layer: str
    learning_rate: float
    stable: float | None
    updates: int

    def error(self) -> DivergedError:
        """In three parts."""
        begins = "" if self.rows is None else f" of samples {_short(self.rows)}"
        came = (
            f"the loss of update {self.step} (epoch {self.epoch}, a minibatch{begins}) is not "
            f"finite; first {self.layer}"
        )
        if self.stable is None:
            todo = (
                "Scale the columns of X to unit variance, check the loss at these samples, or "
                "shorten gradients with clip=1.0"
            )
            return DivergedError(came, "a finite loss", todo)
        todo = (
            f"Lower learning_rate from {self.learning_rate:.3g}: {self.stable:.3g} is the largest "
            f"of those tried that stayed stable for {self.updates} updates; clip=1.0 or "
            'schedule="warmup" also help'
        )
        return DivergedError(came, "a finite loss", todo)


def _short(rows: np.ndarray) -> str:
    listed = ", ".join(map(str, rows[:4].tolist()))
    return listed if len(rows) <= 4 else f"{listed} … ({len(rows)})"


def layer_of(
    structure: Structure,
    parameters: Any,
    statistics: Any,
    batch: Any,
    key: Any,
    loss: Any,
) -> str:
    """The first layer whose output is not finite for this batch."""
    labels = names(parameters)
    for label, leaf in zip(labels, jax.tree.leaves(parameters), strict=True):
        if not np.isfinite(np.asarray(leaf, np.float64)).all():
            return f"the parameter {label}: the gradient of the update before was not finite"

    def forward(parameters: Any, X: Any) -> Any:
        return train_samples(structure, parameters, statistics, X, key)[0]

    closed, shape = jax.make_jaxpr(forward, return_shape=True)(parameters, batch.X)
    given = [*jax.tree.leaves(parameters), *map(jnp.asarray, jax.tree.leaves(batch.X))]
    found = _first_bad(closed, given, labels)
    if isinstance(found, str):
        return found
    prediction = jax.tree.unflatten(jax.tree.structure(shape), found)
    with np.errstate(all="ignore"):
        values = np.asarray(losses_of(structure, loss, prediction, jnp.asarray(batch.y)))
    if not np.isfinite(values).all():
        return (
            f"the loss itself, at finite outputs, for {int((~np.isfinite(values)).sum())} samples"
        )
    return "the sum of the losses of the minibatch"


def _first_bad(closed: jex.ClosedJaxpr, given: list[Any], labels: list[str]) -> str | list[Any]:
    """Run a program; the sentence for its first bad equation, or its outputs."""
    jaxpr = closed.jaxpr
    known: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *given]))  # noqa: B905
    named = dict(zip(jaxpr.invars, labels, strict=False))
    last = "the input"

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, jex.Literal) else known[atom]

    for equation in jaxpr.eqns:
        for atom in equation.invars:
            if not isinstance(atom, jex.Literal) and atom in named:
                last = named[atom]
        inputs = [read(atom) for atom in equation.invars]
        outputs = bind(equation, inputs)
        if not _finite(outputs) and _finite(inputs):
            place = last.rpartition(".")[0] or last
            return f"{place} (its {equation.primitive.name}) gave a value that is not finite"
        known.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _finite(values: list[Any]) -> bool:
    return all(
        bool(np.isfinite(np.asarray(value, np.float64)).all())
        for value in values
        if hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.inexact)
    )


def stable_rate(
    trial: Callable[[float, int], float], rate: float, step: int, usual: float
) -> tuple[float | None, int]:
    """The largest learning rate of a falling row that survives, and for how many updates.

    Args:
        trial: (learning rate, updates) → mean loss of those updates, NaN where one was not finite.
        rate: The one that failed.
        step: At which update.
        usual: The optimiser's own learning rate, tried as well where the row does not reach it.
    """
    updates = int(np.clip(2 * step, FEWEST, MOST))
    start = trial(0.0, updates)
    if not np.isfinite(start):
        return None, updates
    row = [rate / 4.0**power for power in range(1, TRIALS + 1)]
    for tried in [*row, *([usual, usual / 10.0] if usual < row[-1] else [])]:
        if trial(tried, updates) <= 2.0 * start:
            doubled = 2.0 * tried
            return (doubled if trial(doubled, updates) <= 2.0 * start else tried), updates
    return None, updates
