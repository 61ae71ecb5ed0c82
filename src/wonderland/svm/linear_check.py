"""What the linear support vector machines refuse before they look at data."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, InputTypeError, nearest

__all__ = ["check_choice", "check_classifier", "check_regressor"]

HINGES = ("hinge", "squared_hinge")
TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")


def check_classifier(model: Any) -> None:
    """Raise an InputError for a parameter of LinearSVC that cannot be used."""
    check_choice("loss", model.loss, HINGES)
    check_choice("penalty", model.penalty, ("l1", "l2"))
    check_choice("multi_class", model.multi_class, ("ovr", "crammer_singer"))
    _check_common(model)
    hard = np.isinf(model.C)
    if model.penalty == "l1" and model.loss == "hinge" and model.multi_class == "ovr":
        raise InputError(
            "penalty='l1' with loss='hinge'",
            "a smooth loss beside the l1 penalty",
            "Pass loss='squared_hinge', or penalty='l2'",
        )
    if hard and (model.penalty == "l1" or model.multi_class == "crammer_singer"):
        raise InputError(
            f"C is inf with penalty={model.penalty!r}, multi_class={model.multi_class!r}",
            "penalty='l2' and multi_class='ovr' for a hard margin",
            "Pass a finite C, such as C=1e6",
        )


def check_regressor(model: Any) -> None:
    """Raise an InputError for a parameter of LinearSVR that cannot be used."""
    check_choice("loss", model.loss, TUBES)
    _check_common(model)
    if not isinstance(model.epsilon, Real) or not 0 <= float(model.epsilon) < np.inf:
        raise InputError(
            f"epsilon is {model.epsilon!r}",
            "a number ≥ 0: half the width of the tube in units of y",
            "Pass epsilon=0 for the absolute loss",
        )


def check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Raise unless the value is one of the known names, told with the nearest."""
    if value not in known:
        raise InputError(
            f"{name} is {value!r}", f"one of {', '.join(known)}", nearest(value, known)
        )


def _check_common(model: Any) -> None:
    if not isinstance(model.C, Real) or isinstance(model.C, bool):
        raise InputTypeError(f"C is {model.C!r}", "a number > 0", "Pass C=1.0")
    if not float(model.C) > 0:
        raise InputError(
            f"C is {model.C!r}",
            "a number > 0: the weight of the loss beside ½‖w‖²",
            "Pass a small C for a strong penalty; a loss that weighs nothing teaches nothing",
        )
    for name in ("tol", "intercept_scaling"):
        value = getattr(model, name)
        if not isinstance(value, Real) or not 0 < float(value) < np.inf:
            raise InputError(f"{name} is {value!r}", "a number > 0", f"Leave {name} at its default")
    if not isinstance(model.max_iter, Integral) or model.max_iter < 0:
        raise InputError(
            f"max_iter is {model.max_iter!r}", "a whole number ≥ 0", "Pass max_iter=1000"
        )
    if not isinstance(model.fit_intercept, bool | np.bool_):
        raise InputTypeError(
            f"fit_intercept is {model.fit_intercept!r}", "True or False", "Pass fit_intercept=True"
        )
    if not (isinstance(model.dual, bool | np.bool_) or model.dual == "auto"):
        raise InputError(
            f"dual is {model.dual!r}",
            "'auto', True or False: all lead to the same optimum",
            "Leave dual='auto'",
        )
