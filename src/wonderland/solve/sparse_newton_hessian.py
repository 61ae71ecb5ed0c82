"""The Hessian of the loss on a working set, kept from step to step.

    H_(cj)(el) = Σ_i ω_i ∂²ℓ_i/∂z_c∂z_e x_ij x_il

over pairs (c, j) of output and column, at the scores where it was last computed. Pairs that join
later get their rows of H at those same scores, so that H stays one positive semidefinite matrix.
"""

from typing import Any

import numpy as np

from wonderland.solve.sparse_newton_loss import RowLoss, Rows
from wonderland.solve.sparse_newton_quadratic import Faces
from wonderland.solve.sparse_newton_table import Table

__all__ = ["KeptHessian"]

FLOOR = 1e-11  # least curvature along any pair, as part of its own: a proximal term


class KeptHessian:
    """H over flat numbers c·p + j, scaled to a unit diagonal.

    Attributes:
        rows: The scores at which H was computed; None before.
        pairs: Flat numbers (m,).
        scale: 1/√H_jj (m,), 1 where H_jj is zero.
    """

    def __init__(self, table: Table, loss: RowLoss, weight: np.ndarray) -> None:
        self.table, self.loss, self.weight = table, loss, weight
        self.rows: Rows | None = None
        self.pairs = np.empty(0, dtype=int)
        self.scale = np.empty(0)
        self._matrix = np.empty((0, 0))
        self._faces: tuple[Any, Faces] | None = None

    def renew(self, pairs: np.ndarray, rows: Rows) -> None:
        """Compute H over these pairs at these scores, and forget the others."""
        self.rows, self.pairs, self._faces = rows, pairs, None
        H = self._between(pairs, pairs, rows)
        self._pin_shift(H)
        self.scale = _unit(np.diag(H))
        self._matrix = H * self.scale * self.scale[:, None]

    def cover(self, pairs: np.ndarray, rows: Rows) -> None:
        """See that these pairs are among those of H; the first call computes it at `rows`."""
        if self.rows is None:
            self.renew(pairs, rows)
            return
        missing = np.setdiff1d(pairs, self.pairs)
        if not len(missing):
            return
        both = self._between(missing, np.concatenate([self.pairs, missing]), self.rows)
        m = len(self.pairs)
        scale = _unit(np.diag(both[:, m:]))
        self.pairs, self._faces = np.concatenate([self.pairs, missing]), None
        self.scale = np.concatenate([self.scale, scale])
        both = both * self.scale * scale[:, None]
        self._matrix = np.block([[self._matrix, both[:, :m].T], [both[:, :m], both[:, m:]]])

    def faces(self, ridge: np.ndarray) -> Faces:
        """The scaled H with `ridge` (m,), in units of H, on its diagonal."""
        key = ridge.tobytes()
        if self._faces is None or self._faces[0] != key:
            H = self._matrix.copy()
            H.flat[:: len(H) + 1] += FLOOR + ridge * self.scale**2
            self._faces = (key, Faces(H))
        return self._faces[1]

    def _pin_shift(self, H: np.ndarray) -> None:
        """Give the common shift of all intercepts, which softmax does not see, a curvature."""
        p = self.table.shape[1]
        if self.loss.outputs > 1 and self.table.intercept:
            free = np.flatnonzero(self.pairs % p == p - 1)
            H[np.ix_(free, free)] += np.trace(H[np.ix_(free, free)]) / max(len(free), 1) ** 2

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


def _unit(diagonal: np.ndarray) -> np.ndarray:
    return 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
