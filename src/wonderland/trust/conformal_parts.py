"""What conformal classifiers and regressors share: rows kept apart, groups, weights for a shift.

The guarantee needs calibration rows that the model has not seen, chosen without looking at them.
A split is therefore a plain random one; folds are shuffled.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from wonderland.core.errors import InputError, InputTypeError, nearest, optional
from wonderland.core.evidence import plain
from wonderland.core.random import seed_of
from wonderland.shell.explain import explained
from wonderland.trust.quantiles import Ordered, ordered, rank_of, smallest_sample, stream
from wonderland.trust.wrapper import Split, Task, splits

__all__ = [
    "Extras",
    "Groups",
    "calibration_folds",
    "calibration_split",
    "check_choice",
    "check_rows",
    "fit_shift",
    "read_groups",
    "shift_weights",
]

SHARE = 0.25  # of the rows kept for calibration, where cv does not say


class Extras(NamedTuple):
    """What `fit` was given besides X, y and sample weights; all may be None.

    Attributes:
        groups: The group of each row (n,).
        weights: Likelihood ratio of each row (n,).
        X_target: Unlabelled rows of the distribution that predictions will be made for.
    """

    groups: Any = None
    weights: Any = None
    X_target: Any = None


def check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a word that is none of those known."""
    if not isinstance(value, str) or value not in known:
        raise InputError(
            f"{name} is {value!r}", f"one of {', '.join(known)}", nearest(value, known)
        )


def calibration_split(cv: Any, task: Task, alpha: float, seed: int) -> Split:
    """Rows to learn from and rows to calibrate on.

    Args:
        cv: None: a quarter of the rows, more where the level needs more, at most half; a share
            between 0 and 1; a splitter or iterable, whose first split is taken.
        task: The data.
        alpha: The level.
        seed: Of the shuffle.
    """
    n = len(task.y)
    if cv is None or (isinstance(cv, float | np.floating) and 0.0 < cv < 1.0):
        most = n // 2 if cv is None else n - 1
        wanted = max(round(SHARE * n), smallest_sample(alpha)) if cv is None else round(cv * n)
        count = min(max(wanted, 1), most)
        order = stream(seed, "split").permutation(n)
        return Split(np.sort(order[count:]), np.sort(order[:count]))
    if isinstance(cv, int | float | np.number):
        raise InputError(
            f"cv is {cv!r} with method='split'",
            'a share of the rows between 0 and 1, a splitter, "prefit", or None for a quarter',
            "Pass cv=0.25, or a method that uses folds",
        )
    source = cv.split(np.empty((n, 0)), task.y, **task.split) if hasattr(cv, "split") else cv
    return Split(*(np.asarray(part) for part in next(iter(source))))


def calibration_folds(wrapper: Any, task: Task, seed: int) -> list[Split]:
    """Folds in which each row is tested once: shuffled for a number, else as the splitter says."""
    cv = 5 if wrapper.cv is None else wrapper.cv
    if not isinstance(cv, int | np.integer) or isinstance(cv, bool):
        return splits(wrapper, task)
    n = len(task.y)
    if not 2 <= cv <= n:
        raise InputError(
            f"cv is {cv} for {n} samples (n_samples = {n})",
            "at least 2 folds and at most one for each sample",
            "Pass cv=5, or more rows",
        )
    stratify = task.codes is not None and np.bincount(task.codes).max() >= cv
    few = task.codes is not None and np.bincount(task.codes).min() < cv
    kind = StratifiedKFold if stratify and not few else KFold
    source = kind(int(cv), shuffle=True, random_state=int(stream(seed, "folds").integers(2**32)))
    found = explained(lambda: list(source.split(np.empty((n, 0)), task.codes)))
    return [Split(*part) for part in found]


def check_rows(count: int, alpha: float, where: str = "") -> None:
    """Refuse a calibration sample too small for a finite quantile at this level."""
    least = smallest_sample(alpha)
    if count < least:
        raise InputError(
            f"{count} calibration rows{where} for alpha={alpha:g}: no finite threshold reaches "
            f"{1 - alpha:.4g} coverage (n_samples = {count})",
            f"at least {least} calibration rows{where} (the smallest whole number with "
            "n ≥ 1/alpha − 1)",
            f"Pass alpha ≥ {1 / (count + 1):.3g}, more rows, or a larger share of them in cv",
        )


