"""What a program costs, before it runs: operations, traffic, memory.

`flops` and `transcendentals` are counted as in `flops`; `bytes` is what every step reads and
writes, as if nothing were fused but steps that only rename or broadcast; `peak` is the most that
is alive at once, as in `liveness`.
Loops count every turn; of the branches of a `cond` the dearest counts.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.extend import core

from wonderland.autodiff.flops import flops, transcendentals
from wonderland.autodiff.liveness import VIEWS, peak
from wonderland.autodiff.programs import Inner, inner, nbytes

__all__ = ["Cost", "cost", "cost_of", "cost_of_eqn", "effort"]

# A nominal machine: one exp, and one byte of traffic, in operations of a matrix product. CPUs and
# accelerators of today agree within a factor of three; only ratios between steps matter here.
EXP = 50.0
BYTE = 10.0


class Cost(NamedTuple):
    """What a program does.

    Attributes:
        flops: Arithmetic operations.
        bytes: Bytes read and written, step by step.
        peak: Most bytes alive at once, arguments left out, results included.
        transcendentals: Evaluations of exp, log, sin, ….

    >>> import jax, jax.numpy as jnp
    >>> layer = lambda A, x: jnp.tanh(A @ x)
    >>> cost_of(jax.make_jaxpr(layer)(jnp.ones((4, 3), "f"), jnp.ones(3, "f")))
    Cost(flops=24, bytes=108, peak=16, transcendentals=4)
    """

    flops: int
    bytes: int
    peak: int
    transcendentals: int = 0

    def then(self, other: "Cost") -> "Cost":
        """The cost of one program after another."""
        return Cost(
            self.flops + other.flops,
            self.bytes + other.bytes,
            max(self.peak, other.peak),
            self.transcendentals + other.transcendentals,
        )

    def times(self, turns: int) -> "Cost":
        """The cost of running `turns` times, one after another."""
        return Cost(self.flops * turns, self.bytes * turns, self.peak, self.transcendentals * turns)


_FREE = Cost(0, 0, 0, 0)


def cost_of(program: core.ClosedJaxpr | core.Jaxpr) -> Cost:
    """The cost of a program given as a jaxpr."""
    jaxpr = program.jaxpr if isinstance(program, core.ClosedJaxpr) else program
    return _sum(jaxpr)._replace(peak=peak(jaxpr))


def cost(f: Callable[..., Any], *args: Any) -> Cost:
    """The cost of `f(*args)`, from shapes alone.

    >>> import jax, jax.numpy as jnp
    >>> long = jax.ShapeDtypeStruct((10**6,), "f")
    >>> cost(jnp.dot, long, long).flops
    2000000
    """
    return cost_of(jax.make_jaxpr(f)(*args))


def cost_of_eqn(eqn: core.JaxprEqn) -> Cost:
    """The cost of one equation, the programs inside it included."""
    bodies = inner(eqn)
    if eqn.primitive.name in VIEWS:
        return _FREE
    if not bodies:
        moved = sum(map(nbytes, eqn.invars)) + sum(map(nbytes, eqn.outvars))
        return Cost(flops(eqn), moved, 0, transcendentals(eqn))
    if eqn.primitive.name == "cond":
        return max((_sum(body.jaxpr) for body in bodies), key=effort)
    return _chain(bodies)


def effort(spent: Cost) -> float:
    """A time in nominal operations, for comparisons: arithmetic, functions and traffic."""
    return spent.flops + EXP * spent.transcendentals + BYTE * spent.bytes


def _sum(jaxpr: core.Jaxpr) -> Cost:
    total = _FREE
    for eqn in jaxpr.eqns:
        total = total.then(cost_of_eqn(eqn))
    return total


def _chain(bodies: list[Inner]) -> Cost:
    total = _FREE
    for body in bodies:
        total = total.then(_sum(body.jaxpr).times(body.times))
    return total
