"""The evaluation trace of a function, its two duals, and what each costs before it runs."""

import html
import inspect
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import equinox as eqx
import jax
from jax.extend import core

from wonderland.autodiff.costs import Cost, cost_of
from wonderland.autodiff.duals import adjoint_of, movable, tangent_of
from wonderland.autodiff.programs import split
from wonderland.autodiff.steps import Step, steps_of
from wonderland.core.errors import InputError, nearest

__all__ = ["Step", "Trace", "trace"]

ROWS = 80  # printed of a long trace
MODES = ("value", "forward", "reverse", "jacobian-forward", "jacobian-reverse")
HEAD = ("step", "phase", "computes", "by", "from", "type", "FLOPs", "bytes", "∂/∂operand", "source")


def trace(f: Callable[..., Any], *args: Any, **kwargs: Any) -> "Trace":
    """The evaluation trace of `f` at arguments of these shapes.

    A program is the composition h₁ = f₁(x), h₂ = f₂(x, h₁), …, y = hₘ; each step has a local
    Jacobian ∂hᵢ/∂hⱼ, usually of simple structure, and the derivative of f is their product, taken
    from the right by forward mode and from the left by reverse mode. Nothing is run: shapes
    suffice, also as `jax.ShapeDtypeStruct`.

    Reference: Griewank and Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapters 2 and 3.

    >>> import jax.numpy as jnp
    >>> steps = trace(lambda x: jnp.sum(jnp.sin(x) * x), jnp.ones(3))
    >>> [(step.primitive, str(step.structures[0])) for step in steps]
    [('sin', 'diagonal'), ('mul', 'diagonal'), ('reduce_sum', 'sum')]
    >>> steps.total.flops, steps.total.transcendentals
    (5, 3)
    >>> [step.primitive for step in steps.adjoint() if step.stored]
    ['sin', 'cos']
    """
    return _Source(f, args, kwargs).plain()


