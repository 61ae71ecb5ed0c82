"""The base of wrappers, on the smallest one: it predicts as what it wraps."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import wonderland as wl
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.status import Status
from wonderland.trust.wrapper import (
    ClassifierWrapper,
    RegressorWrapper,
    fit_on,
    held_out,
    prefit,
    splits,
)


def _wrapped(self, task, method):
    ready = prefit(self)
    end = {"status_": Status.SOLVED, "evidence_": Evidence([Claim.fact("n", len(task.y), "rows")])}
    if ready is not None:
        return {"estimator_": ready, **end}
    parts = splits(self, task)
    fitted = [fit_on(self.estimator, task, part.train) for part in parts]
    aside = held_out(parts, fitted, task, lambda inner, X: getattr(inner, method)(X))
    return {"estimator_": fit_on(self.estimator, task), "held_out_": aside, **end}


class Plain(ClassifierWrapper):
    def __init__(self, estimator, cv=3):
        self.estimator, self.cv = estimator, cv

    def _fit(self, task):
        return _wrapped(self, task, "predict_proba")

    def predict(self, X):
        return self._contain(self._inner.predict(X), X)


class PlainRegressor(RegressorWrapper):
    def __init__(self, estimator, cv=3):
        self.estimator, self.cv = estimator, cv

    def _fit(self, task):
        return _wrapped(self, task, "predict")

    def predict(self, X):
        return self._contain(self._inner.predict(X), X)


LOGISTIC = TheirLogistic(max_iter=1000)
X, y = load_iris(return_X_y=True)
names = np.array(["setosa", "versicolor", "virginica"])[y]


def test_what_is_held_out_is_cross_validated():
    fitted = Plain(wl.LogisticRegression(), cv=3).fit(X, names)
    theirs = cross_val_predict(wl.LogisticRegression(), X, names, cv=3, method="predict_proba")
    np.testing.assert_array_equal(fitted.held_out_, theirs)
    assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert fitted.n_features_in_ == 4
    assert fitted.score(X, names) > 0.9
    made = PlainRegressor(LinearRegression(), cv=KFold(4)).fit(X[:, :3], X[:, 3])
    theirs = cross_val_predict(LinearRegression(), X[:, :3], X[:, 3], cv=KFold(4))
    np.testing.assert_array_equal(made.held_out_, theirs)


def test_a_wrapper_is_an_estimator():
    wrapped = Plain(make_pipeline(StandardScaler(), wl.LogisticRegression()))
    assert clone(wrapped).get_params()["estimator__logisticregression__C"] == 1.0
    grid = {"estimator__logisticregression__C": [1e-3, 1.0], "cv": [2]}
    found = GridSearchCV(wrapped, grid, cv=2).fit(X, names)
    assert found.best_params_["estimator__logisticregression__C"] == 1.0
    assert get_tags(wrapped).input_tags.sparse == get_tags(wrapped.estimator).input_tags.sparse
    assert not get_tags(Plain(KNeighborsClassifier(metric="nan_euclidean"))).no_validation
    assert get_tags(Plain(KNeighborsClassifier(metric="nan_euclidean"))).input_tags.allow_nan


def test_texts_and_frames_pass_through():
    texts = pd.Series(["good day", "bad day", "good", "bad"] * 6)
    fitted = Plain(make_pipeline(CountVectorizer(), LOGISTIC)).fit(texts, [1, 0] * 12)
    assert fitted.predict(["good", "bad"]).tolist() == [1, 0]
    assert not hasattr(fitted, "n_features_in_")
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(150) + 7)
    fitted.set_params(estimator=wl.LogisticRegression()).fit(frame, pd.Series(names, frame.index))
    assert fitted.feature_names_in_.tolist() == list("abcd")
    out = fitted.set_output(predict="pandas").predict(frame)
    assert out.index[0] == 7
    # A later fit that knows no columns forgets those of the earlier one.
    fitted.set_params(estimator=make_pipeline(CountVectorizer(), LOGISTIC))
    assert not hasattr(fitted.fit(texts, [1, 0] * 12), "feature_names_in_")


def test_weights_go_where_they_are_taken():
    weight = np.where(y == 2, 0.0, 1.0) + 1e-9
    for inner in (LOGISTIC, make_pipeline(StandardScaler(), LOGISTIC)):
        assert Plain(inner).fit(X, y, weight).predict(X).max() == 1
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        Plain(KNeighborsClassifier()).fit(X, y, weight)


def test_routing_and_groups():
    groups = np.arange(150) % 5
    plain = Plain(LOGISTIC, cv=GroupKFold(3)).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = clone(LOGISTIC).set_fit_request(sample_weight=True)
        asked = Plain(inner, cv=GroupKFold(3)).set_fit_request(sample_weight=True)
        again = asked.fit(X, y, sample_weight=np.ones(150), groups=groups)
        with pytest.raises(TypeError, match="unexpected argument"):
            asked.fit(X, y, nothing=1)
        weighed = Plain(inner, cv=3).fit(X, y, sample_weight=np.where(y == 2, 1e-9, 1.0))
    np.testing.assert_allclose(plain.held_out_, again.held_out_, rtol=1e-6)
    assert weighed.predict(X).max() == 1


def test_prefit_takes_what_came():
    inner = clone(LOGISTIC).fit(X, names)
    fitted = Plain(inner, cv="prefit").fit(X[:20], names[:20])
    assert fitted.estimator_ is inner
    assert fitted.classes_.tolist() == inner.classes_.tolist()
    with pytest.raises(NotFittedError, match="is not fitted"):
        Plain(LOGISTIC, cv="prefit").fit(X, y)
    with pytest.raises(wl.InputError, match="does not know: 'lily', first in row 3"):
        Plain(inner, cv="prefit").fit(X[:4], ["setosa", "setosa", "setosa", "lily"])


@pytest.mark.parametrize(
    ("wrapped", "sentence"),
    [
        (Plain(LOGISTIC, cv="pre"), "cv is 'pre'"),
        (Plain(LOGISTIC, cv=1), "at least 2 folds"),
        (Plain(LOGISTIC, cv=51), "class 0 has 50 samples"),
        (Plain(LOGISTIC, cv=ShuffleSplit(3, random_state=0)), "exactly one test part"),
        (Plain(LOGISTIC, cv=KFold(3)), "trains without class 0"),
        (Plain(TheirLogistic), "an estimator: an object"),
        (Plain(None), "an estimator: an object"),
    ],
)
def test_refusals_leave_the_wrapper_as_it_was(wrapped, sentence):
    before = dict(vars(wrapped))
    with pytest.raises(wl.InputError, match=sentence):
        wrapped.fit(X, y)
    assert vars(wrapped) == before


def test_refused_targets():
    with pytest.raises(wl.InputError, match="one class only"):
        Plain(LOGISTIC).fit(X, np.zeros(150))
    with pytest.raises(wl.InputError, match="requires y"):
        Plain(LOGISTIC).fit(X, None)
    with pytest.raises(wl.InputError, match="Unknown label type"):
        Plain(LOGISTIC).fit(X, X[:, 0])
    with pytest.raises(wl.InputError, match="finite"):
        PlainRegressor(LinearRegression()).fit(X, np.where(y == 0, np.nan, 1.0))
