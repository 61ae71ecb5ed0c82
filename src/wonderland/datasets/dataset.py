"""What every loader returns: the table, the labels, their names, and where they come from."""

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Dataset"]


class Dataset(NamedTuple):
    """Samples with labels.

    Attributes:
        name: What they are about, in one line.
        X: (n, d), dense or CSR; texts (n,) where the samples are texts.
        y: Labels (n,).
        features: Column names (d,); empty where the columns have none.
        source: Where the samples come from, as the user or this library states it.
        truth: What a made set was made from, by name.
    """

    name: str
    X: Any
    y: np.ndarray
    features: tuple[str, ...]
    source: str
    truth: dict[str, Any]
