"""Kernel matrices on the host: cache-sized tiles, one matrix product each, finished where they lie.

A tile is written by one product of BLAS straight into its place in the result and turned into
kernel values there while it is still in the cache; the result is written to memory once. Squared
distances come out of that same product, since with x̃ = x − m

    −s‖x − z‖² = ⟨[√(2s) x̃, −s‖x̃‖², 1], [√(2s) z̃, 1, −s‖z̃‖²]⟩ .

Their rounding error is about ε·s·(‖x̃‖² + ‖z̃‖²): m, the mean of the rows, makes it small. Where it
would be felt in float32 the products are made in float64, and where a kernel has a kink at distance
zero, distances of close pairs are computed once more from differences.
Symmetric matrices are computed for one triangle of tiles and mirrored.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import map_rows
from wonderland.core.errors import InputError
from wonderland.kernels.wide import SIDE, Multiplier

__all__ = [
    "Tile",
    "apply_tiles",
    "assemble",
    "augmented",
    "check_tables",
    "distances",
    "products",
    "squares",
    "working_type",
]

Tile = Callable[[slice, slice, np.ndarray], None]  # rows, columns, where to write: (a, b)

# SIDE rows and columns of a tile are 1 MiB of float32, a core's second-level cache.
FELT = 1e-5  # rounding error of −s‖x − z‖² in float32 beyond which float64 makes the product
NEAR = 1e-6  # ‖x − z‖²/(‖x̃‖² + ‖z̃‖²) below which differences are taken


def working_type(X: Any, Z: Any, dtype: Any = None) -> np.dtype:
    """float32 when that was asked for, or when both tables are float32; else float64."""
    if dtype is not None:
        return np.dtype(dtype)
    single = np.dtype(np.float32)
    both = X.dtype == single and (Z is None or Z.dtype == single)
    return single if both else np.dtype(np.float64)


def assemble(tile: Tile, n: int, m: int, out: np.ndarray, *, symmetric: bool) -> np.ndarray:
    """Fill `out` (n, m) tile by tile on all cores; of a symmetric one each pair of tiles once."""
    places = [
        (slice(i, min(i + SIDE, n)), slice(j, min(j + SIDE, m)))
        for i in range(0, n, SIDE)
        for j in range(i if symmetric else 0, m, SIDE)
    ]

    def work(start: int, stop: int) -> None:
        for rows, columns in places[start:stop]:
            tile(rows, columns, out[rows, columns])
            if symmetric and rows != columns:
                out[columns, rows] = out[rows, columns].T

    map_rows(work, len(places), out.size)
    return out


def apply_tiles(tile: Tile, n: int, V: np.ndarray) -> np.ndarray:
    """K V (n, t) for K (n, m) of which one tile exists at a time, for each core."""
    m, result = len(V), np.zeros((n, V.shape[1]), V.dtype)
    wide = min(4 * SIDE, max(m, 1))  # each tile is added to few rows of the result: fewer, longer

    def work(start: int, stop: int) -> None:
        place = np.empty((SIDE, wide), V.dtype)
        for i in range(start, stop, SIDE):
            rows = slice(i, min(i + SIDE, stop))
            for j in range(0, m, wide):
                columns = slice(j, min(j + wide, m))
                part = place[: rows.stop - rows.start, : columns.stop - columns.start]
                tile(rows, columns, part)
                result[rows] += part @ V[columns]

    map_rows(work, n, n * m)
    return result


def products(X: Any, Z: Any, scale: Any, shift: Any, dtype: np.dtype) -> Tile:
    """Tiles of scale·⟨x, z⟩ + shift, tables dense or CSR."""
    left = X if sp.issparse(X) else np.asarray(X, dtype)
    right = left if Z is None else Z if sp.issparse(Z) else np.asarray(Z, dtype)
    if float(scale) != 1.0 and not sp.issparse(left):
        left = left * dtype.type(scale)
        scale = 1.0
    dense = not sp.issparse(left) and not sp.issparse(right)
    multiply = Multiplier(left, right) if dense else _Sparse(left, right)

    def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
        multiply(rows, columns, out)
        if float(scale) != 1.0:
            out *= dtype.type(scale)
        if float(shift) != 0.0:
            out += dtype.type(shift)

    return tile


class _Sparse(NamedTuple):
    """The same as `Multiplier`, where one of the tables is CSR."""

    left: Any
    right: Any

    def __call__(self, rows: slice, columns: slice, out: np.ndarray) -> None:
        _multiply(self.left[rows], self.right[columns], out)


def _multiply(left: Any, right: Any, out: np.ndarray) -> None:
    """left rightᵀ (a, b) into `out`; one of them is CSR."""
    if sp.issparse(left):
        block = left @ right.T
        out[:] = block.toarray() if sp.issparse(block) else block
    else:
        out[:] = (right @ left.T).T


def distances(X: Any, Z: Any, scale: float, dtype: np.dtype, *, kinked: bool = False) -> Tile:
    """Tiles of −scale·‖x − z‖² ≤ 0, exactly zero on the diagonal where Z is None.

    Args:
        X: (n, d), dense or CSR.
        Z: (m, d), or None for X itself.
        scale: s ≥ 0.
        dtype: Of the tiles.
        kinked: Whether distances near zero must have small relative errors.
    """
    if sp.issparse(X) or sp.issparse(Z):
        return _sparse_distances(X, Z, scale, dtype, kinked=kinked)
    A, B, sizes = augmented(X, Z, scale, dtype, kinked=kinked)
    inner = A.dtype
    same, multiply = Z is None, Multiplier(A, B)

    def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
        place = out if inner == dtype else np.empty(out.shape, inner)
        multiply(rows, columns, place)
        np.minimum(place, 0.0, out=place)
        if kinked:
            near = scale * sizes[0][rows], scale * sizes[1][columns]
            _renew(place, A[rows, :-2], B[columns, :-2], *near, 0.5)
        if same and rows == columns:
            np.fill_diagonal(place, 0.0)
        if place is not out:
            out[:] = place

    return tile


def augmented(
    X: Any, Z: Any, scale: float, dtype: Any, *, kinked: bool = False
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """A (n, d + 2), B (m, d + 2) with −scale·‖x − z‖² = ⟨a, b⟩, and the squared sizes of rows.

    In the type that was asked for, unless its rounding would be felt: then in float64.
    """
    base = np.asarray(X if Z is None else Z)
    mean = base.mean(axis=0, dtype=np.float64) if len(base) else np.zeros(base.shape[1])
    tables = [base] if Z is None else [np.asarray(X), base]
    made = [_augmented(table, mean, scale, np.dtype(dtype)) for table in tables]
    largest = max(sizes.max(initial=0.0) for _, sizes in made)
    error = 2.0 * np.finfo(np.float32).eps * scale * largest
    if made[0][0].dtype == np.float32 and error >= (FELT**2 if kinked else FELT):
        made = [_augmented(table, mean, scale, np.dtype(np.float64)) for table in tables]
    (A, left), (B, right) = made[0], made[-1]
    B = B.copy() if Z is None else B
    B[:, [-2, -1]] = B[:, [-1, -2]]
    return A, B, [left, right]


def _augmented(
    table: np.ndarray, mean: np.ndarray, scale: float, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """[√(2s) x̃, −s‖x̃‖², 1] (n, d + 2) and ‖x̃‖² (n,), x̃ = x − mean in float64."""
    n, d = table.shape
    wide, sizes, stretch = np.empty((n, d + 2), dtype), np.empty(n), np.sqrt(2.0 * scale)

    def work(start: int, stop: int) -> None:
        for i in range(start, stop, SIDE):
            rows = slice(i, min(i + SIDE, stop))
            x = table[rows] - mean
            np.einsum("ij,ij->i", x, x, out=sizes[rows])
            np.multiply(x, stretch, out=wide[rows, :d], casting="same_kind")

    map_rows(work, n, table.size)
    wide[:, d] = -scale * sizes
    wide[:, d + 1] = 1.0
    return wide, sizes


def _renew(
    place: np.ndarray, A: Any, B: Any, left: np.ndarray, right: np.ndarray, unit: float
) -> None:
    """Take the distances of close pairs, −unit·‖a − b‖², from differences of their rows.

    `left` and `right` are the squared sizes of the rows in the units of `place`.
    """
    close = np.flatnonzero(place >= -NEAR * (left[:, None] + right[None, :]))
    for start in range(0, len(close), SIDE * 8):
        i, j = np.unravel_index(close[start : start + SIDE * 8], place.shape)
        place[i, j] = -unit * squares(A[i] - B[j])


def squares(X: Any) -> Any:
    """‖x_i‖² (n,), dense or CSR."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return (X * X).sum(axis=1)


