"""Kernel values by XLA beside those of the host: every kernel of an inner product, any size."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import wonderland as wl
from wonderland.kernels.panels import TILE, Panels, filled, square, sums

K = wl.kernels
ONES = [K.Gaussian(0.2), K.Linear(), K.Polynomial(3, 0.2, 1.0), K.Sigmoid(0.2, 0.1), K.Cosine()]


@pytest.mark.parametrize("kernel", [*ONES, 2.0 * K.Gaussian(0.2)], ids=lambda k: type(k).__name__)
def test_panels_hold_the_kernel(rng, kernel):
    X, Z, V = rng.normal(size=(90, 4)), rng.normal(size=(530, 4)), rng.normal(size=(530, 2))
    close = {"rtol": 1e-4, "atol": 1e-4}
    panels = kernel.panels(X, Z)
    np.testing.assert_allclose(sums(panels, V), kernel.matrix(X, Z) @ V, **close)
    exact = kernel.matrix(X)
    alone = kernel.panels(X)
    np.testing.assert_allclose(square(alone, np.empty((90, 90), np.float32)), exact, **close)
    block = filled(alone, jnp.zeros(200 * 200, jnp.float32), 128)
    seen = np.asarray(block)[: 128 * 128].reshape(128, 128)
    np.testing.assert_allclose(seen[:90, :90], exact, **close)


def test_several_tiles_of_a_square(rng):
    X = rng.normal(size=(TILE + 70, 3))
    kernel = K.Gaussian(0.3)
    out = np.empty((len(X), len(X)), np.float32)
    assert square(kernel.panels(X), out) is out
    np.testing.assert_allclose(out, kernel.matrix(X), atol=2e-6)


def test_several_calls_of_a_sum(rng):
    left = rng.normal(size=(8192 + 3000, 2)).astype(np.float32)
    right, V = left[:700], rng.normal(size=(700, 1))
    found = sums(Panels(K.Linear(), left, right), V)
    np.testing.assert_allclose(found, left @ (right.T @ V), rtol=1e-3, atol=1e-3)


def test_no_panels_where_float32_would_be_felt_or_tables_are_sparse(rng):
    X = 1e3 * rng.normal(size=(5, 2))
    assert K.Gaussian(1.0).panels(X) is None
    assert K.Gaussian(1.0).panels(sp.csr_array(np.eye(3))) is None
    assert K.Linear().panels(sp.csr_array(np.eye(3))) is None
    assert (K.Linear() + K.Gaussian(1.0)).panels(np.eye(3)) is None
    with pytest.raises(NotImplementedError):
        K.Laplace(1.0).finish(jnp.zeros(1))
