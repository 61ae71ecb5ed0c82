"""Rules of matrix products, convolutions, transforms and linear solves."""

from typing import Any

import numpy as np
from jax.extend.core import JaxprEqn

from .interpreter import Context, Value, joined, rule, shape_of
from .known import Known
from .sets import LIMIT, Dependence, join, through, unite
from .windows import flow_of, running, sliding, taps

__all__: list[str] = []


@rule("dot_general")
def _dot(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """Σ_c L[b, f, c] R[b, c, g]: zeros of a constant factor cut the dependence."""
    (contract_l, contract_r), (batch_l, batch_r) = eqn.params["dimension_numbers"]
    left = _factor(inputs[0], shape_of(eqn.invars[0]), batch_l, contract_l)
    right = _factor(inputs[1], shape_of(eqn.invars[1]), batch_r, contract_r)
    shape = shape_of(eqn.outvars[0])
    parts = []
    if isinstance(left, Dependence):
        parts.append(_contract(left, right))
    if isinstance(right, Dependence):
        swapped = _contract(right, left)
        parts.append(swapped.moved(swapped.ids.transpose(0, 2, 1)))
    return [joined([part.moved(part.ids.reshape(shape)) for part in parts], shape)]


def _factor(value: Value, shape: tuple[int, ...], batch: Any, contract: Any) -> Any:
    """One factor with axes (batch, free, contracted); its own non-zeros when it is constant."""
    free = [axis for axis in range(len(shape)) if axis not in batch and axis not in contract]
    order = [*batch, *free, *contract]
    sizes = [int(np.prod([shape[a] for a in axes], dtype=int)) for axes in (batch, free, contract)]
    if isinstance(value, Dependence):
        return value.moved(value.ids.transpose(order).reshape(sizes))
    if isinstance(value, Known):
        return (value.value != 0).transpose(order).reshape(sizes)
    return np.ones(sizes, bool)


def _contract(one: Dependence, other: Any) -> Dependence:
    """Dependence through `one` (B, F, C) of its product with `other` (B, G, C): (B, F, G)."""
    batch, free, depth = one.shape
    across = other.shape[1]
    mask = None if isinstance(other, Dependence) or np.all(other) else np.asarray(other)
    if mask is None or free * int(mask.sum()) > LIMIT:
        united = unite(one, (2,))
        return united.moved(np.broadcast_to(united.ids[:, :, None], (batch, free, across)))
    b, g, c = np.nonzero(mask)
    f = np.arange(free)[:, None]
    rows = ((b * free + f) * across + g).ravel()
    columns = ((b * free + f) * depth + c).ravel()
    flow = flow_of(rows, columns, (batch * free * across, batch * free * depth))
    return through(flow, one, (batch, free, across))


@rule("conv_general_dilated")
def _convolve(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """Each output reads its window of every channel of its group."""
    p = eqn.params
    if p["batch_group_count"] != 1:
        return context.everything(eqn, inputs)
    numbers, groups = p["dimension_numbers"], p["feature_group_count"]
    signal_shape = tuple(shape_of(eqn.invars[0])[axis] for axis in numbers.lhs_spec)
    kernel_shape = tuple(shape_of(eqn.invars[1])[axis] for axis in numbers.rhs_spec)
    places = [
        taps(size, window, stride, pads, dilations)
        for size, window, stride, pads, dilations in zip(
            signal_shape[2:],
            kernel_shape[2:],
            p["window_strides"],
            p["padding"],
            zip(p["lhs_dilation"], p["rhs_dilation"], strict=True),
            strict=True,
        )
    ]
    signal, kernel = inputs
    parts = []
    if isinstance(signal, Dependence):
        turned = signal.moved(signal.ids.transpose(numbers.lhs_spec))
        weights = (
            kernel.value.transpose(numbers.rhs_spec) != 0 if isinstance(kernel, Known) else None
        )
        parts.append(_through_signal(turned, kernel_shape, weights, places, groups))
    if isinstance(kernel, Dependence):
        turned = kernel.moved(kernel.ids.transpose(numbers.rhs_spec))
        parts.append(_through_kernel(turned, signal_shape[0], places))
    result = parts[0] if len(parts) == 1 else join(*parts)
    return [result.moved(np.moveaxis(result.ids, range(result.ids.ndim), numbers.out_spec))]


def _through_signal(
    signal: Dependence,
    kernel_shape: tuple[int, ...],
    weights: np.ndarray | None,
    places: list[np.ndarray],
    groups: int,
) -> Dependence:
    """Windows of ids (N, C, space) united over channels of the group and taps: (N, O, space)."""
    out, rank = kernel_shape[0], len(places)
    n, channels = signal.shape[:2]
    windows = _windows(signal.ids, places)  # (N, C, space, taps)
    space = windows.shape[2:-1]
    windows = windows.reshape(n, groups, channels // groups, *windows.shape[2:])
    windows = np.moveaxis(windows, 2, -1)  # (N, groups, space, taps, channels of the group)
    if weights is None or weights.all():
        united = unite(signal.moved(windows), (rank + 2, rank + 3))
        ids = np.repeat(united.ids, out // groups, axis=1)
        return united.moved(ids)
    masks = np.moveaxis(weights.reshape(out, channels // groups, -1), 1, 2)  # (O, taps, C/groups)
    chosen = np.repeat(windows, out // groups, axis=1)
    chosen = np.where(masks.reshape(1, out, *(1,) * rank, *masks.shape[1:]), chosen, 0)
    united = unite(signal.moved(chosen), (rank + 2, rank + 3))
    return united.moved(united.ids.reshape(n, out, *space))


def _through_kernel(kernel: Dependence, n: int, places: list[np.ndarray]) -> Dependence:
    """Taps that fall inside the signal, united: the same for all n samples."""
    out, channels = kernel.shape[:2]
    inside = _windows(np.ones((1, 1, *(_extent(where) for where in places)), np.int32), places)
    inside = inside[0, 0] > 0  # (space, taps)
    taps_ids = kernel.ids.reshape(out, *(1,) * len(places), channels, -1)
    chosen = np.where(inside[None, ..., None, :], taps_ids, 0)
    united = unite(kernel.moved(chosen), (len(places) + 1, len(places) + 2))
    return united.moved(np.broadcast_to(united.ids[None], (n, *united.shape)))


def _extent(where: np.ndarray) -> int:
    return int(where.max(initial=-1)) + 1


def _windows(ids: np.ndarray, places: list[np.ndarray]) -> np.ndarray:
    """Windows over the trailing axes of (a, b, space): (a, b, out space, taps)."""
    turned = np.moveaxis(ids, (0, 1), (-2, -1))
    windows = sliding(turned, places)  # (out space, a, b, window axes)
    rank = len(places)
    windows = windows.reshape(*windows.shape[: rank + 2], -1)
    return np.moveaxis(windows, (rank, rank + 1), (0, 1))


@rule("fft")
def _transform(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """Dense along the transformed axes, whatever the kind."""
    (operand,) = inputs
    assert isinstance(operand, Dependence)
    shape, rank = shape_of(eqn.outvars[0]), len(eqn.params["fft_lengths"])
    united = unite(operand, range(operand.ids.ndim - rank, operand.ids.ndim))
    ids = united.ids.reshape(*united.shape, *(1,) * rank)
    return [united.moved(np.broadcast_to(ids, shape))]


@rule("triangular_solve")
def _triangular(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """Substitution: row i of the solution needs the right-hand side up to (or from) row i."""
    matrix, right = inputs
    if isinstance(matrix, Dependence) or not isinstance(right, Dependence):
        return context.everything(eqn, inputs)
    p = eqn.params
    axis = right.ids.ndim - 2 if p["left_side"] else right.ids.ndim - 1
    forwards = p["lower"] != bool(p["transpose_a"])
    return [running(right, axis, reverse=forwards != p["left_side"])]


@rule("tridiagonal_solve")
def _tridiagonal(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    *bands, right = inputs
    if any(isinstance(band, Dependence) for band in bands) or not isinstance(right, Dependence):
        return context.everything(eqn, inputs)
    united = unite(right, (right.ids.ndim - 2,))
    return [united.moved(np.broadcast_to(np.expand_dims(united.ids, -2), right.shape))]


@rule("custom_linear_solve")
def _linear_solve(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """What its `solve` program does to the right-hand sides."""
    lengths, programs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    edges = np.cumsum([0, *lengths])
    total = int(edges[-1])
    if any(isinstance(value, Dependence) for value in inputs[: edges[2]]):
        return context.everything(eqn, inputs)
    consts = inputs[edges[2] : edges[3]]
    return context.run(programs.solve, [*consts, *inputs[total:]])
