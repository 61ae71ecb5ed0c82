"""Kernel values that are functions of one inner product, by XLA: made, finished and used in cache.

    k(x, z) = h(⟨a(x), b(z)⟩)

Of two tables of rows a(x_i) and b(z_j) in float32 a panel of 2048 × 512 inner products is made,
turned into kernel values and summed before the next one is; blocks are written once. Counts enter
as arrays and tables are padded to few heights, so that one program serves many sizes. Shapes:
A (n, p), B (m, p), V (m, t).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from wonderland.core.arrays import in_float64
from wonderland.core.blocks import map_rows

__all__ = ["Panels", "filled", "square", "sums"]

ROWS, COLUMNS = 2048, 512  # of a panel: 4 MiB of float32 in the caches of all cores
LONG = 4 * ROWS  # rows that one call takes
STRIP = 256  # rows that are written at a time into a block


class Panels(NamedTuple):
    """Rows ready for inner products.

    Attributes:
        kernel: k, whose `finish` is h.
        left: A (n, p) in float32.
        right: B (m, p) in float32.
    """

    kernel: Any
    left: np.ndarray
    right: np.ndarray

    def part(self, rows: np.ndarray, columns: np.ndarray) -> "Panels":
        """Some of both tables."""
        return self._replace(left=self.left[rows], right=self.right[columns])


def sums(panels: Panels, values: np.ndarray) -> np.ndarray:
    """Σ_j k(x_i, z_j) v_j (n, t): float32 in a panel, float64 over them.

    >>> from wonderland.kernels import Linear
    >>> one = np.ones((2, 1), np.float32)
    >>> sums(Panels(Linear(), one, 2 * one), np.ones((2, 1)))
    array([[4.],
           [4.]])
    """
    n, m = len(panels.left), len(panels.right)
    right, heights = _tall(panels.right, m), _tall(values.astype(np.float32), m)
    total = np.empty((n, values.shape[1]))
    count = np.int32(-(-m // COLUMNS))
    starts = range(0, n, LONG)
    found = []
    for start in starts:
        rows = panels.left[start : start + LONG]
        some = np.int32(-(-len(rows) // ROWS))
        found.append(_sums(panels.kernel, _high(rows, LONG), right, heights, some, count))
    for start, part in zip(starts, found, strict=True):
        total[start : start + LONG] = np.asarray(part)[: min(LONG, n - start)]
    return total


def square(panels: Panels, out: np.ndarray) -> np.ndarray:
    """K (n, n) of one table in float32: one triangle of tiles, each written to both its places.

    >>> from wonderland.kernels import Linear
    >>> one = np.ones((2, 1), np.float32)
    >>> square(Panels(Linear(), one, 2 * one), np.empty((2, 2), np.float32))
    array([[2., 2.],
           [2., 2.]], dtype=float32)
    """
    n = len(panels.left)
    places = [(i, j) for i in range(0, n, TILE) for j in range(i, n, TILE)]
    tables = [[_high(t[i : i + TILE], TILE) for i in range(0, n, TILE)] for t in panels[1:]]
    held = [[jnp.asarray(part) for part in table] for table in tables]

    def work(start: int, stop: int) -> None:
        for i, j in places[start:stop]:
            tile, turned = _tile(panels.kernel, held[0][i // TILE], held[1][j // TILE])
            rows, columns = slice(i, min(i + TILE, n)), slice(j, min(j + TILE, n))
            out[rows, columns] = np.asarray(tile)[: rows.stop - i, : columns.stop - j]
            if i != j:
                out[columns, rows] = np.asarray(turned)[: columns.stop - j, : rows.stop - i]

    map_rows(work, len(places), out.size)
    return out


TILE = 1024  # side of the tiles of a square


@jax.jit
def _tile(kernel: Any, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    values = kernel.finish(a @ b.T)
    return values, values.T


def filled(panels: Panels, space: Any, side: int) -> Any:
    """K (side, side), row after row, in the memory of `space` (≥ side²,) of JAX, which is gone.

    What lies beyond the rows of the panels is padding, finite and nothing else.
    """
    left, right = _high(panels.left, side), _high(panels.right, side)
    strips = np.int32(-(-len(panels.left) // min(STRIP, side)))
    return _filled(space, panels.kernel, left, right, strips)


def _tall(table: np.ndarray, m: int) -> np.ndarray:
    """Padded to COLUMNS times a power of four: what a pass costs depends on m alone."""
    height = COLUMNS
    while height < m:
        height *= 4
    return _high(table, height)


def _high(table: np.ndarray, height: int) -> np.ndarray:
    if len(table) == height:
        return table
    wide = np.zeros((height, table.shape[1]), table.dtype)
    wide[: len(table)] = table
    return wide


@in_float64
@jax.jit
def _sums(
    kernel: Any,
    left: jax.Array,
    right: jax.Array,
    values: jax.Array,
    rows: jax.Array,
    columns: jax.Array,
) -> jax.Array:
    def panel(i: Any, out: jax.Array) -> jax.Array:
        a = lax.dynamic_slice_in_dim(left, i * ROWS, ROWS)

        def add(j: Any, total: jax.Array) -> jax.Array:
            b = lax.dynamic_slice_in_dim(right, j * COLUMNS, COLUMNS)
            v = lax.dynamic_slice_in_dim(values, j * COLUMNS, COLUMNS)
            return total + (kernel.finish(a @ b.T) @ v).astype(jnp.float64)

        total = lax.fori_loop(0, columns, add, jnp.zeros((ROWS, values.shape[1]), jnp.float64))
        return lax.dynamic_update_slice_in_dim(out, total, i * ROWS, 0)

    start = jnp.zeros((left.shape[0], values.shape[1]), jnp.float64)
    return lax.fori_loop(0, rows, panel, start)


@in_float64
@partial(jax.jit, donate_argnums=0)
def _filled(
    out: jax.Array, kernel: Any, left: jax.Array, right: jax.Array, strips: jax.Array
) -> jax.Array:
    side = len(left)
    height = min(STRIP, side)

    def strip(i: Any, out: jax.Array) -> jax.Array:
        a = lax.dynamic_slice_in_dim(left, i * height, height)
        made = kernel.finish(a @ right.T).reshape(-1)
        return lax.dynamic_update_slice_in_dim(out, made, i * height * side, 0)

    return lax.fori_loop(0, strips, strip, out)
