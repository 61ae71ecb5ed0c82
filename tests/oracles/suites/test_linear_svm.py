"""scikit-learn's tests of LinearSVC and LinearSVR, run on ours."""

from types import SimpleNamespace

import sklearn.svm

import wonderland as wl
from tests.oracles.suites.substitute import chosen, load

CLASSES = {"LinearSVC": wl.LinearSVC, "LinearSVR": wl.LinearSVR}
EXCLUDED = {
    "test_svr": "ends with a constant target, which is refused here with its reason",
    "test_linearsvc_parameters": "expects combinations to be refused for which LIBLINEAR has no "
    "solver; here all but l1 with the hinge have an answer",
    "test_dense_liblinear_intercept_handling": "expects an intercept near zero, as LIBLINEAR "
    "penalises it; here it is free",
    "test_linear_svm_convergence_warnings": "two iterations must fall short; two Newton steps do "
    "not",
}

_suite = load("test_svm", CLASSES, sklearn.svm)
# Its tests look names up in the package when they run.
_suite.svm = SimpleNamespace(**{**vars(sklearn.svm), **CLASSES})
globals().update(chosen(_suite, CLASSES, EXCLUDED))
