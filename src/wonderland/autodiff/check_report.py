"""What a check of a derivative found: entry by entry, as a table, with the step to blame."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wonderland.autodiff.blame import Blame

__all__ = ["FAILING", "Entry", "GradientCheck"]

FAILING = ("differs", "modes differ", "not finite")
_ROWS = 12


class Entry(NamedTuple):
    """∂(output)/∂(input) by every method; None where a method does not apply.

    Attributes:
        input: Which number of x, such as "['w'][0, 1]".
        output: Which number of f(x); empty for a scalar function.
        reverse: By `jax.vjp`.
        forward: By `jax.jvp`.
        central: By central differences.
        central_error: How far off these expect to be.
        complex_step: By the complex step.
        symbolic: By SymPy.
        scale: The size of the entries of this row, which rounding errors are relative to.
        rounding: The expected error of reverse, forward, complex and symbolic together.
        verdict: "agrees", "differs", "modes differ", "not finite", "kink" (a slope between the two
            one-sided ones) or "undecided" (the differences are too noisy to tell).
    """

    input: str
    output: str
    reverse: float | None
    forward: float | None
    central: float
    central_error: float
    complex_step: float | None
    symbolic: float | None
    scale: float
    rounding: float
    verdict: str

    @property
    def given(self) -> float:
        """What automatic differentiation gives: reverse, or forward where that is all there is."""
        given = self.forward if self.reverse is None else self.reverse
        return float("nan") if given is None else given


class GradientCheck:
    """What `check_gradient` found; true where the derivative is right, prints as a table.

    Attributes:
        entries: One `Entry` for each entry of the Jacobian that was looked at.
        blame: The steps of the program whose own derivative is wrong.
        notes: Why a method was not used, and what was left out.
    """

    def __init__(
        self, entries: Sequence[Entry], blame: Sequence[Blame], notes: Sequence[str]
    ) -> None:
        self.entries, self.blame, self.notes = tuple(entries), tuple(blame), tuple(notes)

    @property
    def failing(self) -> tuple[Entry, ...]:
        """The entries that differ or are not finite."""
        return tuple(e for e in self.entries if e.verdict in FAILING)

    @property
    def holds(self) -> bool:
        """Whether no entry fails."""
        return not self.failing

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        shown = sorted(self.entries, key=_worst)[:_ROWS]
        lines = [self._headline(), _table(shown)]
        if len(self.entries) > _ROWS:
            lines.append(f"... and {len(self.entries) - _ROWS} more")
        lines += [f"wrong: {one}" for one in self.blame]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _headline(self) -> str:
        count = len(self.entries)
        if self.holds:
            return f"The derivative holds: {count} of {count} entries."
        return f"The derivative FAILS in {len(self.failing)} of {count} entries."

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers that are not finite become None."""
        rows = [{k: _plain(v) for k, v in entry._asdict().items()} for entry in self.entries]
        blame = [{**one._asdict(), "path": list(one.path)} for one in self.blame]
        return {
            "holds": self.holds,
            "entries": rows,
            "blame": [{k: _plain(v) for k, v in one.items()} for one in blame],
            "notes": list(self.notes),
        }


def _worst(entry: Entry) -> tuple[int, float]:
    gap = abs(entry.given - entry.central) / max(entry.central_error + entry.rounding, 1e-300)
    order = (*FAILING, "kink", "undecided", "agrees").index(entry.verdict)
    return order, -gap if np.isfinite(gap) else -np.inf


_HEADER = (
    "input", "output", "reverse", "forward", "central", "±", "complex", "symbolic", "verdict",
)  # fmt: skip


def _table(entries: Sequence[Entry]) -> str:
    rows = [_HEADER, *map(_cells, entries)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEADER))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _cells(e: Entry) -> tuple[str, ...]:
    numbers = (e.reverse, e.forward, e.central)
    told = [_number(value, 9) for value in numbers] + [_number(e.central_error, 2)]
    exact = [_number(value, 9) for value in (e.complex_step, e.symbolic)]
    return (e.input, e.output, *told, *exact, e.verdict)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
