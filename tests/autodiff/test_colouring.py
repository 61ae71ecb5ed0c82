"""Colourings: valid on random patterns, optimal where the optimum is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from wonderland.autodiff.colouring import (
    acyclic,
    colour_both,
    colour_columns,
    colour_symmetric,
    is_star,
    is_valid,
)


def banded(n, below, above):
    distance = np.subtract.outer(np.arange(n), np.arange(n))
    return sparse.csr_array((distance <= below) & (-distance <= above))


def five_point(rows, columns, *, periodic=False):
    def line(n):
        path = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) == 1
        path[0, -1] |= periodic
        path[-1, 0] |= periodic
        return sparse.csr_array(path)

    one, two = sparse.eye_array(rows, dtype=bool), sparse.eye_array(columns, dtype=bool)
    grid = sparse.kron(line(rows), two) + sparse.kron(one, line(columns)) + sparse.kron(one, two)
    return sparse.csr_array(grid.astype(bool))


def two_species(grid):
    """Each species on its grid, coupled point by point: a Brusselator."""
    here = sparse.eye_array(grid.shape[0], dtype=bool)
    return sparse.csr_array(sparse.block_array([[grid, here], [here, grid]]).astype(bool))


def arrow(n):
    pattern = np.eye(n, dtype=bool)
    pattern[0] = pattern[:, 0] = True
    return sparse.csr_array(pattern)


KNOWN = {
    "diagonal": (sparse.csr_array(np.eye(30, dtype=bool)), [(30,)], 1),
    "tridiagonal": (banded(50, 1, 1), [(50,)], 3),
    "bidiagonal": (banded(50, 0, 1), [(50,)], 2),
    "wide band": (banded(60, 4, 7), [(60,)], 12),
    "periodic, divisible": (five_point(1, 9, periodic=True), [(9,)], 3),
    "five-point": (five_point(30, 30), [(30, 30)], 5),
    "five-point stored flat": (five_point(30, 30), [(900,)], 5),
    "five-point, oblong and flat": (five_point(12, 35), [(420,)], 5),
    "five-point, periodic": (five_point(15, 20, periodic=True), [(15, 20)], 5),
    "Brusselator": (two_species(five_point(32, 32)), [(2048,)], 6),
    "Brusselator in two arrays": (two_species(five_point(20, 30)), [(20, 30), (20, 30)], 6),
    "Brusselator, periodic": (
        two_species(five_point(36, 36, periodic=True)),
        [(2, 36, 36)],
        6,
    ),
    "dense row": (arrow(40), [(40,)], 40),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_least_number_where_it_is_known(name):
    pattern, shapes, least = KNOWN[name]
    found = colour_columns(pattern, shapes)
    assert is_valid(pattern, found.colours)
    assert found.number == least == found.least


def test_periodic_grid_of_awkward_size_stays_close():
    """Six would need 1024/6 points a colour and species: not a whole number."""
    pattern = two_species(five_point(32, 32, periodic=True))
    found = colour_columns(pattern, [(2048,)])
    assert is_valid(pattern, found.colours)
    assert found.number <= 8


def patterns():
    shape = st.tuples(st.integers(1, 25), st.integers(1, 25))
    return st.tuples(shape, st.floats(0.0, 0.5), st.integers(0, 2**31))


def random_pattern(shape, density, seed):
    return sparse.csr_array(np.random.default_rng(seed).random(shape) < density)


@given(patterns())
def test_column_colourings_are_valid_and_not_below_the_bound(drawn):
    pattern = random_pattern(*drawn)
    found = colour_columns(pattern, [(pattern.shape[1],)])
    assert is_valid(pattern, found.colours)
    assert found.least <= found.number <= pattern.shape[1]
    unused = np.diff(sparse.csc_array(pattern).indptr) == 0
    assert np.array_equal(found.colours < 0, unused)


@given(patterns())
def test_two_sided_colourings_show_every_entry(drawn):
    pattern = random_pattern(*drawn)
    found = colour_both(pattern, [(pattern.shape[1],)], (1.0, 1.0), float("inf"))
    if found is None:
        return
    dense = found.rows >= 0
    empty = np.diff(pattern.indptr) == 0
    by_row = sparse.csr_array(pattern[np.flatnonzero(dense)].T)
    by_column = pattern[np.flatnonzero(~dense | empty)]
    assert is_valid(by_row, found.rows[dense])
    assert is_valid(sparse.csr_array(by_column), found.columns)


def test_arrow_needs_three_in_all():
    found = colour_both(arrow(2000), [(2000,)], (1.0, 1.0), 2000.0)
    assert found.forward + found.reverse == 3


@given(st.integers(2, 30), st.floats(0.0, 0.5), st.integers(0, 2**31))
def test_star_colourings_show_every_entry(n, density, seed):
    half = np.random.default_rng(seed).random((n, n)) < density
    pattern = sparse.csr_array(half | half.T | np.eye(n, dtype=bool))
    found = colour_symmetric(pattern)
    assert is_star(pattern, found.colours)
    assert found.number <= colour_columns(pattern).number


@pytest.mark.parametrize(
    ("pattern", "least"),
    [(banded(80, 1, 1), 3), (arrow(60), 2), (five_point(12, 12), 5)],
    ids=["chain", "arrow", "five-point"],
)
def test_star_colourings_of_known_graphs(pattern, least):
    assert colour_symmetric(pattern).number <= least


def solved(found, hessian):
    """The entries an acyclic colouring reads off its products, by its own rounds."""
    seeds = found.colours[:, None] == np.arange(found.number)
    products = (hessian @ seeds).T.astype(float)
    edges = np.zeros(len(found.ends))
    for each in found.rounds:
        edges[each.edges] = products[each.colours, each.vertices]
        np.add.at(products, (each.under, each.onto), -edges[each.edges])
    return edges


@given(st.integers(2, 25), st.floats(0.0, 0.3), st.integers(0, 2**31))
def test_acyclic_colourings_can_be_solved(n, density, seed):
    rng = np.random.default_rng(seed)
    values = np.triu(rng.standard_normal((n, n)) * (rng.random((n, n)) < density))
    hessian = values + values.T + np.eye(n)
    found = acyclic(sparse.csr_array(hessian != 0))
    if found is not None:
        expected = hessian[found.ends[:, 0], found.ends[:, 1]]
        np.testing.assert_allclose(solved(found, hessian), expected, atol=1e-10)


def test_acyclic_needs_fewer_than_star():
    """Twenty short chains: trees on two colours, while a star colouring needs three."""
    chain = banded(8, 1, 1)
    pattern = sparse.csr_array(sparse.block_diag([chain] * 20).astype(bool))
    assert acyclic(pattern).number == 2
    assert colour_symmetric(pattern).number == 3
