"""Rules of gather, scatter and dynamic slices: exact when the indices are constants.

Indices computed from the point may be anything, so each axis they address is read (or written) as
a whole; axes they do not address, and batch axes added by `vmap`, stay exact.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import JaxprEqn
from jax.lax import GatherScatterMode

from .interpreter import Context, Value, arrays, rule, shape_of
from .known import Known
from .layout import padded
from .sets import LIMIT, Dependence, join, keep, through, unite
from .windows import flow_of, sliding, taps

__all__: list[str] = []


def _positions(
    shape: tuple[int, ...],
    indices: np.ndarray,
    numbers: Any,
    sizes: Sequence[int],
    mode: GatherScatterMode,
) -> np.ndarray:
    """The flat element of an array of `shape` behind each element of a gather; −1 for none.

    `numbers` holds (window axes of the result, axes left out of windows, indexed axes, batch axes
    of the array, batch axes of the indices), the same for gathers and scatters.
    """
    window_axes, dropped, indexed, batch, index_batch = numbers
    lead = indices.shape[:-1]
    starts = np.zeros((*lead, len(shape)), np.int64)
    starts[..., list(indexed)] = indices
    for axis, where in zip(batch, index_batch, strict=True):
        slots = [1] * len(lead)
        slots[where] = lead[where]
        starts[..., axis] = np.arange(lead[where]).reshape(slots)
    room = np.array(shape, np.int64) - np.array(sizes, np.int64)
    inside = np.all((starts >= 0) & (starts <= room), axis=-1)
    strides = np.concatenate([np.cumprod([1, *shape[:0:-1]])[::-1]]).astype(np.int64)
    base = (starts.clip(0, room.clip(0)) * strides[: len(shape)]).sum(-1)
    if mode == GatherScatterMode.FILL_OR_DROP:
        base = np.where(inside, base, -1)
    kept = [axis for axis in range(len(shape)) if axis not in dropped and axis not in batch]
    offsets = np.zeros([sizes[axis] for axis in kept], np.int64)
    for k, axis in enumerate(kept):
        slots = [1] * len(kept)
        slots[k] = sizes[axis]
        offsets = offsets + (np.arange(sizes[axis]) * strides[axis]).reshape(slots)
    base = np.reshape(base, (*lead, *(1,) * len(kept)))
    both = np.where(base < 0, -1, base + offsets)
    order = list(window_axes)
    outer = [axis for axis in range(both.ndim) if axis not in order]
    return np.moveaxis(both, range(both.ndim), [*outer, *order])


def _whole(operand: Dependence, axes: Sequence[int]) -> Dependence:
    """Every element along `axes` depends on all of them."""
    if not axes:
        return operand
    total = unite(operand, axes)
    ids = np.expand_dims(total.ids, tuple(sorted(axes)))
    return total.moved(np.broadcast_to(ids, operand.shape))


def _free(shape: tuple[int, ...], sizes: Sequence[int], indexed: Sequence[int]) -> list[int]:
    """Axes along which an unknown index can move the window."""
    return [axis for axis in indexed if sizes[axis] < shape[axis]]


@rule("gather")
def _gather(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    operand, indices = inputs
    assert isinstance(operand, Dependence)
    p, d = eqn.params, eqn.params["dimension_numbers"]
    numbers = (
        *(d.offset_dims, d.collapsed_slice_dims, d.start_index_map),
        *(d.operand_batching_dims, d.start_indices_batching_dims),
    )
    if isinstance(indices, Known):
        values = indices.value
    else:
        operand = _whole(operand, _free(operand.shape, p["slice_sizes"], d.start_index_map))
        values = np.zeros(shape_of(eqn.invars[1]), np.int64)
    where = _positions(operand.shape, values, numbers, p["slice_sizes"], p["mode"])
    flat = np.append(operand.ids.ravel(), np.int32(0))  # position −1 reads the empty set
    return [operand.moved(flat[where])]


@rule(
    "scatter-add",
    "scatter_add",
    "scatter",
    "scatter-mul",
    "scatter_mul",
    "scatter_sub",
    "scatter-sub",
    "scatter_min",
    "scatter_max",
)
def _scatter(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    d, indices = eqn.params["dimension_numbers"], inputs[1]
    shape, (operand, updates) = shape_of(eqn.outvars[0]), _ends(context, eqn, inputs)
    sizes = _window_sizes(shape, updates.shape, d)
    numbers = (
        *(d.update_window_dims, d.inserted_window_dims, d.scatter_dims_to_operand_dims),
        *(d.operand_batching_dims, d.scatter_indices_batching_dims),
    )
    mode = eqn.params["mode"]
    if mode != GatherScatterMode.CLIP:
        mode = GatherScatterMode.FILL_OR_DROP  # XLA drops what falls outside
    if not isinstance(indices, Known):
        where = _positions(shape, np.zeros(shape_of(eqn.invars[1]), np.int64), numbers, sizes, mode)
        landed = _land(updates, where, shape)
        free = _free(shape, sizes, d.scatter_dims_to_operand_dims)
        return [join(operand, _whole(landed, free))]
    where = _positions(shape, indices.value, numbers, sizes, mode)
    if eqn.primitive.name == "scatter":
        untouched = np.ones(operand.ids.size + 1, bool)
        untouched[where.ravel()] = False
        operand = keep(untouched[:-1].reshape(shape), operand)
    return [join(operand, _land(updates, where, shape))]


def _ends(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> tuple[Dependence, Dependence]:
    operand, _, updates = arrays(eqn, inputs, context.n)
    return operand, updates


def _window_sizes(shape: tuple[int, ...], updates: tuple[int, ...], d: Any) -> list[int]:
    fixed = {*d.inserted_window_dims, *d.operand_batching_dims}
    windows = iter(updates[axis] for axis in d.update_window_dims)
    return [1 if axis in fixed else next(windows) for axis in range(len(shape))]


def _land(updates: Dependence, where: np.ndarray, shape: tuple[int, ...]) -> Dependence:
    """Updates on the positions they are added to; several on one position are united."""
    total = int(np.prod(shape))
    rows, columns = where.ravel(), np.arange(where.size)
    rows, columns = rows[where.ravel() >= 0], columns[where.ravel() >= 0]
    if len(np.unique(rows)) == len(rows):
        ids = np.zeros(total, np.int32)
        ids[rows] = updates.ids.ravel()[columns]
        return updates.moved(ids.reshape(shape))
    return through(flow_of(rows, columns, (total, where.size)), updates, shape)


@rule("dynamic_slice")
def _dynamic_slice(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    operand, *starts = inputs
    if not isinstance(operand, Dependence):
        return [None]
    for axis, (start, size) in enumerate(zip(starts, eqn.params["slice_sizes"], strict=False)):
        operand = _slice_axis(operand, axis, start, size)
    return [operand]


def _slice_axis(operand: Dependence, axis: int, start: Value, size: int) -> Dependence:
    room = operand.shape[axis] - size
    if room == 0:
        return operand
    if isinstance(start, Known):
        first = int(np.clip(start.value, 0, room))
        return operand.moved(np.take(operand.ids, range(first, first + size), axis))
    if operand.ids.size // operand.shape[axis] * size * (room + 1) > LIMIT // 4:
        whole = _whole(operand, [axis])
        return whole.moved(np.take(whole.ids, range(size), axis))
    return _slid(operand, axis, room + 1, (0, 0))


def _slid(operand: Dependence, axis: int, window: int, pads: tuple[int, int]) -> Dependence:
    """Union over a window sliding along one axis."""
    ids = np.moveaxis(operand.ids, axis, 0)
    windows = sliding(ids, [taps(ids.shape[0], window, 1, pads, (1, 1))])
    result = unite(operand.moved(windows), (ids.ndim,))
    return result.moved(np.moveaxis(result.ids, 0, axis))


@rule("dynamic_update_slice")
def _dynamic_update(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    operand, update, *_ = arrays(eqn, inputs, context.n)
    starts = inputs[2:]
    exact = all(
        isinstance(start, Known) or size == total
        for start, size, total in zip(starts, update.shape, operand.shape, strict=True)
    )
    inner = np.ones(update.shape, bool)
    for axis, start in enumerate(starts):
        update, inner = _place(update, inner, axis, start, operand.shape[axis])
    if exact:
        operand = keep(~inner, operand)
    return [join(operand, update)]


def _place(
    update: Dependence, inner: np.ndarray, axis: int, start: Value, total: int
) -> tuple[Dependence, np.ndarray]:
    """Put `update` where it may land along one axis, and mark what it covers."""
    room = total - update.shape[axis]
    if room == 0:
        return update, inner
    first = int(np.clip(start.value, 0, room)) if isinstance(start, Known) else 0
    config = [(0, 0, 0)] * update.ids.ndim
    config[axis] = (first, room - first, 0)
    covered = padded(inner.astype(np.int32), config) > 0
    if isinstance(start, Known):
        return update.moved(padded(update.ids, config)), covered
    if update.ids.size * (room + 1) > LIMIT // 4:
        return _whole(update.moved(padded(update.ids, config)), [axis]), covered
    return _slid(update, axis, room + 1, (room, room)), covered


@rule("sort")
def _sort(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """Sorted along with keys that depend on the point: any order along the axis."""
    axis = eqn.params["dimension"]
    return [_whole(each, [axis]) if isinstance(each, Dependence) else None for each in inputs]
