"""Budgets as people write them, and the memory a compiled program says it takes."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax

from wonderland.core.errors import InputError

__all__ = ["compiled_peak", "human", "parse", "roomy"]

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_WRITTEN = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


def parse(memory: Any) -> int | float | None:
    """A budget in bytes (int), as a fraction of the plain peak (float), or None.

    >>> parse("512MB"), parse("1.5 GiB"), parse(0.25), parse(None)
    (512000000, 1610612736, 0.25, None)
    """
    if memory is None:
        return None
    if isinstance(memory, str):
        return _from_text(memory)
    if isinstance(memory, int) and not isinstance(memory, bool) and memory > 0:
        return memory
    if isinstance(memory, float) and 0 < memory <= 1:
        return memory
    raise _refused(memory)


def _from_text(memory: str) -> int:
    found = _WRITTEN.fullmatch(memory)
    if not found:
        raise _refused(memory)
    amount, unit, binary = found.groups()
    return int(float(amount) * (BINARY if binary else UNITS)[unit.lower()])


def _refused(memory: Any) -> InputError:
    return InputError(
        f"memory is {memory!r}",
        "a size such as '512MB' or '2GiB', a number of bytes, a fraction of the plain peak "
        "above 0 and at most 1, or None",
        "Pass memory=0.25 for a quarter of what the plain reverse pass takes",
    )


def human(amount: float) -> str:
    """Bytes or operations in a few characters.

    >>> human(23_072_128), human(812)
    ('23.1 M', '812 ')
    """
    for unit, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if amount >= factor:
            return f"{amount / factor:.3g} {unit}"
    return f"{amount:.0f} "


def roomy(amount: int) -> str:
    """A size that can be passed back as a budget and is not below `amount`.

    >>> roomy(23_072_128)
    '23.08MB'
    """
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if amount >= factor:
            return f"{math.ceil(amount / factor * 100) / 100:g}{unit}"
    return f"{amount}B"


def compiled_peak(reverse: Callable[..., Any], shapes: Sequence[Any]) -> int | None:
    """Bytes the compiled program takes beside its arguments and results; None if it cannot tell.

    It is `temp_size_in_bytes` of XLA's memory analysis; nothing is run.
    """
    analysis = jax.jit(reverse).lower(*shapes).compile().memory_analysis()
    return None if analysis is None else int(analysis.temp_size_in_bytes)
