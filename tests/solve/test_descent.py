"""Least squares by gradient descent: the minimum, its curvature, its theorem's step count."""

import numpy as np
import pytest

from tests.solve.problems import make, textbook
from wonderland.core.status import Status
from wonderland.solve.descent import solve_descent
from wonderland.solve.moments import host_moments
from wonderland.solve.run import Stopping

EXACT = Stopping(tol=1e-12, max_iter=200_000)


@pytest.mark.parametrize("momentum", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 3.0, (0.1, 20.0)])
def test_reaches_the_textbook_minimum(rng, alpha, fit_intercept, momentum):
    problem = make(rng, alpha=alpha, fit_intercept=fit_intercept, weighted=True)
    fit = solve_descent(host_moments(problem), problem.alpha, EXACT, momentum=momentum)
    assert fit.status is Status.CONVERGED
    np.testing.assert_allclose(fit.coef, textbook(problem)[0], rtol=1e-8, atol=1e-9)
    assert fit.certificate <= 1e-12


def test_the_curvature_is_that_of_the_hessian(rng):
    problem = make(rng, alpha=[0.5, 2.0])
    moments = host_moments(problem)
    fit = solve_descent(moments, problem.alpha, EXACT)
    centred = problem.X - problem.X.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    np.testing.assert_allclose(fit.lipschitz, (values[0] + 2.0) / 30, rtol=1e-10)
    np.testing.assert_allclose(fit.strong_convexity, (values[-1] + 0.5) / 30, rtol=1e-10)


@pytest.mark.parametrize("momentum", [False, True])
def test_steps_taken_stay_below_the_theorems_count(rng, momentum):
    for ratio in (1.0, 10.0, 300.0):
        problem = make(rng, 40, 5, 1)
        X = problem.X * np.geomspace(1.0, ratio, 5)
        fit = solve_descent(
            host_moments(problem._replace(X=X)),
            problem.alpha,
            Stopping(tol=1e-6, max_iter=10**7),
            momentum=momentum,
        )
        assert fit.status is Status.CONVERGED
        assert 0 < fit.iterations <= fit.bound < np.inf


def test_dependent_columns_end_at_the_minimum_norm(rng):
    """From zero, descent stays in the row space: among all minima it finds the shortest."""
    problem = make(rng, 20, 3, 1)
    X = np.hstack([problem.X, problem.X[:, :1] + problem.X[:, 1:2]])
    problem = problem._replace(X=X)
    fit = solve_descent(host_moments(problem), problem.alpha, EXACT)
    np.testing.assert_allclose(fit.coef, textbook(problem)[0], rtol=1e-6, atol=1e-8)
    assert fit.strong_convexity == 0.0
    assert fit.iterations <= fit.bound


def test_the_step_rule_and_the_iteration_limit(rng):
    moments = host_moments(make(rng))
    stalled = solve_descent(moments, np.zeros(2), Stopping(tol=0.0, step_tol=1e-10))
    assert stalled.status is Status.STALLED
    short = solve_descent(moments, np.zeros(2), Stopping(tol=0.0, max_iter=3))
    assert short.status is Status.ITERATIONS
    assert short.iterations == 3


def test_columns_without_variation(rng):
    problem = make(rng)
    X = problem.X.copy()
    X[:, 2] = 1.0
    fit = solve_descent(host_moments(problem._replace(X=X)), problem.alpha, EXACT)
    assert fit.status is Status.CONVERGED
    np.testing.assert_allclose(fit.coef, textbook(problem._replace(X=X))[0], atol=1e-8)
    nothing = solve_descent(host_moments(problem._replace(X=0 * X)), problem.alpha, EXACT)
    np.testing.assert_array_equal(nothing.coef, 0.0)
    assert nothing.status is Status.CONVERGED
