"""scikit-learn's tests of Ridge, run on ours."""

import wonderland as wl
from tests.oracles.suites.substitute import chosen, load

CLASSES = {"LinearRegression": wl.LinearRegression, "Ridge": wl.Ridge}
EXCLUDED = {
    "test_ridge_fit_intercept_sparse_sag": "expects a warning that SAG is slow to find an "
    "intercept on sparse tables; descent on centred moments is not",
    "test_lbfgs_solver_error": "one iteration of L-BFGS must fail; the active set here succeeds",
}

_suite = load("test_ridge", CLASSES)
globals().update(chosen(_suite, CLASSES, EXCLUDED))
globals().update(
    {name: thing for name, thing in vars(_suite).items() if hasattr(thing, "_fixture_function")}
)
