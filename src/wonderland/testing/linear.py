"""Laws of linear models: what a penalty is, what an intercept is, what several outputs are."""

from typing import Any

import numpy as np
from sklearn.base import clone

from wonderland.testing.compare import close
from wonderland.testing.estimators import fitted

__all__ = [
    "outputs_are_fitted_alone",
    "penalties_are_extra_samples",
    "shrinks_as_the_penalty_grows",
    "the_intercept_is_free",
]


def penalties_are_extra_samples(
    ridge: Any, regression: Any, X: Any, y: Any, *, alpha: float, rtol: float = 1e-8
) -> None:
    """Ridge(α) on (X, y) is least squares on the data augmented by √α·I with targets 0.

        Σ‖y − Wx‖² + α‖W‖²  =  Σ over rows of [X; √α·I], [y; 0] of ‖y − Wx‖²

    Args:
        ridge: An estimator with `alpha`; fitted here without an intercept.
        regression: The same family without a penalty.
        X: (n, d).
        y: (n,) or (n, t).
        alpha: α ≥ 0.
        rtol: What is allowed.

    >>> import wonderland as wl
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 9.0])
    >>> penalties_are_extra_samples(wl.Ridge(), wl.LinearRegression(), X, y, alpha=2.0)
    """
    X, y = np.asarray(X, float), np.asarray(y, float)
    d = X.shape[1]
    rows = np.vstack([X, np.sqrt(alpha) * np.eye(d)])
    targets = np.concatenate([y, np.zeros((d, *y.shape[1:]))])
    penalised = fitted(clone(ridge).set_params(alpha=alpha, fit_intercept=False), X, y)
    augmented = fitted(clone(regression).set_params(fit_intercept=False), rows, targets)
    close(penalised.coef_, augmented.coef_, "a penalty is extra samples", rtol=rtol)


def the_intercept_is_free(
    estimator: Any, X: Any, y: Any, *, shift: float, rtol: float = 1e-8
) -> None:
    """Moving every target by c moves the intercept by c and no coefficient: b is not penalised.

    >>> import wonderland as wl
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 9.0])
    >>> the_intercept_is_free(wl.Ridge(10.0), X, y, shift=100.0)
    """
    y = np.asarray(y, float)
    here, there = fitted(estimator, X, y), fitted(estimator, X, y + shift)
    scale = rtol * (np.abs(y).max() + abs(shift))
    close(there.coef_, here.coef_, "a shift of y moves no coefficient", rtol=rtol, atol=scale)
    moved = np.asarray(there.intercept_) - np.asarray(here.intercept_)
    expected = np.full(np.shape(moved), shift)
    close(moved, expected, "a shift of y moves the intercept by as much", rtol=rtol, atol=scale)


def outputs_are_fitted_alone(estimator: Any, X: Any, y: Any, *, rtol: float = 1e-8) -> None:
    """Each column of y gets the coefficients it would get alone (where α is not tuned jointly).

    >>> import wonderland as wl
    >>> outputs_are_fitted_alone(wl.LinearRegression(), np.eye(3), np.eye(3)[:, :2])
    """
    y = np.asarray(y)
    together = fitted(estimator, X, y)
    for k in range(y.shape[1]):
        alone = fitted(estimator, X, y[:, k])
        close(together.coef_[k], alone.coef_, f"output {k} is fitted alone", rtol=rtol)
        offset = np.atleast_1d(together.intercept_)[k] if together.fit_intercept else 0.0
        close(offset, alone.intercept_, f"output {k} has its own intercept", rtol=rtol, atol=rtol)


def shrinks_as_the_penalty_grows(ridge: Any, X: Any, y: Any, *, alphas: Any) -> None:
    """‖w(α)‖ never grows with α, and the training error never falls.

    >>> import wonderland as wl
    >>> shrinks_as_the_penalty_grows(wl.Ridge(), np.eye(3), np.arange(3.0), alphas=[0.1, 1, 10])
    """
    fits = [fitted(clone(ridge).set_params(alpha=float(a)), X, y) for a in np.sort(alphas)]
    norms = np.array([np.linalg.norm(fit.coef_) for fit in fits])
    losses = np.array([np.sum((np.asarray(y) - fit.predict(X)) ** 2) for fit in fits])
    if np.any(np.diff(norms) > 1e-9 * norms[:-1]):
        raise AssertionError("coefficients grew with the penalty")
    if np.any(np.diff(losses) < -1e-9 * np.sum(np.asarray(y) ** 2)):
        raise AssertionError("the training error fell as the penalty grew")
