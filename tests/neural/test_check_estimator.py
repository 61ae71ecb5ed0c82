"""The public checker of scikit-learn over both networks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl

# scikit-learn's own networks warn just so on these small tables.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
NETWORKS = [wl.MLPClassifier(max_iter=30), wl.MLPRegressor(max_iter=30)]


def expected(estimator):
    """What is not so for networks, and why."""
    reason = "minibatches are drawn among rows: a row of weight two is not two rows"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(NETWORKS, expected_failed_checks=expected)
def test_check_estimator(estimator, check):
    check(estimator)
