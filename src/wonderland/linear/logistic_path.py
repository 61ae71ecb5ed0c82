"""Logistic regression for many values of C at once.

All fits share every pass over the table: the scores of all of them are one matrix product, where
one after another they would be as many matrix-vector products that wait for memory.
"""

from typing import Any, NamedTuple

import numpy as np

from wonderland.core.arrays import double
from wonderland.core.errors import InputError
from wonderland.core.status import Status
from wonderland.linear.logistic_fit import choose, minimise
from wonderland.linear.logistic_solve import rules_of, state
from wonderland.shell.inputs import Classes

__all__ = ["LogisticPath", "follow"]


class LogisticPath(NamedTuple):
    """Logistic regression for every C.

    Attributes:
        Cs: (a,).
        coef: (a, 1, d) for two classes, else (a, k, d).
        intercept: (a, 1) or (a, k).
        primal: C Σωℓ + ½‖W‖² at each (a,).
        gradient_norm: Its largest gradient entry, divided by C Σω (a,).
        iterations: Steps (a,).
        statuses: How each fit ended (a,).
        classes: The labels (k,).
    """

    Cs: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    primal: np.ndarray
    gradient_norm: np.ndarray
    iterations: np.ndarray
    statuses: list[Status]
    classes: np.ndarray


def follow(
    table: Classes, Cs: Any, *, fit_intercept: bool, tol: float, max_iter: int
) -> LogisticPath:
    """The path for validated data."""
    values = _values(Cs)
    problem = state(
        table.X,
        table.codes,
        len(table.classes),
        table.weight,
        values,
        fit_intercept=fit_intercept,
    )
    starts = np.zeros((len(values), problem.columns * problem.width))
    ends = minimise(problem, starts, choose(problem), rules_of(problem, tol, max_iter))
    coef, intercept = problem.split(np.stack([end.theta for end in ends]))
    return LogisticPath(
        values,
        coef,
        intercept,
        np.array([end.value for end in ends]) * values * problem.mass,
        np.array([np.abs(end.gradient).max() for end in ends]),
        np.array([end.iterations for end in ends]),
        [end.status for end in ends],
        table.classes,
    )


def _values(Cs: Any) -> np.ndarray:
    values = np.atleast_1d(double(Cs))
    if values.ndim != 1 or not len(values) or not np.all((values > 0) & np.isfinite(values)):
        raise InputError(
            f"Cs is {Cs!r}", "a list of finite numbers > 0", "Pass np.logspace(-4, 4, 16)"
        )
    return values
