"""What a conformal predictor answers with: sets of labels, intervals of numbers.

Both know the level they were made for, and check themselves against the truth when it is known.
"""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import numpy as np

from wonderland.core.errors import InputError, optional
from wonderland.core.evidence import plain

__all__ = ["Intervals", "PredictionSets"]


class PredictionSets(eqx.Module):
    """A set of labels for each of n samples.

    Attributes:
        mask: Whether the label is in the set (n, k).
        classes: The labels, in the order of the columns of `mask` (k,).
        alpha: The level the sets were made for.
        index: Of the rows, where X was a frame; else None.

    >>> sets = PredictionSets(np.array([[True, True], [False, True]]), np.array(["no", "yes"]), 0.1)
    >>> sets.size
    array([2, 1])
    >>> sets.labels()
    [['no', 'yes'], ['yes']]
    >>> sets.contains(["no", "no"])
    array([ True, False])
    """

    mask: np.ndarray
    classes: np.ndarray
    alpha: float
    index: Any = None

    @property
    def size(self) -> np.ndarray:
        """How many labels each set has (n,)."""
        return self.mask.sum(axis=1)

    def contains(self, y: Any) -> np.ndarray:
        """Whether each set has its sample's label (n,); a label never seen is in no set."""
        y = _as_many(y, len(self.mask))
        order = np.argsort(self.classes)
        place = np.searchsorted(self.classes, y, sorter=order)
        place = order[np.minimum(place, len(order) - 1)]
        return (self.classes[place] == y) & self.mask[np.arange(len(y)), place]

    def labels(self) -> list[list[Any]]:
        """The labels of each set, in the order of `classes`."""
        names = plain(self.classes)
        return [[names[j] for j in np.flatnonzero(row)] for row in self.mask]

    def to_frame(self) -> Any:
        """A pandas frame: one column of True and False for each label, and the size."""
        pd = optional("pandas", "frames")
        frame = pd.DataFrame(self.mask, index=self.index, columns=plain(self.classes))
        frame["size"] = self.size
        return frame

    def __len__(self) -> int:
        return len(self.mask)

    def __getitem__(self, row: int) -> list[Any]:
        """The labels of one sample."""
        return plain(self.classes[self.mask[row]])

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self.labels())

    def __repr__(self) -> str:
        size = self.size
        return (
            f"PredictionSets({len(self)} samples, {len(self.classes)} classes, "
            f"alpha={self.alpha:g}: mean size {size.mean() if len(size) else 0:.3g}, "
            f"{np.mean(size == 1) if len(size) else 0:.1%} with one label, "
            f"{np.count_nonzero(size == 0)} empty)"
        )


class Intervals(eqx.Module):
    """An interval for each of n samples; unpacks as `lower, upper = intervals`.

    Attributes:
        lower: Lower ends (n,).
        upper: Upper ends (n,).
        alpha: The level the intervals were made for.
        index: Of the rows, where X was a frame; else None.

    >>> intervals = Intervals(np.array([0.0, 1.0]), np.array([1.0, 3.0]), 0.1)
    >>> intervals.width
    array([1., 2.])
    >>> intervals.contains([0.5, 4.0])
    array([ True, False])
    """

    lower: np.ndarray
    upper: np.ndarray
    alpha: float
    index: Any = None

    @property
    def width(self) -> np.ndarray:
        """Upper minus lower end (n,)."""
        return self.upper - self.lower

    def contains(self, y: Any) -> np.ndarray:
        """Whether each interval has its sample's target, ends included (n,)."""
        y = np.asarray(_as_many(y, len(self.lower)), dtype=np.float64)
        return (self.lower <= y) & (y <= self.upper)

    def to_frame(self) -> Any:
        """A pandas frame with the columns lower, upper, width."""
        pd = optional("pandas", "frames")
        columns = {"lower": self.lower, "upper": self.upper, "width": self.width}
        return pd.DataFrame(columns, index=self.index)

    def __len__(self) -> int:
        return len(self.lower)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.lower, self.upper))

    def __repr__(self) -> str:
        finite = np.isfinite(self.width)
        width = f"{np.median(self.width):.4g}" if finite.any() else "∞"
        return (
            f"Intervals({len(self)} samples, alpha={self.alpha:g}: median width {width}, "
            f"{np.count_nonzero(~finite)} infinite)"
        )


def _as_many(y: Any, count: int) -> np.ndarray:
    """The truth as an array, one entry for each sample."""
    y = np.asarray(y)
    if y.shape != (count,):
        raise InputError(
            f"y has shape {y.shape}",
            f"one entry for each of the {count} samples",
            "Pass the y of the same rows",
        )
    return y
