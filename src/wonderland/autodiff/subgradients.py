"""The kinked functions of learning, with the shortest subgradient as their derivative.

∂f(x) = {g : f(y) ≥ f(x) + gᵀ(y − x) for all y} is a set at a kink; a program must return one
element. Here it is the one of least norm: it is unique, it is zero exactly where x is a minimum,
and it is the steepest descent direction of f (Clarke 1983, proposition 2.2.7 for convex f).

All are elementwise but `largest`, and work in both modes, under `jit` and `vmap`.
"""

from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["absolute", "hinge", "largest", "maximum", "relu"]


@jax.custom_jvp
def absolute(x: Any) -> jax.Array:
    """|x|, with derivative sign(x): 0 at x = 0, the shortest of [−1, 1].

    >>> import jax
    >>> [float(jax.grad(absolute)(x)) for x in (-2.0, 0.0, 2.0)]
    [-1.0, 0.0, 1.0]
    """
    return jnp.abs(x)


@absolute.defjvp
def _absolute(at: Any, along: Any) -> tuple[jax.Array, jax.Array]:
    (x,), (dx,) = at, along
    return absolute(x), jnp.sign(x) * dx


@jax.custom_jvp
def relu(x: Any) -> jax.Array:
    """max(x, 0), with derivative 1 for x > 0 and 0 otherwise: 0 is the shortest of [0, 1].

    >>> import jax
    >>> [float(jax.grad(relu)(x)) for x in (-2.0, 0.0, 2.0)]
    [0.0, 0.0, 1.0]
    """
    return jnp.maximum(x, 0)


@relu.defjvp
def _relu(at: Any, along: Any) -> tuple[jax.Array, jax.Array]:
    (x,), (dx,) = at, along
    return relu(x), jnp.where(x > 0, dx, 0)


@jax.custom_jvp
def hinge(margin: Any) -> jax.Array:
    """max(0, 1 − m), with derivative −1 for m < 1 and 0 otherwise: 0 is the shortest of [−1, 0].

    >>> import jax
    >>> [float(jax.grad(hinge)(m)) for m in (0.0, 1.0, 2.0)]
    [-1.0, 0.0, 0.0]
    """
    return jnp.maximum(0, 1 - margin)


@hinge.defjvp
def _hinge(at: Any, along: Any) -> tuple[jax.Array, jax.Array]:
    (margin,), (d,) = at, along
    return hinge(margin), jnp.where(margin < 1, -1, 0) * d


@jax.custom_jvp
def maximum(a: Any, b: Any) -> jax.Array:
    """max(a, b), with slope 1 in the larger; (½, ½) at a = b, the shortest of {(s, 1 − s)}.

    >>> import jax
    >>> [float(slope) for slope in jax.grad(maximum, argnums=(0, 1))(1.0, 1.0)]
    [0.5, 0.5]
    """
    return jnp.maximum(a, b)


@maximum.defjvp
def _maximum(at: Any, along: Any) -> tuple[jax.Array, jax.Array]:
    (a, b), (da, db) = at, along
    share = jnp.where(a > b, 1, jnp.where(a < b, 0, 0.5)).astype(jnp.result_type(a, b))
    return maximum(a, b), share * da + (1 - share) * db


@jax.custom_jvp
def largest(x: Any) -> jax.Array:
    """max_i x_i over all entries; k tied entries get slope 1/k each, the shortest of their simplex.

    >>> import jax
    >>> import jax.numpy as jnp
    >>> jax.grad(largest)(jnp.array([3.0, 1.0, 3.0]))
    Array([0.5, 0. , 0.5], dtype=float32)
    """
    return jnp.max(x)


@largest.defjvp
def _largest(at: Any, along: Any) -> tuple[jax.Array, jax.Array]:
    (x,), (dx,) = at, along
    top = largest(x)
    tied = (x == top).astype(x.dtype)
    return top, (tied * dx).sum() / tied.sum()
