"""The same coefficients as scikit-learn, over made problems; and its public checker."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl

TOLERANCE = 1e-8


@st.composite
def problems(draw):
    """(X, y, weight, fit_intercept): well-posed, any shape, weights or none, constant columns."""
    n, d, t = draw(st.integers(3, 40)), draw(st.integers(1, 12)), draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, size=d)
    X += draw(st.sampled_from([0.0, 1.0, 100.0]))
    # A table of nothing but a constant leaves scikit-learn with rounding noise as its only column.
    if d > 1 and draw(st.booleans()):
        X[:, rng.integers(d)] = draw(st.sampled_from([0.0, 1.0, -7.5]))
    y = rng.normal(size=(n, t) if t else n) + draw(st.sampled_from([0.0, 50.0]))
    weight = rng.uniform(0.1, 3.0, size=n) if draw(st.booleans()) else None
    return X, y, weight, draw(st.booleans())


def assert_same(ours, theirs, X):
    """Coefficients to 1e-8 of the largest contribution to a prediction; predictions likewise."""
    size = np.abs(X).max(axis=0) + 1e-300
    scale = np.abs(theirs.coef_ * size).max() + np.abs(theirs.predict(X)).max()
    np.testing.assert_allclose(
        ours.coef_ * size, theirs.coef_ * size, rtol=TOLERANCE, atol=TOLERANCE * scale
    )
    np.testing.assert_allclose(
        ours.predict(X), theirs.predict(X), rtol=TOLERANCE, atol=TOLERANCE * scale
    )
    assert ours.coef_.shape == theirs.coef_.shape
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)


@given(problems())
def test_linear_regression(problem):
    X, y, weight, intercept = problem
    theirs = sk.LinearRegression(fit_intercept=intercept, tol=1e-14).fit(X, y, weight)
    ours = wl.LinearRegression(fit_intercept=intercept).fit(X, y, weight)
    assert_same(ours, theirs, X)


@given(problems(), st.floats(-2, 4))
def test_ridge(problem, log_alpha):
    X, y, weight, intercept = problem
    alpha = 10.0**log_alpha
    theirs = sk.Ridge(alpha, fit_intercept=intercept, solver="svd").fit(X, y, weight)
    ours = wl.Ridge(alpha, fit_intercept=intercept).fit(X, y, weight)
    assert_same(ours, theirs, X)


@given(problems(), st.floats(-1, 3))
def test_one_penalty_per_output(problem, log_alpha):
    X, y, weight, intercept = problem
    outputs = 1 if y.ndim == 1 else y.shape[1]
    alpha = 10.0**log_alpha * np.arange(1.0, outputs + 1)
    theirs = sk.Ridge(alpha, fit_intercept=intercept, solver="svd").fit(X, y, weight)
    assert_same(wl.Ridge(alpha, fit_intercept=intercept).fit(X, y, weight), theirs, X)


@given(problems())
def test_non_negative(problem):
    X, y, weight, intercept = problem
    if len(X) <= X.shape[1] + 1:
        return  # more columns than rows: the optimum is not unique
    theirs = sk.LinearRegression(fit_intercept=intercept, positive=True).fit(X, y, weight)
    ours = wl.LinearRegression(fit_intercept=intercept, positive=True).fit(X, y, weight)
    assert (ours.coef_ >= 0).all()

    def risk(model):
        omega = np.ones(len(X)) if weight is None else weight
        residual = (y - model.predict(X)).reshape(len(X), -1)
        return (omega[:, None] * residual**2).sum(axis=0)

    assert (risk(ours) <= risk(theirs) * (1 + 1e-9) + 1e-9).all()


@given(problems())
def test_sparse_tables(problem):
    X, y, weight, intercept = problem
    X = np.where(np.abs(X) > np.median(np.abs(X)), X, 0.0)
    ours = wl.Ridge(0.7, fit_intercept=intercept).fit(sp.csr_array(X), y, weight)
    theirs = sk.Ridge(0.7, fit_intercept=intercept, solver="svd").fit(X, y, weight)
    assert_same(ours, theirs, X)


@given(problems(), st.integers(1, 12))
def test_leave_one_out_chooses_as_ridge_cv(problem, count):
    X, y, weight, intercept = problem
    if len(X) <= X.shape[1] + 2:
        return  # scikit-learn's own shortcut divides zero by zero where the table interpolates
    alphas = np.logspace(-2, 4, count)
    theirs = sk.RidgeCV(alphas, fit_intercept=intercept).fit(X, y, weight)
    ours = wl.Ridge("loo", alphas=alphas, fit_intercept=intercept).fit(X, y, weight)
    if not np.isclose(ours.alpha_, theirs.alpha_):
        # A tie on the path: either choice must be as good as the other.
        errors = dict(zip(alphas, ours.loo_errors_, strict=True))
        np.testing.assert_allclose(errors[ours.alpha_], errors[theirs.alpha_], rtol=1e-9)
        return
    assert_same(ours, theirs, X)


@pytest.mark.parametrize("shape", [(5000, 40, 1), (3000, 60, 3), (60, 3000, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_beyond_toy_size(shape, weighted, rng):
    n, d, t = shape
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d) + 3.0
    y = X @ rng.normal(size=(d, t)) + rng.normal(size=(n, t))
    weight = rng.uniform(0.0, 2.0, size=n) if weighted else None
    for ours, theirs in (
        (wl.LinearRegression(), sk.LinearRegression()),
        (wl.Ridge(3.0), sk.Ridge(3.0, solver="svd")),
    ):
        assert_same(ours.fit(X, y, weight), theirs.fit(X, y, weight), X)


LEAVES_ROWS = (
    "leave-one-out leaves out a row with its whole weight, as scikit-learn's RidgeCV does; of "
    "repeated rows it leaves out one copy and keeps the others, which is another question"
)
CHECKED = [
    wl.LinearRegression(),
    wl.LinearRegression(fit_intercept=False),
    wl.LinearRegression(positive=True),
    wl.LinearRegression(solver="descent"),
    wl.LinearRegression(basis=wl.bases.Polynomial(2)),
    wl.Ridge(),
    wl.Ridge(positive=True),
    wl.Ridge(solver="lsqr", tol=1e-10),
    wl.Ridge(solver="descent", tol=1e-10),
    wl.Ridge("loo"),
    wl.Ridge("gradient"),
    wl.LogisticRegression(),
    wl.LogisticRegression(solver="trust-region"),
    wl.SVC(),
    wl.SVC(kernel="linear"),
    wl.SVR(),
    wl.OneClassSVM(),
]


def expected_failures(estimator):
    if getattr(estimator, "alpha", None) in ("loo", "gradient"):
        return {
            "check_sample_weight_equivalence_on_dense_data": LEAVES_ROWS,
            "check_sample_weight_equivalence_on_sparse_data": LEAVES_ROWS,
        }
    return {}


@pytest.mark.filterwarnings("default::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_check_estimator(estimator, check):
    check(estimator)
