"""How to train: one frozen record of everything but the model, the loss and the data."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.training import optimizers, schedules
from wonderland.training.stopping import Stopping

__all__ = ["Recipe", "recipe_of"]

PRECISIONS = ("float32", "bfloat16")
AVERAGES = ("ema", "swa")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The recipe of a training run; every field has a default that is a fair choice.

    Attributes:
        epochs: Passes over the data.
        batch_size: Samples of a minibatch; None for 128, or all where there are fewer.
        optimizer: A name ("adam", "momentum", "lion", …), any of optax's, or an optax object.
        options: Its other settings, such as {"b1": 0.95}.
        learning_rate: η_0; None for the optimiser's own.
        schedule: A name ("cosine", …), an object, or a function step → learning rate.
        weight_decay: λ of w ← w − ηλw, on matrices only; None for the optimiser's own.
        l2: λ of ½λ‖w‖² added to the loss of a batch, on matrices only.
        clip: The longest gradient (ℓ₂ norm of all of it); a longer one is shortened.
        average: None, "ema" or "swa": exponential or uniform mean of the weights.
        average_decay: Decay of "ema"; the fraction of the run after which "swa" starts.
        precision: "float32", or "bfloat16" for the model's arithmetic with float32 weights.
        accumulate: Minibatches whose gradients are added before each update.
        memory: Budget of the reverse pass, as in `autodiff.checkpoint`; None keeps everything.
        stopping: When to end before the last epoch.
        restore: Whether the weights with the best validation score are returned; None says yes
            where `stopping.patience` is set.
        score: None (minus the validation loss), "accuracy", or a function
            (predictions, targets, weights) → number, higher is better.
        shuffle: Whether each epoch has an order of its own.
        resident: The most bytes of data that are kept on the device; larger tables are streamed.
        snapshots: A file from which a killed run resumes bit for bit; None writes none.
        snapshot_minutes: How long between two snapshots.
        callbacks: Functions of a `Record` after each epoch; one that returns True ends training.
        progress: Whether a terminal shows a line.

    >>> Recipe(optimizer="momentum", learning_rate=0.1, schedule="cosine").epochs
    20
    """

    epochs: int = 20
    batch_size: int | None = None
    optimizer: Any = "adam"
    options: Mapping[str, Any] = field(default_factory=dict)
    learning_rate: Any = None
    schedule: Any = "constant"
    weight_decay: Any = None
    l2: Any = 0.0
    clip: Any = None
    average: str | None = None
    average_decay: Any = None
    precision: str = "float32"
    accumulate: int = 1
    memory: str | float | None = None
    stopping: Stopping = field(default_factory=Stopping)
    restore: bool | None = None
    score: str | Callable[..., Any] | None = None
    shuffle: bool = True
    resident: float = 2**31
    snapshots: str | os.PathLike[str] | None = None
    snapshot_minutes: float = 10.0
    callbacks: tuple[Callable[[Any], Any], ...] = ()
    progress: bool = True

    def __post_init__(self) -> None:
        _whole("epochs", self.epochs)
        _whole("accumulate", self.accumulate)
        if self.batch_size is not None:
            _whole("batch_size", self.batch_size)
        _one_of("precision", self.precision, PRECISIONS)
        if self.average is not None:
            _one_of("average", self.average, AVERAGES)
        for name in ("learning_rate", "weight_decay", "l2", "clip"):
            _not_negative(name, getattr(self, name))
        if not isinstance(self.stopping, Stopping):
            raise InputTypeError(
                f"stopping is {self.stopping!r}", "a Stopping", "Pass Stopping(patience=10)"
            )
        optimizers.resolve(self.optimizer, self.options)
        schedules.resolve(self.schedule)

    @property
    def restores(self) -> bool:
        """Whether the best weights are what is returned."""
        return self.stopping.patience is not None if self.restore is None else self.restore


def recipe_of(recipe: Recipe | None, fields: Mapping[str, Any]) -> Recipe:
    """The recipe with these fields instead of its own.

    >>> recipe_of(None, {"epoch": 3})
    Traceback (most recent call last):
    ...
    wonderland.core.errors.InputTypeError: the recipe has no field 'epoch'. ...
    """
    known = Recipe.__dataclass_fields__
    for name in fields:
        if name not in known:
            raise InputTypeError(
                f"the recipe has no field {name!r}", "a field of Recipe", nearest(name, known)
            )
    return replace(recipe or Recipe(), **fields)


def _whole(name: str, value: Any) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} is {value!r}", "a whole number ≥ 1", f"Pass {name}=1 or more")


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(
            f"{name} is {value!r}", f"one of {', '.join(known)}", nearest(value, known)
        )


def _not_negative(name: str, value: Any) -> None:
    if value is None:
        return
    if not np.all(np.isfinite(value)) or np.any(np.asarray(value) < 0):
        raise InputError(f"{name} is {value!r}", "a finite number ≥ 0", f"Pass {name}=1e-3")
