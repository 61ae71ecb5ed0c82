"""A program cut into a chain of stages, at the places where little crosses.

Every straight program is a chain once its equations are grouped: stage s reads what earlier stages
made and hands on what later ones read. A cut is cheap where few bytes cross it, and cheaper
still where what crosses is needed by the reverse pass anyway.
"""

import bisect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core

from wonderland.autodiff.costs import cost_of_eqn, effort
from wonderland.autodiff.programs import drop_dead, inline, nbytes, part, variables

__all__ = ["Chain", "Stage", "chain_of", "moves", "opened", "pulled", "residuals_of", "struct"]

STAGES = 64  # at most: the schedule is found in time ∝ stages³
LARGE = 8  # a stage with more than this part of the work is split even where much crosses


class Stage(NamedTuple):
    """Consecutive equations with what they read (`ins`) and hand on (`outs`)."""

    jaxpr: core.Jaxpr
    ins: tuple[Any, ...]
    outs: tuple[Any, ...]
    active_ins: tuple[Any, ...]
    active_outs: tuple[Any, ...]

    @property
    def loop(self) -> bool:
        """Whether the stage is one `scan` that the reverse pass goes through."""
        eqns = self.jaxpr.eqns
        return len(eqns) == 1 and eqns[0].primitive.name == "scan" and bool(self.active_outs)


class Chain(NamedTuple):
    """A program as stages. Its constants stand before its arguments."""

    jaxpr: core.Jaxpr
    stages: tuple[Stage, ...]
    perturbed: tuple[bool, ...]

    def live(self, stop: int) -> set[Any]:
        """Values that cross into stage `stop`; arguments and results belong to the caller."""
        made = {v for stage in self.stages[:stop] for v in stage.outs}
        read = {v for stage in self.stages[stop:] for v in stage.ins}
        return (made & read) - set(variables(self.jaxpr.outvars))

    @staticmethod
    def weight(values: Iterable[Any]) -> int:
        """Bytes of some values."""
        return sum(map(nbytes, values))

    def cotangent(self, stop: int) -> int:
        """Bytes of the cotangents that come back across the same place."""
        active = {v for stage in self.stages[stop:] for v in stage.active_ins}
        return self.weight(self.live(stop) & active)


def chain_of(closed: core.ClosedJaxpr, perturbed: Sequence[bool]) -> Chain:
    """Cut a program, differentiated with respect to its `perturbed` inputs, into stages."""
    jaxpr = opened(inline(closed))
    perturbed = (*perturbed,)
    eqns = drop_dead(jaxpr.eqns, jaxpr.outvars)
    active = _active(eqns, [v for v, moves in zip(jaxpr.invars, perturbed, strict=True) if moves])
    cuts = [0, *_cuts(jaxpr, eqns, active), len(eqns)]
    stages = [
        _stage(jaxpr, eqns, active, first, last) for first, last in pairwise(cuts) if last > first
    ]
    return Chain(jaxpr, (*stages,), perturbed)


def opened(closed: core.ClosedJaxpr) -> core.Jaxpr:
    """The program with its constants as first arguments, so that it can be run on tracers."""
    bare = closed.jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    return core.Jaxpr(
        [],
        [*closed.jaxpr.constvars, *closed.jaxpr.invars],
        closed.jaxpr.outvars,
        closed.jaxpr.eqns,
        effects=closed.jaxpr.effects,
        debug_info=bare,
    )


def moves(atom: Any) -> bool:
    """Whether a value can carry a derivative."""
    dtype = getattr(atom.aval, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jnp.inexact)


def _active(eqns: Iterable[core.JaxprEqn], perturbed: Iterable[Any]) -> set[Any]:
    """Variables through which a derivative with respect to the perturbed inputs can flow."""
    active = set(perturbed)
    for eqn in eqns:
        if eqn.primitive.name != "stop_gradient" and not active.isdisjoint(variables(eqn.invars)):
            active.update(out for out in eqn.outvars if moves(out))
    return active


def _stage(
    jaxpr: core.Jaxpr, eqns: Sequence[core.JaxprEqn], active: set[Any], first: int, last: int
) -> Stage:
    inside = eqns[first:last]
    made = dict.fromkeys(out for eqn in inside for out in eqn.outvars)
    read = dict.fromkeys(v for eqn in inside for v in variables(eqn.invars))
    later = {v for eqn in eqns[last:] for v in variables(eqn.invars)}
    later.update(variables(jaxpr.outvars))
    ins = tuple(v for v in read if v not in made)
    outs = tuple(v for v in made if v in later)
    return Stage(
        part(jaxpr, inside, ins, outs),
        ins,
        outs,
        tuple(v for v in ins if v in active),
        tuple(v for v in outs if v in active),
    )


