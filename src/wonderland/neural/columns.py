"""From the columns of a table to what a network takes: numbers scaled, holes marked, labels coded.

    number       z = (x − median)/scale,  φ = z/√(1 + (z/3)²)       a hole becomes the median
    hole         a column of 0 and 1 beside each number that has holes in training
    category     1, 2, … in the order of the labels; 0 for holes and labels never seen

scale is the distance of the quartiles by 1.349 (a standard deviation, for a normal distribution),
or half the range where the quartiles agree.

Reference: Holzmüller, Grinsztajn & Steinwart (2024), Better by default.
"""

from dataclasses import dataclass

import numpy as np

from wonderland.core.errors import InputError
from wonderland.shell.frames import Column

__all__ = ["Encoder", "fit_encoder"]

NORMAL = 1.3489795003921634  # distance of the quartiles of a standard normal distribution


@dataclass(frozen=True)
class Encoder:
    """How each column is written.

    Attributes:
        names: Of the columns (d,).
        numeric: Places of the numbers.
        centre: (number of numbers,).
        scale: The same.
        holes: Which of the numbers have a column of holes, as places among the numbers.
        categorical: Places of the categories.
        labels: The known labels of each, sorted.
    """

    names: list[str]
    numeric: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    holes: np.ndarray
    categorical: np.ndarray
    labels: list[np.ndarray]

    @property
    def numbers(self) -> int:
        """Columns of numbers that are made, those of holes included."""
        return len(self.numeric) + len(self.holes)

    @property
    def categories(self) -> tuple[int, ...]:
        """How many codes each column of categories has."""
        return tuple(len(known) + 1 for known in self.labels)

    def encode(self, columns: list[Column]) -> np.ndarray:
        """(n, numbers + categories) float32."""
        raw = [self._number(columns[j]) for j in self.numeric]
        table = np.stack(raw, axis=1) if raw else np.empty((len(columns[0].values), 0))
        missing = np.isnan(table)
        z = np.where(missing, 0.0, (table - self.centre) / self.scale)
        soft = z / np.sqrt(1.0 + (z / 3.0) ** 2)
        coded = [
            self._codes(columns[j], known)
            for j, known in zip(self.categorical, self.labels, strict=True)
        ]
        parts = [soft, missing[:, self.holes], *(code[:, None] for code in coded)]
        return np.concatenate([np.asarray(part, np.float32) for part in parts], axis=1)

    def _number(self, column: Column) -> np.ndarray:
        if column.categorical:
            raise InputError(
                f"column {column.name!r} holds text, where fit saw numbers",
                "numbers, or holes (NaN)",
                "Check the column, or fit again",
            )
        return column.values

    def _codes(self, column: Column, known: np.ndarray) -> np.ndarray:
        text = _text(column)
        place = np.minimum(np.searchsorted(known, text), max(len(known) - 1, 0))
        found = (known[place] == text) if len(known) else np.zeros(len(text), bool)
        return np.where(found, place + 1, 0)


def fit_encoder(columns: list[Column]) -> Encoder:
    """The encoder of a training table.

    >>> columns = [Column("x", np.array([0.0, 1.0, np.nan]), False)]
    >>> fit_encoder(columns).encode(columns)[:, 1].tolist()
    [0.0, 0.0, 1.0]
    """
    numeric = [j for j, column in enumerate(columns) if not column.categorical]
    categorical = [j for j, column in enumerate(columns) if column.categorical]
    scales = [_scale(columns[j].values) for j in numeric]
    holes = [place for place, j in enumerate(numeric) if np.isnan(columns[j].values).any()]
    labels = [np.unique(text[text != ""]) for text in (_text(columns[j]) for j in categorical)]
    return Encoder(
        [column.name for column in columns],
        np.asarray(numeric, int),
        np.array([centre for centre, _ in scales]),
        np.array([scale for _, scale in scales]),
        np.asarray(holes, int),
        np.asarray(categorical, int),
        labels,
    )


def _scale(values: np.ndarray) -> tuple[float, float]:
    """(median, scale) of the numbers that are there."""
    known = values[~np.isnan(values)]
    if not len(known):
        return 0.0, 1.0
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
    if high > low:
        return float(middle), float((high - low) / NORMAL)
    wide = float(known.max() - known.min())
    return float(middle), 0.5 * wide if wide > 0 else 1.0


def _text(column: Column) -> np.ndarray:
    """Labels as text; the empty text for holes."""
    if not column.categorical:  # numbers where fit saw categories: 1.0 is the label "1"
        plain = [("" if v != v else str(int(v)) if v == int(v) else str(v)) for v in column.values]
        return np.asarray(plain, dtype=str)
    return np.asarray(["" if v is None else str(v) for v in column.values], dtype=str)
