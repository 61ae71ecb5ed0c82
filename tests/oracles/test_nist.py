"""The eleven linear-regression sets of NIST's Statistical Reference Datasets, certified digits.

The certified values carry 15 digits. Agreement is counted as

    LRE = −log₁₀(|c − c*|/|c*|), at most 15;

where c* = 0 (the two Wampler sets without noise) the error is counted against what c is made of:
the largest |y| for the residual deviation, the coefficient for its standard error.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import wonderland as wl

WANTED = 13.0
POLYNOMIALS = {"Filip": 10, "Pontius": 2} | {f"Wampler{k}": 5 for k in range(1, 6)}
NAMES = ["Longley", "NoInt1", "NoInt2", "Norris", *POLYNOMIALS]


class Certified(NamedTuple):
    """One data set: X (n, d), y (n,), certified coefficients and errors (p,), deviation."""

    X: np.ndarray
    y: np.ndarray
    beta: np.ndarray
    errors: np.ndarray
    deviation: float
    intercept: bool


def read(folder: Path, name: str) -> Certified:
    path = folder / "nist_strd" / f"{name}.dat"
    if not path.exists():
        pytest.skip(f"{path.name} is not among the reference data")
    text = path.read_text()
    rows = re.findall(r"^\s+B(\d+)\s+([-+.\dE]+)\s+([-+.\dE]+)", text, re.M)
    deviation = float(
        re.search(r"Standard Deviation\s+([-+.\dE]+)\s", text[text.index("Residual") :])[1]
    )
    first, last = map(int, re.search(r"Data\s+\(lines (\d+) to (\d+)\)", text).groups())
    table = np.array([line.split() for line in text.splitlines()[first - 1 : last]], float)
    beta, errors = np.array([row[1:] for row in rows], float).T
    return Certified(table[:, 1:], table[:, 0], beta, errors, deviation, rows[0][0] == "0")


def digits(found, certified, scale) -> float:
    """LRE of the worst entry."""
    error = np.abs(np.asarray(found, float) - certified)
    size = np.where(np.asarray(certified) == 0, scale, np.abs(certified))
    with np.errstate(divide="ignore"):
        return float(np.min(np.minimum(-np.log10(error / size), 15.0)))


def fit(data: Certified, name: str, estimator=wl.LinearRegression, **options):
    if name in POLYNOMIALS:
        options["basis"] = wl.bases.Polynomial(POLYNOMIALS[name])
    return estimator(fit_intercept=data.intercept, **options).fit(data.X, data.y)


def whole(intercept, slopes, data: Certified) -> np.ndarray:
    return np.concatenate([[intercept], slopes]) if data.intercept else np.asarray(slopes)


@pytest.mark.parametrize("name", NAMES)
def test_certified_digits_with_default_settings(shared_data, name):
    data = read(shared_data, name)
    model = fit(data, name)
    beta = whole(model.intercept_, model.coef_, data)
    errors = whole(model.intercept_standard_error_, model.standard_errors_, data)
    assert digits(beta, data.beta, 1.0) >= WANTED
    assert digits(errors, data.errors, np.abs(data.beta)) >= WANTED
    assert digits(model.residual_deviation_, data.deviation, np.abs(data.y).max()) >= WANTED


@pytest.mark.parametrize("name", NAMES)
def test_the_digits_claimed_are_never_more_than_the_truth(shared_data, name):
    data = read(shared_data, name)
    model = fit(data, name)
    beta = whole(model.intercept_, model.coef_, data)
    claim = model.evidence_["digits"].value
    assert 0 < claim <= digits(beta, data.beta, 1.0)


@pytest.mark.parametrize("penalty", [{"alpha": 0.0}, {"alpha": 0.0, "solver": "cholesky"}])
@pytest.mark.parametrize("name", NAMES)
def test_ridge_without_penalty_has_the_same_digits(shared_data, name, penalty):
    data = read(shared_data, name)
    model = fit(data, name, wl.Ridge, **penalty)
    assert digits(whole(model.intercept_, model.coef_, data), data.beta, 1.0) >= WANTED


def test_filip_from_float64_columns(shared_data):
    """Powers rounded to float64 have lost all but 7.6 digits of the answer before any fit."""
    data = read(shared_data, "Filip")
    columns = np.hstack([data.X**k for k in range(1, 11)])
    model = wl.LinearRegression().fit(columns, data.y)
    found = digits(whole(model.intercept_, model.coef_, data), data.beta, 1.0)
    assert found >= 7.0
    assert model.evidence_["digits"].value <= found


def test_wampler_from_float64_columns(shared_data):
    """Integer powers are exact in float64: nothing is lost."""
    for name in (f"Wampler{k}" for k in range(1, 6)):
        data = read(shared_data, name)
        model = wl.LinearRegression().fit(np.hstack([data.X**k for k in range(1, 6)]), data.y)
        assert digits(whole(model.intercept_, model.coef_, data), data.beta, 1.0) >= WANTED


def table(folder: Path) -> str:
    """All figures of this file as text, for people."""
    lines = ["set        coef   errors  deviation  claimed"]
    for name in NAMES:
        data = read(folder, name)
        model = fit(data, name)
        beta = whole(model.intercept_, model.coef_, data)
        errors = whole(model.intercept_standard_error_, model.standard_errors_, data)
        lines.append(
            f"{name:9s} {digits(beta, data.beta, 1.0):6.2f} "
            f"{digits(errors, data.errors, np.abs(data.beta)):8.2f} "
            f"{digits(model.residual_deviation_, data.deviation, np.abs(data.y).max()):10.2f} "
            f"{model.evidence_['digits'].value:8.2f}"
        )
    return "\n".join(lines)
