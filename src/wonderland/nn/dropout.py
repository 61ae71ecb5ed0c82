"""Dropout.

    training:    y_j = m_j x_j / q,   m_j = 1 with probability q = 1 − rate, else 0
    inference:   y = x

so that E[y] = x in both, and Var[y_j] = x_j²(1 − q)/q in training. Each mask takes 16 random bits a
neuron: the rate is rounded to a multiple of 2⁻¹⁶, and q is that of the rounded rate, so that the
expectation is exact.

Reference: Srivastava et al. (2014).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import is_traced
from wonderland.core.errors import InputError
from wonderland.nn.statistic import Statistic

__all__ = ["Dropout"]

LEVELS = 1 << 16


class Dropout(eqx.Module):
    """Each neuron is absent from each sample of a training batch with the given probability.

    Args:
        rate: In [0, 1), an array inside: it may be batched by `vmap` and compiles nothing anew.

    >>> drop, x = Dropout(0.5), jnp.ones(4)
    >>> drop(x).tolist(), sorted(set(drop.training(x, key=jax.random.key(0))[0].tolist()))
    ([1.0, 1.0, 1.0, 1.0], [0.0, 2.0])
    """

    rate: Statistic

    def __init__(self, rate: Any = 0.5) -> None:
        if not is_traced(rate) and not np.all((np.asarray(rate) >= 0) & (np.asarray(rate) < 1)):
            raise InputError(
                f"the rate of dropout is {rate!r}",
                "a number in [0, 1): the probability of absence",
                "Pass Dropout(0.1), or no dropout at all",
            )
        self.rate = Statistic(jnp.asarray(rate, jnp.float32))

    def __call__(self, x: Any) -> Any:
        """The input x."""
        return x

    def training(self, x: Any, *, key: Any) -> tuple[Any, "Dropout"]:
        """m ⊙ x/q with a fresh mask."""
        if key is None:
            raise InputError(
                "dropout in training without a key",
                "a key for the mask",
                "Pass model.training(x, key=key), or call model(x) for inference",
            )
        absent = jnp.round(self.rate.value * LEVELS).astype(jnp.uint32)
        bits = jax.random.bits(key, x.shape, jnp.uint16).astype(jnp.uint32)
        keep = (LEVELS - absent).astype(x.dtype) / LEVELS
        return jnp.where(bits >= absent, x / keep, jnp.zeros_like(x)), self
