"""Chance can be replayed from whatever scikit-learn calls a random_state."""

import jax
import numpy as np
import pytest

from wonderland.core.errors import InputError
from wonderland.core.random import key_of, seed_of


def test_integers_are_themselves():
    assert seed_of(7) == 7
    assert seed_of(np.int64(7)) == 7
    one, two = key_of(3), key_of(np.int32(3))
    assert bool((jax.random.key_data(one) == jax.random.key_data(two)).all())


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_move_on_and_can_be_replayed(make):
    shared = make(5)
    first, second = seed_of(shared), seed_of(shared)
    assert first != second
    again = make(5)
    assert (seed_of(again), seed_of(again)) == (first, second)


def test_none_is_fresh():
    assert len({seed_of(None) for _ in range(5)}) == 5


@pytest.mark.parametrize("wrong", ["7", 1.5, [1]])
def test_anything_else_is_refused(wrong):
    with pytest.raises(InputError, match="random_state"):
        seed_of(wrong)
