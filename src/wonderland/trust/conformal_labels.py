"""The rule behind sets of labels, without an estimator around it: scores in, masks out.

`LabelRule` joins a score with the way thresholds are kept: one, one for each class, or one for each
group of rows. Shapes: p (n, k) probabilities, codes (n,) class numbers, m new rows.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from scipy.special import expit, softmax

from wonderland.core.errors import InputError, InputTypeError
from wonderland.core.evidence import Claim
from wonderland.trust.conformal_evidence import Trial, claims_of, coverage_claims, halves
from wonderland.trust.conformal_parts import Groups
from wonderland.trust.quantiles import smallest_sample, stream
from wonderland.trust.scores import LabelScore, by_rows, part_of

__all__ = [
    "LabelRows",
    "LabelRule",
    "NewRows",
    "checked",
    "label_claims",
    "probabilities",
    "uniform",
]

TOLERANCE = 1e-5  # by which probabilities may miss one: what single precision leaves of many


class LabelRows(NamedTuple):
    """Calibration rows, fold after fold.

    Attributes:
        p: Probabilities from a model that has not seen the row (n, k).
        codes: True classes (n,).
        groups: The group of each row (n,), or None.
        weights: Likelihood ratios (n,), or None.
        u: Uniform numbers (n,), or None.
        folds: Where the second, third, … fold begins.
        seed: Of the halves that coverage is tried on.
    """

    p: np.ndarray
    codes: np.ndarray
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None
    u: np.ndarray | None = None
    folds: np.ndarray | tuple[int, ...] = ()
    seed: int = 0

    def rows(self, rows: np.ndarray) -> "LabelRows":
        """Some of the rows, as one fold."""

        def kept(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[rows]

        return LabelRows(
            self.p[rows],
            self.codes[rows],
            kept(self.groups),
            kept(self.weights),
            kept(self.u),
            seed=self.seed,
        )


class NewRows(NamedTuple):
    """What is known of rows to be predicted for besides their probabilities.

    Attributes:
        places: The number of each row's group (m,).
        weights: Likelihood ratios (m,), or None.
        u: Uniform numbers (m,), or None.
    """

    places: np.ndarray
    weights: np.ndarray | None = None
    u: np.ndarray | None = None


class LabelRule(eqx.Module):
    """A score, and whether each class has a threshold of its own.

    Attributes:
        score: Of labels.
        by_class: Whether thresholds are kept apart for the classes.

    >>> from wonderland.trust.scores import LAC
    >>> rule = LabelRule(LAC(), by_class=False)
    >>> p = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> calibration = rule.calibrate(LabelRows(p, np.array([0, 0, 1])))
    >>> rule.masks(calibration, [p], [0.3], NewRows(np.zeros(3, int)))[0]
    array([[ True, False],
           [ True, False],
           [False,  True]])
    """

    score: LabelScore
    by_class: bool

    def calibrate(self, rows: LabelRows, names: np.ndarray | None = None) -> Groups:
        """Order the scores of the true labels, apart for each class or group."""
        scores = self.score.of(rows.p, rows.codes, rows.u)
        kinds = rows.codes if self.by_class else rows.groups
        names = np.arange(rows.p.shape[1]) if self.by_class else names
        apart = None if kinds is None else np.split(kinds, rows.folds)
        return Groups.of(np.split(scores, rows.folds), apart, rows.weights, names)

    def masks(
        self, calibration: Groups, read: Sequence[np.ndarray], levels: Sequence[float], new: NewRows
    ) -> list[np.ndarray]:
        """For each level the labels in the set of each row, [(m, k), …].

        Args:
            calibration: From `calibrate`.
            read: Probabilities of the new rows from the model of each fold, [(m, k), …].
            levels: α.
            new: The rest that is known of them.
        """
        if len(read) == 1:
            return [self._mask(calibration, read[0], level, new) for level in levels]
        counts = self._counts(calibration, read, new)
        ranks = [calibration.ranks(level) for level in levels]
        return [
            counts < (rank[None, :] if self.by_class else rank[new.places, None]) for rank in ranks
        ]

    def _mask(self, calibration: Groups, p: np.ndarray, level: float, new: NewRows) -> np.ndarray:
        if self.by_class:
            bound = calibration.label_bounds(level, new.weights)
        else:
            bound = calibration.bounds(level, new.places, new.weights)[:, None]

        def block(rows: slice) -> np.ndarray:
            part = checked(p[rows], rows.start)
            return self.score.within(part, part_of(bound, rows), part_of(new.u, rows))

        return by_rows(block, p, p.shape[1], bool)

    def _counts(self, calibration: Groups, read: Sequence[np.ndarray], new: NewRows) -> np.ndarray:
        """#{i : s_i < s^{−k(i)}(x, y)} for every new row and label (m, k)."""
        total = np.zeros(read[0].shape, dtype=np.int64)
        for fold, p in enumerate(read):
            table = self.score.table(checked(p), new.u)
            for number, group in enumerate(calibration.parts):
                known = group[fold].scores
                if self.by_class:
                    total[:, number] += np.searchsorted(known, table[:, number])
                elif calibration.names is None:
                    total += np.searchsorted(known, table)
                else:
                    rows = new.places == number
                    total[rows] += np.searchsorted(known, table[rows])
        return total


