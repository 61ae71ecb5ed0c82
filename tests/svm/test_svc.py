"""SVC against LIBSVM: objective first, then scores, shapes, labels, weights, refusals."""

import numpy as np
import pytest
import sklearn.svm as sk
from sklearn.datasets import load_breast_cancer, load_iris, make_classification

import wonderland as wl


def table(rng, n=150, d=4):
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)


def objective(model, K):
    """D of a fitted machine of two classes, from its coefficients alone."""
    beta = np.zeros(len(K))
    beta[model.support_] = model.dual_coef_[0]
    return 0.5 * beta @ K @ beta - np.abs(beta).sum()


KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "linear"},
    {"kernel": "poly", "coef0": 1.0, "gamma": 0.5},
    {"kernel": "rbf", "gamma": 5.0, "C": 100.0},
]


@pytest.mark.parametrize("given", KERNELS, ids=lambda given: f"{given['kernel']}{len(given)}")
def test_the_objective_is_libsvms_or_better(given, rng):
    X, y = table(rng)
    ours = wl.SVC(**given).fit(X, y)
    K = np.asarray(ours.model_.kernel.matrix(X))
    for tol in (1e-3, 1e-9):
        theirs = sk.SVC(**given, tol=tol).fit(X, y)
        best = objective(theirs, K)
        assert objective(ours.set_params(tol=tol).fit(X, y), K) <= best + 1e-9 * abs(best)


@pytest.mark.parametrize("given", KERNELS, ids=lambda given: f"{given['kernel']}{len(given)}")
def test_scores_are_libsvms_at_a_tight_tolerance(given, rng):
    X, y = table(rng)
    ours = wl.SVC(**given, tol=1e-9).fit(X, y)
    theirs = sk.SVC(**given, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), atol=1e-5, rtol=1e-5
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.evidence_["duality_gap"].value <= 1e-9
    assert ours.evidence_["kkt_violation"].value <= 1e-9


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_many_classes_have_libsvms_shapes_order_and_votes(shape):
    X, y = load_iris(return_X_y=True)
    names = np.array(["rose", "lily", "aster"])[y]
    given = {"decision_function_shape": shape, "tol": 1e-8}
    ours, theirs = wl.SVC(**given).fit(X, names), sk.SVC(**given).fit(X, names)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert ours.evidence_["per_problem"].value.keys() == {
        "aster against lily",
        "aster against rose",
        "lily against rose",
    }


def test_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    fitted = wl.SVC(multi_class="ovr").fit(X, y)
    assert fitted.decision_function(X).shape == (150, 3)
    assert fitted.dual_coef_.shape == (3, len(fitted.support_))
    for label in range(3):
        alone = wl.SVC().fit(X, y == label)
        np.testing.assert_allclose(
            fitted.decision_function(X)[:, label], alone.decision_function(X), atol=1e-6
        )


def test_ties_are_broken_by_scores():
    X, y = load_iris(return_X_y=True)
    fitted = wl.SVC(break_ties=True).fit(X, y)
    np.testing.assert_array_equal(
        fitted.predict(X), fitted.classes_[fitted.decision_function(X).argmax(axis=1)]
    )


def test_weights_of_classes_and_samples(rng):
    X, y = table(rng)
    for given in ({"class_weight": "balanced"}, {"class_weight": {0: 3.0, 1: 0.5}}):
        ours = wl.SVC(**given, tol=1e-8).fit(X, y)
        theirs = sk.SVC(**given, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=1e-5
        )
    counts = rng.integers(0, 3, len(y))
    weighted = wl.SVC().fit(X, y, counts.astype(float))
    repeated = wl.SVC().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-7
    )


def test_kernels_come_as_tables_functions_and_objects(rng):
    X, y = table(rng)
    k = wl.kernels.Gaussian(0.3)
    named = wl.SVC(gamma=0.3).fit(X, y)
    expected = named.decision_function(X)
    as_object = wl.SVC(kernel=k).fit(X, y)
    as_function = wl.SVC(kernel=lambda A, B: k.matrix(A, B)).fit(X, y)
    given = wl.SVC(kernel="precomputed").fit(k.matrix(X), y)
    np.testing.assert_allclose(as_object.decision_function(X), expected, atol=1e-9)
    np.testing.assert_allclose(as_function.decision_function(X), expected, atol=1e-9)
    np.testing.assert_allclose(given.decision_function(k.matrix(X)), expected, atol=1e-9)
    assert given.support_vectors_.shape == (0, 0)


def test_sparse_tables_give_the_same(rng):
    import scipy.sparse as sp

    X, y = table(rng)
    X[np.abs(X) < 0.5] = 0.0
    dense, sparse = wl.SVC().fit(X, y), wl.SVC().fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_matrix(X)), dense.decision_function(X), atol=1e-8
    )


