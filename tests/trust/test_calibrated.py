"""CalibratedClassifier and its maps beside scikit-learn's, SciPy's optimisers, written formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import wonderland as wl
from tests.laws.strategies import generators
from wonderland.core.arrays import in_float64
from wonderland.trust.calibrated import METHODS, CalibratedClassifier
from wonderland.trust.calibration_maps import fit_beta, fit_platt, fit_vector
from wonderland.trust.temperature import fit_temperature

few = settings(max_examples=8)


def made(rng, n=400, k=4, scale=2.0):
    """Logits and labels drawn from a flatter version of them."""
    z = rng.normal(size=(n, k)) * scale
    p = softmax(0.6 * z, axis=1)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    return z, y


def task(k=3, n=300, seed=0):
    X, y = make_classification(
        n,
        8,
        n_informative=5,
        n_redundant=0,
        n_classes=k,
        flip_y=0.15,
        random_state=seed,
        class_sep=0.8,
    )
    return X, np.array(["ant", "bee", "cat", "dog"])[y]


@given(rng=generators(), weighted=st.booleans(), k=st.sampled_from([2, 3, 10]))
@few
def test_the_temperature_is_an_independent_optimisers(rng, weighted, k):
    z, y = made(rng, k=k)
    w = rng.uniform(size=len(y)) if weighted else None

    def loss(log_beta):
        each = -log_softmax(np.exp(log_beta) * z, axis=1)[np.arange(len(y)), y]
        return np.average(each, weights=w)

    found = fit_temperature(z, y, w)
    # The slope crosses zero where the loss is least: a root is known to more digits than a minimum.
    theirs = minimize_scalar(loss, bracket=(-2, 0), options={"xtol": 1e-12}).x

    def slope(beta):
        p = softmax(beta * z, axis=1)
        return np.average((p * z).sum(axis=1) - z[np.arange(len(y)), y], weights=w)

    low, high = np.exp(theirs) * np.array([0.99, 1.01])
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    assert found.ended.ok
    assert float(found.model.beta) == pytest.approx(middle, rel=1e-10)
    assert loss(np.log(found.model.beta)) <= loss(theirs) * (1 + 1e-14)


def test_many_rows_begin_with_some(rng):
    z, y = made(rng, 200_000, 3)
    found = fit_temperature(z, y)
    assert found.evidence["passes"] <= 4
    p = found.model.probabilities(z)
    assert abs(np.mean((p * z).sum(axis=1) - z[np.arange(len(y)), y])) < 1e-10
    assert 1 / found.model.temperature == pytest.approx(0.6, abs=0.02)


def test_scores_that_say_nothing_or_everything(rng):
    z, y = made(rng)
    against = fit_temperature(-z, y)
    assert against.model.temperature == np.inf
    np.testing.assert_allclose(against.model.probabilities(-z), 0.25, rtol=1e-12)
    assert np.all(against.model.probabilities(-z).argmax(axis=1) == (-z).argmax(axis=1))
    sure = fit_temperature(z, z.argmax(axis=1))
    assert sure.evidence["separable"]
    assert 0 < sure.model.temperature < np.inf
    assert sure.ended.ok


@given(rng=generators())
@settings(max_examples=3)
def test_jax_arrays_give_the_same_and_its_derivative(rng):
    z, y = made(rng, 60, 3)
    w = rng.uniform(0.5, 1.5, size=60)
    with jax.enable_x64(True):
        found = fit_temperature(jnp.asarray(z), jnp.asarray(y), jnp.asarray(w))
        assert float(found.model.beta) == pytest.approx(
            float(fit_temperature(z, y, w).model.beta), rel=1e-9
        )
        slope = jax.grad(lambda a: fit_temperature(a * jnp.asarray(z), y).model.beta)(1.0)
        # β(a z) = β(z)/a
        assert float(slope) == pytest.approx(-float(fit_temperature(z, y).model.beta), rel=1e-6)


@pytest.mark.parametrize(
    ("z", "y", "sentence"),
    [
        ([[0.0, 1.0]], [2], "class numbers 0 … 1"),
        ([[0.0, np.nan]], [1], "first in row 0"),
        ([[0.0, 1.0]], [1, 0], "one label, for each sample"),
        ([[0.0, 1.0]], [0.5], "class numbers"),
    ],
)
def test_refused_logits(z, y, sentence):
    with pytest.raises(wl.InputError, match=sentence):
        fit_temperature(np.array(z), np.array(y))


@pytest.mark.parametrize("weighted", [False, True])
def test_platt_is_the_optimum_of_scikit_learns_objective(weighted, rng):
    """Theirs stops L-BFGS early; ours must be no worse, and equal a tighter search."""
    z, y = made(rng, k=2)
    s = z[:, 1] - z[:, 0]
    w = rng.uniform(size=len(y)) if weighted else np.ones(len(y))
    plus, minus = w[y == 1].sum(), w[y == 0].sum()
    t = np.where(y == 1, (plus + 1) / (plus + 2), 1 / (minus + 2))

    def loss(ab):
        f = -(ab[0] * s + ab[1])
        return w @ (np.logaddexp(0, f) - t * f)

    def slope(ab):
        gap = w * (expit(-(ab[0] * s + ab[1])) - t)
        return -np.array([gap @ s, gap.sum()])

    found = fit_platt(s[:, None], y, w if weighted else None).model
    ours = np.array([found.slope[0], found.offset[0]])
    best = minimize(loss, ours * 1.1, jac=slope, method="BFGS", options={"gtol": 1e-12}).x
    np.testing.assert_allclose(
        expit(-(ours[0] * s + ours[1])), expit(-(best[0] * s + best[1])), atol=1e-10
    )
    theirs = CalibratedClassifierCV(_Given(), method="sigmoid", cv=[(np.arange(400),) * 2])
    theirs.fit(s[:, None], y, w if weighted else None)
    made_by = theirs.calibrated_classifiers_[0].calibrators[0]
    assert loss(ours) <= loss([made_by.a_, made_by.b_]) * (1 + 1e-14)
    assert loss(ours) == pytest.approx(loss([made_by.a_, made_by.b_]), rel=1e-10)
    # Our slope at their point says how far they stopped from it.
    far = np.abs(slope([made_by.a_, made_by.b_])).max()
    near = np.abs(slope(ours)).max()
    assert near <= min(far, 1e-9)


class _Given(LogisticRegression):
    """A classifier whose decision is its only column."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        self.coef_, self.intercept_ = np.ones((1, 1)), np.zeros(1)
        return self


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize("inner", [GaussianNB(), LinearSVC()], ids=["proba", "decision"])
@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_probabilities_are_scikit_learns(method, inner, ensemble, k, rng):
    X, y = task(k)
    w = rng.uniform(0.5, 1.5, size=len(y))
    ours = CalibratedClassifier(inner, method=method, cv=3, ensemble=ensemble).fit(X, y, w)
    theirs = CalibratedClassifierCV(
        inner, method={"platt": "sigmoid"}.get(method, method), cv=3, ensemble=ensemble
    ).fit(X, y, w)
    # Platt's problem is the same; theirs is solved to about 1e-6.
    atol = 1e-10 if method == "isotonic" else 2e-6
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=atol)


