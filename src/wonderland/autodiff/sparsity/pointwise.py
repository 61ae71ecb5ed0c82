"""Rules of the steps that act element by element."""

import numpy as np
from jax.extend.core import JaxprEqn

from .interpreter import Context, Value, joined, rule, shape_of
from .known import Known
from .sets import Dependence, keep

__all__: list[str] = []


@rule(
    *("add", "sub", "neg", "add_any", "div", "convert_element_type", "reduce_precision", "copy"),
    *("copy_p", "real", "imag", "complex", "conj", "sharding_constraint", "layout_constraint"),
    *("device_put", "mesh_cast", "pvary", "reshard", "abs", "max", "min", "square", "integer_pow"),
    *("exp", "log", "sin", "cos", "tanh", "sqrt", "rsqrt", "logistic", "pow", "name"),
)
def _elementwise(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    return [joined(inputs, shape_of(eqn.outvars[0]))]


@rule("mul")
def _multiply(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """A constant factor that is zero cuts the dependence."""
    result = joined(inputs, shape_of(eqn.outvars[0]))
    for value in inputs:
        if isinstance(value, Known) and not np.all(value.value != 0):
            result = keep(np.broadcast_to(value.value != 0, result.shape), result)
    return [result]


@rule("select_n")
def _select(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """A constant mask decides; one that depends on the point lets both cases through."""
    which, *cases = inputs
    shape = shape_of(eqn.outvars[0])
    if not isinstance(which, Known):
        return [joined(cases, shape)]
    chosen = np.broadcast_to(which.value, shape).astype(np.int64)
    parts = [
        keep(chosen == k, each.moved(np.broadcast_to(each.ids, shape)))
        for k, each in enumerate(cases)
        if isinstance(each, Dependence)
    ]
    return [joined(parts, shape)]


@rule("optimization_barrier")
def _each_its_own(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    return list(inputs)


@rule("stop_gradient")
def _nothing(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    return [None] * len(eqn.outvars)


@rule("clamp")
def _clamp(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    return [joined(inputs, shape_of(eqn.outvars[0]))]
