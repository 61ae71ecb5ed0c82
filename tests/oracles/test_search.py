"""scikit-learn's public checker over `SearchCV`."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl

SEARCHES = [
    wl.SearchCV(wl.Ridge(), {"alpha": [0.1, 1.0]}, cv=2, error_score="raise"),
    wl.SearchCV(wl.LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, error_score="raise"),
]


def explained(estimator):
    if isinstance(estimator.estimator, wl.Ridge):
        reason = "each of the check's two folds has a constant target, which Ridge refuses"
        return {"check_estimators_nan_inf": reason}
    return {}


@pytest.mark.slow
@parametrize_with_checks(SEARCHES, expected_failed_checks=explained)
def test_check_estimator(estimator, check):
    check(estimator)
