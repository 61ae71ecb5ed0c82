"""What happened against an independent descent in NumPy, and under the theorem's bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wonderland.core.errors import InputError
from wonderland.report.history import descent_history


def _data(seed, n=40, d=4, outputs=1):
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(n, d)) * np.linspace(0.3, 2.0, d) + chance.normal(size=d)
    return X, X @ chance.normal(size=(d, outputs)) + chance.normal(size=(n, outputs))


@given(st.integers(0, 2**31), st.booleans(), st.sampled_from([0.0, 0.5, 30.0]))
def test_gap_stays_under_its_bound(seed, momentum, alpha):
    X, y = _data(seed)
    found = descent_history(X, y[:, 0], alpha=alpha, steps=60, momentum=momentum)
    assert len(found.gap) == len(found.bound) == 61
    slack = 1e-12 * found.gap[0]
    assert np.all(found.gap <= found.bound * (1 + 1e-9) + slack)


@given(st.integers(0, 2**31))
def test_gap_stays_under_its_bound_for_dependent_columns(seed):
    X, y = _data(seed)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    found = descent_history(X, y, steps=60)
    assert found.strong_convexity == 0.0
    assert np.all(found.gap <= found.bound * (1 + 1e-9) + 1e-12 * found.gap[0])


def test_gap_is_that_of_a_descent_written_out(rng):
    X, y = _data(int(rng.integers(2**31)), outputs=2)
    alpha, steps = 0.7, 25
    centred, target = X - X.mean(axis=0), y - y.mean(axis=0)
    hessian = (centred.T @ centred + alpha * np.eye(4)) / len(X)
    values = np.linalg.eigvalsh(hessian)

    def f(w):
        residual = target - centred @ w
        return (np.sum(residual**2) + alpha * np.sum(w**2)) / (2 * len(X))

    w, best = np.zeros((4, 2)), np.linalg.solve(hessian, centred.T @ target / len(X))
    gaps = [f(w) - f(best)]
    for _ in range(steps):
        w = w - 2 / (values[0] + values[-1]) * (hessian @ w - centred.T @ target / len(X))
        gaps.append(f(w) - f(best))
    found = descent_history(X, y, alpha=alpha, steps=steps)
    np.testing.assert_allclose(found.gap, gaps, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.lipschitz, values[-1], rtol=1e-12)
    np.testing.assert_allclose(found.strong_convexity, values[0], rtol=1e-12)
    np.testing.assert_allclose(found.distance, np.linalg.norm(best), rtol=1e-10)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"alpha": -1.0}])
def test_refuses_what_cannot_be_run(wrong):
    with pytest.raises(InputError, match="at least one step"):
        descent_history(np.eye(3), np.arange(3.0), **wrong)
