"""Many fits of a search at once: who can be fitted together, and how the search gets the results.

An estimator that can fit many settings in one program has two methods:

    _together_key() -> Hashable
        What must be equal for two settings to share a program: shapes, and whatever is no number.
    _fit_together(tasks, X, y, sample_weight) -> list of fitted estimators, in the order of `tasks`
        X (n, d), y (n,) and the weights are those of the whole table as the user gave them; every
        task names its own training rows. A fit that failed is an exception in its place. Raises
        `NotTogether` with the reason where it cannot.

A `Bank` fits all (candidate, fold) pairs before scikit-learn asks for the first of them; a `Member`
stands in the search for the estimator, and its `fit` takes the next fitted one from the bank. All
the rest (scoring, errors, the table of results, refitting) stays scikit-learn's.
"""

import time
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags

__all__ = ["Bank", "Member", "NotTogether", "Split", "Task", "can_share"]

Split = tuple[np.ndarray, np.ndarray]


class NotTogether(Exception):  # noqa: N818  # nothing is wrong: it is the reason for another way
    """Why these settings cannot share one program."""


class Task(NamedTuple):
    """One fit of a search: an unfitted estimator and the rows (n_i,) it learns from."""

    estimator: Any
    rows: np.ndarray


class _Outcome(NamedTuple):
    """What became of one task: a fitted estimator, or the error of its fit, and its time."""

    rows: np.ndarray
    fitted: Any
    error: Exception | None
    seconds: float


def can_share(estimator: Any) -> bool:
    """Whether settings of this estimator, or of a pipeline that ends in it, can share a program."""
    return hasattr(_last(estimator), "_fit_together")


