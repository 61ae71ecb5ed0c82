"""What can be wrong with a training run, told before anything is compiled."""

from typing import Any

import jax
import numpy as np

from wonderland.core.errors import InputError, InputTypeError
from wonderland.losses import BinaryCrossEntropy, MarginLoss, ResidualLoss
from wonderland.training.epoch import Table
from wonderland.training.step import Structure, infer, losses_of

__all__ = ["batch_size", "counted", "finite", "fits", "labels", "table"]

DEFAULT_BATCH = 128


def table(data: Any, dtype: Any) -> Table:
    """(X, y) or (X, y, sample_weight) as host arrays of the model's precision."""
    if not isinstance(data, tuple | list) or len(data) not in (2, 3):
        raise InputTypeError(
            f"the data are a {type(data).__name__}",
            "(X, y) or (X, y, sample_weight), or something that yields such batches",
            "Pass data=(X, y)",
        )
    X, y = (jax.tree.map(lambda a: _array(a, dtype), part) for part in data[:2])
    weight = None if len(data) == 2 or data[2] is None else _array(data[2], dtype).astype(dtype)
    found = Table(X, y, weight)
    counted(found)
    return found


def _array(values: Any, dtype: Any) -> Any:
    if isinstance(values, jax.Array):
        return values
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return np.asarray(array, dtype)
    if array.dtype.kind in "iu":
        return np.asarray(array, np.int32) if array.dtype.itemsize > 4 else array
    if array.dtype.kind == "b":
        return array
    raise InputTypeError(
        f"the data hold an array of type {array.dtype}",
        "numbers",
        "Encode categories and text as numbers first",
    )


def counted(found: Table) -> int:
    """The number of samples, the same in every array."""
    counts = {np.shape(leaf)[0] if np.ndim(leaf) else None for leaf in jax.tree.leaves(found)}
    if len(counts) != 1 or None in counts or 0 in counts:
        raise InputError(
            f"the data have {' and '.join(map(str, counts))} samples",
            "at least one sample, and as many in X as in y and the weights",
            "Check that X, y and sample_weight come from the same rows",
        )
    return counts.pop() or 0


def finite(found: Table, what: str) -> None:
    """Refuse NaN and infinity, saying where they are."""
    for name in ("X", "y", "weight"):
        for leaf in jax.tree.leaves(getattr(found, name)):
            if np.asarray(leaf).dtype.kind == "f" and not _all_finite(np.asarray(leaf)):
                _refuse(np.asarray(leaf), name, what)
    weight = found.weight
    if weight is not None and (np.min(weight) < 0 or not np.sum(weight) > 0):
        raise InputError(
            f"the sample weights of the {what} lie between {np.min(weight)} and {np.max(weight)}",
            "weights ≥ 0 with a positive sum",
            "Pass sample_weight=None for equal weights",
        )


def _all_finite(array: np.ndarray) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is NaN or infinite if an entry is; it may also overflow, so it only acquits.
        return bool(np.isfinite(array.sum(dtype=np.float64)) or np.isfinite(array).all())


def _refuse(array: np.ndarray, name: str, what: str) -> None:
    bad = ~np.isfinite(array)
    row = int(np.argwhere(bad)[0][0])
    columns = ""
    if array.ndim == 2:
        columns = f" in columns {np.flatnonzero(bad.any(axis=0))[:5].tolist()}"
    raise InputError(
        f"{name} of the {what} holds {int(bad.sum())} values that are not finite, the first in "
        f"row {row}{columns}",
        "finite numbers",
        "Drop those rows or fill them in (sklearn.impute.SimpleImputer)",
    )


def batch_size(asked: int | None, count: int | None, first: int, *, searches: bool) -> int:
    """The minibatch size, at most the number of samples; of a stream that of its first batch."""
    if count is None:
        return first if asked is None else asked
    if asked is None:
        return count if searches else min(DEFAULT_BATCH, count)
    if asked > count:
        raise InputError(
            f"batch_size is {asked} and there are {count} samples",
            "a minibatch no larger than the data",
            f"Pass batch_size={count} for one batch an epoch, or None",
        )
    return int(asked)


def fits(structure: Structure, parameters: Any, statistics: Any, found: Table, loss: Any) -> Any:
    """The shape of one prediction, after a trial of shapes: does the model take X, the loss y?"""
    one = jax.tree.map(lambda a: jax.ShapeDtypeStruct((1, *a.shape[1:]), a.dtype), found)
    try:
        prediction = jax.eval_shape(
            lambda p, s, X: infer(structure, p, s, X), parameters, statistics, one.X
        )
    except (TypeError, ValueError) as error:
        shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(one.X)]
        raise InputError(
            f"the model does not take one sample of shape {shapes} ({_brief(error)})",
            "a model of one sample: model(x) with x one row of X",
            "Give its first layer as many inputs as X has columns",
        ) from error
    labels(loss, prediction, found.y)
    _as_many(loss, prediction, found.y)
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(prediction)]
    try:
        value = jax.eval_shape(
            lambda z, y, loss: losses_of(structure, loss, z, y), prediction, one.y, loss
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the loss does not take a prediction of shape {shapes} with a target of shape "
            f"{[leaf.shape[1:] for leaf in jax.tree.leaves(one.y)]} ({_brief(error)})",
            "an output of the model that fits the loss",
            "Change the size of the last layer, or the shape of y",
        ) from error
    if value.shape != (1,) or not np.issubdtype(value.dtype, np.floating):
        raise InputError(
            f"the loss of one sample has shape {value.shape[1:]} and type {value.dtype}",
            "one number for each sample",
            "Reduce the outputs of a sample, not the batch, in the loss",
        )
    return prediction


def _as_many(loss: Any, prediction: Any, y: Any) -> None:
    """Losses of one number and one target do not stretch one of them over the other."""
    if not isinstance(loss, ResidualLoss | MarginLoss | BinaryCrossEntropy):
        return
    outputs, targets = prediction.shape[1:], np.shape(y)[1:]
    if np.prod(outputs, dtype=int) != np.prod(targets, dtype=int):
        raise InputError(
            f"the model predicts {outputs} and the target of a sample has shape {targets}",
            f"as many outputs as targets for {type(loss).__name__}",
            "Change the size of the last layer, or the shape of y",
        )


def labels(loss: Any, prediction: Any, y: Any) -> None:
    """Refuse targets outside the range that the loss has a meaning for."""
    kind = getattr(loss, "targets", None)
    if kind not in ("classes", "bits", "signs") or not hasattr(y, "dtype"):
        return
    values = np.asarray(y)
    low, high = values.min(), values.max()
    if kind == "bits" and not 0 <= low <= high <= 1:
        _outside(low, high, "0 … 1", "Number the two classes 0 and 1")
    if kind == "signs" and not np.all(np.abs(values) == 1):
        _outside(low, high, "−1 and +1", "Pass np.where(y == positive, 1, -1)")
    if kind == "classes":
        k = prediction.shape[-1]
        if values.dtype.kind not in "iu" or not 0 <= low <= high < k:
            _outside(
                low,
                high,
                f"whole numbers 0 … {k - 1}: the model has {k} outputs",
                "Number the classes with np.unique(y, return_inverse=True), or widen the last "
                "layer",
            )


def _outside(low: Any, high: Any, expected: str, todo: str) -> None:
    raise InputError(f"targets lie between {low} and {high}", f"targets {expected}", todo)


def _brief(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")[:200]
