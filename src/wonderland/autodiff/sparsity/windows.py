"""Rules of reductions, running sums and sliding windows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import JaxprEqn
from scipy import sparse

from .interpreter import Context, Value, arrays, joined, rule, shape_of
from .sets import LIMIT, Dependence, through, unite

__all__ = ["flow_of", "running", "sliding", "taps"]


@rule("reduce_sum", "reduce_max", "reduce_min", "reduce_prod")
def _reduce(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    (operand,) = inputs
    assert isinstance(operand, Dependence)
    return [unite(operand, eqn.params["axes"])]


@rule("cumsum", "cumlogsumexp", "cummax", "cummin", "cumprod")
def _cumulative(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    (operand,) = inputs
    assert isinstance(operand, Dependence)
    return [running(operand, eqn.params["axis"], reverse=eqn.params["reverse"])]


def running(operand: Dependence, axis: int, *, reverse: bool) -> Dependence:
    """Element i depends on elements 0 … i along `axis` (i … end when reversed).

    >>> from wonderland.autodiff.sparsity.sets import seeds
    >>> running(seeds([(3,)])[0], 0, reverse=False).matrix().toarray().astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    ids = np.moveaxis(operand.ids, axis, -1)
    length = ids.shape[-1]
    lines = ids.size // max(length, 1)
    if lines * length * (length + 1) // 2 > LIMIT:
        whole = unite(operand, (axis,))
        return whole.moved(np.broadcast_to(np.expand_dims(whole.ids, axis), operand.shape))
    later, earlier = np.tril_indices(length)
    if reverse:
        later, earlier = length - 1 - later, length - 1 - earlier
    base = np.arange(lines)[:, None] * length
    flow = flow_of((base + later).ravel(), (base + earlier).ravel(), (ids.size, ids.size))
    result = through(flow, operand.moved(ids), ids.shape)
    return result.moved(np.moveaxis(result.ids, -1, axis))


def flow_of(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """Boolean CSR with entries (rows, columns)."""
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    return sparse.csr_array((np.ones(len(rows), bool), columns[order], indptr), shape=shape)


def taps(
    size: int, window: int, stride: int, pads: tuple[int, int], dilations: tuple[int, int]
) -> np.ndarray:
    """Where each tap of each window along one axis reads, −1 for padding; shape (out, window)."""
    base, between = dilations
    extent = max((size - 1) * base + 1, 0) if size else 0
    span = (window - 1) * between + 1
    count = max((extent + sum(pads) - span) // stride + 1, 0)
    places = np.arange(count)[:, None] * stride - pads[0] + np.arange(window) * between
    inside = (places >= 0) & (places < extent) & (places % base == 0)
    return np.where(inside, places // base, -1)


def sliding(ids: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """All windows of `ids`: axes (out axes …, window axes …); padding reads the empty set."""
    rank = ids.ndim
    for axis, where in enumerate(places):
        edge = [(0, int(k == axis)) for k in range(ids.ndim)]
        # Axis `axis` becomes (out, window); the window axis moves to the end at once.
        ids = np.moveaxis(np.take(np.pad(ids, edge), where, axis=axis), axis + 1, -1)
    assert ids.ndim == rank + len(places)
    return ids


def _places(shape: tuple[int, ...], params: dict[str, Any]) -> list[np.ndarray]:
    ones = (1,) * len(shape)
    return [
        taps(size, window, stride, pads, (base, between))
        for size, window, stride, pads, base, between in zip(
            shape,
            params["window_dimensions"],
            params["window_strides"],
            params["padding"],
            params.get("base_dilation") or ones,
            params.get("window_dilation") or ones,
            strict=True,
        )
    ]


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min", "select_and_gather_add")
def _reduce_window(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """A window of the output depends on every element the window covers."""
    operand = joined(inputs, shape_of(eqn.invars[0]))
    windows = sliding(operand.ids, _places(operand.shape, eqn.params))
    rank = operand.ids.ndim
    return [unite(operand.moved(windows), range(rank, 2 * rank))]


@rule("select_and_scatter_add")
def _scatter_window(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """Transposed: an element depends on every window that covers it."""
    source, operand = arrays(eqn, inputs, context.n)
    numbers = np.arange(1, operand.ids.size + 1).reshape(operand.shape)
    covered = sliding(numbers, _places(operand.shape, eqn.params))
    covered = covered.reshape(source.ids.size, -1)
    window, tap = np.nonzero(covered)
    flow = flow_of(covered[window, tap] - 1, window, (operand.ids.size, source.ids.size))
    return [through(flow, source, operand.shape)]
