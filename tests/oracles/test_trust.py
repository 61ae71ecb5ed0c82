"""scikit-learn's public checker over the wrappers, around our estimators and around its own."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl

WRAPPED = [
    wl.CalibratedClassifier(wl.LogisticRegression(), cv=3),
    wl.CalibratedClassifier(LogisticRegression(), method="platt", cv=3),
    wl.CalibratedClassifier(GaussianNB(), method="isotonic", cv=3, ensemble=True),
    wl.CostSensitiveClassifier(wl.LogisticRegression(), cv=3),
    wl.CostSensitiveClassifier(GaussianNB(), cv=3),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::wonderland.trust.cost.UncalibratedWarning")
@parametrize_with_checks(WRAPPED)
def test_scikit_learns_checker(estimator, check):
    check(estimator)
