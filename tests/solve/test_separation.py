"""Separability, held to an outside linear program and to certificates checked in fractions."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import wonderland as wl
from wonderland.solve.separation import separate
from wonderland.solve.separation_proof import first_phase, null_vector

ULP = 2.0**-52
XOR = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def exactly_separates(found, X, signs):
    """Every signed score is positive in fractions."""
    coef = [Fraction(float(w)) for w in found.coef]
    for x, s in zip(X, signs, strict=True):
        score = sum(Fraction(float(v)) * w for v, w in zip(x, coef, strict=True))
        if int(s) * (score + Fraction(found.intercept)) <= 0:
            return False
    return True


def assert_certified(found, X, signs):
    X, signs = np.asarray(X, float), np.asarray(signs)
    assert found.proof
    if found.separable:
        assert exactly_separates(found, X, signs)
        assert 0 < found.margin <= found.margin_bound
        assert not found.weights.any()
        assert found.weakly is False
        return
    assert (found.weights >= 0).all()
    for sign in (-1, 1):
        np.testing.assert_allclose(found.weights[signs == sign].sum(), 1.0, rtol=1e-12)
    apart = np.abs((signs * found.weights) @ X).max()
    size = np.abs(X).max()
    assert apart <= 1e-13 * (size or 1.0)
    assert found.residual <= 1e-13


@st.composite
def tables(draw):
    """Rounded, generic, shifted and badly scaled tables with some labelling."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 6))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, size=d)
    if draw(st.booleans()):
        X = np.round(rng.normal(size=(n, d)) * 2)
    X += draw(st.sampled_from([0.0, 1e3]))
    signs = rng.choice([-1.0, 1.0], size=n)
    if draw(st.booleans()):
        f = (X - X.mean(axis=0)) @ (rng.normal(size=d) / (X.std(axis=0) + 1e-9))
        signs = np.where(f > np.median(f), 1.0, -1.0)
    signs[:2] = -1.0, 1.0
    return X, signs


@given(tables())
def test_agrees_with_a_linear_program_and_proves_it(table):
    X, signs = table
    found = separate(X, signs)
    assert_certified(found, X, signs)
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
    Z = signs[:, None] * np.hstack([Z, np.ones((len(Z), 1))])
    outside = linprog(np.zeros(Z.shape[1]), A_ub=-Z, b_ub=-np.ones(len(Z)), bounds=(None, None))
    # The program's own tolerance cannot see margins below about 1e-7 of the spread.
    if found.separable and (Z @ np.append(found.coef, 0)).size and outside.status != 0:
        assert found.margin / found.radius < 1e-5
    else:
        assert found.separable == (outside.status == 0)


@given(tables())
def test_the_margin_is_the_widest(table):
    X, signs = table
    found = separate(X, signs)
    if found.separable:
        assert found.margin_bound <= found.margin * (1 + 1e-6)
        scores = signs * (X @ found.coef + found.intercept)
        size = np.abs(X).max() * np.abs(found.coef).sum() + abs(found.intercept)
        np.testing.assert_allclose(
            scores.min() / np.linalg.norm(found.coef), found.margin, rtol=1e-9, atol=1e-14 * size
        )


def test_exclusive_or_is_certified_not_separable():
    found = separate(XOR, [-1, 1, 1, -1])
    assert not found.separable
    assert found.weakly is False
    np.testing.assert_allclose(found.weights, 0.5)
    assert_certified(found, XOR, [-1, 1, 1, -1])


def test_or_has_the_margin_it_has():
    found = separate(XOR, [-1, 1, 1, 1])
    np.testing.assert_allclose(found.margin, np.sqrt(2) / 4)
    np.testing.assert_allclose(found.augmented_margin, 1 / 3)
    np.testing.assert_allclose(found.radius, np.sqrt(3))
    np.testing.assert_allclose(found.coef / found.intercept, [-2.0, -2.0])


TOUCHING = {
    "a shared point": ([[0.0], [1.0], [1.0], [2.0]], [-1, -1, 1, 1]),
    "a point on an edge": ([[0, 0], [1, 0], [0.5, 0], [0.3, 1]], [-1, -1, 1, 1]),
    "a point on a diagonal": ([[0.1, 0.1], [0.3, 0.3], [0.2, 0.2], [0.3, 1.0]], [-1, -1, 1, 1]),
}


@pytest.mark.parametrize("name", TOUCHING)
def test_hulls_that_touch_are_not_separable(name):
    X, signs = TOUCHING[name]
    found = separate(X, signs)
    assert_certified(found, X, signs)
    assert not found.separable
    assert found.weakly is True


def test_touching_is_not_crossing():
    for X, signs in (
        ([[0.0], [0.0]], [-1, 1]),
        ([[0.0], [2.0], [1.0]], [-1, -1, 1]),
        ([[0, 0], [2, 0], [1, 0], [0, 0]], [-1, -1, 1, -1]),
    ):
        assert separate(X, signs).weakly is False


