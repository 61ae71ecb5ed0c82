"""What LogisticRegression refuses before it looks at data, and how it says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.linear.logistic_fit import ROUTES
from wonderland.shell.inputs import Classes

__all__ = ["check_parameters", "check_weights", "explain_text", "l1_share", "loss_weight"]

PENALTIES = ("l2", "l1", "elasticnet", "deprecated", None)
TUNERS = ("gradient",)


def check_parameters(model: Any) -> None:
    """Raise an InputError for a parameter that cannot be used."""
    if model.penalty not in PENALTIES:
        raise InputError(
            f"penalty is {model.penalty!r}",
            "'l2', 'l1', 'elasticnet' or None",
            nearest(str(model.penalty), ("l2", "l1", "elasticnet")),
        )
    if model.solver not in ROUTES:
        raise InputError(
            f"solver is {model.solver!r}",
            f"one of {', '.join(ROUTES)}",
            nearest(str(model.solver), tuple(ROUTES)),
        )
    _check_weight(model.C)
    _check_numbers(model)
    for name in ("fit_intercept", "warm_start", "dual"):
        if not isinstance(getattr(model, name), bool | np.bool_):
            raise InputTypeError(
                f"{name} is {getattr(model, name)!r}", "True or False", f"Pass {name}=True"
            )
    if model.prior is not None:
        _check_prior(model)


def _check_weight(C: Any) -> None:
    if isinstance(C, str):
        if C not in TUNERS:
            raise InputError(f"C is {C!r}", "a number > 0 or 'gradient'", nearest(C, TUNERS))
        return
    if not isinstance(C, Real):
        raise InputTypeError(f"C is {C!r}", "a number > 0 or 'gradient'", "Pass C=1.0")
    if not float(C) > 0:
        raise InputError(
            f"C is {C!r}",
            "a number > 0: the weight of the loss beside ½‖w‖²",
            "Pass a small C for a strong penalty, C=float('inf') for none",
        )


def _check_numbers(model: Any) -> None:
    limits = {"tol": (0.0, np.inf), "max_iter": (0, np.inf), "l1_ratio": (0.0, 1.0)}
    for name, (low, high) in limits.items():
        value = getattr(model, name)
        if value is None and name == "l1_ratio":
            continue
        if not isinstance(value, Real) or not low <= float(value) <= high:
            raise InputError(
                f"{name} is {value!r}",
                f"a number between {low:g} and {high:g}",
                f"Leave {name} at its default",
            )
    if model.penalty == "elasticnet" and model.l1_ratio is None:
        raise InputError(
            "l1_ratio must be specified when penalty is elasticnet: it is None",
            "the share of the ℓ₁ norm, 0 … 1",
            "Pass l1_ratio=0.5",
        )


def _check_prior(model: Any) -> None:
    try:
        mean, precision = model.prior
        fine = bool(np.isfinite(np.asarray(mean, float)).all())
        fine &= bool(np.all(np.asarray(precision, float) >= 0))
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise InputError(
            f"prior is {model.prior!r}",
            "(mean, precision): numbers, or one for each column; precision ≥ 0",
            "Pass prior=(0.0, 1.0) for ½‖w‖²",
        )
    if l1_share(model):
        raise InputError(
            f"prior with l1_ratio={model.l1_ratio!r}, penalty={model.penalty!r}",
            "one of the two: the ℓ₁ norm is a prior of its own (Laplace's)",
            "Pass l1_ratio=0, or leave prior out",
        )


def check_weights(table: Classes) -> None:
    """Refuse weights that leave one class only."""
    if table.weight is None:
        return
    left = np.flatnonzero(np.bincount(table.codes, table.weight, len(table.classes)) > 0)
    if len(left) < 2:
        raise InputError(
            f"all samples of positive weight belong to one class, {table.classes[left[0]]!r}",
            "at least two classes with positive weight",
            "Check sample_weight and class_weight",
        )


def loss_weight(model: Any) -> float:
    """C, infinite where nothing is penalised."""
    return np.inf if model.penalty is None else float(model.C)


def l1_share(model: Any) -> float:
    """The share of the ℓ₁ norm in the penalty that the parameters ask for."""
    if model.penalty is None or (not isinstance(model.C, str) and np.isposinf(model.C)):
        return 0.0
    named = {"l1": 1.0, "l2": 0.0}
    return named.get(model.penalty, float(model.l1_ratio or 0.0))


@contextmanager
def explain_text(X: Any) -> Iterator[None]:
    """Where a column of text was passed as X, point to the bag of words."""
    try:
        yield
    except InputError as error:
        if _is_text(X):
            raise type(error)(
                f"X is text: {type(X).__name__} of strings",
                "a table of numbers (n, d)",
                "Count the words first: wl.BagOfWords().fit_transform(X) gives a sparse table",
            ) from error
        raise


def _is_text(X: Any) -> bool:
    """A sequence of strings, or a single column of them."""
    try:
        flat = np.asarray(X, dtype=object)
    except (TypeError, ValueError):
        return False
    if flat.ndim == 2 and flat.shape[1] == 1:
        flat = flat[:, 0]
    return flat.ndim == 1 and flat.size > 0 and isinstance(flat[0], str)
