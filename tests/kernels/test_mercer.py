"""The verdict of Mercer's condition, and its witness, checked apart from the code that made it."""

from fractions import Fraction

import numpy as np
import pytest

import wonderland as wl


def test_the_witness_is_a_proof(rng):
    """αᵀKα < 0 in exact rational arithmetic, for the K and α that were given."""
    X = rng.normal(size=(12, 3))
    for kernel in (
        wl.kernels.Sigmoid(1.0, -1.0),
        wl.kernels.Polynomial(2, coef0=-3.0),
        lambda x, z: -((x - z) @ (x - z)),
    ):
        verdict = wl.kernels.mercer(kernel, X)
        assert not verdict
        K = wl.kernels.resolve(kernel, X).matrix(X)
        alpha = [Fraction(float(a)) for a in verdict.witness]
        exact = [[Fraction(float(k)) for k in row] for row in (K + K.T) / 2]
        value = sum(alpha[i] * alpha[j] * exact[i][j] for i in range(12) for j in range(12))
        assert value < 0
        np.testing.assert_allclose(float(value), verdict.value, rtol=1e-6)
        assert "not a kernel" in str(verdict)
        assert "αᵀKα = -" in repr(verdict)


def test_rounding_is_no_counterexample(rng):
    """Duplicated rows make K singular: its computed eigenvalues are negative, and no witness."""
    X = np.repeat(rng.normal(size=(10, 2)) + 100.0, 4, axis=0)
    for kernel in (wl.kernels.Gaussian(50.0), wl.kernels.Linear(), wl.kernels.Polynomial(4)):
        verdict = wl.kernels.mercer(kernel, X)
        assert verdict
        assert verdict.smallest < verdict.largest * 1e-8
        assert "positive semi-definite" in str(verdict)


def test_asymmetric_functions_are_told(rng):
    X = rng.normal(size=(6, 2))
    verdict = wl.kernels.mercer(lambda x, z: 10.0 * (x @ x) * (z @ z) + 0.1 * x[0], X)
    assert not verdict
    assert verdict.asymmetry > 0
    if verdict.witness is None:
        assert "not symmetric" in str(verdict)


def test_precomputed_and_names(rng):
    assert wl.kernels.mercer("precomputed", np.eye(3))
    assert not wl.kernels.mercer("precomputed", -np.eye(3))
    assert wl.kernels.mercer("rbf", rng.normal(size=(20, 3)))
    with pytest.raises(wl.InputError, match="finite"):
        wl.kernels.mercer("precomputed", np.full((2, 2), np.nan))
    with pytest.raises(wl.InputError, match="square"):
        wl.kernels.mercer("precomputed", np.ones((2, 3)))


@pytest.mark.parametrize(("gamma", "coef0"), [(1.0, 1.0), (0.3, 2.0), (2.0, 0.0)])
def test_quadratic_features_are_the_quadratic_kernel(rng, gamma, coef0):
    X, Z = rng.normal(size=(9, 4)), rng.normal(size=(5, 4))
    phi, psi = (wl.kernels.quadratic_features(T, gamma, coef0) for T in (X, Z))
    assert phi.shape == (9, 15)
    expected = wl.kernels.Polynomial(2, gamma, coef0).matrix(X, Z)
    np.testing.assert_allclose(phi @ psi.T, expected, rtol=1e-12, atol=1e-12)