class Groups(NamedTuple):
    """Calibration scores apart for each group, or for each class; one group when there are none.

    Attributes:
        names: The groups, sorted (g,); None where all rows are one group.
        parts: For each group the ordered scores of each fold (one for a split).
    """

    names: np.ndarray | None
    parts: tuple[tuple[Ordered, ...], ...]

    @classmethod
    def of(
        cls,
        scores: Sequence[np.ndarray],
        groups: Sequence[np.ndarray] | None,
        weights: np.ndarray | None = None,
        names: np.ndarray | None = None,
    ) -> "Groups":
        """Order scores (one array for each fold) within each group.

        Args:
            scores: For each fold its scores.
            groups: For each fold the groups of its rows.
            weights: Weights of the rows, for a single fold.
            names: The groups there are; None for those that occur.
        """
        if groups is None:
            return cls(None, (tuple(ordered(part, weights) for part in scores),))
        names = np.unique(np.concatenate(groups)) if names is None else names
        return cls(names, tuple(_inside(scores, groups, weights, name) for name in names))

    @property
    def counts(self) -> np.ndarray:
        """Calibration rows of each group (g,)."""
        return np.array([sum(len(part) for part in group) for group in self.parts])

    def check(self, alpha: float, what: str = "group", labels: Any = None) -> None:
        """Refuse a level for which some group has too few rows.

        Args:
            alpha: The level.
            what: "group" or "class", for the message.
            labels: The names to show.
        """
        labels = plain(self.names if labels is None else labels)
        for number, count in enumerate(self.counts):
            where = "" if labels is None else f" in {what} {labels[number]!r}"
            check_rows(int(count), alpha, where)

    def quantiles(self, alpha: float) -> np.ndarray:
        """The quantile of each group (g,), of all its scores together."""
        return np.array([_joined(group).quantile(alpha).item() for group in self.parts])

    def ranks(self, alpha: float) -> np.ndarray:
        """⌈(n_g + 1)(1 − α)⌉ (g,)."""
        return np.array([rank_of(int(count), alpha) for count in self.counts])

    def bounds(self, alpha: float, codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The quantile for each row: (1,) where all share one, else (m,).

        Args:
            alpha: The level.
            codes: The group of each row (m,).
            weights: ω of each row (m,), for weighted scores.
        """
        if weights is None:
            found = self.quantiles(alpha)
            return found if self.names is None else found[codes]
        found = np.empty(len(codes))
        for number, group in enumerate(self.parts):
            rows = codes == number
            found[rows] = _joined(group).quantile(alpha, weights[rows])
        return found

    def label_bounds(self, alpha: float, weights: np.ndarray | None) -> np.ndarray:
        """The quantile for each label where groups are classes: (1, k), or (m, k) with weights."""
        if weights is None:
            return self.quantiles(alpha)[None, :]
        return np.column_stack([_joined(group).quantile(alpha, weights) for group in self.parts])

    @property
    def plain(self) -> bool:
        """One split, no groups, no weights: coverage given the scores is Beta distributed."""
        single = self.names is None and len(self.parts[0]) == 1
        return single and self.parts[0][0].mass is None

    def places(self, groups: np.ndarray | None, count: int) -> np.ndarray:
        """The number of each row's group (m,); refuses groups that were not calibrated."""
        if self.names is None:
            return np.zeros(count, dtype=int)
        if groups is None:
            # Classes are looked up by label, not by row.
            return np.zeros(count, dtype=int)
        place = np.minimum(np.searchsorted(self.names, groups), len(self.names) - 1)
        strange = np.flatnonzero(self.names[place] != groups)
        if strange.size:
            raise InputError(
                f"row {strange[0]} is in group {plain(groups)[strange[0]]!r}, which no calibration "
                "row is in",
                f"one of the groups {', '.join(map(repr, self.names[:8].tolist()))}",
                "Calibrate with rows of that group, or merge it with another",
            )
        return place


def typical(calibration: Groups, weights: np.ndarray | None) -> tuple[np.ndarray, Any]:
    """One row of each group, of mean weight: what a single threshold is reported for."""
    count = len(calibration.parts)
    mean = None if weights is None else np.full(count, weights.mean())
    return np.arange(count), mean


def _inside(
    scores: Sequence[np.ndarray], groups: Sequence[np.ndarray], weights: Any, name: Any
) -> tuple[Ordered, ...]:
    """The ordered scores of one group, fold by fold."""
    kept = [own == name for own in groups]
    inside = None if weights is None else weights[kept[0]]
    return tuple(ordered(s[keep], inside) for s, keep in zip(scores, kept, strict=True))


def _joined(parts: Sequence[Ordered]) -> Ordered:
    return parts[0] if len(parts) == 1 else ordered(np.concatenate([p.scores for p in parts]))


def read_groups(groups: Any, X: Any, given: Any, count: int) -> np.ndarray | None:
    """The group of each row (n,), from an array, a callable of X, or a column of X."""
    if given is not None:
        found = np.asarray(given)
    elif groups is None:
        return None
    elif callable(groups):
        found = np.asarray(groups(X))
    else:
        found = np.asarray(explained(lambda: _safe_indexing(X, groups, axis=1), X=X))
    if found.shape != (count,):
        raise InputError(
            f"groups have shape {found.shape}",
            f"one group for each of the {count} rows",
            "Pass an array, a column of X, or a callable X → (n,)",
        )
    return found


def fit_shift(shift: Any, X: Any, target: Any) -> Callable[[Any], np.ndarray] | Any:
    """What tells the likelihood ratio of rows: a callable as it is, a classifier fitted.

    Args:
        shift: None, a callable X → ω (n,), a classifier, or "estimate" for logistic regression.
        X: Rows of the calibration distribution.
        target: Rows of the distribution to be predicted for.
    """
    if shift is None or (callable(shift) and not hasattr(shift, "fit")):
        return shift
    if target is None:
        raise InputError(
            "shift asks for the likelihood ratio to be estimated, but X_target is None",
            "unlabelled rows of the distribution that predictions are for",
            "Pass fit(X, y, X_target=...), or a callable X → weights as shift",
        )
    if shift == "estimate":
        shift = make_pipeline(StandardScaler(), LogisticRegression())
    if not is_classifier(shift):
        raise InputTypeError(
            f"shift is {shift!r}",
            'None, "estimate", a classifier, or a callable X → (n,)',
            'Pass shift="estimate"',
        )
    rows = len(target) if not sp.issparse(target) else target.shape[0]
    count = X.shape[0] if hasattr(X, "shape") else len(X)
    return clone(shift).fit(_stack(X, target), np.repeat([0, 1], [count, rows]))


def _stack(first: Any, second: Any) -> Any:
    """Two tables one upon the other, of whatever kind they are."""
    if sp.issparse(first) or sp.issparse(second):
        return sp.vstack([first, second]).tocsr()
    if hasattr(first, "iloc"):
        return optional("pandas", "frames").concat([first, second], ignore_index=True)
    return np.concatenate([np.asarray(first), np.asarray(second)])


def shift_weights(shift: Any, X: Any, given: Any, count: int) -> np.ndarray | None:
    """ω of each row (n,): given, told by a callable, or the odds of a fitted classifier."""
    if given is None and shift is None:
        return None
    if given is not None:
        weights = np.asarray(given, dtype=np.float64)
    elif hasattr(shift, "predict_proba"):
        p = np.clip(shift.predict_proba(X)[:, 1], 1e-9, 1 - 1e-9)
        weights = p / (1 - p)
    else:
        weights = np.asarray(shift(X), dtype=np.float64)
    if weights.shape != (count,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise InputError(
            f"weights of shape {weights.shape}"
            + (f", the least {np.min(weights):g}" if weights.size else ""),
            f"one finite likelihood ratio ≥ 0 for each of the {count} rows",
            "Check the callable, or pass weights=dQ/dP up to a constant factor",
        )
    return weights


def fixed_seed(random_state: Any) -> int:
    """One seed for a whole fit, kept so that predictions can be repeated."""
    return seed_of(random_state) % 2**32
