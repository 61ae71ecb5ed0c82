"""Second moments: the definition, on the host and in XLA, where centring would cancel too."""

import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.solve.problems import make
from wonderland.solve.moments import host_moments, traced_moments


def definition(problem):
    weight = np.ones(len(problem.X)) if problem.weight is None else problem.weight
    keep = float(problem.fit_intercept) / weight.sum()
    mean_x, mean_y = keep * (weight @ problem.X), keep * (weight @ problem.y)
    X, y = problem.X - mean_x, problem.y - mean_y
    wX = weight[:, None] * X
    return weight.sum(), mean_x, mean_y, wX.T @ X, wX.T @ y, weight @ y**2


@pytest.mark.parametrize(
    ("weighted", "fit_intercept", "mean"),
    list(itertools.product([False, True], [False, True], [0.0, 20.0])),
)
@pytest.mark.parametrize("n", [2, 511, 512, 513, 3000])
def test_the_definition(rng, n, weighted, fit_intercept, mean):
    problem = make(rng, n, 4, 2, weighted=weighted, fit_intercept=fit_intercept, mean=mean)
    expected = definition(problem)
    with jax.enable_x64(True):
        weight = None if problem.weight is None else jnp.asarray(problem.weight)
        traced = traced_moments(
            jnp.asarray(problem.X), jnp.asarray(problem.y), weight, fit_intercept=fit_intercept
        )
    for found in (host_moments(problem), traced):
        for ours, theirs in zip(found, expected, strict=True):
            scale = np.abs(theirs).max()
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11 * scale)


def test_large_means_do_not_cancel_digits(rng):
    """Columns near 10⁸ with deviations of 1: uncentred squares would keep no digit of the Gram."""
    problem = make(rng, 600, 2, 1)
    X = np.round(problem.X, 3) + 1e8
    gram = host_moments(problem._replace(X=X)).gram
    column = [Fraction(float(x)) for x in X[:, 0]]
    mean = sum(column) / len(column)
    exact = float(sum((x - mean) ** 2 for x in column))
    assert abs(gram[0, 0] / exact - 1) < 1e-10


def test_parts_of_a_tall_table_add_up(rng):
    problem = make(rng, 70_000, 4, 1, weighted=True)
    for ours, theirs in zip(host_moments(problem), definition(problem), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-8)
