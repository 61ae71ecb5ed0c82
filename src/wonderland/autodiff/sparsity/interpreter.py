"""Walk a jaxpr that is linear in its seed, carrying for each array what it depends on.

Three kinds of value: a `Dependence` (reached by the seed), a `Known` (the same for every input) and
`None` (depends on the point, not on the seed). Rules are registered by primitive name in the files
beside this one; a primitive without a rule lets every output depend on everything that went into
it, which is never too small, and says so in a sentence.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from .known import Known, apply, constant
from .sets import Dependence, common, join, nothing, unite

__all__ = ["Context", "Rule", "Value", "arrays", "joined", "rule", "shape_of"]

Value: TypeAlias = Dependence | Known | None
Rule: TypeAlias = Callable[["Context", JaxprEqn, list[Value]], list[Value]]

_RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of the primitives `names`."""

    def register(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return register


class Context:
    """One propagation: the number of seed entries, and what was widened on the way.

    Attributes:
        n: Number of seed entries; every index set is a subset of 0 … n-1.
        notes: Sentences about steps whose structure is not known.
        budget: Steps that may still be spent on unrolling loops.
    """

    def __init__(self, n: int, notes: dict[str, str] | None = None, budget: int = 4000) -> None:
        self.n, self.budget = n, budget
        self.notes: dict[str, str] = {} if notes is None else notes

    def run(self, program: ClosedJaxpr, inputs: Sequence[Value]) -> list[Value]:
        """What the outputs of `program` depend on, given what its inputs depend on."""
        return self.walk(program.jaxpr, [constant(value) for value in program.consts], inputs)

    def walk(self, jaxpr: Jaxpr, consts: Sequence[Value], inputs: Sequence[Value]) -> list[Value]:
        """The same for an open jaxpr and its constants."""
        env: dict[Any, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, inputs, strict=True))

        def read(var: Any) -> Value:
            return constant(var.val) if isinstance(var, Literal) else env[var]

        last = _last_use(jaxpr)
        for step, eqn in enumerate(jaxpr.eqns):
            outs = self.step(eqn, [read(var) for var in eqn.invars])
            env.update(zip(eqn.outvars, outs, strict=True))
            for var in last.get(step, ()):
                del env[var]  # a table of a million rows is not kept longer than it is needed
        return [read(var) for var in jaxpr.outvars]

    def step(self, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
        """One step; results that cannot carry a derivative depend on nothing."""
        if not any(isinstance(value, Dependence) for value in inputs):
            return self._independent(eqn, inputs)
        outs = _RULES.get(eqn.primitive.name, _unknown)(self, eqn, inputs)
        return [
            value if _differentiable(out.aval) or not isinstance(value, Dependence) else None
            for value, out in zip(outs, eqn.outvars, strict=True)
        ]

    def everything(self, eqn: JaxprEqn, inputs: list[Value], note: str = "") -> list[Value]:
        """Every output element depends on every input element: always correct, never sharp."""
        if note:
            self.notes.setdefault(eqn.primitive.name, note)
        alone = [
            unite(each, range(each.ids.ndim)) for each in inputs if isinstance(each, Dependence)
        ]
        total = alone[0]
        for each in alone[1:]:
            total = join(total, each)
        return [total.moved(np.broadcast_to(total.ids, shape_of(out))) for out in eqn.outvars]

    def _independent(self, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
        known = [value for value in inputs if isinstance(value, Known)]
        if len(known) == len(inputs):
            return list(apply(eqn, known))
        if known and eqn.primitive.name in _CALLS:  # index arithmetic may hide in a jitted helper
            return _RULES[eqn.primitive.name](self, eqn, inputs)
        return [None] * len(eqn.outvars)


_CALLS = ("jit", "pjit", "closed_call")


def _unknown(context: Context, eqn: JaxprEqn, inputs: list[Value]) -> list[Value]:
    name = eqn.primitive.name
    note = (
        f"the structure of the primitive {name!r} is not known; "
        "its outputs are taken to depend on all of its inputs (dense)"
    )
    return context.everything(eqn, inputs, note)


def shape_of(var: Any) -> tuple[int, ...]:
    """Static shape of a variable of a jaxpr."""
    return tuple(getattr(var.aval, "shape", ()))


def arrays(eqn: JaxprEqn, inputs: list[Value], n: int) -> list[Dependence]:
    """All inputs as dependences in one table, those without any as empty sets."""
    return common(
        [
            value if isinstance(value, Dependence) else nothing(shape_of(var), n)
            for value, var in zip(inputs, eqn.invars, strict=True)
        ]
    )


def joined(inputs: Sequence[Value], shape: tuple[int, ...]) -> Dependence:
    """Element by element, the union of all dependences among `inputs`, broadcast to `shape`."""
    parts = [
        each.moved(np.broadcast_to(each.ids, shape))
        for each in inputs
        if isinstance(each, Dependence)
    ]
    total = parts[0]
    for each in parts[1:]:
        total = join(total, each)
    return total


def _differentiable(aval: Any) -> bool:
    kind = getattr(aval, "dtype", None)
    # bfloat16 and its kin are no NumPy kinds; only the plain integer and boolean ones are excluded.
    return kind is not None and np.dtype(kind).kind not in "iub" and np.dtype(kind).names is None


def _last_use(jaxpr: Jaxpr) -> dict[int, list[Any]]:
    """For each step, the variables nobody reads after it."""
    final: dict[Any, int] = {}
    for step, eqn in enumerate(jaxpr.eqns):
        for var in [*eqn.invars, *eqn.outvars]:
            if not isinstance(var, Literal):
                final[var] = step
    for var in jaxpr.outvars:
        final.pop(var, None) if not isinstance(var, Literal) else None
    grouped: dict[int, list[Any]] = {}
    for var, step in final.items():
        grouped.setdefault(step, []).append(var)
    return grouped
