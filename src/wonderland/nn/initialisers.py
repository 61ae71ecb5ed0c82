"""Where learning begins: random weights whose scale keeps signals alive through many layers.

    He           N(0, g²·2/c)                       keeps the second moment behind a relu
    Glorot       U(±g·√(6/(c + c')))                balances signals forward and gradients backward
    orthogonal   g·Q, QᵀQ = I (or QQᵀ = I)          keeps every length

for a weight (c, c') from c inputs to c' outputs; g is the gain. Weights are drawn on the host, by
NumPy's Philox seeded with the key, so that a network is made without compiling anything; inside
`jit` or `vmap` (a traced key) JAX draws them, from the same distributions but other numbers.

References: Glorot & Bengio (2010); He et al. (2015); Saxe et al. (2014).
"""

from collections.abc import Callable
from math import prod, sqrt
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import is_traced
from wonderland.core.errors import InputError, InputTypeError, nearest

__all__ = ["Source", "glorot", "he", "initialiser", "orthogonal", "source"]


class Source:
    """A stream of random arrays from one key; each draw moves it on.

    Args:
        key: A JAX key (typed or raw), a whole number, or a NumPy Generator.

    >>> draws = Source(0)
    >>> draws.normal((2, 3)).shape, draws.uniform((4,)).dtype.name
    ((2, 3), 'float32')
    """

    def __init__(self, key: Any) -> None:
        self._count = 0
        self._key: Any = key if is_traced(key) else None
        self._host = None if is_traced(key) else _generator(key)

    def _next(self) -> Any:
        self._count += 1
        return jax.random.fold_in(self._key, self._count)

    def normal(self, shape: tuple[int, ...]) -> jax.Array:
        """Standard normal numbers."""
        if self._host is None:
            return jax.random.normal(self._next(), shape)
        return jnp.asarray(self._host.standard_normal(shape, dtype=np.float32))

    def uniform(self, shape: tuple[int, ...]) -> jax.Array:
        """Uniform numbers in [−1, 1)."""
        if self._host is None:
            return jax.random.uniform(self._next(), shape, minval=-1.0)
        return jnp.asarray(2.0 * self._host.random(shape, dtype=np.float32) - 1.0)


def _generator(key: Any) -> np.random.Generator:
    if isinstance(key, np.random.Generator):
        return key
    if isinstance(key, Integral):
        return np.random.Generator(np.random.Philox(int(key)))
    if not isinstance(key, jax.Array | np.ndarray):
        raise InputTypeError(
            f"key is {key!r}",
            "a JAX key, a whole number or a NumPy Generator",
            "Pass key=jax.random.key(0), or key=0",
        )
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    words = np.asarray(jax.random.key_data(key) if typed else key)
    return np.random.Generator(np.random.Philox([int(word) for word in words.ravel()]))


def source(key: Any) -> Source:
    """The key itself where it is a Source already, so that parts of a network share one stream."""
    return key if isinstance(key, Source) else Source(key)


def he(shape: tuple[int, ...], *, key: Any, gain: float = 1.0) -> jax.Array:
    """Normal weights of variance g²·2/c (…, c, c').

    >>> he((3, 5), key=0).shape
    (3, 5)
    """
    return jnp.asarray(gain * sqrt(2.0 / shape[-2]), jnp.float32) * source(key).normal(shape)


def glorot(shape: tuple[int, ...], *, key: Any, gain: float = 1.0) -> jax.Array:
    """Uniform weights within ±g√(6/(c + c')) (…, c, c').

    >>> bool(abs(glorot((3, 3), key=0)).max() <= 1.0)
    True
    """
    bound = gain * sqrt(6.0 / (shape[-2] + shape[-1]))
    return jnp.asarray(bound, jnp.float32) * source(key).uniform(shape)


def orthogonal(shape: tuple[int, ...], *, key: Any, gain: float = 1.0) -> jax.Array:
    """g times a matrix with orthonormal rows or columns, whichever are fewer (c, c').

    >>> Q = orthogonal((4, 2), key=0)
    >>> bool(jnp.allclose(Q.T @ Q, jnp.eye(2), atol=1e-5))
    True
    """
    rows, columns = prod(shape[:-1]), shape[-1]
    drawn = source(key).normal((max(rows, columns), min(rows, columns)))
    # A QR whose R has a positive diagonal makes Q uniform over the orthogonal matrices.
    Q, R = _qr(drawn)
    Q = Q * jnp.sign(jnp.diagonal(R))[None, :]
    return (gain * (Q if rows >= columns else Q.T)).reshape(shape)


def _qr(drawn: jax.Array) -> tuple[Any, Any]:
    if is_traced(drawn):
        return jnp.linalg.qr(drawn)
    Q, R = np.linalg.qr(np.asarray(drawn))
    return jnp.asarray(Q), jnp.asarray(R)


NAMES: dict[str, Callable[..., jax.Array]] = {"glorot": glorot, "he": he, "orthogonal": orthogonal}


def initialiser(name: Any) -> Callable[..., jax.Array]:
    """The initialiser of that name, or the function itself.

    >>> initialiser("he") is he
    True
    """
    if callable(name):
        return name
    if name not in NAMES:
        raise InputError(
            f"initialiser is {name!r}",
            "the name of an initialiser, or a function (shape, *, key)",
            nearest(name, NAMES),
        )
    return NAMES[name]
