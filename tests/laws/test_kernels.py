"""Every law of kernels over every kernel of the registry."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.laws.strategies import generators
from tests.registry import KERNELS

few = settings(max_examples=3)
every = pytest.mark.parametrize("part", KERNELS, ids=lambda part: part.name)
# Shapes are few, so that what is compiled for one example serves the next.
shapes = st.sampled_from([(6, 3, 1), (9, 4, 3)])


def tables(rng, shape):
    """X (n, d) and Z (m, d) with duplicates within and between them, away from the origin."""
    n, m, d = shape
    X, Z = rng.normal(size=(n, d)) + 1.0, rng.normal(size=(m, d)) + 1.0
    X[1], Z[0] = X[0], X[2]
    return X, Z


@every
@few
@given(rng=generators(), shape=shapes)
def test_matrices(part, rng, shape):
    kernel, (X, Z) = part.make(), tables(rng, shape)
    wl.testing.kernel_is_symmetric(kernel, X, Z)
    wl.testing.kernel_matrix_holds_its_pairs(kernel, X, Z)
    wl.testing.kernel_takes_sparse_tables(kernel, X, Z)


@every
@given(rng=generators(), scale=st.sampled_from([1e-3, 1.0, 30.0]))
def test_positive_semidefinite(part, rng, scale):
    X = scale * tables(rng, (25, 3, 2))[0]
    wl.testing.kernel_is_positive_semidefinite(part.make(), X)


@every
def test_gradients(part, rng):
    kernel, (X, _) = part.make(), tables(rng, (6, 3, 2))
    wl.testing.kernel_gradients_are_finite_differences(kernel, X[3], X[4])
    wl.testing.jit_is_eager(kernel, X[0], X[2])


@every
def test_composition(part, rng):
    wl.testing.kernels_compose(part.make(), wl.kernels.Gaussian(0.4), *tables(rng, (6, 3, 2)))


@every
def test_storage(part, rng, tmp_path):
    kernel, (X, Z) = part.make(), tables(rng, (6, 3, 2))
    wl.save(kernel, tmp_path / "kernel.wl")
    again = wl.load(tmp_path / "kernel.wl")
    assert wl.testing.same(again.matrix(X, Z), kernel.matrix(X, Z))
    assert wl.testing.same(again, kernel)
