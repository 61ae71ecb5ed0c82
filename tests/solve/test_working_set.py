"""Steps of two variables, Newton on the free ones, and the certificate, on small problems."""

import numpy as np
import pytest
from scipy.optimize import minimize

from wonderland.core.status import Status
from wonderland.kernels import Gaussian, Linear, Precomputed
from wonderland.solve.box_active import Point, newton, walk
from wonderland.solve.box_gram import Gram, kernel_product
from wonderland.solve.box_problem import BoxProblem, certify, violation
from wonderland.solve.box_solver import Limits, solve_box
from wonderland.solve.working_set import bucket, room, settle


def problem(rng, n=40, cost=1.0, kink=0.0):
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    if kink:
        y = X[:, 0] + rng.normal(size=n)
        return BoxProblem(y, -cost * np.ones(n), cost * np.ones(n), kink), Gram(Gaussian(0.5), X)
    return BoxProblem(y, np.minimum(0, cost * y), np.maximum(0, cost * y)), Gram(Gaussian(0.5), X)


def value(given, K, beta):
    return 0.5 * beta @ K @ beta - given.linear @ beta + given.kink * np.abs(beta).sum()


@pytest.mark.parametrize("kink", [0.0, 0.3])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_steps_of_two_lower_the_objective_and_keep_the_sum(kind, kink, rng):
    given, gram = problem(rng, kink=kink)
    place = room(gram.n, kind)
    gram.block(np.arange(gram.n), None, kind, out=place.filled)
    beta, steps = settle(place, given, np.zeros(gram.n), given.linear, 1e-4, 10_000)
    K = gram.block(np.arange(gram.n), None, np.float64)
    assert 0 < steps < 10_000
    assert abs(beta.sum()) < 1e-4
    assert (beta >= given.low).all()
    assert (beta <= given.high).all()
    assert violation(given, beta, given.linear - K @ beta) < 1e-3
    assert value(given, K, beta) < 0


@pytest.mark.parametrize("kink", [0.0, 0.3])
def test_the_optimum_is_that_of_a_general_solver(kink, rng):
    given, gram = problem(rng, n=15, kink=kink)
    K = gram.block(np.arange(15), None, np.float64)
    fit = solve_box(given, gram, Limits(1e-9))
    # β = u − v with u, v ≥ 0 makes the kink linear.
    start = np.zeros(30)
    split = lambda z: z[:15] - z[15:]  # noqa: E731  # a one-line map reads best
    other = minimize(
        lambda z: 0.5 * split(z) @ K @ split(z) - given.linear @ split(z) + kink * z.sum(),
        start,
        bounds=[(0, h) for h in given.high] + [(0, -low) for low in given.low],
        constraints={"type": "eq", "fun": lambda z: split(z).sum()},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert value(given, K, fit.beta) <= other.fun + 1e-7
    assert fit.status is Status.CONVERGED
    assert fit.certificate.gap <= 1e-9


def test_newton_ends_at_rounding_level_and_walk_never_rises(rng):
    given, gram = problem(rng)
    rough = solve_box(given, gram, Limits(1e-2, gap=False))
    K = gram.block(np.arange(gram.n), None, np.float64)
    point = Point(rough.beta, given.linear - K @ rough.beta)
    better = newton(given, gram, point, rough.certificate.bias, 1e-10)
    assert better is not None
    assert violation(given, better.beta, given.linear - K @ better.beta) < 1e-10
    lower = walk(given, gram, point)
    assert value(given, K, lower.beta) <= value(given, K, point.beta) + 1e-14
    np.testing.assert_allclose(lower.g, given.linear - K @ lower.beta, atol=1e-10)


def test_the_gap_bounds_the_distance_to_the_optimum(rng):
    given, gram = problem(rng)
    K = gram.block(np.arange(gram.n), None, np.float64)
    best = solve_box(given, gram, Limits(1e-10)).certificate.dual
    for share in (0.0, 0.3, 0.9):
        beta = share * solve_box(given, gram, Limits(1e-10)).beta
        found = certify(given, beta, given.linear - K @ beta)
        assert found.dual <= best + 1e-12 <= found.primal + 1e-11


def test_products_that_store_nothing_are_products(rng):
    X, Z, v = rng.normal(size=(700, 4)), rng.normal(size=(600, 4)), rng.normal(size=(600, 2))
    k = Gaussian(0.3)
    exact = np.asarray(k.matrix(X, Z)) @ v
    np.testing.assert_allclose(kernel_product(k, X, Z, v, np.float64), exact, atol=1e-11)
    np.testing.assert_allclose(kernel_product(k, X, Z, v, np.float32), exact, atol=1e-4)


def test_parts_of_a_given_matrix(rng):
    K = rng.normal(size=(6, 6))
    part = Gram(Precomputed(), K).part(np.array([4, 1, 3])).part(np.array([2, 0]))
    np.testing.assert_array_equal(
        part.block(np.array([0, 1]), None, np.float64), K[np.ix_([3, 4], [3, 4])]
    )
    np.testing.assert_array_equal(part.diagonal(), K[[3, 4], [3, 4]])


@pytest.mark.parametrize("size", [1, 128, 129, 192, 193, 5000, 12288])
def test_sizes_come_in_few_buckets(size):
    assert size <= bucket(size) <= max(128, 1.51 * size)


@pytest.mark.slow
def test_large_problems_start_from_a_part_of_the_samples(rng):
    n = 7000
    X = rng.normal(size=(n, 5))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    given = BoxProblem(y, np.minimum(0, y), np.maximum(0, y))
    fit = solve_box(given, Gram(Gaussian(0.2), X), Limits(1e-3))
    assert fit.status is Status.CONVERGED
    assert fit.certificate.gap <= 1e-3
    assert fit.certificate.violation <= 1e-3


def test_blocks_of_a_kept_matrix_are_copied_by_stretches_or_by_rows(rng):
    X = rng.normal(size=(60, 3))
    gram = Gram(Gaussian(0.4), X)
    kept = gram.keep(rng.permutation(60))
    for rows in (np.arange(10, 40), rng.permutation(60)[:33]):
        np.testing.assert_allclose(
            kept.block(rows, rows[:7], np.float32),
            gram.block(rows, rows[:7], np.float64),
            atol=1e-6,
        )
        part = kept.part(rows)
        v = rng.normal(size=4)
        some = np.array([3, 0, 9, 5])
        np.testing.assert_allclose(
            part.product(None, some, v, np.float32),
            gram.part(rows).product(None, some, v, np.float64),
            atol=1e-5,
        )


@pytest.mark.parametrize("kink", [0.0, 0.3])
def test_a_linear_kernel_is_solved_by_its_hyperplane(kink, rng):
    given, gram = problem(rng, n=150, kink=kink)
    X = gram.rows
    fast = solve_box(given, Gram(Linear(), X), Limits(1e-6))
    slow = solve_box(given, Gram(Precomputed(positive=True), X @ X.T), Limits(1e-6))
    assert "kernel is linear" in fast.solver
    assert fast.certificate.violation <= 1e-6
    assert abs(fast.beta.sum()) < 1e-12
    assert abs(fast.certificate.dual - slow.certificate.dual) <= 2e-6 * slow.certificate.primal
    np.testing.assert_allclose(X.T @ fast.beta, X.T @ slow.beta, atol=1e-3)
