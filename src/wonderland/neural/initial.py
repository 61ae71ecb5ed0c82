"""The first weights of a multilayer perceptron, number for number those of scikit-learn.

    W_i, b_i ~ U(−a, a),   a = √(6/(c + c')), or √(2/(c + c')) behind a logistic activation

drawn layer by layer from a NumPy RandomState, so that with `shuffle=False` or `solver="lbfgs"` both
libraries walk the same way.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from wonderland.nn import MLP

__all__ = ["initial_weights", "with_weights"]


def initial_weights(
    sizes: Sequence[int], activation: Any, draws: np.random.RandomState
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(W, b) of each layer, float64.

    >>> [W.shape for W, _ in initial_weights((3, 5, 1), "relu", np.random.RandomState(0))]
    [(3, 5), (5, 1)]
    """
    factor = 2.0 if activation == "logistic" else 6.0
    made = []
    for inputs, outputs in pairwise(sizes):
        bound = sqrt(factor / (inputs + outputs))
        W = draws.uniform(-bound, bound, (inputs, outputs))
        made.append((W, draws.uniform(-bound, bound, outputs)))
    return made


def with_weights(model: MLP, weights: Sequence[tuple[Any, Any]]) -> MLP:
    """The network with these weights instead of its own."""
    flat = [jnp.asarray(np.asarray(a, np.float32)) for pair in weights for a in pair]
    return eqx.tree_at(
        lambda net: [leaf for linear in net.linears for leaf in (linear.weight, linear.bias)],
        model,
        flat,
    )
