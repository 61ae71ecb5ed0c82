"""The functions that kernel methods fit: f(x) = Σ_i a_i k(x_i, x) + b, and f(x) = ⟨w, φ(x)⟩ + b."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import any_jax, product
from wonderland.kernels.custom import Precomputed
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.low_rank import Features

__all__ = ["FeatureModel", "KernelModel"]


class KernelModel(eqx.Module):
    """f(x) = Σ_i a_i k(x_i, x) + b.

    Attributes:
        kernel: k.
        points: x_i (n, d).
        dual: a (n,) or (n, t).
        intercept: b.

    >>> from wonderland.kernels import Linear
    >>> model = KernelModel(Linear(), np.eye(2), np.array([1.0, 2.0]))
    >>> model.predict(np.array([[3.0, 4.0]]))
    array([11.])
    """

    kernel: Kernel
    points: Any
    dual: Any
    intercept: Any = 0.0

    def __call__(self, x: Any) -> Any:
        """f(x) for one sample (d,)."""
        if isinstance(self.kernel, Precomputed):
            return jnp.asarray(x) @ self.dual + self.intercept
        values = jax.vmap(lambda point: self.kernel(point, x))(jnp.asarray(self.points))
        return values @ self.dual + self.intercept

    def predict(self, X: Any) -> Any:
        """f for every row of X (n, d) → (n,) or (n, t)."""
        if any_jax(X, self):
            return product(self.kernel.matrix(X, self.points), self.dual) + self.intercept
        if isinstance(self.kernel, Precomputed):
            return self.kernel.matrix(X, self.points) @ self.dual + self.intercept
        columns = self.dual[:, None] if self.dual.ndim == 1 else self.dual
        values = self.kernel.apply(X, self.points, columns)
        return (values[:, 0] if self.dual.ndim == 1 else values) + self.intercept


class FeatureModel(eqx.Module):
    """f(x) = ⟨w, φ(x)⟩ + b for an approximation φ of a kernel.

    Attributes:
        features: φ.
        coef: w (r,) or (t, r).
        intercept: b, a number or (t,).
    """

    features: Features
    coef: Any
    intercept: Any = 0.0

    def __call__(self, x: Any) -> Any:
        """f(x) for one sample (d,)."""
        return product(jnp.asarray(self.coef), self.features(jnp.asarray(x))) + self.intercept

    def predict(self, X: Any) -> Any:
        """f for every row of X (n, d) → (n,) or (n, t)."""
        if any_jax(X, self):
            return product(self.features(X), jnp.asarray(self.coef).T) + self.intercept
        coef = np.asarray(self.coef)
        shape = (X.shape[0],) if coef.ndim == 1 else (X.shape[0], len(coef))
        values = np.empty(shape)
        for rows, phi in self.features.blocks(X):
            values[rows] = phi @ coef.T
        return values + self.intercept
