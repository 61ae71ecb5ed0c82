"""Products of wide tables by XLA, whose matrix products outrun NumPy's BLAS where columns are many.

NumPy's BLAS does not use the widest vectors of every processor; XLA does. For wide tables the
product is what a kernel matrix costs, so that blocks of `SIDE` rows go to XLA, in one program for
each number of columns. Narrow and small tables stay with BLAS: nothing is compiled for them.
"""

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import in_float64
from wonderland.core.blocks import workers

__all__ = ["Multiplier"]

SIDE = 512  # rows of a block, as in `tiles`
WIDE = 128  # columns from which XLA is faster
WORTH = 1 << 35  # operations that pay for compiling


class Multiplier:
    """left rightᵀ for blocks of two tables: `multiply(rows, columns, out)`.

    >>> a = np.eye(3)
    >>> out = np.empty((3, 2))
    >>> Multiplier(a, a)(slice(0, 3), slice(1, 3), out)
    >>> out[:, 0]
    array([0., 1., 0.])
    """

    def __init__(self, left: np.ndarray, right: np.ndarray) -> None:
        self.left, self.right = left, right
        work = 2.0 * len(left) * len(right) * left.shape[1]
        self.fast = left.shape[1] >= WIDE and work >= WORTH and workers() > 1
        self.held: dict[tuple[int, int], jax.Array] = {}

    def __call__(self, rows: slice, columns: slice, out: np.ndarray) -> None:
        """Write left[rows] right[columns]ᵀ."""
        if not self.fast or rows.start % SIDE or rows.stop - rows.start != SIDE:
            np.matmul(self.left[rows], self.right[columns].T, out=out)
            return
        for start in range(columns.start, columns.stop, SIDE):
            stop = min(start + SIDE, columns.stop)
            place = out[:, start - columns.start : stop - columns.start]
            if start % SIDE or stop - start != SIDE:
                np.matmul(self.left[rows], self.right[start:stop].T, out=place)
            else:
                self._block(rows.start, start, place)

    @in_float64
    def _block(self, i: int, j: int, out: np.ndarray) -> None:
        out[:] = np.asarray(_product(self._held(0, i), self._held(1, j)))

    def _held(self, side: int, start: int) -> jax.Array:
        """A block as XLA wants it, kept because every block meets all others."""
        key = (side, start)
        if key not in self.held:
            table = (self.left, self.right)[side]
            self.held[key] = jnp.asarray(table[start : start + SIDE])
        return self.held[key]


@jax.jit
def _product(a: jax.Array, b: jax.Array) -> jax.Array:
    return jax.lax.dot_general(a, b, (((1,), (1,)), ((), ())))