@pytest.mark.parametrize("k", [2, 3])
def test_temperature_is_scikit_learns(k):
    X, y = task(k)
    inner = LogisticRegression(max_iter=1000)
    ours = CalibratedClassifier(inner, cv=3).fit(X, y)
    theirs = CalibratedClassifierCV(inner, method="temperature", cv=3, ensemble=False).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_vector_scaling_and_beta_are_least(k, rng):
    z, y = made(rng, k=k)
    found = fit_vector(z, y).model

    def loss(c):
        return -log_softmax(z * c[:k] + c[k:], axis=1)[np.arange(len(y)), y].sum()

    ours = np.concatenate([found.scale, found.offset])
    best = minimize(loss, ours * 0.9, method="BFGS", options={"gtol": 1e-6})
    assert loss(ours) <= best.fun * (1 + 1e-12)
    assert loss(ours) == pytest.approx(best.fun, rel=1e-8)
    q = softmax(z, axis=1)
    q = q[:, 1:] if k == 2 else q
    made_by = fit_beta(q, y).model
    for j, column in enumerate(q.T):
        true = (y == (1 if k == 2 else j)).astype(float)

        def beta_loss(c, column=column, true=true):
            f = c[0] * np.log(column) - c[1] * np.log1p(-column) + c[2]
            return (np.logaddexp(0, f) - true * f).sum()

        ours = np.array([made_by.a[j], made_by.b[j], made_by.c[j]])
        bounds = [(0, None), (0, None), (None, None)]
        best = minimize(beta_loss, [1.0, 1.0, 0.0], bounds=bounds, options={"ftol": 1e-14})
        assert beta_loss(ours) <= best.fun * (1 + 1e-7)


