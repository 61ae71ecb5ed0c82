"""OneClassSVM against LIBSVM."""

import numpy as np
import pytest
import sklearn.svm as sk

import wonderland as wl


def test_scores_are_libsvms(rng):
    X = rng.normal(size=(150, 3)) + 3.0
    for given in ({"nu": 0.2}, {"nu": 0.05, "gamma": 1.0}):
        ours = wl.OneClassSVM(**given, tol=1e-9).fit(X)
        theirs = sk.OneClassSVM(**given, tol=1e-9).fit(X)
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=1e-5
        )
        np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-5)
        assert ours.evidence_["duality_gap"].holds


@pytest.mark.parametrize("nu", [0.05, 0.2, 0.33, 0.5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_offset_lies_between_inner_and_outer_samples(nu, seed):
    # With νn a whole number there may be no free support vector: then every ρ between the largest
    # score of a sample held and the smallest of a sample let go is optimal. Ours is the middle;
    # LIBSVM's is an end, where rounding left one multiplier a hair below its bound.
    X = np.random.default_rng(seed).normal(size=(150, 3)) + 3.0
    ours = wl.OneClassSVM(kernel="linear", nu=nu, tol=1e-9).fit(X)
    theirs = sk.OneClassSVM(kernel="linear", nu=nu, tol=1e-9).fit(X)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-6)
    edges, values = [], []
    for model in (ours, theirs):
        beta = np.zeros(150)
        beta[model.support_] = model.dual_coef_[0]
        f = X @ (X.T @ beta)
        rho = model.offset_[0]
        edges.append((f[beta > 1e-9].max(), rho, f[beta < 1 - 1e-9].min()))
        values.append(0.5 * beta @ f - rho * nu * 150 + np.maximum(rho - f, 0.0).sum())
    slack = 1e-7 * abs(edges[0][1])
    low, rho, high = edges[0]
    assert low - slack <= rho <= high + slack
    np.testing.assert_allclose(rho, (low + high) / 2.0, rtol=1e-7)
    assert edges[1][0] - slack <= edges[1][1] <= edges[1][2] + slack
    assert values[0] <= values[1] + 1e-10 * abs(values[1])
    np.testing.assert_allclose(ours.evidence_["primal"].value, values[0], rtol=1e-9)


@pytest.mark.parametrize("nu", [0.01, 0.1, 0.5, 1.0])
def test_nu_bounds_both_shares(nu, rng):
    X = rng.normal(size=(200, 2))
    fitted = wl.OneClassSVM(nu=nu).fit(X)
    outside = (fitted.decision_function(X) < -1e-6).mean()
    assert outside <= nu + 1e-9 <= len(fitted.support_) / 200 + 2e-9


def test_weights_are_copies(rng):
    X = rng.normal(size=(60, 2))
    counts = rng.integers(1, 4, 60)
    weighted = wl.OneClassSVM(nu=0.3).fit(X, sample_weight=counts.astype(float))
    repeated = wl.OneClassSVM(nu=0.3).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-6
    )


@pytest.mark.parametrize("nu", [0.0, 1.5, -1.0])
def test_nu_is_a_share(nu, rng):
    with pytest.raises(wl.InputError, match=f"nu is {nu}"):
        wl.OneClassSVM(nu=nu).fit(rng.normal(size=(20, 2)))
