"""Rules of the steps that only move elements: the same move applied to the set numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jax.extend.core import JaxprEqn

from .interpreter import Context, Value, arrays, rule
from .known import reshaped
from .sets import Dependence

__all__ = ["spread"]


def _moves(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of (ids, params) as the rule of one-array primitives."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @rule(*names)
        def apply(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
            (first, *_) = inputs
            assert isinstance(first, Dependence)
            return [first.moved(function(first.ids, eqn.params))]

        return function

    return register


@_moves("reshape")
def _reshape(ids: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    return reshaped(ids, params)


@_moves("transpose")
def _transpose(ids: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    return ids.transpose(params["permutation"])


@_moves("squeeze")
def _squeeze(ids: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    return np.squeeze(ids, params["dimensions"])


@_moves("expand_dims")
def _expand(ids: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    return np.expand_dims(ids, params["dimensions"])


@_moves("rev")
def _reverse(ids: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    return np.flip(ids, params["dimensions"])


@_moves("slice")
def _slice(ids: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    steps = params["strides"] or (1,) * ids.ndim
    return ids[tuple(map(slice, params["start_indices"], params["limit_indices"], steps))]


@_moves("tile")
def _tile(ids: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    return np.tile(ids, params["reps"])


@_moves("broadcast_in_dim")
def _broadcast(ids: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    return spread(ids, params["shape"], params["broadcast_dimensions"])


def spread(ids: np.ndarray, shape: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray:
    """Broadcast `ids`, whose axes become the `axes` of `shape`."""
    slots = [1] * len(shape)
    for axis, size in zip(axes, ids.shape, strict=True):
        slots[axis] = size
    return np.broadcast_to(ids.reshape(slots), shape)


@rule("concatenate")
def _concatenate(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    parts = arrays(eqn, inputs, context.n)
    ids = np.concatenate([part.ids for part in parts], eqn.params["dimension"])
    return [parts[0].moved(ids)]


@rule("stack")
def _stack(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    parts = arrays(eqn, inputs, context.n)
    return [parts[0].moved(np.stack([part.ids for part in parts], eqn.params["axis"]))]


@rule("unstack")
def _unstack(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    (whole,) = inputs
    assert isinstance(whole, Dependence)
    return [whole.moved(part) for part in np.moveaxis(whole.ids, eqn.params["axis"], 0)]


@rule("split")
def _split(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    (whole,) = inputs
    assert isinstance(whole, Dependence)
    edges = np.cumsum(eqn.params["sizes"])[:-1]
    return [whole.moved(part) for part in np.split(whole.ids, edges, eqn.params["axis"])]


@rule("pad")
def _pad(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    operand, filler = arrays(eqn, inputs, context.n)
    config = eqn.params["padding_config"]
    return [operand.moved(padded(operand.ids, config, filler.ids))]


def padded(ids: np.ndarray, config: Any, fill: Any = 0) -> np.ndarray:
    """`lax.pad` of set numbers: low, high and interior padding, negative ones crop."""
    sizes = [
        max(low + high + size + max(size - 1, 0) * inner, 0)
        for size, (low, high, inner) in zip(ids.shape, config, strict=True)
    ]
    out = np.broadcast_to(np.asarray(fill, np.int32), sizes).copy()
    source, target = [], []
    for size, total, (low, _, inner) in zip(ids.shape, sizes, config, strict=True):
        places = low + np.arange(size) * (inner + 1)
        inside = (places >= 0) & (places < total)
        source.append(np.flatnonzero(inside))
        target.append(places[inside])
    out[np.ix_(*target)] = ids[np.ix_(*source)]
    return out
