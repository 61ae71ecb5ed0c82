"""Sparse-penalty fits: against scikit-learn's solvers, by their certificate, and in odd cases."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from wonderland.core.status import Status
from wonderland.solve.sparse_newton import SparseNewton, solve_l1
from wonderland.solve.sparse_newton_loss import Logistic, Softmax, SquaredHinge
from wonderland.solve.sparse_newton_quadratic import Faces, solve_quadratic

C_VALUES = [0.02, 0.3, 5.0]


def made(rng, n, d, classes=2, *, informative=5):
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)) / np.sqrt(d))
    scores = X[:, :informative] @ rng.normal(size=(informative, classes)) * 1.5
    codes = (scores + rng.gumbel(size=(n, classes)) + np.arange(classes) / 2).argmax(axis=1)
    codes[:classes] = np.arange(classes)
    return X, codes


def signs(codes):
    return np.where(codes == 1, 1.0, -1.0)


def objective(X, target, weight, C, l1_ratio, fit, loss):
    """P, written down once more."""
    Z = X @ fit.coef.T + fit.intercept
    weight = np.ones(len(target)) if weight is None else weight
    if loss == "softmax":
        top = Z.max(axis=1)
        losses = np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top
        losses = losses - Z[np.arange(len(Z)), target]
    elif loss == "logistic":
        losses = np.logaddexp(0, -target * Z[:, 0])
    else:
        losses = np.maximum(0, 1 - target * Z[:, 0]) ** 2
    size = l1_ratio * np.abs(fit.coef).sum() + 0.5 * (1 - l1_ratio) * (fit.coef**2).sum()
    return C * (weight @ losses) + size


class Peer:
    """A scikit-learn estimator's answer in our shapes."""

    def __init__(self, estimator):
        self.coef, self.intercept = estimator.coef_, estimator.intercept_


@pytest.mark.parametrize("C", C_VALUES)
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_two_classes_against_saga(rng, C, l1_ratio, layout):
    X, codes = made(rng, 150, 12)
    y, weight = signs(codes), rng.integers(0, 3, size=150).astype(float)
    table = sp.csr_array(X) if layout == "csr" else np.asarray(X, order=layout)
    fit = solve_l1(table, y, weight, C, l1_ratio, tol=1e-11)
    peer = LogisticRegression(C=C, l1_ratio=l1_ratio, solver="saga", tol=1e-11, max_iter=50_000)
    peer = Peer(peer.fit(X, y, sample_weight=weight))
    ours = objective(X, y, weight, C, l1_ratio, fit, "logistic")
    theirs = objective(X, y, weight, C, l1_ratio, peer, "logistic")
    assert fit.status is Status.CONVERGED
    assert ours <= theirs * (1 + 1e-12)
    np.testing.assert_allclose(fit.primal, ours, rtol=1e-13)
    if theirs <= ours * (1 + 1e-11):  # saga may stop early where all coefficients are zero
        np.testing.assert_allclose(fit.coef, peer.coef, atol=2e-5)
        np.testing.assert_allclose(fit.intercept, peer.intercept, atol=2e-5)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_two_classes_against_liblinear_without_intercept(rng, loss):
    X, codes = made(rng, 200, 30)
    y = signs(codes)
    if loss == "logistic":
        peer = LogisticRegression(
            C=0.3, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=5000
        )
    else:
        peer = LinearSVC(
            C=0.3, penalty="l1", dual=False, fit_intercept=False, tol=1e-10, max_iter=50_000
        )
    peer.fit(X, y)
    fit = solve_l1(X, y, None, 0.3, fit_intercept=False, tol=1e-12, loss=loss)
    peer.intercept_ = np.zeros(1)
    ours = objective(X, y, None, 0.3, 1.0, fit, loss)
    assert ours <= objective(X, y, None, 0.3, 1.0, Peer(peer), loss) * (1 + 1e-13)
    assert np.all(fit.intercept == 0)
    np.testing.assert_allclose(fit.coef, peer.coef_, atol=1e-5)


