"""Optimisers by name: direction of an update from a gradient, by optax.

Each is built anew inside the compiled step, with its learning rate and its other numbers as arrays,
so that a new value of any of them compiles nothing. Weight decay and clipping are the loop's.

    sgd          w − ηg                  momentum       v ← μv + g,  w − ηv
    nesterov     w − η(g + μv)           adam, adamw    Kingma and Ba (2015), Loshchilov (2019)
    lion         Chen et al. (2023)      muon           Jordan et al. (2024), on matrices
    lbfgs        Liu and Nocedal (1989), with a line search; best with one batch an epoch
    schedule_free, schedule_free_sgd             Defazio et al. (2024)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import optax  # type: ignore[import-untyped]
import optax.contrib  # type: ignore[import-untyped]

from wonderland.core.errors import InputError, InputTypeError, nearest

__all__ = ["Optimizer", "evaluated", "resolve"]

Build = Callable[..., optax.GradientTransformation]


@dataclass(frozen=True)
class Optimizer:
    """An optimiser before it knows its numbers; two are equal if they make the same program.

    Attributes:
        build: (learning rate, **numbers) → optax transformation.
        learning_rate: The default.
        numbers: Defaults of its other numbers, which cross into the program as arrays.
        weight_decay: The default, decoupled from the gradient.
        elementwise: Whether each parameter is updated from its own gradient alone.
        searches: Whether it evaluates the loss itself (a line search).
        averages: Whether what is evaluated differs from what is stepped (schedule-free).
        fixed: Other settings, part of the program.
    """

    build: Build
    learning_rate: float = field(compare=False)
    numbers: Mapping[str, float] = field(default_factory=dict, compare=False)
    weight_decay: float = field(default=0.0, compare=False)
    elementwise: bool = True
    searches: bool = False
    averages: bool = False
    fixed: tuple[tuple[str, Any], ...] = ()

    def transformation(
        self, learning_rate: Any, numbers: Mapping[str, Any]
    ) -> optax.GradientTransformationExtraArgs:
        """The optax object of these numbers."""
        made = self.build(learning_rate, **numbers, **dict(self.fixed))
        return optax.with_extra_args_support(made)


def _schedule_free(learning_rate: Any, b1: Any, **numbers: Any) -> Any:
    return optax.contrib.schedule_free_adamw(learning_rate, b1=b1, weight_decay=0.0, **numbers)


def _schedule_free_sgd(learning_rate: Any, b1: Any) -> Any:
    return optax.contrib.schedule_free_sgd(learning_rate, b1=b1, weight_decay=0.0)


def _lion(learning_rate: Any, **numbers: Any) -> Any:
    return optax.lion(learning_rate, weight_decay=0.0, **numbers)


_nesterov = partial(optax.sgd, nesterov=True)
_ADAM = {"b1": 0.9, "b2": 0.999, "eps": 1e-8}

NAMES: dict[str, Optimizer] = {
    "sgd": Optimizer(optax.sgd, 1e-2),
    "momentum": Optimizer(optax.sgd, 1e-2, {"momentum": 0.9}),
    "nesterov": Optimizer(_nesterov, 1e-2, {"momentum": 0.9}),
    "adam": Optimizer(optax.adam, 1e-3, _ADAM),
    "adamw": Optimizer(optax.adam, 1e-3, _ADAM, weight_decay=1e-2),
    "amsgrad": Optimizer(optax.amsgrad, 1e-3, _ADAM),
    "nadam": Optimizer(optax.nadam, 1e-3, _ADAM),
    "radam": Optimizer(optax.radam, 1e-3, _ADAM),
    "adabelief": Optimizer(optax.adabelief, 1e-3, {"b1": 0.9, "b2": 0.999, "eps": 1e-16}),
    "rmsprop": Optimizer(optax.rmsprop, 1e-3, {"decay": 0.9, "eps": 1e-8}),
    "adagrad": Optimizer(optax.adagrad, 1e-2, {"eps": 1e-7}),
    "adadelta": Optimizer(optax.adadelta, 1.0, {"rho": 0.9, "eps": 1e-6}),
    "lion": Optimizer(_lion, 1e-4, {"b1": 0.9, "b2": 0.99}),
    "muon": Optimizer(optax.contrib.muon, 2e-2, {"beta": 0.95}, elementwise=False),
    "lbfgs": Optimizer(optax.lbfgs, 1.0, searches=True, elementwise=False),
    "schedule_free": Optimizer(_schedule_free, 2.5e-3, {"b1": 0.9, "b2": 0.999}, averages=True),
    "schedule_free_sgd": Optimizer(_schedule_free_sgd, 1.0, {"b1": 0.9}, averages=True),
}


def resolve(optimizer: Any, options: Mapping[str, Any] | None = None) -> Optimizer:
    """The optimiser of that name, any other of optax's, or an optax object as it is.

    Args:
        optimizer: A name, or an `optax.GradientTransformation`.
        options: Its other settings; floats become arrays, the rest is part of the program.

    >>> resolve("adam").learning_rate
    0.001
    >>> resolve("adm")
    Traceback (most recent call last):
    ...
    wonderland.core.errors.InputError: optimizer is 'adm'. ... Did you mean 'adam' or ...
    """
    if isinstance(optimizer, Optimizer):
        return optimizer
    if isinstance(optimizer, optax.GradientTransformation):
        return Optimizer(_Given(optimizer), 1.0, elementwise=False, searches=True)
    if not isinstance(optimizer, str):
        raise InputTypeError(
            f"optimizer is {optimizer!r}",
            "the name of an optimiser or an optax GradientTransformation",
            'Pass optimizer="adam" or optimizer=optax.adam(1e-3)',
        )
    return _with(_named(optimizer), optimizer, dict(options or {}))


def evaluated(optimizer: Optimizer, memory: Any, parameters: Any) -> Any:
    """The parameters to judge: those stepped, or the mean that a schedule-free method keeps."""
    if not optimizer.averages:
        return parameters
    return optax.contrib.schedule_free_eval_params(memory, parameters)


class _Given:
    """An optax object: its own learning rate counts, the recipe's is not asked."""

    def __init__(self, transformation: optax.GradientTransformation) -> None:
        self.transformation = transformation

    def __call__(self, learning_rate: Any, **_: Any) -> optax.GradientTransformation:
        return self.transformation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Given) and self.transformation == other.transformation

    def __hash__(self) -> int:
        return hash(self.transformation)


