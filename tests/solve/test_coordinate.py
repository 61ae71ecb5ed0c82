"""Coordinate descent in the one loop: lasso, elastic net and box against SciPy and scikit-learn."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize
from sklearn.linear_model import ElasticNet

from wonderland.core.arrays import in_float64
from wonderland.core.status import Status
from wonderland.solve.coordinate import CoordinateDescent, separable_quadratic
from wonderland.solve.run import Stopping, minimise
from wonderland.testing.compiling import nothing_compiles_again


@in_float64
def solve(X, y, l1=0.0, l2=0.0, box=(-np.inf, np.inf), tol=1e-11, start=None):
    objective = separable_quadratic(jnp.asarray(X.T @ X), jnp.asarray(X.T @ y), l1, l2, box)
    w = jnp.zeros(X.shape[1]) if start is None else jnp.asarray(start)
    state, status = minimise(CoordinateDescent(), objective, w, Stopping(tol=tol))
    return np.asarray(state.w), status, float(objective.value(state.w)), state


def table(rng, n=60, d=8):
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))
    return X, X[:, :3] @ rng.normal(size=3) * 2 + rng.normal(size=n)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_elastic_net_against_scikit_learn(rng, share):
    X, y = table(rng)
    alpha, n = 0.1, len(y)
    peer = ElasticNet(alpha=alpha, l1_ratio=share, fit_intercept=False, tol=1e-12, max_iter=100_000)
    peer.fit(X, y)
    w, status, value, _ = solve(X, y, n * alpha * share, n * alpha * (1 - share))
    theirs = 0.5 * peer.coef_ @ X.T @ X @ peer.coef_ - y @ X @ peer.coef_
    theirs += n * alpha * (share * np.abs(peer.coef_).sum())
    theirs += 0.5 * n * alpha * (1 - share) * (peer.coef_**2).sum()
    assert status is Status.CONVERGED
    assert value <= theirs + 1e-11 * abs(theirs)
    np.testing.assert_allclose(w, peer.coef_, atol=1e-8)
    np.testing.assert_array_equal(w == 0, np.abs(peer.coef_) < 1e-9)


def test_a_box_against_scipy(rng):
    X, y = table(rng)
    low, high = -0.3, np.where(np.arange(8) < 4, 0.5, np.inf)
    peer = lsq_linear(X, y, (np.full(8, low), high), tol=1e-14)
    w, status, value, _ = solve(X, y, box=(low, high))
    assert status is Status.CONVERGED
    assert np.all((w >= low) & (w <= high))
    assert value <= peer.cost - 0.5 * y @ y + 1e-9
    np.testing.assert_allclose(w, peer.x, atol=1e-6)


def test_all_penalties_at_once_against_scipy(rng):
    """Split w = p − q with p, q ≥ 0 and hand it to L-BFGS-B."""
    X, y = table(rng)
    _, _, value, _ = solve(X, y, 5.0, 2.0, (-0.4, 0.6))

    def split(pq):
        point = pq[:8] - pq[8:]
        slope = X.T @ (X @ point - y) + 2.0 * point
        total = 0.5 * np.sum((X @ point) ** 2) - y @ X @ point + point @ point + 5.0 * pq.sum()
        return total, np.r_[slope + 5.0, 5.0 - slope]

    bounds = [(0, 0.6)] * 8 + [(0, 0.4)] * 8
    peer = minimize(split, np.zeros(16), jac=True, bounds=bounds, options={"ftol": 1e-15})
    assert value <= peer.fun + 1e-9 * abs(peer.fun)


def test_the_objective_never_rises_and_ends_certified(rng):
    X, y = table(rng, n=5, d=8)  # singular: fewer rows than columns
    values = [solve_sweeps(X, y, sweeps) for sweeps in range(1, 6)]
    assert np.all(np.diff(values) <= 1e-12)
    assert solve(X, y, 0.5, tol=1e-10)[1] is Status.CONVERGED


@in_float64
def solve_sweeps(X, y, sweeps):
    objective = separable_quadratic(jnp.asarray(X.T @ X), jnp.asarray(X.T @ y), 0.5)
    rules = Stopping(tol=0.0, max_iter=sweeps)
    state, _ = minimise(CoordinateDescent(), objective, jnp.zeros(X.shape[1]), rules)
    return float(objective.value(state.w))


def test_a_column_of_zeros_stays_where_it_is(rng):
    X, y = table(rng)
    X[:, 2] = 0.0
    w, status, _, _ = solve(X, y, 0.1)
    assert status is Status.CONVERGED
    assert w[2] == 0


def test_a_start_outside_the_box_is_brought_in(rng):
    X, y = table(rng)
    w, _, _, _ = solve(X, y, box=(0.0, 1.0), start=np.full(8, 5.0))
    assert np.all((w >= 0) & (w <= 1))


def test_a_slope_without_curvature_diverges_and_says_so():
    X = np.zeros((3, 2))
    X[:, 0] = 1.0
    with_slope = separable(np.zeros((2, 2)), np.array([1.0, 0.0]))
    assert with_slope is Status.DIVERGED


@in_float64
def separable(gram, linear):
    objective = separable_quadratic(jnp.asarray(gram), jnp.asarray(linear))
    return minimise(CoordinateDescent(), objective, jnp.zeros(len(linear)), Stopping())[1]


def test_a_new_penalty_compiles_nothing(rng):
    X, y = table(rng)
    nothing_compiles_again(lambda: solve(X, y, 0.7)[0], lambda: solve(X, y, 0.3, 0.1)[0])
