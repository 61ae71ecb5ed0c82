"""The base of estimators that wrap another, of any kind that has scikit-learn's manners.

A wrapper is itself an estimator: it is cloned, searched over (`estimator__C`), put into pipelines
and asked for its tags, which are those of what it wraps. X is never touched here: whatever the
wrapped estimator reads (text, frames, sparse tables), the wrapper takes. A subclass has `_fit`,
which gets a `Task` and returns the fitted attributes, `estimator_` among them.

    prefit(self)                 the estimator as it came, for cv="prefit", or None
    fit_on(estimator, task)      a fitted clone, on all rows or on some
    splits(self, task)           the (train, test) pairs of `cv`
    held_out(parts, fitted, read)  each row read by the clone that has not seen it
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_is_fitted,
    column_or_1d,
)

from wonderland.core.errors import InputError, InputTypeError
from wonderland.shell.containers import wrap
from wonderland.shell.estimator import Estimator
from wonderland.shell.explain import explained, refuse_non_finite
from wonderland.shell.inputs import read_weight, target_names
from wonderland.trust.routed import is_splitter, routed

__all__ = [
    "ClassifierWrapper",
    "NotFittedInputError",
    "RegressorWrapper",
    "Split",
    "Task",
    "Wrapper",
    "class_codes",
    "fit_on",
    "held_out",
    "prefit",
    "splits",
    "take",
]


class NotFittedInputError(InputError, NotFittedError):
    """An estimator handed over as fitted that is not: also scikit-learn's NotFittedError."""


class Task(NamedTuple):
    """Training data of a wrapper.

    Attributes:
        X: As it came, n rows: the wrapped estimator reads it.
        y: Labels or numbers (n,).
        classes: The labels, sorted (k,); None for numbers.
        codes: (n,) whole numbers: y = classes[codes]; None for numbers.
        weight: (n,) ≥ 0, or None.
        fit: What goes to the wrapped estimator's `fit` besides X and y, weights included.
        split: What goes to the splitter's `split`.
    """

    X: Any
    y: np.ndarray
    classes: Any
    codes: Any
    weight: np.ndarray | None
    fit: dict[str, Any]
    split: dict[str, Any]

    def rows(self, rows: np.ndarray) -> "Task":
        """The same task on some of the rows; the classes stay those of all."""
        codes = None if self.codes is None else self.codes[rows]
        weight = None if self.weight is None else self.weight[rows]
        fit = _check_method_params(self.X, self.fit, rows)
        return Task(take(self.X, rows), self.y[rows], self.classes, codes, weight, fit, self.split)


class Split(NamedTuple):
    """Rows to learn from and rows kept apart."""

    train: np.ndarray
    test: np.ndarray


def take(X: Any, rows: np.ndarray) -> Any:
    """Rows of whatever table X is."""
    return _safe_indexing(X, rows)


class Wrapper(MetaEstimatorMixin, Estimator):
    """An estimator around the one in its parameter `estimator`.

    Attributes:
        estimator_: The fitted estimator inside.
        n_features_in_: Its number of columns, where it knows.
        feature_names_in_: Their names, where it knows.
        evidence_: What was measured about the wrapper's own promise.
        status_: How its fit ended.
    """

    estimator: Any

    def __sklearn_tags__(self) -> Any:
        """The tags of what is wrapped, about data; the kind of estimator is the wrapper's."""
        tags = super().__sklearn_tags__()
        inner = _tags(self.estimator)
        if inner is not None:
            tags.input_tags, tags.no_validation = inner.input_tags, inner.no_validation
            tags.non_deterministic = inner.non_deterministic
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """To whom the further arguments of `fit` go, where scikit-learn's routing is enabled."""
        fit_to = MethodMapping().add(caller="fit", callee="fit")
        split_to = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        router = router.add(estimator=self.estimator, method_mapping=fit_to)
        splitter = getattr(self, "cv", None)
        if is_splitter(splitter):
            router = router.add(splitter=splitter, method_mapping=split_to)
        return router

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the wrapped estimator (unless it came fitted) and what stands around it.

        Args:
            X: (n, …): whatever the wrapped estimator takes.
            y: (n,).
            sample_weight: (n,) weights ≥ 0, for both.
            **fit_params: Further arguments of the wrapped estimator's `fit`; what has one entry
                for each row is split along.

        Returns:
            The fitted estimator.
        """
        return self._transact(X, y, sample_weight, fit_params)

    def _learn(self, *data: Any) -> dict[str, Any]:
        X, y, sample_weight, fit_params = data
        _check_inner(self.estimator)
        task = self._read_task(X, y, sample_weight, fit_params)
        for name in _DELEGATED:  # an earlier fit's: this one's come from its own estimator
            self.__dict__.pop(name, None)
        learned = self._fit(task)
        inner = learned["estimator_"]
        known = {name: getattr(inner, name) for name in _DELEGATED if hasattr(inner, name)}
        fixed: dict[str, Any] = {"target_names_": target_names(y, task.y)}
        if task.classes is not None:
            fixed["classes_"] = task.classes
        return {**fixed, **known, **learned}

    def _read_task(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> Task:
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None",
                "a target for every row",
                "Pass fit(X, y)",
            )
        target = explained(lambda: column_or_1d(y, warn=True), y=y)
        X, target = explained(lambda: tuple(indexable(X, target)), X=X, y=y)
        weight = read_weight(sample_weight, X)
        fit, split = routed(self, X, weight, params)
        target, classes, codes = self._read_target(np.asarray(target))
        if codes is not None and weight is not None and prefit(self) is None:
            _refuse_one_class(codes[weight > 0], classes)
        return Task(X, target, classes, codes, weight, fit, split)

    @abstractmethod
    def _read_target(self, y: np.ndarray) -> tuple[np.ndarray, Any, Any]:
        """The validated target, and its classes and codes where it has such."""

    @abstractmethod
    def _fit(self, task: Task) -> dict[str, Any]:
        """Fit, and return the fitted attributes; `estimator_` is one of them."""

    @property
    def _inner(self) -> Any:
        """The fitted estimator inside; scikit-learn's NotFittedError before `fit`."""
        check_is_fitted(self)
        return self.estimator_


