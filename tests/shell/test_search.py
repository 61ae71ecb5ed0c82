"""SearchCV: scikit-learn's searches are the oracle; fits that share a program change no result."""

import pickle

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wonderland as wl
from wonderland.shell.together import NotTogether

CALLS = []  # the groups that were fitted together


class Shrunk(RegressorMixin, BaseEstimator):
    """w = (XᵀX + αI)⁻¹Xᵀy on the first `columns` columns; settings of one width fit together."""

    def __init__(self, alpha=1.0, columns=3):
        self.alpha = alpha
        self.columns = columns

    def fit(self, X, y, sample_weight=None):
        X = np.asarray(X)[:, : self.columns]
        w = np.ones(len(X)) if sample_weight is None else sample_weight
        gram = X.T @ (w[:, None] * X) + self.alpha * np.eye(X.shape[1])
        self.coef_ = np.linalg.solve(gram, X.T @ (w * np.asarray(y)))
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.asarray(X)[:, : self.columns] @ self.coef_

    def _together_key(self):
        return self.columns

    @staticmethod
    def _fit_together(tasks, X, y, sample_weight):
        CALLS.append(len(tasks))
        if tasks[0].estimator.columns == 1:
            raise NotTogether("one column is too few")
        if any(task.estimator.alpha < 0 for task in tasks):
            raise ValueError("alpha is negative")
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        X, y = np.asarray(X), np.asarray(y)
        return [t.estimator.fit(X[t.rows], y[t.rows], weight[t.rows]) for t in tasks]


class Apart(Shrunk):
    """The same without the protocol."""

    _fit_together = property()  # hasattr is False


@pytest.fixture
def data(rng):
    X = rng.normal(size=(60, 4))
    return X, X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.normal(size=60)


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


SPACE = {"alpha": [0.1, 1.0, 10.0], "columns": [2, 3]}


def same(ours, theirs):
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_
    for name, column in theirs.cv_results_.items():
        if "time" not in name:
            np.testing.assert_array_equal(ours.cv_results_[name], column)


@pytest.mark.parametrize("cv", [None, 3, KFold(4, shuffle=True, random_state=0)])
def test_results_are_those_of_grid_search(data, cv):
    ours = wl.SearchCV(Shrunk(), SPACE, cv=cv, return_train_score=True).fit(*data)
    same(ours, GridSearchCV(Shrunk(), SPACE, cv=cv, return_train_score=True).fit(*data))
    assert [3 * ours.n_splits_] * 2 == CALLS
    assert isinstance(ours.best_estimator_, Shrunk)
    assert ours.evidence_["programs"].value == 2
    assert ours.evidence_["fits"].value == 6 * ours.n_splits_


def test_a_splitter_that_shuffles_afresh_is_asked_once(data):
    ours = wl.SearchCV(Shrunk(), SPACE, cv=KFold(3, shuffle=True)).fit(*data)
    assert CALLS == [9, 9]
    assert np.isfinite(ours.best_score_)


def test_sample_weights_reach_fits_and_scores(data, rng):
    weight = rng.uniform(0.1, 2, len(data[1]))
    ours = wl.SearchCV(Shrunk(), SPACE, cv=3).fit(*data, sample_weight=weight)
    same(ours, GridSearchCV(Shrunk(), SPACE, cv=3).fit(*data, sample_weight=weight))
    assert CALLS == [9, 9]


def test_random_search_and_distributions(data):
    space = {"alpha": stats.loguniform(1e-3, 1e3)}
    ours = wl.SearchCV(Shrunk(), space, method="random", n_iter=7, random_state=3).fit(*data)
    same(ours, RandomizedSearchCV(Shrunk(), space, n_iter=7, random_state=3).fit(*data))
    assert CALLS == [35]


def test_halving_fits_each_round_together(data):
    options = {"cv": 3, "random_state": 0, "min_resources": 20, "factor": 2}
    ours = wl.SearchCV(Shrunk(), SPACE, method="halving", **options).fit(*data)
    same(ours, HalvingGridSearchCV(Shrunk(), SPACE, return_train_score=False, **options).fit(*data))
    assert sum(CALLS) == 3 * len(ours.cv_results_["params"])


def test_several_scores_and_a_callable_refit(data):
    options = {"scoring": ["r2", "neg_mean_squared_error"], "refit": "r2", "cv": 3}
    ours = wl.SearchCV(Shrunk(), SPACE, **options).fit(*data)
    same(ours, GridSearchCV(Shrunk(), SPACE, **options).fit(*data))
    first = wl.SearchCV(Shrunk(), SPACE, cv=3, refit=lambda results: 0).fit(*data)
    assert first.best_index_ == 0


def test_a_pipeline_shares_its_last_step(data):
    pipeline = make_pipeline(StandardScaler(), Shrunk())
    space = {"shrunk__alpha": [0.1, 1.0], "standardscaler__with_mean": [True, False]}
    ours = wl.SearchCV(pipeline, space, cv=3).fit(*data)
    same(ours, GridSearchCV(pipeline, space, cv=3).fit(*data))
    assert CALLS == [6, 6]
    np.testing.assert_array_equal(ours.predict(data[0]), ours.best_estimator_.predict(data[0]))


def test_what_cannot_be_shared_is_fitted_alone_and_said(data):
    space = {"columns": [1, 2]}
    ours = wl.SearchCV(Shrunk(), space, cv=3).fit(*data)
    same(ours, GridSearchCV(Shrunk(), space, cv=3).fit(*data))
    assert "one column is too few" in ours.evidence_["programs"].meaning
    foreign = wl.SearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3, n_jobs=1).fit(*data)
    same(foreign, GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3).fit(*data))
    assert "Ridge fits one setting at a time" in foreign.evidence_["programs"].meaning


