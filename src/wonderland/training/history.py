"""What a run was: one record for each epoch, and all of them as arrays."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = ["History", "Record"]


class Record(NamedTuple):
    """What callbacks see of an epoch: plain numbers, NaN where nothing was measured.

    Attributes:
        epoch: Its number, from 0.
        step: Updates made so far.
        loss: Mean training loss of the epoch, while the weights moved.
        validation_loss: Mean loss of the validation samples at its end.
        score: Their score, higher is better.
        learning_rate: η of the last update.
        gradient_norm: Norm of the mean gradient, where a stopping rule looks at it.
        moved: ‖w − w'‖² over the epoch, where a stopping rule looks at it.
        seconds: Since training began.
    """

    epoch: int
    step: int
    loss: float
    validation_loss: float
    score: float
    learning_rate: float
    gradient_norm: float
    moved: float
    seconds: float


@dataclass(frozen=True)
class History:
    """The records as arrays (epochs,), or (epochs, m) of m fits.

    >>> History.of([]).loss.shape
    (0,)
    """

    epoch: np.ndarray
    step: np.ndarray
    loss: np.ndarray
    validation_loss: np.ndarray
    score: np.ndarray
    learning_rate: np.ndarray
    gradient_norm: np.ndarray
    moved: np.ndarray
    seconds: np.ndarray

    @classmethod
    def of(cls, records: Iterable[Record]) -> "History":
        """The arrays of these records."""
        listed = list(records)
        columns = zip(*listed, strict=True) if listed else [()] * len(Record._fields)
        return cls(*(np.asarray(list(column)) for column in columns))

    def __len__(self) -> int:
        return len(self.epoch)

    def records(self) -> list[Record]:
        """One record for each epoch."""
        columns = [getattr(self, name) for name in Record._fields]
        return [Record(*(_plain(column[i]) for column in columns)) for i in range(len(self))]


def _plain(value: Any) -> Any:
    return value.item() if np.ndim(value) == 0 else value
