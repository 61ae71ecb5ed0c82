"""scikit-learn's tests of LogisticRegression, run on ours: the part that has been tried so far.

Left out are those of LogisticRegressionCV, of array API and of callbacks, which try scikit-learn's
own machinery; and those that expect a solver to refuse what it does not implement.
"""

import wonderland as wl
from tests.oracles.suites.substitute import chosen, load

CLASSES = {"LogisticRegression": wl.LogisticRegression}
EXCLUDED = {
    "test_check_solver_option": "expects solvers to refuse penalties; here each takes all of them",
    "test_logreg_l1": (
        "asks sparse and dense tables for the same split of one weight between two equal columns, "
        "which is not unique; all other coefficients agree to 1e-15"
    ),
    "test_liblinear_dual_random_state": "expects fits of two seeds to differ; no solver draws",
}
KEPT = {
    *EXCLUDED,
    "test_predict_2_classes",
    "test_predict_3_classes",
    "test_logistic_glmnet",
    "test_elasticnet_l1_ratio_err_helpful",
    "test_sparsify",
    "test_inconsistent_input",
    "test_write_parameters",
    "test_nan",
    "test_consistency_path",
    "test_logistic_regression_solvers",
    "test_logistic_regression_solver_class_weights",
    "test_sample_and_class_weight_equivalence_liblinear",
    "test_logistic_regression_class_weights",
    "test_liblinear_decision_function_zero",
    "test_logreg_intercept_scaling_zero",
}

_suite = load("test_logistic", CLASSES)
_found = chosen(_suite, CLASSES, EXCLUDED)
globals().update({name: test for name, test in _found.items() if name in KEPT})
globals().update(
    {name: thing for name, thing in vars(_suite).items() if hasattr(thing, "_fixture_function")}
)
