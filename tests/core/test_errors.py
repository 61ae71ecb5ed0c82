"""Errors: three parts, kept through pickling, and names that resemble the one that came."""

import copy
import pickle

import pytest

from wonderland.core.errors import (
    InputError,
    InputTypeError,
    NotFiniteError,
    StoreError,
    nearest,
    optional,
)


@pytest.mark.parametrize("kind", [InputError, InputTypeError, StoreError])
def test_three_parts_survive_pickling_and_copying(kind):
    error = kind("alpha is -1", "a number ≥ 0.", "Pass alpha=0")
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is kind
        assert (again.came, again.expected, again.todo) == (
            "alpha is -1",
            "a number ≥ 0.",
            "Pass alpha=0",
        )
        assert str(again) == "alpha is -1. Expected a number ≥ 0. Pass alpha=0."


def test_they_are_what_python_users_catch():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, TypeError)
    assert issubclass(InputTypeError, ValueError)
    assert issubclass(StoreError, InputError)
    assert issubclass(NotFiniteError, ArithmeticError)


def test_no_part_ends_twice():
    assert ".." not in str(InputError("a.", "b.", "c."))


def test_nearest_shows_what_resembles_else_everything():
    assert nearest("choleski", ["cholesky", "svd"]) == "Did you mean 'cholesky'"
    everything = nearest("zzz", ["cholesky", "svd"])
    assert "'cholesky'" in everything
    assert "'svd'" in everything
    assert nearest(7, iter(["svd"])) == "Choose 'svd'"


def test_a_missing_extra_is_one_sentence():
    with pytest.raises(ImportError, match=r'pip install "wonderland\[plot\]"') as caught:
        optional("no_such_module.deep", "plot")
    assert str(caught.value).startswith("This needs the optional package no_such_module")
    assert optional("math", "plot").pi > 3
