"""Differentiable machine learning for Python: every fit brings its evidence.

Names are imported when first used, so that `import wonderland` itself costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "BagOfWords": "wonderland.language.bag_of_words",
    "BayesianLinearRegression": "wonderland.linear.bayesian",
    "BayesianLogisticRegression": "wonderland.linear.bayesian_logistic",
    "CalibratedClassifier": "wonderland.trust.calibrated",
    "Claim": "wonderland.core.evidence",
    "ConformalClassifier": "wonderland.trust.conformal_classifier",
    "ConformalRegressor": "wonderland.trust.conformal_regressor",
    "CostSensitiveClassifier": "wonderland.trust.cost",
    "Evidence": "wonderland.core.evidence",
    "InputError": "wonderland.core.errors",
    "KernelRidge": "wonderland.svm.kernel_ridge",
    "LinearRegression": "wonderland.linear.least_squares",
    "LinearSVC": "wonderland.svm.linear_svc",
    "LinearSVR": "wonderland.svm.linear_svr",
    "LogisticRegression": "wonderland.linear.logistic",
    "MLPClassifier": "wonderland.neural.classifier",
    "MLPRegressor": "wonderland.neural.regressor",
    "OneClassSVM": "wonderland.svm.one_class",
    "Perceptron": "wonderland.linear.perceptron",
    "Posterior": "wonderland.trust.posterior",
    "Ridge": "wonderland.linear.ridge",
    "RiskControl": "wonderland.trust.risk",
    "SVC": "wonderland.svm.svc",
    "SVR": "wonderland.svm.svr",
    "SearchCV": "wonderland.shell.search",
    "Solution": "wonderland.core.solution",
    "Status": "wonderland.core.status",
    "control_risk": "wonderland.trust.risk",
    "evidence": "wonderland.report.verify",
    "fit_bayesian_linear": "wonderland.linear.bayesian",
    "fit_bayesian_logistic": "wonderland.linear.bayesian_logistic",
    "fit_kernel_ridge": "wonderland.svm.kernel_ridge",
    "fit_linear_regression": "wonderland.linear.least_squares",
    "fit_linear_svc": "wonderland.svm.linear_pure",
    "fit_linear_svr": "wonderland.svm.linear_pure",
    "fit_logistic": "wonderland.linear.logistic",
    "fit_ridge": "wonderland.linear.ridge",
    "fit_svc": "wonderland.svm.kernel_machine_pure",
    "fit_temperature": "wonderland.trust.temperature",
    "load": "wonderland.core.store",
    "logistic_path": "wonderland.linear.logistic",
    "ridge_path": "wonderland.linear.ridge",
    "save": "wonderland.core.store",
    "storable": "wonderland.core.store",
    "train": "wonderland.training.loop",
    "verify": "wonderland.report.verify",
}
_ROOMS = (
    "autodiff",
    "bases",
    "datasets",
    "kernels",
    "losses",
    "metrics",
    "nn",
    "penalties",
    "report",
    "solve",
    "testing",
    "training",
    "trust",
)

__all__ = [*_HOME, *_ROOMS, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _ROOMS:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from wonderland import autodiff as autodiff
    from wonderland import bases as bases
    from wonderland import datasets as datasets
    from wonderland import kernels as kernels
    from wonderland import losses as losses
    from wonderland import metrics as metrics
    from wonderland import nn as nn
    from wonderland import penalties as penalties
    from wonderland import report as report
    from wonderland import solve as solve
    from wonderland import testing as testing
    from wonderland import training as training
    from wonderland import trust as trust
    from wonderland.core.errors import InputError as InputError
    from wonderland.core.evidence import Claim as Claim
    from wonderland.core.evidence import Evidence as Evidence
    from wonderland.core.solution import Solution as Solution
    from wonderland.core.status import Status as Status
    from wonderland.core.store import load as load
    from wonderland.core.store import save as save
    from wonderland.core.store import storable as storable
    from wonderland.language.bag_of_words import BagOfWords as BagOfWords
    from wonderland.linear.bayesian import BayesianLinearRegression as BayesianLinearRegression
    from wonderland.linear.bayesian import fit_bayesian_linear as fit_bayesian_linear
    from wonderland.linear.bayesian_logistic import (
        BayesianLogisticRegression as BayesianLogisticRegression,
    )
    from wonderland.linear.bayesian_logistic import fit_bayesian_logistic as fit_bayesian_logistic
    from wonderland.linear.least_squares import LinearRegression as LinearRegression
    from wonderland.linear.least_squares import fit_linear_regression as fit_linear_regression
    from wonderland.linear.logistic import LogisticRegression as LogisticRegression
    from wonderland.linear.logistic import fit_logistic as fit_logistic
    from wonderland.linear.logistic import logistic_path as logistic_path
    from wonderland.linear.perceptron import Perceptron as Perceptron
    from wonderland.linear.ridge import Ridge as Ridge
    from wonderland.linear.ridge import fit_ridge as fit_ridge
    from wonderland.linear.ridge import ridge_path as ridge_path
    from wonderland.neural.classifier import MLPClassifier as MLPClassifier
    from wonderland.neural.regressor import MLPRegressor as MLPRegressor
    from wonderland.report.verify import evidence as evidence
    from wonderland.report.verify import verify as verify
    from wonderland.shell.search import SearchCV as SearchCV
    from wonderland.svm.kernel_machine_pure import fit_svc as fit_svc
    from wonderland.svm.kernel_ridge import KernelRidge as KernelRidge
    from wonderland.svm.kernel_ridge import fit_kernel_ridge as fit_kernel_ridge
    from wonderland.svm.linear_pure import fit_linear_svc as fit_linear_svc
    from wonderland.svm.linear_pure import fit_linear_svr as fit_linear_svr
    from wonderland.svm.linear_svc import LinearSVC as LinearSVC
    from wonderland.svm.linear_svr import LinearSVR as LinearSVR
    from wonderland.svm.one_class import OneClassSVM as OneClassSVM
    from wonderland.svm.svc import SVC as SVC
    from wonderland.svm.svr import SVR as SVR
    from wonderland.training.loop import train as train
    from wonderland.trust.calibrated import CalibratedClassifier as CalibratedClassifier
    from wonderland.trust.conformal_classifier import ConformalClassifier as ConformalClassifier
    from wonderland.trust.conformal_regressor import ConformalRegressor as ConformalRegressor
    from wonderland.trust.cost import CostSensitiveClassifier as CostSensitiveClassifier
    from wonderland.trust.posterior import Posterior as Posterior
    from wonderland.trust.risk import RiskControl as RiskControl
    from wonderland.trust.risk import control_risk as control_risk
    from wonderland.trust.temperature import fit_temperature as fit_temperature
