"""One line that tells how long work goes: on a terminal, after a moment; silent elsewhere."""

import sys
import time
from typing import Self

__all__ = ["Progress"]

PATIENCE = 2.0  # seconds before the first line: short work says nothing
EVERY = 0.5  # seconds between lines


class Progress:
    """Rate and time left of work counted in units.

    Args:
        unit: What is counted, such as "rows".
        total: How many there will be, where known.

    >>> with Progress("rows", total=10) as progress:  # quiet: this is no terminal
    ...     progress(5)
    """

    def __init__(self, unit: str, total: float | None = None) -> None:
        self.unit, self.total = unit, total
        self._start = self._last = time.monotonic()
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print(file=sys.stderr)

    def __call__(self, done: float, note: str = "") -> None:
        """Say that `done` units are behind us."""
        now = time.monotonic()
        quiet = now - self._start < PATIENCE or now - self._last < EVERY
        if quiet or not sys.stderr.isatty():
            return
        self._last, self._shown = now, True
        print(f"\r{self._line(done, now - self._start)}{note}\x1b[K", end="", file=sys.stderr)

    def _line(self, done: float, spent: float) -> str:
        rate = done / spent
        line = f"{done:,.0f} {self.unit}, {rate:,.0f}/s"
        if self.total is None or rate <= 0:
            return line
        return f"{line}, at most {(self.total - done) / rate:,.0f} s left"
