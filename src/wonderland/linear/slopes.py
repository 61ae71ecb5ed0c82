"""How held-out loss changes with a penalty: folds as weights, implicit derivatives of the optimum.

    L_j(λ) = Σ_{i∈V_j} ω_i ℓ(f(x_i; w_j(λ)), y_i) / Σ_{i∈V_j} ω_i,
    w_j(λ) = argmin_w Σ_{i∈T_j} ω_i ℓ(f(x_i; w), y_i) + ρ_λ(w)

Rows outside T_j have weight zero there, so that all folds, and all values of λ, share one program.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import in_float64

__all__ = ["Rows", "fold_slopes"]

Rows = tuple[np.ndarray, np.ndarray]


def fold_slopes(
    held_out: Callable[..., jax.Array],
    data: tuple[Any, ...],
    weight: np.ndarray,
    splits: Sequence[Rows],
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The function values (1,) → losses (k,), derivatives (k, 1).

    Args:
        held_out: (λ, training weights (n,), *data) → the loss of each of the n rows. A function
            of some module: the compiled program is kept for as long as it lives.
        data: Arrays on JAX or NumPy.
        weight: ω (n,).
        splits: Rows (T_j, V_j) of each fold.
    """
    masks = [(_masked(weight, train), _masked(weight, test)) for train, test in splits]

    @in_float64
    def slopes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = jnp.asarray(values[0], jnp.float64)
        arrays = [jnp.asarray(part) for part in data]
        found = [_mean(value, *map(jnp.asarray, mask), arrays, held_out=held_out) for mask in masks]
        losses, derivatives = np.array(found, dtype=float).T
        return losses, derivatives[:, None]

    return slopes


@partial(jax.jit, static_argnames="held_out")
def _mean(
    value: jax.Array, train: jax.Array, test: jax.Array, data: Any, *, held_out: Any
) -> tuple[jax.Array, jax.Array]:
    def loss(value: jax.Array) -> jax.Array:
        return jnp.sum(test * held_out(value, train, *data)) / jnp.sum(test)

    return jax.value_and_grad(loss)(value)


def _masked(weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    mask = np.zeros_like(weight)
    mask[rows] = weight[rows]
    return mask
