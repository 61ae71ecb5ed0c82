"""Non-negative least squares: SciPy's active set and bounded solvers, and the conditions."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import lsq_linear, nnls
from sklearn.linear_model import LinearRegression

from tests.solve.problems import make, objective
from wonderland.solve.choose import Method
from wonderland.solve.nonnegative import solve_nonnegative
from wonderland.solve.problem import LeastSquares

CASES = list(itertools.product([0.0, (0.5, 8.0)], [False, True], [False, True]))


def bounded(problem):
    """(w, b) by SciPy's lsq_linear with a free intercept column and √α·I below."""
    n, d = problem.X.shape
    root = np.ones((n, 1)) if problem.weight is None else np.sqrt(problem.weight)[:, None]
    first = int(problem.fit_intercept)
    Z = root * np.hstack([np.ones((n, first)), problem.X])
    low = np.concatenate([np.full(first, -np.inf), np.zeros(d)])
    found = []
    for k, alpha in enumerate(problem.alpha):
        below = np.hstack([np.zeros((d, first)), np.sqrt(alpha) * np.eye(d)])
        A = np.vstack([Z, below])
        b = np.concatenate([root[:, 0] * problem.y[:, k], np.zeros(d)])
        found.append(lsq_linear(A, b, (low, np.inf), method="bvls", tol=1e-14).x)
    beta = np.stack(found, axis=1)
    return beta[first:], beta[0] if first else np.zeros(len(found))


@pytest.mark.parametrize(("alpha", "weighted", "fit_intercept"), CASES)
@pytest.mark.parametrize("shape", [(40, 6, 2), (10, 15, 2)])
def test_as_good_as_scipys_bounded_solver(rng, shape, alpha, weighted, fit_intercept):
    if shape[0] < shape[1] and alpha == 0.0:
        alpha = 1e-3  # otherwise many answers are equally good
    problem = make(rng, *shape, alpha=alpha, weighted=weighted, fit_intercept=fit_intercept)
    fit = solve_nonnegative(problem)
    coef, intercept = bounded(problem)
    assert np.all(fit.coef >= 0)
    ours, theirs = objective(problem, fit.coef, fit.intercept), objective(problem, coef, intercept)
    assert np.all(ours <= theirs * (1 + 1e-9))
    np.testing.assert_allclose(fit.coef, coef, atol=1e-6)
    np.testing.assert_allclose(fit.intercept, intercept, atol=1e-6)
    assert fit.gradient < 1e-10
    assert fit.solver == Method.NON_NEGATIVE


def test_without_intercept_equals_nnls(rng):
    problem = make(rng, 50, 8, 3, fit_intercept=False)
    fit = solve_nonnegative(problem)
    for k in range(3):
        expected, norm = nnls(problem.X, problem.y[:, k])
        np.testing.assert_allclose(fit.coef[:, k], expected, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(fit.rss[k], norm**2, rtol=1e-9)
    np.testing.assert_array_equal(fit.coef == 0, np.abs(fit.coef) < 1e-12)


def test_equals_scikit_learns_positive_regression(rng):
    problem = make(rng, 60, 5, 2, weighted=True)
    theirs = LinearRegression(positive=True).fit(problem.X, problem.y, problem.weight)
    fit = solve_nonnegative(problem)
    np.testing.assert_allclose(fit.coef.T, theirs.coef_, atol=1e-9)
    np.testing.assert_allclose(fit.intercept, theirs.intercept_, atol=1e-9)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("small", [0, 2_000_000])
def test_when_every_coefficient_would_be_negative(rng, monkeypatch, fit_intercept, small):
    """The support is empty: the answer is zero, plus the mean where there is an intercept."""
    monkeypatch.setattr("wonderland.solve.problem.SMALL", small)
    X = rng.random((20, 2)) + 1.0
    y = -X @ np.array([[1.0], [2.0]]) - (0.0 if fit_intercept else 1.0)
    problem = make(rng, 4, 2, 1, fit_intercept=fit_intercept)._replace(X=X, y=y)
    fit = solve_nonnegative(problem)
    np.testing.assert_array_equal(fit.coef, 0.0)
    mean = y.mean(axis=0) if fit_intercept else 0.0
    np.testing.assert_allclose(fit.intercept, mean, rtol=1e-12)
    np.testing.assert_allclose(fit.rss, ((y - mean) ** 2).sum(axis=0), rtol=1e-10)
    assert np.all(np.isfinite(fit.error))


def test_an_unconstrained_optimum_that_is_positive_is_kept(rng):
    problem = make(rng, 40, 4, 1)
    w = np.array([[1.0], [2.0], [3.0], [4.0]])
    problem = problem._replace(y=problem.X @ w + 5.0)
    fit = solve_nonnegative(problem)
    np.testing.assert_allclose(fit.coef, w, rtol=1e-13)
    np.testing.assert_allclose(fit.intercept, 5.0, rtol=1e-13)
    assert np.all(np.abs(fit.coef - w) <= fit.error[1:] + 1e-15)


def test_dependent_columns(rng):
    problem = make(rng, 40, 3, 1)
    X = np.hstack([problem.X, problem.X[:, :1], np.ones((40, 1))])
    problem = problem._replace(X=X)
    fit = solve_nonnegative(problem)
    coef, intercept = bounded(problem._replace(X=X[:, :3]))
    assert np.all(fit.coef >= 0)
    best = objective(problem._replace(X=X[:, :3]), coef, intercept)
    assert np.all(objective(problem, fit.coef, fit.intercept) <= best * (1 + 1e-8))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_sparse_table_gets_the_dense_answer(rng, kind, fit_intercept):
    problem = make(rng, 40, 5, 2, weighted=True, alpha=0.3, fit_intercept=fit_intercept)
    X = problem.X * (rng.random(problem.X.shape) < 0.5)
    dense = solve_nonnegative(problem._replace(X=X))
    fit = solve_nonnegative(problem._replace(X=kind(X)))
    np.testing.assert_allclose(fit.coef, dense.coef, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(fit.intercept, dense.intercept, rtol=1e-9)
    assert fit.gradient < 1e-10


def test_zero_and_badly_scaled_columns_do_not_mislead_the_active_set(rng):
    """Both optimality conditions hold, whatever the triangle of the Gram matrix suggested."""
    for _ in range(40):
        X = rng.normal(size=(16, 5)) * 10.0 ** rng.integers(-3, 4, size=5)
        X[:, rng.integers(5)] = 0.0
        weight = rng.uniform(0.2, 3.0, size=(16,))
        y = rng.normal(size=(16, 1))
        problem = LeastSquares(X, y, weight, np.zeros(1), fit_intercept=True)
        assert solve_nonnegative(problem).gradient < 1e-10
