"""Kernel matrices where arithmetic is hard: many tiles, float32, large offsets, exact zeros."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import pairwise_kernels

import wonderland as wl
from wonderland.kernels import wide
from wonderland.kernels.wide import SIDE


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian", "sigmoid", "cosine"])
def test_many_tiles_beside_scikit_learn(rng, name):
    X, Z = rng.normal(size=(SIDE + 90, 4)), rng.normal(size=(2 * SIDE + 7, 4))
    given = {} if name in ("linear", "cosine") else {"gamma": 0.2}
    kernel = wl.kernels.resolve(name, X, **given)
    close = {"rtol": 1e-10, "atol": 1e-12}
    expected = pairwise_kernels(X, Z, metric=name, **given)
    np.testing.assert_allclose(kernel.matrix(X, Z), expected, **close)
    np.testing.assert_allclose(kernel.matrix(sp.csr_array(X), Z), expected, **close)
    np.testing.assert_allclose(kernel.matrix(Z), pairwise_kernels(Z, metric=name, **given), **close)
    V = rng.normal(size=(len(Z), 2))
    np.testing.assert_allclose(kernel.apply(X, Z, V), expected @ V, rtol=1e-9, atol=1e-9)
    out = np.empty((len(X), len(Z)), np.float32)
    assert kernel.matrix(X, Z, out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_float32_stays_float32_and_accurate(rng):
    """Also where γ‖x‖² is large, or the data lie far from the origin."""
    for scale, offset, gamma in ((1.0, 0.0, 0.1), (1.0, 1e4, 0.1), (30.0, 0.0, 1.0)):
        X = (scale * rng.normal(size=(300, 5)) + offset).astype(np.float32)
        X[1] = X[0] + np.float32(0.01 * scale)
        exact = np.exp(-gamma * cdist(X.astype(float), X.astype(float), "sqeuclidean"))
        K = wl.kernels.Gaussian(gamma).matrix(X)
        assert K.dtype == np.float32
        np.testing.assert_allclose(K, exact, rtol=0, atol=3e-6)


def test_far_from_the_origin(rng):
    X = rng.normal(size=(50, 3)) + 1e6
    X[7] = X[3]
    exact = np.exp(-cdist(X, X, "sqeuclidean"))
    K = wl.kernels.Gaussian(1.0).matrix(X)
    np.testing.assert_allclose(K, exact, rtol=0, atol=1e-13)
    assert np.all(K.diagonal() == 1.0)
    rough = wl.kernels.Matern(1.0, nu=0.5)
    np.testing.assert_allclose(rough.matrix(X), np.exp(-cdist(X, X)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(rough.matrix(X, X), np.exp(-cdist(X, X)), rtol=0, atol=1e-12)
    assert rough.matrix(X, X)[3, 7] == 1.0


def test_gamma_by_name(rng):
    X = rng.normal(size=(20, 4)) * 3.0
    assert wl.kernels.resolve("rbf", X, gamma="scale").gamma == 1 / (4 * X.var())
    sparse = wl.kernels.resolve("rbf", sp.csr_array(X), gamma="scale").gamma
    np.testing.assert_allclose(sparse, 1 / (4 * X.var()))
    assert wl.kernels.resolve("rbf", X, gamma="auto").gamma == 0.25
    assert wl.kernels.resolve("rbf", np.ones((3, 2)), gamma="scale").gamma == 1.0


def test_functions_of_pairs_and_of_tables(rng):
    X = rng.normal(size=(6, 3))
    calls = [
        lambda A, B: A @ B.T,
        lambda x, z: x @ z,
        lambda x, z: float(sum(a * b for a, b in zip(x.tolist(), z.tolist(), strict=True))),
    ]
    for function in calls:
        kernel = wl.kernels.resolve(function, X)
        np.testing.assert_allclose(kernel.matrix(X, X[:2]), X @ X[:2].T, rtol=1e-12)
        np.testing.assert_allclose(kernel.matrix(X), X @ X.T, rtol=1e-12)
    assert not wl.kernels.resolve(calls[0], X).pairs


def test_wrong_functions_are_told(rng):
    X = rng.normal(size=(6, 3))
    with pytest.raises(wl.InputError, match=r"returned shape \(2, 3\).*Return one row per row"):
        wl.kernels.resolve(lambda A, B: A, X)
    with pytest.raises(wl.InputError, match="fails on two tables"):
        wl.kernels.resolve(lambda A, B: A.nothing, X)
    with pytest.raises(wl.InputError, match="a name"):
        wl.kernels.resolve(3, X)
    with pytest.raises(wl.InputError, match="'rbf'"):
        wl.kernels.resolve("rbb", X)
    for wrong in (
        lambda: wl.kernels.Gaussian(-1.0),
        lambda: wl.kernels.Gaussian(np.nan),
        lambda: wl.kernels.Matern(0.0),
        lambda: wl.kernels.Matern(1.0, nu=2.0),
        lambda: wl.kernels.Polynomial(-1),
        lambda: wl.kernels.Linear() + 1.0,
        lambda: wl.kernels.Linear().matrix(X, X[:, :2]),
        lambda: wl.kernels.Linear().matrix(X[0]),
    ):
        with pytest.raises(wl.InputError):
            wrong()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_wide_tables_by_xla_are_the_same(rng, monkeypatch, kind):
    """Whole blocks of wide tables are multiplied by XLA; what is left over, and small ones, not."""
    X, Z = (rng.normal(size=(n, 130)).astype(kind) for n in (SIDE + 9, 2 * SIDE + 5))
    V = rng.normal(size=(len(Z), 2)).astype(kind)
    for kernel in (wl.kernels.Gaussian(0.01), wl.kernels.Linear()):
        plain = kernel.matrix(X, Z), kernel.matrix(Z), kernel.apply(X, Z, V)
        monkeypatch.setattr(wide, "WORTH", 0)
        fast = kernel.matrix(X, Z), kernel.matrix(Z), kernel.apply(X, Z, V)
        monkeypatch.undo()
        for ours, expected in zip(fast, plain, strict=True):
            assert ours.dtype == kind
            close = 500 * np.finfo(kind).eps * np.abs(expected).max()
            np.testing.assert_allclose(ours, expected, rtol=0, atol=close)