class ClassifierWrapper(ClassifierMixin, Wrapper):
    """A wrapper around a classifier.

    Attributes:
        classes_: The labels, sorted (k,); with cv="prefit" those of the wrapped classifier.
    """

    classes_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        """As the wrapped classifier."""
        tags = super().__sklearn_tags__()
        inner = _tags(self.estimator)
        if inner is not None and inner.classifier_tags is not None:
            tags.classifier_tags = inner.classifier_tags
        return tags

    def _read_target(self, y: np.ndarray) -> tuple[np.ndarray, Any, Any]:
        if y.dtype.kind == "f":
            refuse_non_finite(y, what="y")
        explained(lambda: check_classification_targets(y), y=y)
        ready = prefit(self)
        classes = np.unique(y) if ready is None else np.asarray(ready.classes_)
        if len(classes) < 2:
            raise InputError(
                f"y holds one class only: all {len(y)} labels are {_listed(classes)}",
                "at least 2 classes",
                "Check the target column and the filter before it",
            )
        return y, classes, class_codes(y, classes)

    def _labelled(self, values: np.ndarray, X: Any) -> Any:
        """Columns of values (n, k) named for the classes, in the container of `set_output`."""
        container = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        return wrap(values, container, X, [str(label) for label in self.classes_])


class RegressorWrapper(RegressorMixin, Wrapper):
    """A wrapper around a regressor of one target."""

    def __sklearn_tags__(self) -> Any:
        """As the wrapped regressor."""
        tags = super().__sklearn_tags__()
        inner = _tags(self.estimator)
        if inner is not None and inner.regressor_tags is not None:
            tags.regressor_tags = inner.regressor_tags
        return tags

    def _read_target(self, y: np.ndarray) -> tuple[np.ndarray, Any, Any]:
        numbers = explained(lambda: np.asarray(y, dtype=np.float64), y=y)
        refuse_non_finite(numbers, what="y")
        return numbers, None, None


_DELEGATED = ("n_features_in_", "feature_names_in_")


def _tags(estimator: Any) -> Any:
    """Tags of an estimator; None for one that has none (a class of one's own)."""
    return get_tags(estimator) if hasattr(estimator, "__sklearn_tags__") else None


def _check_inner(estimator: Any) -> None:
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise InputTypeError(
            f"estimator is {estimator!r}",
            "an estimator: an object with `fit` and predictions",
            "Pass an instance, for instance wl.LogisticRegression()",
        )


def class_codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The number of each label among sorted classes (n,); refuses labels that are not there."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        rows = np.flatnonzero(np.isin(y, unknown))
        raise InputError(
            f"y holds labels that the estimator does not know: {_listed(unknown)}, "
            f"first in row {rows[0]}",
            f"the labels it has learned: {_listed(classes)}",
            "Drop those rows, or fit the estimator on data with these labels",
        )
    order = np.argsort(classes)
    return order[np.searchsorted(classes, y, sorter=order)]


