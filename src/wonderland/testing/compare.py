"""Comparisons that say in a sentence what differs, shared by all laws."""

from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

__all__ = ["close", "same"]


def close(
    came: Any, expected: Any, sentence: str, *, rtol: float = 1e-8, atol: float = 0.0
) -> None:
    """Raise unless |came − expected| ≤ atol + rtol·max|expected| everywhere.

    The largest entry sets the scale: an entry that cancels to nearly zero is not held to digits
    that its neighbours' rounding has taken.

    >>> close([1.0, 1e-17], [1.0, 0.0], "the two answers agree")
    >>> close([1.0], [1.1], "the two answers agree")
    Traceback (most recent call last):
    ...
    AssertionError: the two answers agree: they differ by 0.1 where 1.1e-08 is allowed
    """
    a, b = np.asarray(came, np.float64), np.asarray(expected, np.float64)
    if a.shape != b.shape:
        raise AssertionError(f"{sentence}: shapes {a.shape} and {b.shape}")
    allowed = atol + rtol * float(np.max(np.abs(b), initial=0.0))
    apart = float(np.max(np.abs(a - b), initial=0.0))
    if not apart <= allowed:
        raise AssertionError(
            f"{sentence}: they differ by {apart:.3g} where {allowed:.3g} is allowed"
        )


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal bit for bit, through containers, arrays and objects.

    >>> same({"w": np.array([1.0, np.nan])}, {"w": np.array([1.0, np.nan])})
    True
    >>> same(np.float32(1), np.float64(1)), same([0.0], [-0.0])
    (False, False)
    """
    if type(a) is not type(b):
        return False
    if hasattr(a, "__array__"):
        return _same_array(np.asarray(a), np.asarray(b))
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return _same_array(np.asarray(a), np.asarray(b))
    if getattr(a, "__dict__", None) and not isinstance(a, type | FunctionType):
        return same(dict(vars(a)), dict(vars(b)))
    return bool(a == b)


def _same_array(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype == object:
        return all(same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
    return a.tobytes() == b.tobytes()
