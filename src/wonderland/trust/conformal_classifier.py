"""Sets of labels with coverage guaranteed for finitely many samples, around any classifier.

A score s(x, y) says how strange a label is (`trust.scores`); rows that the model has not seen give
s_1 … s_n, and the set of x is

    split    C(x) = { y : s(x, y) ≤ s_(r) },   r = ⌈(n + 1)(1 − α)⌉           P(y ∈ C) ≥ 1 − α
    cross    C(x) = { y : #{ i : s_i < s^{−k(i)}(x, y) } < r }                P(y ∈ C) ≥ 1 − 2α

for exchangeable samples, whatever the model and the distribution; s^{−k} is the score under the
model fitted without fold k. The promise 1 − 2α of "cross" (less a term of order √(1/n), Barber et
al. 2021) is the theorem's; 1 − α is what one sees. Within classes or groups the same holds given
the class or the group; with likelihood ratios as weights, under a shift of the covariates.

Reference: Vovk, Gammerman, Shafer (2005); Papadopoulos (2008); Romano, Sesia, Candès (2020);
Barber, Candès, Ramdas, Tibshirani (2021); Tibshirani, Barber, Candès, Ramdas (2019).
"""

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.status import Status
from wonderland.trust.conformal_base import Conformal, index_of
from wonderland.trust.conformal_evidence import new_claims
from wonderland.trust.conformal_labels import (
    LabelRows,
    LabelRule,
    NewRows,
    checked,
    label_claims,
    probabilities,
    uniform,
)
from wonderland.trust.conformal_parts import (
    calibration_folds,
    calibration_split,
    check_choice,
    fixed_seed,
    typical,
)
from wonderland.trust.quantiles import check_alpha
from wonderland.trust.scores import LAC, resolve_score
from wonderland.trust.sets import PredictionSets
from wonderland.trust.wrapper import ClassifierWrapper, Task, fit_on, prefit, take

__all__ = ["ConformalClassifier"]

METHODS = ("split", "cross")


def _has(name: str) -> Any:
    """Whether the estimator inside has a method; for `available_if`."""

    def check(self: Any) -> bool:
        return hasattr(getattr(self, "estimator_", self.estimator), name)

    return check


