"""Direct least squares: every method gives the textbook's answer, and tells what it measured."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solve.problems import make, objective, textbook
from wonderland.core.errors import NotFiniteError
from wonderland.solve.choose import Method
from wonderland.solve.direct import solve_direct

OPTIONS = list(itertools.product([0.0, 2.0, (0.5, 30.0)], [False, True], [False, True]))


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    """Whether the certified route for small problems is taken."""
    monkeypatch.setattr("wonderland.solve.problem.SMALL", 2_000_000 * (request.param == "small"))
    return request.param


def check(problem, *, rtol=1e-10):
    fit = solve_direct(problem)
    coef, intercept = textbook(problem)
    scale = np.abs(coef).max(initial=1e-300)
    np.testing.assert_allclose(fit.coef, coef, atol=rtol * scale)
    np.testing.assert_allclose(fit.intercept, intercept, rtol=rtol, atol=rtol * scale)
    weight = np.ones(len(problem.X)) if problem.weight is None else problem.weight
    r = problem.y - problem.X @ fit.coef - fit.intercept
    np.testing.assert_allclose(fit.rss, weight @ r**2, rtol=1e-8, atol=1e-20)
    assert fit.reason
    assert fit.error.shape == (problem.parameters, problem.y.shape[1])
    return fit


@pytest.mark.parametrize(("alpha", "weighted", "fit_intercept"), OPTIONS)
@pytest.mark.parametrize("shape", [(40, 5, 2), (6, 12, 2), (9, 9, 2)])
def test_equals_the_textbook(rng, size, shape, alpha, weighted, fit_intercept):
    problem = make(rng, *shape, alpha=alpha, weighted=weighted, fit_intercept=fit_intercept)
    fit = check(problem, rtol=1e-8 if shape[0] <= shape[1] else 1e-10)
    assert fit.gradient < 1e-12
    if size == "small" or isinstance(alpha, tuple):
        return
    expected = {
        (40, 0.0): Method.CHOLESKY, (40, 2.0): Method.CHOLESKY,
        (6, 0.0): Method.REFINED, (6, 2.0): Method.DUAL,
    }  # fmt: skip
    assert fit.solver == expected.get((shape[0], alpha), fit.solver)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_inverse_is_that_of_the_normal_equations(rng, size, weighted):
    for alpha, fit_intercept in itertools.product([0.0, 3.0], [False, True]):
        problem = make(rng, alpha=alpha, weighted=weighted, fit_intercept=fit_intercept)
        Z = np.hstack([np.ones((30, int(fit_intercept))), problem.X])
        weight = np.ones(30) if problem.weight is None else problem.weight
        penalty = alpha * np.diag([0.0] * int(fit_intercept) + [1.0] * 4)
        expected = np.linalg.inv(Z.T @ (weight[:, None] * Z) + penalty)
        np.testing.assert_allclose(solve_direct(problem).inverse, expected, rtol=1e-9, atol=1e-12)


def test_the_condition_number_is_that_of_centred_scaled_columns(rng, size):
    problem = make(rng, 60, 5, 1, mean=3.0)
    X = problem.X * [1.0, 1e3, 1e-3, 1.0, 1.0]
    X[:, 4] = X[:, 3] + 1e-2 * X[:, 4]
    centred = X - X.mean(axis=0)
    expected = np.linalg.cond(centred / np.linalg.norm(centred, axis=0))
    fit = solve_direct(problem._replace(X=X))
    np.testing.assert_allclose(fit.condition, expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("closeness", "method"),
    [(1.0, Method.CHOLESKY), (1e-3, Method.CORRECTED), (1e-8, Method.REFINED)],
)
def test_the_measured_conditioning_chooses(rng, monkeypatch, closeness, method):
    monkeypatch.setattr("wonderland.solve.problem.SMALL", 0)
    problem = make(rng, 200, 3, 2)
    X = problem.X.copy()
    X[:, 2] = X[:, 1] + closeness * X[:, 2]
    fit = check(problem._replace(X=X), rtol=1e-7 if closeness < 1e-6 else 1e-11)
    assert fit.solver == method


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_dependent_columns_get_the_minimum_norm(rng, size, fit_intercept, weighted):
    problem = make(rng, 30, 3, 2, fit_intercept=fit_intercept, weighted=weighted)
    X = np.column_stack([problem.X, problem.X[:, 0] - 2 * problem.X[:, 1], np.full(30, 7.0)])
    fit = check(problem._replace(X=X), rtol=1e-9)
    # A constant column repeats the intercept; without one it is as good as any other.
    assert fit.rank == (3 if fit_intercept else 4)
    assert fit.solver == Method.MINIMUM_NORM
    dependent = {j for j, _ in fit.collinear}
    assert len(dependent) == 5 - fit.rank
    if fit_intercept:
        assert (4, ()) in fit.collinear
    tied = [{j, *others} for j, others in fit.collinear if others]
    assert tied == [{0, 1, 3}]
    assert np.all(np.isinf(fit.error))


def test_repeated_rows_in_a_wide_table(rng, size):
    problem = make(rng, 6, 15, 1)
    rows = [0, 1, 2, 3, 4, 5, 0, 0]
    problem = problem._replace(X=problem.X[rows], y=rng.normal(size=(8, 1)))
    fit = check(problem, rtol=1e-8)
    assert fit.rank == 5


@given(
    st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 8),
    st.sampled_from([0.0, 1e-6, 1.0, 1e6]), st.booleans(), st.sampled_from([0.0, 10.0, -1e4]),
)  # fmt: skip
def test_no_answer_is_better(seed, n, d, alpha, fit_intercept, mean):
    """The objective at the answer is at most that of any neighbour."""
    rng = np.random.default_rng(seed)
    problem = make(rng, n, d, 1, alpha=alpha, fit_intercept=fit_intercept, mean=mean)
    fit = solve_direct(problem)
    best = objective(problem, fit.coef, fit.intercept)
    noise = 1e-9 * (problem.y**2).sum()
    for size in (1e-3, 1e-1, 10.0):
        w = fit.coef + size * rng.normal(size=fit.coef.shape)
        b = fit.intercept + size * rng.normal() * fit_intercept
        assert np.all(best <= objective(problem, w, b) + noise)


@pytest.mark.parametrize("factor", [1e-150, 1e-30, 1e30, 1e150])
def test_units_do_not_matter(rng, size, factor):
    """Second moments of such columns under- or overflow; the answer does not."""
    problem = make(rng, 40, 3, 1)
    fit = solve_direct(problem._replace(X=factor * problem.X))
    np.testing.assert_allclose(fit.coef * factor, textbook(problem)[0], rtol=1e-9)


@pytest.mark.parametrize("place", ["X", "y"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_data_that_are_not_finite_are_heard(rng, monkeypatch, place, value):
    monkeypatch.setattr("wonderland.solve.problem.SMALL", 0)
    problem = make(rng)
    table = getattr(problem, place).copy()
    table[3, 1] = value
    with pytest.raises(NotFiniteError):
        solve_direct(problem._replace(**{place: table}))


def test_weights_that_are_zero(rng, size):
    problem = make(rng, 40, 3, 2, weighted=True)
    weight = problem.weight.copy()
    weight[:10] = 0.0
    kept = problem._replace(X=problem.X[10:], y=problem.y[10:], weight=weight[10:])
    fit = solve_direct(problem._replace(weight=weight))
    np.testing.assert_allclose(fit.coef, solve_direct(kept).coef, rtol=1e-11)
    np.testing.assert_allclose(fit.rss, solve_direct(kept).rss, rtol=1e-11)
