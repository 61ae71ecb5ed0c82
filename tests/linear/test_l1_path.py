"""The path of sparse fits: every point is the fit that stands alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import l1_min_c

import wonderland as wl
from wonderland.linear.path import least_C, solve_l1_path
from wonderland.solve.sparse_newton import solve_l1


def made(rng, n=150, d=40, classes=2):
    X = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    scores = X[:, :6] @ rng.normal(size=(6, classes))
    codes = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    codes[:classes] = np.arange(classes)
    return X, codes


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "softmax"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_each_point_is_the_fit_alone(rng, loss, l1_ratio, layout):
    X, codes = made(rng, classes=3 if loss == "softmax" else 2)
    target = codes if loss == "softmax" else 2.0 * codes - 1.0
    table = sp.csr_array(X) if layout == "csr" else np.asarray(X, order=layout)
    Cs = rng.permutation(np.geomspace(1e-3, 10, 12))
    weight = rng.uniform(0.5, 1.5, size=len(X))
    path = solve_l1_path(table, target, weight, Cs, l1_ratio, tol=1e-10, loss=loss)
    assert path.coef.shape == (12, 3 if loss == "softmax" else 1, 40)
    np.testing.assert_array_equal(path.C, Cs)
    assert np.all(path.gap <= 1e-10 * path.objective)
    for place in (0, 5, 11):
        alone = solve_l1(X, target, weight, Cs[place], l1_ratio, tol=1e-10, loss=loss)
        np.testing.assert_allclose(alone.primal, path.objective[place], rtol=2e-10)
        if l1_ratio < 1:  # strongly convex: the coefficients are unique
            np.testing.assert_allclose(alone.coef, path.coef[place], atol=1e-4)


def test_the_path_begins_where_coefficients_do(rng):
    X, codes = made(rng)
    signs = 2.0 * codes - 1.0
    path = solve_l1_path(X, signs, Cs=20, tol=1e-9)
    assert path.nonzeros[0] <= 1
    assert path.nonzeros[1] >= 1
    assert np.all(np.diff(path.C) > 0)
    np.testing.assert_allclose(path.C[-1] / path.C[0], 1000)


def test_least_weight_against_scikit_learn(rng):
    X, codes = made(rng)
    peer = l1_min_c(X, codes, loss="log", fit_intercept=False)
    np.testing.assert_allclose(least_C(X, 2.0 * codes - 1, fit_intercept=False), peer, rtol=1e-12)


def test_no_values_give_an_empty_path(rng):
    X, codes = made(rng)
    path = solve_l1_path(X, 2.0 * codes - 1, Cs=[])
    assert path.coef.shape == (0, 1, 40)
    assert path.status == ()


def test_a_path_takes_fewer_steps_than_its_fits_alone(rng):
    X, codes = made(rng)
    signs = 2.0 * codes - 1.0
    path = solve_l1_path(X, signs, Cs=30, tol=1e-8)
    alone = [solve_l1(X, signs, C=C, tol=1e-8).iterations for C in path.C]
    assert path.iterations.sum() < sum(alone) + 30


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_logistic_path_with_an_l1_share_is_the_single_fits(classes, share, rng):
    X = rng.normal(size=(90, 12))
    y = (X[:, :3] @ rng.normal(size=(3, classes)) + rng.gumbel(size=(90, classes))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    Cs, labels = [3.0, 0.05, 0.5], np.array(["a", "b", "c"])[y]
    weight = rng.uniform(0.5, 2.0, size=90)
    path = wl.logistic_path(X, labels, Cs, weight, l1_ratio=share, tol=1e-10, max_iter=1000)
    assert path.coef.shape == (3, 1 if classes == 2 else 3, 12)
    assert np.all(path.duality_gap <= 1e-10)
    for place, C in enumerate(Cs):
        one = wl.LogisticRegression(C=C, l1_ratio=share, max_iter=1000).fit(X, labels, weight)
        assert path.primal[place] == pytest.approx(one.evidence_["primal"].value, rel=1e-9)
        np.testing.assert_allclose(path.coef[place], one.coef_, atol=2e-4)
        assert path.gradient_norm[place] < 1e-4
