"""The demo runs, keeps to 100 columns, and prints numbers that scikit-learn confirms."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from wonderland.cli.main import main
from wonderland.shell.samples import diabetes


@pytest.fixture(scope="module")
def text():
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["demo"]) == 0
    return out.getvalue()


def test_fits_a_terminal(text):
    assert max(map(len, text.splitlines())) <= 100


def test_coefficients_are_those_of_scikit_learn(text):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X, _, y, _ = train_test_split(X, y, test_size=0.25, random_state=0)
    expected = LinearRegression().fit(X, y).coef_
    lines = {line.partition("  ")[0]: line.split() for line in text.splitlines()}
    shown = [float(lines[name][len(name.split())]) for name in diabetes().features]
    np.testing.assert_allclose(shown, expected, rtol=1e-3)


@pytest.mark.parametrize(
    "claim",
    ["digits", "condition_number", "expected_risk", "coverage", "iterations", "strong_convexity"],
)
def test_shows_evidence(text, claim):
    assert any(line.startswith(claim) for line in text.splitlines())


def test_every_promise_is_kept(text):
    assert " NO " not in text
    assert "bit for bit" in text
    assert "collinear  x1 ~" in text
