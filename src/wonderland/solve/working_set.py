"""Steps of two variables on a block of a kernel problem, compiled: the block stays in the cache.

In each step the variable i that gains most from rising is paired with the j whose fall, together
with it, promises most,

    i = argmax up,   j = argmax (up_i − down_j)² / (K_ii + K_jj − 2K_ij)  over  down_j < up_i,

and both move by t = (up_i − down_j)/(K_ii + K_jj − 2K_ij), or to the nearest bound or kink. The sum
Σβ never changes and D falls in every step. Blocks are padded to few sizes, so that nothing compiles
twice; padding has l = h = 0 and is never chosen.

Reference: Platt (1998); Fan, Chen, Lin (JMLR 2005).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from wonderland.core.arrays import in_float64
from wonderland.kernels.panels import Panels, filled
from wonderland.solve.box_problem import BoxProblem

__all__ = ["Room", "bucket", "leave", "room", "room_of_panels", "settle", "times"]

FLAT = 1e-12  # curvature below which a step goes to the nearest bound (kernels that are no kernels)
SMALLEST = 128  # side of the smallest block
ALIGN = 64  # bytes; blocks that begin on such a boundary are lent to XLA without a copy


def bucket(size: int) -> int:
    """The side of the block that holds `size` variables: 128·2^k times 1, 5/4, 3/2 or 7/4.

    >>> bucket(100), bucket(129), bucket(1000)
    (128, 160, 1024)
    """
    octave = max(size - 1, SMALLEST).bit_length() - 1
    quarter = max(1 << octave - 2, SMALLEST // 4)
    return max(-(-size // quarter) * quarter, SMALLEST)


class Room(NamedTuple):
    """Memory for a block (side, side), row after row, of which (q, q) is in use.

    Attributes:
        flat: All of it (≥ side²,), of NumPy or of JAX.
        side: Length of a row.
        filled: The part in use, where it is NumPy's.
        space: What `flat` lies in, to be used again.
    """

    flat: Any
    side: int
    filled: np.ndarray
    space: Any


_spare: list[np.ndarray] = []
_spare_panels: list[jax.Array] = []
SPARE = 160 << 20  # bytes kept for the next fit: first touching pages costs more than filling them
USUAL = (3072, 6144)  # sides for which memory is taken from JAX: one piece serves smaller blocks
PAIR = 2  # fits that run at the same time


def _memory(size: int) -> np.ndarray:
    """Bytes, from the last fit where that left enough."""
    found = _spare.pop() if _spare else np.empty(0, np.uint8)
    return found if len(found) >= size else np.empty(size, np.uint8)


def leave(space: Any) -> None:
    """Keep the memory of a block for the next fit, unless it is large or others are kept."""
    kept: list[Any] = _spare_panels if isinstance(space, jax.Array) else _spare
    if space.nbytes <= SPARE and len(kept) < PAIR:
        kept.append(space)


def room(size: int, dtype: Any, space: Any = None) -> Room:
    """Memory for a block of `size` variables, its padding cleared.

    Args:
        size: q.
        dtype: float32 or float64.
        space: Bytes to use again where they suffice: pages that were touched before are not
            cleared by the system a second time.
    """
    side, kind = bucket(size), np.dtype(dtype)
    needed = side * side * kind.itemsize + ALIGN
    again = isinstance(space, np.ndarray) and len(space) >= needed
    raw = space if space is not None and again else _memory(needed)
    start = -raw.ctypes.data % ALIGN
    square = raw[start : start + needed - ALIGN].view(kind).reshape(side, side)
    square[size:] = 0.0
    square[:size, size:] = 0.0
    return Room(square.reshape(-1), side, square[:size, :size], raw)


def room_of_panels(panels: Panels, space: Any = None) -> Room:
    """The block of these rows in float32, made by XLA where it lies."""
    size = len(panels.left)
    side = bucket(size)
    length = next((usual for usual in USUAL if side <= usual), side) ** 2
    if not (isinstance(space, jax.Array) and len(space) == length):
        space = next((kept for kept in _spare_panels if len(kept) == length), None)
        _spare_panels[:] = [kept for kept in _spare_panels if kept is not space]
    if space is None:
        space = jnp.empty(length, jnp.float32)
    flat = filled(panels, space, side)
    return Room(flat, side, np.empty((0, 0)), flat)


@in_float64
def settle(
    block: Room, problem: BoxProblem, beta: np.ndarray, g: np.ndarray, tol: float, limit: int
) -> tuple[np.ndarray, int]:
    """Lower D over the variables of one block until its violation is at most `tol`.

    Args:
        block: K of the block.
        problem: The bounds of its variables (q,).
        beta: Where they are (q,).
        g: p − Kβ of the whole problem, at them (q,).
        tol: Violation to reach.
        limit: Most steps.

    Returns:
        β of the block in float64, and the steps made.
    """
    size, side, kind = len(beta), block.side, block.flat.dtype

    def padded(values: np.ndarray) -> np.ndarray:
        wide = np.zeros(side, kind)
        wide[:size] = values
        return wide

    # Moves are made from zero, so that float32 does not round β itself.
    with np.errstate(over="ignore"):
        low, high = padded(problem.low - beta), padded(problem.high - beta)
    moved, steps = _pairs(
        jax.device_put(block.flat),
        padded(g),
        (low, high, padded(-beta)),
        kind.type(problem.kink),
        kind.type(tol),
        np.int32(limit),
        kinked=bool(problem.kink),
    )
    return _landed(np.asarray(moved)[:size].astype(np.float64), problem, beta, kind), int(steps)


def times(block: Room, values: np.ndarray) -> np.ndarray:
    """K·v (q,) over a block."""
    kind = block.flat.dtype
    if block.filled.size:
        return np.asarray(block.filled @ values.astype(kind), np.float64)
    wide = np.zeros(block.side, kind)
    wide[: len(values)] = values
    return np.asarray(_times(block.flat, wide), np.float64)[: len(values)]


STRIP = 32  # rows that a product takes at a time: XLA would copy the whole block otherwise


@jax.jit
def _times(K: jax.Array, values: jax.Array) -> jax.Array:
    side = len(values)

    def strip(i: Any, out: jax.Array) -> jax.Array:
        rows = lax.dynamic_slice_in_dim(K, i * STRIP * side, STRIP * side).reshape(STRIP, side)
        return lax.dynamic_update_slice_in_dim(out, rows @ values, i * STRIP, 0)

    return lax.fori_loop(0, side // STRIP, strip, jnp.zeros_like(values))


def _landed(moved: np.ndarray, problem: BoxProblem, beta: np.ndarray, kind: np.dtype) -> np.ndarray:
    """β + move, exactly on the bound or the kink wherever the block's arithmetic put it there."""
    low, high = (problem.low - beta).astype(kind), (problem.high - beta).astype(kind)
    result = np.clip(beta + moved, problem.low, problem.high)
    move = moved.astype(kind)
    result = np.where(move >= high, problem.high, np.where(move <= low, problem.low, result))
    zero = (move == (-beta).astype(kind)) & (move != 0)
    return np.where(zero, 0.0, result)