class Trace(Sequence[Step]):
    """Steps of a program in the order in which they run.

    Index it for one step, slice it for a shorter trace, iterate it, print it. `tangent()` and
    `adjoint()` are the programs of forward and reverse mode in the same form.

    Attributes:
        kind: "value", "tangent" or "adjoint".
        program: The jaxpr.
        results: Name of each result, and the value that it is.
        held: Arguments that the adjoint phase reads, with their bytes.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        program: core.ClosedJaxpr,
        kind: str,
        results: dict[str, str],
        held: dict[str, int],
        source: "_Source",
    ) -> None:
        self._steps, self._source = tuple(steps), source
        self.program, self.kind, self.results, self.held = program, kind, results, held

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> "Trace": ...
    def __getitem__(self, place: int | slice) -> "Step | Trace":
        if isinstance(place, int):
            return self._steps[place]
        chosen = self._steps[place]
        return Trace(chosen, self.program, self.kind, self.results, self.held, self._source)

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    @property
    def total(self) -> Cost:
        """Operations and traffic of the steps, each as often as it runs; their largest memory."""
        return Cost(
            sum(step.flops * step.times for step in self),
            sum(step.bytes * step.times for step in self),
            max((step.alive for step in self), default=0),
            sum(step.transcendentals * step.times for step in self),
        )

    @property
    def stored(self) -> tuple[Step, ...]:
        """Steps whose results the adjoint phase reads: the tape."""
        return tuple(step for step in self if step.stored and step.depth == 0)

    def cost(self, mode: str = "value") -> Cost:
        """What a mode costs, before it runs.

        Args:
            mode: "value", f itself; "forward", one directional derivative with the value;
                "reverse", one pull-back with the value; "jacobian-forward" and
                "jacobian-reverse", the whole Jacobian by columns or by rows.

        >>> import jax.numpy as jnp
        >>> steps = trace(lambda x: jnp.stack([x @ x, x.sum()]), jnp.ones(1000, "f"))
        >>> steps.cost("jacobian-reverse").flops < steps.cost("jacobian-forward").flops / 100
        True
        """
        if mode not in MODES:
            raise InputError(
                f"mode is {mode!r}", f"one of {', '.join(MODES)}", nearest(mode, MODES)
            )
        return self._source.cost(mode)

    def tangent(self) -> "Trace":
        """The program of forward mode: every value with its tangent ḣᵢ = Σⱼ ∂hᵢ/∂hⱼ ḣⱼ."""
        return self._source.tangent()

    def adjoint(self) -> "Trace":
        """The program of reverse mode: the values, then h̄ⱼ = Σᵢ (∂hᵢ/∂hⱼ)ᵀ h̄ᵢ backward."""
        return self._source.adjoint()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = [
            {
                **{name: getattr(step, name) for name in Step.__dataclass_fields__},
                "structures": [str(kind) for kind in step.structures],
            }
            for step in self
        ]
        return {
            "kind": self.kind,
            "results": dict(self.results),
            "held": dict(self.held),
            "total": self.total._asdict(),
            "steps": [_plain(row) for row in rows],
        }

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw when each value is born, read and freed, over the bytes alive; save if a path.

        The ending of `path` chooses the format, such as .svg or .png. Needs matplotlib.
        """
        from wonderland.autodiff.drawing import draw

        return draw(self, path)

    def table(self, rows: int | None = None) -> str:
        """The trace as text, at most `rows` steps of it."""
        shown = list(self) if rows is None else list(self)[:rows]
        lines = _aligned([self._head(), *(self._cells(step) for step in shown)])
        more = len(self) - len(shown)
        return "\n".join([*lines, *([f"… and {more} more steps"] if more else []), self._foot()])

    def __str__(self) -> str:
        return self.table(ROWS)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            style = "style='text-align:left;white-space:pre'"
            return "".join(f"<{tag} {style}>{html.escape(cell)}</{tag}>" for cell in cells)

        body = "".join(f"<tr>{row(self._cells(step), 'td')}</tr>" for step in self[:ROWS])
        foot = f"<p>{html.escape(self._foot())}</p>"
        return f"<table><thead><tr>{row(self._head(), 'th')}</tr></thead>{body}</table>{foot}"

    def _head(self) -> list[str]:
        return [name for name in HEAD if name != "phase" or self.kind != "value"]

    def _cells(self, step: Step) -> list[str]:
        phase = [step.phase + (", stored" if step.stored else "")] if self.kind != "value" else []
        times = "" if step.times == 1 else f" × {step.times}"
        operations = step.flops + step.transcendentals
        return [
            "  " * step.depth + str(step.index),
            *phase,
            ", ".join(step.outputs),
            step.primitive,
            ", ".join(step.operands),
            ", ".join(f"{d}{list(s)}" for d, s in zip(step.dtypes, step.shapes, strict=True)),
            f"{operations}{times}" if operations else "",
            str(step.bytes) if step.bytes else "",
            ", ".join(map(str, step.structures)),
            step.source,
        ]

    def _foot(self) -> str:
        total = self.total
        results = ", ".join(f"{name} = {value}" for name, value in self.results.items())
        said = (
            f"{results}; {total.flops} FLOPs, {total.transcendentals} transcendentals, "
            f"{total.bytes} bytes moved, {total.peak} alive at most"
        )
        return said + (f"; {self._tape()}" if self.kind == "adjoint" else "")

    def _tape(self) -> str:
        kept = [name for step in self.stored for name in step.outputs]
        return f"kept for the adjoint: {', '.join([*self.held, *kept]) or 'nothing'}"