def label_claims(
    rule: LabelRule, rows: LabelRows, calibration: Groups, alpha: float, classes: np.ndarray
) -> list[Claim]:
    """The evidence of a calibrated rule."""
    single = len(calibration.parts[0]) == 1
    promise = 1 - alpha if single else max(0.0, 1 - 2 * alpha)
    claims = claims_of(calibration, alpha, promise, exact=calibration.plain)
    first, second = halves(len(rows.codes), rows.seed)
    known, fresh = rows.rows(first), rows.rows(second)
    tried = rule.calibrate(known, calibration.names)
    if not len(second) or tried.counts.min() < smallest_sample(alpha):
        return claims
    new = NewRows(tried.places(fresh.groups, len(second)), fresh.weights, fresh.u)
    mask = rule.masks(tried, [fresh.p], [alpha], new)[0]
    covered = mask[np.arange(len(second)), fresh.codes]
    trial = Trial(covered, mask.sum(axis=1), len(first))
    groups, labels = fresh.codes, ("class", classes.tolist())
    if rows.groups is not None and not rule.by_class and calibration.names is not None:
        groups, labels = new.places, ("group", calibration.names.tolist())
    return claims + coverage_claims(
        trial, alpha, unit="set", exact=calibration.plain, groups=groups, labels=labels
    )


def uniform(seed: int, use: str, n: int) -> np.ndarray:
    """Uniform numbers of the rows (n,): one stream for calibration, another for prediction."""
    return stream(seed, use).random(n)


def probabilities(estimator: Any, X: Any, classes: np.ndarray | None) -> np.ndarray:
    """Probabilities (n, k) in the order of `classes`; of a class never learnt they are 0.

    Without `predict_proba` they are the softmax of `decision_function`, for two classes the
    logistic function: not calibrated, which the guarantee does not need.
    """
    if hasattr(estimator, "predict_proba"):
        p = np.asarray(estimator.predict_proba(X))
    elif hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        two = scores.ndim == 1
        p = np.column_stack([expit(-scores), expit(scores)]) if two else softmax(scores, axis=1)
    else:
        raise InputTypeError(
            f"{type(estimator).__name__} has neither predict_proba nor decision_function",
            "a classifier that says how sure it is",
            "Pass another, or wl.CalibratedClassifier around it",
        )
    p = p.astype(np.float64, copy=False)
    known = np.asarray(estimator.classes_)
    if classes is None or np.array_equal(known, classes):
        return p
    found = np.zeros((len(p), len(classes)))
    found[:, np.searchsorted(classes, known)] = p
    return found


def checked(p: np.ndarray, start: int = 0) -> np.ndarray:
    """The probabilities, or an error that says which rows are none."""
    total = p @ np.ones(p.shape[1])
    # A comparison with NaN is false: the test is written so that NaN fails it.
    good = np.abs(total - 1.0) <= TOLERANCE
    if good.all() and p.min(initial=0.0) >= -TOLERANCE:
        return p
    bad = np.flatnonzero(~good | (p < -TOLERANCE).any(axis=1))
    rows = ", ".join(str(start + row) for row in bad[:5])
    raise InputError(
        f"probabilities of row {rows}{' …' if len(bad) > 5 else ''} sum to {total[bad[0]]:.6g}"
        + (", or one of them is negative" if p[bad[0]].min() < 0 else ""),
        "numbers ≥ 0 that sum to 1 in each row",
        "Check predict_proba of the estimator; softmax turns scores into probabilities",
    )
