"""Ensembles: many fits of one estimator, to resampled rows or from other seeds, averaged.

    p(y | x) ≈ 1/k Σ_i p(y | f_i(x)) ,   f_i fitted to n rows drawn from S with replacement

Rows of classes are drawn within each class, so that no member misses one. Members of an estimator
that offers it are fitted together, in shared passes over the data or in one program; any other is
cloned and fitted k times, with counts as weights where its `fit` takes weights. The noise of
numbers is measured on rows that a member has not seen.

Reference: Breiman (1996), Bagging predictors; Lakshminarayanan et al. (2017).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim
from wonderland.shell.together import NotTogether
from wonderland.shell.together import Task as Fit
from wonderland.trust.posterior_parts import (
    Classes,
    Numbers,
    Predictive,
    mixture_interval,
    pool,
)
from wonderland.trust.routed import weight_name
from wonderland.trust.wrapper import Task, fit_on, take

__all__ = ["Ensemble", "fit_ensemble"]


JUDGED = 5000  # rows that the error is measured on: it is then known to a few hundredths


class Ensemble(Predictive):
    """Averages over fitted estimators.

    Attributes:
        fitted: k estimators.
        noise: σ² of numbers about their mean, from rows left out.
    """

    fitted: list[Any]
    noise: float = 0.0

    def members(self, estimator: Any, X: Any, count: int) -> np.ndarray:
        """Probabilities (m, n, k), or numbers (m, n)."""
        if hasattr(estimator, "classes_"):
            return np.stack([_probabilities(one, estimator.classes_, X) for one in self.fitted])
        return np.stack([np.asarray(one.predict(X), dtype=np.float64) for one in self.fitted])

    def classes(self, estimator: Any, X: Any) -> Classes:
        """1/k Σ_i p(y | f_i(x))."""
        return pool(self.members(estimator, X, 0))

    def numbers(self, estimator: Any, X: Any) -> Numbers:
        """The law of total variance over members."""
        found = self.members(estimator, X, 0)
        return Numbers(
            found.mean(axis=0), found.var(axis=0, ddof=1), np.full(found.shape[1], self.noise)
        )

    def interval(self, estimator: Any, X: Any, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Quantiles of the mixture of all members."""
        found = self.members(estimator, X, 0)
        return mixture_interval(found, np.full((len(found), 1), self.noise), level)


def _probabilities(member: Any, classes: np.ndarray, X: Any) -> np.ndarray:
    """(n, k) in the order of `classes`; a class a member has not seen has probability zero."""
    said = np.asarray(member.predict_proba(X), dtype=np.float64)
    if np.array_equal(member.classes_, classes):
        return said
    found = np.zeros((len(said), len(classes)))
    found[:, np.searchsorted(classes, member.classes_)] = said
    return found


class Drawn(NamedTuple):
    """How often each member sees each row (k, n); None where all see all."""

    counts: np.ndarray | None

    def of(self, member: int) -> np.ndarray | None:
        """The counts of one member."""
        return None if self.counts is None else self.counts[member]


def fit_ensemble(
    wrapper: Any, task: Task, members: int, seed: int
) -> tuple[Any, Ensemble, list[Claim]]:
    """Fit the members; first comes the estimator fitted to all rows, or else the first member."""
    if task.classes is not None and not hasattr(wrapper.estimator, "predict_proba"):
        raise InputError(
            f"{type(wrapper.estimator).__name__} has no predict_proba",
            "a classifier with probabilities to average",
            "Wrap it first: wl.CalibratedClassifier(estimator)",
        )
    generator = np.random.default_rng(seed)
    drawn = Drawn(_counts(task, members, generator) if wrapper.bootstrap else None)
    seeds = generator.integers(2**31 - 1, size=members)
    whole = _whole(wrapper, task, drawn)
    together = _together(wrapper, whole, task, drawn, seeds)
    fitted = _one_by_one(wrapper, task, drawn, seeds) if together is None else together
    estimator = fitted[0] if whole is None else whole
    if drawn.counts is None:
        _refuse_copies(Ensemble(list(fitted)), estimator, task)
    error = _left_out(fitted, estimator, task, drawn)
    noise = error if task.classes is None and np.isfinite(error) else 0.0
    claims = _claims(members, together is not None, error, classes=task.classes is not None)
    return estimator, Ensemble(list(fitted), float(noise)), claims


def _whole(wrapper: Any, task: Task, drawn: Drawn) -> Any:
    """The fit to all rows, where members start from it; else None."""
    starts = drawn.counts is not None and hasattr(wrapper.estimator, "_replicates")
    return fit_on(wrapper.estimator, task) if starts else None


def _refuse_copies(ensemble: Ensemble, estimator: Any, task: Task) -> None:
    """Seeds that change nothing make no ensemble."""
    said = ensemble.members(estimator, take(task.X, np.arange(min(len(task.y), 100))), 0)
    if np.all(said == said[:1]):
        raise InputError(
            f"bootstrap=False, but no part of {type(estimator).__name__} draws numbers: all "
            "members are the same",
            "an estimator with a random_state that matters",
            "Pass bootstrap=True",
        )