class _Source:
    """A function with its arguments, from which all the traces are made."""

    def __init__(self, f: Callable[..., Any], args: Any, kwargs: Any) -> None:
        moving, self._fixed = split((args, kwargs))
        self._f = f
        found, self._tree = jax.tree.flatten(moving)
        self._shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in map(_typed, found)]
        self._names = _argument_names(f, moving)
        self._out_names: list[str] = []

    def _flat(self, *values: Any) -> list[Any]:
        args, kwargs = eqx.combine(jax.tree.unflatten(self._tree, values), self._fixed)
        out = self._f(*args, **kwargs)
        paths = jax.tree_util.tree_flatten_with_path(out)[0]
        self._out_names = ["y" + jax.tree_util.keystr(path) for path, _ in paths]
        return [leaf for _, leaf in paths]

    @property
    def _moving_names(self) -> list[str]:
        pairs = zip(self._names, self._shapes, strict=True)
        return [name for name, leaf in pairs if movable(leaf)]

    def _moving_outs(self) -> list[str]:
        outs = jax.eval_shape(self._flat, *self._shapes)
        return [name for name, out in zip(self._out_names, outs, strict=True) if movable(out)]

    def _ordered_outs(self) -> list[str]:
        """Results of the dual programs: those that move first."""
        moving = self._moving_outs()
        return [*moving, *(name for name in self._out_names if name not in moving)]

    def plain(self) -> Trace:
        closed = jax.make_jaxpr(self._flat)(*self._shapes)
        steps, results, held = steps_of(closed, self._names, [False] * len(self._names), "", "")
        named = dict(zip(self._out_names, results, strict=True))
        return Trace(steps, closed, "value", named, held, self)

    def tangent(self) -> Trace:
        closed = tangent_of(self._flat, self._shapes)
        seeds = [_dotted(name) for name in self._moving_names]
        results = [*self._ordered_outs(), *map(_dotted, self._moving_outs())]
        return self._dual(closed, seeds, results, ("tangent", "value", "tangent"))

    def adjoint(self) -> Trace:
        closed = adjoint_of(self._flat, self._shapes)
        seeds = [_barred(name) for name in self._moving_outs()]
        results = [*self._ordered_outs(), *map(_barred, self._moving_names)]
        return self._dual(closed, seeds, results, ("adjoint", "forward", "adjoint"))

    def _dual(
        self,
        closed: core.ClosedJaxpr,
        seeds: Sequence[str],
        results: Sequence[str],
        phases: tuple[str, str, str],
    ) -> Trace:
        kind, early, late = phases
        names = [*self._names, *seeds]
        flags = [False] * len(self._names) + [True] * len(seeds)
        steps, values, held = steps_of(closed, names, flags, late, early)
        return Trace(steps, closed, kind, dict(zip(results, values, strict=True)), held, self)

    def cost(self, mode: str) -> Cost:
        if mode == "value":
            return cost_of(jax.make_jaxpr(self._flat)(*self._shapes))
        if mode == "forward":
            return cost_of(tangent_of(self._flat, self._shapes))
        if mode == "reverse":
            return cost_of(adjoint_of(self._flat, self._shapes))
        return self._jacobian(rows=mode == "jacobian-reverse")

    def _jacobian(self, *, rows: bool) -> Cost:
        """All seeds at once, by `vmap` over the dual program."""
        closed = (adjoint_of if rows else tangent_of)(self._flat, self._shapes)
        known = len(self._shapes)
        seeds = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]
        number = sum(seed.size for seed in seeds[known:])
        many = [jax.ShapeDtypeStruct((number, *s.shape), s.dtype) for s in seeds[known:]]

        def one(*values: Any) -> list[Any]:
            return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *values)

        over = jax.vmap(one, (*[None] * known, *[0] * len(many)))
        return cost_of(jax.make_jaxpr(over)(*seeds[:known], *many))


def _typed(leaf: Any) -> Any:
    return leaf if hasattr(leaf, "dtype") else jax.numpy.asarray(leaf)


def _argument_names(f: Callable[..., Any], moving: Any) -> list[str]:
    """Names of the data leaves as the function's author wrote them."""
    args, kwargs = moving
    written = _parameters(f, len(args))
    paths, _ = jax.tree_util.tree_flatten_with_path(args)
    named = [written[path[0].idx] + jax.tree_util.keystr(path[1:]) for path, _ in paths]
    keyed, _ = jax.tree_util.tree_flatten_with_path(kwargs)
    return [*named, *(path[0].key + jax.tree_util.keystr(path[1:]) for path, _ in keyed)]


def _parameters(f: Callable[..., Any], number: int) -> list[str]:
    usual = [f"x{place}" for place in range(number)] if number > 1 else ["x"]
    try:
        found = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return usual
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in found if p.kind in plain]
    return [*names, *usual[len(names) :]]


def _dotted(name: str) -> str:
    """The tangent of a value: ẋ."""
    return name[0] + "\u0307" + name[1:]


def _barred(name: str) -> str:
    """The adjoint of a value: x̄."""
    return name[0] + "\u0304" + name[1:]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        k: [list(x) if isinstance(x, tuple) else x for x in v] if isinstance(v, tuple) else v
        for k, v in row.items()
    }


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell + " " * (w - _width(cell)) for cell, w in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _width(cell: str) -> int:
    """Characters on the screen: dots and bars above letters take no room."""
    return sum(character not in "\u0307\u0304" for character in cell)
