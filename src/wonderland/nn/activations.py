"""Activations: elementwise functions that keep layers from collapsing into one.

    sigmoid_a(s) = 1/(1 + e^{−as})        → 1[s ≥ 0] as a → ∞          softplus(s) = log(1 + e^s)
    relu(s)      = max(s, 0)              leaky_a(s) = s, as for s < 0   PReLU: leaky, a learnt
    elu_a(s)     = s, a(e^s − 1) for s < 0                               silu(s) = s·sigmoid(s)
    gelu(s)      = s·Φ(s), Φ the normal distribution function            tanh, identity

At the kinks the derivative is that from the left, as in PyTorch. A string becomes a
function once, in `activation`.

References: Nair & Hinton (2010); He et al. (2015) for PReLU; Clevert et al. (2016) for ELU;
Hendrycks & Gimpel (2016) for GELU and SiLU.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.nn.statistic import Statistic

__all__ = [
    "ELU",
    "LeakyReLU",
    "PReLU",
    "Sigmoid",
    "activation",
    "elu",
    "gelu",
    "identity",
    "leaky_relu",
    "relu",
    "sigmoid",
    "silu",
    "softplus",
    "tanh",
]


def identity(x: Any) -> Any:
    """s."""
    return x


def relu(x: Any) -> Any:
    """max(s, 0); the derivative at 0 is 0, and NaN stays NaN.

    >>> relu(jnp.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return jax.nn.relu(x)


def leaky_relu(x: Any, slope: Any = 0.01) -> Any:
    """Itself for s ≥ 0, slope·s below.

    >>> leaky_relu(jnp.array([-1.0, 2.0]), 0.5).tolist()
    [-0.5, 2.0]
    """
    return jnp.where(x > 0, x, slope * x)


def sigmoid(x: Any, slope: Any = 1.0) -> Any:
    """1/(1 + exp(−slope·s)).

    >>> sigmoid(jnp.array([-1.0, 0.0, 1.0]), 100.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return jax.nn.sigmoid(slope * x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent, 2·sigmoid(2s) − 1."""
    return jnp.tanh(x)


def softplus(x: Any) -> Any:
    """log(1 + exp s), without overflow."""
    return jnp.logaddexp(x, 0.0)


def elu(x: Any, scale: Any = 1.0) -> Any:
    """Itself for s ≥ 0, scale·(exp s − 1) below.

    >>> elu(jnp.array([-1e4, 2.0])).tolist()
    [-1.0, 2.0]
    """
    # The branch not taken must be finite too, or its derivative would be infinity times zero.
    return jnp.where(x > 0, x, scale * jnp.expm1(jnp.where(x > 0, 0.0, x)))


def gelu(x: Any) -> Any:
    """s·Φ(s) with the exact normal distribution function."""
    return jax.nn.gelu(x, approximate=False)


def silu(x: Any) -> Any:
    """s·sigmoid(s)."""
    return jax.nn.silu(x)


class Sigmoid(eqx.Module):
    """The sigmoid of a given slope, which is no parameter to train.

    Args:
        slope: a; the larger, the closer to a step.

    >>> Sigmoid(2.0)(jnp.zeros(1)).tolist()
    [0.5]
    """

    slope: Statistic

    def __init__(self, slope: Any = 1.0) -> None:
        self.slope = Statistic(jnp.asarray(slope))

    def __call__(self, x: Any) -> Any:
        """sigmoid_a(s)."""
        return sigmoid(x, self.slope.value.astype(x.dtype))


class LeakyReLU(eqx.Module):
    """The leaky rectifier of a given slope, which is no parameter to train.

    Args:
        slope: a, for s < 0.

    >>> LeakyReLU(0.5)(-jnp.ones(1)).tolist()
    [-0.5]
    """

    slope: Statistic

    def __init__(self, slope: Any = 0.01) -> None:
        self.slope = Statistic(jnp.asarray(slope))

    def __call__(self, x: Any) -> Any:
        """Itself for s ≥ 0, as below."""
        return leaky_relu(x, self.slope.value.astype(x.dtype))


class ELU(eqx.Module):
    """The exponential linear unit of a given scale, which is no parameter to train.

    Args:
        scale: a: the value at −∞ is −a.

    >>> ELU(2.0)(jnp.array([-1e4])).tolist()
    [-2.0]
    """

    scale: Statistic

    def __init__(self, scale: Any = 1.0) -> None:
        self.scale = Statistic(jnp.asarray(scale))

    def __call__(self, x: Any) -> Any:
        """Itself for s ≥ 0, a(exp s − 1) below."""
        return elu(x, self.scale.value.astype(x.dtype))


class PReLU(eqx.Module):
    """The leaky rectifier with learnt slopes, one for each neuron.

    Args:
        size: Number of neurons; None for one slope that all share.
        slope: Where learning begins.

    Attributes:
        slope: (size,) or ().

    >>> PReLU(2)(jnp.array([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    slope: jax.Array

    def __init__(self, size: int | None = None, slope: float = 0.25) -> None:
        self.slope = jnp.full(() if size is None else (size,), slope)

    def __call__(self, x: Any) -> Any:
        """Itself for s ≥ 0, a_j·s_j below."""
        return leaky_relu(x, self.slope.astype(x.dtype))


NAMES: dict[str, Callable[[Any], Any]] = {
    "elu": elu,
    "gelu": gelu,
    "identity": identity,
    "leaky_relu": leaky_relu,
    "relu": relu,
    "sigmoid": sigmoid,
    "silu": silu,
    "softplus": softplus,
    "tanh": tanh,
}
# What scikit-learn and PyTorch call some of them.
ALSO = {"logistic": "sigmoid", "linear": "identity", "swish": "silu"}


def activation(name: Any, size: int | None = None) -> Callable[[Any], Any]:
    """The activation of that name, or the function itself.

    Args:
        name: One of the names above, "prelu", or any function of an array.
        size: Number of neurons, for "prelu".

    >>> activation("relu") is relu, activation("prelu", 3).slope.shape
    (True, (3,))
    >>> activation("rel")
    Traceback (most recent call last):
    ...
    wonderland.core.errors.InputError: activation is 'rel'. ... Did you mean 'relu' ...
    """
    if callable(name):
        return name
    if not isinstance(name, str):
        raise InputTypeError(
            f"activation is {name!r}",
            "the name of an activation or a function of an array",
            "Pass activation='relu' or activation=wl.nn.PReLU(64)",
        )
    if name == "prelu":
        return PReLU(size)
    known = ALSO.get(name, name)
    if known not in NAMES:
        raise InputError(
            f"activation is {name!r}",
            "the name of an activation or a function of an array",
            nearest(name, [*NAMES, "prelu", *ALSO]),
        )
    return NAMES[known]
