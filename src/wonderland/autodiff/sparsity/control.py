"""Rules of programs inside programs: calls, branches, loops."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from .interpreter import Context, Value, joined, rule, shape_of
from .known import Known
from .loops import Body, body_of, closed_scan, closed_state, stepped_scan
from .sets import Dependence, common, nothing

__all__ = ["nested_steps", "programs"]

STEPPED: Final = 3000  # iterations of a scan that are composed one by one


@rule(
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "remat",
    "remat2",
    "checkpoint",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
)
def _call(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """The program that is called."""
    names = ("jaxpr", "call_jaxpr", "fun_jaxpr")
    inner = next(eqn.params[name] for name in names if name in eqn.params)
    return _run(context, inner, inputs)


def _run(context: Context, inner: ClosedJaxpr | Jaxpr, inputs: Sequence[Value]) -> list[Value]:
    if isinstance(inner, ClosedJaxpr):
        return context.run(inner, inputs)
    return context.walk(inner, [], inputs)


@rule("cond")
def _branch(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """The branch a constant picks, or the union of all of them."""
    which, *operands = inputs
    branches = eqn.params["branches"]
    if isinstance(which, Known):
        return context.run(branches[int(np.clip(which.value, 0, len(branches) - 1))], operands)
    results = [context.run(branch, operands) for branch in branches]
    return [
        joined(cases, shape_of(out)) if any(isinstance(c, Dependence) for c in cases) else None
        for cases, out in zip(zip(*results, strict=True), eqn.outvars, strict=True)
    ]


@rule("scan")
def _scan(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """Unrolled when short, composed step by step when longer, closed transitively beyond."""
    p = eqn.params
    consts = inputs[: p["num_consts"]]
    carry = inputs[p["num_consts"] : p["num_consts"] + p["num_carry"]]
    xs = inputs[p["num_consts"] + p["num_carry"] :]
    steps = p["length"] * nested_steps(p["jaxpr"].jaxpr)
    if steps <= context.budget:
        context.budget -= steps
        return _unrolled(context, eqn, consts, carry, xs)
    body = body_of(context, p["jaxpr"], consts, carry, xs)
    run = stepped_scan if p["length"] <= STEPPED else closed_scan
    return run(context, body, eqn, carry, xs)


def nested_steps(jaxpr: Jaxpr) -> int:
    """How many steps walking a program takes, loops inside it counted with their length."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = sum(nested_steps(each) for each in programs(eqn.params.values()))
        total += 1 + inner * eqn.params.get("length", 1)
    return total


def programs(values: Any) -> list[Jaxpr]:
    """The programs among the parameters of a step."""
    found: list[Jaxpr] = []
    for value in values:
        if isinstance(value, ClosedJaxpr):
            found.append(value.jaxpr)
        elif isinstance(value, Jaxpr):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(programs(value))
    return found


def _unrolled(
    context: Context, eqn: JaxprEqn, consts: list[Value], carry: list[Value], xs: list[Value]
) -> list[Value]:
    p = eqn.params
    times = range(p["length"])
    rows: dict[int, list[Value]] = {}
    for t in reversed(times) if p["reverse"] else times:
        outs = context.run(p["jaxpr"], [*consts, *carry, *(_at(x, t) for x in xs)])
        carry, rows[t] = outs[: p["num_carry"]], outs[p["num_carry"] :]
    outputs = eqn.outvars[p["num_carry"] :]
    stacked = [
        _stacked([rows[t][k] for t in times], shape_of(out), context.n)
        for k, out in enumerate(outputs)
    ]
    return [*carry, *stacked]


def _at(value: Value, t: int) -> Value:
    if isinstance(value, Dependence):
        return value.moved(value.ids[t])
    return Known(lambda: value.value[t]) if isinstance(value, Known) else None


def _stacked(values: list[Value], shape: tuple[int, ...], n: int) -> Value:
    if values and all(isinstance(value, Known) for value in values):
        return Known(lambda: np.stack([each.value for each in values if isinstance(each, Known)]))
    if not any(isinstance(value, Dependence) for value in values):
        return None
    parts = common([v if isinstance(v, Dependence) else nothing(shape[1:], n) for v in values])
    return parts[0].moved(np.stack([part.ids for part in parts]))


@rule("while")
def _while(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    """Followed while its condition is a known constant, closed transitively from there."""
    p = eqn.params
    split = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    tests, consts, carry = inputs[: split[0]], inputs[split[0] : split[1]], inputs[split[1] :]
    cost = nested_steps(p["body_jaxpr"].jaxpr)
    while context.budget >= cost:
        (go,) = context.run(p["cond_jaxpr"], [*tests, *carry])
        if not isinstance(go, Known):
            break
        if not go.value:
            return carry
        context.budget -= cost
        carry = context.run(p["body_jaxpr"], [*consts, *carry])
    body: Body = body_of(context, p["body_jaxpr"], consts, carry, [])
    return closed_state(context, body, carry, [])
