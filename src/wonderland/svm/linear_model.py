"""The model of every linear support vector machine: f(x) = Wx + b."""

from typing import Any

import equinox as eqx
import jax

from wonderland.core.arrays import product

__all__ = ["Scores"]


class Scores(eqx.Module):
    """Signed scores of one sample: a number, or one for each class; `predict` is its batch.

    Attributes:
        coef: W (k, d), or (d,) for a single score.
        intercept: b (k,), or a scalar.

    >>> import numpy as np
    >>> Scores(np.array([2.0, 1.0]), np.array(0.5))(np.array([1.0, 1.0])).item()
    3.5
    """

    coef: Any
    intercept: Any

    def __call__(self, x: Any) -> Any:
        """f(x) for one sample x (d,)."""
        traced = isinstance(x, jax.Array) and isinstance(self.coef, jax.Array)
        return (product(self.coef, x) if traced else self.coef @ x) + self.intercept

    def predict(self, X: Any) -> Any:
        """f for every row of X (n, d) → (n,) or (n, k): one matrix product."""
        scores = X @ self.coef.T
        return scores + (self.intercept if self.coef.ndim == 1 else self.intercept[None, :])
