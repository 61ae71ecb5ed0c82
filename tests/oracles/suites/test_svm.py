"""scikit-learn's tests of SVC, SVR and OneClassSVM, run on ours."""

from types import SimpleNamespace

import sklearn.svm

import wonderland as wl
from tests.oracles.suites.substitute import chosen, load

CLASSES = {"SVC": wl.SVC, "SVR": wl.SVR, "OneClassSVM": wl.OneClassSVM}
PRIVATE = "looks at private attributes of LIBSVM's wrapper"
WORDS = "the error is raised, in other words than theirs"
WEIGHTS = "negative weights are refused here instead of being taken for zero"
DEPRECATION = "expects scikit-learn's warning that `probability` is deprecated"
EXCLUDED = {
    "test_svr": "fits a constant target, which is refused here",
    "test_svr_errors": "a kernel function of the wrong shape is refused at fit, not at predict",
    "test_tweak_params": "writes into dual_coef_ and expects predictions to follow",
    "test_decision_function_shape": "break_ties with 'ovo' is refused at fit, not at predict",
    "test_svc_invalid_break_ties_param": "break_ties with 'ovo' is refused at fit, not at predict",
    "test_negative_sample_weights_mask_all_samples": WEIGHTS,
    "test_negative_weights_svc_leave_just_one_label": WEIGHTS,
    "test_negative_weights_svc_leave_two_labels": WEIGHTS,
    "test_negative_weight_equal_coeffs": WEIGHTS,
    "test_bad_input": "a machine fitted on a dense table also takes a sparse one here",
    "test_svc_nonfinite_params": "features near the largest float make LIBSVM's coefficients "
    "non-finite, which it refuses; the solver here reports no such thing yet",
    "test_sparse_precomputed": WORDS,
    "test_sparse_fit_support_vectors_empty": "expects a sparse dual_coef_; it is dense here",
    "test_libsvm_convergence_warnings": "the warning is given, in other words than theirs",
    "test_hasattr_predict_proba": "sets probability after the fit and expects probabilities",
    "test_gamma_scale": PRIVATE,
    "test_svc_raises_error_internal_representation": PRIVATE,
    "test_custom_kernel_not_array_input": "samples that are text are refused here",
    "test_svm_with_infinite_C": "SVR refuses C=inf: a tube around every target need not exist",
    "test_probability_raises_futurewarning": DEPRECATION,
    "test_svc_nusvc_probA_probB_deprecated": DEPRECATION,
    "test_n_iter_libsvm": "half a minute: one-class machines with a linear kernel are slow here",
}

_suite = load("test_svm", CLASSES, sklearn.svm)
# Its tests say `svm.SVC`, which is looked up when they run.
_suite.svm = SimpleNamespace(**{**vars(sklearn.svm), **CLASSES})
globals().update(chosen(_suite, CLASSES, EXCLUDED))
