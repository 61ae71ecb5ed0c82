"""Logistic regression for many values of C at once.

All fits share every pass over the table: the scores of all of them are one matrix product, where
one after another they would be as many matrix-vector products that wait for memory. With an ℓ₁
share each fit starts from the support, columns and Hessian of the one before (`linear.path`).
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

GAP = 1e-6  # relative, of each fit on a path with an ℓ₁ share


class LogisticPath(NamedTuple):
    """Logistic regression for every C.

    Attributes:
        Cs: (a,).
        coef: (a, 1, d) for two classes, else (a, k, d).
        intercept: (a, 1) or (a, k).
        primal: C Σωℓ and the penalty at each (a,).
        gradient_norm: Its largest gradient entry, or distance from the subdifferential, divided
            by C Σω (a,).
        iterations: Steps (a,).
        statuses: How each fit ended (a,).
        classes: The labels (k,).
        duality_gap: (primal − dual)/primal at each (a,), where there is an ℓ₁ share; else None.
    """

    Cs: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    primal: np.ndarray
    gradient_norm: np.ndarray
    iterations: np.ndarray
    statuses: list[Status]
    classes: np.ndarray
    duality_gap: np.ndarray | None = None


def follow(
    table: Classes,
    Cs: Any,
    *,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    l1_ratio: float = 0.0,
) -> LogisticPath:
    """The path for validated data."""
    values = _values(Cs)
    if l1_ratio:
        return _follow_sparse(table, values, (l1_ratio, fit_intercept, tol, max_iter))
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


def _follow_sparse(
    table: Classes, values: np.ndarray, options: tuple[float, bool, float, int]
) -> LogisticPath:
    """From the strongest penalty to the weakest, whatever the order asked for."""
    from wonderland.linear.path import solve_l1_path  # only where it is asked

    share, fit_intercept, tol, max_iter = options
    two = len(table.classes) == 2
    found = solve_l1_path(
        table.X,
        2.0 * table.codes - 1.0 if two else table.codes,
        table.weight,
        values,
        share,
        fit_intercept,
        min(tol, GAP),
        max_iter,
        loss="logistic" if two else "softmax",
    )
    mass = float(len(table.codes) if table.weight is None else table.weight.sum())
    return LogisticPath(
        values,
        found.coef,
        found.intercept,
        found.objective,
        found.gradient_norm / (values * mass),
        found.iterations,
        list(found.status),
        table.classes,
        found.gap / np.maximum(found.objective, 1e-300),
    )


def _values(Cs: Any) -> np.ndarray:
    values = np.atleast_1d(double(Cs))
    if values.ndim != 1 or not len(values) or not np.all((values > 0) & np.isfinite(values)):
        raise InputError(
            f"Cs is {Cs!r}", "a list of finite numbers > 0", "Pass np.logspace(-4, 4, 16)"
        )
    return values
