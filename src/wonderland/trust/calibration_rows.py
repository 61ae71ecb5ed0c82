"""Rows of scores and probabilities on the host: softmax, normalising, keeping the largest."""

import numpy as np

from wonderland.core.blocks import map_rows

__all__ = ["keep_largest", "normalised", "softmax"]

BLOCK = 4096


def softmax(z: np.ndarray) -> np.ndarray:
    """exp z / Σ exp z of each row (n, k), without overflow."""
    p = np.empty(z.shape)

    def part(start: int, stop: int) -> None:
        for low in range(start, stop, BLOCK):
            rows = slice(low, min(low + BLOCK, stop))
            # Classes in rows: sums over them are then sums of whole vectors.
            columns = np.ascontiguousarray(z[rows].T)
            np.exp(columns - columns.max(axis=0), out=columns)
            columns /= columns.sum(axis=0)
            p[rows] = columns.T

    map_rows(part, len(z), z.size)
    return p


def keep_largest(p: np.ndarray, z: np.ndarray) -> np.ndarray:
    """p with the arg max of z in every row, the first among equals; p may be changed in place.

    Scores that differ by less than rounding leaves of them become equal probabilities, of which
    the first would win: the right one is lifted by a unit in the last place.
    """
    wanted, found = z.argmax(axis=1), p.argmax(axis=1)
    rows = np.flatnonzero(wanted != found)
    if len(rows):
        p[rows, wanted[rows]] = np.nextafter(p[rows, found[rows]], np.inf)
    return p


def normalised(p: np.ndarray) -> np.ndarray:
    """Rows divided by their sums (n, k); a row of zeros becomes uniform, as in scikit-learn."""
    total = p.sum(axis=1, keepdims=True)
    uniform = np.full_like(p, 1.0 / p.shape[1])
    return np.divide(p, total, out=uniform, where=total != 0)
