"""From a function to the pattern of its derivative, through its tangent or cotangent program.

The tangent program v ↦ J v has exactly the derivative JAX computes: custom rules, constants and
`stop_gradient` included. Where JAX has no tangent program (`custom_vjp`) the cotangent program
u ↦ Jᵀ u is read instead, and the pattern transposed.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr
from scipy import sparse

from wonderland.core.errors import InputError

# Importing a file of rules registers them.
from . import control, indexing, layout, pointwise, products, windows  # noqa: F401
from .interpreter import Context
from .sets import Dependence, nothing, seeds

__all__ = ["Detected", "Unavailable", "cotangent_program", "detect", "tangent_program"]


class Unavailable(NamedTuple):
    """Why a mode does not exist for a function."""

    reason: str


class Detected(NamedTuple):
    """The pattern of a derivative.

    Attributes:
        rows: For each flat output the row of `table` with the inputs it depends on, shape (m,).
        table: Boolean CSR (sets, n).
        transposed: Whether rows are inputs and columns outputs.
        notes: Sentences about steps taken as dense.
    """

    rows: np.ndarray
    table: sparse.csr_array
    transposed: bool
    notes: tuple[str, ...]

    @property
    def entries(self) -> int:
        """Non-zeros of the pattern."""
        return Dependence(self.rows, self.table).entries

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n): outputs by inputs."""
        shape = len(self.rows), self.table.shape[1]
        return shape[::-1] if self.transposed else shape

    def pattern(self) -> sparse.csr_array:
        """Boolean CSR (m, n), rows sorted."""
        matrix = Dependence(self.rows, self.table).matrix()
        result = sparse.csr_array(matrix.T) if self.transposed else matrix
        result.sort_indices()
        return result


Leaves = Sequence[jax.ShapeDtypeStruct]
Function = Callable[..., Sequence[Any]]


def tangent_program(f: Function, x: Leaves, rest: Any = ()) -> ClosedJaxpr | Unavailable:
    """The program v ↦ ∂f/∂x · v with inputs (x, rest, v); f maps leaves to leaves."""

    def program(x: Any, rest: Any, v: Any) -> Any:
        return jax.jvp(lambda *leaves: tuple(f(leaves, rest)), tuple(x), tuple(v))[1]

    found = _traced(program, (tuple(x), rest, tuple(x)), "forward")
    if isinstance(found, ClosedJaxpr) and _contains(found.jaxpr, "custom_lin"):
        return Unavailable("forward mode stops at a custom_vjp, which has no forward rule")
    return found


def cotangent_program(
    f: Function, x: Leaves, y: Leaves, rest: Any = ()
) -> ClosedJaxpr | Unavailable:
    """The program u ↦ uᵀ ∂f/∂x with inputs (x, rest, u)."""

    def program(x: Any, rest: Any, u: Any) -> Any:
        return jax.vjp(lambda *leaves: tuple(f(leaves, rest)), *x)[1](tuple(u))

    return _traced(program, (tuple(x), rest, tuple(y)), "reverse")


def _traced(program: Callable[..., Any], arguments: Any, mode: str) -> ClosedJaxpr | Unavailable:
    try:
        return jax.make_jaxpr(program)(*arguments)
    except (TypeError, ValueError, NotImplementedError) as error:
        return Unavailable(f"{mode} mode does not exist here: {_first_sentence(error)}")


def _first_sentence(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].partition(". ")[0][:200].rstrip(".")


def _contains(jaxpr: Jaxpr, name: str) -> bool:
    return any(
        eqn.primitive.name == name
        or any(_contains(inner, name) for inner in control.programs(eqn.params.values()))
        for eqn in jaxpr.eqns
    )


def detect(
    tangent: ClosedJaxpr | Unavailable,
    cotangent: Callable[[], ClosedJaxpr | Unavailable],
    x: Leaves,
    y: Leaves,
) -> Detected:
    """The pattern of ∂y/∂x, from whichever derivative program exists.

    >>> import jax, jax.numpy as jnp
    >>> x = [jax.ShapeDtypeStruct((4,), jnp.float32)]
    >>> y = [jax.ShapeDtypeStruct((3,), jnp.float32)]
    >>> program = tangent_program(lambda x, rest: [x[0][1:] * x[0][:-1]], x)
    >>> detect(program, lambda: program, x, y).pattern().toarray().astype(int).tolist()
    [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    """
    if isinstance(tangent, ClosedJaxpr):
        return _propagate(tangent, x, transposed=False)
    program = cotangent()
    if isinstance(program, ClosedJaxpr):
        return _propagate(program, y, transposed=True)
    raise InputError(
        f"{tangent.reason}; {program.reason}",
        "a function that JAX can differentiate in at least one mode",
        "Rewrite the loop as a scan, or give the custom rule its other direction",
    )


def _propagate(program: ClosedJaxpr, seeded: Leaves, *, transposed: bool) -> Detected:
    inputs = seeds([leaf.shape for leaf in seeded])
    n = sum(each.ids.size for each in inputs)
    if _uses_references(program.jaxpr):
        return _everything(program, n, transposed=transposed)
    context = Context(n)
    points = [None] * (len(program.jaxpr.invars) - len(inputs))
    outs = context.run(program, [*points, *inputs])
    parts = [
        out if isinstance(out, Dependence) else nothing(tuple(var.aval.shape), n)
        for out, var in zip(outs, program.jaxpr.outvars, strict=True)
    ]
    whole = control.common([part.moved(part.ids.ravel()) for part in parts])
    rows = np.concatenate([part.ids for part in whole])
    return Detected(rows, whole[0].table, transposed, tuple(context.notes.values()))


def _uses_references(jaxpr: Jaxpr) -> bool:
    """Whether some step reads or writes mutable memory, which a walk over values cannot follow."""
    return any(
        any(hasattr(var.aval, "inner_aval") for var in [*eqn.invars, *eqn.outvars])
        or any(_uses_references(inner) for inner in control.programs(eqn.params.values()))
        for eqn in jaxpr.eqns
    )


def _everything(program: ClosedJaxpr, n: int, *, transposed: bool) -> Detected:
    size = sum(int(np.prod(var.aval.shape, dtype=int)) for var in program.jaxpr.outvars)
    table = sparse.csr_array(np.concatenate([np.zeros((1, n), bool), np.ones((1, n), bool)]))
    note = "the program reads and writes mutable references; its Jacobian is taken to be dense"
    return Detected(np.ones(size, np.int32), table, transposed, (note,))
