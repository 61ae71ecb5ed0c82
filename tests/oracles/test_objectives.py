"""Objective values equal the peer's optimum or are better, on every set; coefficients where unique.

Both sides' objectives are computed here, from coefficients alone, in units in which the peer states
them. The peer runs at a tight tolerance; where it stops short (badly scaled columns, many passes),
ours may be lower, never higher.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn import linear_model, svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

import wonderland as wl
from tests.oracles.sets import SETS

REACH = 1e-9  # relative; ours is asked for a gap or gradient that grants it
AGREE = 1e-5  # coefficients


@pytest.fixture
def data(request):
    chosen = request.param
    folder = request.getfixturevalue("shared_data") if chosen.shared else None
    return chosen.load(folder)


def _parameters(keep):
    return [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.slow else [])
        for one in SETS
        if keep(one)
    ]


def every_set(keep=lambda _: True):
    return pytest.mark.parametrize("data", _parameters(keep), indirect=True)


def quietly(estimator, X, y):
    """Fit an estimator that may say that it stopped short; its values are judged all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return estimator.fit(X, y)


def log_loss(X, y, coef, intercept):
    """Σ_i ℓ_i (for two classes one row of coefficients)."""
    Z = np.asarray(X @ np.atleast_2d(coef).T + intercept)
    if Z.shape[1] == 1:
        return float(np.logaddexp(0, np.where(y == 1, -Z[:, 0], Z[:, 0])).sum())
    return float((logsumexp(Z, axis=1) - Z[np.arange(len(y)), y]).sum())


def assert_no_worse(ours, theirs):
    assert ours <= theirs + REACH * abs(theirs), f"{ours!r} above the peer's {theirs!r}"


@every_set()
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_logistic_l2(data, C):
    X, y = data
    ours = wl.LogisticRegression(C=C, tol=1e-9).fit(X, y)
    many = sp.issparse(X) or X.shape[1] * (y.max() + 1) > 250
    solver = "lbfgs" if many else "newton-cholesky"
    peer = linear_model.LogisticRegression(C=C, tol=1e-10, max_iter=3000, solver=solver)
    peer = quietly(peer, X, y)

    def objective(fit):
        size = 0.5 * float((fit.coef_**2).sum())
        return C * log_loss(X, y, fit.coef_, fit.intercept_) + size

    mine, theirs = objective(ours), objective(peer)
    assert_no_worse(mine, theirs)
    if theirs <= mine * (1 + 1e-12):  # the peer is at the optimum too, which is unique
        scale = max(1.0, np.abs(peer.coef_).max())
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=AGREE * scale)


@every_set()
def test_logistic_l1(data):
    """Without an intercept for two classes, where LIBLINEAR is quick but would penalise it."""
    X, y = data
    C, binary = 1.0, y.max() == 1
    options = {"C": C, "l1_ratio": 1.0, "fit_intercept": not binary}
    ours = wl.LogisticRegression(tol=1e-9, **options).fit(X, y)
    solver = "liblinear" if binary else "saga"
    peer = linear_model.LogisticRegression(
        tol=1e-7, max_iter=1000 if binary else 200, solver=solver, random_state=0, **options
    )
    peer = quietly(peer, X, y)

    def objective(fit):
        return C * log_loss(X, y, fit.coef_, fit.intercept_) + float(np.abs(fit.coef_).sum())

    assert_no_worse(objective(ours), objective(peer))


LOSSES = {
    "hinge": lambda margins: np.maximum(0, 1 - margins),
    "squared_hinge": lambda margins: np.maximum(0, 1 - margins) ** 2,
}


def one_against_rest(X, y, fit, C, loss):
    """Σ over problems of ½‖w‖² + C Σ ℓ (n problems: one for two classes)."""
    Z = np.asarray(X @ np.atleast_2d(fit.coef_).T) + fit.intercept_
    rest = [1] if Z.shape[1] == 1 else range(Z.shape[1])
    signs = np.stack([np.where(y == c, 1.0, -1.0) for c in rest], axis=1)
    return 0.5 * float((fit.coef_**2).sum()) + C * float(LOSSES[loss](signs * Z).sum())


@every_set()
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_linear_svc(data, loss):
    """Without an intercept, which LIBLINEAR would penalise."""
    X, y = data
    C = 0.5
    options = {"C": C, "loss": loss, "fit_intercept": False, "random_state": 0}
    ours = wl.LinearSVC(tol=1e-9, **options).fit(X, y)
    peer = quietly(svm.LinearSVC(tol=1e-8, max_iter=2000, dual=True, **options), X, y)
    mine = one_against_rest(X, y, ours, C, loss)
    theirs = one_against_rest(X, y, peer, C, loss)
    assert_no_worse(mine, theirs)
    if theirs <= mine * (1 + 1e-12):  # w is unique
        scale = max(1.0, np.abs(peer.coef_).max())
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=AGREE * scale)


@every_set()
def test_linear_svc_l1(data):
    X, y = data
    C = 0.5
    options = {"C": C, "penalty": "l1", "dual": False, "fit_intercept": False}
    ours = wl.LinearSVC(tol=1e-9, **options).fit(X, y)
    peer = quietly(svm.LinearSVC(tol=1e-7, max_iter=2000, random_state=0, **options), X, y)

    def objective(fit):
        losses = one_against_rest(X, y, fit, C, "squared_hinge")
        return losses - 0.5 * float((fit.coef_**2).sum()) + float(np.abs(fit.coef_).sum())

    assert_no_worse(objective(ours), objective(peer))


def kernel_values(X, y, fit, K, C):
    """(P, D) of a two-class machine: ½‖f‖² + C Σ hinge, and Σ|β| − ½‖f‖²."""
    beta = np.zeros(len(y))
    dual = fit.dual_coef_
    beta[fit.support_] = np.asarray(dual.toarray() if sp.issparse(dual) else dual)[0]
    values = K @ beta
    half = 0.5 * float(beta @ values)
    margins = np.where(y == 1, 1.0, -1.0) * (values + float(np.ravel(fit.intercept_)[0]))
    return half + C * float(np.maximum(0, 1 - margins).sum()), float(np.abs(beta).sum()) - half


@every_set()
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_svc(data, kernel):
    """The first two classes; both values: a peer stops between its own primal and dual."""
    X, y = data
    keep = y <= 1
    X, y, C = X[np.flatnonzero(keep)], y[keep], 1.0
    gamma = 1.0 / X.shape[1]
    options = {"C": C, "kernel": kernel, "gamma": gamma}
    ours = quietly(wl.SVC(tol=1e-9, **options), X, y)
    peer = svm.SVC(tol=1e-6, max_iter=200_000, **options)
    peer = quietly(peer, X, y)
    K = linear_kernel(X) if kernel == "linear" else rbf_kernel(X, gamma=gamma)
    primal, dual = kernel_values(X, y, ours, K, C)
    their_primal, their_dual = kernel_values(X, y, peer, K, C)
    assert_no_worse(primal, their_primal)
    assert dual >= their_dual - REACH * abs(their_dual)
    assert primal - dual <= 2 * REACH * abs(primal)


def test_there_are_enough_sets():
    assert len(SETS) >= 30
    assert len([one for one in SETS if not one.shared]) >= 30
    assert len({one.name for one in SETS}) == len(SETS)
