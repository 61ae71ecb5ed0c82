"""Radial bumps: scikit-learn's Gaussian kernel, one variable or many, refused shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import wonderland as wl
from wonderland.core.errors import InputError


@pytest.mark.parametrize("d", [1, 3])
def test_the_gaussian_kernel(rng, d):
    X, centres = rng.normal(size=(6, d)), rng.normal(size=(4, d))
    expected = rbf_kernel(X, centres, gamma=1 / (2 * 0.7**2))
    np.testing.assert_allclose(wl.bases.RadialBasis(centres, 0.7)(X), expected, rtol=1e-10)


def test_centres_of_one_variable_may_be_flat(rng):
    X = rng.normal(size=(5, 1))
    flat, column = [0.0, 1.0], [[0.0], [1.0]]
    np.testing.assert_array_equal(
        wl.bases.RadialBasis(flat, 1.0)(X), wl.bases.RadialBasis(column, 1.0)(X)
    )


@pytest.mark.parametrize(
    ("centres", "width"),
    [([0.0], 0.0), ([0.0], -1.0), ([0.0], np.nan), ([np.nan], 1.0), (np.zeros((1, 1, 1)), 1.0)],
)
def test_refused_shapes(centres, width):
    with pytest.raises(InputError, match="centres"):
        wl.bases.RadialBasis(centres, width)


def test_samples_must_live_where_the_centres_do(rng):
    with pytest.raises(InputError, match="X has 3 columns, the centres have 2"):
        wl.bases.RadialBasis(np.eye(2), 1.0)(rng.normal(size=(4, 3)))


def test_centres_and_width_are_differentiable(rng):
    """A basis is a Module: its numbers are parameters like any other."""
    X = rng.normal(size=(5, 1))

    def total(centres, width):
        basis = wl.bases.RadialBasis(np.zeros((2, 1)), 1.0)
        object.__setattr__(basis, "centres", centres)
        object.__setattr__(basis, "width", width)
        return jnp.sum(basis(jnp.asarray(X)) ** 2)

    wl.testing.gradient_is_finite_difference(total, np.array([[0.3], [-1.0]]), 0.8)
    assert jax.tree.leaves(wl.bases.RadialBasis([0.0], 1.0))