def _cuts(jaxpr: core.Jaxpr, eqns: Sequence[core.JaxprEqn], active: set[Any]) -> list[int]:
    """Places between equations where the weight of what crosses is least, loops set apart."""
    loops = {
        index
        for index, eqn in enumerate(eqns)
        if eqn.primitive.name == "scan" and not active.isdisjoint(eqn.outvars)
    }
    around = {place for index in loops for place in (index, index + 1)} - {0, len(eqns)}
    weights = _weights(jaxpr, eqns, active)
    valleys = [
        place
        for place in range(1, len(eqns))
        if weights[place] <= weights[place - 1] and weights[place] < weights[place + 1]
    ]
    return _spaced(sorted(valleys, key=weights.__getitem__), weights, eqns, around)


def _spaced(
    valleys: Iterable[int],
    weights: Sequence[float],
    eqns: Sequence[core.JaxprEqn],
    cuts: set[int],
) -> list[int]:
    """The deepest valleys first, while each stage keeps its share of the work.

    A valley much higher than the cuts beside it is not worth storing: what to keep inside a stage
    is chosen value by value. It is taken only to split a stage that holds much of the work.
    """
    done = [0.0, *accumulate(effort(cost_of_eqn(eqn)) for eqn in eqns)]
    kept = sorted({0, len(eqns), *cuts})
    for place in valleys:
        after = bisect.bisect(kept, place)
        before, behind = kept[after - 1], kept[min(after, len(kept) - 1)]
        least = min(done[place] - done[before], done[behind] - done[place])
        level = weights[place] <= 1.5 * max(weights[before], weights[behind])
        large = done[behind] - done[before] > done[-1] / LARGE
        if least >= done[-1] / STAGES and (level or large):
            kept.insert(after, place)
    return kept[1:-1]


def _weights(jaxpr: core.Jaxpr, eqns: Sequence[core.JaxprEqn], active: set[Any]) -> list[float]:
    """Bytes crossing before each equation; what the reverse pass needs anyway counts half."""
    needed = residuals_of(jaxpr, eqns, active)
    results = set(variables(jaxpr.outvars))
    last: dict[Any, int] = {}
    for index, eqn in enumerate(eqns):
        last.update((v, index) for v in variables(eqn.invars))
    change = [0.0] * (len(eqns) + 2)
    for index, eqn in enumerate(eqns):
        for out in eqn.outvars:
            if out in last and out not in results:
                weight = nbytes(out) * (0.5 if out in needed else 1.0)
                change[index + 1] += weight
                change[last[out] + 1] -= weight
    weights, total = [], 0.0
    for step in change:
        total += step
        weights.append(total)
    return weights


def residuals_of(jaxpr: core.Jaxpr, eqns: Iterable[core.JaxprEqn], active: set[Any]) -> set[Any]:
    """Variables that the reverse rule of some equation reads."""
    found: set[Any] = set()
    rules: dict[Any, list[int]] = {}
    for eqn in eqns:
        read = [*dict.fromkeys(variables(eqn.invars))]
        if active.isdisjoint(read) or not any(moves(out) for out in eqn.outvars):
            continue
        flags = tuple(v in active for v in read)
        places = tuple(read.index(v) if v in read else str(v) for v in map(_hashable, eqn.invars))
        shapes = tuple(str(v.aval) for v in read)
        key = (eqn.primitive, str(eqn.params), places, shapes, flags)
        if key not in rules:
            rules[key] = _read_back(part(jaxpr, [eqn], read, eqn.outvars), flags)
        both = [*read, *eqn.outvars]
        found.update(both[place] for place in rules[key])
    return found


def _hashable(atom: Any) -> Any:
    return str(atom) if isinstance(atom, core.Literal) else atom


def _read_back(one: core.Jaxpr, flags: Sequence[bool]) -> list[int]:
    """Which inputs and outputs of a one-equation program its reverse rule reads."""
    run = partial(jax.core.eval_jaxpr, one, ())
    program = jax.make_jaxpr(lambda *args: pulled(run, flags, args))(*map(struct, one.invars))
    width = len(one.outvars)
    kept = set(variables(program.jaxpr.outvars[width:]))
    both = [*program.jaxpr.invars, *program.jaxpr.outvars[:width]]
    return [i for i, v in enumerate(both) if not isinstance(v, core.Literal) and v in kept]


def pulled(
    run: Callable[..., list[Any]], flags: Sequence[bool], args: Sequence[Any]
) -> tuple[list[Any], Callable[..., Any]]:
    """Outputs of a function and its pull-back with respect to the flagged inputs."""

    def moved(*moving: Any) -> list[Any]:
        fed = iter(moving)
        full = [next(fed) if flag else arg for arg, flag in zip(args, flags, strict=True)]
        return run(*full)

    return jax.vjp(moved, *(arg for arg, flag in zip(args, flags, strict=True) if flag))


def struct(atom: Any) -> jax.ShapeDtypeStruct:
    """Shape and dtype of a variable, to trace with."""
    return jax.ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype)
