"""Programs as straight lists of equations: inlined, pruned of what nobody uses, looked into.

A JAX function becomes a *jaxpr*: equations `outputs = primitive(inputs)` in the order in which
they run. What is read off a jaxpr here is exact; nothing is executed.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax.extend import core

__all__ = [
    "Inner",
    "depends",
    "drop_dead",
    "inline",
    "inner",
    "names",
    "nbytes",
    "part",
    "shape",
    "size",
    "split",
    "trips",
    "variables",
]

# Equations that only call another program: the parameter that holds it.
CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "custom_vmap_call": "call",
    "linear_call": "callee",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "remat": "jaxpr",
    "shard_map": "jaxpr",
}
TRANSPARENT = {"jit", "pjit", "closed_call", "core_call"}


class Inner(NamedTuple):
    """A program inside an equation, and how often one run of the equation runs it."""

    label: str
    jaxpr: core.Jaxpr
    times: int


def names(text: str) -> frozenset[str]:
    """The words of `text`: primitive names are easier to read in a line than in a list."""
    return frozenset(text.split())


def shape(atom: Any) -> tuple[int, ...]:
    """Shape of a variable or literal; tokens have none."""
    return tuple(getattr(atom.aval, "shape", ()))


def size(atom: Any) -> int:
    """Number of entries of a variable or literal."""
    return math.prod(shape(atom))


def nbytes(atom: Any) -> int:
    """Bytes of a variable or literal; random keys count what their words take.

    >>> import jax, jax.numpy as jnp
    >>> nbytes(jax.make_jaxpr(jnp.sin)(jnp.ones((3, 2), jnp.float32)).jaxpr.invars[0])
    24
    """
    dtype = getattr(atom.aval, "dtype", None)
    if dtype is None:  # tokens and other values without a representation
        return 0
    return size(atom) * int(dtype.itemsize)


def split(tree: Any) -> tuple[Any, Any]:
    """Leaves of a pytree that are data, and those that are part of the program.

    Arrays, their shapes and Python floats are data; integers, strings and functions are not.

    >>> split({"x": 1.0, "power": 2})
    ({'power': None, 'x': 1.0}, {'power': 2, 'x': None})
    """
    kinds = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct, float, complex)
    return eqx.partition(tree, lambda leaf: isinstance(leaf, kinds))


def inner(eqn: core.JaxprEqn) -> list[Inner]:
    """The programs inside an equation: bodies of loops, branches, called functions.

    A `while` whose number of turns cannot be read from the program counts one turn.
    """
    name, params = eqn.primitive.name, eqn.params
    if name in CALLS:
        found = params.get(CALLS[name])
        return [] if found is None else [Inner(name, _open(found), 1)]
    if name == "scan":
        return [Inner("body", _open(params["jaxpr"]), int(params["length"]))]
    if name == "while":
        turns = trips(eqn) or 1
        test, body = _open(params["cond_jaxpr"]), _open(params["body_jaxpr"])
        return [Inner("test", test, turns + 1), Inner("body", body, turns)]
    if name == "cond":
        branches = enumerate(params["branches"])
        return [Inner(f"branch {index}", _open(branch), 1) for index, branch in branches]
    if name == "custom_linear_solve":
        return [Inner("solve", _open(params["jaxprs"].solve), 1)]
    return []


def trips(eqn: core.JaxprEqn) -> int | None:
    """How often a `while` turns, if its test is `counter < number`; None if only running tells."""
    test = _open(eqn.params["cond_jaxpr"])
    if len(test.eqns) != 1 or test.eqns[0].primitive.name != "lt":
        return None
    counter, bound = test.eqns[0].invars
    known = eqn.params["cond_nconsts"]
    if isinstance(counter, core.Literal) or counter not in test.invars[known:]:
        return None
    place = test.invars.index(counter)
    start = eqn.invars[eqn.params["body_nconsts"] + place]
    stop = bound if isinstance(bound, core.Literal) else _outer(eqn, test, bound)
    if not (isinstance(start, core.Literal) and isinstance(stop, core.Literal)):
        return None
    if not _counts_up(eqn, place - known):
        return None
    return max(int(stop.val) - int(start.val), 0)


def _outer(eqn: core.JaxprEqn, test: core.Jaxpr, bound: core.Var) -> Any:
    """What the equation passes in for an input of its test, if the loop never changes it."""
    place = test.invars.index(bound)
    known = eqn.params["cond_nconsts"]
    if place < known:
        return eqn.invars[place]
    body, carry = _open(eqn.params["body_jaxpr"]), place - known
    unchanged = body.outvars[carry] is body.invars[eqn.params["body_nconsts"] + carry]
    return eqn.invars[eqn.params["body_nconsts"] + place] if unchanged else None


def _counts_up(eqn: core.JaxprEqn, carry: int) -> bool:
    body = _open(eqn.params["body_jaxpr"])
    counter, after = body.invars[eqn.params["body_nconsts"] + carry], body.outvars[carry]
    for step in body.eqns:
        if after in step.outvars and step.primitive.name == "add":
            left, right = step.invars
            one = right if left is counter else left if right is counter else None
            return isinstance(one, core.Literal) and int(one.val) == 1
    return False


def inline(closed: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """The same program with `jit` boundaries dissolved, so that every step is in one list.

    >>> import jax, jax.numpy as jnp
    >>> program = jax.make_jaxpr(lambda x: jax.jit(jnp.sin)(x) + 1)(1.0)
    >>> [step.primitive.name for step in inline(program).eqns]
    ['sin', 'add']
    """
    if not any(eqn.primitive.name in TRANSPARENT for eqn in closed.jaxpr.eqns):
        return closed

    def run(*args: Any) -> list[Any]:
        return _replay(closed.jaxpr, closed.consts, args)

    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]
    return jax.make_jaxpr(run)(*shapes)


def _replay(jaxpr: core.Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Evaluate equation by equation, stepping into what is transparent."""
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    for eqn in jaxpr.eqns:
        read = [x.val if isinstance(x, core.Literal) else known[x] for x in eqn.invars]
        if eqn.primitive.name in TRANSPARENT:
            called = eqn.params[CALLS[eqn.primitive.name]]
            out = _replay(_open(called), getattr(called, "consts", ()), read)
        else:
            one = part(jaxpr, [eqn], eqn.invars, eqn.outvars)
            fed = [x for x in eqn.invars if not isinstance(x, core.Literal)]
            values = dict(zip(fed, (known[x] for x in fed), strict=True))
            out = jax.core.eval_jaxpr(one, (), *(values[x] for x in one.invars))
        known.update(zip(eqn.outvars, out, strict=True))
    return [x.val if isinstance(x, core.Literal) else known[x] for x in jaxpr.outvars]


