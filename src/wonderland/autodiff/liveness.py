"""How long each value lives, and so how many bytes are alive at once.

Walking the equations in order, a value is born at its equation and dies after its last use. The
peak is the largest sum of bytes alive, arguments of the program left out (the caller holds them
in any case). As compilers do, an elementwise step overwrites an operand that dies there, and a
step that only renames or broadcasts shares its operand's memory.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from jax.extend import core

from wonderland.autodiff.flops import TRANSCENDENTAL
from wonderland.autodiff.programs import inner, names, nbytes, variables

__all__ = ["last_uses", "peak", "profile"]

# These share memory with their operand: nothing new is alive.
VIEWS = names(
    "reshape squeeze expand_dims broadcast_in_dim stop_gradient name copy_p optimization_barrier "
    "device_put sharding_constraint iota"
)
# These may write their result over an operand of the same size.
OVERWRITES = TRANSCENDENTAL | names(
    "add add_any sub mul div rem max min neg abs sign select_n clamp integer_pow square not and or "
    "xor convert_element_type dynamic_update_slice scatter scatter-add scatter_add"
)


def last_uses(eqns: Sequence[core.JaxprEqn], kept: Iterable[Any] = ()) -> dict[Any, int]:
    """Index of the equation after which each variable is no longer needed.

    Variables in `kept` (the results) live to the end: their index is the number of equations.
    """
    last: dict[Any, int] = {}
    for index, eqn in enumerate(eqns):
        last.update((x, index) for x in variables(eqn.invars))
        for out in eqn.outvars:
            last.setdefault(out, index)
    last.update((x, len(eqns)) for x in variables(kept))
    return last


def profile(jaxpr: core.Jaxpr, *, results: bool = True) -> list[int]:
    """Bytes alive during each equation; with `results=False` the outputs count as the caller's.

    >>> import jax, jax.numpy as jnp
    >>> profile(jax.make_jaxpr(lambda x: jnp.sum(jnp.outer(x, x)))(jnp.ones(10, "f")).jaxpr)[-1]
    404
    """
    last = last_uses(jaxpr.eqns, jaxpr.outvars)
    home = _homes(jaxpr)
    dies = _deaths(home, last)
    held: dict[Any, int] = {}
    outside = set() if results else {home.get(x, x) for x in variables(jaxpr.outvars)}
    alive = []
    for index, eqn in enumerate(jaxpr.eqns):
        born = {o: nbytes(o) for o in eqn.outvars if home.get(o) is o and o not in outside}
        held.update(born)
        overwritten = _overwritten(eqn, index, home, dies, held)
        alive.append(sum(held.values()) - overwritten + _inside(eqn))
        for gone in [x for x in held if dies[x] <= index]:
            del held[gone]
    return alive


def peak(jaxpr: core.Jaxpr, *, results: bool = True) -> int:
    """The most bytes alive at once while `jaxpr` runs, its arguments left out."""
    return max(profile(jaxpr, results=results), default=0)


def _homes(jaxpr: core.Jaxpr) -> dict[Any, Any]:
    """For each variable the variable whose memory it shares: itself, unless it is a view."""
    home: dict[Any, Any] = {}
    for eqn in jaxpr.eqns:
        source = next(variables(eqn.invars), None)
        view = eqn.primitive.name in VIEWS
        for out in eqn.outvars:
            home[out] = (home.get(source, source) if source is not None else None) if view else out
    return home


def _deaths(home: dict[Any, Any], last: dict[Any, int]) -> dict[Any, int]:
    """When memory is freed: after the last use of any name that shares it."""
    dies: dict[Any, int] = {}
    for name, index in last.items():
        owner = home.get(name, name)
        dies[owner] = max(index, dies.get(owner, -1))
    return dies


def _overwritten(
    eqn: core.JaxprEqn, index: int, home: dict[Any, Any], dies: dict[Any, int], held: dict[Any, int]
) -> int:
    """Bytes the result need not add, because a dying operand of its size makes room."""
    if eqn.primitive.name not in OVERWRITES or len(eqn.outvars) != 1:
        return 0
    room = nbytes(eqn.outvars[0])
    if held.get(eqn.outvars[0]) is None:
        return 0
    for operand in variables(eqn.invars):
        owner = home.get(operand, operand)
        if owner in held and dies[owner] == index and held[owner] == room:
            return room
    return 0


def _inside(eqn: core.JaxprEqn) -> int:
    """Working memory of the programs inside an equation, beyond its own results."""
    return max((peak(body.jaxpr, results=False) for body in inner(eqn)), default=0)
