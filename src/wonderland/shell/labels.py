"""Class labels that come chunk by chunk: read, gathered, turned into class numbers."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from wonderland.core.errors import InputError
from wonderland.shell.explain import explained, refuse_non_finite

__all__ = ["codes_of", "merged", "read_labels"]

NUMBERS = "biuf"


def read_labels(y: Any) -> np.ndarray:
    """Labels (b,): strings, whole numbers or booleans; a single column is flattened."""
    labels = explained(lambda: np.asarray(y), y=y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(
            f"y has shape {labels.shape}", "one label for each row (b,)", "Yield (X, labels)"
        )
    if labels.dtype.kind == "f":
        refuse_non_finite(labels, what="y")
    if labels.dtype.kind == "O" and any(label is None or label != label for label in labels):
        raise InputError(
            "y holds labels that are missing (None or NaN)",
            "a label in every row",
            "Drop those rows, or give what is unknown a label of its own",
        )
    if len(labels):
        explained(lambda: check_classification_targets(labels), y=y)
    return labels


def merged(known: np.ndarray | None, labels: np.ndarray) -> np.ndarray:
    """All labels seen, sorted: those known and those of one more chunk.

    >>> merged(np.array(["a", "c"]), np.array(["b", "c"])).tolist()
    ['a', 'b', 'c']
    """
    found = np.unique(labels)
    if known is None or not len(found):
        return found if known is None else known
    if len(found) <= len(known) and found.dtype == known.dtype and np.isin(found, known).all():
        return known
    if (known.dtype.kind in NUMBERS) != (found.dtype.kind in NUMBERS):
        raise InputError(
            f"y holds {found.tolist()[0]!r} where earlier chunks held {known.tolist()[0]!r}",
            "labels of one kind in all chunks",
            "Turn all labels into strings, or all into numbers",
        )
    return np.unique(np.concatenate([known, found]))


def codes_of(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Class numbers (b,) with classes[code] = label; refuses labels that are not among them."""
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    strange = np.flatnonzero(classes[codes] != labels)
    if len(strange):
        raise InputError(
            f"the label {labels.tolist()[strange[0]]!r} came in a later pass and not in the first",
            "the same rows in every pass",
            "Make the stream give the same chunks each time it is read",
        )
    return codes
