"""Problems of intervals: certificates recomputed in more digits, and every way to the optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, minimize

from wonderland.core.status import Status
from wonderland.solve.interior import solve_interior
from wonderland.solve.interior_linear import Curvature, solve_newton
from wonderland.solve.interior_problem import Intervals, balance, complementarity, losses, supports
from wonderland.solve.interior_routes import solve_intervals
from wonderland.solve.interior_sift import sift


def labelled(rng, n, d, C, *, noise=1.0, squared=False, intercept=True):
    X = rng.normal(size=(n, d))
    positive = X @ rng.normal(size=d) * 2 / np.sqrt(d) + noise * rng.logistic(size=n) > 0
    low, high = np.where(positive, 1.0, -np.inf), np.where(positive, np.inf, -1.0)
    return Intervals(X, low, high, np.full(n, float(C)), intercept, squared)


def tubes(rng, n, d, C, epsilon, *, squared=False):
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.standard_t(3, size=n)
    return Intervals(
        X, y - epsilon, y + epsilon, np.full(n, float(C)), intercept=True, squared=squared
    )


MADE = {
    "hinge": lambda rng: labelled(rng, 300, 8, 1.0),
    "hinge, no intercept": lambda rng: labelled(rng, 200, 5, 1.0, intercept=False),
    "hinge, nearly separable": lambda rng: labelled(rng, 300, 8, 1e3, noise=0.05),
    "hinge, separable, large C": lambda rng: labelled(rng, 200, 5, 1e8, noise=0.0),
    "hinge, wide": lambda rng: labelled(rng, 40, 300, 1.0),
    "hinge, wide, small C": lambda rng: labelled(rng, 60, 80, 1e-3),
    "squared hinge": lambda rng: labelled(rng, 300, 8, 2.0, squared=True),
    "squared hinge, wide": lambda rng: labelled(rng, 40, 300, 1.0, squared=True),
    "absolute": lambda rng: tubes(rng, 300, 8, 1.0, 0.0),
    "tube": lambda rng: tubes(rng, 300, 8, 10.0, 0.5),
    "tube that holds all": lambda rng: tubes(rng, 50, 3, 10.0, 100.0),
    "squared tube": lambda rng: tubes(rng, 300, 8, 1.0, 0.5, squared=True),
}
every = pytest.mark.parametrize("name", MADE)


def exactly(problem, point):
    """(P, D) in extended precision, from the definitions."""
    wide = np.longdouble
    X, beta = problem.X.astype(wide), point.beta.astype(wide)
    w, c = point.w.astype(wide), problem.strength.astype(wide)
    z = X @ w + wide(point.b)
    distance = np.maximum(np.maximum(problem.low - z, z - problem.high), 0)
    paid = c * distance**2 if problem.squared else c * distance
    v = beta @ X
    ends = np.where(beta > 0, problem.low, np.where(beta < 0, problem.high, 0)).astype(wide)
    gained = ends * beta - (beta**2 / (4 * c) if problem.squared else 0)
    return w @ w / 2 + paid.sum(), gained.sum() - v @ v / 2


@every
def test_the_gap_is_true(name, rng):
    problem = MADE[name](rng)
    answer = solve_intervals(problem, 1e-9, 2000)
    primal, dual = exactly(problem, answer.point)
    assert answer.status is Status.CONVERGED
    # Feasible for the dual: the box exactly, the sum to rounding.
    beta = answer.point.beta
    assert (np.abs(beta) <= problem.box).all()
    assert not np.any((beta > 0) & np.isinf(problem.low))
    assert not np.any((beta < 0) & np.isinf(problem.high))
    if problem.intercept:
        assert abs(beta.sum()) <= 1e-13 * max(1.0, np.abs(beta).sum())
    assert 0 <= primal - dual + 1e-12 * primal <= 1e-9 * primal + 2e-12 * primal + 1e-300
    assert abs(answer.certificate.gap - (primal - dual) / max(primal, 1e-300)) <= 1e-10


@every
def test_nothing_else_is_better(name, rng):
    """An oracle that shares no code: SciPy on the smooth problem, or on the quadratic program."""
    problem = MADE[name](rng)
    answer = solve_intervals(problem, 1e-9, 2000)
    best = answer.certificate.primal
    for scale in (1e-1, 1e-3, 1e-6):
        for _ in range(20):
            w = answer.point.w + scale * rng.normal(size=len(answer.point.w))
            b = answer.point.b + scale * rng.normal() * problem.intercept
            other = 0.5 * w @ w + losses(problem, problem.X @ w + b).sum()
            assert other >= best * (1 - 1e-9)


def test_a_quadratic_program_of_scipy_agrees(rng):
    problem = labelled(rng, 40, 3, 2.0)
    n, d = problem.X.shape
    s = np.where(np.isfinite(problem.low), 1.0, -1.0)
    # Variables (w, b, ξ): ½‖w‖² + 2 Σξ under s(Xw + b) + ξ ≥ 1, ξ ≥ 0.
    A = np.hstack([s[:, None] * problem.X, s[:, None], np.eye(n)])
    found = minimize(
        lambda v: 0.5 * v[:d] @ v[:d] + 2.0 * v[d + 1 :].sum(),
        np.concatenate([np.zeros(d + 1), np.ones(n)]),
        jac=lambda v: np.concatenate([v[:d], [0.0], np.full(n, 2.0)]),
        method="SLSQP",
        bounds=[(None, None)] * (d + 1) + [(0, None)] * n,
        constraints=LinearConstraint(A, 1.0, np.inf),
        options={"ftol": 1e-14, "maxiter": 500},
    )
    answer = solve_intervals(problem, 1e-9, 1000)
    # It bends its constraints a little: judged by the objective at its own w and b.
    w, scores = found.x[:d], s * (problem.X @ found.x[:d] + found.x[d])
    theirs = 0.5 * w @ w + 2.0 * np.maximum(0.0, 1.0 - scores).sum()
    assert answer.certificate.primal <= theirs * (1 + 1e-9)
    # ½‖w − w*‖² ≤ P(w) − P*, by strong convexity.
    apart = 0.5 * ((answer.point.w - w) ** 2).sum()
    assert apart <= (theirs - answer.certificate.dual) * (1 + 1e-6) + 1e-9


def test_sifting_finds_what_all_rows_find(rng):
    problem = labelled(rng, 9000, 6, 0.5)
    sifted = sift(problem, 1e-10, 1000)
    assert sifted.kept < 9000
    whole = solve_intervals(problem.rows(np.arange(8000)), 1e-10, 1000)  # as they are
    assert whole.status is Status.CONVERGED
    answer = solve_intervals(problem, 1e-10, 1000)
    primal, dual = exactly(problem, answer.point)
    assert primal - dual <= 1e-10 * primal


def test_rare_classes_are_in_the_sample(rng):
    X = rng.normal(size=(20_000, 4))
    rare = np.arange(20_000) % 1000 == 0
    X[rare] += 1.0
    low, high = np.where(rare, 1.0, -np.inf), np.where(rare, np.inf, -1.0)
    problem = Intervals(X, low, high, np.full(20_000, 10.0))
    answer = solve_intervals(problem, 1e-9, 2000)
    primal, dual = exactly(problem, answer.point)
    assert primal - dual <= 1e-9 * primal


@pytest.mark.parametrize(
    "name", ["hinge", "hinge, no intercept", "hinge, nearly separable", "absolute", "tube"]
)
def test_the_interior_point_method_alone(name, rng):
    problem = MADE[name](rng)
    inside = solve_interior(problem, 1e-8)
    answer = solve_intervals(problem, 1e-10, 2000)
    assert inside.gap <= 1e-8
    assert inside.steps <= 40
    np.testing.assert_allclose(inside.point.w, answer.point.w, atol=1e-4)
    assert (np.abs(inside.point.beta) <= problem.strength).all()


def test_where_one_way_stalls_the_interior_point_takes_over(rng, monkeypatch):
    problem = labelled(rng, 300, 8, 1.0)
    best = solve_intervals(problem, 1e-10, 2000).certificate.primal
    monkeypatch.setattr("wonderland.solve.interior_lagrangian.SHARPEN", 1.0)
    monkeypatch.setattr("wonderland.solve.interior_lagrangian.PATIENCE", 0)
    stalled = sift(problem, 1e-10, 2000)
    assert stalled.gap == np.inf
    answer = solve_intervals(problem, 1e-10, 2000)
    assert "interior point" in answer.solver
    monkeypatch.undo()
    # Its point is good to its own tolerance, or better once the first way runs again.
    assert answer.certificate.primal >= best * (1 - 1e-9)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("shape", [(400, 20), (60, 300)])
def test_sparse_rows(shape, squared, rng):
    dense = labelled(rng, *shape, 1.0, squared=squared)
    X = np.where(rng.uniform(size=shape) < 0.1, dense.X, 0.0)
    one = solve_intervals(dense._replace(X=X), 1e-9, 1000)
    two = solve_intervals(dense._replace(X=sp.csr_array(X)), 1e-9, 1000)
    np.testing.assert_allclose(one.certificate.primal, two.certificate.primal, rtol=1e-9)
    np.testing.assert_allclose(one.point.w, two.point.w, atol=1e-6)


@pytest.mark.parametrize("shape", [(30, 5), (5, 30), (12, 12)])
@pytest.mark.parametrize("intercept", [True, False])
def test_newton_steps_solve_the_system(shape, intercept, rng, monkeypatch):
    A, D = rng.normal(size=shape), rng.uniform(0.5, 2.0, size=shape[0])
    g, g_b = rng.normal(size=shape[1]), float(rng.normal()) * intercept
    ones = np.ones((shape[0], 1)) * intercept
    Z = np.hstack([A, ones])
    H = Z.T @ (D[:, None] * Z) + np.diag([1.0] * shape[1] + [0.0 if intercept else 1.0])
    expected = -np.linalg.solve(H, np.append(g, g_b))
    found = solve_newton(Curvature(A, np.arange(len(A)), D, intercept), g, g_b, 1.0)
    np.testing.assert_allclose(np.append(*found), expected, rtol=1e-8, atol=1e-10)
    monkeypatch.setattr("wonderland.solve.interior_linear.SPARSE", 0)
    dw, db = solve_newton(Curvature(sp.csr_array(A), np.arange(len(A)), D, intercept), g, g_b, 1.0)
    np.testing.assert_allclose(np.append(dw, db), expected, atol=1e-2)


@every
def test_each_term_of_the_gap_is_the_definition(name, rng):
    problem = MADE[name](rng)
    n = len(problem.low)
    z = rng.normal(size=n)
    limit = np.minimum(problem.box, 3.0)
    low = np.where(np.isfinite(problem.high), -limit, 0.0)
    high = np.where(np.isfinite(problem.low), limit, 0.0)
    beta = rng.uniform(low, high)
    expected = losses(problem, z) + beta * z - supports(problem, beta)
    np.testing.assert_allclose(
        complementarity(problem, beta, z), expected, rtol=1e-9, atol=1e-9 * problem.strength.max()
    )
    assert (complementarity(problem, beta, z) >= 0).all()


def test_balance_keeps_signs_and_box(rng):
    problem = labelled(rng, 100, 3, 1.0)
    sides = np.where(np.isfinite(problem.low), 1.0, -1.0)
    beta = sides * np.clip(rng.uniform(-0.5, 1.5, size=100), 0, 1)
    even = balance(problem, beta)
    assert abs(even.sum()) < 1e-12
    assert (sides * even >= 0).all()
    assert (np.abs(even) <= 1).all()


def test_steps_are_limited(rng):
    answer = solve_intervals(labelled(rng, 300, 8, 1.0), 1e-12, 1)
    assert answer.status is Status.ITERATIONS
    assert answer.steps <= 2
    assert np.isfinite(answer.certificate.gap)