def _refuse_one_class(codes: np.ndarray, classes: np.ndarray) -> None:
    """Rows of weight 0 are not there: what is left must still hold two classes."""
    if np.all(codes == codes[0]):
        raise InputError(
            f"all rows of positive weight are of one class, {_listed(classes[codes[:1]])}",
            "at least 2 classes among them",
            "Check sample_weight, and the filter before it",
        )


def _listed(labels: np.ndarray, shown: int = 8) -> str:
    text = ", ".join(repr(label) for label in labels[:shown].tolist())
    return text if len(labels) <= shown else f"{text} and {len(labels) - shown} more"


def prefit(wrapper: Any) -> Any:
    """The estimator that came fitted, where cv="prefit" says so; else None.

    It is refused, in three parts, when it is not fitted after all.
    """
    cv = getattr(wrapper, "cv", None)
    if not isinstance(cv, str):
        return None
    if cv != "prefit":
        raise InputError(
            f"cv is {cv!r}",
            'a number of folds, a splitter, an iterable of (train, test), or "prefit"',
            'Pass cv=5, or cv="prefit" with an estimator that is fitted',
        )
    estimator = wrapper.estimator
    if not hasattr(estimator, "classes_"):
        try:
            check_is_fitted(estimator)
        except (NotFittedError, TypeError) as error:
            raise NotFittedInputError(
                f'cv="prefit", but this {type(estimator).__name__} is not fitted',
                "an estimator fitted on data that is not passed here",
                "Fit it before, or pass cv=5 to have it fitted inside",
            ) from error
    return estimator


def fit_on(estimator: Any, task: Task, rows: np.ndarray | None = None) -> Any:
    """A clone of the estimator fitted on the task, or on some of its rows."""
    task = task if rows is None else task.rows(rows)
    return clone(estimator).fit(task.X, task.y, **task.fit)


def splits(wrapper: Any, task: Task) -> list[Split]:
    """The folds of `wrapper.cv`: of classes, each in every fold; the order of rows is kept."""
    cv, n = wrapper.cv, _num_samples(task.X)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        _check_folds(int(cv), task)
    splitter = explained(lambda: check_cv(cv, task.y, classifier=task.classes is not None))
    found = [Split(*part) for part in splitter.split(np.empty((n, 0)), task.y, **task.split)]
    if task.classes is not None:
        _check_training_classes(found, task)
    return found


def _check_folds(folds: int, task: Task) -> None:
    least, of = len(task.y), "there are only {} samples (n_samples = {})"
    if task.classes is not None:
        counts = np.bincount(task.codes, minlength=len(task.classes))
        least = int(counts.min())
        of = f"class {_listed(task.classes[[counts.argmin()]])} has {{}} samples of {len(task.y)}"
    if folds < 2 or folds > least:
        few = of.format(least, least)
        raise InputError(
            f"cv is {folds}" + (f", and {few}" if folds > least else ""),
            "at least 2 folds, and in each class at least one sample for each fold",
            f"Pass cv={max(2, min(5, least))}, more samples, or a splitter of your own",
        )


def _check_training_classes(parts: Sequence[Split], task: Task) -> None:
    """Every clone must learn every class: a missing one has no column."""
    for number, part in enumerate(parts):
        missing = np.setdiff1d(task.codes, task.codes[part.train])
        if len(missing):
            raise InputError(
                f"fold {number} of cv trains without class {_listed(task.classes[missing])}",
                "every class in every training part",
                "Pass cv=5 (stratified folds), or a stratified splitter",
            )


def held_out(
    parts: Sequence[Split], fitted: Sequence[Any], task: Task, read: Callable[[Any, Any], Any]
) -> np.ndarray:
    """`read(clone, X)` for every row by the clone whose test part holds it (n, …).

    The test parts must hold each row exactly once, as those of k folds do.
    """
    count = np.zeros(len(task.y), int)
    for part in parts:
        np.add.at(count, part.test, 1)
    if np.any(count != 1):
        row = int(np.flatnonzero(count != 1)[0])
        raise InputError(
            f"the test parts of cv hold row {row} {count[row]} times",
            "each row in exactly one test part",
            "Pass cv=5, or a splitter that partitions the rows (KFold, GroupKFold)",
        )
    read_parts = [
        np.asarray(read(clone_, take(task.X, part.test)))
        for part, clone_ in zip(parts, fitted, strict=True)
    ]
    first = read_parts[0]
    found = np.empty((len(task.y), *first.shape[1:]), first.dtype)
    for part, values in zip(parts, read_parts, strict=True):
        found[part.test] = values
    return found
