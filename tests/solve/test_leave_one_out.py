"""Leave-one-out from one factorisation: brute-force refits, scikit-learn, finite differences."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV

from tests.solve.problems import make, textbook
from wonderland.solve.leave_one_out import default_alphas, loo_curve, spectrum, tune
from wonderland.solve.problem import LeastSquares

ALPHAS = np.array([1e-3, 0.1, 1.0, 30.0, 1e4])
CASES = list(itertools.product([(20, 4, 2), (7, 12, 2), (9, 9, 1)], [False, True], [False, True]))


def refits(problem: LeastSquares, alpha: float) -> np.ndarray:
    """Weighted mean of squared errors on each sample of the fit without it (t,)."""
    n = len(problem.X)
    weight = np.ones(n) if problem.weight is None else problem.weight
    errors = np.empty_like(problem.y)
    for i in range(n):
        rest = np.arange(n) != i
        left = LeastSquares(
            problem.X[rest],
            problem.y[rest],
            weight[rest],
            np.full(problem.y.shape[1], alpha),
            problem.fit_intercept,
        )
        coef, intercept = textbook(left)
        errors[i] = problem.y[i] - problem.X[i] @ coef - intercept
    return weight @ errors**2 / weight.sum()


@pytest.mark.parametrize(("shape", "weighted", "fit_intercept"), CASES)
def test_equals_refitting_without_each_sample(rng, shape, weighted, fit_intercept):
    problem = make(rng, *shape, weighted=weighted, fit_intercept=fit_intercept, mean=1.0)
    curve = loo_curve(spectrum(problem), ALPHAS)
    for a, alpha in enumerate(ALPHAS):
        np.testing.assert_allclose(curve.error[a], refits(problem, alpha), rtol=1e-7)


@pytest.mark.parametrize(("shape", "weighted", "fit_intercept"), CASES)
def test_the_slope_is_the_derivative(rng, shape, weighted, fit_intercept):
    problem = make(rng, *shape, weighted=weighted, fit_intercept=fit_intercept)
    found = spectrum(problem)
    step = 1e-5 * ALPHAS
    up, down = loo_curve(found, ALPHAS + step).error, loo_curve(found, ALPHAS - step).error
    difference = (up - down) / (2 * step[:, None])
    # The difference of two values of size e carries the rounding ε·e/step.
    noise = 1e-13 * (up + down) / step[:, None]
    slope = loo_curve(found, ALPHAS).slope
    assert np.all(np.abs(slope - difference) <= 1e-6 * np.abs(difference) + noise)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_equals_scikit_learns_stored_results(rng, fit_intercept):
    problem = make(rng, 40, 5, 1, fit_intercept=fit_intercept)
    theirs = RidgeCV(ALPHAS, fit_intercept=fit_intercept, store_cv_results=True)
    theirs.fit(problem.X, problem.y[:, 0])
    curve = loo_curve(spectrum(problem), ALPHAS)
    np.testing.assert_allclose(curve.error[:, 0], theirs.cv_results_.mean(axis=0), rtol=1e-8)


@pytest.mark.parametrize(("shape", "weighted", "fit_intercept"), CASES)
def test_coefficients_of_the_whole_path(rng, shape, weighted, fit_intercept):
    problem = make(rng, *shape, weighted=weighted, fit_intercept=fit_intercept)
    found = spectrum(problem)
    for alpha in ALPHAS:
        each = np.full(problem.y.shape[1], alpha)
        coef = textbook(problem._replace(alpha=each))[0]
        np.testing.assert_allclose(found.coefficients(each), coef, rtol=1e-7, atol=1e-9)


def test_one_penalty_per_output(rng):
    problem = make(rng, alpha=[0.1, 10.0])
    coef = spectrum(problem).coefficients(problem.alpha)
    np.testing.assert_allclose(coef, textbook(problem)[0], rtol=1e-9)


def test_many_rows_are_split_and_summed(rng):
    problem = make(rng, 1500, 3, 2, weighted=True)
    curve = loo_curve(spectrum(problem), ALPHAS)
    root, share = np.sqrt(problem.weight), problem.weight / problem.weight.sum()
    X = root[:, None] * (problem.X - share @ problem.X)
    for a, alpha in enumerate(ALPHAS):
        coef, intercept = textbook(problem._replace(alpha=np.full(2, alpha)))
        hat = np.einsum("ij,jk,ik->i", X, np.linalg.inv(X.T @ X + alpha * np.eye(3)), X) + share
        errors = (problem.y - problem.X @ coef - intercept) / (1 - hat)[:, None]
        np.testing.assert_allclose(curve.error[a], share @ errors**2, rtol=1e-9)


def test_dependent_columns_without_penalty(rng):
    """At α = 0 the leave-one-out error is that of the minimum-norm fit, and stays finite."""
    problem = make(rng, 25, 3, 1)
    doubled = problem._replace(X=np.hstack([problem.X, problem.X[:, :1]]))
    zero = np.zeros(1)
    curve = loo_curve(spectrum(doubled), zero)
    np.testing.assert_allclose(curve.error, loo_curve(spectrum(problem), zero).error, rtol=1e-9)
    np.testing.assert_allclose(spectrum(doubled).coefficients(zero), textbook(doubled)[0])


def test_rows_of_weight_zero_do_not_count(rng):
    problem = make(rng, 20, 3, 2, weighted=True)
    weight = problem.weight.copy()
    weight[:5] = 0.0
    kept = problem._replace(X=problem.X[5:], y=problem.y[5:], weight=weight[5:])
    all_rows = loo_curve(spectrum(problem._replace(weight=weight)), ALPHAS)
    np.testing.assert_allclose(all_rows.error, loo_curve(spectrum(kept), ALPHAS).error, rtol=1e-9)


@pytest.mark.parametrize("shape", [(60, 8, 1), (60, 8, 3), (15, 30, 1)])
def test_tuning_ends_where_the_slope_is_zero(rng, shape):
    problem = make(rng, *shape, noise=4.0)
    found = spectrum(problem)
    curve = loo_curve(found, default_alphas(found.values))
    alpha = tune(found, curve).alphas
    near = loo_curve(found, alpha[0] * np.array([0.5, 0.99, 1.0, 1.01, 2.0]))
    total = near.error.sum(axis=1)
    assert total[2] <= curve.error.sum(axis=1).min() * (1 + 1e-12)
    if curve.alphas[0] < alpha[0] < curve.alphas[-1]:
        assert total[2] <= total.min() * (1 + 1e-12)
        slope = alpha[0] * near.slope[2].sum()
        assert abs(slope) <= 1e-7 * total[2]


def test_an_error_that_falls_beyond_the_path_is_followed(rng):
    problem = make(rng, 50, 3, 1, noise=0.0)
    found = spectrum(problem)
    curve = loo_curve(found, ALPHAS)
    further = tune(found, curve)
    assert further.alphas[0] < ALPHAS[0]
    assert further.error.sum() < curve.error[0].sum()


def test_default_path_spans_the_spectrum(rng):
    values = spectrum(make(rng)).values
    path = default_alphas(values, 9)
    assert len(path) == 9
    assert path[0] < 1e-6 * values[0]
    assert path[-1] > 10 * values[0]
    assert np.all(np.isfinite(default_alphas(np.zeros(3))))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_an_interpolating_table_keeps_its_digits_as_the_penalty_vanishes(rng, fit_intercept):
    """r and 1 − h are both of size α here; their quotient tends to the minimum-norm refit's."""
    problem = make(rng, 8, 20, 2, fit_intercept=fit_intercept)
    tiny = loo_curve(spectrum(problem), np.array([1e-14]))
    np.testing.assert_allclose(tiny.error[0], refits(problem, 0.0), rtol=1e-8)
