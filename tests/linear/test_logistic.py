"""Logistic regression beside scikit-learn: objective first, then coefficients, labels, shapes."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

import wonderland as wl


def objective(X, codes, coef, intercept, C, weight=None):
    """C Σωℓ + ½‖W‖², written out once more."""
    Z = np.asarray(X @ coef.T) + intercept
    if Z.shape[1] == 1:
        losses = np.logaddexp(0.0, np.where(codes == 1, -Z[:, 0], Z[:, 0]))
    else:
        top = Z.max(axis=1)
        losses = top + np.log(np.exp(Z - top[:, None]).sum(axis=1)) - Z[np.arange(len(Z)), codes]
    omega = np.ones(len(codes)) if weight is None else weight
    return C * float(losses @ omega) + 0.5 * float((coef**2).sum())


def _made(name, rng):
    """(X, labels, C) of a made problem."""
    n, d, k = {"wide": (40, 300, 2), "wide softmax": (45, 200, 3)}.get(name, (400, 8, 2))
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, k)) + 2.0 * rng.gumbel(size=(n, k))
    y, C = scores.argmax(axis=1), 1.0
    if name == "badly scaled":
        X = X * 10.0 ** np.linspace(-4, 4, d)
    elif name == "duplicated rows":
        X, y = np.repeat(X[:20], 20, axis=0), np.repeat(y[:20], 20)
    elif name == "duplicated columns":
        X = np.hstack([X, X[:, :3]])
    elif name == "nearly separable":
        y, C = (X[:, 0] + 0.02 * rng.normal(size=n) > 0).astype(int), 1e3
    elif name == "imbalanced":
        X = rng.normal(size=(5005, d))
        y = (np.arange(5005) >= 5000).astype(int)
    elif name == "far from zero":
        X = X + 1e3
    elif name == "constant column":
        X[:, 2] = 3.0
    elif name == "tiny C":
        C = 1e-5
    return X, y, C


MADE = [
    "plain",
    "badly scaled",
    "duplicated rows",
    "duplicated columns",
    "nearly separable",
    "imbalanced",
    "far from zero",
    "constant column",
    "tiny C",
    "wide",
    "wide softmax",
]
REAL = {
    "iris": load_iris,
    "wine": load_wine,
    "cancer": load_breast_cancer,
    "digits": load_digits,
}


@pytest.mark.parametrize("name", [*MADE, *REAL])
def test_objective_is_at_most_theirs(name, rng):
    if name in REAL:
        X, y = REAL[name](return_X_y=True)
        X, y, C = X[::2], y[::2], 1.0
        X = X / np.maximum(np.abs(X).max(axis=0), 1e-9)
    else:
        X, y, C = _made(name, rng)
    ours = wl.LogisticRegression(C=C).fit(X, y)
    theirs = sk.LogisticRegression(C=C, solver="newton-cholesky", tol=1e-8, max_iter=3000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where its Hessian is singular it says so
        theirs.fit(X, y)
    codes = np.unique(y, return_inverse=True)[1]
    best = objective(X, codes, theirs.coef_, theirs.intercept_, C)
    mine = objective(X, codes, ours.coef_, ours.intercept_, C)
    assert mine <= best * (1 + 1e-12)
    assert ours.evidence_["primal"].value == pytest.approx(mine, rel=1e-9)
    assert ours.evidence_["dual"].value <= mine * (1 + 1e-12)
    assert ours.evidence_["duality_gap"].value < 1e-6
    assert ours.status_.ok


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 3.0, 2: 1.0}])
def test_coefficients_are_theirs(classes, intercept, sparse, class_weight, rng):
    X = rng.normal(size=(120, 4))
    y = (X @ rng.normal(size=(4, classes)) + rng.gumbel(size=(120, classes))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    if isinstance(class_weight, dict):
        class_weight = {k: class_weight[k] for k in range(classes)}
    X[np.abs(X) < 0.3] = 0.0
    weight = rng.uniform(0.0, 2.0, size=120)
    options = {"C": 0.7, "fit_intercept": intercept, "class_weight": class_weight}
    theirs = sk.LogisticRegression(**options, tol=1e-11, max_iter=3000).fit(X, y, weight)
    ours = wl.LogisticRegression(**options).fit(sp.csr_array(X) if sparse else X, y, weight)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


SOLVERS = ["auto", "newton", "newton-cholesky", "newton-cg", "trust-region", "liblinear", "descent"]


@pytest.mark.parametrize("solver", [*SOLVERS, "sag", "saga", "lbfgs"])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_solver_reaches_the_optimum(solver, classes, rng):
    X = rng.normal(size=(200, 5)) + 0.5
    y = (X @ rng.normal(size=(5, classes)) + rng.gumbel(size=(200, classes))).argmax(axis=1)
    best = wl.LogisticRegression(solver="newton").fit(X, y)
    ours = wl.LogisticRegression(solver=solver, tol=1e-7, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, best.coef_, atol=1e-4)
    assert ours.evidence_["gradient_norm"].holds
    assert ours.evidence_["solver"].meaning


def test_tall_tables_start_from_a_sample(rng):
    X = rng.normal(size=(60_000, 60)) * np.linspace(0.5, 3.0, 60)
    y = (X @ rng.normal(size=60) / 4 + 3.0 * rng.logistic(size=60_000) > 0).astype(int)
    ours = wl.LogisticRegression().fit(X, y)
    theirs = sk.LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(X, y)
    assert "one row in" in ours.evidence_["solver"].meaning
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-6)
    path = wl.logistic_path(X, y, [0.1, 1.0])
    np.testing.assert_allclose(path.coef[1], theirs.coef_, rtol=1e-5, atol=1e-6)


def test_many_parameters_use_blocks_or_the_diagonal(rng):
    X, y = load_digits(return_X_y=True)
    wide = np.hstack([X / 16.0, rng.normal(size=(len(X), 300)) / 10.0])
    y, wide = y[::3], wide[::3]
    model = wl.LogisticRegression().fit(wide, y)
    best = sk.LogisticRegression(max_iter=3000).fit(wide, y)
    mine = objective(wide, y, model.coef_, model.intercept_, 1.0)
    assert mine <= objective(wide, y, best.coef_, best.intercept_, 1.0) * (1 + 1e-10)
    assert "Kronecker" in model.evidence_["solver"].meaning
    table = sp.random_array((300, 900), density=0.02, rng=rng, format="csr")
    labels = (table @ rng.normal(size=900) > 0).astype(int)
    text = wl.LogisticRegression(C=10.0).fit(table, labels)
    peer = sk.LogisticRegression(C=10.0, tol=1e-8, max_iter=3000).fit(table, labels)
    mine = objective(table, labels, text.coef_, text.intercept_, 10.0)
    assert mine <= objective(table, labels, peer.coef_, peer.intercept_, 10.0) * (1 + 1e-10)


def test_path_is_one_fit_for_each_c(rng):
    X = rng.normal(size=(90, 3))
    y = np.array(list("abc"))[(X + rng.gumbel(size=(90, 3))).argmax(axis=1)]
    weight = rng.uniform(0.5, 2.0, size=90)
    path = wl.logistic_path(X, y, [0.01, 1.0, 50.0], weight)
    assert list(path.classes) == ["a", "b", "c"]
    for C, coef, intercept in zip(path.Cs, path.coef, path.intercept, strict=True):
        alone = wl.LogisticRegression(C=C).fit(X, y, weight)
        np.testing.assert_allclose(coef, alone.coef_, atol=1e-7)
        np.testing.assert_allclose(intercept, alone.intercept_, atol=1e-7)
    with pytest.raises(wl.InputError, match="Cs is"):
        wl.logistic_path(X, y, [0.0, 1.0])


def test_warm_start_needs_fewer_steps(rng):
    X = rng.normal(size=(200, 5))
    y = rng.integers(3, size=200)
    model = wl.LogisticRegression(warm_start=True, solver="newton").fit(X, y)
    first = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] < first
    assert model.fit(X[:, :2], y).coef_.shape == (3, 2)


def test_prior_is_the_penalty_and_more(rng):
    X = rng.normal(size=(80, 3))
    y = rng.integers(2, size=80)
    plain, prior = wl.LogisticRegression(), wl.LogisticRegression(prior=(0.0, 1.0))
    np.testing.assert_allclose(prior.fit(X, y).coef_, plain.fit(X, y).coef_, rtol=1e-9)
    held = wl.LogisticRegression(prior=([1.0, -2.0, 0.5], [1e8, 1e8, 1.0])).fit(X, y)
    np.testing.assert_allclose(held.coef_[0, :2], [1.0, -2.0], atol=1e-5)
    assert held.evidence_["duality_gap"].value < 1e-9
    # A quarter of the precision is four times the variance: the columns halved.
    quarter = wl.LogisticRegression(prior=(0.0, 0.25)).fit(X, y)
    halved = wl.LogisticRegression().fit(2.0 * X, y)
    np.testing.assert_allclose(quarter.coef_, 2.0 * halved.coef_, rtol=1e-7)


def test_probabilities_keep_their_digits(rng):
    X = np.linspace(-1, 1, 50)[:, None]
    model = wl.LogisticRegression(C=1e6).fit(X, X[:, 0] > 0.1)
    log = model.predict_log_proba([[1e4], [-1e4]])
    assert np.isfinite(log).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_sparsify_and_back(rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(3, size=40)
    model = wl.LogisticRegression().fit(X, y)
    before = model.predict_proba(X)
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.predict_proba(X), before)
    assert not sp.issparse(model.densify().coef_)


def test_zero_steps_and_too_few_are_said(rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(3, size=40)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        model = wl.LogisticRegression(max_iter=0).fit(X, y)
    assert not model.coef_.any()
    assert model.n_iter_[0] == 0
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        wl.LogisticRegression(max_iter=1, solver="descent").fit(X, y)


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"C": 0.0}, "C is 0.0"),
        ({"C": -1}, "C is -1"),
        ({"C": "gradiant"}, "gradient"),
        ({"solver": "newtn"}, "newton"),
        ({"penalty": "l3"}, "penalty is 'l3'"),
        ({"l1_ratio": 2.0}, "l1_ratio is 2.0"),
        ({"tol": -1.0}, "tol is -1.0"),
        ({"max_iter": "many"}, "max_iter is 'many'"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"prior": 3.0}, "prior is 3.0"),
        ({"prior": (0.0, 1.0), "l1_ratio": 1.0}, "prior"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_bad_parameters(options, fragment):
    with pytest.raises((wl.InputError, TypeError)) as caught:
        wl.LogisticRegression(**options).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    assert fragment in str(caught.value)
    assert caught.value.expected
    assert caught.value.todo


@pytest.mark.parametrize(
    ("X", "y", "fragment"),
    [
        ([[0.0], [1.0]], [1, 1], "one class only"),
        ([[0.0], [1.0]], [1.0, np.nan], "NaN"),
        (["free money", "hello"], [1, 0], "wl.BagOfWords"),
        (np.array([["free money"], ["hello"]]), [1, 0], "wl.BagOfWords"),
    ],
    ids=["one class", "NaN label", "text", "a text column"],
)
def test_bad_data(X, y, fragment):
    with pytest.raises((wl.InputError, TypeError), match=fragment):
        wl.LogisticRegression().fit(X, y)