def _named(name: str) -> Optimizer:
    if name in NAMES:
        return NAMES[name]
    build = getattr(optax, name, None) or getattr(optax.contrib, name, None)
    if not callable(build) or not _makes_optimizer(build):
        raise InputError(
            f"optimizer is {name!r}",
            "the name of an optimiser of optax, or one of its objects",
            nearest(name, NAMES),
        )
    return Optimizer(build, 1e-3, elementwise=False)


def _makes_optimizer(build: Any) -> bool:
    try:
        return isinstance(build(1e-3), optax.GradientTransformation)
    except Exception:  # whatever it is, it is no optimiser that takes a learning rate
        return False


def _with(found: Optimizer, name: str, options: dict[str, Any]) -> Optimizer:
    """The optimiser with these settings instead of its own."""
    numbers = dict(found.numbers)
    numbers |= {key: value for key, value in options.items() if isinstance(value, float)}
    fixed = {key: value for key, value in options.items() if not isinstance(value, float)}
    changed = Optimizer(
        found.build,
        found.learning_rate,
        numbers,
        found.weight_decay,
        found.elementwise,
        found.searches,
        found.averages,
        tuple(sorted(fixed.items())),
    )
    try:
        changed.transformation(1e-3, numbers)
    except TypeError as error:
        raise InputError(
            f"options of the optimizer {name!r} are {options!r} ({error})",
            f"settings such as {', '.join(found.numbers) or 'none'}",
            "Remove or rename the setting that it does not know",
        ) from error
    return changed
