"""Conformal risk control: any loss that shrinks as sets grow, held below α in expectation.

Let L_i(λ) ∈ [0, B] be the loss of sample i at λ, non-increasing in λ and right-continuous, and R̂
the mean over n calibration samples. Then

    λ̂ = inf { λ : n/(n + 1) R̂(λ) + B/(n + 1) ≤ α }     gives     E L_{n+1}(λ̂) ≤ α

for exchangeable samples, whatever the model; the loss 1[y ∉ C_λ(x)] is split conformal prediction.
Here C_λ(x) = { j : p_j(x) ≥ 1 − λ }, for one label or for many at once (each j then has a
probability of its own). Such a mean changes only where some p_j = 1 − λ, and falls with λ, so that
bisection over those values finds λ̂ exactly.

Shapes: p (n, k), truth (n, k) with one True for each label that holds.

Reference: Angelopoulos, Bates, Fisch, Lei, Schuster (2024), Conformal risk control.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import indexable

from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.status import Status
from wonderland.metrics.intervals import mean_interval
from wonderland.shell.explain import explained
from wonderland.shell.inputs import read_weight
from wonderland.trust.conformal_base import index_of
from wonderland.trust.conformal_evidence import LEVEL, halves
from wonderland.trust.conformal_labels import checked, probabilities
from wonderland.trust.conformal_parts import calibration_split, fixed_seed
from wonderland.trust.quantiles import check_alpha
from wonderland.trust.routed import routed
from wonderland.trust.sets import PredictionSets
from wonderland.trust.wrapper import ClassifierWrapper, Task, fit_on, prefit, take

__all__ = ["RiskControl", "control_risk", "false_negatives", "miscoverage"]

Loss = Callable[[np.ndarray, np.ndarray], np.ndarray]


def miscoverage(mask: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """1 where a true label is missing (n,).

    >>> miscoverage(np.array([[True, False]]), np.array([[True, True]]))
    array([1.])
    """
    return (truth & ~mask).any(axis=1).astype(float)


def false_negatives(mask: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The share of the true labels that are missing (n,); 0 where there are none.

    >>> false_negatives(np.array([[True, False]]), np.array([[True, True]]))
    array([0.5])
    """
    return (truth & ~mask).sum(axis=1) / np.maximum(truth.sum(axis=1), 1)


LOSSES: dict[str, Loss] = {"miscoverage": miscoverage, "false_negatives": false_negatives}


def control_risk(losses: Any, alpha: float, *, bound: float = 1.0) -> int:
    """The first of many settings whose risk is controlled, for losses of whatever kind.

    Args:
        losses: L_i at each setting (n, a), not rising along a row: from bold to cautious.
        alpha: Allowed mean loss of a new sample, 0 < α < bound.
        bound: B, the largest loss there can be.

    Returns:
        The index of λ̂ among the settings.

    >>> losses = np.repeat([[1.0, 0.5, 0.0]], 9, axis=0)
    >>> control_risk(losses, 0.55), control_risk(losses, 0.1)
    (1, 2)
    """
    losses = np.asarray(losses, dtype=np.float64)
    if losses.ndim != 2 or not len(losses):
        raise InputError(
            f"losses of shape {losses.shape}", "a table (n, a), n ≥ 1", "Pass one row a sample"
        )
    _check_losses(losses, bound)
    if np.any(np.diff(losses, axis=1) > 1e-12):
        row = int(np.flatnonzero((np.diff(losses, axis=1) > 1e-12).any(axis=1))[0])
        raise InputError(
            f"the loss of row {row} rises along the settings",
            "losses that fall (or stay) from the boldest setting to the most cautious",
            "Order the settings, or take the running maximum from the cautious end",
        )
    n = len(losses)
    enough = losses.mean(axis=0) <= _allowed(n, alpha, bound)
    if not enough.any():
        raise _too_few(n, alpha, bound, float(losses[:, -1].mean()))
    return int(np.argmax(enough))


def _allowed(n: int, alpha: float, bound: float) -> float:
    """The largest R̂ with n/(n + 1) R̂ + B/(n + 1) ≤ α, but for rounding."""
    return ((n + 1) * alpha - bound) / n + 1e-12


def _check_losses(losses: np.ndarray, bound: float) -> None:
    if not np.all((losses >= 0) & (losses <= bound * (1 + 1e-12))):
        raise InputError(
            f"losses between {np.min(losses):g} and {np.max(losses):g}",
            f"losses between 0 and the bound {bound:g}",
            "Pass bound=, the largest loss there can be",
        )


