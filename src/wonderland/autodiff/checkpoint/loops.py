"""Ways to store less in a `scan`: by segments, and by chosen values of its body.

A scan of L turns with a carry of a bytes and residuals of ρ bytes a turn stores L·(a + ρ). Cut
into k segments of c turns that are run again when the reverse pass comes to them, it stores
k·a and, one segment at a time, c·(a + ρ): least at c ≈ √L (Chen, Xu, Zhang and Guestrin,
Training deep nets with sublinear memory cost, 2016). The last r turns may stay plain: they are
needed first.
With c = 1, values of the body are kept by choice, κ bytes a turn.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.extend import core

from wonderland.autodiff.checkpoint.chain import Stage, moves, opened, residuals_of
from wonderland.autodiff.costs import cost_of_eqn, effort
from wonderland.autodiff.programs import drop_dead, inline, nbytes, part, variables

__all__ = ["Variant", "variants_of"]

NAME = "wonderland.kept"
VARIANTS = 12

Chooser = Callable[..., list[tuple[Any, ...]]]


class Variant(NamedTuple):
    """One way to run the scan: a function of the stage's inputs, and its description."""

    run: Callable[..., list[Any]]
    label: str


class _Way(NamedTuple):
    """k segments of c turns with `kept` values, then r plain turns; what that needs and redoes."""

    segments: int
    turns: int
    rest: int
    kept: tuple[Any, ...]
    memory: float
    effort: float