def part(
    jaxpr: core.Jaxpr,
    eqns: Sequence[core.JaxprEqn],
    invars: Iterable[Any],
    outvars: Sequence[Any],
) -> core.Jaxpr:
    """A program of its own from some equations of another; literals need no input."""
    fed = dict.fromkeys(x for x in invars if not isinstance(x, core.Literal))
    bare = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    return core.Jaxpr(
        [], list(fed), list(outvars), list(eqns), effects=jaxpr.effects, debug_info=bare
    )


def drop_dead(
    eqns: Sequence[core.JaxprEqn], wanted: Iterable[Any], given: Iterable[Any] = ()
) -> list[core.JaxprEqn]:
    """The equations that `wanted` needs when the variables in `given` are there already."""
    given = set(given)
    needed = {x for x in wanted if not isinstance(x, core.Literal) and x not in given}
    kept = []
    for eqn in reversed(eqns):
        if eqn.effects or not needed.isdisjoint(eqn.outvars):
            kept.append(eqn)
            needed.update(
                x for x in eqn.invars if not isinstance(x, core.Literal) and x not in given
            )
    return kept[::-1]


def depends(eqns: Iterable[core.JaxprEqn], on: Iterable[Any]) -> set[Any]:
    """Every variable that is computed, directly or not, from those in `on`; these included."""
    reached = set(on)
    for eqn in eqns:
        if any(not isinstance(x, core.Literal) and x in reached for x in eqn.invars):
            reached.update(eqn.outvars)
    return reached


def variables(atoms: Iterable[Any]) -> Iterator[Any]:
    """The atoms that are variables, literals left out."""
    return (x for x in atoms if not isinstance(x, core.Literal))


def _open(program: Any) -> core.Jaxpr:
    return program.jaxpr if isinstance(program, core.ClosedJaxpr) else program