def _too_few(n: int, alpha: float, bound: float, least: float) -> InputError:
    """No setting is safe: for want of samples, or because even the most cautious costs too much."""
    if least >= alpha:
        return InputError(
            f"the most cautious setting has mean loss {least:.4g} with alpha={alpha:g}",
            "a setting with mean loss below alpha",
            "Pass a larger alpha, or settings that are more cautious",
        )
    smallest = math.ceil((bound - least) / (alpha - least) - 1 - 1e-9)
    return InputError(
        f"{n} calibration rows for alpha={alpha:g} and losses up to {bound:g} (n_samples = {n})",
        f"at least {max(smallest, n + 1)} calibration rows",
        f"Pass alpha ≥ {(bound + n * least) / (n + 1):.3g}, or more rows",
    )


class RiskControl(ClassifierWrapper):
    """Sets of labels whose expected loss is at most α, for any loss that falls as sets grow.

    Args:
        estimator: A classifier with probabilities, of one label or of many at once.
        loss: "false_negatives" (share of true labels missing), "miscoverage", or a function of the
            mask and the truth (n, k) that gives losses (n,) and falls as sets grow.
        alpha: Allowed mean loss.
        bound: B, the largest loss there can be.
        cv: None (a quarter of the rows), a share, a splitter, or "prefit".
        random_state: Seed of the split.

    Attributes:
        estimator_: The fitted classifier.
        threshold_: 1 − λ̂: labels with at least this probability are in the set.
        evidence_: Claims: promised_risk, calibration_risk, risk on rows kept apart, mean_size.

    >>> import wonderland as wl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = (X @ np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]]) + rng.normal(size=(600, 3)) > 0)
    >>> from sklearn.neural_network import MLPClassifier
    >>> model = MLPClassifier(max_iter=2000, random_state=0).fit(X[:300], y[:300])
    >>> control = wl.RiskControl(model, cv="prefit", alpha=0.1).fit(X[300:], y[300:])
    >>> sets = control.predict_set(X[300:])
    >>> bool(false_negatives(sets.mask, y[300:]).mean() <= 0.1)
    True
    """

    threshold_: float

    def __init__(
        self,
        estimator: Any,
        loss: Any = "false_negatives",
        *,
        alpha: float = 0.1,
        bound: float = 1.0,
        cv: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.alpha = alpha
        self.bound = bound
        self.cv = cv
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if not isinstance(self.bound, int | float) or not self.bound > 0:
            raise InputError(f"bound is {self.bound!r}", "a number > 0", "Pass bound=1.0")
        check_alpha(self.alpha / self.bound if isinstance(self.alpha, float) else self.alpha)
        if isinstance(self.loss, str) and self.loss not in LOSSES:
            raise InputError(
                f"loss is {self.loss!r}",
                f"{' or '.join(LOSSES)}, or a function (mask, truth) → (n,)",
                nearest(self.loss, LOSSES),
            )
        if not isinstance(self.loss, str) and not callable(self.loss):
            raise InputTypeError(
                f"loss is {self.loss!r}", "a name or a function", "Pass loss='false_negatives'"
            )

    def _read_task(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> Task:
        if np.ndim(y) != 2 or np.shape(y)[1] == 1:
            return super()._read_task(X, y, sample_weight, params)
        truth = np.asarray(y)
        X, truth = explained(lambda: tuple(indexable(X, truth)), X=X, y=y)
        if not np.all(np.isin(truth, (0, 1))):
            raise InputError(
                "a table y with entries other than 0 and 1",
                "one column for each label, 1 where it holds",
                "Pass labels (n,), or sklearn.preprocessing.MultiLabelBinarizer's table",
            )
        weight = read_weight(sample_weight, X)
        fit, split = routed(self, X, weight, params)
        return Task(X, truth, np.arange(truth.shape[1]), None, weight, fit, split)

    def _fit(self, task: Task) -> dict[str, Any]:
        seed, ready = fixed_seed(self.random_state), prefit(self)
        rows = np.arange(len(task.y))
        if ready is None:
            part = calibration_split(self.cv, task, min(0.5, self.alpha / self.bound), seed)
            ready, rows = fit_on(self.estimator, task, part.train), part.test
        several = task.codes is None
        p = _read(ready, take(task.X, rows), task.classes, several=several)
        truth = _truth(task.y[rows] if several else task.codes[rows], p.shape[1], several=several)
        threshold, risk = self._threshold(p, truth)
        return {
            "estimator_": ready,
            "several_": several,
            "threshold_": threshold,
            "lambda_": 1.0 - threshold,
            "status_": Status.SOLVED,
            "evidence_": Evidence(self._claims(p, truth, risk, seed)),
        }

    def _losses(self, p: np.ndarray, truth: np.ndarray, threshold: float) -> np.ndarray:
        loss = LOSSES[self.loss] if isinstance(self.loss, str) else self.loss
        found = np.asarray(loss(p >= threshold, truth), dtype=np.float64)
        if found.shape != (len(p),):
            raise InputError(
                f"loss returned an array of shape {found.shape}",
                f"one loss for each of the {len(p)} rows",
                "Average over the labels of a row: axis=1",
            )
        _check_losses(found, self.bound)
        return found

    def _threshold(self, p: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
        """The largest threshold with controlled risk, and the risk there, by bisection."""
        steps = np.concatenate([[0.0], np.unique(p), [np.inf]])  # from all labels to none
        allowed = _allowed(len(p), self.alpha, self.bound)
        seen: dict[int, float] = {}

        def risk(index: int) -> float:
            seen[index] = float(self._losses(p, truth, float(steps[index])).mean())
            return seen[index]

        low, high = 0, len(steps) - 1
        if risk(low) > allowed:
            raise _too_few(len(p), self.alpha, self.bound, seen[low])
        if risk(high) <= allowed:
            return float(steps[high]), seen[high]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if risk(middle) <= allowed else (low, middle)
        path = [seen[index] for index in sorted(seen)]
        if np.any(np.diff(path) < -1e-12):
            raise InputError(
                "a loss that rises as sets grow",
                "one that falls or stays when a label is added",
                "Control false_negatives, or a loss made monotone by its running maximum",
            )
        return float(steps[low]), seen[low]

    def _claims(self, p: np.ndarray, truth: np.ndarray, risk: float, seed: int) -> list[Claim]:
        claims = [
            Claim.fact("promised_risk", self.alpha, "expected loss of a new row, at most"),
            Claim.fact("calibration_risk", risk, f"mean loss of the {len(p)} calibration rows"),
        ]
        first, second = halves(len(p), seed)
        try:
            threshold, _ = self._threshold(p[first], truth[first])
        except InputError:
            return claims  # half of the rows are too few to try
        found = self._losses(p[second], truth[second], threshold)
        if len(found) < 2:
            return claims
        # The threshold's own error moves the risk as much as the test rows' does.
        slack = np.sqrt(2.0) * (mean_interval(found, level=LEVEL).high - found.mean())
        slack += 2 * self.bound / len(first)
        return [
            *claims,
            Claim.below(
                "risk",
                float(found.mean()),
                float(self.alpha + slack),
                f"mean loss of one half of the calibration rows ({len(second)}) with the threshold "
                f"from the other; bound: alpha and the error of both at {LEVEL:.1%}",
            ),
            Claim.fact(
                "mean_size",
                float((p[second] >= threshold).sum(axis=1).mean()),
                "mean number of labels in a set there",
            ),
        ]

    def predict(self, X: Any) -> Any:
        """What the classifier itself predicts (n,) or (n, k)."""
        found = np.asarray(self._inner.predict(X))
        return found if found.ndim == 2 else self._contain(found, X)

    def predict_set(self, X: Any) -> PredictionSets:
        """The set of labels for each row."""
        p = _read(self._inner, X, self.classes_, several=self.several_)
        return PredictionSets(p >= self.threshold_, self.classes_, self.alpha, index_of(X))

    several_: bool


def _read(estimator: Any, X: Any, classes: Any, *, several: bool) -> np.ndarray:
    """Probabilities (n, k): of classes that exclude one another, or of each label by itself."""
    if not several:
        return checked(probabilities(estimator, X, classes))
    found = estimator.predict_proba(X)
    if isinstance(found, list):  # one table (n, 2) for each label
        found = np.column_stack([np.asarray(part)[:, -1] for part in found])
    return np.asarray(found, dtype=np.float64)


def _truth(y: np.ndarray, k: int, *, several: bool) -> np.ndarray:
    """A mask (n, k) of the labels that hold."""
    return y.astype(bool) if several else np.arange(k) == y[:, None]
