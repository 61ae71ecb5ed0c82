"""What a classifier says about a sample, as logits or as one number for each class.

A classifier with `decision_function` speaks in scores, which keep what probabilities round away;
one without speaks in probabilities. Which was read is said in the evidence.

    decision_function   (n,) log-odds of the second of two classes, or (n, k)
    predict_proba       (n, k)

Shapes: n rows, k classes, m = 1 column for two classes, else k.
"""

from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.metrics.probabilities import check_probabilities
from wonderland.trust.calibration_rows import softmax

__all__ = [
    "columns_of",
    "logits_of",
    "positive_probabilities",
    "probabilities_of",
    "read_probabilities",
    "read_scores",
    "score_source",
]

FLOOR = 1e-12  # below which a probability is not told from 0 when its logarithm is taken


def score_source(estimator: Any, classes: int) -> str:
    """Which method to read: scores where there are some for each class, else probabilities."""
    pairs = classes > 2 and getattr(estimator, "decision_function_shape", None) == "ovo"
    if hasattr(estimator, "decision_function") and not pairs:
        return "decision_function"
    if hasattr(estimator, "predict_proba"):
        return "predict_proba"
    raise InputError(
        f"{type(estimator).__name__} has scores of pairs of classes only"
        if pairs
        else f"{type(estimator).__name__} has neither decision_function nor predict_proba",
        "a classifier that says how sure it is of each class",
        "Pass decision_function_shape='ovr'" if pairs else "Wrap another classifier",
    )


def read_scores(estimator: Any, X: Any, source: str, classes: np.ndarray) -> np.ndarray:
    """What the method `source` says (n,) or (n, k), columns in the order of `classes` (k,)."""
    raw = np.asarray(getattr(estimator, source)(X), dtype=np.float64)
    if source == "predict_proba":
        raw = check_probabilities(raw, f"predict_proba of {type(estimator).__name__}")
    k = len(classes)
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.ndim != (1 if k == 2 and source == "decision_function" else 2) and raw.shape[-1] != k:
        raise InputError(
            f"{source} of {type(estimator).__name__} has the shape {raw.shape}",
            f"a column for each of the {k} classes",
            "Wrap a classifier with one score for each class",
        )
    if not np.all(np.isfinite(raw)):
        row = int(np.flatnonzero(~np.isfinite(raw.reshape(len(raw), -1)).all(axis=1))[0])
        raise InputError(
            f"{source} of {type(estimator).__name__} holds NaN or infinity, first in row {row}",
            "finite scores",
            "Look at that row, and at the fit of the estimator",
        )
    known = getattr(estimator, "classes_", None)
    if raw.ndim == 1 or known is None or np.array_equal(known, classes):
        return raw
    order = np.argsort(known)
    return raw[:, order[np.searchsorted(known, classes, sorter=order)]]


def read_probabilities(estimator: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Probabilities (n, k): those of `predict_proba`; without it, the softmax of the scores."""
    if hasattr(estimator, "predict_proba"):
        return read_scores(estimator, X, "predict_proba", classes)
    source = score_source(estimator, len(classes))
    return probabilities_of(read_scores(estimator, X, source, classes), source)


def logits_of(raw: np.ndarray, source: str) -> np.ndarray:
    """Logits (n, k): scores themselves, log-odds d as (0, d), or logarithms of probabilities."""
    if source == "predict_proba":
        return np.log(np.maximum(raw, FLOOR))
    return np.column_stack([np.zeros(len(raw)), raw]) if raw.ndim == 1 else raw


def probabilities_of(raw: np.ndarray, source: str) -> np.ndarray:
    """Probabilities (n, k) as they are before any calibration."""
    return raw if source == "predict_proba" else softmax(logits_of(raw, source))


def columns_of(raw: np.ndarray, source: str) -> np.ndarray:
    """One number (n, m): of the second of two classes, or of each of more."""
    del source
    if raw.ndim == 1:
        return raw[:, None]
    return raw[:, 1:] if raw.shape[1] == 2 else raw


def positive_probabilities(raw: np.ndarray, source: str) -> np.ndarray:
    """One probability (n, m): of the second of two classes, or of each of more."""
    return columns_of(probabilities_of(raw, source), source)
