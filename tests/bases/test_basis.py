"""Any callable is a basis; what rounding of its source does to its columns is measured."""

import numpy as np
import pytest

import wonderland as wl
from wonderland.bases.basis import expand, names_of, wobble
from wonderland.core.errors import InputError


def roots(X):
    return np.sqrt(np.abs(X))


def test_a_callable_is_a_basis(rng):
    X = rng.normal(size=(5, 2))
    columns = expand(roots, X)
    np.testing.assert_array_equal(columns.high, roots(X))
    np.testing.assert_array_equal(columns.low, 0.0)
    assert names_of(roots, ["a", "b"], 2) == ["roots0", "roots1"]
    assert names_of(np.sqrt, ["a"], 1) == ["sqrt0"]


@pytest.mark.parametrize(
    "wrong",
    [lambda X: X[:, 0], lambda X: X[:2], lambda X: np.float64(1.0)],
    ids=["1-D", "rows", "0-D"],
)
def test_what_is_not_a_table_is_refused(wrong, rng):
    with pytest.raises(InputError, match="the basis returned shape"):
        expand(wrong, rng.normal(size=(5, 2)))


@pytest.mark.parametrize(
    "basis",
    [wl.bases.Polynomial(4), wl.bases.Fourier(2, period=5.0), roots],
    ids=["polynomial", "fourier", "callable"],
)
def test_wobble_is_the_derivative_times_the_movement(basis, rng):
    """Moving source v by ±moved moves the columns by wobble_v, to first order."""
    X = rng.uniform(0.5, 2.0, size=(6, 2))
    moved = 1e-7 * rng.uniform(size=X.shape)
    table = wobble(basis, X, moved)
    assert table.shape == (2, 6, np.asarray(basis(X)).shape[1])
    for v in range(2):
        there = X.copy()
        there[:, v] += moved[:, v]
        np.testing.assert_allclose(np.asarray(basis(there)) - basis(X), table[v], atol=1e-11)


def test_a_table_too_large_is_not_made(rng, monkeypatch):
    monkeypatch.setattr("wonderland.bases.basis.TABLE", 10)
    assert wobble(wl.bases.Polynomial(2), rng.normal(size=(6, 2)), np.ones((6, 2))) is None
