"""Predictions of a network for any number of rows, in few compiled programs.

Rows are filled up to the next size of a short list and cut into pieces of the largest, so that no
new number of rows compiles anything after these. Inference is in float64: what a sample gives does
not depend on the rows beside it beyond the last digits.
"""

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import numpy as np

from wonderland.core.arrays import in_float64
from wonderland.training.parameters import Frozen

__all__ = ["raw_outputs"]

SIZES = (16, 256, 4096)


def raw_outputs(model: Any, X: Any) -> np.ndarray:
    """f(x_i) for each row of X (n, d), float64 (n, c)."""
    X = np.asarray(X, np.float64)
    pieces = [X[start : start + SIZES[-1]] for start in range(0, max(len(X), 1), SIZES[-1])]
    arrays, rest = eqx.partition(model, eqx.is_array)
    program = _program(Frozen(rest))
    return np.concatenate([_piece(program, arrays, piece) for piece in pieces])


def _piece(program: Any, arrays: Any, X: np.ndarray) -> np.ndarray:
    size = next(size for size in SIZES if len(X) <= size)
    filled = np.zeros((size, *X.shape[1:]))
    filled[: len(X)] = X
    return np.asarray(in_float64(program)(arrays, filled))[: len(X)]


@lru_cache(maxsize=128)
def _program(rest: Frozen) -> Any:
    return jax.jit(lambda arrays, X: jax.vmap(eqx.combine(arrays, rest.tree))(X))