def test_beta_coefficients_are_never_negative(rng):
    q = rng.uniform(0.02, 0.98, size=(500, 1))
    y = (rng.uniform(size=500) < 1 - q[:, 0]).astype(int)  # the probability points the wrong way
    made_by = fit_beta(q, y).model
    assert made_by.a[0] == made_by.b[0] == 0
    assert np.ptp(made_by.probabilities(q)[:, 1]) < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_prefit_and_by_folds(method):
    X, y = task(3, 400)
    inner = GaussianNB().fit(X[:150], y[:150])
    for fitted in (
        CalibratedClassifier(inner, method=method, cv="prefit").fit(X[150:], y[150:]),
        CalibratedClassifier(GaussianNB(), method=method, cv=3).fit(X, y),
        CalibratedClassifier(RandomForestClassifier(10), method=method, cv=3, ensemble=True).fit(
            X, y
        ),
    ):
        p = fitted.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        evidence = fitted.evidence_
        assert evidence["source"].value == "predict_proba"
        before, after = (evidence[f"log_loss_{when}"].value for when in ("before", "after"))
        assert after.value < before.value or method == "isotonic"
        wl.testing.estimators.evidence_is_plain(
            fitted, X, y, required=["calibration_error_before", "calibration_error_after"]
        ) if fitted.cv != "prefit" else None


@given(rng=generators())
@few
def test_the_arg_max_is_kept_exactly(rng):
    """Also among equals, and where scores differ by the last bit."""
    z = np.round(rng.normal(size=(300, 5)), 1)
    z[:50] = np.nextafter(1.0, 2.0) * (rng.random((50, 5)) < 0.5) + (z[:50] > 5)
    z[50:100] = 1.0 + np.finfo(float).eps * rng.integers(0, 3, size=(50, 5))
    y = rng.integers(5, size=300)
    for beta in (1e-9, 1e-3, 1.0, 37.0):
        model = wl.trust.temperature.Temperature(np.float64(beta))
        p = model.probabilities(z)
        assert np.array_equal(p.argmax(axis=1), z.argmax(axis=1))
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    p = fit_temperature(z, y).model.probabilities(z)
    assert np.array_equal(p.argmax(axis=1), z.argmax(axis=1))


def test_it_reads_scores_where_there_are_some():
    X, y = task(3)
    fitted = CalibratedClassifier(SVC(decision_function_shape="ovr"), cv=3).fit(X, y)
    assert fitted.score_source_ == "decision_function"
    with pytest.raises(wl.InputError, match="pairs of classes"):
        CalibratedClassifier(SVC(decision_function_shape="ovo")).fit(X, y)
    with pytest.raises(wl.InputError, match="neither decision_function nor"):
        CalibratedClassifier(_Silent()).fit(X, y)


class _Silent:
    def fit(self, X, y):
        return self