def _last(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


class Bank:
    """Fits the candidates of a search on all folds, as many as possible in one program.

    Args:
        estimator: The estimator of the search; cloned for each task.
        X: The whole table (n, d), as the user gave it.
        y: Targets (n,) or (n, t).
        sample_weight: (n,) or None.

    Attributes:
        seconds: The time of each fit in the order of the search; a shared program's is divided.
        programs: How many groups of fits shared a program.
        shared: How many fits they were.
        short: How many fits ended short of their standard, by their own status.
        reasons: Why others were fitted one by one, each reason once.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
        self._data = X, y, sample_weight
        self.estimator = estimator
        self.seconds: list[float] = []
        self.programs = self.shared = self.short = 0
        self.reasons: list[str] = []
        self._ready: deque[_Outcome] = deque()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # members of one search share it, also after `clone`

    def train(self, candidates: Sequence[Mapping[str, Any]], splits: Sequence[Split]) -> None:
        """Fit every candidate on every fold, candidates outermost, as the search will ask."""
        tasks = [
            Task(clone(self.estimator).set_params(**clone(dict(c), safe=False)), train)
            for c in candidates
            for train, _ in splits
        ]
        outcomes: list[_Outcome | None] = [None] * len(tasks)
        for group in _grouped(tasks, candidates, len(splits)):
            for index, outcome in zip(group, self._fit([tasks[i] for i in group]), strict=True):
                outcomes[index] = outcome
        self._ready.extend(outcome for outcome in outcomes if outcome is not None)
        self.seconds += [outcome.seconds for outcome in self._ready]
        self.short += sum(_fell_short(outcome.fitted) for outcome in self._ready)

    def take(self, rows: np.ndarray) -> Any:
        """The next fitted estimator in the order of the search; its error, if it had one."""
        outcome = self._ready.popleft()
        if not np.array_equal(outcome.rows, rows):
            raise RuntimeError(
                "The search asked for other rows than were trained on. Expected the folds it was "
                "given. Please report this with the splitter (`cv`) that was used."
            )
        if outcome.error is not None:
            raise outcome.error
        return outcome.fitted

    @property
    def empty(self) -> bool:
        """Whether all that was fitted has been taken."""
        return not self._ready

    def _fit(self, tasks: Sequence[Task]) -> list[_Outcome]:
        """Fit one group of tasks in one program, or one by one with the reason noted."""
        start = time.perf_counter()
        try:
            fitted = _share(tasks, *self._data)
        except NotTogether as reason:
            self._note(str(reason))
        except Exception:
            # Which setting is at fault, and with what message, shows when each is tried alone.
            self._note("a fit failed, so that each was tried alone")
        else:
            self.programs, self.shared = self.programs + 1, self.shared + len(tasks)
            seconds = (time.perf_counter() - start) / len(tasks)
            return [_Outcome(t.rows, f, None, seconds) for t, f in zip(tasks, fitted, strict=True)]
        return [_alone(task, *self._data) for task in tasks]

    def _note(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)


def _fell_short(fitted: Any) -> bool:
    status = getattr(_last(fitted), "status_", None)
    return status is not None and not status.ok


def _outcome(task: Task, fitted: Any, seconds: float) -> _Outcome:
    if isinstance(fitted, Exception):
        return _Outcome(task.rows, None, fitted, seconds)
    return _Outcome(task.rows, fitted, None, seconds)


def _grouped(
    tasks: Sequence[Task], candidates: Sequence[Mapping[str, Any]], splits: int
) -> Iterable[list[int]]:
    """Indices of tasks that may share a program, in order of their first appearance."""
    groups: dict[Hashable, list[int]] = {}
    for index, task in enumerate(tasks):
        groups.setdefault(_key(task.estimator, candidates[index // splits]), []).append(index)
    return groups.values()


def _key(estimator: Any, candidate: Mapping[str, Any]) -> Hashable:
    """The estimator's own key; in a pipeline also what the candidate changes before its end."""
    key = _last(estimator)._together_key()
    if not isinstance(estimator, Pipeline):
        return key
    last = f"{estimator.steps[-1][0]}__"
    before = sorted((k, repr(v)) for k, v in candidate.items() if not k.startswith(last))
    return key, tuple(before)


def _share(tasks: Sequence[Task], X: Any, y: Any, sample_weight: Any) -> list[Any]:
    first = tasks[0].estimator
    if isinstance(first, Pipeline):
        return _share_pipeline(tasks, X, y, sample_weight)
    return list(type(first)._fit_together(tasks, X, y, sample_weight))


def _share_pipeline(tasks: Sequence[Task], X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Fit the steps before the last once per fold, then all last steps together.

    The transformed training rows of the folds are stacked into one table, in which every task has
    rows of its own: copies of the folds, not of the candidates.
    """
    if sample_weight is not None:
        raise NotTogether("a pipeline hands sample weights to steps by name")
    folds: dict[bytes, tuple[Pipeline | None, np.ndarray]] = {}
    tables: list[np.ndarray] = []
    targets: list[Any] = []
    offset = 0
    for task in tasks:
        if (fold := task.rows.tobytes()) in folds:
            continue
        steps = clone(task.estimator)[:-1]
        table, target = _safe_indexing(X, task.rows), _safe_indexing(y, task.rows)
        if len(steps):
            table = steps.fit_transform(table, target)
        if not isinstance(table, np.ndarray):
            raise NotTogether("the steps before the last give no NumPy array")
        folds[fold] = steps, np.arange(offset, offset + len(table))
        tables, targets, offset = [*tables, table], [*targets, target], offset + len(table)
    if len({table.shape[1] for table in tables}) > 1:
        raise NotTogether("the steps before the last give each fold columns of its own")
    inner = [Task(_last(t.estimator), folds[t.rows.tobytes()][1]) for t in tasks]
    fitted = _share(inner, np.concatenate(tables), np.concatenate(targets), None)
    return [
        _joined(t.estimator, folds[t.rows.tobytes()][0], last)
        for t, last in zip(tasks, fitted, strict=True)
    ]


def _joined(pipeline: Pipeline, fitted: Pipeline | None, last: Any) -> Any:
    """The pipeline with its fitted beginning and its fitted last step; the error of that step."""
    if isinstance(last, Exception):
        return last
    pipeline.steps = [*(fitted.steps if fitted else ()), (pipeline.steps[-1][0], last)]
    return pipeline


def _alone(task: Task, X: Any, y: Any, sample_weight: Any) -> _Outcome:
    """Fit one task by itself; an error is kept for the moment the search asks for this fit."""
    start = time.perf_counter()
    weights = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
    chosen = {name: value[task.rows] for name, value in weights.items()}
    error, fitted = None, None
    try:
        target = None if y is None else _safe_indexing(y, task.rows)
        fitted = task.estimator.fit(_safe_indexing(X, task.rows), target, **chosen)
    except Exception as caught:
        error = caught
    return _Outcome(task.rows, fitted, error, time.perf_counter() - start)


class Member(BaseEstimator):
    """Stands for an estimator in a search whose fits come from a bank.

    Args:
        estimator: What it stands for; parameters and tags are its own.
        bank: Where `fit` takes the fitted one from.
    """

    def __init__(self, estimator: Any, bank: Bank) -> None:
        self.estimator = estimator
        self.bank = bank

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  # as scikit-learn
        """The parameters of the estimator it stands for."""
        return self.estimator.get_params(deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator it stands for."""
        self.estimator.set_params(**params)
        return self

    def fit(self, X: Any, y: Any = None, *, rows: np.ndarray | None = None, **params: Any) -> Self:
        """Take the fitted estimator for these rows; fit when the bank has none left (refitting)."""
        if rows is None or self.bank.empty:
            self.estimator.fit(X, y, **params)
        else:
            self.estimator = self.bank.take(rows)
        return self

    def __sklearn_clone__(self) -> "Member":
        return Member(clone(self.estimator), self.bank)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in {"estimator", "bank"}:
            raise AttributeError(name)
        return getattr(self.estimator, name)