def test_a_failing_setting_fails_alone(data):
    class Fussy(Shrunk):
        def fit(self, X, y, sample_weight=None):
            if self.alpha < 0:
                raise ValueError("alpha is negative")
            return super().fit(X, y, sample_weight)

    with pytest.warns(UserWarning, match="non-finite"), pytest.warns(Warning, match="fits failed"):
        ours = wl.SearchCV(Fussy(), {"alpha": [1.0, -1.0]}, cv=3).fit(*data)
    assert np.isnan(ours.cv_results_["mean_test_score"][1])
    assert ours.best_params_ == {"alpha": 1.0}
    with pytest.raises(ValueError, match="alpha is negative"):
        wl.SearchCV(Fussy(), {"alpha": [-1.0]}, cv=3, error_score="raise").fit(*data)


def test_the_lead_is_judged(data):
    clear = wl.SearchCV(Shrunk(), {"alpha": [0.1, 1e6]}, cv=5).fit(*data)
    assert clear.evidence_["lead"].value[1] > 0
    tie = wl.SearchCV(Shrunk(), {"alpha": [0.1, 0.1]}, cv=5).fit(*data)
    assert "within chance" in tie.evidence_["lead"].meaning


def test_gradient_finds_the_best_of_a_fine_grid(rng):
    X = rng.normal(size=(80, 20))
    y = X[:, :3].sum(axis=1) + 2.0 * rng.normal(size=80)
    ours = wl.SearchCV(
        wl.Ridge(),
        {"alpha": (1e-3, 1e4)},
        method="gradient",
        n_iter=15,
        scoring="neg_mean_squared_error",
    ).fit(X, y)
    grid = GridSearchCV(Ridge(), {"alpha": np.logspace(-3, 4, 60)}, scoring=ours.scoring).fit(X, y)
    assert ours.best_score_ >= grid.best_score_ - 1e-4 * abs(grid.best_score_)
    assert len(ours.cv_results_["params"]) <= 15


def test_slopes_of_the_held_out_loss_are_derivatives(data):
    X, y = data
    splits = list(KFold(3).split(X))
    for intercept in (True, False):
        ridge = wl.Ridge(fit_intercept=intercept)
        slopes = ridge._validation_slopes(["alpha"], X, y, None, splits)
        step = 1e-4
        losses, derivatives = slopes(np.array([2.0]))
        difference = (slopes(np.array([2 + step]))[0] - slopes(np.array([2 - step]))[0]) / 2 / step
        np.testing.assert_allclose(derivatives[:, 0], difference, rtol=1e-5)
        for (train, test), loss in zip(splits, losses, strict=True):
            fitted = Ridge(2.0, fit_intercept=intercept).fit(X[train], y[train])
            assert np.isclose(np.mean((fitted.predict(X[test]) - y[test]) ** 2), loss)


@pytest.mark.parametrize("classes", [2, 3])
def test_gradient_of_logistic_regression(rng, classes):
    X = rng.normal(size=(90, 6))
    y = np.array(list("abc"))[np.digitize(X[:, 0] + rng.normal(size=90), [0.0, 1.0][: classes - 1])]
    model, fine = wl.LogisticRegression(), np.logspace(-3, 3, 30)
    options = {"scoring": "neg_log_loss", "cv": 4}
    ours = wl.SearchCV(model, {"C": (1e-3, 1e3)}, method="gradient", n_iter=12, **options)
    grid = GridSearchCV(LogisticRegression(tol=1e-8, max_iter=1000), {"C": fine}, **options)
    best = grid.fit(X, y).best_score_
    assert ours.fit(X, y).best_score_ >= best - 1e-3 * abs(best)
    slopes = model._validation_slopes(["C"], X, y, None, list(KFold(3).split(X)))
    higher, lower = slopes(np.array([1.001]))[0], slopes(np.array([0.999]))[0]
    np.testing.assert_allclose(slopes(np.array([1.0]))[1][:, 0], (higher - lower) / 2e-3, rtol=1e-3)


def test_manners_of_a_search(data):
    search = wl.SearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3)
    assert clone(search).get_params()["estimator__C"] == 1.0
    X, y = data[0], np.where(data[1] > 0, "high", "low")
    search.fit(X, y)
    assert list(search.classes_) == ["high", "low"]
    assert search.predict_proba(X).shape == (60, 2)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    fitted = wl.SearchCV(Shrunk(), SPACE, cv=3).fit(*data)
    assert pickle.loads(pickle.dumps(fitted)).best_params_ == fitted.best_params_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"space": {"alpha": [1]}, "method": "gird"}, "Did you mean 'grid'"),
        ({"space": [1, 2]}, "a mapping from parameter names"),
        ({"space": {"alhpa": [1]}}, "Did you mean 'alpha'"),
        ({"space": {"alpha": stats.uniform()}}, 'method="random"'),
        ({"space": {"alpha": [1, 2, 3]}, "method": "gradient"}, "a range"),
        ({"space": {"alpha": (0.0, 1.0)}, "method": "gradient"}, "positive"),
        ({"space": {"alpha": (0.1, 1.0)}, "method": "gradient"}, "halving"),
    ],
)
def test_bad_input(data, options, words):
    with pytest.raises(wl.InputError, match=words):
        wl.SearchCV(Shrunk(), **options).fit(*data)
