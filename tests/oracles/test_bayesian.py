"""scikit-learn's public checker over the Bayesian estimators and posteriors."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl

CHECKED = [
    wl.BayesianLinearRegression(),
    wl.BayesianLogisticRegression(),
    wl.Posterior(wl.Ridge()),
    wl.Posterior(wl.LogisticRegression()),
    wl.Posterior(wl.LinearRegression(), method="ensemble", members=3),
    wl.Posterior(LogisticRegression(), method="ensemble", members=3),
]


DRAWN = "members draw rows at random: a repeated row is drawn more often, but not in the same draws"


def expected_failures(estimator):
    if getattr(estimator, "method", None) != "ensemble":
        return {}
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": DRAWN for kind in kinds}


@pytest.mark.filterwarnings("default::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_check_estimator(estimator, check):
    check(estimator)