def _sparse_distances(X: Any, Z: Any, scale: float, dtype: np.dtype, *, kinked: bool) -> Tile:
    """Without centring, which would fill the table; in float64."""
    left, right = X, X if Z is None else Z
    sizes = [squares(part) for part in (left, right)]

    def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
        place = np.empty(out.shape)
        _multiply(left[rows], right[columns], place)
        place *= 2.0
        place -= sizes[0][rows, None]
        place -= sizes[1][columns]
        np.minimum(place, 0.0, out=place)
        if kinked:
            _renew(place, left[rows], right[columns], sizes[0][rows], sizes[1][columns], 1.0)
        if Z is None and rows == columns:
            np.fill_diagonal(place, 0.0)
        np.multiply(place, scale, out=out, casting="same_kind")

    return tile


def check_tables(X: Any, Z: Any) -> None:
    """Refuse what is no pair of tables with the same columns."""
    for name, table in (("X", X), ("Z", Z)):
        if table is not None and (not hasattr(table, "ndim") or table.ndim != 2):
            raise InputError(
                f"{name} has shape {np.shape(table)}", "a table (n, d)", "Pass X.reshape(-1, d)"
            )
    if Z is not None and X.shape[1] != Z.shape[1]:
        raise InputError(
            f"X has {X.shape[1]} columns and Z {Z.shape[1]}",
            "the same columns in both",
            "Pass tables of the same features",
        )
