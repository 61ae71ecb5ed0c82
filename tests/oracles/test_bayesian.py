"""scikit-learn's public checker over the Bayesian estimators and posteriors."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl

CHECKED = [
    wl.BayesianLinearRegression(),
    wl.Posterior(wl.Ridge()),
    wl.Posterior(wl.LogisticRegression()),
    wl.Posterior(wl.LinearRegression(), method="ensemble", members=3),
    wl.Posterior(LogisticRegression(), method="ensemble", members=3),
]


@pytest.mark.filterwarnings("default::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(CHECKED)
def test_check_estimator(estimator, check):
    check(estimator)
