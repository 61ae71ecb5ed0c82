"""scikit-learn's tests of LinearRegression, run on ours."""

import wonderland as wl
from tests.oracles.suites.substitute import chosen, load

CLASSES = {"LinearRegression": wl.LinearRegression}
CONSTANT = "fits a constant target or one sample, which is refused here with its reason"
EXCLUDED = {
    "test_linear_regression": CONSTANT,
    "test_linear_regression_positive": CONSTANT,
    "test_fit_intercept": CONSTANT,
    "test_inplace_data_preprocessing": "expects copy_X=False to overwrite X; X is never written to",
}

_suite = load("test_base", CLASSES)
globals().update(chosen(_suite, CLASSES, EXCLUDED))
