"""Rows that can be read as often as a fit asks: files, and chunks that can be made again.

A fit that passes over the rows many times needs a source that starts anew: a path, a pyarrow
Dataset, a list of chunks, a callable without arguments, or an object whose `__iter__` begins again.
The first pass finds the classes, their weights and a sample of rows: all rows, where they fit.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_class_weight

from wonderland.core.errors import InputError
from wonderland.shell.chunks import Chunk
from wonderland.shell.datasets import is_dataset
from wonderland.shell.explain import explained
from wonderland.shell.inputs import Classes, Table
from wonderland.shell.labels import codes_of, merged
from wonderland.shell.streams import begin_stream, open_source

__all__ = ["Rows", "Sample", "read_rows"]

HELD = 1 << 22  # entries of the sample: 32 MB


class Sample(NamedTuple):
    """Some rows of each class, in the order in which they came.

    Attributes:
        X: (m, d).
        y: (m,) class numbers, or (m, t) targets.
        weight: (m,) or None.
        factor: (m,) how many rows each stands for; all ones where these are all rows.
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    factor: np.ndarray


class Rows(NamedTuple):
    """More rows than memory may hold.

    Attributes:
        chunks: Starts a pass: validated (X (b, d), y, weight (b,) or None) with class numbers
            (b,) or targets (b, t) for y, class weights included in weight.
        classes: Labels (k,), or None for targets.
        names: Column names (d,).
        targets: Target names (t,).
        flat: Whether y came with one dimension.
        size: n.
        mass: Σω, of each class (k,) or of all (1,).
        sample: Some of the rows.
    """

    chunks: Callable[[], Iterator[Chunk]]
    classes: np.ndarray | None
    names: list[str]
    targets: list[str]
    flat: bool
    size: int
    mass: np.ndarray
    sample: Sample

    @property
    def complete(self) -> bool:
        """Whether the sample holds every row."""
        return len(self.sample.y) == self.size

    @property
    def labelled(self) -> Classes:
        """The sample as the validated data of a classifier."""
        held = self.sample
        classes = np.zeros(0) if self.classes is None else self.classes
        double = np.dtype(np.float64)
        return Classes(held.X, held.y, classes, held.weight, self.names, self.targets[0], double)

    @property
    def table(self) -> Table:
        """The sample as the validated data of a regressor."""
        held = self.sample
        double = np.dtype(np.float64)
        return Table(held.X, held.y, held.weight, self.flat, self.names, self.targets, double)