@pytest.mark.parametrize("C", C_VALUES)
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_softmax_against_saga(rng, C, l1_ratio):
    X, codes = made(rng, 150, 8, classes=4)
    fit = solve_l1(X, codes, None, C, l1_ratio, tol=1e-11, loss="softmax")
    peer = LogisticRegression(C=C, l1_ratio=l1_ratio, solver="saga", tol=1e-9, max_iter=20_000)
    theirs = objective(X, codes, None, C, l1_ratio, Peer(peer.fit(X, codes)), "softmax")
    assert fit.status is Status.CONVERGED
    assert objective(X, codes, None, C, l1_ratio, fit, "softmax") <= theirs * (1 + 1e-13)
    assert fit.coef.shape == (4, 8)
    assert abs(fit.intercept.sum()) < 1e-12


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "softmax"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(300, 20), (60, 200)])
def test_the_gap_is_a_true_bound(rng, loss, fit_intercept, shape):
    """A rough fit's dual value is below the optimum, its primal value above; both close."""
    X, codes = made(rng, *shape, classes=3 if loss == "softmax" else 2)
    target = codes if loss == "softmax" else signs(codes)
    weight = rng.uniform(0, 2, size=shape[0])
    for l1_ratio in (1.0, 0.3):
        given = {"l1_ratio": l1_ratio, "fit_intercept": fit_intercept, "loss": loss}
        best = solve_l1(X, target, weight, 1.0, tol=1e-11, **given)
        rough = solve_l1(X, target, weight, 1.0, tol=1e-2, **given)
        assert best.status is Status.CONVERGED
        assert best.duality_gap <= 1e-11 * best.primal
        assert rough.duality_gap <= 1e-2 * rough.primal
        assert rough.dual <= best.primal * (1 + 1e-13)
        assert best.primal <= rough.primal * (1 + 1e-13)
        value = objective(X, target, weight, 1.0, l1_ratio, best, loss)
        np.testing.assert_allclose(best.primal, value, rtol=1e-13)


def test_dense_and_sparse_tables_agree(rng):
    X, codes = made(rng, 120, 60)
    X = X * (rng.uniform(size=X.shape) < 0.1)
    for loss, target in [("logistic", signs(codes)), ("squared_hinge", signs(codes))]:
        dense = solve_l1(X, target, C=2.0, tol=1e-12, loss=loss)
        sparse = solve_l1(sp.csr_matrix(X), target, C=2.0, tol=1e-12, loss=loss)
        np.testing.assert_allclose(dense.coef, sparse.coef, atol=1e-8)
        assert dense.status is sparse.status is Status.CONVERGED


def test_up_to_the_least_weight_all_coefficients_are_zero(rng):
    X, codes = made(rng, 80, 10)
    least = SparseNewton(X, signs(codes), None, 1.0, fit_intercept=True, loss="logistic").least()
    share = (codes == 1).mean()
    steepest = np.abs(X.T @ (share - (codes == 1))).max()
    np.testing.assert_allclose(least, 1 / steepest, rtol=1e-6)
    assert not np.any(solve_l1(X, signs(codes), C=0.999 * least).coef)
    assert np.count_nonzero(solve_l1(X, signs(codes), C=1.01 * least, tol=1e-9).coef) >= 1


def test_badly_scaled_duplicated_and_constant_columns(rng):
    X, codes = made(rng, 200, 8)
    X = X * 10.0 ** np.arange(-4, 4)
    X = np.column_stack([X, X[:, 3], np.full(200, 7.0), np.zeros(200), 1e6 + X[:, 4]])
    fit = solve_l1(X, signs(codes), C=1.0, tol=1e-9)
    assert fit.status is Status.CONVERGED
    assert fit.duality_gap <= 1e-9 * fit.primal
    assert fit.coef[0, 9] == fit.coef[0, 10] == 0


def test_separable_and_imbalanced(rng):
    X = np.concatenate([rng.normal(size=(1000, 3)), [[8.0, 8.0, 8.0]]])
    y = np.r_[-np.ones(1000), 1.0]
    for C in (1e-3, 1.0, 1e6):
        fit = solve_l1(X, y, C=C, tol=1e-9)
        assert fit.status is Status.CONVERGED
        assert fit.duality_gap <= 1e-9 * fit.primal


