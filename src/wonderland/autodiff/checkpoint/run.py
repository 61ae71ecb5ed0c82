"""Running a schedule: forward, keeping what it says; backward, recomputing the rest in place."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from wonderland.autodiff.checkpoint.chain import Chain
from wonderland.autodiff.checkpoint.options import Option
from wonderland.autodiff.checkpoint.schedule import Items, Keep, Redo
from wonderland.autodiff.programs import variables

__all__ = ["Runner"]

Values = dict[Any, Any]  # a value for each variable of the chain


class Runner:
    """A chain with the options of its stages and one schedule: a function and its reverse pass.

    The reverse pass of a repetition depends on a cotangent that exists only then, so that no
    compiler may start it early or merge it with the first run.
    """

    def __init__(self, chain: Chain, options: Sequence[Sequence[Option]], items: Items) -> None:
        self.chain, self.options, self.items = chain, options, items
        self._saved = sorted(self._reads(items), key=self._order())

    def _order(self) -> Callable[[Any], int]:
        made = [v for stage in self.chain.stages for v in stage.outs]
        place = {v: i for i, v in enumerate([*self.chain.jaxpr.invars, *made])}
        return place.__getitem__

    # What is stored

    def _reads(self, items: Items) -> set[Any]:
        """Variables whose values the reverse pass over `items` takes from outside of it."""
        return set[Any]().union(*map(self._read_by, items))

    def _read_by(self, item: Keep | Redo) -> set[Any]:
        if isinstance(item, Redo):
            return self._read_by_group(item)
        stage, option = self.chain.stages[item.stage], self.options[item.stage][item.option]
        borders = {"in": stage.ins, "out": stage.outs}
        return {borders[kind][at] for kind, at in option.backward.reads if kind in borders}

    def _read_by_group(self, group: Redo) -> set[Any]:
        stages = self.chain.stages[group.start : group.stop]
        made = {v for stage in stages for v in stage.outs}
        outside = {v for stage in stages for v in stage.ins} - made
        inner = self._reads(group.items)
        known = inner & made & self._needed_after(group.stop) if group.border else set()
        return outside | (inner - made) | known

    def _needed_after(self, stop: int) -> set[Any]:
        later = {v for stage in self.chain.stages[stop:] for v in stage.ins}
        return later | set(variables(self.chain.jaxpr.outvars))

    # Forward

    def forward(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results of the function, and what its reverse pass needs."""
        known = dict(zip(self.chain.jaxpr.invars, args, strict=True))
        kept = self._ahead(self.items, known)
        return self._results(known), [[known[v] for v in self._saved], kept]

    def _results(self, known: Values) -> list[Any]:
        outs = self.chain.jaxpr.outvars
        held = set(variables(outs))
        return [known[v] if v in held else v.val for v in _listed(outs)]

    def _ahead(self, items: Items, known: Values) -> list[Any]:
        """Run stages, entering their outputs in `known`; return what each item keeps inside."""
        kept: list[Any] = []
        for item in items:
            if isinstance(item, Redo):
                for s in range(item.start, item.stop):
                    self._plainly(s, known)
                kept.append([])
            else:
                kept.append(self._keeping(item, known))
        return kept

    def _plainly(self, s: int, known: Values) -> None:
        stage = self.chain.stages[s]
        outs = jax.core.eval_jaxpr(stage.jaxpr, (), *(known[v] for v in stage.jaxpr.invars))
        _enter(known, stage.outs, outs)

    def _keeping(self, item: Keep, known: Values) -> list[Any]:
        stage, option = self.chain.stages[item.stage], self.options[item.stage][item.option]
        ins = [known[v] for v in stage.ins]
        values = option.forward.run(**{"in": ins, "constant": option.constants})
        _enter(known, stage.outs, values[: len(stage.outs)])
        return values[len(stage.outs) :]

    # Backward

    def backward(self, stored: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Cotangents of the arguments from those of the results; None stands for zero."""
        saved, kept = stored
        known = dict(zip(self._saved, saved, strict=True))
        back: Values = {}
        for out, cotangent in zip(self.chain.jaxpr.outvars, cotangents, strict=True):
            if cotangent is not None and out in set(variables([out])):
                _add(back, out, cotangent)
        self._back(self.items, known, kept, back)
        return [back.get(v) for v in self.chain.jaxpr.invars]

    def _back(self, items: Items, known: Values, kept: Sequence[Any], back: Values) -> None:
        """Go through items from the last to the first; `back` maps variables to cotangents."""
        for place, (item, held) in reversed([*enumerate(zip(items, kept, strict=True))]):
            if isinstance(item, Redo):
                self._again(item, known, back)
            else:
                self._stage_back(item, known, held, back, last=place == len(items) - 1)

    def _stage_back(
        self, item: Keep, known: Values, held: Sequence[Any], back: Values, *, last: bool
    ) -> None:
        stage, option = self.chain.stages[item.stage], self.options[item.stage][item.option]
        arriving = {v: back.pop(v) for v in stage.active_outs if v in back}
        if not arriving:
            return
        borders = {"in": stage.ins, "out": stage.outs}
        read = {
            borders[kind][at]: known[borders[kind][at]]
            for kind, at in option.backward.reads
            if kind in borders
        }

        def pull(read: Values, held: Sequence[Any], arriving: Values) -> list[Any]:
            return option.backward.run(
                **{
                    "in": [read.get(v) for v in stage.ins],
                    "out": [read.get(v) for v in stage.outs],
                    "keep": held,
                    "constant": option.constants,
                    "cotangent": [_or_zero(arriving, v) for v in stage.active_outs],
                }
            )

        # The last stage's forward pass has just ended: nothing of it is computed twice.
        run = isolated if option.again and not last else _directly
        for v, cotangent in zip(stage.active_ins, run(pull, read, held, arriving), strict=True):
            _add(back, v, cotangent)

    def _again(self, group: Redo, known: Values, back: Values) -> None:
        stages = self.chain.stages[group.start : group.stop]
        outs = {v for stage in stages for v in stage.active_outs}
        arriving = {v: back.pop(v) for v in list(back) if v in outs}
        if not arriving:
            return
        made = {v for stage in stages for v in stage.outs}
        active = dict.fromkeys(v for stage in stages for v in stage.active_ins if v not in made)
        read = {v: known[v] for v in self._read_by_group(group)}

        def pull(read: Values, held: Sequence[Any], arriving: Values) -> list[Any]:
            inside, local = dict(read), dict(arriving)
            kept = self._ahead(group.items, inside)
            self._back(group.items, inside, kept, local)
            return [_or_zero(local, v) for v in active]

        for v, cotangent in zip(active, isolated(pull, read, [], arriving), strict=True):
            _add(back, v, cotangent)


def _listed(atoms: Sequence[Any]) -> Iterator[Any]:
    return iter(atoms)


def _enter(known: Values, names: Sequence[Any], values: Sequence[Any]) -> None:
    """Enter values, but keep those already at hand: their recomputation is then dead code."""
    for name, value in zip(names, values, strict=True):
        known.setdefault(name, value)


def _add(back: Values, name: Any, cotangent: Any) -> None:
    if cotangent is not None:
        back[name] = back[name] + cotangent if name in back else cotangent


def _or_zero(values: Mapping[Any, Any], name: Any) -> Any:
    found = values.get(name)
    return jnp.zeros(name.aval.shape, name.aval.dtype) if found is None else found


def _directly(pull: Callable[..., list[Any]], *operands: Any) -> list[Any]:
    return pull(*operands)


def isolated(
    pull: Callable[..., list[Any]], read: Values, held: Sequence[Any], arriving: Values
) -> list[Any]:
    """Run `pull` so that it starts after `arriving` is there and shares nothing with the past.

    On accelerators an optimisation barrier does it. XLA for CPUs removes barriers before it
    merges equal work, so there the work moves into a branch that is always taken, for a reason
    only the running program can see.
    """
    names, arrived = list(read), list(arriving)

    def body(operands: tuple[list[Any], Sequence[Any], list[Any]]) -> list[Any]:
        values, kept, cotangents = operands
        into, back = zip(names, values, strict=True), zip(arrived, cotangents, strict=True)
        return pull(dict(into), kept, dict(back))

    operands = ([*read.values()], list(held), [*arriving.values()])
    if jax.default_backend() != "cpu":
        return body(lax.optimization_barrier(operands))
    shapes = jax.eval_shape(body, operands)

    def never(operands: Any) -> list[Any]:
        return [jnp.zeros(s.shape, s.dtype) for s in shapes]

    return lax.cond(_always(operands[2]), body, never, operands)


@jax.custom_batching.custom_vmap
def _odd_or_even(bits: Any) -> Any:
    return (bits & 1) <= 1


@_odd_or_even.def_vmap
def _one_for_all(size: int, batched: Sequence[bool], bits: Any) -> tuple[Any, bool]:
    # One answer for the whole batch: a branch taken per sample would run both sides.
    return _odd_or_even(bits.reshape(-1)[0] if batched[0] else bits), False


def _always(cotangents: Sequence[Any]) -> Any:
    """True, computed from the cotangents: odd or even, an integer's last bit is at most 1."""
    answer = None
    for cotangent in cotangents:
        if not cotangent.size:
            continue
        entry = lax.stop_gradient(jnp.real(cotangent.reshape(-1)[0]))
        kind = np.dtype(f"uint{8 * entry.dtype.itemsize}")
        here = _odd_or_even(lax.bitcast_convert_type(entry, kind))
        answer = here if answer is None else answer & here
    return True if answer is None else answer
