"""First-fit colouring of columns, in an order that can be chosen, improved by repetition.

Two columns conflict when some row has both. Instead of that graph each row keeps the set of colours
it has seen as the bits of one integer: a column's forbidden colours are the union over its rows.
Reference: Gebremedhin, Manne & Pothen (2005), What color is your Jacobian?
"""

import numpy as np
from scipy import sparse

__all__ = ["first_fit", "improved", "orders"]


def first_fit(pattern: sparse.csc_array, order: np.ndarray) -> np.ndarray:
    """Give each column, in `order`, the least colour none of its rows has seen; shape (n,).

    >>> first_fit(sparse.csc_array(np.ones((1, 3), bool)), np.arange(3)).tolist()
    [0, 1, 2]
    """
    starts, rows = pattern.indptr.tolist(), pattern.indices.tolist()
    seen = [0] * pattern.shape[0]
    chosen = [0] * pattern.shape[1]
    for column in order.tolist():
        mine = rows[starts[column] : starts[column + 1]]
        forbidden = 0
        for row in mine:
            forbidden |= seen[row]
        bit = ~forbidden & (forbidden + 1)
        for row in mine:
            seen[row] |= bit
        chosen[column] = bit
    distinct = {bit: bit.bit_length() - 1 for bit in set(chosen) if bit}
    return np.array([distinct.get(bit, 0) for bit in chosen], dtype=np.int32)


def orders(pattern: sparse.csc_array) -> list[np.ndarray]:
    """Natural, largest first and smallest last (by the number of entries in a column's rows)."""
    n = pattern.shape[1]
    row_sizes = np.bincount(pattern.indices, minlength=pattern.shape[0])
    weight = np.add.reduceat(
        np.append(row_sizes[pattern.indices], 0), np.minimum(pattern.indptr[:-1], pattern.nnz)
    )
    weight = np.where(np.diff(pattern.indptr) > 0, weight, 0)
    return [np.arange(n), np.argsort(-weight, kind="stable"), _smallest_last(pattern, weight)]


def _smallest_last(pattern: sparse.csc_array, weight: np.ndarray) -> np.ndarray:
    """Peel columns of least remaining weight in rounds; colour the last peeled first."""
    remaining = weight.astype(np.int64)
    alive = np.ones(pattern.shape[1], bool)
    by_row = sparse.csr_array(pattern)
    peeled: list[np.ndarray] = []
    while alive.any():
        limit = np.partition(remaining[alive], alive.sum() // 8)[alive.sum() // 8]
        now = np.flatnonzero(alive & (remaining <= limit))
        alive[now] = False
        peeled.append(now)
        gone = np.zeros(pattern.shape[1])
        gone[now] = 1.0
        lost = by_row.astype(np.float64) @ gone
        remaining = remaining - (pattern.T.astype(np.float64) @ lost).astype(np.int64)
    return np.concatenate(peeled[::-1]) if peeled else np.zeros(0, np.int64)


def improved(
    pattern: sparse.csc_array, colours: np.ndarray, target: int, rounds: int
) -> np.ndarray:
    """Recolour class by class: never more colours, often fewer (Culberson's iterated greedy)."""
    rng = np.random.default_rng(0)
    best = colours
    for attempt in range(rounds):
        count = int(best.max(initial=-1)) + 1
        if count <= target:
            break
        sizes = np.bincount(best, minlength=count)
        ranks = (np.arange(count)[::-1], np.argsort(np.argsort(-sizes)), rng.permutation(count))
        best = first_fit(pattern, np.argsort(ranks[attempt % 3][best], kind="stable"))
    return best
