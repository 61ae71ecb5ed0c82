"""The steps of a program, one line each: what is computed, from what, at what price."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.extend import core, source_info_util

from wonderland.autodiff.costs import cost_of_eqn, effort
from wonderland.autodiff.flops import flops, transcendentals
from wonderland.autodiff.liveness import VIEWS, profile
from wonderland.autodiff.programs import CALLS, Inner, depends, inner, nbytes, shape, variables
from wonderland.autodiff.structure import Structure, structures

__all__ = ["Step", "steps_of"]


@dataclass(frozen=True)
class Step:
    """One equation h = f(operands) of an evaluation trace.

    Attributes:
        index: Its place in the trace.
        outputs: Names of the values it computes.
        primitive: What it applies; for calls and loops, what is called and how often.
        operands: Names of the values it reads; numbers stand for themselves.
        shapes: Shape of each output.
        dtypes: Number type of each output.
        flops: Arithmetic operations of one run; programs inside count at their own steps.
        transcendentals: Evaluations of exp, log, sin, … of one run.
        bytes: Bytes one run reads and writes.
        size: Bytes of what it computes.
        structures: Structure of the local Jacobian for each operand.
        alive: Bytes alive while it runs, arguments left out.
        source: Line of the user's code.
        depth: How many programs it is nested in.
        times: How often it runs; 0 in a branch of `cond` that is cheaper than another.
        phase: "" in a plain trace; "value" or "tangent"; "forward" or "adjoint".
        stored: Whether the adjoint phase reads what it computes.
    """

    index: int
    outputs: tuple[str, ...]
    primitive: str
    operands: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    flops: int
    transcendentals: int
    bytes: int
    size: int
    structures: tuple[Structure, ...]
    alive: int
    source: str
    depth: int = 0
    times: int = 1
    phase: str = ""
    stored: bool = False


def steps_of(
    closed: core.ClosedJaxpr, arguments: Sequence[str], seeds: Sequence[bool], late: str, early: str
) -> tuple[list[Step], list[str], dict[str, int]]:
    """Steps of a program, names of its results, and bytes of arguments that `late` steps read.

    `seeds` marks the inputs (tangents or cotangents) on which the `late` phase depends.
    """
    jaxpr = closed.jaxpr
    walk = _Walk(jaxpr, arguments, seeds, late, early)
    steps = list(walk.through(jaxpr, 0, 1, None))
    return steps, [walk.name(out) for out in jaxpr.outvars], walk.read_arguments


class _Walk:
    """Numbers the values of a program and its inner programs in the order they are computed."""

    def __init__(
        self,
        jaxpr: core.Jaxpr,
        arguments: Sequence[str],
        seeds: Sequence[bool],
        late: str,
        early: str,
    ) -> None:
        self._names: dict[Any, str] = dict(zip(jaxpr.invars, arguments, strict=True))
        self._names.update((v, f"const{i}") for i, v in enumerate(jaxpr.constvars))
        self._next_value = self._next_step = 0
        self._late, self._early = late, early
        moved = [v for v, seed in zip(jaxpr.invars, seeds, strict=True) if seed]
        self._dependent = depends(jaxpr.eqns, moved) if moved else set()
        self._read_late = {
            v
            for eqn in jaxpr.eqns
            if not self._dependent.isdisjoint(eqn.outvars)
            for v in variables(eqn.invars)
        }
        self._alive = dict(zip(map(id, jaxpr.eqns), profile(jaxpr), strict=True))
        self.read_arguments = {
            self._names[v]: nbytes(v)
            for v in [*jaxpr.constvars, *jaxpr.invars]
            if v in self._read_late and v not in self._dependent
        }

    def name(self, atom: Any) -> str:
        """The name of a value; a literal is its number."""
        if isinstance(atom, core.Literal):
            return f"{np.asarray(atom.val).item():.6g}"
        if atom not in self._names:
            self._next_value += 1
            self._names[atom] = f"v{self._next_value}"
        return self._names[atom]

    def through(
        self, jaxpr: core.Jaxpr, depth: int, times: int, outer: Step | None
    ) -> Iterator[Step]:
        """The steps of a program; those inside inherit phase and memory of the one around them."""
        for eqn in jaxpr.eqns:
            bodies = inner(eqn)
            if not bodies:
                yield self._step(eqn, depth, times, outer)
                continue
            around = self._step(eqn, depth, times, outer, named=_name_of_call(eqn))
            yield around
            dearest = _dearest(bodies) if eqn.primitive.name == "cond" else None
            for place, body in enumerate(bodies):
                self._introduce(eqn, body)
                turns = body.times if dearest in {None, place} else 0
                yield from self.through(body.jaxpr, depth + 1, times * turns, around)
                self._conclude(eqn, body)

    def _step(
        self,
        eqn: core.JaxprEqn,
        depth: int,
        times: int,
        outer: Step | None,
        named: str | None = None,
    ) -> Step:
        operands = tuple(map(self.name, eqn.invars))
        call = eqn.primitive.name in CALLS
        moved = 0 if named or eqn.primitive.name in VIEWS else _moved(eqn)
        self._next_step += 1
        late = not self._dependent.isdisjoint(eqn.outvars)
        return Step(
            index=self._next_step - 1,
            outputs=() if call else tuple(map(self.name, eqn.outvars)),
            primitive=named or eqn.primitive.name,
            operands=operands,
            shapes=tuple(map(shape, eqn.outvars)),
            dtypes=tuple(str(getattr(out.aval, "dtype", "")) for out in eqn.outvars),
            flops=0 if named else flops(eqn),
            transcendentals=0 if named else transcendentals(eqn),
            bytes=moved,
            size=sum(map(nbytes, eqn.outvars)),
            structures=structures(eqn),
            alive=outer.alive if outer else self._alive[id(eqn)],
            source=_source(eqn),
            depth=depth,
            times=times,
            phase=outer.phase if outer else (self._late if late else self._early),
            stored=self._late == "adjoint"
            and not late
            and not self._read_late.isdisjoint(eqn.outvars),
        )

    def _introduce(self, eqn: core.JaxprEqn, body: Inner) -> None:
        """Name the inputs of an inner program after what the equation passes to them."""
        passed = _passed(eqn, body)
        for place, v in enumerate(body.jaxpr.invars):
            if place < len(passed):
                atom, suffix = passed[place]
                self._names[v] = self.name(atom) + suffix
            else:
                self._names.setdefault(v, f"in{place}")
        for place, v in enumerate(body.jaxpr.constvars):
            self._names.setdefault(v, f"const{place}")

    def _conclude(self, eqn: core.JaxprEqn, body: Inner) -> None:
        """The outputs of a call are those of the program it calls."""
        if eqn.primitive.name in CALLS:
            for out, v in zip(eqn.outvars, body.jaxpr.outvars, strict=False):
                self._names[out] = self.name(v)


def _moved(eqn: core.JaxprEqn) -> int:
    return sum(map(nbytes, eqn.invars)) + sum(map(nbytes, eqn.outvars))


def _dearest(bodies: Sequence[Inner]) -> int:
    def price(place: int) -> float:
        return sum(effort(cost_of_eqn(eqn)) for eqn in bodies[place].jaxpr.eqns)

    return max(range(len(bodies)), key=price)


def _name_of_call(eqn: core.JaxprEqn) -> str:
    """A call by the name of what it calls, a loop by its number of turns."""
    name, called = eqn.primitive.name, eqn.params.get("name")
    if name == "scan":
        return f"scan × {eqn.params['length']}"
    if name == "while":
        turns = inner(eqn)[1].times
        return f"while × {turns}" if turns > 1 else "while"
    if name == "cond":
        return f"cond of {len(eqn.params['branches'])}"
    return f"{name} {called}" if isinstance(called, str) and called else name


def _passed(eqn: core.JaxprEqn, body: Inner) -> list[tuple[Any, str]]:
    """For each input of an inner program the operand it comes from, and a mark of the turn."""
    name, given, params = eqn.primitive.name, list(eqn.invars), eqn.params
    if name == "scan":
        known, carried = params["num_consts"], params["num_carry"]
        marks = [""] * known + ["ₜ"] * carried + ["[t]"] * (len(given) - known - carried)
        return list(zip(given, marks, strict=True))
    if name == "while":
        test, turn = params["cond_nconsts"], params["body_nconsts"]
        own = given[:test] if body.label == "test" else given[test : test + turn]
        return [(atom, "") for atom in own] + [(atom, "ₜ") for atom in given[test + turn :]]
    if name == "cond":
        return [(atom, "") for atom in given[1:]]
    return [(atom, "") for atom in given]


def _source(eqn: core.JaxprEqn) -> str:
    """File, line and function, without the folders in front."""
    told = source_info_util.summarize(eqn.source_info)
    return told.replace("\\", "/").rpartition("/")[2] if "/" in told else told
