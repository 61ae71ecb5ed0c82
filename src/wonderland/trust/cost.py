"""Decisions of least expected cost, from the probabilities of any classifier.

    decide(x) = arg min_i Σ_j C_ij p_j(x),    C_ij: the cost of deciding i where j is true

and abstain where every decision is expected to cost more than `abstain_cost`. Rows of C are
decisions, columns truths. Two classes: decide the second from the probability
(C₁₀ − C₀₀)/(C₁₀ − C₀₀ + C₀₁ − C₁₁) on. The rule is optimal where the probabilities are right:
whether held-out rows refute that is tested, and said. Shapes: n rows, k classes.

Reference: Elkan (2001), The foundations of cost-sensitive learning; Chow (1970), On optimum
recognition error and reject tradeoff.
"""

import warnings
from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.core.status import Status
from wonderland.metrics.intervals import Interval
from wonderland.trust.calibration_scores import read_probabilities
from wonderland.trust.cost_evidence import cost_claims, expected_costs, mean_cost, realised_costs
from wonderland.trust.cost_matrix import abstention_costs, check_sign, cost_matrix, threshold
from wonderland.trust.wrapper import (
    ClassifierWrapper,
    Task,
    class_codes,
    fit_on,
    held_out,
    prefit,
    splits,
)

__all__ = ["CostSensitiveClassifier", "UncalibratedWarning"]


class UncalibratedWarning(UserWarning):
    """Held-out rows refute the probabilities that decisions are made from."""


