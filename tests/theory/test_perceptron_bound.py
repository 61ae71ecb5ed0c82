"""Novikoff's theorem on many separable tables, and the theorem's other half on exclusive or."""

import numpy as np

import wonderland as wl
from wonderland.linear.perceptron import fit_perceptron
from wonderland.solve.separation import separate


def test_mistakes_stay_under_the_bound_on_200_separable_tables(rng):
    """M ≤ C²/γ² with the widest margin γ in the coordinates (x, 1)."""
    ratios = []
    for _ in range(200):
        n, d = 40, int(rng.integers(1, 8))
        X = rng.normal(size=(n, 8))
        X[:, d:] = 0.0  # one shape, so that one program serves all
        f = X @ rng.normal(size=8) + rng.normal()
        gap = np.quantile(np.abs(f), rng.uniform(0.05, 0.4))
        signs = np.where(f > 0, 1.0, -1.0)
        X = X + 0.0 if d == 1 else X
        keep = np.abs(f) > gap
        if len(np.unique(signs[keep])) < 2:
            continue
        X, signs = X[keep], signs[keep]
        verdict = separate(X, signs)
        assert verdict.separable
        found = fit_perceptron(X, signs, max_iter=100_000)
        assert found.ended is wl.Status.NO_MISTAKES
        assert np.all(signs * (X @ found.model.coef + found.model.intercept) > 0)
        bound = (verdict.radius / verdict.augmented_margin) ** 2
        assert found.evidence["mistakes"] <= bound
        ratios.append(found.evidence["mistakes"] / bound)
    assert len(ratios) > 150
    assert max(ratios) > 0.01, "the bound is of the right size"


def test_exclusive_or_is_certified_and_cycles():
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    verdict = separate(corners, [-1, 1, 1, -1])
    assert not verdict.separable
    weights = np.round(verdict.weights, 12)
    np.testing.assert_array_equal(
        weights[[1, 2]] @ corners[[1, 2]], weights[[0, 3]] @ corners[[0, 3]]
    )
    found = fit_perceptron(corners, [-1, 1, 1, -1], max_iter=1000)
    assert found.ended is wl.Status.CYCLE
