import numpy as np
import pytest

from wonderland.cli.layout import coefficient_table, evidence_table, number, table
from wonderland.core.evidence import Claim


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (3, "3"),
        (True, "True"),
        (0.000123456, "0.0001235"),
        (123456.7, "123457"),
        (1.0e9, "1e+09"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (np.float32(2.5), "2.5"),
        (np.array([2.5]), "2.5"),
        (np.array([1.0, 2.0, 3.0]), "1 2 3"),
        ((0.25, 4.0), "0.25 … 4"),
        ({"a": ("b", "c")}, "a ~ b, c"),
        ({}, "none"),
    ],
)
def test_number(value, text):
    assert number(value) == text


def test_long_values_are_abridged():
    assert len(number("x" * 500)) < 40
    assert len(number(np.arange(100.0))) < 40


def test_table_aligns():
    lines = table(["", "a"], [["first", "1"], ["b", "222"]]).splitlines()
    assert [len(line) for line in lines] == [10, 10, 10]


def test_evidence_wraps_and_marks_what_fails():
    claim = Claim.below("gap", 2.0, 1.0, "word " * 60)
    text = evidence_table([claim], width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("word") == 60
    assert "NO" in text


class TwoOutputs:
    """Just what the table reads, so that its layout is tested apart from any fit."""

    coef_ = np.array([[1.0, 2.0], [3.0, 4.0]])
    standard_errors_ = np.full((2, 2), 0.5)
    intercept_ = np.array([7.0, 8.0])
    intercept_standard_error_ = np.array([0.1, 0.2])
    fit_intercept = True
    target_names_ = ("left", "right")

    def confidence_interval(self, level, *, intercept=False):
        middle = self.intercept_ if intercept else self.coef_
        return middle - level, middle + level


def test_coefficients_output_by_output():
    left, right = coefficient_table(TwoOutputs(), ["a", "b"], 0.5).split("\n\n")
    assert left.startswith("left:")
    assert [row.split()[1] for row in right.splitlines()[2:]] == ["8", "3", "4"]
    assert "50% interval" in left
