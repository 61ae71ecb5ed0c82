"""Labels and probabilities, read and checked before anything is measured.

Shapes: n rows, k classes; p (n, k), or (n,) for the second of two classes.
"""

from typing import Any, NamedTuple

import numpy as np

from wonderland.core.blocks import map_rows
from wonderland.core.errors import InputError

__all__ = ["Forecast", "Judged", "check_probabilities", "judged", "read_forecast"]

SLACK = 1e-5  # what rows may miss one by: float32 probabilities of many classes
SHOWN = 5  # rows named in a message


class Forecast(NamedTuple):
    """Probabilities beside what came true.

    Attributes:
        p: (n, k), float64; rows sum to one.
        codes: (n,) the class number that came true.
        classes: The labels (k,).
        weight: ω (n,) ≥ 0, or None where all are one.
    """

    p: np.ndarray
    codes: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None


class Judged(NamedTuple):
    """Confidences in one statement for each row, and whether it was true.

    Attributes:
        confidence: (n,) in [0, 1].
        correct: (n,) 0.0 or 1.0.
        weight: ω (n,), or None.
    """

    confidence: np.ndarray
    correct: np.ndarray
    weight: np.ndarray | None

    @property
    def weights(self) -> np.ndarray:
        """ω (n,), ones where none were given."""
        return np.ones(len(self.correct)) if self.weight is None else self.weight


def check_probabilities(p: Any, name: str = "p") -> np.ndarray:
    """Probabilities as (n, k) float64; refused, with the rows, where they are none.

    >>> check_probabilities([0.25, 1.0]).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    >>> check_probabilities([[0.5, 0.5], [0.5, 0.6]])
    Traceback (most recent call last):
    wonderland.core.errors.InputError: p has 1 row of 2 that does not sum to one: row 1 (1.1). \
Expected probabilities of all classes in each row. Pass predict_proba, or divide by p.sum(axis=1).
    """
    try:
        table = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} does not hold numbers ({error})", "probabilities (n, k)", "Pass predict_proba"
        ) from error
    if table.ndim == 1:
        table = np.column_stack([1.0 - table, table])
    if table.ndim != 2 or table.shape[1] < 2 or not len(table):
        raise InputError(
            f"{name} has the shape {np.shape(p)}",
            "a row for each sample and a column for each class, or (n,) for two classes",
            "Pass predict_proba(X)",
        )
    ones = np.ones(table.shape[1])
    # NaN fails both comparisons, so that it is among the wrong rows.
    low = map_rows(lambda a, b: table[a:b].min(), len(table), table.size)
    total = table @ ones
    off = ~(np.abs(total - 1.0) <= SLACK)
    if not min(low) >= 0:
        off |= ~(table.min(axis=1) >= 0)
    if off.any():
        _refuse_rows(name, table, total, np.flatnonzero(off))
    return table


def _refuse_rows(name: str, table: np.ndarray, total: np.ndarray, rows: np.ndarray) -> None:
    """Say which rows are wrong, and how."""
    sums = np.abs(total[rows] - 1.0) > SLACK
    if np.isnan(total[rows]).any():
        rows, what = rows[np.isnan(total[rows])], "hold"
        found, unit = [f"row {i}" for i in rows[:SHOWN]], "NaN"
    elif sums.all():
        what, unit = "do not sum", "to one"
        found = [f"row {i} ({total[i]:.4g})" for i in rows[:SHOWN]]
    else:
        rows, what = rows[~sums], "hold"
        found = [f"row {i} ({table[i].min():.4g})" for i in rows[:SHOWN]]
        unit = "numbers outside [0, 1]"
    verb = what if len(rows) > 1 else {"hold": "holds", "do not sum": "does not sum"}[what]
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    raise InputError(
        f"{name} has {len(rows)} row{'s' * (len(rows) > 1)} of {len(table)} that {verb} {unit}: "
        f"{', '.join(found)}{more}",
        "probabilities of all classes in each row",
        "Pass predict_proba, or divide by p.sum(axis=1)",
    )


