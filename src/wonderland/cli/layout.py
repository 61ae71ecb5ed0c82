"""Results as text: tables that fit a terminal of 100 columns."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wonderland.core.evidence import Claim

__all__ = ["coefficient_table", "evidence_table", "number", "section", "table"]

WIDTH = 100
CELL = 36  # characters a value may take before it is abridged


def section(title: str, *blocks: str) -> str:
    """A title, underlined, and blocks of text under it.

    >>> print(section("Ridge", "alpha = 1"))
    Ridge
    ─────
    alpha = 1
    """
    return "\n".join([title, "─" * len(title), "\n\n".join(blocks)])


def number(value: Any) -> str:
    """A number to four significant digits, an interval as 'low … high', anything else as it is.

    >>> number(2859.69), number((1.0, 2.0)), number(None)
    ('2860', '1 … 2', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_ | str):
        return _abridged(str(value))
    if isinstance(value, Mapping):
        ties = (f"{name} ~ {', '.join(others)}" for name, others in value.items())
        return _abridged("; ".join(ties) or "none")
    if isinstance(value, tuple) and len(value) == 2:
        return f"{number(value[0])} … {number(value[1])}"
    if np.size(value) != 1:
        return _abridged(" ".join(number(item) for item in np.ravel(value)))
    plain = np.ravel(value)[0]
    return f"{plain}" if isinstance(plain, int | np.integer) else _significant(float(plain))


def _significant(value: float) -> str:
    """Four significant digits, without the exponent where five characters say it as well."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.4g}"


def _abridged(text: str) -> str:
    return text if len(text) <= CELL else text[: CELL - 1] + "…"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns under their heads: the first to the left, numbers to the right.

    >>> print(table(["", "value"], [["alpha", "1.5"], ["b", "10"]]))
           value
    alpha    1.5
    b         10
    """
    listed = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[k]) for row in listed) for k in range(len(head))]
    lines = (
        "  ".join(
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in listed
    )
    return "\n".join(line.rstrip() for line in lines)


def evidence_table(claims: Iterable[Claim], width: int = WIDTH) -> str:
    """Claims as a table whose meanings are wrapped to the width.

    >>> print(evidence_table([Claim.below("gap", 0.5, 1.0, "test minus training error")]))
    claim  value  bound  holds  meaning
    gap    0.5    1      yes    test minus training error
    """
    rows = [("claim", "value", "bound", "holds", "meaning")]
    rows += [
        (c.name, number(c.value), number(c.bound), _verdict(c.holds), c.meaning) for c in claims
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    indent = sum(widths) + 8
    lines = []
    for row in rows:
        left = "".join(f"{cell:<{size}}  " for cell, size in zip(row, widths, strict=False))
        wrapped = textwrap.wrap(row[4], max(width - indent, 24)) or [""]
        lines += [left + wrapped[0], *(" " * indent + more for more in wrapped[1:])]
    return "\n".join(line.rstrip() for line in lines)


def _verdict(holds: bool | None) -> str:  # noqa: FBT001
    return "" if holds is None else "yes" if holds else "NO"


def coefficient_table(estimator: Any, names: Sequence[str], level: float = 0.95) -> str:
    """Coefficients with standard errors and confidence intervals, output by output."""
    coef, error = np.atleast_2d(estimator.coef_), np.atleast_2d(estimator.standard_errors_)
    low, high = (np.atleast_2d(end) for end in estimator.confidence_interval(level))
    base = zip(
        np.ravel(estimator.intercept_),
        np.ravel(estimator.intercept_standard_error_),
        *(np.ravel(end) for end in estimator.confidence_interval(level, intercept=True)),
        strict=True,
    )
    head = ["coefficient", "value", "std. error", f"{level:.0%} interval from", "to"]
    blocks = []
    for k, constant in enumerate(base):
        rows = [["intercept", *map(number, constant)]] if estimator.fit_intercept else []
        rows += [
            [name, *map(number, (coef[k, j], error[k, j], low[k, j], high[k, j]))]
            for j, name in enumerate(names)
        ]
        title = f"{estimator.target_names_[k]}:\n" if len(coef) > 1 else ""
        blocks.append(title + table(head, rows))
    return "\n\n".join(blocks)
