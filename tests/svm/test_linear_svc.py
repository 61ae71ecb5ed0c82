"""LinearSVC against scikit-learn's SVC and LinearSVC, its hard margin, its manners."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as TheirSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl


def value(model, X, y, *, C=1.0, weight=None, squared=False):
    """½‖w‖² + C Σ ω loss of a fitted classifier of two classes."""
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    short = np.maximum(0.0, 1.0 - signs * (X @ w + b))
    paid = C * (1.0 if weight is None else weight) * (short**2 if squared else short)
    return 0.5 * w @ w + paid.sum()


def overlapping(rng, n=150, d=4):
    X = rng.normal(size=(n, d))
    positive = X @ rng.normal(size=d) + rng.logistic(size=n) > 0
    return X + rng.normal(size=d), np.where(positive, "yes", "no")


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_hinge_is_the_linear_svc_of_libsvm(C, rng):
    X, y = overlapping(rng)
    weight = rng.uniform(0.1, 2.0, size=len(y))
    ours = wl.LinearSVC(loss="hinge", C=C).fit(X, y, weight)
    with warnings.catch_warnings():  # LIBSVM does not always get there in a million steps
        warnings.simplefilter("ignore")
        theirs = SVC(kernel="linear", C=C, tol=1e-8, max_iter=10**6).fit(X, y, weight)
    best = value(theirs, X, y, C=C, weight=weight)
    assert value(ours, X, y, C=C, weight=weight) <= best * (1 + 1e-10)
    if C <= 1:  # beyond, LIBSVM's own coefficients are a few 1e-4 away from its optimum
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-5)
    # ½‖w − w*‖² ≤ P(w) − D for every w, by strong convexity.
    off = 0.5 * ((theirs.coef_ - ours.coef_) ** 2).sum()
    assert off <= 2 * (best - ours.evidence_["dual"].value) + 1e-9 * best
    assert ours.decision_function(X).shape == theirs.decision_function(X).shape


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_without_intercept_it_is_the_problem_of_liblinear(loss, rng):
    X, y = overlapping(rng)
    options = {"loss": loss, "C": 0.7, "fit_intercept": False}
    ours = wl.LinearSVC(**options).fit(X, y)
    squared = loss == "squared_hinge"
    with warnings.catch_warnings():  # LIBLINEAR rarely reaches its own tolerance
        warnings.simplefilter("ignore")
        theirs = TheirSVC(**options, tol=1e-9, max_iter=50_000, dual=not squared).fit(X, y)
    best = value(theirs, X, y, C=0.7, squared=squared)
    assert value(ours, X, y, C=0.7, squared=squared) <= best * (1 + 1e-10)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5 if squared else 1e-3)
    assert ours.intercept_ == theirs.intercept_ == 0.0


@pytest.mark.parametrize("scaled", [False, True])
def test_badly_scaled_real_data(scaled):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0) if scaled else X
    for loss in ("hinge", "squared_hinge"):
        fitted = wl.LinearSVC(loss=loss, tol=1e-9).fit(X, y)
        assert fitted.evidence_["duality_gap"].holds


def test_one_against_the_rest(rng):
    X, y = load_iris(return_X_y=True)
    fitted = wl.LinearSVC(loss="hinge", class_weight="balanced").fit(X, y)
    assert fitted.coef_.shape == (3, 4)
    for k in range(3):
        share = len(y) / (3 * np.bincount(y)[y])
        alone = SVC(kernel="linear", tol=1e-8, max_iter=10**6).fit(X, y == k, share)
        ours = wl.LinearSVC(loss="hinge").fit(X, y == k, share)
        np.testing.assert_allclose(fitted.coef_[k], ours.coef_[0], atol=1e-8)
        assert value(ours, X, y == k, weight=share) <= value(alone, X, y == k, weight=share) * (
            1 + 1e-10
        )
    table = fitted.evidence_["per_problem"].value
    assert list(table) == ["0", "1", "2"]
    assert fitted.evidence_["primal"].value == pytest.approx(
        sum(row["primal"] for row in table.values())
    )


def test_coefficients_are_sums_of_support_vectors(rng):
    X, y = overlapping(rng)
    fitted = wl.LinearSVC(loss="hinge").fit(X, y)
    np.testing.assert_allclose(fitted.dual_coef_ @ X[fitted.support_], fitted.coef_, atol=1e-8)
    margins = np.where(y == "yes", 1.0, -1.0) * fitted.decision_function(X)
    outside = np.setdiff1d(np.arange(len(y)), fitted.support_)
    assert (margins[outside] >= 1 - 1e-8).all()
    assert fitted.evidence_["support_vectors"].value == len(fitted.support_)
    kept = wl.LinearSVC(loss="hinge").fit(X[fitted.support_], y[fitted.support_])
    np.testing.assert_allclose(kept.coef_, fitted.coef_, atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_primal_and_dual_are_one_answer(loss, rng):
    X, y = overlapping(rng)
    fits = [wl.LinearSVC(loss=loss, dual=dual).fit(X, y) for dual in ("auto", True, False)]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.coef_, fits[0].coef_)


def test_the_widest_margin(rng):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    ours = wl.LinearSVC(C=np.inf, tol=1e-9).fit(X, y)
    theirs = SVC(kernel="linear", C=1e9, tol=1e-8, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    margin = ours.evidence_["margin"].value
    signs = np.where(y == 1, 1.0, -1.0)
    scores = signs * ours.decision_function(X)
    assert scores.min() >= 1.0
    # γ is the distance of the nearest sample, and half the distance of the hulls (the dual).
    np.testing.assert_allclose(margin, scores.min() / np.linalg.norm(ours.coef_), rtol=1e-9)
    beta = np.zeros(len(y))
    beta[ours.support_] = ours.dual_coef_[0]
    apart = beta @ X / beta[beta > 0].sum()
    np.testing.assert_allclose(margin, 0.5 * np.linalg.norm(apart), rtol=1e-8)
    assert ours.evidence_["separable"].value is True


def test_a_hard_margin_that_does_not_exist_is_answered_with_the_proof():
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])
    model = wl.LinearSVC(C=np.inf)
    with pytest.raises(wl.InputError, match=r"no hyperplane separates.*finite C") as caught:
        model.fit(X, y)
    proof = caught.value.certificate
    for label in (0, 1):
        assert proof.weights[y == label].sum() == pytest.approx(1.0)
    signs = np.where(y == 1, 1.0, -1.0)
    np.testing.assert_allclose((signs * proof.weights) @ X, 0.0, atol=1e-12)
    assert not hasattr(model, "coef_")


def test_sparse_text_is_not_made_dense(rng):
    X = sp.random_array((400, 5000), density=0.005, rng=rng, format="csr")
    y = np.asarray(X @ rng.normal(size=5000) + 0.05 * rng.normal(size=400) > 0)
    for loss in ("hinge", "squared_hinge"):
        ours = wl.LinearSVC(loss=loss, tol=1e-8).fit(X, y)
        dense = wl.LinearSVC(loss=loss, tol=1e-8).fit(X.toarray(), y)
        np.testing.assert_allclose(ours.coef_, dense.coef_, atol=1e-6)


def test_sparse_penalty(rng):
    X, y = overlapping(rng, n=200, d=12)
    options = {"penalty": "l1", "dual": False, "C": 0.02, "fit_intercept": False}
    ours = wl.LinearSVC(**options, tol=1e-10).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = TheirSVC(**options, tol=1e-10, max_iter=50_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert (ours.coef_ == 0).sum() == (theirs.coef_ == 0).sum() > 0


def test_joint_problem_of_two_classes(rng):
    X, y = overlapping(rng)
    options = {"multi_class": "crammer_singer", "C": 0.3, "fit_intercept": False}
    ours = wl.LinearSVC(**options).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = TheirSVC(**options, tol=1e-9, max_iter=50_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "hing"}, "Did you mean 'hinge'"),
        ({"penalty": "l3"}, "penalty is 'l3'"),
        ({"C": 0.0}, "C is 0.0"),
        ({"C": -1.0}, "a number > 0"),
        ({"C": "1"}, "C is '1'"),
        ({"tol": 0.0}, "tol is 0.0"),
        ({"max_iter": -1}, "max_iter is -1"),
        ({"dual": "maybe"}, "dual is 'maybe'"),
        ({"multi_class": "ovo"}, "multi_class is 'ovo'"),
        ({"penalty": "l1", "loss": "hinge"}, "squared_hinge"),
        ({"penalty": "l1", "C": np.inf}, "finite C"),
        ({"fit_intercept": "yes"}, "True or False"),
    ],
)
def test_parameters_that_cannot_be_used(options, sentence):
    with pytest.raises(wl.InputError, match=sentence):
        wl.LinearSVC(**options).fit([[0.0], [1.0]], [0, 1])


def test_data_that_cannot_be_used():
    X = [[0.0], [1.0], [2.0]]
    with pytest.raises(wl.InputError, match="one class"):
        wl.LinearSVC().fit(X, [1, 1, 1])
    with pytest.raises(wl.InputError, match="NaN"):
        wl.LinearSVC().fit(X, [1.0, 0.0, np.nan])
    with pytest.raises(wl.InputError, match="text"):
        wl.LinearSVC().fit([["a"], ["b"], ["c"]], [0, 1, 1])
    with pytest.raises(wl.InputError, match="only the class 1 has positive weight"):
        wl.LinearSVC().fit(X, [0, 1, 1], [0.0, 1.0, 1.0])


def test_falling_short_is_said(rng):
    X, y = overlapping(rng)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        fitted = wl.LinearSVC(loss="hinge", max_iter=1, tol=1e-12).fit(X, y)
    assert fitted.evidence_["duality_gap"].holds is False


@pytest.mark.filterwarnings("default::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        wl.LinearSVC(),
        wl.LinearSVC(loss="hinge", tol=1e-10),
        wl.LinearSVC(penalty="l1", tol=1e-10),
    ]
)
def test_check_estimator(estimator, check):
    check(estimator)


def joint_loss(fitted, X, y, C):
    """½‖W‖² + C Σ max_k (z_k − z_y + [k ≠ y]), from coefficients alone."""
    z = np.asarray(X @ fitted.coef_.T) + fitted.intercept_
    own = np.arange(len(y)), np.searchsorted(fitted.classes_, y)
    lead = z - z[own][:, None] + 1.0
    lead[own] -= 1.0
    return 0.5 * (fitted.coef_**2).sum() + float((C * lead.max(axis=1)).sum())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
def test_the_joint_problem_of_several_classes(C, sparse, rng):
    """With no intercept LIBLINEAR's problem is the same; ours is no worse, and proves it."""
    X = rng.normal(size=(120, 4))
    y = np.array(["a", "b", "c", "d"])[
        (X @ rng.normal(size=(4, 4)) + rng.gumbel(size=(120, 4))).argmax(1)
    ]
    table = sp.csr_array(X) if sparse else X
    ours = wl.LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-9)
    ours.fit(table, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = TheirSVC(
            multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-8, max_iter=200_000
        ).fit(X, y)
    assert joint_loss(ours, X, y, C) <= joint_loss(theirs, X, y, C) * (1 + 1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    assert ours.evidence_["duality_gap"].holds
    np.testing.assert_allclose(ours.dual_coef_ @ X[ours.support_], ours.coef_, atol=1e-3)


def test_the_joint_dual_is_a_lower_bound_with_an_intercept(rng):
    X = rng.normal(size=(150, 3)) + 7.0
    y = ((X - 7.0) @ rng.normal(size=(3, 3)) + rng.gumbel(size=(150, 3))).argmax(1)
    weight = rng.uniform(0.0, 2.0, size=150) * (rng.uniform(size=150) > 0.1)
    fitted = wl.LinearSVC(multi_class="crammer_singer", C=2.0, tol=1e-8).fit(X, y, weight)
    claims, alpha = fitted.evidence_, fitted.dual_coef_.T
    own = np.eye(3)[y[fitted.support_]]
    bound = (2.0 * weight)[fitted.support_]
    np.testing.assert_allclose(alpha.sum(axis=1), 0.0, atol=1e-9)  # within each row
    np.testing.assert_allclose(alpha.sum(axis=0), 0.0, atol=1e-6)  # the work of the intercepts
    assert np.all(alpha <= bound[:, None] * own + 1e-9)
    dual = (alpha * own).sum() - 0.5 * ((alpha.T @ X[fitted.support_]) ** 2).sum()
    np.testing.assert_allclose(dual, claims["dual"].value, rtol=1e-6)
    primal = joint_loss(fitted, X, y, 2.0 * weight)
    np.testing.assert_allclose(primal, claims["primal"].value, rtol=1e-9)
    assert primal - dual <= 1e-7 * primal
    moved = wl.LinearSVC(multi_class="crammer_singer", C=2.0, tol=1e-8).fit(X - 7.0, y, weight)
    np.testing.assert_allclose(moved.coef_, fitted.coef_, atol=1e-3)
    assert fitted.evidence_["separable"].value is None
