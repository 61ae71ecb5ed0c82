"""Numbers to probabilities without overflow: logsumexp, softmax with a temperature, one-hot.

    logsumexp(z) = max z + log Σ exp(z_k − max z)
    softmax(z; T)_k = exp(z_k / T) / Σ_l exp(z_l / T)

As T → 0 softmax tends to the indicator of the largest entries (ties share), as T → ∞ to 1/k.
NumPy in, NumPy out; JAX in, JAX out; classes lie along the last axis (…, k).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import is_traced
from wonderland.core.errors import InputError
from wonderland.losses.loss import floating, namespace

__all__ = ["log_softmax", "logsumexp", "one_hot", "sigmoid", "softmax", "softplus"]


def logsumexp(z: Any, axis: int = -1) -> Any:
    """log Σ exp z along an axis, exact at ±1e4 and beyond.

    >>> round(float(logsumexp([1e4, 1e4]) - 1e4), 9)
    0.693147181
    >>> float(logsumexp([-float("inf"), -float("inf")]))
    -inf
    """
    xp = namespace(z)
    z = floating(z, xp)
    top, others, largest = _beside_largest(z, axis)
    # log(c + Σ) = log c + log1p(Σ/c) keeps the digits of a sum that is small beside the maximum.
    summed = top + xp.where(xp.isfinite(top), xp.log1p(others / largest) + xp.log(largest), 0.0)
    return xp.squeeze(summed, axis=axis)[()]


def _beside_largest(z: Any, axis: int) -> tuple[Any, Any, Any]:
    """max z, Σ exp(z − max z) over the other entries, and how many entries count as the maximum."""
    xp = namespace(z)
    if xp is jnp:
        # The compiler may compute z once for its maximum and again, rounded otherwise, for the
        # difference: equality would find no maximum, so one entry is it by its place.
        places = jax.lax.broadcasted_iota(jnp.int32, z.shape, axis % z.ndim)
        peak = places == jnp.expand_dims(jnp.argmax(z, axis=axis), axis)
        top = jnp.where(peak, z, 0.0).sum(axis=axis, keepdims=True)
    else:
        top = z.max(axis=axis, keepdims=True)
        peak = z == top
    # An infinite maximum is the answer itself; subtracting it would make NaN.
    below = xp.where(xp.isfinite(top), z - xp.where(xp.isfinite(top), top, 0.0), 0.0)
    others = xp.where(peak, 0.0, xp.exp(below)).sum(axis=axis, keepdims=True)
    largest = xp.ones_like(top) if xp is jnp else peak.sum(axis=axis, keepdims=True).astype(z.dtype)
    return top, others, largest


def _shift(z: Any, axis: int) -> Any:
    """max z, held still: what it is subtracted for does not depend on it."""
    top = z.max(axis=axis, keepdims=True)
    return jax.lax.stop_gradient(top) if namespace(z) is jnp else top


def log_softmax(z: Any, axis: int = -1) -> Any:
    """log softmax(z), for which small probabilities do not round to zero.

    >>> log_softmax([0.0, -1e4]).tolist()
    [0.0, -10000.0]
    """
    xp = namespace(z)
    z = floating(z, xp)
    below = z - _shift(z, axis)
    return below - xp.expand_dims(logsumexp(below, axis), axis)


def softmax(z: Any, temperature: Any = 1.0, axis: int = -1) -> Any:
    """exp(z/T) / Σ exp(z/T); at T = 0 its limit, the indicator of the largest entries.

    Args:
        z: Scores (…, k).
        temperature: T ≥ 0, a number; infinity gives 1/k.
        axis: Along which the probabilities sum to one.

    >>> softmax([1e4, 1e4, -1e4])
    array([0.5, 0.5, 0. ])
    >>> softmax([1.0, 3.0, 3.0], temperature=0.0)
    array([0. , 0.5, 0.5])
    >>> softmax([1.0, 3.0, 3.0, 0.0], temperature=float("inf"))
    array([0.25, 0.25, 0.25, 0.25])
    """
    if not is_traced(temperature) and not temperature >= 0:
        raise InputError(
            f"temperature is {temperature!r}", "a number ≥ 0", "Pass temperature=1.0 for softmax"
        )
    xp = namespace(z, temperature)
    z = floating(z, xp)
    below = z - _shift(z, axis)
    heat = xp.asarray(temperature, dtype=z.dtype)
    warm = xp.where(heat > 0, heat, xp.ones_like(heat))
    weight = xp.where(heat > 0, xp.exp(below / warm), (below == 0).astype(z.dtype))
    return weight / weight.sum(axis=axis, keepdims=True)


def sigmoid(z: Any) -> Any:
    """1 / (1 + exp(−z)), with all digits also where it is tiny.

    >>> sigmoid([-1e4, 0.0, 1e4])
    array([0. , 0.5, 1. ])
    """
    xp = namespace(z)
    z = floating(z, xp)
    if xp is jnp:
        return jax.nn.sigmoid(z)  # |z| below would give JAX no derivative at zero
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, small) / (1.0 + small)


def softplus(z: Any) -> Any:
    """log(1 + exp z) = max(z, 0) + log1p(exp(−|z|)).

    >>> softplus([-1e4, 0.0, 1e4]).round(4).tolist()
    [0.0, 0.6931, 10000.0]
    """
    xp = namespace(z)
    return xp.logaddexp(floating(z, xp), 0.0)


def one_hot(classes: Any, k: int) -> Any:
    """Row c of the k × k identity for each class number c: (…,) → (…, k).

    >>> one_hot([2, 0], 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    xp = namespace(classes)
    numbers = xp.asarray(classes)
    if not xp.issubdtype(numbers.dtype, xp.integer):
        raise InputError(
            f"class numbers of type {numbers.dtype}", "whole numbers", "Pass classes.astype(int)"
        )
    known = np.empty(0, int) if is_traced(numbers) else np.asarray(numbers)
    if known.size and not 0 <= known.min() <= known.max() < k:
        raise InputError(
            f"class numbers from {known.min()} to {known.max()} with k = {k}",
            f"numbers from 0 to {k - 1}",
            "Number the classes from zero, for instance with np.unique(y, return_inverse=True)",
        )
    return 1.0 * (numbers[..., None] == xp.arange(k).reshape((1,) * numbers.ndim + (k,)))
