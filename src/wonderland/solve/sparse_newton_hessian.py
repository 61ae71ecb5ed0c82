"""The Hessian of the loss on a working set, kept from step to step.

    H_(cj)(el) = Σ_i ω_i ∂²ℓ_i/∂z_c∂z_e x_ij x_il

over pairs (c, j) of output and column, at the scores where it was last computed. Pairs that join
later get their rows of H at those same scores, so that H stays one positive semidefinite matrix.
"""

import numpy as np

from wonderland.solve.sparse_newton_loss import RowLoss, Rows
from wonderland.solve.sparse_newton_table import Table

__all__ = ["KeptHessian"]

CHEAP = 16.0  # multiply-adds of a matrix product in the time one entry is read from memory


class KeptHessian:
    """H over flat numbers c·p + j; `rows` says at which scores."""

    def __init__(self, table: Table, loss: RowLoss, weight: np.ndarray) -> None:
        self.table, self.loss, self.weight = table, loss, weight
        self.rows: Rows | None = None
        self._pairs = np.empty(0, dtype=int)
        self._matrix = np.empty((0, 0))

    def cheap(self, size: int, stocked: int) -> bool:
        """Whether a new Hessian costs no more than a pass over the stock."""
        return size * size <= CHEAP * stocked

    def renew(self, pairs: np.ndarray, rows: Rows) -> None:
        """Compute H over these pairs at these scores, and forget the others."""
        self.rows, self._pairs = rows, pairs
        self._matrix = self._between(pairs, pairs, rows)

    def of(self, pairs: np.ndarray, rows: Rows) -> np.ndarray:
        """A copy of H over the pairs; the first call computes it at `rows`."""
        if self.rows is None:
            self.renew(pairs, rows)
        missing = np.setdiff1d(pairs, self._pairs)
        if len(missing):
            self._join(missing)
        place = np.full(max(int(self._pairs.max()), int(pairs.max())) + 1, -1)
        place[self._pairs] = np.arange(len(self._pairs))
        kept = place[pairs]
        return self._matrix[np.ix_(kept, kept)]

    def _join(self, pairs: np.ndarray) -> None:
        """Border H with the rows of new pairs, at the scores it belongs to."""
        rows = self.rows
        if rows is None:
            return
        cross = self._between(pairs, self._pairs, rows)
        corner = self._between(pairs, pairs, rows)
        self._matrix = np.block([[self._matrix, cross.T], [cross, corner]])
        self._pairs = np.concatenate([self._pairs, pairs])

    def _between(self, left: np.ndarray, right: np.ndarray, rows: Rows) -> np.ndarray:
        """Blocks of H by pairs of outputs."""
        p = self.table.shape[1]
        H = np.zeros((len(left), len(right)))
        for c in np.unique(left // p):
            for e in np.unique(right // p):
                a, b = np.flatnonzero(left // p == c), np.flatnonzero(right // p == e)
                D = self.weight * self.loss.curvature(rows, int(c), int(e))
                H[np.ix_(a, b)] = self.table.gram(left[a] % p, right[b] % p, D)
        return H
