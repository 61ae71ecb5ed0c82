"""Sparse tables get the dense answer, by each of the three routes."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import wonderland.solve.sparse as module
from tests.solve.problems import make, textbook
from wonderland.solve.choose import Method
from wonderland.solve.moments import host_moments
from wonderland.solve.sparse import solve_lsqr, solve_sparse, sparse_moments

CASES = list(itertools.product([0.0, 2.0, (0.5, 30.0)], [False, True], [False, True]))


def sparse(rng, kind=sp.csr_array, n=60, d=6, **options):
    """A dense problem with most entries zero, and the same with a sparse table."""
    problem = make(rng, n, d, 2, **options)
    X = problem.X * (rng.random((n, d)) < 0.4)
    X[: min(n, d), : min(n, d)] += np.eye(min(n, d))
    dense = problem._replace(X=X)
    return dense, dense._replace(X=kind(X))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize(("alpha", "weighted", "fit_intercept"), CASES)
def test_equals_the_dense_answer(rng, alpha, weighted, fit_intercept, kind):
    dense, table = sparse(rng, kind, alpha=alpha, weighted=weighted, fit_intercept=fit_intercept)
    fit = solve_sparse(table, 1e-10, None)
    coef, intercept = textbook(dense)
    np.testing.assert_allclose(fit.coef, coef, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(fit.intercept, intercept, rtol=1e-9, atol=1e-11)
    assert np.all(np.abs(fit.coef - coef) <= fit.error[int(fit_intercept) :] + 1e-12)
    assert fit.gradient < 1e-11


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_moments_without_densifying(rng, weighted, fit_intercept):
    dense, table = sparse(rng, weighted=weighted, fit_intercept=fit_intercept, mean=1.0)
    for ours, theirs in zip(sparse_moments(table), host_moments(dense), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_an_ill_conditioned_table_is_densified_and_refined(rng):
    dense, _ = sparse(rng)
    X = dense.X.copy()
    X[:, 5] = X[:, 4] + 1e-7 * X[:, 5]
    fit = solve_sparse(dense._replace(X=sp.csr_array(X)), 1e-10, None)
    assert fit.solver == Method.REFINED
    assert fit.condition > 1e6
    coef = textbook(dense._replace(X=X))[0]
    np.testing.assert_allclose(fit.coef, coef, atol=1e-7 * np.abs(coef).max())


@pytest.mark.parametrize(("alpha", "weighted", "fit_intercept"), CASES)
def test_lsqr_reaches_the_minimum(rng, alpha, weighted, fit_intercept):
    dense, table = sparse(rng, alpha=alpha, weighted=weighted, fit_intercept=fit_intercept)
    fit = solve_lsqr(table, 1e-14, 1000)
    coef, intercept = textbook(dense)
    np.testing.assert_allclose(fit.coef, coef, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(fit.intercept, intercept, rtol=1e-8, atol=1e-9)
    assert fit.converged
    assert fit.gradient < 1e-9
    weight = 1.0 if dense.weight is None else dense.weight[:, None]
    rss = (weight * (dense.y - dense.X @ coef - intercept) ** 2).sum(axis=0)
    np.testing.assert_allclose(fit.rss, rss, rtol=1e-8)
    assert all(steps > 0 for steps in fit.iterations)


def test_lsqr_says_when_it_ran_out_of_steps(rng):
    _, table = sparse(rng)
    fit = solve_lsqr(table, 1e-14, 1)
    assert not fit.converged
    assert fit.iterations == (1, 1)


def test_too_large_for_anything_else_goes_to_lsqr(rng, monkeypatch):
    monkeypatch.setattr(module, "WIDE", 2)
    monkeypatch.setattr(module, "DENSE", 10)
    dense, table = sparse(rng, alpha=0.5)
    fit = solve_sparse(table, 1e-13, None)
    assert fit.solver == Method.LSQR
    np.testing.assert_allclose(fit.coef, textbook(dense)[0], rtol=1e-7, atol=1e-9)


def test_more_columns_than_rows(rng):
    dense, table = sparse(rng, n=12, d=30, alpha=0.5)
    fit = solve_sparse(table, 1e-12, None)
    np.testing.assert_allclose(fit.coef, textbook(dense)[0], rtol=1e-8, atol=1e-10)
