"""What of a model is trained, what is not, and what weight decay leaves alone.

A trainable leaf is an inexact array that stands in no `Statistic`. Weight decay applies to
trainable leaves of two dimensions or more, outside of layers that say `decays = False` (norms,
embeddings): shrinking a bias, a scale or the place of a category makes no simpler function.
"""

from typing import Any

import equinox as eqx
import jax

__all__ = ["Statistic", "decaying", "partition", "trainable"]


class Statistic(eqx.Module):
    """An array inside a model that no optimiser touches: a running mean, a rate, a slope.

    Attributes:
        value: The array.

    >>> import jax.numpy as jnp
    >>> trainable({"weight": jnp.ones(2), "mean": Statistic(jnp.zeros(2))})
    {'mean': Statistic(value=False), 'weight': True}
    """

    value: Any


def _is_statistic(node: Any) -> bool:
    return isinstance(node, Statistic)


def _none_of(node: Any) -> Any:
    return jax.tree.map(lambda _: False, node)


def trainable(model: Any) -> Any:
    """A tree of the model's structure: True at each trainable leaf."""
    return jax.tree.map(
        lambda node: _none_of(node) if _is_statistic(node) else eqx.is_inexact_array(node),
        model,
        is_leaf=_is_statistic,
    )


def partition(model: Any) -> tuple[Any, Any]:
    """(parameters, rest): what is trained and what is not; `equinox.combine` joins them again.

    >>> import jax.numpy as jnp
    >>> partition({"weight": jnp.ones(2), "rate": Statistic(0.5)})[1]
    {'rate': Statistic(value=0.5), 'weight': None}
    """
    return eqx.partition(model, trainable(model))


def _spared(node: Any) -> bool:
    return _is_statistic(node) or getattr(type(node), "decays", True) is False


def decaying(model: Any) -> Any:
    """A tree of the model's structure: True at each leaf that weight decay shrinks.

    Call it on one model, not on models stacked along a further axis: biases are told by their
    dimension.

    >>> import jax.numpy as jnp
    >>> decaying({"weight": jnp.ones((2, 2)), "bias": jnp.ones(2)})
    {'bias': False, 'weight': True}
    """
    return jax.tree.map(
        lambda node: (
            _none_of(node) if _spared(node) else eqx.is_inexact_array(node) and node.ndim >= 2
        ),
        model,
        is_leaf=_spared,
    )
