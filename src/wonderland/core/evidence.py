"""What a person needs to know about a fit: named claims, each computed and never asserted."""

import html
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Claim", "Evidence"]


class Claim(NamedTuple):
    """One computed fact about a fit.

    Attributes:
        name: The key under which it is found.
        value: What was measured.
        bound: What theory or the tolerance promises for it, or None where nothing is promised.
        holds: Whether the value keeps the bound; None where there is no bound.
        meaning: One sentence: what is measured, how, and in which units.

    >>> print(Claim.below("gradient_norm", 3e-9, 1e-6, "largest entry of the gradient"))
    gradient_norm = 3e-09 (bound 1e-06, holds): largest entry of the gradient
    """

    name: str
    value: Any
    bound: Any
    holds: bool | None
    meaning: str

    @classmethod
    def fact(cls, name: str, value: Any, meaning: str) -> "Claim":
        """A measurement that no theorem bounds."""
        return cls(name, value, None, None, meaning)

    @classmethod
    def below(cls, name: str, value: Any, bound: Any, meaning: str) -> "Claim":
        """A measurement that must not exceed its bound."""
        return cls(name, value, bound, bool(np.all(value <= bound)), meaning)

    @classmethod
    def above(cls, name: str, value: Any, bound: Any, meaning: str) -> "Claim":
        """A measurement that must reach its bound."""
        return cls(name, value, bound, bool(np.all(value >= bound)), meaning)

    def __str__(self) -> str:
        promise = ""
        if self.bound is not None:
            promise = f" (bound {_short(self.bound)}, {_verdict(self.holds)})"
        return f"{self.name} = {_short(self.value)}{promise}: {self.meaning}"


class Evidence(Mapping[str, Claim]):
    """An ordered, read-only mapping from a claim's name to the claim.

    >>> evidence = Evidence([Claim.fact("rank", 3, "independent columns")])
    >>> evidence["rank"].value
    3
    >>> print(evidence)
    claim  value  bound  holds  meaning
    rank   3                    independent columns
    """

    def __init__(self, claims: Iterable[Claim] = ()) -> None:
        self._claims = {claim.name: claim for claim in claims}

    def __getitem__(self, name: str) -> Claim:
        return self._claims[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._claims)

    def __len__(self) -> int:
        return len(self._claims)

    def with_claims(self, *claims: Claim) -> "Evidence":
        """The same evidence with further or replaced claims."""
        return Evidence([*self._claims.values(), *claims])

    @property
    def failing(self) -> tuple[Claim, ...]:
        """The claims whose bound was not kept."""
        return tuple(claim for claim in self._claims.values() if claim.holds is False)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain values for JSON: numbers, strings, lists; non-finite numbers become strings."""
        return {name: plain(claim._asdict()) for name, claim in self._claims.items()}

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        return [
            (c.name, _short(c.value), _short(c.bound), _verdict(c.holds), c.meaning)
            for c in self._claims.values()
        ]

    def __repr__(self) -> str:
        rows = [_HEADER, *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [
            "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]])
            for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align:left'>{cell}</th>" for cell in _HEADER)
        body = "".join(
            f"<tr style='color:{'#b00020' if row[3] == 'FAILS' else 'inherit'}'>"
            + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row)
            + "</tr>"
            for row in self._rows()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_HEADER = ("claim", "value", "bound", "holds", "meaning")
_ABRIDGE = 40  # characters of a value that fit a table cell


def _verdict(holds: bool | None) -> str:  # noqa: FBT001  # it is the value to print
    return "" if holds is None else "holds" if holds else "FAILS"


def _short(value: Any) -> str:
    """One cell of the table: numbers to four significant digits, long things abridged."""
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}"
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        return _short_array(np.asarray(value))
    if isinstance(value, tuple):
        return _abridged(f"({', '.join(_short(item) for item in value)})")
    return _abridged(str(value))


def _abridged(text: str) -> str:
    return text if len(text) <= _ABRIDGE else text[: _ABRIDGE - 1] + "…"


def _short_array(array: np.ndarray) -> str:
    if array.ndim == 0:
        return _short(array.item())
    if array.size == 0:
        return "(none)"
    return f"{_short(array.min().item())} … {_short(array.max().item())}"


def plain(value: Any) -> Any:
    """Turn NumPy and JAX values, tuples and mappings into what JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "__array__"):
        return plain(np.asarray(value).tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