class CostSensitiveClassifier(ClassifierWrapper):
    """Any classifier with probabilities, deciding by expected cost.

    Args:
        estimator: A classifier with `predict_proba`; calibrate it first
            (`wl.CalibratedClassifier`).
        costs: C (k, k), decisions in rows and truths in columns, in the order of the sorted labels;
            a frame with labels on both sides; a mapping {(decision, truth): cost}; None: 0 for
            right and 1 for wrong.
        abstain_cost: What it costs to decide nothing: a number, or one for each truth (k,);
            None: every row is decided.
        abstain_label: What `predict` says then; None: "abstain" among strings, −1 among numbers.
        cv: Folds for the evidence: a number, a splitter, an iterable; "prefit": the estimator is
            fitted, and the rows given to `fit` are for the evidence.

    Attributes:
        estimator_: The fitted classifier inside.
        costs_: C (k, k).
        threshold_: For two classes, the probabilities of the second one between which nothing is
            decided, (lower, upper); equal without abstention.
        abstain_label_: What `predict` says where nothing is decided; None where all is.
        evidence_: expected_cost (on held-out rows), its saving against the most probable label,
            promised_cost, abstained, calibrated, ….

    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.arange(40.0)[:, None] % 10, np.arange(40) % 10 > 5
    >>> careful = CostSensitiveClassifier(LogisticRegression(), [[0, 10], [1, 0]], cv=2)
    >>> lower, upper = careful.fit(X, y).threshold_
    >>> round(lower, 4), lower == upper
    (0.0909, True)
    """

    def __init__(
        self,
        estimator: Any,
        costs: Any = None,
        abstain_cost: Any = None,
        *,
        abstain_label: Any = None,
        cv: Any = 5,
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.abstain_cost = abstain_cost
        self.abstain_label = abstain_label
        self.cv = cv

    def _check_parameters(self) -> None:
        if self.costs is not None:
            check_sign(self.costs)
        if self.abstain_cost is not None:
            check_sign(self.abstain_cost, "abstain_cost")
        if hasattr(self.estimator, "fit") and not hasattr(self.estimator, "predict_proba"):
            raise InputError(
                f"{type(self.estimator).__name__} has no predict_proba",
                "probabilities, whose mean cost is to be least",
                "Wrap it: wl.CalibratedClassifier(estimator)",
            )

    def _fit(self, task: Task) -> dict[str, Any]:
        costs = cost_matrix(self.costs, task.classes)
        if costs.ndim == 3:
            raise InputError(
                f"costs have the shape {costs.shape}",
                "one matrix (k, k) for the estimator",
                "Pass costs of single rows to predict(X, costs=…) and score",
            )
        abstain = self._abstention(task.classes)
        label = None if abstain is None else _abstain_label(self.abstain_label, task.classes)
        inner, p = self._read(task)
        evidence = cost_claims(p, task, costs, abstain)
        if evidence["calibrated"].holds is False:
            _warn_uncalibrated(self.estimator, evidence["calibrated"].value)
        pair = {"threshold_": threshold(costs, abstain)} if len(task.classes) == 2 else {}
        return {
            "estimator_": inner,
            "costs_": costs,
            "abstain_label_": label,
            "evidence_": evidence,
            "status_": Status.SOLVED,
            **pair,
        }

    def _read(self, task: Task) -> tuple[Any, np.ndarray]:
        """The fitted classifier, and probabilities (n, k) of rows it has not learned from."""

        def read(estimator: Any, X: Any) -> np.ndarray:
            return read_probabilities(estimator, X, task.classes)

        ready = prefit(self)
        if ready is not None:
            return ready, read(ready, task.X)
        parts = splits(self, task)
        fitted = [fit_on(self.estimator, task, part.train) for part in parts]
        return fit_on(self.estimator, task), held_out(parts, fitted, task, read)

    def _abstention(self, classes: np.ndarray) -> np.ndarray | None:
        return None if self.abstain_cost is None else abstention_costs(self.abstain_cost, classes)

    def _expected(self, X: Any, costs: Any) -> np.ndarray:
        p = read_probabilities(self._inner, X, self.classes_)
        return expected_costs(p, self._costs(costs, len(p)), self._abstention(self.classes_))

    def _costs(self, costs: Any, n: int) -> np.ndarray:
        """C, or the costs given for these rows."""
        if costs is None:
            return self.costs_
        table = cost_matrix(costs, self.classes_)
        if table.ndim == 3 and len(table) != n:
            raise InputError(
                f"{len(table)} matrices of costs for {n} rows",
                "one for each row, or one for all",
                "Pass costs (n, k, k) of the same rows as X",
            )
        return table

    def expected_costs(self, X: Any, costs: Any = None) -> np.ndarray:
        """What each decision is expected to cost (n, k), and abstaining in a last column.

        Args:
            X: (n, …).
            costs: C (k, k) or, one for each row, (n, k, k); None: those of the estimator.
        """
        return self._expected(X, costs)

    def predict(self, X: Any, costs: Any = None) -> Any:
        """The label of least expected cost (n,), or `abstain_label_`.

        Args:
            X: (n, …).
            costs: C (k, k) or, one for each row, (n, k, k); None: those of the estimator.
        """
        chosen = self._expected(X, costs).argmin(axis=1)
        return self._contain(self._decisions()[chosen], X)

    def _decisions(self) -> np.ndarray:
        """Labels, and last what says that nothing is decided."""
        label = self.abstain_label_
        if label is None:
            return self.classes_
        same = isinstance(label, str) == (self.classes_.dtype.kind in "US")
        known = self.classes_ if same else self.classes_.astype(object)
        return np.append(known, [label])

    def abstains(self, X: Any, costs: Any = None) -> np.ndarray:
        """Mask (n,) of the rows on which nothing is decided."""
        found = self._expected(X, costs)
        return found.argmin(axis=1) == len(self.classes_)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities (n, k) of the classifier inside."""
        return self._labelled(read_probabilities(self._inner, X, self.classes_), X)

    def cost(
        self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None, level: float = 0.95
    ) -> Interval:
        """The mean cost of the decisions on labelled rows, with its interval.

        Args:
            X: (n, …), not used in the fit.
            y: Labels (n,).
            sample_weight: ω (n,) ≥ 0.
            costs: C (k, k) or (n, k, k); None: those of the estimator.
            level: Of the interval.
        """
        chosen = self._expected(X, costs).argmin(axis=1)
        codes = class_codes(np.asarray(y), self.classes_)
        table, abstain = self._costs(costs, len(codes)), self._abstention(self.classes_)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return mean_cost(realised_costs(chosen, codes, table, abstain), weight, level)

    def score(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> float:
        """Minus the mean cost of the decisions: the larger the better, as searches expect."""
        return -self.cost(X, y, sample_weight, costs).value


def _abstain_label(given: Any, classes: np.ndarray) -> Any:
    """What says that nothing is decided; it must not be a label."""
    label = given
    if label is None:
        label = "abstain" if classes.dtype.kind in "USO" else -1
    if label in classes.tolist():
        raise InputError(
            f"abstain_label is {label!r}, which is one of the labels",
            f"something that is none of {classes.tolist()}",
            "Pass another abstain_label",
        )
    return label


def _warn_uncalibrated(estimator: Any, p_value: float) -> None:
    warnings.warn(
        f"the probabilities of {type(estimator).__name__} are not calibrated (p = {p_value:.2g} on "
        "held-out rows), so that decisions of least expected cost need not be the cheapest: wrap "
        "it in wl.CalibratedClassifier first",
        UncalibratedWarning,
        stacklevel=6,
    )
