"""Searches on functions whose minima are known, alone and side by side."""

import numpy as np
import pytest

from wonderland.core.status import Status
from wonderland.solve.newton import Found, Rules, drive, search
from wonderland.solve.newton_metric import Dense, Diagonal, Product
from wonderland.solve.newton_trust import accelerated, trust_region


class Cosh:
    """f(θ) = Σ a_j log cosh(θ_j − j) + ½(Qθ)²: convex, with tails along which Newton overshoots."""

    def __init__(self, rng, p=4):
        self.a, self.Q = rng.uniform(0.5, 2.0, size=p), 0.3 * rng.normal(size=(p, p))
        self.centre = np.arange(p)
        self.calls = 0

    def __call__(self, which, asks):
        self.calls += 1
        return [self.at(ask) for ask in asks]

    def at(self, ask):
        t = ask.theta - self.centre
        value = self.a @ (np.logaddexp(t, -t) - np.log(2.0)) + 0.5 * np.sum(
            (self.Q @ ask.theta) ** 2
        )
        gradient = self.a * np.tanh(t) + self.Q.T @ (self.Q @ ask.theta)
        H = np.diag(self.a / np.cosh(np.clip(t, -300, 300)) ** 2) + self.Q.T @ self.Q
        product = None if ask.vector is None else H @ ask.vector
        return Found(float(value), gradient, Dense(H) if ask.hessian else None, product)


EXACT = Rules(tol=1e-9, precision=1e-18, max_iter=200, renew=np.inf)


@pytest.mark.parametrize("kind", ["newton", "kept", "lbfgs", "trust", "descent"])
def test_searches_find_the_minimum(kind, rng):
    f, start = Cosh(rng), np.full(4, 6.0)
    known = drive(f, [search(start, EXACT)])[0].theta
    searches = {
        "newton": lambda: search(start, EXACT),
        "kept": lambda: search(start, EXACT._replace(renew=4.0)),
        "lbfgs": lambda: search(start, EXACT._replace(renew=0.0), Diagonal(np.ones(4))),
        "trust": lambda: trust_region(start, EXACT),
        "descent": lambda: accelerated(
            start, EXACT._replace(max_iter=50_000), 2.0 + np.linalg.norm(f.Q, 2) ** 2
        ),
    }
    end = drive(f, [searches[kind]()])[0]
    assert end.status in (Status.CONVERGED, Status.STALLED)
    np.testing.assert_allclose(end.theta, known, atol=1e-7)
    assert np.abs(end.gradient).max() < 1e-8


def test_side_by_side_share_calls(rng):
    f = Cosh(rng)
    starts = rng.normal(size=(5, 4))
    ends = drive(f, [search(start, EXACT) for start in starts])
    together, f.calls = f.calls, 0
    alone = [drive(f, [search(start, EXACT)])[0] for start in starts]
    assert together < f.calls / 2
    for one, two in zip(ends, alone, strict=True):
        np.testing.assert_array_equal(one.theta, two.theta)


def test_limits_are_kept(rng):
    f = Cosh(rng)
    assert drive(f, [search(np.ones(4), EXACT._replace(max_iter=1))])[0].status is Status.ITERATIONS
    lost = drive(
        lambda w, asks: [Found(np.nan, a.theta, Dense(np.eye(4))) for a in asks],
        [search(np.ones(4), EXACT)],
    )
    assert lost[0].status is Status.DIVERGED
    low = drive(f, [search(np.ones(4), EXACT._replace(floor=1e9))])[0]
    assert low.status is Status.SEPARATED


def test_metrics_solve(rng):
    root = rng.normal(size=(5, 5))
    H, g = root @ root.T, rng.normal(size=5)
    np.testing.assert_allclose(H @ Dense(H).solve(g), g, atol=1e-8)
    np.testing.assert_allclose(Dense(H).inverse() @ H, np.eye(5), atol=1e-8)
    A = np.diag([0.5, 0.25, 0.1])
    both = Product(A, H, np.ones(5))
    right = rng.normal(size=15)
    np.testing.assert_allclose((np.kron(A, H) + np.eye(15)) @ both.solve(right), right, atol=1e-8)
    for metric, p in ((Dense(H), 5), (both, 15), (Diagonal(np.ones(10)), 10)):
        right = rng.normal(size=p)
        np.testing.assert_allclose(metric.rescaled(4.0).solve(right), metric.solve(right) / 4.0)


def test_singular_hessians_leave_alone_what_nothing_determines(rng):
    root = rng.normal(size=(5, 3)) * 10.0 ** rng.uniform(-3, 3, size=(5, 1))
    H = root @ root.T
    g = H @ rng.normal(size=5)
    np.testing.assert_allclose(H @ Dense(H).solve(g), g, rtol=1e-6, atol=1e-6 * np.abs(g).max())
