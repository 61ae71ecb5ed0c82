"""Laws of the transaction: a fit that does not finish leaves the estimator as it was."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from wonderland.core.errors import InputError

__all__ = ["failed_fit_changes_nothing", "interrupted_fit_changes_nothing", "spoiled"]


def spoiled(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Data that no estimator may accept: (what is wrong, arguments of fit)."""
    hole, endless = X.astype(float), y.astype(float)
    hole[len(hole) // 2, -1] = np.nan
    endless[0] = np.inf
    negative = np.ones(len(X))
    negative[-1] = -1.0
    yield "NaN in X", (hole, y)
    yield "infinity in y", (X, endless)
    yield "more rows than targets", (X, y[:-1])
    yield "no rows", (X[:0], y[:0])
    yield "text in X", (np.full(X.shape, "word"), y)
    yield "a vector for X", (X[:, 0], y)
    yield "a negative weight", (X, y, negative)
    yield "a weight missing", (X, y, negative[:-1])


def failed_fit_changes_nothing(estimator: Any, X: Any, y: Any) -> None:
    """Bad data raise an InputError of three parts, and leave a fitted or fresh estimator alone.

    >>> import wonderland as wl
    >>> failed_fit_changes_nothing(wl.Ridge(), np.eye(4), np.arange(4.0))
    """
    X, y = np.asarray(X), np.asarray(y)
    for fresh in (True, False):
        subject = clone(estimator) if fresh else clone(estimator).fit(X, y)
        before = dict(vars(subject))
        for wrong, data in spoiled(X, y):
            _must_refuse(subject, wrong, data)
            _must_equal(vars(subject), before, f"a fit refused for {wrong}")


def _must_refuse(subject: Any, wrong: str, data: tuple[Any, ...]) -> None:
    try:
        subject.fit(*data)
    except InputError as error:
        if not (error.came and error.expected and error.todo):
            raise AssertionError(f"{wrong}: the error lacks one of its three parts") from error
        return
    raise AssertionError(f"{wrong} was accepted")


def interrupted_fit_changes_nothing(estimator: Any, X: Any, y: Any) -> None:
    """An interrupt at the last moment of a fit leaves no half-fitted object behind.

    >>> import wonderland as wl
    >>> interrupted_fit_changes_nothing(wl.Ridge(), np.eye(4), np.arange(4.0))
    """
    for fresh in (True, False):
        subject = clone(estimator) if fresh else clone(estimator).fit(X, y)
        before, kind = dict(vars(subject)), type(subject)
        subject.__class__ = type(kind.__name__, (kind,), {"_fit": _interrupted})
        try:
            subject.fit(np.asarray(X)[:, :1], y)
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("the interrupt was swallowed")
        finally:
            subject.__class__ = kind
        _must_equal(vars(subject), before, "an interrupted fit")


def _interrupted(self: Any, *data: Any) -> Any:
    super(type(self), self)._fit(*data)
    raise KeyboardInterrupt


def _must_equal(after: dict[str, Any], before: dict[str, Any], what: str) -> None:
    changed = [k for k in {*after, *before} if after.get(k, ...) is not before.get(k, ...)]
    if changed:
        raise AssertionError(f"{what} changed {', '.join(sorted(changed))}")
