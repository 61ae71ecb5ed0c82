"""The map behind the quadratic kernel, written out."""

from typing import Any

import numpy as np

from wonderland.core.arrays import any_jax

__all__ = ["quadratic_features"]


def quadratic_features(X: Any, gamma: float = 1.0, coef0: float = 1.0) -> Any:
    """φ(x) = [c, √(2cγ)·x, γ·x², √2·γ·x_j x_l for j < l]: ⟨φ(x), φ(z)⟩ = (γ⟨x, z⟩ + c)².

    Written with every x_j x_l twice φ has 1 + d + d² entries; equal ones are joined here, which
    leaves (d + 1)(d + 2)/2.

    Args:
        X: (n, d).
        gamma: γ ≥ 0.
        coef0: c ≥ 0.

    Returns:
        φ (n, (d + 1)(d + 2)/2), NumPy or JAX as X is.

    >>> x, z = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])
    >>> (quadratic_features(x) @ quadratic_features(z).T).item()  # (3 + 8 + 1)²
    144.0
    """
    import jax.numpy as jnp

    xp = jnp if any_jax(X, gamma, coef0) else np
    X = xp.asarray(X)
    left, right = np.triu_indices(X.shape[1], 1)
    return xp.concatenate(
        [
            xp.full((X.shape[0], 1), coef0, X.dtype),
            xp.sqrt(2.0 * coef0 * gamma) * X,
            gamma * X**2,
            np.sqrt(2.0) * gamma * X[:, left] * X[:, right],
        ],
        axis=1,
    )
