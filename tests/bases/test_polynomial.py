"""Polynomials: scikit-learn's columns and names, exact rational powers, refused degrees."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

import wonderland as wl
from wonderland.core.errors import InputError


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_columns_and_names_are_scikit_learns(rng, degree, d):
    X = rng.uniform(-2, 2, size=(7, d))
    theirs = PolynomialFeatures(degree, include_bias=False).fit(X)
    basis = wl.bases.Polynomial(degree)
    np.testing.assert_allclose(basis(X), theirs.transform(X), rtol=1e-13)
    features = [f"v{j}" for j in range(d)]
    assert basis.names(features) == list(theirs.get_feature_names_out(features))


def test_without_interactions_only_powers(rng):
    X = rng.normal(size=(5, 2))
    basis = wl.bases.Polynomial(3, interaction=False)
    np.testing.assert_allclose(basis(X), np.hstack([X, X**2, X**3]), rtol=1e-14)
    assert basis.names(["a", "b"]) == ["a", "b", "a^2", "b^2", "a^3", "b^3"]


def test_doubled_columns_hold_a_hundred_bits_of_each_power(rng):
    X = rng.uniform(-3, 3, size=(6, 2))
    basis = wl.bases.Polynomial(8)
    columns = basis.doubled(X)
    for i in range(6):
        for j, term in enumerate(basis.exponents(2)):
            exact = Fraction(1)
            for v in term:
                exact *= Fraction(float(X[i, v]))
            found = Fraction(float(columns.high[i, j])) + Fraction(float(columns.low[i, j]))
            assert abs(found - exact) <= abs(exact) / 2**96


@pytest.mark.parametrize("degree", [0, -1, 1.5, "2", None])
def test_refused_degrees(degree):
    with pytest.raises(InputError, match="integer ≥ 1"):
        wl.bases.Polynomial(degree)


def test_it_prints_as_it_is_made():
    assert repr(wl.bases.Polynomial(2)) == "Polynomial(degree=2, interaction=True)"
    assert wl.bases.Polynomial(np.int64(2)) == wl.bases.Polynomial(2)
