"""The choice of method: thresholds, and a sentence that carries the number it rests on."""

import pytest

from wonderland.solve.choose import CORRECT, GRAM, Method, after_gram, before_gram


@pytest.mark.parametrize(
    ("condition", "method"),
    [
        (1.0, Method.CHOLESKY),
        (CORRECT, Method.CHOLESKY),
        (CORRECT * 1.01, Method.CORRECTED),
        (GRAM, Method.CORRECTED),
        (GRAM * 1.01, Method.REFINED),
        (float("inf"), Method.REFINED),
        (float("nan"), Method.REFINED),
    ],
)
def test_the_condition_number_decides(condition, method):
    chosen, reason = after_gram(condition)
    assert chosen is method
    assert f"{condition:.3g}" in reason


def test_the_shape_decides_before_anything_is_measured():
    assert before_gram(small=True, dual=True, scaled=True)[0] is Method.REFINED
    assert before_gram(small=False, dual=True, scaled=True)[0] is Method.DUAL
    assert before_gram(small=False, dual=False, scaled=False)[0] is Method.REFINED
    assert before_gram(small=False, dual=False, scaled=True) == (None, "")


def test_thresholds_follow_from_rounding():
    eps = 2.0**-52
    assert GRAM**2 * eps < 1e-3, "the correction must converge"
    assert CORRECT**2 * eps < 1e-12, "the plain normal equations must keep their digits"