def read_rows(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    labels: bool,
    class_weight: Any = None,
) -> Rows:
    """Pass over the rows once; remembers the number and names of columns on the estimator.

    Args:
        estimator: Given `n_features_in_` and `feature_names_in_`.
        X: What `is_stream` accepts.
        y: The name of the target column (or columns) of files and frames; None for tuples.
        sample_weight: The name of a column of weights, or None.
        labels: Whether y holds class labels, else numbers.
        class_weight: None, "balanced" or a mapping label → weight.
    """
    _refuse_once(X)

    def begin() -> Any:
        return begin_stream(
            estimator, open_source(X, y, sample_weight, labels=labels), labels=labels
        )

    stream = begin()
    found = _survey(stream.chunks, HELD // max(len(stream.names), 1), labels=labels)
    factor = None if found.classes is None else _class_factor(found, class_weight)
    sample = found.drawn()
    if factor is not None:
        sample = sample._replace(weight=_times(sample.weight, factor[sample.y]))

    def chunks() -> Iterator[Chunk]:
        seen = 0
        for table, target, weight in begin().chunks:
            seen += len(table)
            if found.classes is not None:
                target = codes_of(found.classes, target)
                weight = weight if factor is None else _times(weight, factor[target])
            yield table, target, weight
        if seen != found.count:
            raise InputError(
                f"the stream held {found.count:,} rows in the first pass and {seen:,} in a later "
                "one",
                "the same rows in every pass",
                "Make the stream give the same chunks each time it is read",
            )

    mass = found.mass if factor is None else found.mass * factor
    return Rows(
        chunks, found.classes, stream.names, stream.targets, stream.flat, found.count, mass, sample
    )


def _times(weight: np.ndarray | None, factor: np.ndarray) -> np.ndarray:
    return factor if weight is None else weight * factor


def _refuse_once(X: Any) -> None:
    """What can be read a single time only."""
    reader = is_dataset(X) and type(X).__name__ == "RecordBatchReader"
    used_up = isinstance(X, Iterable) and not isinstance(X, str) and iter(X) is X
    if reader or used_up:
        raise InputError(
            f"a {type(X).__name__}, which can be read once, for a fit that passes over the rows "
            "several times",
            "a source that can be read again: a path, a pyarrow Dataset, a list of chunks, or a "
            "callable without arguments that returns the chunks",
            "Pass the generator function itself, fit(make_chunks), not make_chunks()",
        )


class _Stratum:
    """A uniform sample of at most `room` rows: those with the smallest random numbers."""

    def __init__(self, room: int) -> None:
        self.room, self.count = room, 0
        self.keys = np.zeros(0)
        self.parts: list[tuple[np.ndarray, ...]] = []

    def offer(self, keys: np.ndarray, columns: tuple[np.ndarray, ...]) -> None:
        """Rows with their random numbers; columns are copied where they are kept."""
        self.count += len(keys)
        if len(self.keys) >= self.room:
            near = keys < self.keys.max()
            keys, columns = keys[near], tuple(column[near] for column in columns)
        if len(keys):
            self.keys = np.concatenate([self.keys, keys])
            self.parts.append(tuple(np.array(column) for column in columns))
        if len(self.keys) > 2 * self.room:
            self.settle()

    def settle(self) -> None:
        """Drop what is too much."""
        joined = tuple(np.concatenate(column) for column in zip(*self.parts, strict=True))
        if len(self.keys) > self.room:
            kept = np.sort(np.argpartition(self.keys, self.room)[: self.room])
            self.keys, joined = self.keys[kept], tuple(column[kept] for column in joined)
        self.parts = [joined]


class _Found:
    """What the first pass gathers."""

    def __init__(self, room: int) -> None:
        self.classes: np.ndarray | None = None
        self.room, self.count, self.weighted = room, 0, False
        self.strata: dict[Any, _Stratum] = {}
        self.sums: dict[Any, float] = {}
        self.chance = np.random.default_rng(0)  # the same rows in every fit

    def take(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, kinds: Any) -> None:
        """One chunk; `kinds` numbers its rows by stratum, under the names of those strata."""
        names, codes = kinds
        self.weighted = weight is not None
        omega = np.ones(len(X)) if weight is None else weight
        keys, order = self.chance.random(len(X)), np.arange(self.count, self.count + len(X))
        for code, name in enumerate(names):
            own = slice(None) if len(names) == 1 else codes == code
            stratum = self.strata.setdefault(name, _Stratum(self.room))
            stratum.offer(keys[own], (order[own], X[own], y[own], omega[own]))
            self.sums[name] = self.sums.get(name, 0.0) + float(omega[own].sum())
        self.count += len(X)
        if self.count > self.room:
            for stratum in self.strata.values():
                stratum.room = max(1, self.room // len(self.strata))

    @property
    def mass(self) -> np.ndarray:
        """Σω of each stratum."""
        names = [None] if self.classes is None else self.classes.tolist()
        return np.array([self.sums[name] for name in names])

    def drawn(self) -> Sample:
        """The sample: all rows where they fit, else an equal share of rows for each stratum."""
        parts, factors = [], []
        for stratum in self.strata.values():
            stratum.settle()
            parts.append(stratum.parts[0])
            factors.append(np.full(len(stratum.keys), stratum.count / len(stratum.keys)))
        order, X, y, omega = (np.concatenate(column) for column in zip(*parts, strict=True))
        rank = np.argsort(order)
        if self.classes is not None:
            y = codes_of(self.classes, y)
        weight = omega[rank] if self.weighted else None
        return Sample(X[rank], y[rank], weight, np.concatenate(factors)[rank])


def _survey(chunks: Iterator[Chunk], room: int, *, labels: bool) -> _Found:
    found = _Found(max(room, 1))
    for X, y, weight in chunks:
        if labels:
            found.classes = merged(found.classes, y)
            names, codes = np.unique(y, return_inverse=True)
            found.take(X, y, weight, (names.tolist(), codes))
        else:
            found.take(X, y, weight, ([None], None))
    if labels:
        _refuse_single(found)
    return found


def _refuse_single(found: _Found) -> None:
    """One class, or one class that counts."""
    classes = np.zeros(0) if found.classes is None else found.classes
    if len(classes) < 2:
        raise InputError(
            f"y holds one class only: all {found.count:,} labels are {classes.tolist()[0]!r}",
            "at least 2 classes",
            "Check the target column and the filter before it; "
            "wl.OneClassSVM describes a single class",
        )
    if np.count_nonzero(found.mass > 0) < 2:
        raise InputError(
            f"only the class {classes[int(np.argmax(found.mass))]} has positive weight",
            "at least 2 classes with samples that count",
            "Check sample_weight and class_weight",
        )


def _class_factor(found: _Found, class_weight: Any) -> np.ndarray | None:
    """The weight of each class (k,); None where all are one."""
    if class_weight is None:
        return None
    classes = found.classes
    return np.asarray(
        explained(
            lambda: compute_class_weight(
                class_weight, classes=classes, y=classes, sample_weight=found.mass
            ),
            class_weight=class_weight,
        )
    )
