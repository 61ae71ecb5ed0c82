"""When training ends: one vocabulary for every rule.

    patience             epochs in which the validation score did not rise by `tol`
    training_patience    epochs in which the training loss did not fall by `training_tol`
    gradient_norm        ‖mean gradient of an epoch‖ ≤ this
    step_tol             ‖w_{t+1} − w_t‖² < this, from one epoch to the next
    seconds, steps       limits of time and of updates, beside the epochs of the recipe

With one batch an epoch, w_t are the iterates of gradient descent and the mean gradient is ∇f. The
verdict is part of the compiled epoch, so that among many fits each ends by itself.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.errors import InputError
from wonderland.core.status import Status

__all__ = ["Stopping", "Verdict", "judge", "unjudged"]

NEVER = np.float32(np.inf)


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """The rules; None is a rule that never ends anything.

    Attributes:
        patience: Epochs without a better validation score; the best weights are then restored.
        tol: By how much a score must rise to be better.
        training_patience: Epochs without a better training loss.
        training_tol: By how much the loss must fall to be better.
        gradient_norm: End when the mean gradient of an epoch is this short.
        step_tol: End when an epoch moved the parameters by less, in squared length.
        seconds: End after this time, looked at after each piece of an epoch.
        steps: End after this many updates.

    >>> Stopping(patience=5, seconds=60.0).patience
    5
    """

    patience: int | None = None
    tol: float = 0.0
    training_patience: int | None = None
    training_tol: float = 0.0
    gradient_norm: float | None = None
    step_tol: float | None = None
    seconds: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not (isinstance(value, Real) and float(value) >= 0):
                raise InputError(
                    f"{name} is {value!r}", "a number ≥ 0, or None", f"Pass Stopping({name}=None)"
                )

    def numbers(self) -> dict[str, np.float32]:
        """The rules as arrays; a rule that is not asked for is one that cannot be met."""
        return {
            "patience": np.float32(NEVER if self.patience is None else self.patience),
            "tol": np.float32(self.tol),
            "training_patience": np.float32(
                NEVER if self.training_patience is None else self.training_patience
            ),
            "training_tol": np.float32(self.training_tol),
            "gradient_norm": np.float32(-1 if self.gradient_norm is None else self.gradient_norm),
            "step_tol": np.float32(-1 if self.step_tol is None else self.step_tol),
        }


class Verdict(NamedTuple):
    """How a fit stands; numbers of one fit, or arrays of many."""

    status: Any
    score: Any  # the best so far, and
    epoch: Any  # when it was
    loss: Any  # the least training loss so far
    waited: Any  # epochs since the score rose
    stalled: Any  # epochs since the loss fell


def unjudged() -> Verdict:
    """Before the first epoch."""
    zero = jnp.zeros((), jnp.int32)
    return Verdict(zero, jnp.asarray(-jnp.inf), zero - 1, jnp.asarray(jnp.inf), zero, zero)


def judge(verdict: Verdict, measured: dict[str, Any], rules: dict[str, Any]) -> Verdict:
    """The verdict after one more epoch.

    Args:
        verdict: That of the epoch before.
        measured: Of this epoch: score, loss, gradient_norm, moved, epoch, bad.
        rules: `Stopping.numbers()`.
    """
    tol = jnp.where(verdict.epoch < 0, 0.0, rules["tol"])
    better = measured["score"] > verdict.score + tol
    falls = measured["loss"] < verdict.loss - jnp.where(
        jnp.isinf(verdict.loss), 0.0, rules["training_tol"]
    )
    waited = jnp.where(better, 0, verdict.waited + 1)
    stalled = jnp.where(falls, 0, verdict.stalled + 1)
    status = _first(
        (measured["bad"], Status.DIVERGED),
        (measured["gradient_norm"] <= rules["gradient_norm"], Status.CONVERGED),
        (measured["moved"] < rules["step_tol"], Status.STALLED),
        (waited >= rules["patience"], Status.VALIDATION_STALL),
        (stalled >= rules["training_patience"], Status.TRAINING_STALL),
    )
    return Verdict(
        status=status,
        score=jnp.where(better, measured["score"], verdict.score),
        epoch=jnp.where(better, measured["epoch"], verdict.epoch),
        loss=jnp.where(falls, measured["loss"], verdict.loss),
        waited=waited,
        stalled=stalled,
    )


def _first(*rules: tuple[jax.Array, Status]) -> jax.Array:
    """The status of the first rule that is met."""
    status = jnp.asarray(Status.RUNNING, jnp.int32)
    for met, name in reversed(rules):
        status = jnp.where(met, jnp.asarray(name, jnp.int32), status)
    return status