def test_a_warm_start_at_the_answer_takes_no_step(rng):
    X, codes = made(rng, 100, 15)
    first = solve_l1(X, signs(codes), C=1.0, tol=1e-10)
    again = solve_l1(X, signs(codes), C=1.0, start=first, tol=1e-9)
    assert again.iterations == 0
    np.testing.assert_array_equal(first.coef, again.coef)


def test_the_iteration_limit_is_a_status(rng):
    X, codes = made(rng, 100, 15)
    fit = solve_l1(X, signs(codes), C=1.0, tol=1e-14, start=None, max_iter=1)
    assert fit.status is Status.ITERATIONS
    assert fit.duality_gap > 1e-14 * fit.primal


def test_the_table_is_not_changed(rng):
    X, codes = made(rng, 60, 5)
    before = X.copy()
    solve_l1(X, signs(codes), C=1.0)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("rank", [3, 20])
def test_the_quadratic_against_scipy(rng, rank):
    """Split u = p − q with p, q ≥ 0, and hand it to L-BFGS-B; singular H included."""
    m = 20
    A = rng.normal(size=(rank, m))
    H, c = A.T @ A, -A.T @ rng.normal(size=rank)
    penalty = np.where(np.arange(m) < 2, 0.0, 0.4) if rank == m else np.full(m, 0.4)
    if rank < m:
        H += 1e-6 * np.eye(m)
    u = solve_quadratic(Faces(H), c, penalty, np.zeros(m))

    def split(pq):
        point = pq[:m] - pq[m:]
        slope = H @ point + c
        value = 0.5 * point @ (slope + c) + penalty @ (pq[:m] + pq[m:])
        return value, np.r_[slope + penalty, penalty - slope]

    peer = minimize(split, np.zeros(2 * m), jac=True, bounds=[(0, None)] * (2 * m))
    assert 0.5 * u @ H @ u + c @ u + penalty @ np.abs(u) <= peer.fun + 1e-9
    slope = H @ u + c
    assert np.all(np.abs(slope) <= penalty + 1e-8 * np.abs(c).max())


@pytest.mark.parametrize("kind", ["logistic", "squared_hinge", "softmax"])
def test_losses_know_their_mathematics(rng, kind):
    """Slope and curvature are derivatives; ℓ(z) + ℓ*(∇ℓ(z)) = zᵀ∇ℓ(z); balance is exact."""
    n, k = 40, 3 if kind == "softmax" else 1
    target = rng.integers(0, 3, n) if k == 3 else signs(rng.integers(0, 2, n))
    target[:3] = [0, 1, 2] if k == 3 else [1, -1, 1]
    loss = {"logistic": Logistic, "squared_hinge": SquaredHinge}.get(kind, lambda t: Softmax(t, 3))
    loss = loss(target)
    Z, step = rng.normal(size=(n, k)) * 2, 1e-6
    rows = loss.at(Z)
    for c in range(k):
        shift = step * (np.arange(k) == c)
        up, down = loss.at(Z + shift), loss.at(Z - shift)
        np.testing.assert_allclose(
            (up.value - down.value) / (2 * step), rows.slope[:, c], atol=1e-7
        )
        for e in range(k):
            numeric = (up.slope[:, e] - down.slope[:, e]) / (2 * step)
            smooth = np.abs(np.abs(Z[:, 0]) - 1) > 1e-4  # the squared hinge has a kink in its slope
            given = loss.curvature(rows, c, e)
            np.testing.assert_allclose(numeric[smooth], given[smooth], atol=1e-7)
    product = (Z * rows.slope).sum(axis=1)
    np.testing.assert_allclose(rows.value + loss.conjugate(rows.slope), product, atol=1e-12)
    weight = rng.uniform(0, 2, n)
    even = loss.balanced(rows.slope, weight)
    np.testing.assert_allclose(weight @ even, 0, atol=1e-12)
    assert np.all(np.isfinite(loss.conjugate(even)))
    assert np.all(loss.at(Z).value + loss.conjugate(even) >= (Z * even).sum(axis=1) - 1e-12)
