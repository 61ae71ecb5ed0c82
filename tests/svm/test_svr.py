"""SVR against LIBSVM."""

import numpy as np
import pytest
import sklearn.svm as sk

import wonderland as wl


def table(rng, n=120):
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)


def objective(model, K, y):
    beta = np.zeros(len(K))
    beta[model.support_] = model.dual_coef_[0]
    return 0.5 * beta @ K @ beta - y @ beta + model.epsilon * np.abs(beta).sum()


GIVEN = [{}, {"C": 50.0, "epsilon": 0.01}, {"kernel": "linear"}, {"epsilon": 0.0}]


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_objective_and_predictions_are_libsvms_or_better(given, rng):
    X, y = table(rng)
    ours, theirs = wl.SVR(**given), sk.SVR(**given)
    K = np.asarray(ours.fit(X, y).model_.kernel.matrix(X))
    for tol in (1e-3, 1e-8):
        best = objective(theirs.set_params(tol=tol).fit(X, y), K, y)
        assert objective(ours.set_params(tol=tol).fit(X, y), K, y) <= best + 1e-9 * abs(best)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    assert ours.evidence_["duality_gap"].value <= 1e-8
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape


def test_targets_in_other_units_change_nothing_else(rng):
    X, y = table(rng)
    small = wl.SVR(C=1.0, epsilon=0.1, tol=1e-6).fit(X, y)
    large = wl.SVR(C=1e4, epsilon=1e3, tol=1e-6).fit(X, 1e4 * y)
    np.testing.assert_allclose(large.predict(X), 1e4 * small.predict(X), rtol=1e-5, atol=1e-2)


def test_a_tube_around_everything_has_no_support(rng):
    X, y = table(rng)
    fitted = wl.SVR(epsilon=100.0).fit(X, y)
    assert len(fitted.support_) == 0
    assert np.ptp(fitted.predict(X)) == 0
    assert np.abs(y - fitted.predict(X)).max() <= 100.0


def test_weights_are_copies(rng):
    X, y = table(rng, 60)
    counts = rng.integers(1, 4, 60)
    weighted = wl.SVR().fit(X, y, counts.astype(float))
    repeated = wl.SVR().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-7)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"epsilon": -0.1}, "epsilon is -0.1"), ({"C": 0.0}, "C is 0"), ({"C": np.inf}, "C is inf")],
)
def test_what_cannot_be_used_is_told(given, said, rng):
    with pytest.raises(wl.InputError, match=said):
        wl.SVR(**given).fit(*table(rng, 20))
