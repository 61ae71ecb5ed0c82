"""What the outputs of a network mean: its loss, its score, and how raw outputs become answers.

    head          raw outputs z         ℓ(z, y)                                      answer
    bits          1                     log(1 + e^z) − yz,  y ∈ {0, 1}               1/(1 + e^{−z})
    classes       k                     logsumexp(z) − z_y                           softmax(z)
    labels        k                     Σ_j bits(z_j, y_j)                           1/(1 + e^{−z})
    squared       t                     ½‖z − y‖²                                    z
    poisson       t                     Σ e^z − yz + y log y − y                     e^z
    gaussian      μ, s (2t)             Σ ½(log 2π + s + (y − μ)²e^{−s})             μ, √e^s
    quantile      t·q                   Σ max(τr, (τ − 1)r), r = y − z_τ             z_τ, increasing

Losses are sums over outputs, as is the gradient of scikit-learn's networks (whose printed loss is
the mean over outputs). Outputs of one kind lie together: (μ_1 … μ_t, s_1 … s_t).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["BITS", "CLASSES", "GAUSSIAN", "LABELS", "POISSON", "SQUARED", "Head", "quantile"]

LOG_2PI = 1.8378770664093453


@dataclass(frozen=True)
class Head:
    """A kind of output.

    Attributes:
        name: As above.
        activation: scikit-learn's name of what turns raw outputs into answers.
        loss: (raw outputs (c,), target of one sample) → number.
        answer: Raw outputs (n, c) → the mean, probabilities, or quantiles (n, …).
        score: (raw outputs (n, c), targets, weights) → number, higher is better.
    """

    name: str
    activation: str
    loss: Callable[[Any, Any], Any]
    answer: Callable[[Any], Any]
    score: Callable[[Any, Any, Any], Any]


def bits_loss(z: Any, y: Any) -> Any:
    """log(1 + e^z) − yz, summed over outputs."""
    return jnp.sum(jnp.logaddexp(z, 0.0) - jnp.asarray(y, z.dtype).reshape(z.shape) * z)


def classes_loss(z: Any, y: Any) -> Any:
    """logsumexp(z) − z_y."""
    # A sum over an indicator: the derivative of an indexed entry would be a scatter.
    own = jnp.sum(jnp.where(jnp.arange(z.shape[-1]) == y, z, 0.0))
    return jax.nn.logsumexp(z) - own


def squared_loss(z: Any, y: Any) -> Any:
    """½‖z − y‖²."""
    return 0.5 * jnp.sum((z - y.reshape(z.shape)) ** 2)


def poisson_loss(z: Any, y: Any) -> Any:
    """Half the deviance, e^z − yz + y log y − y."""
    y = y.reshape(z.shape)
    return jnp.sum(jnp.exp(z) - y * z + jax.scipy.special.xlogy(y, y) - y)


def gaussian_loss(z: Any, y: Any) -> Any:
    """½(log 2π + s + (y − μ)²e^{−s}), s = log σ²."""
    mean, spread = split(z)
    return jnp.sum(
        0.5 * (LOG_2PI + spread + (y.reshape(mean.shape) - mean) ** 2 * jnp.exp(-spread))
    )


def split(z: Any) -> tuple[Any, Any]:
    """(μ, log σ²); the latter is held within ±14, so that no sample explains itself perfectly."""
    mean, spread = jnp.split(z, 2, axis=-1)
    return mean, 14.0 * jnp.tanh(spread / 14.0)


def accuracy(z: Any, y: Any, weight: Any) -> Any:
    """Share of samples that are right (in all their labels)."""
    if y.ndim > 1:
        right = jnp.all((z > 0) == (y > 0), axis=-1)
    elif z.shape[-1] == 1:
        right = (z[:, 0] > 0) == (y > 0)
    else:
        right = jnp.argmax(z, axis=-1) == y
    return jnp.sum(right * weight) / jnp.sum(weight)


def r2_of(answer: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """The weighted coefficient of determination, averaged over outputs."""

    def r2(z: Any, y: Any, weight: Any) -> Any:
        mean = answer(z).reshape(len(y), -1)
        target, share = y.reshape(len(y), -1), (weight / weight.sum())[:, None]
        centre = jnp.sum(share * target, axis=0)
        total = jnp.sum(share * (target - centre) ** 2, axis=0)
        rest = jnp.sum(share * (target - mean) ** 2, axis=0)
        return jnp.mean(1.0 - rest / jnp.where(total > 0, total, 1.0))

    return r2


def first_half(z: Any) -> Any:
    """μ."""
    return split(z)[0]


def _same(z: Any) -> Any:
    return z


BITS = Head("bits", "logistic", bits_loss, jax.nn.sigmoid, accuracy)
CLASSES = Head("classes", "softmax", classes_loss, jax.nn.softmax, accuracy)
LABELS = Head("labels", "logistic", bits_loss, jax.nn.sigmoid, accuracy)
SQUARED = Head("squared", "identity", squared_loss, _same, r2_of(_same))
POISSON = Head("poisson", "exp", poisson_loss, jnp.exp, r2_of(jnp.exp))
GAUSSIAN = Head("gaussian", "identity", gaussian_loss, first_half, r2_of(first_half))


@dataclass(frozen=True)
class _Quantiles:
    """Loss and answer for given levels; equal for equal levels, so that programs are shared."""

    levels: tuple[float, ...]

    def answer(self, z: Any) -> Any:
        """Levels in increasing order: the lowest, and increments that are never negative."""
        z = z.reshape(*z.shape[:-1], -1, len(self.levels))
        steps = jnp.logaddexp(z[..., 1:], 0.0)
        return jnp.cumsum(jnp.concatenate([z[..., :1], steps], axis=-1), axis=-1)

    def loss(self, z: Any, y: Any) -> Any:
        """Σ max(τr, (τ − 1)r)."""
        found = self.answer(z)
        r, level = y.reshape(-1, 1) - found, jnp.asarray(self.levels, z.dtype)[None, :]
        return jnp.sum(jnp.maximum(level * r, (level - 1.0) * r))

    def score(self, z: Any, y: Any, weight: Any) -> Any:
        """Minus the mean loss."""
        each = jax.vmap(self.loss)(z, y)
        return -jnp.sum(each * weight) / jnp.sum(weight)


def quantile(levels: tuple[float, ...]) -> Head:
    """The head of these levels.

    >>> quantile((0.1, 0.5)).answer(jnp.zeros((1, 2))).round(2).tolist()
    [[[0.0, 0.6899999976158142]]]
    """
    made = _Quantiles(levels)
    return Head("quantile", "identity", made.loss, made.answer, made.score)
