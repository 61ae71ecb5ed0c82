"""Every law of bases over every basis of the registry."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from tests.laws.strategies import generators
from tests.registry import BASES

every = pytest.mark.parametrize("part", BASES, ids=lambda part: part.name)


def table(part, rng, d):
    return rng.uniform(-3, 3, size=(6, part.features or d))


@every
@given(rng=generators(), d=st.integers(1, 3))
def test_columns(part, rng, d):
    basis, X = part.make(), table(part, rng, d)
    wl.testing.basis_is_the_same_on_host_and_jax(basis, X)
    wl.testing.basis_has_one_name_per_column(basis, X)
    wl.testing.basis_maps_each_row_alone(basis, X)
    wl.testing.doubled_columns_round_to_the_host(basis, X)


@every
def test_derivatives(part, rng):
    basis, X = part.make(), table(part, rng, 2)
    weights = rng.normal(size=np.shape(basis(X)))
    wl.testing.gradient_is_finite_difference(lambda X: jnp.sum(weights * basis(X)), X)
    wl.testing.jit_is_eager(basis, X)
    wl.testing.vmap_is_a_loop(lambda x: basis(x[None, :])[0], X)


@every
def test_storage(part, rng, tmp_path):
    basis, X = part.make(), table(part, rng, 2)
    wl.save(basis, tmp_path / "basis.wl")
    again = wl.load(tmp_path / "basis.wl")
    np.testing.assert_array_equal(again(X), basis(X))
    assert wl.testing.same(again, basis)
