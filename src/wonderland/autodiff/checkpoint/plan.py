"""Finding the schedule whose compiled program keeps a budget, and telling what it does."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from wonderland.autodiff.checkpoint.budget import compiled_peak, human, parse, roomy
from wonderland.autodiff.checkpoint.chain import Chain, moves, pulled, struct
from wonderland.autodiff.checkpoint.options import Option
from wonderland.autodiff.checkpoint.run import Runner
from wonderland.autodiff.checkpoint.schedule import SLOTS, Items, Redo, Schedules
from wonderland.autodiff.costs import cost_of
from wonderland.core.errors import InputError

__all__ = ["CheckpointPlan", "Row", "choose"]

TRIES = 6  # compilations spent on a budget
CLOSE = 0.9  # of the budget used: near enough to stop looking


class Row(NamedTuple):
    """One part of the program in the plan.

    Attributes:
        part: Stages, numbered from 0 in program order.
        does: Primitives it begins and ends with.
        kept: What is held between its forward and its reverse pass, borders included.
        bytes: How much that is.
        flops: Operations computed again.
    """

    part: str
    does: str
    kept: str
    bytes: int
    flops: int


class CheckpointPlan(NamedTuple):
    """What a checkpointed function keeps and recomputes, as a table.

    Attributes:
        rows: One for each part of the program.
        budget: Bytes allowed, or None where the plan chose by itself.
        plain: Bytes the plain reverse pass takes, by the compiled program's analysis.
        peak: Bytes this plan takes, by the same analysis.
        extra: Work computed again, as a fraction of one forward pass.
        items: The schedule.
        curve: (bytes, extra) of the best schedule for every budget, by the model.
    """

    rows: tuple[Row, ...]
    budget: int | None
    plain: int
    peak: int
    extra: float
    items: Items | None
    curve: tuple[tuple[int, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = self._asdict()
        found.pop("items")
        return {**found, "rows": [row._asdict() for row in self.rows]}

    def __str__(self) -> str:
        head = ("part", "from … to", "kept", "bytes", "FLOPs again")
        cells = [
            (row.part, row.does, row.kept, f"{human(row.bytes)}B", human(row.flops).strip())
            for row in self.rows
        ]
        table = [head, *cells]
        widths = [max(len(line[column]) for line in table) for column in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in table
        ]
        return "\n".join([*lines, self._verdict()])

    def __repr__(self) -> str:
        return str(self)

    def _verdict(self) -> str:
        allowed = "" if self.budget is None else f" of {human(self.budget)}B allowed"
        return (
            f"compiled: {human(self.peak)}B{allowed}, plain {human(self.plain)}B; "
            f"computed again: {100 * self.extra:.0f}% of the forward pass"
        )


def choose(chain: Chain, options: Sequence[Sequence[Option]], memory: Any) -> CheckpointPlan:
    """The cheapest schedule within a budget, measured on the compiled program."""
    search = _Search(chain, options)
    wanted = parse(memory)
    if wanted is None:
        return search.frugal()
    budget = wanted if isinstance(wanted, int) else int(wanted * search.plain)
    if search.plain <= budget:
        return search.without(budget)
    return search.within(budget)


class _Search:
    """Schedules for every budget of the model, and what they take when compiled."""

    def __init__(self, chain: Chain, options: Sequence[Sequence[Option]]) -> None:
        self.chain, self.options = chain, options
        self.schedules = Schedules(chain, options)
        self._measured: dict[Items, int] = {}
        self.plain = self._compiled(self._plainly)
        if self.plain is None:
            raise InputError(
                "the compiler of this device does not say what memory a program takes",
                "a device whose compiled programs have a memory_analysis()",
                "Use jax.checkpoint with a policy of your choice",
            )

    # What programs take

    def _plainly(self, args: Sequence[Any], cotangents: Sequence[Any]) -> Any:
        jaxpr = self.chain.jaxpr
        flags = [*self.chain.perturbed]

        def run(*values: Any) -> list[Any]:
            outs = jax.core.eval_jaxpr(jaxpr, (), *values)
            return [out for v, out in zip(jaxpr.outvars, outs, strict=True) if moves(v)]

        outs, pull = pulled(run, flags, args)
        return outs, pull(self._weights(cotangents))

    def _weights(self, cotangents: Sequence[Any]) -> list[Any]:
        """A single number is differentiated with weight 1, as by `grad`; others are arguments."""
        return [jnp.ones_like(c) if c.shape == () else c for c in cotangents]

    def _compiled(self, reverse: Callable[..., Any]) -> Any:
        jaxpr = self.chain.jaxpr
        outs = [struct(v) for v in jaxpr.outvars if moves(v)]
        return compiled_peak(reverse, ([struct(v) for v in jaxpr.invars], outs))

    def peak(self, slot: int) -> int:
        """Bytes the schedule for a budget of the model takes when compiled."""
        items = self.schedules.items(slot)
        if items not in self._measured:
            runner = Runner(self.chain, self.options, items)

            def reverse(args: Sequence[Any], cotangents: Sequence[Any]) -> Any:
                outs, stored = runner.forward(args)
                source = iter(self._weights(cotangents))
                given = [next(source) if moves(v) else None for v in self.chain.jaxpr.outvars]
                back = runner.backward(stored, given)
                return outs, [b for b, p in zip(back, self.chain.perturbed, strict=True) if p]

            self._measured[items] = self._compiled(reverse)
        return self._measured[items]

    # Which one to take

    def frugal(self) -> CheckpointPlan:
        """The least memory that costs at most one more forward pass."""
        work = self.schedules.work.sum()
        slots = range(self.schedules.smallest(), SLOTS)
        cheap = (slot for slot in slots if self.schedules.effort(slot) <= 2 * work)
        return self._plan(next(cheap, SLOTS - 1), None)

    def within(self, budget: int) -> CheckpointPlan:
        """Bisect the model's budgets by what their schedules take when compiled."""
        low, high = self.schedules.smallest() - 1, SLOTS
        slot, best = round(budget / self.schedules.scale), None
        for _ in range(TRIES):
            if high - low < 2:
                break
            slot = min(max(slot, low + 1), high - 1)
            used = self.peak(slot)
            if used <= budget:
                best = low = slot
            else:
                high = slot
            if best is not None and (used == budget or CLOSE * budget <= used <= budget):
                break
            step = round(slot * budget / max(used, 1))
            slot = step if low < step < high else (low + high) // 2
        return self._plan(self._least(budget) if best is None else best, budget)

    def _least(self, budget: int) -> int:
        """One of the smallest schedules, if it keeps the budget; else the error names the best."""
        lowest = self.schedules.smallest()
        tried = [slot for slot in (lowest, lowest + 2, lowest + 6) if slot < SLOTS]
        best = min(tried, key=self.peak)
        if self.peak(best) <= budget:
            return best
        least = roomy(min(self.peak(best), self.plain))
        raise InputError(
            f"memory is {human(budget)}B ({budget} bytes)",
            f"at least {least}, the least for which a schedule was found "
            f"(the plain reverse pass takes {human(self.plain)}B)",
            f"Pass memory={least!r} or more",
        )

    # What it does

    def without(self, budget: int) -> CheckpointPlan:
        """The plain program, where it fits."""
        row = Row("all", _does(self.chain, 0, len(self.chain.stages)), "everything", self.plain, 0)
        return CheckpointPlan((row,), budget, self.plain, self.plain, 0.0, None, self._curve())

    def _plan(self, slot: int, budget: int | None) -> CheckpointPlan:
        items = self.schedules.items(slot)
        extra = self.schedules.effort(slot) / self.schedules.work.sum() - 1
        rows = tuple(_merged(self._rows(items)))
        return CheckpointPlan(
            rows, budget, self.plain, self.peak(slot), extra, items, self._curve()
        )

    def _curve(self) -> tuple[tuple[int, float], ...]:
        work = self.schedules.work.sum()
        return tuple(
            (round(slot * self.schedules.scale), self.schedules.effort(slot) / work - 1)
            for slot in range(self.schedules.smallest(), SLOTS)
        )

    def _rows(self, items: Items, depth: int = 0) -> Iterator[Row]:
        for place, item in enumerate(items):
            if isinstance(item, Redo):
                yield self._group(item, depth)
                yield from self._rows(item.items, depth + 1)
            else:
                yield self._single(item, depth, last=place == len(items) - 1)

    def _group(self, group: Redo, depth: int) -> Row:
        last = group.stop - group.border
        flops = sum(self._flops(s) for s in range(group.start, last))
        border = self.chain.weight(self.chain.live(group.stop))
        return Row(
            "  " * depth + f"{group.start} … {group.stop - 1} again",
            _does(self.chain, group.start, group.stop),
            "border",
            border,
            flops,
        )

    def _flops(self, stage: int) -> int:
        return cost_of(self.chain.stages[stage].jaxpr).flops

    def _single(self, item: Any, depth: int, *, last: bool) -> Row:
        option = self.options[item.stage][item.option]
        border = (
            0
            if last
            else self.chain.weight(self.chain.live(item.stage + 1) - self.chain.live(item.stage))
        )
        names = dict.fromkeys(name for name, size in sorted(option.values, key=lambda v: -v[1]))
        inside = option.label or ", ".join([*names][:4]) + (", …" if len(names) > 4 else "")
        kept = " + ".join(part for part in ("border" if border else "", inside) if part)
        return Row(
            "  " * depth + str(item.stage),
            _does(self.chain, item.stage, item.stage + 1),
            kept or "nothing",
            border + option.kept,
            0 if last and option.again else option.flops,
        )


def _does(chain: Chain, start: int, stop: int) -> str:
    first, last = chain.stages[start].jaxpr.eqns[0], chain.stages[stop - 1].jaxpr.eqns[-1]
    names = [first.primitive.name, last.primitive.name]
    return " … ".join(dict.fromkeys(names))


def _merged(rows: Iterator[Row]) -> Iterator[Row]:
    """Neighbours that do the same, in one line."""
    held: list[Row] = []
    for row in rows:
        if held and row[1:] == held[-1][1:] and "again" not in row.part + held[-1].part:
            held.append(row)
            continue
        yield from _together(held)
        held = [row]
    yield from _together(held)


def _together(rows: Sequence[Row]) -> Iterator[Row]:
    if not rows:
        return
    if len(rows) == 1:
        yield rows[0]
        return
    part = f"{rows[0].part} … {rows[-1].part.strip()}"
    first = rows[0]
    yield Row(
        part,
        first.does,
        f"{first.kept}, each",
        sum(row.bytes for row in rows),
        sum(row.flops for row in rows),
    )
