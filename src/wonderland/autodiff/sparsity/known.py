"""Values the seed cannot reach: constants of the program, computed only when a rule asks.

Index arrays, masks and constant coefficients decide which dependences exist; everything else that
is constant never gets computed. A value that depends on the point x is not known: it is `None`.
"""

import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import JaxprEqn

__all__ = ["Known", "apply", "constant", "reshaped"]


class Known:
    """An array that is the same for every input, evaluated on first use."""

    __slots__ = ("_compute", "_value")

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._value: Any = None

    @property
    def value(self) -> np.ndarray:
        """The array itself, in host memory."""
        if self._compute is not None:
            self._value, self._compute = np.asarray(self._compute()), None
        return self._value


def constant(value: Any) -> Known | None:
    """A constant of the program; one that an outer transformation still traces is not known."""
    if isinstance(value, jax.core.Tracer):
        return None
    if jax.dtypes.issubdtype(getattr(value, "dtype", np.float32), jax.dtypes.extended):
        return None
    return Known(lambda: value)


def apply(eqn: JaxprEqn, inputs: Sequence[Known]) -> list[Known | None]:
    """The results of a step whose inputs are all known, as promises."""
    if eqn.effects or any(_opaque(out.aval) for out in [*eqn.outvars, *eqn.invars]):
        return [None] * len(eqn.outvars)

    @cache
    def results() -> list[np.ndarray]:
        return _evaluate(eqn, [each.value for each in inputs])

    return [Known(partial(_pick, results, k)) for k in range(len(eqn.outvars))]


def _pick(results: Callable[[], list[np.ndarray]], k: int) -> np.ndarray:
    return results()[k]


def _opaque(aval: Any) -> bool:
    return not hasattr(aval, "dtype") or jax.dtypes.issubdtype(aval.dtype, jax.dtypes.extended)


def _dtype(var: Any) -> Any:
    return var.aval.dtype


def _evaluate(eqn: JaxprEqn, values: list[np.ndarray]) -> list[np.ndarray]:
    quick = _QUICK.get(eqn.primitive.name)
    if quick is not None:
        with np.errstate(all="ignore"):
            out = np.asarray(quick(eqn, *values))
        return [out.astype(_dtype(eqn.outvars[0]), copy=False)]
    with jax.ensure_compile_time_eval():
        return [np.asarray(out) for out in _run(eqn, values)]


def _run(eqn: JaxprEqn, values: list[np.ndarray]) -> list[Any]:
    """One step on concrete values, as JAX's own evaluation of a jaxpr does it."""
    bound = eqn.primitive.get_bind_params(eqn.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    outs = eqn.primitive.bind(*functions, *map(jnp.asarray, values), **params)
    return list(outs) if eqn.primitive.multiple_results else [outs]


def _broadcast(eqn: JaxprEqn, x: np.ndarray) -> np.ndarray:
    shape, where = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    slots = [1] * len(shape)
    for axis, size in zip(where, x.shape, strict=True):
        slots[axis] = size
    return np.broadcast_to(x.reshape(slots), shape)


def _iota(eqn: JaxprEqn) -> np.ndarray:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    slots = [1] * len(shape)
    slots[axis] = shape[axis]
    return np.broadcast_to(np.arange(shape[axis]).reshape(slots), shape)


def _select(_: JaxprEqn, which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    if which.dtype == bool and len(cases) == 2:
        return np.where(which, cases[1], cases[0])
    return np.choose(np.broadcast_to(which, cases[0].shape), cases)


def _slice(eqn: JaxprEqn, x: np.ndarray) -> np.ndarray:
    p = eqn.params
    steps = p["strides"] or (1,) * x.ndim
    return x[tuple(map(slice, p["start_indices"], p["limit_indices"], steps))]


def reshaped(x: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    """`lax.reshape`, which may permute the axes first."""
    order = params.get("dimensions")
    return (x if order is None else x.transpose(order)).reshape(params["new_sizes"])


def _convert(eqn: JaxprEqn, x: np.ndarray) -> np.ndarray:
    target = eqn.params["new_dtype"]
    if np.issubdtype(target, np.integer) and not np.issubdtype(x.dtype, np.integer):
        limits = np.iinfo(target)  # as XLA does: clamp, and NaN becomes 0
        x = np.nan_to_num(x.astype(np.float64)).clip(limits.min, limits.max)
    return x.astype(target)


def _on_values(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda eqn, *values: function(*values)


# NumPy forms of the steps that index arithmetic is made of: JAX would compile each of them.
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "max": np.maximum,
    "min": np.minimum,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.invert,
}
_QUICK: dict[str, Callable[..., Any]] = {
    "iota": _iota,
    "broadcast_in_dim": _broadcast,
    "select_n": _select,
    "slice": _slice,
    "reshape": lambda eqn, x: reshaped(x, eqn.params),
    "squeeze": lambda eqn, x: np.squeeze(x, eqn.params["dimensions"]),
    "expand_dims": lambda eqn, x: np.expand_dims(x, eqn.params["dimensions"]),
    "transpose": lambda eqn, x: np.transpose(x, eqn.params["permutation"]),
    "rev": lambda eqn, x: np.flip(x, eqn.params["dimensions"]),
    "concatenate": lambda eqn, *parts: np.concatenate(parts, eqn.params["dimension"]),
    "convert_element_type": _convert,
    "copy": _on_values(lambda x: x),
    "stop_gradient": _on_values(lambda x: x),
    **{name: _on_values(function) for name, function in _ARITHMETIC.items()},
}
