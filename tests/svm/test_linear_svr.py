"""LinearSVR against scikit-learn's SVR and LinearSVR, and its manners."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.svm import SVR
from sklearn.svm import LinearSVR as TheirSVR
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl


def value(model, X, y, *, C, epsilon, weight=None, squared=False):
    """½‖w‖² + C Σ ω loss."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    beyond = np.maximum(0.0, np.abs(X @ w + b - y) - epsilon)
    paid = C * (1.0 if weight is None else weight) * (beyond**2 if squared else beyond)
    return 0.5 * w @ w + paid.sum()


def noisy(rng, n=150, d=4):
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    return X, X @ rng.normal(size=d) + rng.standard_t(3, size=n)


@pytest.mark.parametrize(("C", "epsilon"), [(0.01, 0.0), (1.0, 0.3), (30.0, 1.0)])
def test_it_is_the_linear_svr_of_libsvm(C, epsilon, rng):
    X, y = noisy(rng)
    weight = rng.uniform(0.1, 2.0, size=len(y))
    ours = wl.LinearSVR(C=C, epsilon=epsilon).fit(X, y, weight)
    theirs = SVR(kernel="linear", C=C, epsilon=epsilon, tol=1e-8, max_iter=10**6).fit(X, y, weight)
    told = {"C": C, "epsilon": epsilon, "weight": weight}
    assert value(ours, X, y, **told) <= value(theirs, X, y, **told) * (1 + 1e-10)
    if C <= 1:  # beyond, LIBSVM's own coefficients are a few 1e-4 away from its optimum
        np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-4)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_without_intercept_it_is_the_problem_of_liblinear(loss, rng):
    X, y = noisy(rng)
    options = {"loss": loss, "C": 0.7, "epsilon": 0.2, "fit_intercept": False}
    ours = wl.LinearSVR(**options).fit(X, y)
    with warnings.catch_warnings():  # LIBLINEAR rarely reaches its own tolerance
        warnings.simplefilter("ignore")
        theirs = TheirSVR(**options, dual=True, tol=1e-9, max_iter=50_000).fit(X, y)
    told = {"C": 0.7, "epsilon": 0.2, "squared": loss.startswith("squared")}
    assert value(ours, X, y, **told) <= value(theirs, X, y, **told) * (1 + 1e-10)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert ours.coef_.shape == theirs.coef_.shape


def test_outputs_sparse_rows_and_shapes(rng):
    X, y = noisy(rng)
    both = np.stack([y, -2.0 * y + X[:, 0]], axis=1)
    fitted = wl.LinearSVR(epsilon=0.1).fit(X, both)
    assert fitted.coef_.shape == (2, 4)
    assert fitted.predict(X).shape == both.shape
    alone = wl.LinearSVR(epsilon=0.1).fit(sp.csr_array(X), both[:, 1])
    assert alone.intercept_.shape == (1,)
    np.testing.assert_allclose(fitted.coef_[1], alone.coef_, atol=1e-8)
    np.testing.assert_allclose(
        alone.dual_coef_ @ X[alone.support_], alone.coef_[None, :], atol=1e-8
    )


def test_a_tube_around_everything_is_flat(rng):
    X, y = noisy(rng)
    fitted = wl.LinearSVR(epsilon=1e3).fit(X, y)
    np.testing.assert_array_equal(fitted.coef_, 0.0)
    assert fitted.evidence_["primal"].value == 0.0
    assert fitted.evidence_["support_vectors"].value == 0


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_laws_of_estimators(loss, rng):
    X, y = noisy(rng, n=60, d=3)
    model, laws = wl.LinearSVR(loss=loss, epsilon=0.1, tol=1e-10), wl.testing
    laws.weights_are_repetition(model, X, y, counts=rng.integers(1, 4, size=60), rtol=1e-5)
    laws.zero_weight_is_absence(model, X, y, absent=np.arange(60) % 5 == 0, rtol=1e-5)
    laws.samples_in_any_order(model, X, y, order=rng.permutation(60), rtol=1e-5)
    laws.same_seed_same_fit(model, X, y)
    laws.saving_keeps_every_bit(model, X, y)
    laws.clones_and_pickles(model, X, y)
    laws.predictions_are_the_models(model, X, y)
    laws.failed_fit_changes_nothing(model, X, y)
    laws.interrupted_fit_changes_nothing(model, X, y)
    claims = ["primal", "dual", "duality_gap", "kkt_violation", "support_vectors", "solver"]
    laws.evidence_is_plain(model, X, y, required=claims)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "epsilon_insensitve"}, "Did you mean 'epsilon_insensitive'"),
        ({"C": 0}, "C is 0"),
        ({"epsilon": -0.1}, "epsilon is -0.1"),
    ],
)
def test_parameters_that_cannot_be_used(options, sentence):
    with pytest.raises(wl.InputError, match=sentence):
        wl.LinearSVR(**options).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.filterwarnings("default::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [wl.LinearSVR(), wl.LinearSVR(epsilon=0.1, loss="squared_epsilon_insensitive")]
)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_the_hard_tube_is_the_flattest_plane(loss, fit_intercept, rng):
    """Against SciPy's general solver of constrained problems."""
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.7 * fit_intercept + rng.uniform(-0.3, 0.3, size=40)
    model = wl.LinearSVR(
        C=np.inf, epsilon=0.6, loss=loss, fit_intercept=fit_intercept, tol=1e-8
    ).fit(X, y)
    off = np.abs(model.predict(X) - y)
    assert off.max() <= 0.6 * (1 + 1e-9)
    Z = np.column_stack([X, np.full(40, float(fit_intercept))])
    start = np.linalg.lstsq(Z, y, rcond=None)[0]
    found = minimize(
        lambda v: 0.5 * v[:3] @ v[:3],
        start,
        jac=lambda v: np.append(v[:3], 0.0),
        constraints={
            "type": "ineq",
            "fun": lambda v: 0.6 - np.concatenate([Z @ v - y, y - Z @ v]),
            "jac": lambda v: np.concatenate([-Z, Z]),
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    np.testing.assert_allclose(model.coef_, found.x[:3], atol=1e-4)
    claims = model.evidence_
    assert claims["duality_gap"].holds
    assert claims["primal"].value <= found.fun * (1 + 1e-6)
    assert 0 < claims["support_vectors"].value <= 8


def test_a_tube_that_is_too_narrow_is_refused_with_its_proof(rng):
    X = rng.normal(size=(30, 2))
    y = X @ [1.0, 1.0] + rng.normal(size=30)
    with pytest.raises(wl.InputError, match=r"narrowest tube has half-width") as caught:
        wl.LinearSVR(C=np.inf, epsilon=0.1).fit(X, y)
    proof = caught.value.certificate
    beta = proof.weights
    np.testing.assert_allclose(np.abs(beta).sum(), 1.0)
    np.testing.assert_allclose(X.T @ beta, 0.0, atol=1e-9)
    np.testing.assert_allclose(beta.sum(), 0.0, atol=1e-9)
    np.testing.assert_allclose(abs(beta @ y), proof.width, rtol=1e-7)
    wide = wl.LinearSVR(C=np.inf, epsilon=1.01 * proof.width).fit(X, y)
    assert wide.status_.ok