def _counts(task: Task, members: int, generator: np.random.Generator) -> np.ndarray:
    """How often each row is drawn (k, n), within classes."""
    n = len(task.y)
    groups = [np.arange(n)]
    if task.codes is not None:
        groups = [np.flatnonzero(task.codes == code) for code in range(len(task.classes))]
    counts = np.zeros((members, n))
    for rows in groups:
        for k in range(members if len(rows) else 0):
            picked = generator.integers(len(rows), size=len(rows), dtype=np.int32)
            counts[k, rows] = np.bincount(picked, minlength=len(rows))
    return counts


def _seeds(estimator: Any) -> list[str]:
    """Parameters that are seeds, nested ones too."""
    parameters = estimator.get_params(deep=True)
    return [name for name in parameters if name.rpartition("__")[2] == "random_state"]


def _together(
    wrapper: Any, whole: Any, task: Task, drawn: Drawn, seeds: np.ndarray
) -> Sequence[Any] | None:
    """All members in one run, where the estimator offers it; None where it does not.

    `_replicates` fits many weightings of the same rows; `_fit_together` (of networks) trains many
    members, each on rows and from a seed of its own, in one program.
    """
    if whole is not None:
        weights = drawn.counts if task.weight is None else drawn.counts * task.weight
        return whole._replicates(task.X, task.y, weights)
    estimator = wrapper.estimator
    if not hasattr(estimator, "_fit_together") or task.fit.keys() - {"sample_weight"}:
        return None
    tasks = [
        Fit(_seeded(estimator, int(seed)), _rows(drawn.of(k), len(task.y)))
        for k, seed in enumerate(seeds)
    ]
    try:
        found = type(estimator)._fit_together(tasks, task.X, task.y, task.weight)
    except NotTogether:
        return None
    return None if any(isinstance(one, Exception) for one in found) else list(found)


def _rows(counts: Any, n: int) -> np.ndarray:
    """Row numbers, each as often as it was drawn."""
    return np.arange(n) if counts is None else np.repeat(np.arange(n), counts.astype(int))


def _seeded(estimator: Any, seed: int) -> Any:
    """A clone whose parts draw from a seed."""
    fresh = clone(estimator)
    return fresh.set_params(**dict.fromkeys(_seeds(fresh), seed))


def _one_by_one(wrapper: Any, task: Task, drawn: Drawn, seeds: np.ndarray) -> list[Any]:
    name = weight_name(wrapper.estimator)
    return [
        _member(wrapper.estimator, task, drawn.of(k), int(seed), name)
        for k, seed in enumerate(seeds)
    ]


def _member(estimator: Any, task: Task, counts: Any, seed: int, name: str | None) -> Any:
    fresh = _seeded(estimator, seed)
    if counts is None:
        return fresh.fit(task.X, task.y, **task.fit)
    if name is not None:
        weight = counts if task.weight is None else counts * task.weight
        return fresh.fit(task.X, task.y, **{**task.fit, name: weight})
    rows = _rows(counts, len(task.y))
    return fresh.fit(take(task.X, rows), task.y[rows])


def _left_out(fitted: Sequence[Any], estimator: Any, task: Task, drawn: Drawn) -> float:
    """Mean squared error, or log loss, of the average over members that have not seen the row."""
    unseen = np.ones((len(fitted), len(task.y)), bool)
    if drawn.counts is not None:
        unseen = drawn.counts == 0
    rows = np.flatnonzero(unseen.any(axis=0))
    if not len(rows):
        return np.nan
    rows = rows[:: -(-len(rows) // JUDGED)]
    said = Ensemble(list(fitted)).members(estimator, take(task.X, rows), 0)
    share = unseen[:, rows] / unseen[:, rows].sum(axis=0)
    omega = np.ones(len(rows)) if task.weight is None else task.weight[rows]
    if not omega.sum() > 0:
        return np.nan
    if task.classes is None:
        return float(np.average((task.y[rows] - (share * said).sum(axis=0)) ** 2, weights=omega))
    average = (share[:, :, None] * said).sum(axis=0)
    own = np.maximum(average[np.arange(len(rows)), task.codes[rows]], np.finfo(float).tiny)
    return float(np.average(-np.log(own), weights=omega))


def _claims(members: int, together: bool, error: float, *, classes: bool) -> list[Claim]:  # noqa: FBT001
    how = "in one run" if together else "one after the other"
    what = "log loss" if classes else "squared error"
    return [
        Claim.fact("solver", "ensemble", f"{members} members fitted {how}"),
        Claim.fact("members", members, "fits that predictions average over"),
        Claim.fact("together", together, "whether one run fitted all members"),
        Claim.fact(
            "out_of_bag_error",
            error,
            f"mean {what} of each row by the members that have not seen it",
        ),
    ]
