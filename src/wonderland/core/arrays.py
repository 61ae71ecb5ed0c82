"""Where arrays live and in which precision: the one place that decides.

The policy: convex and closed-form solvers compute in float64. Host arrays (NumPy and everything
that becomes NumPy) are worked on by BLAS and LAPACK where they lie, without a copy and without
compiling anything; JAX arrays and tracers are worked on by XLA, differentiably, inside a scoped
x64 context. Nothing here changes a global JAX setting.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

__all__ = ["any_jax", "double", "in_float64", "is_traced", "product"]

P = ParamSpec("P")
R = TypeVar("R")


def any_jax(*values: Any) -> bool:
    """Whether any leaf is a JAX array or tracer, so that the work belongs to XLA."""
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(values))


def is_traced(*values: Any) -> bool:
    """Whether any leaf is being traced by `jit`, `grad` or `vmap`."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def double(value: Any) -> np.ndarray:
    """A float64 NumPy view of `value`, copied only when its type or layout demands it."""
    return np.asarray(value, dtype=np.float64)


def in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with 64-bit JAX types enabled, whatever the global setting is.

    >>> import jax.numpy as jnp
    >>> in_float64(lambda: jnp.ones(2).dtype)().name
    'float64'
    """

    @wraps(function)
    def scoped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):  # noqa: FBT003  # JAX's own signature
            return function(*args, **kwargs)

    return scoped


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    """Matrix product of JAX arrays, (… k) times (k …), in the type of its factors.

    `jnp.matmul` writes the result's type into the program; differentiating a float64 product
    outside its x64 scope would then warn and round to float32. This one only follows its factors.
    """
    return jax.lax.dot_general(a, b, (((a.ndim - 1,), (0,)), ((), ())))
