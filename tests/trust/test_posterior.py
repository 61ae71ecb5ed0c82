"""Averages over posteriors: laws of total variance, exact posteriors, manners of estimators."""

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as sk
from scipy.stats import t as student
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wonderland as wl
from wonderland.trust.posterior_parts import mixture_interval
from wonderland.trust.sampling import Effort

SHORT = Effort(draws=500, warmup=200)


def numbers(rng, n=60, d=3):
    X = rng.normal(size=(n, d)) + 1.0
    return X, X @ rng.normal(size=d) + 0.7 * rng.normal(size=n)


def labels(rng, n=90, d=3, k=3):
    X = rng.normal(size=(n, d))
    codes = (2.0 * X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    codes[:k] = np.arange(k)
    return X, np.array(["ash", "birch", "cedar"])[codes]


@pytest.mark.slow
def test_chains_draw_from_the_exact_posterior(rng):
    """Flat priors: coefficients are Student's t about least squares with n − p degrees."""
    pytest.importorskip("blackjax")
    X, y = numbers(rng, n=18, d=2)
    effort = Effort(draws=1500, warmup=300)
    found = wl.Posterior(wl.LinearRegression(), method="nuts", effort=effort, random_state=1)
    found.fit(X, y)
    assert not found.evidence_.failing
    summary, fit = found.predictive_.summary, found.estimator_
    freedom = 18 - 3
    spread = student(freedom).std() * np.append(fit.standard_errors_, fit.intercept_standard_error_)
    middle = np.append(fit.coef_, fit.intercept_)
    assert np.all(np.abs(summary.mean[:3] - middle) < 5 * summary.mcse[:3])
    np.testing.assert_allclose(summary.sd[:3], spread, rtol=0.1)
    # σ² ~ rss/χ²: E σ² = rss/(n − p − 2).
    rss = fit.residual_deviation_**2 * freedom
    np.testing.assert_allclose(
        found.predictive_.noise.mean(), rss / (freedom - 2), rtol=5 * 0.7 / np.sqrt(200)
    )
    laplace = wl.Posterior(wl.LinearRegression()).fit(X, y)
    ours, exact = found.prediction_interval(X, 0.9), laplace.prediction_interval(X, 0.9)
    np.testing.assert_allclose(ours, exact, atol=0.25 * np.ptp(exact, axis=0).min())
    np.testing.assert_allclose(found.predict(X), fit.predict(X), atol=0.2)


@pytest.mark.slow
def test_chains_agree_with_laplace_where_it_is_good(rng):
    pytest.importorskip("blackjax")
    X, y = labels(rng, n=400, k=3)
    both = {
        method: wl.Posterior(
            wl.LogisticRegression(), method=method, effort=SHORT, members=400, random_state=0
        ).fit(X, y)
        for method in ("laplace", "nuts")
    }
    np.testing.assert_allclose(*(one.predict_proba(X) for one in both.values()), atol=0.03)
    np.testing.assert_allclose(*(one.uncertainty(X).epistemic for one in both.values()), atol=0.02)
    assert both["nuts"].evidence_["rhat"].holds
    assert both["nuts"].predictive_.summary.names[0].startswith("coef")


@pytest.mark.slow
def test_short_chains_are_told(rng):
    pytest.importorskip("blackjax")
    X, y = numbers(rng)
    effort = Effort(draws=20, warmup=20, chains=2)
    with pytest.warns(ConvergenceWarning, match="raise effort.draws"):
        wl.Posterior(wl.Ridge(), method="nuts", effort=effort).fit(X, y)


@pytest.mark.parametrize("method", ["laplace", "ensemble"])
def test_parts_add_up(method, rng):
    X, y = numbers(rng)
    found = wl.Posterior(wl.Ridge(0.1), method=method, random_state=0).fit(X, y)
    parts = found.uncertainty(X)
    np.testing.assert_allclose(parts.total, parts.epistemic + parts.aleatoric)
    _, deviation = found.predict(X, return_std=True)
    np.testing.assert_allclose(deviation**2, parts.total)
    X, y = labels(rng)
    found = wl.Posterior(wl.LogisticRegression(), method=method, random_state=0).fit(X, y)
    parts, p = found.uncertainty(X), found.predict_proba(X)
    np.testing.assert_allclose(parts.total, -(p * np.log(p)).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(parts.total, parts.epistemic + parts.aleatoric)
    assert np.all(parts.epistemic >= 0)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert found.predict_members(X).shape == (16, len(X), 3)


def test_the_predictive_is_the_mean_of_members(rng):
    X, y = labels(rng)
    found = wl.Posterior(wl.LogisticRegression(), method="ensemble", members=7).fit(X, y)
    members = [one.predict_proba(X) for one in found.predictive_.fitted]
    np.testing.assert_allclose(found.predict_proba(X), np.mean(members, axis=0))
    np.testing.assert_allclose(found.predict_members(X), members)


def test_quantiles_of_mixtures(rng):
    means, variances = rng.normal(size=(5, 3)), rng.uniform(0.1, 2.0, size=(5, 1))
    low, high = mixture_interval(means, variances, 0.8)
    draws = means[:, None] + np.sqrt(variances)[:, None] * rng.normal(size=(5, 200_000, 3))
    expected = np.quantile(draws.reshape(-1, 3), [0.1, 0.9], axis=0)
    np.testing.assert_allclose([low, high], expected, atol=0.02)


def test_any_classifier_makes_an_ensemble(rng):
    from sklearn.neighbors import KNeighborsClassifier  # takes no weights
    from sklearn.tree import DecisionTreeClassifier

    X, y = labels(rng, n=200)
    for estimator in (sk.LogisticRegression(), KNeighborsClassifier(), DecisionTreeClassifier()):
        found = wl.Posterior(estimator, method="ensemble", random_state=0).fit(X, y)
        assert is_classifier(found)
        assert found.score(X, y) > 0.5
        assert found.evidence_["out_of_bag_error"].value > 0
        again = wl.Posterior(estimator, method="ensemble", random_state=0).fit(X, y)
        np.testing.assert_array_equal(found.predict_proba(X), again.predict_proba(X))


def test_seeds_alone_make_an_ensemble(rng):
    from sklearn.ensemble import RandomForestRegressor

    X, y = numbers(rng)
    forest = RandomForestRegressor(3, random_state=0)
    found = wl.Posterior(forest, method="ensemble", bootstrap=False, members=3, random_state=0)
    found.fit(X, y)
    assert is_regressor(found)
    assert len({one.random_state for one in found.predictive_.fitted}) == 3
    assert np.ptp(found.predict_members(X), axis=0).max() > 0
    low, high = found.prediction_interval(X)
    assert np.all(low < high)


@pytest.mark.slow
def test_intervals_of_ensembles_hold_what_they_promise(rng):
    inside = 0
    for run in range(300):
        X, y = numbers(rng, n=61)
        found = wl.Posterior(wl.LinearRegression(), method="ensemble", random_state=run)
        low, high = found.fit(X[:60], y[:60]).prediction_interval(X[60:], 0.9)
        inside += bool(low[0] <= y[60] <= high[0])
    assert 0.83 < inside / 300 < 0.96


def test_pipelines_frames_and_strings(rng):
    X, y = labels(rng, k=2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    piped = make_pipeline(StandardScaler(), wl.LogisticRegression())
    for method in ("laplace", "ensemble"):
        found = wl.Posterior(piped, method=method, random_state=0).fit(frame, y)
        assert list(found.feature_names_in_) == ["a", "b", "c"]
        assert set(found.predict(frame)) <= set(y)
        table = found.set_output(transform="pandas").predict_proba(frame)
        assert list(table.columns) == sorted(set(y))
        assert found.uncertainty(frame).total.index.equals(frame.index)


def test_a_pipeline_averages_like_its_last_step(rng):
    X, y = labels(rng)
    piped = wl.Posterior(make_pipeline(StandardScaler(), wl.LogisticRegression())).fit(X, y)
    Z = StandardScaler().fit_transform(X)
    alone = wl.Posterior(wl.LogisticRegression()).fit(Z, y)
    np.testing.assert_allclose(piped.predict_proba(X), alone.predict_proba(Z), rtol=1e-9)


def test_searching_cloning_and_storing(rng, tmp_path):
    X, y = labels(rng)
    search = GridSearchCV(
        wl.Posterior(wl.LogisticRegression()),
        {"estimator__C": [0.1, 1.0], "method": ["laplace", "ensemble"]},
        scoring="neg_log_loss",
        cv=3,
    ).fit(X, y)
    best = search.best_estimator_
    assert not hasattr(clone(best), "estimator_")
    for method in ("laplace", "ensemble"):
        found = clone(best).set_params(method=method, random_state=3).fit(X, y)
        wl.save(found, tmp_path / "posterior.wl")
        again = wl.load(tmp_path / "posterior.wl")
        np.testing.assert_array_equal(found.predict_proba(X), again.predict_proba(X))
        assert str(found.evidence_) == str(again.evidence_)


def test_weights_are_passed_on(rng):
    X, y = numbers(rng)
    counts = rng.integers(1, 4, size=len(y))
    weighted = wl.Posterior(wl.Ridge()).fit(X, y, sample_weight=counts.astype(float))
    plain = wl.Posterior(wl.Ridge()).fit(X, y)
    assert np.abs(weighted.predict(X) - plain.predict(X)).max() > 1e-6
    mean, total = weighted.predict(X), weighted.uncertainty(X).total
    assert np.isfinite([mean, total]).all()


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"method": "laplas"}, "laplace"),
        ({"members": 1}, "members"),
        ({"structure": "kron"}, "structure"),
        ({"effort": 100}, "effort"),
        ({"estimator": sk.LogisticRegression()}, "states no log posterior"),
        ({"method": "ensemble", "bootstrap": False}, "draws numbers"),
        ({"estimator": StandardScaler()}, "classifier or a regressor"),
        ({"estimator": wl.Perceptron(), "method": "ensemble"}, "predict_proba"),
    ],
)
def test_bad_requests(wrong, word, rng):
    X, y = labels(rng, k=2)
    chosen = {"estimator": wl.Ridge() if "bootstrap" in wrong else wl.LogisticRegression(), **wrong}
    target = X[:, 0] if "bootstrap" in wrong else y
    posterior = wl.Posterior(**chosen)
    before = dict(vars(posterior))
    with pytest.raises(wl.InputError, match=word) as caught:
        posterior.fit(X, target)
    assert all([caught.value.came, caught.value.expected, caught.value.todo])
    assert vars(posterior) == before


def test_bad_levels_and_order(rng):
    X, y = numbers(rng)
    found = wl.Posterior(wl.Ridge())
    with pytest.raises(NotFittedError):
        found.predict(X)
    found.fit(X, y)
    with pytest.raises(wl.InputError, match="level"):
        found.prediction_interval(X, 95)
    assert not hasattr(found, "predict_proba")