class _Loop(NamedTuple):
    """A scan equation, taken apart."""

    eqn: core.JaxprEqn
    body: core.Jaxpr
    constants: tuple[Any, ...]
    ins: tuple[Any, ...]

    @property
    def length(self) -> int:
        return int(self.eqn.params["length"])

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Constants, carry and stacked inputs of the equation."""
        known, carried = self.eqn.params["num_consts"], self.eqn.params["num_carry"]
        values = list(values)
        return values[:known], values[known : known + carried], values[known + carried :]


def variants_of(stage: Stage, choose: Chooser) -> list[Variant]:
    """The plain scan first, then ways that need less and redo more."""
    loop = _taken_apart(stage)
    ways = _pareto(_ways(loop, choose))
    plain = _Way(0, 1, loop.length, (), 0.0, 0.0)
    return [Variant(partial(_run, loop, way), _label(way)) for way in [plain, *ways]]


def _taken_apart(stage: Stage) -> _Loop:
    eqn = stage.jaxpr.eqns[0]
    closed = inline(eqn.params["jaxpr"])
    return _Loop(eqn, opened(closed), (*closed.consts,), stage.ins)


def _label(way: _Way) -> str:
    if not way.segments:
        return "every turn kept"
    rest = f", last {way.rest} kept" if way.rest else ""
    if way.turns > 1:
        return f"{way.segments} segments of {way.turns} turns{rest}"
    inside = f", {len(way.kept)} values of each" if way.kept else ""
    return f"carry of {way.segments} turns{inside}{rest}"


def _ways(loop: _Loop, choose: Chooser) -> list[_Way]:
    """Every segment length with few and with many plain turns at the end, priced."""
    given = loop.body.invars
    active = {v for v in given if moves(v)}
    for eqn in loop.body.eqns:
        active.update(out for out in eqn.outvars if moves(out))
    read = residuals_of(loop.body, loop.body.eqns, active)
    wanted = [out for eqn in loop.body.eqns for out in eqn.outvars if out in read]
    kept = dict.fromkeys(choose(loop.body.eqns, wanted, {*given}, _work))
    return [
        way
        for turns in range(1, loop.length + 1)
        for segments in _counts(loop.length // turns)
        for way in _priced(loop, turns, segments, wanted, [*kept])
    ]


def _counts(most: int) -> set[int]:
    return {most, max(3 * most // 4, 1), max(most // 2, 1)}


def _work(eqn: core.JaxprEqn) -> float:
    return effort(cost_of_eqn(eqn))


def _priced(
    loop: _Loop, turns: int, segments: int, wanted: list[Any], kept: list[tuple[Any, ...]]
) -> list[_Way]:
    carry = sum(map(nbytes, loop.split(loop.body.invars[len(loop.constants) :])[1]))
    full = carry + sum(map(nbytes, wanted))
    work = sum(map(_work, loop.body.eqns))
    rest = loop.length - segments * turns
    # Cutting the stacked inputs into two parts copies them, and their cotangents.
    copied = 2 * sum(map(nbytes, loop.split(loop.eqn.invars)[2])) if rest else 0
    base = rest * full + copied
    if turns > 1:
        memory = base + segments * carry + turns * full
        return [_Way(segments, turns, rest, (), memory, segments * turns * work)]
    return [
        _Way(
            segments,
            1,
            rest,
            choice,
            base + segments * (carry + sum(map(nbytes, choice))) + full,
            segments * _redone(loop, wanted, choice),
        )
        for choice in kept
    ]


def _redone(loop: _Loop, wanted: Sequence[Any], kept: Sequence[Any]) -> float:
    given = {*loop.body.invars, *kept}
    return sum(map(_work, drop_dead(loop.body.eqns, wanted, given)))


def _pareto(ways: list[_Way]) -> list[_Way]:
    """Those that no other beats in both memory and effort, thinned evenly."""
    best: list[_Way] = []
    for way in sorted(ways, key=lambda way: (way.memory, way.effort)):
        if not best or way.effort < best[-1].effort:
            best.append(way)
    best = best[::-1]
    if len(best) <= VARIANTS:
        return best
    step = (len(best) - 1) / (VARIANTS - 1)
    return [best[round(index * step)] for index in range(VARIANTS)]


def _run(loop: _Loop, way: _Way, *ins: Any) -> list[Any]:
    """The scan, run in the given way; its outputs are those of the equation."""
    known = dict(zip(loop.ins, ins, strict=True))
    full = [v.val if isinstance(v, core.Literal) else known[v] for v in loop.eqn.invars]
    constants, carry, stacked = loop.split(full)
    reverse, rest = bool(loop.eqn.params["reverse"]), way.rest
    main = loop.length - rest
    front = slice(rest, None) if reverse else slice(None, main)
    back = slice(None, rest) if reverse else slice(main, None)
    pieces = []
    if main:
        parts = stacked if not rest else [x[front] for x in stacked]
        carry, made = _segmented(loop, way, constants, carry, parts)
        pieces.append(made)
    if rest:
        parts = stacked if not main else [x[back] for x in stacked]
        turn = partial(_turn, loop, constants, ())
        carry, made = lax.scan(turn, carry, parts, length=rest, reverse=reverse)
        pieces.append(made)
    if len(pieces) == 1:
        return [*carry, *pieces[0]]
    ordered = pieces[::-1] if reverse else pieces
    return [*carry, *(jnp.concatenate(both) for both in zip(*ordered, strict=True))]


def _segmented(
    loop: _Loop, way: _Way, constants: list[Any], carry: list[Any], stacked: list[Any]
) -> tuple[list[Any], list[Any]]:
    k, c = way.segments, way.turns
    reverse = bool(loop.eqn.params["reverse"])
    turn = partial(_turn, loop, constants, way.kept)
    if c == 1:
        policy = jax.checkpoint_policies.save_only_these_names(NAME)
        again = jax.checkpoint(turn, prevent_cse=False, policy=policy)
        return lax.scan(again, carry, stacked, length=k, reverse=reverse)

    def segment(carry: list[Any], inputs: list[Any]) -> Any:
        return lax.scan(turn, carry, inputs, length=c, reverse=reverse)

    cut = [x.reshape((k, c, *x.shape[1:])) for x in stacked]
    again = jax.checkpoint(segment, prevent_cse=False)
    carry, made = lax.scan(again, carry, cut, length=k, reverse=reverse)
    return carry, [y.reshape((k * c, *y.shape[2:])) for y in made]


def _turn(
    loop: _Loop, constants: list[Any], kept: Sequence[Any], carry: list[Any], inputs: list[Any]
) -> tuple[list[Any], list[Any]]:
    """One turn of the body, with the values to keep marked by name."""
    args = [*loop.constants, *constants, *carry, *inputs]
    known = dict(zip(loop.body.invars, args, strict=True))
    for eqn in loop.body.eqns:
        one = part(loop.body, [eqn], eqn.invars, eqn.outvars)
        run = _marked(one) if set(eqn.outvars) & set(kept) else partial(_eval, one)
        known.update(zip(eqn.outvars, run(*(known[v] for v in one.invars)), strict=True))
    out = [v.val if isinstance(v, core.Literal) else known[v] for v in loop.body.outvars]
    carried = loop.eqn.params["num_carry"]
    return out[:carried], out[carried:]


def _eval(jaxpr: core.Jaxpr, *args: Any) -> list[Any]:
    return jax.core.eval_jaxpr(jaxpr, (), *args)


def _mark(value: Any) -> Any:
    return checkpoint_name(value, NAME)


def _marked(one: core.Jaxpr) -> Callable[..., list[Any]]:
    """A one-equation program whose outputs carry the name of what is kept.

    Rules such as d tanh = (1 − tanh²) dx read the output itself, so the name must be on it before
    its own derivative is taken: the rule's program is replayed with the output renamed.
    """
    run = partial(_eval, one)
    if not all(map(moves, [*one.invars, *one.outvars])):
        return lambda *args: [_mark(value) for value in run(*args)]

    @jax.custom_jvp
    def named(*args: Any) -> list[Any]:
        return [_mark(value) for value in run(*args)]

    @named.defjvp
    def _rule(primals: Any, tangents: Any) -> Any:
        return _replayed(run, primals, tangents, len(one.outvars))

    return named


def _replayed(run: Callable[..., list[Any]], primals: Any, tangents: Any, width: int) -> Any:
    """The forward derivative of `run`, its values named before anything reads them."""
    closed = inline(jax.make_jaxpr(lambda p, t: jax.jvp(run, p, t))(primals, tangents))
    jaxpr = opened(closed)
    known = dict(zip(jaxpr.invars, [*closed.consts, *primals, *tangents], strict=True))
    values = set(variables(jaxpr.outvars[:width]))
    for eqn in jaxpr.eqns:
        one = part(jaxpr, [eqn], eqn.invars, eqn.outvars)
        out = _eval(one, *(known[v] for v in one.invars))
        pairs = zip(eqn.outvars, out, strict=True)
        known.update((v, _mark(x) if v in values else x) for v, x in pairs)
    out = [v.val if isinstance(v, core.Literal) else known[v] for v in jaxpr.outvars]
    return out[:width], out[width:]
