"""The order of the samples: each epoch a permutation drawn on the host from (seed, epoch).

A permutation depends on nothing but the words of the key, the number of the epoch and the number of
samples, so that a fit among many, a resumed one and a streamed one see the same minibatches.
"""

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from wonderland.training.epoch import Span

__all__ = ["MOST", "Plan", "key_words", "order", "plan", "room_for", "spans"]

MOST = 1024  # updates in one call of the compiled program: a host that is asked can still answer
ONCE = 2 * 10**11  # FLOPs of one call, roughly


class Plan(NamedTuple):
    """How n samples become updates.

    Attributes:
        samples: n.
        batch: Samples of a minibatch.
        accumulate: Minibatches of an update.
        steps: Updates of an epoch, the one of the tail not counted.
        tail: Samples of a last smaller minibatch that is made apart.
    """

    samples: int
    batch: int
    accumulate: int
    steps: int
    tail: int

    @property
    def updates(self) -> int:
        """Updates of an epoch."""
        return self.steps + (self.tail > 0)


def plan(count: int, batch: int, accumulate: int, *, apart: bool) -> Plan:
    """Cut n samples into minibatches; `apart` where a last smaller one may not be filled up.

    >>> plan(10, 4, 1, apart=False).steps, plan(10, 4, 1, apart=True).tail
    (3, 2)
    """
    each = batch * accumulate
    if apart:
        return Plan(count, batch, accumulate, count // each, count % each)
    return Plan(count, batch, accumulate, math.ceil(count / each), 0)


def room_for(parameters: int, each: int) -> int:
    """Updates of one call, so that it takes about a second: 6 FLOPs a parameter and sample."""
    return int(np.clip(ONCE // (6 * max(1, parameters) * each), 8, MOST))


def key_words(key: Any) -> tuple[np.ndarray, str]:
    """The words of a random key on the host, and its kind."""
    if isinstance(key, int | np.integer):
        key = jax.random.key(int(key))
    if not jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.wrap_key_data(key)
    return np.asarray(jax.random.key_data(key)), str(jax.random.key_impl(key))


def order(words: np.ndarray, epoch: int, count: int, *, shuffle: bool = True) -> np.ndarray:
    """The samples of an epoch in their order (n,).

    >>> words = np.array([0, 7], np.uint32)
    >>> sorted(order(words, 3, 5).tolist())
    [0, 1, 2, 3, 4]
    """
    places = np.arange(count, dtype=np.int32)
    if shuffle:
        np.random.default_rng([*words.tolist(), epoch]).shuffle(places)
    return places


def spans(
    plan: Plan, places: np.ndarray, *, most: int | None = None, room: int = MOST
) -> list[Span]:
    """The minibatches of an epoch in pieces of one shape, for one call of the program each.

    Args:
        plan: How many there are.
        places: The samples in their order.
        most: Updates that all pieces have room for; None for those there are.
        room: The most updates of one piece.
    """
    each = plan.batch * plan.accumulate
    body = places[: len(places) - plan.tail]
    total = plan.steps if most is None else most
    pieces = max(1, math.ceil(total / room))
    size = math.ceil(total / pieces) if total else 1
    flat = np.full(pieces * size * each, -1, np.int32)
    flat[: len(body)] = body
    rows = flat.reshape(pieces, size, plan.accumulate, plan.batch)
    tail = places[len(places) - plan.tail :] if plan.tail else None
    return [
        Span(
            rows[i],
            np.int32(min(size, max(0, plan.steps - i * size))),
            tail,
            np.bool_(i == pieces - 1),
        )
        for i in range(pieces)
    ]