def read_forecast(y: Any, p: Any, sample_weight: Any = None, classes: Any = None) -> Forecast:
    """Check probabilities and labels against one another.

    Args:
        y: Labels (n,), or class numbers 0 … k − 1.
        p: (n, k), or (n,) for the second of two classes.
        sample_weight: ω (n,) ≥ 0.
        classes: The labels of the columns (k,); by default the sorted labels of y where there are
            k of them, else 0 … k − 1.
    """
    table, y = check_probabilities(p), np.asarray(y)
    if y.ndim != 1 or len(y) != len(table):
        raise InputError(
            f"y has the shape {y.shape} and p has {len(table)} rows",
            "one label for each row of p",
            "Check that y and p come from the same rows; the order is (y, p)",
        )
    k = table.shape[1]
    known, codes = _codes(y, k) if classes is None else _among(y, np.asarray(classes), k)
    return Forecast(table, codes, known, _weights(sample_weight, len(y)))


def _codes(y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes and codes where the columns were not named."""
    if y.dtype.kind in "iu" and y.min() >= 0 and y.max() < k:
        codes = y.astype(np.intp, copy=False)
        if y.max() == k - 1 or k > 2:
            return np.arange(k), codes
    known, codes = np.unique(y, return_inverse=True)
    if len(known) == k:
        return known, codes
    if y.dtype.kind in "iub" and y.min() >= 0 and y.max() < k:
        return np.arange(k), y.astype(np.intp)
    raise InputError(
        f"y holds {len(known)} labels and p has {k} columns",
        "to know which label each column is of",
        "Pass classes=estimator.classes_",
    )


def _among(y: np.ndarray, classes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    if classes.shape != (k,) or len(np.unique(classes)) != k:
        raise InputError(
            f"classes has {len(classes)} labels and p has {k} columns",
            "one label of its own for each column",
            "Pass classes=estimator.classes_",
        )
    order = np.argsort(classes)
    codes = order[np.searchsorted(classes, y, sorter=order).clip(max=k - 1)]
    wrong = np.flatnonzero(classes[codes] != y)
    if len(wrong):
        raise InputError(
            f"{len(wrong)} labels of y are not among classes: "
            f"{y[wrong[0]].tolist()!r} in row {wrong[0]}",
            "labels that have a column in p",
            "Drop those rows, or use an estimator that has learned these labels",
        )
    return classes, codes


def _weights(sample_weight: Any, n: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,) or not np.all(weight >= 0) or not 0 < weight.sum() < np.inf:
        raise InputError(
            f"sample_weight has the shape {weight.shape} and sums to {weight.sum():g}",
            f"({n},) finite weights ≥ 0, not all zero",
            "Pass sample_weight=None for equal weights",
        )
    return weight


def judged(forecast: Forecast, label: Any = None) -> Judged:
    """The confidence that stands to be judged in each row.

    Without a label, the largest probability, correct where its class came true; with one, the
    probability of that label, correct where it came true.
    """
    p, codes = forecast.p, forecast.codes
    if label is None:
        top, found = _largest(p)
        return Judged(found, (top == codes).astype(np.float64), forecast.weight)
    column = np.flatnonzero(forecast.classes == label)
    if not len(column):
        raise InputError(
            f"label is {label!r}", f"one of {forecast.classes.tolist()}", "Pass a label of y"
        )
    j = int(column[0])
    return Judged(np.clip(p[:, j], 0, 1), (codes == j).astype(np.float64), forecast.weight)


def _largest(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Class number and probability of the most probable class, the first among equals."""

    def part(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        rows = p[start:stop]
        top = rows.argmax(axis=1)
        return top, rows[np.arange(len(rows)), top]

    parts = map_rows(part, len(p), p.size)
    top, found = (np.concatenate(column) for column in zip(*parts, strict=True))
    return top, np.clip(found, 0.0, 1.0)