class ConformalClassifier(Conformal, ClassifierWrapper):
    """Prediction sets that hold the true label with probability 1 − α.

    Args:
        estimator: Any classifier with `predict_proba`, or with `decision_function`, of which the
            softmax (the logistic function for two classes) is then used.
        method: "split": one model, calibrated on rows kept apart; "cross": a model for each fold,
            calibrated on the fold it has not seen, so that every row serves both.
        conformity_score: "lac" (the smallest sets), "aps" (as large as the case is hard), "raps",
            "margin", or a `LabelScore`.
        alpha: α, the share of errors that is allowed.
        cv: For "split" None (a quarter of the rows), a share between 0 and 1, or a splitter whose
            first split is taken; for "cross" None (5), a number of folds or a splitter; "prefit"
            for an estimator that is fitted, calibrated on all rows passed.
        groups: None; "class" for coverage within each class; a column of X (name or number) or a
            callable X → (n,) for coverage within each group. An array goes to `fit` and
            `predict_set` as `groups=`.
        shift: None; a callable X → ω (n,), the likelihood ratio of the rows to be predicted for to
            those seen; "estimate" or a classifier to estimate it from `fit(..., X_target=)`.
        randomise: Whether "aps" and "raps" use a uniform number for each row: coverage is then
            1 − α up to 1/(n + 1) instead of at least that, and sets are smaller.
        penalty: λ of "raps".
        free: κ of "raps", the size of set that costs nothing.
        random_state: Seed of the split, the folds and the uniform numbers.

    Attributes:
        estimator_: The fitted classifier; for "cross" fitted on all rows, for `predict`.
        models_: Those that sets come from: one, or one for each fold.
        calibration_: The ordered scores, apart for each group.
        threshold_: The quantile of the scores at α; for "lac" the threshold γ on probabilities.
            One for each class or group where there are such.
        rule_: The score in use, and whether each class has its own threshold.
        promise_: The coverage that the method's theorem gives.
        evidence_: Claims: promised_coverage, coverage with its exact band, sizes, worst_class, ….

    >>> import wonderland as wl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)); y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    >>> fitted = wl.ConformalClassifier(wl.LogisticRegression(), random_state=0).fit(X, y)
    >>> sets = fitted.predict_set([[3.0, 0.0], [0.0, 0.0]])
    >>> sets.labels()
    [['yes'], ['no', 'yes']]
    """

    models_: list[Any]
    rule_: LabelRule
    seed_: int

    def __init__(
        self,
        estimator: Any,
        method: str = "split",
        *,
        conformity_score: Any = "lac",
        alpha: float = 0.1,
        cv: Any = None,
        groups: Any = None,
        shift: Any = None,
        randomise: bool = False,
        penalty: float = 0.01,
        free: int = 1,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.conformity_score = conformity_score
        self.alpha = alpha
        self.cv = cv
        self.groups = groups
        self.shift = shift
        self.randomise = randomise
        self.penalty = penalty
        self.free = free
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_alpha(self.alpha)
        check_choice("method", self.method, METHODS)
        resolve_score(self.conformity_score, self.penalty, self.free)
        if not self.penalty >= 0:
            raise InputError(f"penalty is {self.penalty!r}", "a number ≥ 0", "Pass penalty=0.01")

    def _fit(self, task: Task) -> dict[str, Any]:
        seed, ready = fixed_seed(self.random_state), prefit(self)
        whole, models, parts, train = self._models(task, ready, seed)
        rows, shift = self._rows(task, models, parts, train, seed)
        rule = LabelRule(
            resolve_score(self.conformity_score, self.penalty, self.free), self._by_class()
        )
        calibration = rule.calibrate(rows)
        self._check_level(self.alpha, calibration, task.classes)
        threshold = calibration.bounds(self.alpha, *typical(calibration, rows.weights))
        return {
            "estimator_": whole,
            "models_": models,
            "rule_": rule,
            "shift_": shift,
            "seed_": seed,
            "calibration_": calibration,
            "threshold_": -threshold if isinstance(rule.score, LAC) else threshold,
            "promise_": 1 - self.alpha if len(models) == 1 else max(0.0, 1 - 2 * self.alpha),
            "status_": Status.SOLVED,
            "evidence_": Evidence(label_claims(rule, rows, calibration, self.alpha, task.classes)),
        }

    def _rows(
        self, task: Task, models: list[Any], parts: list[np.ndarray], train: np.ndarray, seed: int
    ) -> tuple[LabelRows, Any]:
        """The calibration rows in the order of their folds, and what tells likelihood ratios."""
        order = np.concatenate(parts)
        read = [
            probabilities(model, take(task.X, part), task.classes)
            for model, part in zip(models, parts, strict=True)
        ]
        groups, weights, shift = self._read_extras(task, train, order, len(models))
        rows = LabelRows(
            p=checked(np.concatenate(read)),
            codes=task.codes[order],
            groups=groups,
            weights=weights,
            u=uniform(seed, "calibration", len(task.y))[order] if self.randomise else None,
            folds=np.cumsum([len(part) for part in parts])[:-1],
            seed=seed,
        )
        return rows, shift

    def _models(
        self, task: Task, ready: Any, seed: int
    ) -> tuple[Any, list[Any], list[np.ndarray], np.ndarray]:
        """The classifier of all, those that sets come from, their unseen rows, rows learnt from."""
        everything = np.arange(len(task.y))
        if ready is not None:
            return ready, [ready], [everything], everything
        if self.method == "split":
            part = calibration_split(self.cv, task, self.alpha, seed)
            model = fit_on(self.estimator, task, part.train)
            return model, [model], [part.test], part.train
        folds = calibration_folds(self, task, seed)
        models = [fit_on(self.estimator, task, fold.train) for fold in folds]
        return fit_on(self.estimator, task), models, [fold.test for fold in folds], everything

    def predict(self, X: Any) -> Any:
        """The label that the classifier itself predicts (n,)."""
        return self._contain(np.asarray(self._inner.predict(X)), X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """The classifier's own probabilities (n, k)."""
        return self._labelled(probabilities(self._inner, X, self.classes_), X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """The classifier's own scores."""
        return self._inner.decision_function(X)

    def predict_set(
        self, X: Any, alpha: Any = None, *, groups: Any = None, weights: Any = None
    ) -> Any:
        """The set of labels for each row.

        Args:
            X: (m, …).
            alpha: The level, or several; None for that of the fit.
            groups: The group of each row (m,), where `fit` was given groups.
            weights: Likelihood ratio of each row (m,), where `fit` was given weights.

        Returns:
            `PredictionSets`; a list of them, one for each level, where several were asked for.
        """
        levels, single = self._levels(alpha)
        read = [probabilities(model, X, self.classes_) for model in self.models_]
        m = len(read[0])
        u = uniform(self.seed_, "prediction", m) if self.randomise else None
        new = NewRows(self._places(X, groups, m), self._ratios(X, weights, m), u)
        masks = self.rule_.masks(self.calibration_, read, levels, new)
        found = [
            PredictionSets(mask, self.classes_, level, index_of(X))
            for mask, level in zip(masks, levels, strict=True)
        ]
        return found[0] if single else found

    def claims_on(self, X: Any, y: Any) -> list[Claim]:
        """Coverage and sizes on test data; `wl.verify` adds them to the evidence."""
        sets, plain = self.predict_set(X), self.calibration_.plain
        covered, rows = sets.contains(y), int(self.calibration_.counts.sum())
        promise = self.promise_
        return new_claims(covered, sets.size, rows, self.alpha, promise, "set", exact=plain)
