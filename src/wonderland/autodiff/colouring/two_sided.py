"""Colour some rows and the columns of what is left: for patterns with a few dense rows.

An arrow matrix (first row, first column, diagonal) needs n colours from either side alone. Its one
dense row costs one product uᵀJ; without it two products J s read the rest: three in all.
Reference: Coleman & Verma (1998), The efficient computation of sparse Jacobian matrices.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy import sparse

from .one_sided import colour_columns, row_sizes

__all__ = ["TwoSided", "colour_both"]

CUTS: Final = 12  # borders tried between dense and sparse rows


class TwoSided(NamedTuple):
    """Rows read by uᵀJ, everything else read by J s.

    Attributes:
        columns: Colour of each column, −1 where no product J s needs it, shape (n,).
        rows: Colour of each row, −1 where its entries come from the columns, shape (m,).
        forward: Number of products J s.
        reverse: Number of products uᵀJ.
    """

    columns: np.ndarray
    rows: np.ndarray
    forward: int
    reverse: int


def colour_both(
    pattern: sparse.csr_array,
    shapes: Sequence[tuple[int, ...]],
    prices: tuple[float, float],
    budget: float,
) -> TwoSided | None:
    """The cheapest split into row and column products found, if cheaper than `budget`.

    Args:
        pattern: Boolean CSR (m, n).
        shapes: Shapes of the arrays whose elements are the columns.
        prices: Price of one product J s and of one product uᵀJ.
        budget: What colouring one side alone costs.

    >>> arrow = np.eye(9, dtype=bool)
    >>> arrow[0] = arrow[:, 0] = True
    >>> found = colour_both(sparse.csr_array(arrow), [(9,)], (1.0, 1.0), 9.0)
    >>> found.forward, found.reverse
    (2, 1)
    """
    best, spent = None, budget
    sizes = row_sizes(pattern)
    for cut in _cuts(sizes):
        dense = sizes > cut
        # At least `cut` products for the sparse rows, and one for the dense ones.
        if prices[0] * cut + prices[1] >= spent:
            continue
        found = _split(pattern, dense, shapes)
        price = prices[0] * found.forward + prices[1] * found.reverse
        if price < spent:
            best, spent = found, price
    return best


def _cuts(sizes: np.ndarray) -> list[int]:
    """Borders worth trying: halves, quarters, … of the largest row, down to the usual row."""
    largest, usual = int(sizes.max(initial=0)), float(np.median(sizes)) if len(sizes) else 0.0
    borders = [largest >> power for power in range(1, CUTS + 1)]
    kept = sizes[sizes > 0]
    # The largest size actually present below a border separates the same rows and bounds better.
    found = {int(kept[kept <= border].max(initial=0)) for border in borders if border >= usual}
    return sorted(found - {0})


def _split(
    pattern: sparse.csr_array, dense: np.ndarray, shapes: Sequence[tuple[int, ...]]
) -> TwoSided:
    top = sparse.csr_array(pattern[np.flatnonzero(dense)])
    below = colour_columns(sparse.csr_array(pattern[np.flatnonzero(~dense)]), shapes)
    above = colour_columns(sparse.csr_array(top.T))
    rows = np.full(pattern.shape[0], -1, np.int32)
    rows[dense] = above.colours
    return TwoSided(below.colours, rows, below.number, above.number)
