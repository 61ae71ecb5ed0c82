"""A search over networks: one program, and the results of fitting one by one."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wonderland as wl

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def data(rng):
    X = rng.normal(size=(90, 4))
    return X, np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]


def network(**options):
    return wl.MLPClassifier((6,), max_iter=8, random_state=0, batch_size=20, **options)


def same(ours, theirs):
    for name, column in theirs.cv_results_.items():
        if "score" in name and "time" not in name:
            np.testing.assert_allclose(ours.cv_results_[name], column, rtol=1e-6, err_msg=name)
    assert ours.best_params_ == theirs.best_params_
    assert ours.evidence_["programs"].value == 1, ours.evidence_["programs"].meaning


@pytest.mark.parametrize(
    ("options", "space"),
    [
        ({}, {"learning_rate_init": [0.003, 0.03], "alpha": [0.0, 0.1]}),
        ({"early_stopping": True}, {"learning_rate_init": [0.003, 0.03]}),
        ({"dropout": 0.2}, {"dropout": [0.1, 0.3], "random_state": [0, 1]}),
        ({"solver": "sgd"}, {"momentum": [0.5, 0.9], "learning_rate_init": [0.01, 0.1]}),
        ({"norm": "batch"}, {"weight_decay": [0.0, 0.1]}),
    ],
)
def test_scores_are_those_of_fits_one_by_one(data, options, space):
    ours = wl.SearchCV(network(**options), space, cv=3, scoring="neg_log_loss").fit(*data)
    same(ours, GridSearchCV(network(**options), space, cv=3, scoring="neg_log_loss").fit(*data))


def test_members_are_fitted_estimators(data):
    X, y = data
    search = wl.SearchCV(network(), {"alpha": [0.0, 0.1]}, cv=3, refit=False).fit(X, y)
    assert not hasattr(search, "best_estimator_")
    from wonderland.shell.together import Task

    rows = np.arange(0, 90, 2)
    [member] = wl.MLPClassifier._fit_together([Task(network(), rows)], X, y, None)
    alone = network().fit(X[rows], y[rows])
    for ours, theirs in zip(member.coefs_, alone.coefs_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(member.predict(X), alone.predict(X))
    np.testing.assert_allclose(member.loss_curve_, alone.loss_curve_, rtol=1e-6)
    assert member.n_iter_ == alone.n_iter_
    assert member.t_ == alone.t_
    assert member.n_features_in_ == 4


def test_regressors_and_weights(rng):
    X = rng.normal(size=(60, 3))
    y, weight = X[:, 0] ** 2, rng.uniform(0.5, 2, 60)
    model = wl.MLPRegressor(hidden_layer_sizes=(5,), max_iter=6, random_state=1, batch_size=16)
    space = {"learning_rate_init": [0.01, 0.1]}
    ours = wl.SearchCV(model, space, cv=3).fit(X, y, sample_weight=weight)
    same(ours, GridSearchCV(model, space, cv=3).fit(X, y, sample_weight=weight))


def test_behind_a_scaler(data):
    pipeline = make_pipeline(StandardScaler(), network())
    space = {"mlpclassifier__alpha": [0.0, 0.1]}
    ours = wl.SearchCV(pipeline, space, cv=3, scoring="neg_log_loss").fit(*data)
    same(ours, GridSearchCV(pipeline, space, cv=3, scoring="neg_log_loss").fit(*data))


def test_shapes_that_differ_make_programs_of_their_own(data):
    space = {"hidden_layer_sizes": [(4,), (6,)], "alpha": [0.0, 0.1]}
    assert wl.SearchCV(network(), space, cv=3).fit(*data).evidence_["programs"].value == 2


def test_what_cannot_be_stacked_is_said(data):
    search = wl.SearchCV(network(solver="lbfgs"), {"alpha": [0.1, 1.0]}, cv=3).fit(*data)
    assert search.evidence_["programs"].value == 0
    assert "lbfgs" in search.evidence_["programs"].meaning


def test_a_member_that_diverges_fails_alone(rng):
    X, y = 1e3 * rng.normal(size=(60, 3)), 1e6 * rng.normal(size=60)
    model = wl.MLPRegressor(hidden_layer_sizes=(5,), solver="sgd", max_iter=5, random_state=1)
    space = {"learning_rate_init": [1e-12, 10.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = wl.SearchCV(model, space, cv=3, refit=False).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert np.isfinite(search.cv_results_["mean_test_score"][0])
    assert issubclass(ConvergenceWarning, Warning)