def _largest(values: jax.Array) -> jax.Array:
    """The maximum, by halves: XLA's own reduction of a few thousand numbers takes one at a time."""
    while values.shape[0] > HALVED and values.shape[0] % 2 == 0:
        half = values.shape[0] // 2
        values = jnp.maximum(values[:half], values[half:])
    return jnp.max(values)


HALVED = 32


def _first(values: jax.Array, numbers: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Where the largest entry is, and it, by plain maxima: they vectorise, argmax does not."""
    top = _largest(values)
    return _largest(jnp.where(values == top, numbers, -1.0)).astype(jnp.int32), top


@partial(jax.jit, static_argnames=("kinked",))
def _pairs(
    K: jax.Array,
    g: jax.Array,
    places: tuple[jax.Array, ...],
    kink: jax.Array,
    tol: jax.Array,
    limit: jax.Array,
    *,
    kinked: bool,
) -> tuple[jax.Array, jax.Array]:
    """Moves (side,) away from the starting point, and the number of steps."""
    low, high, origin = places
    side = len(g)
    diagonal, numbers = K[: side * side : side + 1], jnp.arange(side, dtype=K.dtype)

    def going(state: Any) -> Any:
        return (state[3] > tol) & (state[2] < limit)

    def step(state: Any) -> Any:
        move, g, count, _ = state
        up = down = g
        if kinked:
            up = g - jnp.where(move >= origin, kink, -kink)
            down = g - jnp.where(move > origin, kink, -kink)
        up = jnp.where(move < high, up, -jnp.inf)
        down = jnp.where(move > low, down, jnp.inf)
        i, top = _first(up, numbers)
        row = lax.dynamic_slice_in_dim(K, i * side, side)
        gain = jnp.maximum(top - down, 0.0)
        bend = jnp.maximum(diagonal + diagonal[i] - 2 * row, FLAT)
        j, _ = _first(gain * gain / bend, numbers)
        other = lax.dynamic_slice_in_dim(K, j * side, side)
        at, to = move[i], move[j]
        end, stop = high[i], low[j]
        if kinked:
            end = jnp.where(at < origin[i], jnp.minimum(origin[i], end), end)
            stop = jnp.where(to > origin[j], jnp.maximum(origin[j], stop), stop)
        far, near = end - at, to - stop
        t = jnp.maximum(jnp.minimum(jnp.minimum(gain[j] / bend[j], far), near), 0.0)
        move = move.at[i].set(jnp.where(t >= far, end, at + t))
        move = move.at[j].set(jnp.where(t >= near, stop, to - t))
        return move, g - t * (row - other), count + 1, top + _largest(-down)

    start = (jnp.zeros_like(g), g, jnp.int32(0), jnp.asarray(jnp.inf, g.dtype))
    move, _, count, _ = lax.while_loop(going, step, start)
    return move, count