class _Boosted:
    """As other libraries' classifiers: `fit`, `predict_proba`, `classes_`, little else."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        self.inner = GaussianNB().fit(X, y)
        self.classes_ = self.inner.classes_
        return self

    def predict_proba(self, X):
        return self.inner.predict_proba(X)


def test_classifiers_of_other_houses():
    X, y = task(3)
    fitted = CalibratedClassifier(_Boosted(), cv=3).fit(X, y)
    assert fitted.score(X, y) > 0.5
    ready = CalibratedClassifier(_Boosted().fit(X, y), cv="prefit").fit(X, y)
    assert ready.score_source_ == "predict_proba"


def test_grid_search_pipelines_and_frames():
    pd = pytest.importorskip("pandas")
    X, y = task(2)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(8)])
    wrapped = CalibratedClassifier(wl.LogisticRegression(), cv=3)
    grid = {"estimator__C": [1e-3, 1.0], "method": ["temperature", "platt"]}
    found = GridSearchCV(wrapped, grid, cv=3, scoring="neg_log_loss").fit(frame, y)
    assert found.best_estimator_.feature_names_in_.tolist() == list(frame.columns)
    piped = make_pipeline(StandardScaler(), wrapped).fit(frame, pd.Series(y))
    assert piped.predict_proba(frame).shape == (300, 2)
    out = wrapped.fit(frame, y).set_output(predict="pandas").predict_proba(frame)
    assert list(out.columns) == ["ant", "bee"]
    assert clone(wrapped).get_params()["estimator__C"] == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_copies_of_prefit_rows(method, rng):
    X, y = task(3, 400)
    inner = GaussianNB().fit(X[:150], y[:150])
    counts = rng.integers(0, 3, size=250)
    wrapped = CalibratedClassifier(inner, method=method, cv="prefit")
    weighted = clone(wrapped).set_params(estimator=inner).fit(X[150:], y[150:], counts)
    rows = np.repeat(np.arange(150, 400), counts)
    copied = CalibratedClassifier(inner, method=method, cv="prefit").fit(X[rows], y[rows])
    np.testing.assert_allclose(
        weighted.predict_proba(X), copied.predict_proba(X), rtol=1e-8, atol=1e-12
    )
    order = rng.permutation(np.arange(150, 400))
    turned = CalibratedClassifier(inner, method=method, cv="prefit").fit(X[order], y[order])
    straight = CalibratedClassifier(inner, method=method, cv="prefit").fit(X[150:], y[150:])
    np.testing.assert_allclose(
        turned.predict_proba(X), straight.predict_proba(X), rtol=1e-8, atol=1e-12
    )


def test_refusals():
    X, y = load_iris(return_X_y=True)
    inner = LogisticRegression(max_iter=1000).fit(X, y)
    for method in ("platt", "vector", "isotonic", "beta"):
        with pytest.raises(wl.InputError, match="no calibration row has the label 2"):
            CalibratedClassifier(inner, method=method, cv="prefit").fit(X[:100], y[:100])
    assert CalibratedClassifier(inner, cv="prefit").fit(X[:100], y[:100]).classes_.size == 3
    with pytest.raises(wl.InputError, match=r"'plat'.*Did you mean 'platt'"):
        CalibratedClassifier(inner, method="plat").fit(X, y)
    with pytest.raises(wl.InputError, match="ensemble is 'auto'"):
        CalibratedClassifier(inner, ensemble="auto").fit(X, y)


def test_calibration_mends_a_boastful_classifier():
    rng = np.random.default_rng(5)
    X = np.repeat(rng.normal(size=(3000, 3)), 4, axis=1)  # four times the same
    y = rng.uniform(size=3000) < expit(X[:, 0] + X[:, 4])
    evidence = CalibratedClassifier(GaussianNB()).fit(X, y).evidence_
    before, after = (evidence[f"calibration_error_{w}"].value for w in ("before", "after"))
    assert before.low > after.high
    assert evidence["temperature"].value > 1.5
    assert evidence["argmax_changed"].holds
    assert "claim" in str(evidence)


def test_saving_and_loading(tmp_path):
    X, y = task(3)
    for method in METHODS:
        fitted = CalibratedClassifier(wl.LogisticRegression(), method=method, cv=3).fit(X, y)
        wl.save(fitted, tmp_path / "model.wl")
        again = wl.load(tmp_path / "model.wl")
        assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_one_sample_model_is_the_batch():
    z = np.random.default_rng(0).normal(size=(5, 3))
    model = fit_temperature(z, np.array([0, 1, 2, 1, 0])).model
    alone = in_float64(lambda: jax.vmap(model)(jnp.asarray(z)))()
    np.testing.assert_allclose(model.probabilities(z), alone, rtol=1e-12)
