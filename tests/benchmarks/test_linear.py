"""The benchmark's own arithmetic, and that all contenders solve the same problem."""

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from benchmarks import linear


def test_leave_one_out_objective_is_that_of_refits():
    data = linear.make_data(25, 4, seed=3)
    refitted = cross_val_predict(Ridge(2.0), data.X, data.y, cv=LeaveOneOut())
    expected = np.mean((data.y - refitted) ** 2)
    np.testing.assert_allclose(linear.loo_objective(data, 2.0), expected, rtol=1e-9)


def test_data_are_the_same_every_time():
    one, other = linear.make_data(50, 3), linear.make_data(50, 3)
    assert np.array_equal(one.X, other.X)
    assert 0.1 < np.corrcoef(linear.make_data(20_000, 2).X.T)[0, 1] < 0.3


def test_every_contender_reaches_the_same_objective(capsys):
    arguments = "--rows 600 --columns 5 --rounds 1 --json --only least-squares ridge loo"
    linear.main(arguments.split())
    cases = json.loads(capsys.readouterr().out)["cases"]
    assert len(cases) == 3
    for case in cases:
        np.testing.assert_allclose(case["quality"], case["quality"][0], rtol=1e-6)
        assert case["ratios"][0] == 1.0
        assert min(case["seconds"]) > 0


@pytest.mark.slow
def test_fresh_processes_are_timed(capsys, monkeypatch):
    monkeypatch.setattr(linear, "FIRST", linear.FIRST[:1])
    linear.main(["--rows", "50", "--columns", "3", "--rounds", "1", "--json", "--only", "start"])
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert {"import wonderland (best)"} < {figure["name"] for figure in figures}
    assert all(figure["value"] > 0 for figure in figures)
