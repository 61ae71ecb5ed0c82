"""Normalisation: over a batch, or over the neurons of one sample.

    y = γ ⊙ (x − μ)/√(v + ε) + β

Batch norm: μ, v are those of the batch in training, and in inference the running ones
μ̄ ← (1 − a)μ̄ + aμ, v̄ ← (1 − a)v̄ + a·v·n/(n − 1), as in PyTorch. Layer norm: μ, v over the entries
of x, in training and inference alike.

References: Ioffe & Szegedy (2015); Ba, Kiros & Hinton (2016).
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from wonderland.core.errors import InputError
from wonderland.nn.layer import BATCH
from wonderland.nn.statistic import Statistic

__all__ = ["BatchNorm", "LayerNorm"]


class BatchNorm(eqx.Module):
    """Each neuron has mean β and standard deviation γ over the batch.

    Args:
        size: Number of neurons c.
        momentum: a, the share of the new batch in the running statistics.
        epsilon: ε.

    Attributes:
        scale: γ (c,).
        shift: β (c,).
        mean: μ̄ (c,), a statistic.
        variance: v̄ (c,), a statistic.

    >>> norm, X = BatchNorm(1), jnp.array([[1.0], [3.0]])
    >>> train = jax.vmap(lambda x: norm.training(x), axis_name="batch", out_axes=(0, None))
    >>> Y, norm = train(X)
    >>> Y.round(3).ravel().tolist(), norm.mean.value.round(3).tolist()
    ([-1.0, 1.0], [0.20000000298023224])
    """

    scale: jax.Array
    shift: jax.Array
    mean: Statistic
    variance: Statistic
    momentum: Statistic
    epsilon: float = eqx.field(static=True)

    decays: ClassVar[bool] = False

    def __init__(self, size: int, momentum: Any = 0.1, epsilon: float = 1e-5) -> None:
        self.scale, self.shift = jnp.ones(size), jnp.zeros(size)
        self.mean, self.variance = Statistic(jnp.zeros(size)), Statistic(jnp.ones(size))
        self.momentum = Statistic(jnp.asarray(momentum, jnp.float32))
        self.epsilon = epsilon

    def __call__(self, x: Any) -> Any:
        """With the running statistics."""
        return self._standard(x, self.mean.value, self.variance.value)

    def training(self, x: Any, *, key: Any = None) -> tuple[Any, "BatchNorm"]:
        """With the statistics of the batch, which is the mapped axis "batch"."""
        mean = _over_batch(x)
        variance = _over_batch((x - mean) ** 2)
        n = jax.lax.psum(1, BATCH)
        share = self.momentum.value.astype(x.dtype)
        fair = variance * (n / max(n - 1, 1))
        # Statistics are measured, not learnt: no gradient flows through what is remembered.
        now = [
            Statistic(jax.lax.stop_gradient((1.0 - share) * old.value + share * new))
            for old, new in ((self.mean, mean), (self.variance, fair))
        ]
        renewed = eqx.tree_at(lambda norm: (norm.mean, norm.variance), self, tuple(now))
        return self._standard(x, mean, variance), renewed

    def _standard(self, x: Any, mean: Any, variance: Any) -> Any:
        return self.scale * ((x - mean) * jax.lax.rsqrt(variance + self.epsilon)) + self.shift


def _over_batch(x: Any) -> Any:
    try:
        return jax.lax.pmean(x, BATCH)
    except NameError as error:
        raise InputError(
            "batch norm in training on one sample",
            'a batch, mapped as the axis "batch"',
            'Use jax.vmap(..., axis_name="batch", out_axes=(0, None)), or model(x) for inference',
        ) from error


class LayerNorm(eqx.Module):
    """The entries of each sample have mean β and standard deviation γ.

    Args:
        size: Number of neurons c.
        epsilon: ε.

    >>> LayerNorm(2)(jnp.array([1.0, 3.0])).round(3).tolist()
    [-1.0, 1.0]
    """

    scale: jax.Array
    shift: jax.Array
    epsilon: float = eqx.field(static=True)

    decays: ClassVar[bool] = False

    def __init__(self, size: int, epsilon: float = 1e-5) -> None:
        self.scale, self.shift = jnp.ones(size), jnp.zeros(size)
        self.epsilon = epsilon

    def __call__(self, x: Any) -> Any:
        """γ ⊙ (x − μ)/√(v + ε) + β."""
        centred = x - jnp.mean(x)
        rate = jax.lax.rsqrt(jnp.mean(centred**2) + self.epsilon)
        return self.scale * (centred * rate) + self.shift
