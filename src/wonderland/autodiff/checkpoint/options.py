"""What one stage may keep for its reverse pass: an exact choice, value by value.

The stage and its reverse pass are written as one program. Its first half F computes values, its
second half B reads some of them, the residuals R. A residual is kept (k = 1, bytes b) or
recomputed (r = 1, effort e), and recomputing reads values that are kept, recomputed or at hand:

    minimise  Σ eⱼ rⱼ + λ Σ bᵥ kᵥ   such that  kᵥ + r(maker of v) ≥ 1          for v in R
                                              kᵤ + r(maker of u) ≥ rⱼ          for u read by j

It is a minimum cut, so its linear programme is integral; SciPy's `milp` solves it. Sweeping λ,
the worth of a byte, gives the lower convex hull of effort against memory (Jain et al.,
Checkmate, MLSys 2020, state the same with a schedule in place of λ).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp
from jax.extend import core
from scipy.optimize import Bounds, LinearConstraint, milp

from wonderland.autodiff.checkpoint.chain import Stage, pulled, struct
from wonderland.autodiff.checkpoint.loops import variants_of
from wonderland.autodiff.costs import Cost, cost_of_eqn, effort
from wonderland.autodiff.liveness import peak
from wonderland.autodiff.programs import depends, drop_dead, inline, nbytes, part, variables

__all__ = ["Option", "Program", "options_of"]

PRICES = 7  # values of λ tried


class Program(NamedTuple):
    """Equations to run, and for each input where its value comes from: (kind, place).

    Kinds: "in" and "out", values at the stage's borders; "keep", values kept inside; "cotangent"
    of an active output; "constant".
    """

    jaxpr: core.Jaxpr
    reads: tuple[tuple[str, int], ...]

    def run(self, **values: Sequence[Any]) -> list[Any]:
        """Evaluate with the values of each kind."""
        return jax.core.eval_jaxpr(
            self.jaxpr, (), *(values[kind][place] for kind, place in self.reads)
        )


class Option(NamedTuple):
    """One way through a stage.

    Attributes:
        forward: Program from the stage's inputs to its outputs, then the kept values.
        backward: Program from borders, kept values and cotangents to the inputs' cotangents.
        kept: Bytes held inside the stage from its forward to its reverse pass.
        redone: Effort of what is computed a second time.
        flops: Operations of what is computed a second time.
        peak: Bytes the reverse pass of this stage needs for itself.
        again: Whether the forward pass computed the same: then compilers must be kept from
            merging the two, which would keep everything.
        values: What is kept: a primitive's name and its bytes.
        label: For the table.
    """

    forward: Program
    backward: Program
    constants: tuple[Any, ...]
    kept: int
    redone: float
    flops: int
    peak: int
    again: bool
    values: tuple[tuple[str, int], ...]
    label: str = ""


class _Joint(NamedTuple):
    """The stage and its reverse pass as one program."""

    jaxpr: core.Jaxpr
    constants: tuple[Any, ...]
    ins: list[Any]
    cotangents: list[Any]
    outs: list[Any]
    results: list[Any]
    first: list[core.JaxprEqn]  # F: does not depend on a cotangent
    plain: frozenset[int]  # ids of those equations of F that the outputs need
    residuals: list[Any]  # R


def options_of(stages: Iterable[Stage]) -> list[tuple[Option, ...]]:
    """For each stage the ways through it, from keeping the most to keeping nothing inside.

    Stages whose program and reverse program read the same share one answer.
    """
    known: dict[Any, tuple[Option, ...]] = {}
    found = []
    for stage in stages:
        joint = _joint(stage, partial(jax.core.eval_jaxpr, stage.jaxpr, ()))
        key = (str(joint.jaxpr), tuple(map(id, joint.constants)))
        if key not in known:
            known[key] = _loop_options(stage) if stage.loop else _options(stage, joint)
        found.append(known[key])
    return found


def _options(stage: Stage, joint: _Joint) -> tuple[Option, ...]:
    at_hand = {*joint.ins, *joint.jaxpr.constvars, *variables(joint.outs)}
    work = {id(eqn): effort(_again(joint, eqn)) for eqn in joint.first}
    found = choices(joint.first, joint.residuals, at_hand, lambda eqn: work[id(eqn)])
    return tuple(_option(stage, joint, [*choice]) for choice in dict.fromkeys(found))


def _loop_options(stage: Stage) -> tuple[Option, ...]:
    """Ways through a `scan`: what its segments keep, and whether it keeps even that."""
    joints = [(variant, _joint(stage, variant.run)) for variant in variants_of(stage, choices)]
    totals = [_total(joint.jaxpr.eqns) for _, joint in joints]
    kept, dropped = [], []
    for (variant, joint), total in zip(joints, totals, strict=True):
        extra = max(effort(total) - effort(totals[0]), 0.0)
        flops = max(total.flops - totals[0].flops, 0)
        residuals = [v for v in joint.residuals if v not in {*joint.ins, *variables(joint.outs)}]
        held, bare = _option(stage, joint, residuals), _option(stage, joint, [])
        kept.append(held._replace(redone=extra, flops=flops, label=variant.label))
        dropped.append(
            bare._replace(
                redone=bare.redone + extra,
                flops=bare.flops + flops,
                label=f"{variant.label}, again",
            )
        )
    return (*kept, *reversed(dropped))


def _total(eqns: Iterable[core.JaxprEqn]) -> Cost:
    return reduce(Cost.then, map(cost_of_eqn, eqns), Cost(0, 0, 0))


def _joint(stage: Stage, run: Callable[..., list[Any]]) -> _Joint:
    flags = [v in stage.active_ins for v in stage.ins]
    places = [stage.outs.index(v) for v in stage.active_outs]

    def there_and_back(ins: list[Any], cotangents: list[Any]) -> Any:
        outs, pull = pulled(run, flags, ins)
        weights = [np.zeros(np.shape(out), jax.dtypes.float0) for out in outs]
        filled = [
            jax.numpy.zeros_like(out) if moves_value(out) else weight
            for out, weight in zip(outs, weights, strict=True)
        ]
        for place, cotangent in zip(places, cotangents, strict=True):
            filled[place] = cotangent
        return outs, pull(filled)

    shapes = [struct(v) for v in stage.ins], [struct(v) for v in stage.active_outs]
    closed = inline(jax.make_jaxpr(there_and_back)(*shapes))
    whole = closed.jaxpr
    ins, cotangents = whole.invars[: len(stage.ins)], whole.invars[len(stage.ins) :]
    outs, results = whole.outvars[: len(stage.outs)], whole.outvars[len(stage.outs) :]
    late = depends(whole.eqns, cotangents)
    first = [eqn for eqn in whole.eqns if late.isdisjoint(eqn.outvars)]
    at_hand = {*ins, *whole.constvars}
    second = [eqn for eqn in drop_dead(whole.eqns, results) if not late.isdisjoint(eqn.outvars)]
    read = dict.fromkeys(v for eqn in second for v in variables(eqn.invars))
    read.update(dict.fromkeys(variables(results)))
    residuals = [v for v in read if v not in late and v not in at_hand]
    plain = frozenset(map(id, drop_dead(first, outs)))
    return _Joint(whole, (*closed.consts,), ins, cotangents, outs, results, first, plain, residuals)


def moves_value(value: Any) -> bool:
    """Whether a value can carry a derivative."""
    return bool(jax.numpy.issubdtype(value.dtype, jax.numpy.inexact))


def _option(stage: Stage, joint: _Joint, keep: list[Any]) -> Option:
    known = {*joint.ins, *joint.jaxpr.constvars, *variables(joint.outs), *keep}
    back = drop_dead(joint.jaxpr.eqns, joint.results, known)
    again = [eqn for eqn in back if id(eqn) in joint.plain]
    if keep:
        ahead = drop_dead(joint.first, [*joint.outs, *keep])
        forward = _program(joint, ahead, [*joint.outs, *keep], ())
    else:  # the plain equations: a loop then stores nothing for its reverse pass
        ahead = list(stage.jaxpr.eqns)
        reads = tuple(("in", place) for place in range(len(stage.ins)))
        forward = Program(stage.jaxpr, reads)
    backward = _program(joint, back, joint.results, keep)
    return Option(
        forward,
        backward,
        joint.constants,
        sum(map(nbytes, keep)),
        effort(_total(again)),
        _total(again).flops,
        peak(backward.jaxpr, results=False),
        bool(effort(_total(again))),
        tuple((_maker(joint, v), nbytes(v)) for v in keep),
    )


def _program(
    joint: _Joint, eqns: Sequence[core.JaxprEqn], results: Sequence[Any], keep: Sequence[Any]
) -> Program:
    """Equations with the source of each of their inputs; kept values go before borders."""
    sources: dict[Any, tuple[str, int]] = {}
    for kind, group in (
        ("out", joint.outs),
        ("in", joint.ins),
        ("cotangent", joint.cotangents),
        ("constant", joint.jaxpr.constvars),
        ("keep", keep),
    ):
        sources.update((v, (kind, place)) for place, v in enumerate(group) if _hashes(v))
    made = {out for eqn in eqns for out in eqn.outvars}
    read = dict.fromkeys(v for eqn in eqns for v in variables(eqn.invars))
    read.update(dict.fromkeys(variables(results)))
    needed = [v for v in read if v not in made]
    return Program(part(joint.jaxpr, eqns, needed, results), tuple(sources[v] for v in needed))


def _hashes(atom: Any) -> bool:
    return not isinstance(atom, core.Literal)


def _maker(joint: _Joint, value: Any) -> str:
    names = (eqn.primitive.name for eqn in joint.first if value in eqn.outvars)
    return next(names, "value")


def _again(joint: _Joint, eqn: core.JaxprEqn) -> Cost:
    """What running an equation of F in the reverse pass adds: nothing, if it only runs there."""
    return cost_of_eqn(eqn) if id(eqn) in joint.plain else Cost(0, 0, 0)


def choices(
    first: Sequence[core.JaxprEqn],
    residuals: Sequence[Any],
    at_hand: set[Any],
    work_of: Callable[[core.JaxprEqn], float],
) -> list[tuple[Any, ...]]:
    """Sets of values to keep, one for each price of a byte, dearest last; then nothing."""
    wanted = [v for v in residuals if v not in at_hand]
    eqns = drop_dead(first, wanted, at_hand)
    work = np.array([work_of(eqn) for eqn in eqns])
    if not work.any():
        return [()]
    maker = {out: index for index, eqn in enumerate(eqns) for out in eqn.outvars}
    values = [v for v in maker if v not in at_hand]
    weight = np.array([nbytes(v) for v in values], float)
    rules = _rules(eqns, values, maker, [v for v in wanted if v in maker])
    size = np.array([max(sum(map(nbytes, eqn.outvars)), 1) for eqn in eqns])
    ratios = (work / size)[work > 0]
    prices = np.geomspace(ratios.min() / 100, 2 * ratios.sum(), PRICES)
    return [*(_cheapest(work, price * weight, rules, values) for price in prices), ()]


def _rules(
    eqns: Sequence[core.JaxprEqn], values: Sequence[Any], maker: dict[Any, int], wanted: list[Any]
) -> tuple[sp.csr_matrix, np.ndarray]:
    """The constraints as rows over (keep each value, redo each equation), with their bounds."""
    place = {v: index for index, v in enumerate(values)}
    n, rows, bounds = len(values), [], []
    for v in wanted:
        rows.append({place[v]: 1.0, n + maker[v]: 1.0})
        bounds.append(1.0)
    for index, eqn in enumerate(eqns):
        for v in dict.fromkeys(variables(eqn.invars)):
            if v in place:
                rows.append({place[v]: 1.0, n + maker[v]: 1.0, n + index: -1.0})
                bounds.append(0.0)
    entries = [(i, j, x) for i, row in enumerate(rows) for j, x in row.items()]
    i, j, x = (np.array(column) for column in zip(*entries, strict=True))
    return sp.csr_matrix((x, (i, j)), shape=(len(rows), n + len(eqns))), np.array(bounds)


def _cheapest(
    work: np.ndarray,
    price: np.ndarray,
    rules: tuple[sp.csr_matrix, np.ndarray],
    values: Sequence[Any],
) -> tuple[Any, ...]:
    """Solve the minimum cut for one price of a byte."""
    cost = np.concatenate([price, work])
    scale = cost.max() or 1.0
    matrix, lower = rules
    # A trace of cost on everything keeps what is free from being kept or redone for nothing.
    solved = milp(
        cost / scale + 1e-9,
        constraints=LinearConstraint(matrix, lb=lower),
        bounds=Bounds(0, 1),
        integrality=np.ones(cost.size),
    )
    if solved.x is None:
        return ()
    return tuple(v for v, kept in zip(values, solved.x, strict=False) if kept > 0.5)
