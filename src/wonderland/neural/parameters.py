"""The constructor parameters of networks, checked before any data are looked at."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.nn.activations import activation
from wonderland.nn.mlp import NORMS

__all__ = ["check_network", "hidden_sizes"]

SOLVERS = ("lbfgs", "sgd", "adam")
RATES = ("constant", "invscaling", "adaptive")
ARCHITECTURES = ("mlp", "table")
# name: (least, most, whether the least itself is excluded)
RANGES: dict[str, tuple[float, float, bool]] = {
    "alpha": (0.0, np.inf, False),
    "learning_rate_init": (0.0, np.inf, True),
    "power_t": (0.0, np.inf, False),
    "tol": (0.0, np.inf, False),
    "momentum": (0.0, 1.0, False),
    "validation_fraction": (0.0, 1.0, False),
    "beta_1": (0.0, 1.0, False),
    "beta_2": (0.0, 1.0, False),
    "epsilon": (0.0, np.inf, True),
    "dropout": (0.0, 1.0, False),
    "weight_decay": (0.0, np.inf, False),
}
WHOLE = ("max_iter", "max_fun")


def check_network(estimator: Any) -> None:
    """Raise an InputError for a parameter that cannot be used."""
    for name, known in (
        ("solver", SOLVERS),
        ("learning_rate", RATES),
        ("architecture", ARCHITECTURES),
    ):
        if (value := getattr(estimator, name)) not in known:
            raise InputError(
                f"{name} is {value!r}", f"one of {', '.join(known)}", nearest(value, known)
            )
    for name, bounds in RANGES.items():
        _check_number(name, getattr(estimator, name), *bounds)
    for name in WHOLE:
        _check_whole(name, getattr(estimator, name))
    if estimator.batch_size != "auto":
        _check_whole("batch_size", estimator.batch_size)
    if estimator.n_iter_no_change != np.inf:
        _check_whole("n_iter_no_change", estimator.n_iter_no_change)
    hidden_sizes(estimator.hidden_layer_sizes)
    activation(estimator.activation)
    if estimator.norm is not None and estimator.norm not in NORMS:
        raise InputError(
            f"norm is {estimator.norm!r}",
            "None, 'batch' or 'layer'",
            nearest(estimator.norm, NORMS),
        )
    if estimator.solver == "lbfgs" and (estimator.dropout or estimator.norm == "batch"):
        raise InputError(
            "solver='lbfgs' with dropout or batch norm",
            "a loss that is the same at every look: no random masks, no statistics of a batch",
            "Pass solver='adam', or dropout=0 and norm=None",
        )


def hidden_sizes(sizes: Any) -> tuple[int, ...]:
    """The widths of the hidden layers.

    >>> hidden_sizes(5), hidden_sizes((64, 10)), hidden_sizes(())
    ((5,), (64, 10), ())
    """
    listed = list(sizes) if hasattr(sizes, "__iter__") and not isinstance(sizes, str) else [sizes]
    for size in listed:
        if not isinstance(size, Integral) or size < 1:
            raise InputError(
                f"hidden_layer_sizes must be > 0, got {sizes!r}",
                "whole numbers ≥ 1, one for each hidden layer",
                "Pass for instance hidden_layer_sizes=(64, 64)",
            )
    return tuple(int(size) for size in listed)


def _check_number(name: str, value: Any, low: float, high: float, excluded: bool) -> None:  # noqa: FBT001
    if not isinstance(value, Real) or isinstance(value, bool):
        raise InputTypeError(f"{name} is {value!r}", "a number", f"Pass {name} as a number")
    value = float(value)
    below = value <= low if excluded else value < low
    above = value >= high if name not in ("momentum",) else value > high
    if below or above or np.isnan(value):
        raise InputError(
            f"{name} is {value!r}",
            f"a number from {low:g}{' (excluded)' if excluded else ''} to {high:g}",
            f"Check {name} in the documentation of the class",
        )


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} is {value!r}", "a whole number ≥ 1", f"Pass {name}=1 or more")
