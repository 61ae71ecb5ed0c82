"""What parameters Bayesian estimators refuse, in three parts."""

import numbers
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, InputTypeError

__all__ = ["check_level", "check_parameters", "is_real"]

NOT_NEGATIVE = ("tol", "max_iter", "alpha_1", "alpha_2", "lambda_1", "lambda_2")
POSITIVE = ("noise_variance", "prior_precision", "alpha_init", "lambda_init")


def is_real(value: Any) -> bool:
    """Whether a value is a finite real number and no truth value."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    return real and bool(np.isfinite(float(value)))


def check_parameters(estimator: Any) -> None:
    """Refuse what a Bayesian linear regression cannot use."""
    for name in NOT_NEGATIVE:
        value = getattr(estimator, name)
        if not (is_real(value) and value >= 0):
            raise InputError(
                f"{name} is {value!r}", "a finite number ≥ 0", f"Leave {name} at its default"
            )
    for name in POSITIVE:
        value = getattr(estimator, name)
        if value is not None and not (is_real(value) and value > 0):
            raise InputError(
                f"{name} is {value!r}",
                "a finite number > 0, or None to let the evidence choose",
                f"Pass {name}=None",
            )
    for name in ("fit_intercept", "compute_score"):
        value = getattr(estimator, name)
        if not isinstance(value, bool | np.bool_):
            raise InputTypeError(f"{name} is {value!r}", "True or False", f"Pass {name}=True")
    if estimator.basis is not None and not callable(estimator.basis):
        raise InputTypeError(
            f"basis is {estimator.basis!r}",
            "a callable (n, d) → (n, m), or None",
            "Pass for instance wl.bases.Polynomial(2)",
        )


def check_level(level: Any) -> None:
    """Refuse a level that is no probability."""
    if not (is_real(level) and 0 < level < 1):
        raise InputError(f"level is {level!r}", "a probability between 0 and 1", "Pass level=0.95")
