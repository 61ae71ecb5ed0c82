"""A part of the samples of a classifier that learns from parts: labels may be missing from it."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from wonderland.core.errors import InputError
from wonderland.shell.explain import column_names, explained, refuse_non_finite
from wonderland.shell.inputs import Classes, target_names

__all__ = ["read_part"]


def read_part(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, classes: Any
) -> Classes:
    """Validate some samples against all labels there will be.

    Args:
        estimator: The first part gives it the number and names of columns.
        X: (n, d).
        y: Labels (n,), each among `classes`.
        sample_weight: (n,) ≥ 0, or None.
        classes: All labels (k,); None where the estimator should have known them.
    """
    if classes is None:
        raise InputError(
            "classes is None in the first call of partial_fit",
            "classes must be passed on the first call to partial_fit: all labels there will be",
            "Pass classes=np.unique(all labels)",
        )
    first = not hasattr(estimator, "n_features_in_") or not hasattr(estimator, "classes_")
    read, labels = explained(
        lambda: validate_data(
            estimator,
            X,
            y,
            reset=first,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        ),
        X=X,
        y=y,
    )
    refuse_non_finite(read, source=X)
    names = getattr(estimator, "feature_names_in_", None)
    known = np.unique(classes)
    return Classes(
        X=read.astype(np.float64, copy=False),
        codes=_codes(labels, known),
        classes=_agreeing(estimator, known),
        weight=_weight(sample_weight, len(labels)),
        names=column_names(X, read.shape[1]) if names is None else list(names),
        target=target_names(y, labels)[0],
        dtype=np.dtype(read.dtype),
    )


def _codes(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    if len(strange := np.setdiff1d(labels, known)):
        raise InputError(
            f"y holds {strange[0]!r}, which is not among classes",
            f"labels among {', '.join(map(repr, known[:5].tolist()))}",
            "Pass all labels as classes in the first call",
        )
    return np.searchsorted(known, labels)


def _agreeing(estimator: Any, known: np.ndarray) -> np.ndarray:
    before = getattr(estimator, "classes_", None)
    if before is not None and not np.array_equal(before, known):
        raise InputError(
            "`classes` is not the same as on last call to partial_fit",
            f"the labels {before.tolist()}",
            "Leave classes out after the first call, or start with a new estimator",
        )
    return known


def _weight(sample_weight: Any, n: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, np.float64)
    if weight.ndim == 0:
        weight = np.full(n, weight)
    if weight.shape != (n,) or not np.all(weight >= 0):
        raise InputError(
            f"sample_weight of shape {weight.shape} for {n} samples",
            "one weight ≥ 0 per row",
            "Pass sample_weight of shape (n,)",
        )
    return weight
