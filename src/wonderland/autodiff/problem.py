"""A user's function as a function of flat leaves, with everything that is not differentiated apart.

x is split into the leaves that move, the arrays that do not, and the rest (numbers, names,
functions), which is part of the problem. A plan may be used for any values of the arrays.
"""

import pickle
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from wonderland.core.errors import InputError

from .arguments import describe, moving
from .sparsity import Unavailable, cotangent_program, tangent_program

__all__ = ["Problem", "split"]


def split(x: Any, args: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """(leaves that move, other arrays, what is fixed) of a point and its further arguments."""
    moves, stays = moving(x)
    varies, fixed = eqx.partition((stays, args), _varies)
    return moves, varies, fixed


def _varies(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, np.ndarray | np.generic | float | complex)


class Problem:
    """f with its shapes: what is needed to differentiate it at any point of the same shapes.

    Attributes:
        function: The user's f(x, *args); None in a plan unpickled without it.
        moves: Shapes of the leaves of x that move, in the structure of x.
        varies: Shapes of the other arrays, in the structure of (x, args).
        fixed: Everything else.
        outputs: Shapes of f(x), in its structure; None for leaves without a derivative.
        gradient: Whether the function differentiated is ∇f (for Hessians).
    """

    def __init__(
        self, f: Callable[..., Any], x: Any, args: tuple[Any, ...], *, gradient: bool
    ) -> None:
        moves, varies, self.fixed = split(x, args)
        self.function: Callable[..., Any] | None = f
        self.gradient = gradient
        self.moves, self.varies = _shapes(moves), _shapes(varies)
        if any(jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(self.moves)):
            raise _complex("x", self.moves)
        self._inner = jax.eval_shape(self._user, self.moves, self.varies)
        if gradient:
            _check_scalar(self._inner)
        self.outputs = self.moves if gradient else jax.tree.map(_differentiable, self._inner)
        if not self.leaves_out:
            raise InputError(
                f"f returns {describe(self._inner)}",
                "at least one floating-point output",
                "Integers and booleans have no derivative; convert them with .astype(float)",
            )
        if any(jnp.iscomplexobj(leaf) for leaf in self.leaves_out):
            raise _complex("f(x)", self.outputs)

    def _user(self, moves: Any, varies: Any) -> Any:
        if self.function is None:
            raise InputError(
                "this plan was unpickled without its function, which could not be pickled",
                "a plan bound to a function",
                "Call plan.bind(f), or plan a function defined at the top of a module",
            )
        stays, args = eqx.combine(varies, self.fixed)
        return self.function(eqx.combine(moves, stays), *args)

    @cached_property
    def leaves_in(self) -> list[jax.ShapeDtypeStruct]:
        """Shapes of the moving leaves, in order."""
        return jax.tree.leaves(self.moves)

    @cached_property
    def leaves_out(self) -> list[jax.ShapeDtypeStruct]:
        """Shapes of the output leaves that have a derivative, in order."""
        return jax.tree.leaves(self.outputs)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(m, n): numbers out by numbers in."""
        return _total(self.leaves_out), _total(self.leaves_in)

    @cached_property
    def shapes_in(self) -> list[tuple[int, ...]]:
        """Shapes of the arrays whose elements are the columns."""
        return [tuple(leaf.shape) for leaf in self.leaves_in]

    @cached_property
    def shapes_out(self) -> list[tuple[int, ...]]:
        """Shapes of the arrays whose elements are the rows."""
        return [tuple(leaf.shape) for leaf in self.leaves_out]

    def flat(self, leaves: Sequence[Any], varies: Any) -> list[Any]:
        """The function differentiated, from moving leaves to output leaves."""
        structure: Any = jax.tree.structure(self.moves)
        if self.gradient:
            moves = structure.unflatten(list(leaves))

            def scalar(moves: Any) -> Any:
                return jax.tree.leaves(self._user(moves, varies))[0]

            return jax.tree.leaves(jax.grad(scalar)(moves))
        outputs = self._user(structure.unflatten(list(leaves)), varies)
        kept = jax.tree.map(
            lambda like, out: None if like is None else out,
            self.outputs,
            outputs,
            is_leaf=lambda leaf: leaf is None,
        )
        return jax.tree.leaves(kept)

    def value_program(self) -> ClosedJaxpr:
        """The program of the function differentiated."""
        return jax.make_jaxpr(self.flat)(self.leaves_in, self.varies)

    def tangent(self) -> ClosedJaxpr | Unavailable:
        """The program of J s."""
        return tangent_program(self.flat, self.leaves_in, self.varies)

    def cotangent(self) -> ClosedJaxpr | Unavailable:
        """The program of uᵀJ."""
        return cotangent_program(self.flat, self.leaves_in, self.leaves_out, self.varies)

    def point(self, x: Any, args: tuple[Any, ...]) -> tuple[list[Any], Any]:
        """The moving leaves and other arrays of a new point, which must have the planned shapes."""
        if not args and isinstance(x, jax.Array) and self._bare:  # the common case, without ado
            (like,) = self.leaves_in
            if x.shape == like.shape and jnp.issubdtype(x.dtype, jnp.floating):
                return [x], self.varies
        moves, varies, fixed = split(x, args)
        if not self._matches(moves, varies, fixed):
            raise InputError(
                f"x and its arguments are {describe((x, *args))}",
                f"what was planned for: {describe((self.moves, self.varies))}",
                "Make a new plan for other shapes or other fixed arguments",
            )
        return jax.tree.leaves(moves), varies

    @cached_property
    def _bare(self) -> bool:
        """Whether the point is one array and nothing else."""
        alone = isinstance(self.moves, jax.ShapeDtypeStruct)
        return alone and not jax.tree.leaves((self.varies, self.fixed))

    def matches(self, x: Any, args: tuple[Any, ...]) -> bool:
        """Whether a plan for this problem serves the point x, args."""
        if self._bare and not args and isinstance(x, jax.Array):
            return x.shape == self.leaves_in[0].shape
        return self._matches(*split(x, args))

    def _matches(self, moves: Any, varies: Any, fixed: Any) -> bool:
        return (
            _signature(moves) == _signature(self.moves)
            and _signature(varies) == _signature(self.varies)
            and bool(eqx.tree_equal(fixed, self.fixed))
        )

    def block(self, matrix: Any) -> Any:
        """A dense (m, n) matrix as a tree of outputs of trees of inputs, as `jax.jacobian` does."""
        structure_in: Any = jax.tree.structure(self.moves)
        structure_out: Any = jax.tree.structure(self.outputs)
        rows, columns = _edges(self.shapes_out), _edges(self.shapes_in)
        blocks = []
        for (top, bottom), out in zip(rows, self.shapes_out, strict=True):
            line = [
                matrix[top:bottom, left:right].reshape(*out, *shape)
                for (left, right), shape in zip(columns, self.shapes_in, strict=True)
            ]
            blocks.append(structure_in.unflatten(line))
        return structure_out.unflatten(blocks)

    def __getstate__(self) -> dict[str, Any]:
        state = {key: value for key, value in self.__dict__.items() if key not in _CACHED}
        try:
            pickle.dumps(self.function)
        except (pickle.PicklingError, AttributeError, TypeError):
            state["function"] = None  # lambdas and local functions travel without their code
        return state


_CACHED = ("leaves_in", "leaves_out", "shape", "shapes_in", "shapes_out", "_bare")


def _shapes(tree: Any) -> Any:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)), tree)


def _signature(tree: Any) -> Any:
    return jax.tree.structure(tree), [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]


def _differentiable(out: Any) -> Any:
    return out if jnp.issubdtype(out.dtype, jnp.inexact) else None


def _total(leaves: Sequence[Any]) -> int:
    return sum(int(np.prod(leaf.shape, dtype=int)) for leaf in leaves)


def _edges(shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    ends = np.cumsum([0, *(int(np.prod(shape, dtype=int)) for shape in shapes)]).tolist()
    return list(pairwise(ends))


def _check_scalar(value: Any) -> None:
    leaves = jax.tree.leaves(value)
    real = len(leaves) == 1 and jnp.issubdtype(leaves[0].dtype, jnp.floating)
    if not real or leaves[0].shape != ():
        raise InputError(
            f"the Hessian was asked of a function that returns {describe(value)}",
            "a function returning one real floating-point number, shape ()",
            "Reduce it, for instance with .sum(), or ask for jacobian(f, x) instead",
        )


def _complex(name: str, value: Any) -> InputError:
    return InputError(
        f"{name} is complex: {describe(value)}",
        "real numbers, whose derivative is one matrix",
        "Split it into real and imaginary parts",
    )
