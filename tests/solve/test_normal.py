"""Corrected normal equations: scaling, condition, correction to QR's accuracy, error bounds."""

from fractions import Fraction

import numpy as np
import pytest

from tests.solve.problems import make, textbook
from tests.theory.rational import exact_least_squares, relative
from wonderland.solve.moments import host_moments
from wonderland.solve.normal import (
    correct,
    moment_bound,
    residual_moments,
    scale,
    spread_intercept,
)


def near(problem, closeness):
    X = problem.X.copy()
    X[:, -1] = X[:, 0] + closeness * X[:, -1]
    return problem._replace(X=X)


def test_solve_and_inverse(rng):
    unit, D = host_moments(make(rng)).gram, np.array([[1.0], [1e6], [1e-6], [1.0]])
    scaled, right = scale(unit * D * D.T, 0.0), rng.normal(size=(4, 2))
    np.testing.assert_allclose(D * scaled.solve(D * right), np.linalg.solve(unit, right), rtol=1e-9)
    np.testing.assert_allclose(D * scaled.inverse() * D.T, np.linalg.inv(unit), rtol=1e-9)
    np.testing.assert_allclose(np.diag(scaled.root.T @ scaled.root), 1.0)


def test_the_condition_number_sees_through_units(rng):
    gram = host_moments(make(rng, 200)).gram
    units = np.outer([1, 1e8, 1e-8, 1], [1, 1e8, 1e-8, 1])
    np.testing.assert_allclose(scale(gram * units, 0.0).condition, scale(gram, 0.0).condition)
    root = np.sqrt(np.diag(gram))
    expected = np.sqrt(np.linalg.cond(gram / np.outer(root, root)))
    np.testing.assert_allclose(scale(gram, 0.0).condition, expected, rtol=1e-8)


def test_an_estimate_replaces_eigenvalues_of_wide_tables(rng, monkeypatch):
    gram = host_moments(make(rng, 200)).gram
    exact = scale(gram, 0.0).condition
    monkeypatch.setattr("wonderland.solve.normal.EXACT", 1)
    estimate = scale(gram, 0.0)
    assert exact / 2 <= estimate.condition <= exact * 4
    assert "estimate" in estimate.how


def test_what_is_not_positive_definite_is_told():
    indefinite = scale(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.0)
    assert indefinite.root is None
    assert indefinite.condition == np.inf
    assert scale(np.zeros((0, 0)), 0.0).condition == 1.0
    assert scale(np.zeros((2, 2)), 1.0).condition == 1.0


@pytest.mark.parametrize("weighted", [False, True])
def test_residual_moments_in_one_pass(rng, weighted):
    problem = make(rng, 1200, 3, 2, weighted=weighted)
    coef, intercept = rng.normal(size=(3, 2)), rng.normal(size=2)
    r = problem.y - problem.X @ coef - intercept
    weight = np.ones(1200) if problem.weight is None else problem.weight
    moment, total, square = residual_moments(problem, coef, intercept)
    np.testing.assert_allclose(moment, problem.X.T @ (weight[:, None] * r), atol=1e-9)
    np.testing.assert_allclose(total, weight @ r, atol=1e-9)
    np.testing.assert_allclose(square, weight @ r**2)


@pytest.mark.parametrize("closeness", [1e-2, 1e-4, 1e-5])
def test_correction_on_the_data_brings_the_accuracy_of_qr(rng, closeness):
    """Plain normal equations lose κ²ε, the corrected ones κε (against exact rational answers)."""
    problem = near(make(rng, 40, 3, 1), closeness)
    moments = host_moments(problem)
    scaled = scale(moments.gram, 0.0)
    plain = scaled.solve(moments.cross)
    corrected, _, rss = correct(problem, moments, scaled, plain, 0.0)
    truth = exact_least_squares(problem.X, problem.y[:, 0], fit_intercept=True)[1:]
    kappa, eps = scaled.condition, np.finfo(float).eps
    assert relative(corrected[:, 0], truth) <= 100 * kappa * eps
    assert relative(plain[:, 0], truth) <= 100 * kappa**2 * eps
    r = problem.y - problem.X @ corrected - (moments.mean_y - moments.mean_x @ corrected)
    np.testing.assert_allclose(rss, (r**2).sum(axis=0), rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_correction_includes_the_penalty(rng, alpha):
    problem = near(make(rng, 40, 3, 2, alpha=alpha, weighted=True), 1e-3)
    moments = host_moments(problem)
    scaled = scale(moments.gram, alpha)
    coef, _, _ = correct(problem, moments, scaled, scaled.solve(moments.cross), alpha)
    np.testing.assert_allclose(coef, textbook(problem)[0], rtol=1e-10)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("closeness", [1.0, 1e-3, 1e-5])
def test_the_bound_is_never_below_the_error(rng, closeness, squared):
    for _ in range(5):
        problem = near(make(rng, 40, 3, 1, noise=10.0 ** rng.integers(-6, 2)), closeness)
        moments = host_moments(problem)
        scaled = scale(moments.gram, 0.0)
        coef, step = scaled.solve(moments.cross), 0.0
        if not squared:
            coef, step, _ = correct(problem, moments, scaled, coef, 0.0)
        r = problem.y - problem.X @ coef - (moments.mean_y - moments.mean_x @ coef)
        bound = moment_bound(
            moments, coef, scaled.inverse(), (r**2).sum(axis=0), rows=40, squared=squared
        )
        truth = exact_least_squares(problem.X, problem.y[:, 0], fit_intercept=True)[1:]
        error = np.array([abs(float(c - t)) for c, t in zip(_fractions(coef), truth, strict=True)])
        assert np.all(error <= (bound[1:] + step)[:, 0])


def _fractions(coef):
    return [Fraction(float(c)) for c in coef[:, 0]]


def test_the_intercept_joins_the_inverse(rng):
    problem = make(rng, 30, 3, 1, weighted=True)
    moments = host_moments(problem)
    Z = np.hstack([np.ones((30, 1)), problem.X])
    expected = np.linalg.inv(Z.T @ (problem.weight[:, None] * Z))
    found = spread_intercept(moments, np.linalg.inv(moments.gram))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
