"""Bins of confidences: intervals of equal width, or of equal mass.

    width   [i/b, (i + 1)/b), the last one closed
    mass    between weighted quantiles: about the same weight in each, equal confidences together

Shapes: n rows, b bins.
"""

import numbers
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, nearest

__all__ = ["STRATEGIES", "assign", "check_bins", "edges_of"]

STRATEGIES = ("width", "mass")


def check_bins(bins: Any, strategy: Any) -> None:
    """Refuse a number of bins or a strategy that cannot be."""
    if not isinstance(bins, numbers.Integral) or isinstance(bins, bool) or bins < 1:
        raise InputError(f"bins is {bins!r}", "a whole number ≥ 1", "Pass bins=15")
    if strategy not in STRATEGIES:
        raise InputError(
            f"strategy is {strategy!r}", '"width" or "mass"', nearest(strategy, STRATEGIES)
        )


def edges_of(
    confidence: np.ndarray, weight: np.ndarray | None, bins: int, strategy: str
) -> np.ndarray:
    """Edges (b + 1,) from 0 to 1; equal mass gives fewer bins where confidences repeat.

    >>> edges_of(np.array([0.1, 0.2, 0.2, 0.9]), None, 2, "mass").tolist()
    [0.0, 0.2, 1.0]
    """
    if strategy == "width":
        # i/b and not i·(1/b): the edge 3/10 is then the number that a person writes as 0.3.
        return np.arange(bins + 1) / bins
    share = np.arange(1, bins) / bins
    if weight is None:
        rank = np.minimum(np.round(share * len(confidence)).astype(int), len(confidence) - 1)
        inner = np.partition(confidence, np.unique(rank))[rank]
    else:
        order = np.argsort(confidence)
        mass = np.cumsum(weight[order])
        rank = np.searchsorted(mass, share * mass[-1])
        inner = confidence[order][np.minimum(rank, len(order) - 1)]
    return np.unique(np.concatenate([[0.0], inner[(inner > 0) & (inner < 1)], [1.0]]))


def assign(confidence: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each confidence (n,): edges[i] ≤ c < edges[i + 1], and 1 in the last."""
    return np.minimum(np.searchsorted(edges, confidence, side="right") - 1, len(edges) - 2)
