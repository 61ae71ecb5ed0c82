"""The model of every linear estimator: f(x) = Wφ(x) + b."""

from typing import Any

import equinox as eqx

from wonderland.bases.basis import namespace

__all__ = ["LinearModel"]


class LinearModel(eqx.Module):
    """A linear function of one sample; `predict` is its batch.

    Attributes:
        coef: W (t, d), or (d,) for one output.
        intercept: b (t,), or a scalar.
        basis: φ on a table (n, d) → (n, m); None for φ(x) = x.

    >>> import numpy as np
    >>> LinearModel(np.array([2.0, 1.0]), np.array(0.5))(np.array([1.0, 1.0])).item()
    3.5
    """

    coef: Any
    intercept: Any
    basis: Any = None

    def __call__(self, x: Any) -> Any:
        """f(x) for one sample x (d,)."""
        if self.basis is not None:
            x = self.basis(x[None, :])[0]
        return namespace(x).matmul(self.coef, x) + self.intercept

    def predict(self, X: Any) -> Any:
        """f for every row of X (n, d) → (n,) or (n, t): one matrix product."""
        if self.basis is not None:
            X = self.basis(X)
        if self.coef.ndim == 1:
            return X @ self.coef + self.intercept
        return X @ self.coef.T + namespace(self.coef).atleast_2d(self.intercept)
