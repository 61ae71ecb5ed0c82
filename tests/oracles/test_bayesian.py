"""scikit-learn's public checker over the Bayesian estimators and posteriors."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl

CHECKED = [wl.BayesianLinearRegression()]


@pytest.mark.filterwarnings("default::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(CHECKED)
def test_check_estimator(estimator, check):
    check(estimator)
