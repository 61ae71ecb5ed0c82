"""A classifier whose probabilities come true: calibration on rows it has not learned from.

    p(x) = g(s(x)),    g minimises Σ_i ω_i S(g(s_i), y_i) over calibration rows

s is what the wrapped classifier says (scores, or else probabilities), S the log loss (isotonic: the
squared distance), g one of five families: "temperature" (one number; the arg max never changes),
"vector" (a scale and an offset for each class), "platt", "beta" and "isotonic" (one class at a
time). The calibration rows are held out by cross-validation, or handed to a classifier that came
fitted. Shapes: n rows, k classes.

Reference: Guo et al. (2017); Platt (1999); Zadrozny and Elkan (2002); Kull et al. (2017). Each map
is in `trust/temperature.py` and `trust/calibration_maps.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.errors import InputError, nearest
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.trust.calibration_evidence import calibration_claims
from wonderland.trust.calibration_maps import fit_beta, fit_isotonic, fit_platt, fit_vector
from wonderland.trust.calibration_scores import (
    columns_of,
    logits_of,
    positive_probabilities,
    probabilities_of,
    read_scores,
    score_source,
)
from wonderland.trust.temperature import fit_temperature
from wonderland.trust.wrapper import (
    ClassifierWrapper,
    Split,
    Task,
    fit_on,
    held_out,
    prefit,
    splits,
)

__all__ = ["METHODS", "CalibratedClassifier"]


class Method(NamedTuple):
    """One family of maps.

    Attributes:
        fit: (inputs (n, …), codes, weight) → Solution of a map with `probabilities`.
        inputs: What the map takes, from what was read and where.
        largest: Whether the arg max of the scores is kept.
    """

    fit: Callable[..., Solution]
    inputs: Callable[[np.ndarray, str], np.ndarray]
    largest: bool = False


METHODS = {
    "temperature": Method(fit_temperature, logits_of, largest=True),
    "vector": Method(fit_vector, logits_of),
    "platt": Method(fit_platt, columns_of),
    "beta": Method(fit_beta, positive_probabilities),
    "isotonic": Method(fit_isotonic, columns_of),
}


class CalibratedClassifier(ClassifierWrapper):
    """Any classifier, with probabilities calibrated on rows held out from its fit.

    Args:
        estimator: A classifier with `decision_function` or `predict_proba`.
        method: "temperature", "vector", "platt" (also called "sigmoid"), "beta" or "isotonic".
        cv: Folds: a number (stratified), a splitter, an iterable of (train, test); "prefit": the
            estimator is fitted, and all rows given to `fit` are for calibration.
        ensemble: False: one map for the held-out scores of all folds, one estimator fitted on all
            rows. True: as many pairs of estimator and map as folds, their probabilities averaged.

    Attributes:
        estimator_: The fitted classifier inside (the first of `estimators_`).
        estimators_: One, or one for each fold.
        model_: The map, with its parameters (the first of `models_`).
        models_: One, or one for each fold.
        score_source_: The method that was read.
        evidence_: calibration_error_before and _after, log_loss_before and _after, source, …: all
            on held-out rows, the map itself cross-fitted.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> fitted = CalibratedClassifier(GaussianNB()).fit(X, y)
    >>> round(fitted.model_.temperature, 2), fitted.score_source_
    (1.75, 'predict_proba')
    >>> bool(np.all(fitted.predict(X) == fitted.estimator_.predict(X)))
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "temperature",
        cv: Any = 5,
        ensemble: bool = False,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.ensemble = ensemble

    def _check_parameters(self) -> None:
        if self.method != "sigmoid" and self.method not in METHODS:
            raise InputError(
                f"method is {self.method!r}",
                f"one of {', '.join(METHODS)}",
                nearest(self.method, METHODS),
            )
        if not isinstance(self.ensemble, bool | np.bool_):
            raise InputError(
                f"ensemble is {self.ensemble!r}", "True or False", "Pass ensemble=False"
            )

    @property
    def _method(self) -> Method:
        return METHODS["platt" if self.method == "sigmoid" else self.method]

    def _fit(self, task: Task) -> dict[str, Any]:
        source = score_source(self.estimator, len(task.classes))
        fitted, parts, raw = self._read(task, source)
        inputs = self._method.inputs(raw, source)
        solutions = [_fit_map(self._method, inputs, task, part.test) for part in parts]
        before = probabilities_of(raw, source)
        return {
            "estimators_": fitted,
            "estimator_": fitted[0],
            "models_": [solution.model for solution in solutions],
            "model_": solutions[0].model,
            "score_source_": source,
            "evidence_": calibration_claims(self._method, before, inputs, task, solutions, source),
            "status_": max((solution.ended for solution in solutions), key=_concern),
        }

    def _read(self, task: Task, source: str) -> tuple[list[Any], list[Split], np.ndarray]:
        """Fitted estimators, the calibration rows of each map, what was said about all rows."""
        ready, everything = prefit(self), np.arange(len(task.y))

        def read(estimator: Any, X: Any) -> np.ndarray:
            return read_scores(estimator, X, source, task.classes)

        whole = [Split(everything[:0], everything)]
        parts = whole if ready is not None else splits(self, task)
        _check_classes(task, self._method, parts if self.ensemble else whole)
        if ready is not None:
            return [ready], whole, read(ready, task.X)
        fitted = [fit_on(self.estimator, task, part.train) for part in parts]
        raw = held_out(parts, fitted, task, read)
        if self.ensemble:
            return fitted, parts, raw
        return [fit_on(self.estimator, task)], whole, raw

    def _scored(self, X: Any) -> list[np.ndarray]:
        """What the maps take, from each estimator."""
        source = self.score_source_
        return [
            self._method.inputs(read_scores(inner, X, source, self.classes_), source)
            for inner in self.estimators_
        ]

    def _probabilities(self, X: Any) -> np.ndarray:
        self._require_fit()
        each = zip(self.models_, self._scored(X), strict=True)
        return np.mean([model.probabilities(z) for model, z in each], axis=0)

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities (n, k), in the container chosen by `set_output`."""
        return self._labelled(self._probabilities(X), X)

    def predict_log_proba(self, X: Any) -> Any:
        """Their logarithms (n, k); −∞ where isotonic regression says 0."""
        with np.errstate(divide="ignore"):
            return self._labelled(np.log(self._probabilities(X)), X)

    def predict(self, X: Any) -> Any:
        """The most probable label (n,); with one temperature, that of the largest score."""
        chosen = self._probabilities(X).argmax(axis=1)
        return self._contain(self.classes_[chosen], X)


def _fit_map(method: Method, inputs: np.ndarray, task: Task, rows: np.ndarray) -> Solution:
    weight = None if task.weight is None else task.weight[rows]
    return method.fit(inputs[rows], task.codes[rows], weight)


def _concern(status: Status) -> int:
    """Order of what a fit of several parts should report: the worst of them."""
    return 0 if status.ok else int(status)


def _check_classes(task: Task, method: Method, parts: list[Split]) -> None:
    """A map with parameters of each class needs rows of each class to choose them from."""
    if method.largest:
        return
    for part in parts:
        missing = np.setdiff1d(np.arange(len(task.classes)), task.codes[part.test])
        if len(missing):
            labels = ", ".join(repr(label) for label in task.classes[missing].tolist())
            raise InputError(
                f"no calibration row has the label {labels}",
                "every label of the estimator among the calibration rows",
                'Pass more rows, or method="temperature", which needs no row of each label',
            )