def test_the_hyperplane_of_the_linear_kernel(rng):
    X, y = table(rng)
    fitted = wl.SVC(kernel="linear").fit(X, y)
    np.testing.assert_allclose(
        X @ fitted.coef_[0] + fitted.intercept_, fitted.decision_function(X), atol=1e-9
    )
    with pytest.raises(AttributeError, match="linear kernel"):
        wl.SVC().fit(X, y).coef_  # noqa: B018  # reading it is the test


def test_probabilities_are_calibrated_on_held_out_samples():
    X, y = load_breast_cancer(return_X_y=True)
    fitted = wl.SVC(probability=True, random_state=0).fit(X[::2], y[::2])
    p = fitted.predict_proba(X[1::2])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    found = -np.log(p[np.arange(len(p)), y[1::2]]).mean()
    assert found < 0.3  # the entropy of the labels is 0.66
    with pytest.raises(AttributeError, match="probability=False"):
        wl.SVC().predict_proba  # noqa: B018  # reading it is the test


def test_pairs_are_coupled_to_probabilities():
    X, y = load_iris(return_X_y=True)
    p = wl.SVC(probability=True, random_state=1).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p.argmax(axis=1) == y).mean() > 0.95


@pytest.mark.slow
def test_larger_problems_keep_the_certificate():
    X, y = make_classification(3000, 20, n_informative=10, random_state=0)
    for tol in (1e-3, 1e-9):
        fitted = wl.SVC(tol=tol).fit(X, y)
        assert fitted.evidence_["duality_gap"].value <= tol
        assert fitted.evidence_["kkt_violation"].value <= tol


def test_the_gap_is_the_gap_recomputed_outside(rng):
    X, y = table(rng)
    fitted = wl.SVC(tol=1e-9, C=10.0).fit(X, y)
    K = np.asarray(fitted.model_.kernel.matrix(X), np.longdouble)
    beta = np.zeros(len(X), np.longdouble)
    beta[fitted.support_] = fitted.dual_coef_[0]
    signs = np.where(y == 1, 1.0, -1.0)
    f = K @ beta
    loss = np.maximum(0.0, 1.0 - signs * (f + fitted.intercept_[0])).sum()
    primal, dual = 0.5 * beta @ f + 10.0 * loss, np.abs(beta).sum() - 0.5 * beta @ f
    assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
    assert primal - dual <= 1e-9 * primal
    np.testing.assert_allclose(fitted.evidence_["primal"].value, float(primal), rtol=1e-9)


BAD = [
    ({"C": 0.0}, "C is 0.0"),
    ({"C": -1.0}, "C is -1.0"),
    ({"gamma": -1.0}, "gamma is -1.0"),
    ({"gamma": "scales"}, "Did you mean 'scale'"),
    ({"kernel": "rbg"}, "Did you mean 'rbf'"),
    ({"kernel": 3}, "kernel is 3"),
    ({"tol": 0.0}, "tol is 0.0"),
    ({"multi_class": "all"}, "multi_class"),
    ({"kernel": lambda A, B: A @ B.T + np.zeros(3)[:, None, None]}, "returned shape"),
]


@pytest.mark.parametrize(("given", "said"), BAD)
def test_what_cannot_be_used_is_told(given, said, rng):
    X, y = table(rng, 20)
    with pytest.raises(wl.InputError, match=said):
        wl.SVC(**given).fit(X, y)


def test_bad_data_is_told(rng):
    X, y = table(rng, 20)
    with pytest.raises(wl.InputError, match="one class"):
        wl.SVC().fit(X, np.zeros(20))
    with pytest.raises(wl.InputError, match="square"):
        wl.SVC(kernel="precomputed").fit(X, y)
    with pytest.raises(wl.InputError, match="NaN"):
        wl.SVC().fit(X, np.where(y == 1, np.nan, 0.0))
    with pytest.raises(wl.InputError):
        wl.SVC().fit([["red", 1.0], ["blue", 2.0]], [0, 1])


def test_a_kernel_that_is_none_is_told_with_a_witness(rng):
    X, y = table(rng, 60)
    with pytest.warns(UserWarning, match=r"αᵀKα = -"):
        fitted = wl.SVC(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)
    assert fitted.evidence_["positive_semidefinite"].holds is False


def test_rows_of_zeros_have_no_length_to_divide_by(rng):
    X, y = table(rng, n=40)
    X[:5] = 0.0
    fitted = wl.SVC(kernel="linear", tol=1e-9).fit(X, y)
    theirs = sk.SVC(kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(fitted.decision_function(X), theirs.decision_function(X), atol=1e-5)
