"""scikit-learn's networks as the oracle: the same seed, the same weights, the same walk."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.neural_network import MLPClassifier, MLPRegressor

import wonderland as wl

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600] / 16.0, y[:600]


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:400] * 20, (y[:400] - 150) / 80


def weights_apart(ours, theirs):
    pairs = zip(ours.coefs_ + ours.intercepts_, theirs.coefs_ + theirs.intercepts_, strict=True)
    return max(np.abs(a - b).max() for a, b in pairs)


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
@pytest.mark.parametrize("classes", [2, 10])
def test_full_batch_classifier_walks_with_scikit_learn(digits, activation, classes):
    X, y = digits[0], digits[1] % classes
    options = {"solver": "lbfgs", "max_iter": 12, "random_state": 3, "alpha": 0.1}
    ours = wl.MLPClassifier((9,), activation, **options).fit(X, y)
    theirs = MLPClassifier((9,), activation, **options).fit(X, y)
    assert ours.loss_ == pytest.approx(theirs.loss_, rel=1e-5)
    assert weights_apart(ours, theirs) < 1e-3
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.out_activation_ == theirs.out_activation_
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_full_batch_comes_at_least_as_low(digits):
    X, y = digits
    options = {"solver": "lbfgs", "max_iter": 400, "random_state": 0, "alpha": 1.0}
    ours = wl.MLPClassifier((8,), **options).fit(X, y)
    theirs = MLPClassifier((8,), **options).fit(X, y)
    assert ours.loss_ <= theirs.loss_ * 1.02


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
def test_full_batch_regressor_walks_with_scikit_learn(diabetes, loss, weighted, rng):
    X, y = diabetes
    y = np.exp(y) if loss == "poisson" else y
    weight = {"sample_weight": rng.uniform(0.5, 2.0, len(y))} if weighted else {}
    options = {"solver": "lbfgs", "max_iter": 10, "random_state": 1, "alpha": 0.01}
    ours = wl.MLPRegressor(loss, (7,), "tanh", **options).fit(X, y, **weight)
    theirs = MLPRegressor(loss, (7,), "tanh", **options).fit(X, y, **weight)
    assert ours.loss_ == pytest.approx(theirs.loss_, rel=1e-5)
    assert weights_apart(ours, theirs) < 1e-3
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_minibatches_in_order_walk_with_scikit_learn(digits, nesterov, momentum):
    options = {
        "solver": "sgd",
        "shuffle": False,
        "batch_size": 200,
        "max_iter": 6,
        "learning_rate_init": 0.1,
        "momentum": momentum,
        "nesterovs_momentum": nesterov,
        "alpha": 0.5,
        "random_state": 0,
    }
    ours, theirs = (
        kind((12,), **options).fit(*digits) for kind in (wl.MLPClassifier, MLPClassifier)
    )
    assert weights_apart(ours, theirs) < 1e-5
    penalised = [c - o for o, c in zip(ours.loss_curve_, theirs.loss_curve_, strict=True)]
    assert min(penalised) >= -1e-5  # theirs holds the penalty too
    assert ours.t_ == theirs.t_


def test_adam_in_order_walks_with_scikit_learn(digits):
    options = {"shuffle": False, "batch_size": 200, "max_iter": 5, "random_state": 0, "tol": 0.0}
    options["alpha"] = 0.0  # where only the penalty pulls, Adam turns rounding into direction
    ours = wl.MLPClassifier((12,), "tanh", **options).fit(*digits)
    theirs = MLPClassifier((12,), "tanh", **options).fit(*digits)
    assert weights_apart(ours, theirs) < 2e-3
    np.testing.assert_allclose(ours.loss_curve_, theirs.loss_curve_, rtol=1e-3)


def test_partial_fit_walks_with_scikit_learn(digits):
    X, y = digits
    options = {"solver": "sgd", "shuffle": False, "batch_size": 100, "random_state": 0}
    ours, theirs = wl.MLPClassifier((12,), **options), MLPClassifier((12,), **options)
    for part in (slice(0, 300), slice(300, 600), slice(0, 300)):
        for model in (ours, theirs):
            model.partial_fit(X[part], y[part], classes=np.arange(10))
    assert weights_apart(ours, theirs) < 1e-5
    assert ours.t_ == theirs.t_ == 900
    assert len(ours.loss_curve_) == 3


def test_defaults_learn_as_well_as_scikit_learn(digits):
    ours = [wl.MLPClassifier((20,), random_state=s, max_iter=40).fit(*digits) for s in range(3)]
    theirs = [MLPClassifier((20,), random_state=s, max_iter=40).fit(*digits) for s in range(3)]
    mean = [np.mean([m.loss_ for m in models]) for models in (ours, theirs)]
    assert mean[0] <= 1.05 * mean[1]


def test_every_parameter_and_default_is_scikit_learns():
    for ours, theirs in (
        (wl.MLPClassifier(), MLPClassifier()),
        (wl.MLPRegressor(), MLPRegressor()),
    ):
        known, own = theirs.get_params(), ours.get_params()
        assert {name: own[name] for name in known} == known


def test_every_attribute_of_scikit_learn_is_there(digits):
    for options in ({"solver": "lbfgs"}, {}, {"early_stopping": True}):
        ours = wl.MLPClassifier((5,), max_iter=2, **options).fit(*digits)
        theirs = MLPClassifier((5,), max_iter=2, **options).fit(*digits)
        public = {n for n in vars(theirs) if n.endswith("_") and not n.startswith("_")}
        assert public <= set(vars(ours)), public - set(vars(ours))
