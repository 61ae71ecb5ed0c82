"""Losses by name: a string becomes an object once, at the door."""

from collections.abc import Callable
from typing import Any

from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.losses.exponential import Exponential, Logistic, Tilted
from wonderland.losses.likelihood import BinaryCrossEntropy, CrossEntropy
from wonderland.losses.loss import Loss
from wonderland.losses.margin import Hinge, Margin, Perceptron, SquaredHinge, ZeroOne
from wonderland.losses.regression import (
    Absolute,
    EpsilonInsensitive,
    GaussianNLL,
    Huber,
    Quantile,
    Squared,
    SquaredEpsilonInsensitive,
)

__all__ = ["NAMES", "resolve"]

NAMES: dict[str, Callable[[], Loss]] = {
    "absolute": Absolute,
    "binary_cross_entropy": BinaryCrossEntropy,
    "cross_entropy": CrossEntropy,
    "epsilon_insensitive": EpsilonInsensitive,
    "exponential": Exponential,
    "gaussian_nll": GaussianNLL,
    "hinge": Hinge,
    "huber": Huber,
    "logistic": Logistic,
    "margin": Margin,
    "perceptron": Perceptron,
    "quantile": Quantile,
    "squared": Squared,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
    "squared_hinge": SquaredHinge,
    "tilted": Tilted,
    "zero_one": ZeroOne,
}
# What scikit-learn calls some of them.
ALSO = {
    "absolute_error": "absolute",
    "log_loss": "logistic",
    "pinball": "quantile",
    "squared_error": "squared",
}


def resolve(loss: Any) -> Loss:
    """The loss of that name with its default parameters, or the object itself.

    >>> resolve("hinge"), resolve("log_loss")
    (Hinge(), Logistic())
    >>> resolve("hing")
    Traceback (most recent call last):
    ...
    wonderland.core.errors.InputError: loss is 'hing'. ... Did you mean 'hinge' or ...
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise InputTypeError(
            f"loss is {loss!r}",
            "the name of a loss or an object of wonderland.losses",
            "Pass loss='hinge' or loss=wl.losses.Huber(1.35)",
        )
    name = ALSO.get(loss, loss)
    if name not in NAMES:
        raise InputError(
            f"loss is {loss!r}",
            "the name of a loss, or an object of wonderland.losses",
            nearest(loss, NAMES),
        )
    return NAMES[name]()
