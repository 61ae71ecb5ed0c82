"""A program run with its tangent, equation by equation, under the eye of a probe.

Each equation y = g(a) is run as (y, ẏ) = (g(a), g'(a) ȧ); a probe looks at a, ȧ, y, ẏ and writes
down one row of numbers, the worst over all turns where the equation sits in a loop. The whole is
one JAX program: loops stay loops, and it compiles once. `kinks` and `check_gradient` are probes.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.extend.core as jex
import jax.numpy as jnp

__all__ = ["Probe", "Site", "bind", "is_inexact", "named", "probed", "source_line"]

Dual = tuple[Any, Any]  # a value and its tangent; None where it cannot move or does not
Run = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any], jax.Array]]

_INLINED = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
    "remat": "jaxpr",
}


class Site(NamedTuple):
    """One equation of the program that a probe watches.

    Attributes:
        primitive: What it does; for a function with its own rule, the name of that function.
        line: File, line and function of the source.
        path: The functions and loops around it, outermost first.
        equation: The equation itself.
    """

    primitive: str
    line: str
    path: tuple[str, ...]
    equation: jex.JaxprEqn


class Probe(Protocol):
    """What looks at the equations as they run.

    The first number of a row is a severity, and of several rows the one with the greatest is
    kept. Rows of equations that did not run stay at −∞.
    """

    @property
    def width(self) -> int:
        """How many numbers are written per equation."""

    def watches(self, equation: jex.JaxprEqn) -> bool:
        """Whether this equation is measured at all."""

    def measure(self, equation: jex.JaxprEqn, inputs: list[Dual], outputs: list[Dual]) -> jax.Array:
        """The row (width,) for one run of the equation."""


def probed(closed: jex.ClosedJaxpr, probe: Probe) -> tuple[list[Site], Run]:
    """The watched equations of a program, and the program with its tangent and its table.

    Returns:
        sites: The s equations watched, in program order.
        run: (inputs, tangents) ↦ (outputs, their tangents, table (s, width)).
    """
    machine = _Machine(probe)

    def run(inputs: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any], Any]:
        duals = list(zip(inputs, tangents, strict=True))
        consts = [(const, None) for const in closed.consts]
        outputs, table = machine.run(closed.jaxpr, consts + duals)
        return [value for value, _ in outputs], [tangent for _, tangent in outputs], table

    return machine.sites(closed.jaxpr, (), ""), run


class _Machine(NamedTuple):
    """The interpreter; `sites` and `run` walk the program in the same order."""

    probe: Probe

    def sites(self, jaxpr: jex.Jaxpr, path: tuple[str, ...], within: str) -> list[Site]:
        found = []
        for eqn in jaxpr.eqns:
            line = source_line(eqn, path[-1] if path else None) or within
            if _bodies(eqn):
                label = str(eqn.params.get("name", eqn.primitive.name))
                for body in _bodies(eqn):
                    found += self.sites(body, (*path, label), line)
            elif self.probe.watches(eqn):
                found.append(Site(named(eqn), line, path, eqn))
        return found

    def count(self, eqns: Sequence[jex.JaxprEqn]) -> int:
        bodies = [body for eqn in eqns for body in _bodies(eqn)]
        watched = [eqn for eqn in eqns if not _bodies(eqn) and self.probe.watches(eqn)]
        return len(watched) + sum(self.count(body.eqns) for body in bodies)

    def nothing(self, rows: int) -> jax.Array:
        return jnp.full((rows, self.probe.width), -jnp.inf)

    def run(self, jaxpr: jex.Jaxpr, duals: Sequence[Dual]) -> tuple[list[Dual], jax.Array]:
        """Run one program on duals for its constants and inputs."""
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], duals, strict=True))
        tables = [self.nothing(0)]
        for eqn in jaxpr.eqns:
            inputs = [(x.val, None) if isinstance(x, jex.Literal) else known[x] for x in eqn.invars]
            outputs, table = self.step(eqn, inputs)
            known.update(zip(eqn.outvars, outputs, strict=True))
            tables.append(table)
        ends = [(x.val, None) if isinstance(x, jex.Literal) else known[x] for x in jaxpr.outvars]
        return ends, jnp.concatenate(tables)

    def step(self, eqn: jex.JaxprEqn, inputs: list[Dual]) -> tuple[list[Dual], jax.Array]:
        name = eqn.primitive.name
        if all(tangent is None for _, tangent in inputs):
            values = bind(eqn, [value for value, _ in inputs])
            return [(value, None) for value in values], self.nothing(self.count([eqn]))
        if name in _INLINED:
            body, consts = _opened(eqn.params[_INLINED[name]])
            return self.run(body, [(const, None) for const in consts] + inputs)
        inner = {"scan": self.scan, "while": self.while_loop, "cond": self.cond}
        if name in inner:
            return inner[name](eqn, inputs)
        outputs = _pushed(eqn, inputs)
        if not self.probe.watches(eqn):
            return outputs, self.nothing(0)
        return outputs, self.probe.measure(eqn, inputs, outputs)[None]

    def scan(self, eqn: jex.JaxprEqn, inputs: list[Dual]) -> tuple[list[Dual], jax.Array]:
        p = eqn.params
        body, consts = _opened(p["jaxpr"])
        still, ends = p["num_consts"], p["num_consts"] + p["num_carry"]
        fixed = [(const, None) for const in consts] + inputs[:still]

        def turn(carry: Any, slices: Any) -> Any:
            outputs, table = self.run(body, [*fixed, *carry, *slices])
            full = [_filled(dual) for dual in outputs]
            return full[: p["num_carry"]], (full[p["num_carry"] :], table)

        carry, (stacked, tables) = jax.lax.scan(
            turn,
            [_filled(dual) for dual in inputs[still:ends]],
            [_filled(dual) for dual in inputs[ends:]],
            length=p["length"],
            reverse=p["reverse"],
        )
        worst = self.nothing(tables.shape[1])
        if p["length"]:
            turns = jnp.argmax(tables[:, :, 0], axis=0)
            worst = tables[turns, jnp.arange(tables.shape[1])]
        return [*carry, *stacked], worst

    def while_loop(self, eqn: jex.JaxprEqn, inputs: list[Dual]) -> tuple[list[Dual], jax.Array]:
        p = eqn.params
        (test, test_consts), (body, consts) = _opened(p["cond_jaxpr"]), _opened(p["body_jaxpr"])
        first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        for_test = [*test_consts, *(value for value, _ in inputs[:first])]
        fixed = [(const, None) for const in consts] + inputs[first:second]

        def goes_on(state: Any) -> Any:
            values = [value for value, _ in state[0]]
            return jex.jaxpr_as_fun(jex.ClosedJaxpr(test, for_test[: len(test_consts)]))(
                *for_test[len(test_consts) :], *values
            )[0]

        def turn(state: Any) -> Any:
            outputs, table = self.run(body, [*fixed, *state[0]])
            return [_filled(dual) for dual in outputs], _worse(state[1], table)

        start = [_filled(dual) for dual in inputs[second:]], self.nothing(self.count(body.eqns))
        outputs, table = jax.lax.while_loop(goes_on, turn, start)
        return outputs, table

    def cond(self, eqn: jex.JaxprEqn, inputs: list[Dual]) -> tuple[list[Dual], jax.Array]:
        opened = [_opened(branch) for branch in eqn.params["branches"]]
        counts = [self.count(body.eqns) for body, _ in opened]

        def branch(which: int) -> Callable[[Any], Any]:
            body, consts = opened[which]
            before, after = sum(counts[:which]), sum(counts[which + 1 :])

            def run(duals: Any) -> Any:
                outputs, table = self.run(body, [(const, None) for const in consts] + duals)
                whole = jnp.concatenate([self.nothing(before), table, self.nothing(after)])
                return [_filled(dual) for dual in outputs], whole

            return run

        (index, _), rest = inputs[0], [_filled(dual) for dual in inputs[1:]]
        return jax.lax.switch(jnp.int32(index), [branch(k) for k in range(len(opened))], rest)


def bind(eqn: jex.JaxprEqn, values: Sequence[Any]) -> list[Any]:
    """Run one equation on values, its own derivative rules included."""
    bound = eqn.primitive.get_bind_params(eqn.params)
    # Before JAX 0.10 the functions inside an equation came apart from its parameters.
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    out = eqn.primitive.bind(*functions, *values, **params)
    return list(out) if eqn.primitive.multiple_results else [out]


def _pushed(eqn: jex.JaxprEqn, inputs: list[Dual]) -> list[Dual]:
    """(g(a), g'(a) ȧ) by the rule JAX has for this equation."""
    moving = [k for k, (_, tangent) in enumerate(inputs) if tangent is not None]

    def moved(*new: Any) -> list[Any]:
        values = [value for value, _ in inputs]
        for k, value in zip(moving, new, strict=True):
            values[k] = value
        if eqn.primitive.name.startswith("custom_vjp_call"):  # has a reverse rule only
            body, consts = _opened(eqn.params.get("call_jaxpr") or eqn.params["fun_jaxpr"])
            return jex.jaxpr_as_fun(jex.ClosedJaxpr(body, consts))(*values)
        return bind(eqn, values)

    at, along = [inputs[k][0] for k in moving], [inputs[k][1] for k in moving]
    values, tangents = jax.jvp(moved, at, along)
    return [
        (value, tangent if is_inexact(value) else None)
        for value, tangent in zip(values, tangents, strict=True)
    ]


def is_inexact(value: Any) -> bool:
    """Whether a value is of a real or complex floating-point type."""
    return jnp.issubdtype(jnp.result_type(value), jnp.inexact)


def _filled(dual: Dual) -> Dual:
    """A dual whose tangent is zeros instead of absent, so that loops keep one structure."""
    value, tangent = dual
    if tangent is None and is_inexact(value):
        tangent = jnp.zeros_like(value)
    return value, tangent


def _worse(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.where((b[:, 0] > a[:, 0])[:, None], b, a)


def _bodies(eqn: jex.JaxprEqn) -> list[jex.Jaxpr]:
    """The programs inside an equation that the interpreter steps into, in order."""
    name = eqn.primitive.name
    if name in _INLINED:
        return [_opened(eqn.params[_INLINED[name]])[0]]
    if name == "scan":
        return [_opened(eqn.params["jaxpr"])[0]]
    if name == "while":
        return [_opened(eqn.params["body_jaxpr"])[0]]
    if name == "cond":
        return [_opened(branch)[0] for branch in eqn.params["branches"]]
    return []


def _opened(program: Any) -> tuple[jex.Jaxpr, Sequence[Any]]:
    if isinstance(program, jex.ClosedJaxpr):
        return program.jaxpr, program.consts
    return program, ()


def named(eqn: jex.JaxprEqn) -> str:
    """The primitive; for a function with its own derivative rule, that function."""
    name = eqn.primitive.name
    if not name.startswith(("custom_jvp_call", "custom_vjp_call")):
        return str(name)
    body, _ = _opened(eqn.params.get("call_jaxpr") or eqn.params["fun_jaxpr"])
    words = str(getattr(body.debug_info, "func_name", name)).split()
    return words[0] if words else str(name)


_OURS = Path(__file__).parent
_THEIRS = Path(jax.__file__).parent


def source_line(eqn: jex.JaxprEqn, called: str | None = None) -> str:
    """Where the user wrote this equation, "file.py:12 (function)"; empty where it is not known.

    Inside a function compiled earlier the recorded callers may be those of that first time: the
    line is given only if a frame of the function `called` itself is among them.
    """
    trace = getattr(eqn.source_info, "traceback", None)
    frames = [] if trace is None else [f for f in trace.frames if _is_user(f.file_name)]
    if not frames or (called and not any(f.function_name.endswith(called) for f in frames)):
        return ""
    frame = frames[0]
    return f"{Path(frame.file_name).name}:{frame.line_num} ({frame.function_name})"


def _is_user(name: str) -> bool:
    path = Path(name)
    return not (path.is_relative_to(_THEIRS) or path.is_relative_to(_OURS))
