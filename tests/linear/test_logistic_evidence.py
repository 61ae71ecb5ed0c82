"""What a logistic fit claims: certified values, separation with its proof, standard errors."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import wonderland as wl


@pytest.fixture(scope="module")
def certified(shared_data):
    folder = shared_data / "statsmodels_certified"
    return folder, json.loads((folder / "logit_certified.json").read_text())


def test_spector(certified):
    """Stata's binary logit, on the numbers as Stata stored them (single precision)."""
    folder, values = certified
    known = values["spector_logit"]
    table = pd.read_csv(folder / "spector.csv", sep=r"\s+", quotechar="'")
    X, y = table[["GPA", "TUCE", "PSI"]].astype("float32").astype(float), table["GRADE"]
    model = wl.LogisticRegression(penalty=None).fit(X, y)
    ours = np.append(model.coef_, model.intercept_)
    np.testing.assert_allclose(ours, known["params"], rtol=1e-7)
    assert model.evidence_["log_likelihood"].value == pytest.approx(known["llf"], rel=1e-9)
    errors = np.append(model.standard_errors_, model.intercept_standard_error_)
    np.testing.assert_allclose(errors, known["bse"], rtol=2e-7)
    # The score equations Σ(y − p)x̃ = 0 hold to rounding: further digits than certified.
    p = model.predict_proba(X)[:, 1]
    score = np.column_stack([X, np.ones(len(X))]).T @ (y - p)
    assert np.abs(score).max() < 1e-11


def test_anes(certified):
    """Stata's multinomial logit with seven classes, against its first class."""
    folder, values = certified
    known = values["anes96_mnlogit"]
    table = pd.read_csv(folder / "anes96.csv", sep="\t", quotechar="'")
    table["logpopul"] = np.log(table["popul"] + 0.1)
    X = table[["logpopul", "selfLR", "age", "educ", "income"]]
    model = wl.LogisticRegression(C=np.inf).fit(X, table["PID"])
    whole = np.column_stack([model.coef_, model.intercept_])
    printed = np.array(known["params_6x6"])
    # Printed with seven or eight digits: half a unit of the last is 5e-9 absolute.
    np.testing.assert_allclose((whole[1:] - whole[0]).T, printed, rtol=1e-7, atol=6e-9)
    assert model.evidence_["log_likelihood"].value == pytest.approx(known["llf"], rel=1e-9)
    assert model.evidence_["separable"].value is False


def strictly_separates(direction, X, codes):
    scores = np.column_stack([X, np.ones(len(X))]) @ direction.T
    if scores.shape[1] == 1:
        return np.all(np.where(codes == 1, 1, -1) * scores[:, 0] > 0)
    own = scores[np.arange(len(X)), codes]
    scores[np.arange(len(X)), codes] = -np.inf
    return np.all(own > scores.max(axis=1))


@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_have_no_estimate(classes, rng):
    X = rng.normal(size=(60, 3))
    codes = (X[:, :1] @ np.ones((1, 1)) > 0).astype(int)[:, 0]
    if classes == 3:
        codes = (X @ rng.normal(size=(3, 3))).argmax(axis=1)
        codes[:3] = codes[:3] if len(np.unique(codes)) == 3 else np.arange(3)
    with pytest.warns(ConvergenceWarning, match="can be separated"):
        model = wl.LogisticRegression(penalty=None).fit(X, codes)
    assert model.evidence_["separable"].value is True
    assert strictly_separates(model.evidence_["separating_direction"].value, X, codes)
    assert np.isfinite(model.coef_).all()
    # With a penalty the same data are fitted in peace, and the verdict is there all the same.
    calm = wl.LogisticRegression().fit(X, codes)
    assert calm.status_.ok
    if classes == 2:
        assert calm.evidence_["separable"].value is True


def test_quasi_separation_is_said(rng):
    """One value of a column occurs in one class only, the other in both."""
    flag = np.repeat([0.0, 1.0], 30)
    y = np.concatenate([rng.integers(2, size=30), np.ones(30, int)])
    y[:2] = [0, 1]
    X = np.column_stack([flag, rng.normal(size=60)])
    with pytest.warns(ConvergenceWarning, match="can be separated"):
        model = wl.LogisticRegression(penalty=None).fit(X, y)
    assert "separable" in model.evidence_


def test_verdict_is_linear_programmings(rng):
    for _ in range(12):
        X = rng.normal(size=(25, 3)) + 0.0
        codes = (X[:, 0] + rng.choice([0.0, 0.7]) * rng.normal(size=25) > 0).astype(int)
        codes[:2] = [0, 1]
        signed = np.where(codes == 1, 1.0, -1.0)[:, None] * np.column_stack([X, np.ones(25)])
        found = linprog(np.zeros(4), -signed, -np.ones(25), bounds=[(None, None)] * 4)
        model = wl.LogisticRegression().fit(X, codes)
        assert model.evidence_["separable"].value == (found.status == 0)


def test_intervals_cover(rng):
    """Nine in ten intervals of level 0.9 hold the truth."""
    truth, held = np.array([1.0, -0.5]), 0
    for _ in range(60):
        X = rng.normal(size=(150, 2))
        y = (rng.random(150) < 1 / (1 + np.exp(-X @ truth - 0.3))).astype(int)
        low, high = wl.LogisticRegression(C=np.inf).fit(X, y).confidence_interval(0.9)
        held += int(np.sum((low <= truth) & (truth <= high)))
    assert 92 <= held <= 120
    with pytest.raises(wl.InputError, match="level"):
        wl.LogisticRegression().fit(X, y).confidence_interval(1.5)


def test_dual_is_below_every_objective(rng):
    X = rng.normal(size=(100, 4))
    y = rng.integers(3, size=100)
    with pytest.warns(ConvergenceWarning):
        early = wl.LogisticRegression(max_iter=1).fit(X, y)
    best = wl.LogisticRegression().fit(X, y)
    primal = best.evidence_["primal"].value
    assert early.evidence_["dual"].value <= primal * (1 + 1e-12)
    assert early.evidence_["primal"].value >= primal * (1 - 1e-12)
    assert 0 <= best.evidence_["duality_gap"].value < 1e-12


@pytest.mark.parametrize("classes", [2, 3])
def test_a_large_tables_dual_needs_no_pass_over_it(rng, monkeypatch, classes):
    X = rng.normal(size=(600, 4)) + 1.0
    y = np.argmax(X @ rng.normal(size=(4, classes)) + rng.gumbel(size=(600, classes)), axis=1)
    weight = rng.uniform(0.0, 2.0, 600)
    model = wl.LogisticRegression(C=0.3, prior=(0.2, 1.5))
    whole = model.fit(X, y, weight).evidence_
    monkeypatch.setattr("wonderland.linear.logistic_certificate.CACHE", 0)
    part = model.fit(X, y, weight).evidence_
    assert part["dual"].value <= part["primal"].value * (1 + 1e-12)
    np.testing.assert_allclose(part["dual"].value, whole["dual"].value, rtol=1e-9)
    # Far from the optimum the rows that move must make up for all others, or all move.
    best = wl.LogisticRegression().fit(X, y).evidence_["primal"].value
    with pytest.warns(ConvergenceWarning):
        early = wl.LogisticRegression(max_iter=0).fit(X, y).evidence_
    assert early["dual"].value <= best * (1 + 1e-12)