@pytest.mark.parametrize(
    ("X", "signs"),
    [
        ([[1.0], [1.0 + ULP]], [-1, 1]),
        ([[1.0, 5.0], [1.0 + ULP, 3.0], [1.0, 4.0]], [-1, 1, 1]),
        ([[1e6], [1e6 * (1 + ULP)], [1e6 * (1 + 3 * ULP)]], [-1, 1, 1]),
    ],
)
def test_one_unit_in_the_last_place_separates(X, signs):
    found = separate(X, signs)
    assert found.separable
    assert exactly_separates(found, X, signs)


def test_one_unit_in_the_last_place_decides_what_is_not():
    X = np.array([[1.0, 1.0], [1.0 + ULP, 1.0], [1.0 + 2 * ULP, 1.0]])
    assert not separate(X, [-1, 1, -1]).separable


def test_indicator_columns_that_add_up_to_the_constant(rng):
    X = np.eye(7)[rng.integers(0, 7, 300)]
    X = np.hstack([X, np.eye(5)[rng.integers(0, 5, 300)]])
    signs = rng.choice([-1, 1], size=300)
    assert_certified(separate(X, signs), X, signs)


def test_more_columns_than_rows(rng):
    X, signs = rng.normal(size=(20, 90)), rng.choice([-1, 1], size=20)
    signs[:2] = -1, 1
    assert_certified(separate(X, signs), X, signs)
    X[0] = X[1]
    assert_certified(separate(X, signs), X, signs)
    assert not separate(X, signs).separable


def test_scales_and_outliers(rng):
    X = rng.normal(size=(200, 5)) * 10.0 ** np.array([-80, -8, 0, 9, 80])
    signs = rng.choice([-1, 1], size=200)
    assert not separate(X, signs).separable
    X = rng.normal(size=(200, 5))
    X[0] *= 1e9
    found = separate(X, np.sign(X[:, 0]))
    assert found.separable
    assert found.margin_bound <= found.margin * (1 + 1e-4)


@given(tables())
def test_sparse_tables_have_the_same_verdict(table):
    X, signs = table
    X = np.where(np.abs(X) > np.median(np.abs(X)), X, 0.0)
    dense, sparse = separate(X, signs), separate(sp.csr_array(X), signs)
    assert dense.separable == sparse.separable
    np.testing.assert_allclose(sparse.margin, dense.margin, rtol=1e-5, atol=1e-12)


def test_one_class_is_separable():
    found = separate([[1.0], [2.0]], [1, 1])
    assert found.separable
    assert found.margin == np.inf


def test_planes_through_the_origin():
    assert separate([[1.0], [2.0]], [1, 1], fit_intercept=False).separable
    found = separate([[1.0], [2.0]], [-1, 1], fit_intercept=False)
    assert not found.separable
    np.testing.assert_allclose(found.weights, [2 / 3, 1 / 3])


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_many_rows(noise, rng):
    X = rng.normal(size=(200_000, 20))
    f = X @ rng.normal(size=20) + noise * rng.normal(size=len(X))
    found = separate(X, np.sign(f))
    assert found.separable == (noise == 0)
    assert found.proof
    if found.separable:
        assert np.all(np.sign(X @ found.coef + found.intercept) == np.sign(f))
        assert found.margin_bound <= found.margin * (1 + 1e-6)


def test_null_vectors_and_the_simplex_in_fractions():
    assert null_vector([[1, 2, 0], [0, 1, 1]], 3) == [2, -1, 1]
    assert null_vector([[1, 0], [0, 1]], 2) is None
    assert null_vector([[1, -1, 0], [2, -2, 0]], 3) is None
    assert null_vector([[1, -1], [1, -2]], 2) is None
    Z = np.hstack([XOR, np.ones((4, 1))])
    meeting, _ = first_phase(np.array([-1, 1, 1, -1])[:, None] * Z)
    assert meeting == [Fraction(1, 4)] * 4
    meeting, plane = first_phase(np.array([-1, 1, 1, 1])[:, None] * Z)
    assert meeting is None
    assert all(
        s * sum(map(lambda a, b: Fraction(a) * b, z, plane)) > 0
        for s, z in zip([-1, 1, 1, 1], Z.tolist(), strict=True)
    )


def test_shapes_that_do_not_fit():
    with pytest.raises(wl.InputError, match="one sign for each row"):
        separate(XOR, [1, -1])


def test_equal_samples_of_both_classes_settle_wide_tables(rng):
    X = sp.random(400, 3000, density=0.01, format="csr", rng=rng)
    signs = np.where(np.arange(400) % 2 == 0, -1.0, 1.0)
    assert separate(X, signs, rounds=0).separable
    X = sp.vstack([X, X[[4]]]).tocsr()
    found = separate(X, np.append(signs, 1.0), rounds=0)
    assert not found.separable
    assert found.proof
    assert set(np.flatnonzero(found.weights)) == {4, 400}
    assert found.residual == 0


def test_without_rounds_a_hard_table_stays_open():
    found = separate(XOR, [-1, 1, 1, -1], rounds=0)
    assert not found.separable
    assert not found.proof
