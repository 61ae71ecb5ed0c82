"""How the held-out log-loss of logistic regression changes with C: for `SearchCV`, by gradient.

ℓ_i(C) = logsumexp(W x_i + b) − (W x_i + b)_{y_i},   (W, b) = fit_logistic(X, y, C, ω)
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from wonderland.linear.logistic_pure import fit_logistic
from wonderland.linear.slopes import Rows, fold_slopes
from wonderland.shell.inputs import Classes
from wonderland.shell.together import NotTogether

__all__ = ["validation_slopes"]


def validation_slopes(
    estimator: Any, names: list[str], table: Classes, splits: Sequence[Rows]
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Losses of the folds (k,) and their derivatives in C (k, 1), as functions of C (1,)."""
    if names != ["C"] or sp.issparse(table.X) or estimator.prior is not None:
        raise NotTogether("slopes in C alone, of dense tables without prior=")
    weight = np.ones(len(table.codes)) if table.weight is None else table.weight
    indicator = np.eye(len(table.classes))[table.codes]
    held_out = _with_intercept if estimator.fit_intercept else _through_origin
    return fold_slopes(held_out, (table.X, indicator), weight, splits)


def _with_intercept(C: Any, weight: Any, X: Any, indicator: Any) -> Any:
    return _losses(C, weight, X, indicator, fit_intercept=True)


def _through_origin(C: Any, weight: Any, X: Any, indicator: Any) -> Any:
    return _losses(C, weight, X, indicator, fit_intercept=False)


def _losses(C: Any, weight: Any, X: Any, indicator: Any, *, fit_intercept: bool) -> Any:
    """The log-loss of each row (n,)."""
    k, codes = indicator.shape[1], jnp.argmax(indicator, axis=1)
    model = fit_logistic(X, codes, C, weight, classes=k, fit_intercept=fit_intercept).model
    scores = jax.vmap(model)(X)
    if k == 2:
        return jnp.logaddexp(0.0, -jnp.where(codes == 1, scores, -scores))
    return jax.nn.logsumexp(scores, axis=1) - (indicator * scores).sum(axis=1)
