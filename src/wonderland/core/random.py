"""Chance that can be replayed: every `random_state` becomes one JAX key, in one place."""

import numbers
from typing import Any

import jax
import numpy as np

from wonderland.core.errors import InputError

__all__ = ["key_of", "seed_of"]


def seed_of(random_state: Any) -> int:
    """An integer seed from what scikit-learn calls `random_state`.

    None draws a fresh seed; an int is itself; a NumPy generator gives its next number, so that a
    shared generator moves on.

    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise InputError(
        f"random_state is {random_state!r}",
        "None, an integer, or a NumPy RandomState or Generator",
        "Pass an integer for a fit that can be repeated",
    )


def key_of(random_state: Any) -> jax.Array:
    """A typed JAX key from a `random_state`.

    >>> key_of(0).shape
    ()
    """
    return jax.random.key(seed_of(random_state))
