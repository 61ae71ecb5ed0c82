"""The derivative of a solution, by the implicit function theorem, whatever found the solution.

Where F(x*(θ), θ) = 0 with A = ∂F/∂x invertible at the solution,

    forward   dx* = −A⁻¹ (∂F/∂θ) dθ            reverse   θ̄ = −(∂F/∂θ)ᵀ A⁻ᵀ x̄ ,

both by products with A alone. The solver is never differentiated: it may loop, branch, stop early,
be a `while_loop`, or a host program such as one of SciPy's (outside of `jit`). Both sides may
close over arrays; these are differentiated as if they had been passed.

References: J. Dieudonné, Foundations of Modern Analysis, 1960, 10.2; M. Blondel et al., Efficient
and Modular Implicit Differentiation, NeurIPS 2022.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.extend.core as jex
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from wonderland.autodiff.arguments import can_move, describe, moving
from wonderland.autodiff.conditions import Condition, Root
from wonderland.autodiff.linear_solve import LinearSolver, solve_linear
from wonderland.core.errors import InputError

__all__ = ["ImplicitFunction", "implicit"]


class ImplicitFunction(eqx.Module):
    """θ ↦ x*(θ): called like its solver, differentiated through its condition.

    Attributes:
        solver: solver(*args) → x*.
        condition: F, zero at the solution.
        linear_solver: How systems with ∂F/∂x are solved.
        aux: Whether the solver returns (x*, aux); aux carries no derivative.
    """

    solver: Callable[..., Any]
    condition: Condition
    linear_solver: LinearSolver | str | None = None
    aux: bool = eqx.field(static=True, default=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """x*(θ) as the solver finds it, with the derivative of the exact solution."""
        x, aux = self._solve(args, kwargs)
        z = self._complete(x, args, kwargs)
        answer = self.condition.answer(self._attach(z, args, kwargs))
        return (answer, aux) if self.aux else answer

    def residual(self, *args: Any, **kwargs: Any) -> jax.Array:
        """The largest |F(x*, θ)|: how well the solver's answer meets its condition."""
        z = self._complete(self._solve(args, kwargs)[0], args, kwargs)
        parts = jax.tree.leaves(self.condition(z, *args, **kwargs))
        return jnp.max(jnp.stack([jnp.max(jnp.abs(part), initial=0) for part in parts]))

    def _solve(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        found = _without_derivative(lambda a, k: self.solver(*a, **k), args, kwargs)
        if not self.aux:
            return found, None
        if not (isinstance(found, tuple) and len(found) == 2):
            raise InputError(
                f"the solver returned {describe(found)}",
                "a pair (x, aux), because of aux=True",
                "Return two things, or leave aux out",
            )
        return found

    def _complete(self, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        _all_real(x)
        x = jax.tree.map(jnp.asarray, x)
        return _without_derivative(
            lambda z, a, k: self.condition.complete(z, *a, **k), x, args, kwargs
        )

    def _attach(self, z: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        moves, stays = _moving_or_nothing((args, kwargs))

        def equations(at: Any, theta: Any) -> Any:
            a, k = eqx.combine(theta, stays)
            value = self.condition(at, *a, **k)
            _same_shapes(value, at)
            return value

        pure, operands = _hoisted(equations, z, moves)
        return _attached(pure, self.linear_solver, symmetric=self.condition.symmetric)(z, operands)


def implicit(
    solver: Callable[..., Any],
    optimality: Condition | Callable[..., Any],
    *,
    linear_solver: LinearSolver | str | None = None,
    aux: bool = False,
) -> ImplicitFunction:
    """Give a solver the derivative of the solution it finds.

        F(x*(θ), θ) = 0   ⇒   ∂x*/∂θ = −(∂F/∂x)⁻¹ ∂F/∂θ

    Args:
        solver: solver(*args) → x*, any pytree of real arrays. Anything that runs: under `jit` and
            `vmap` it must be JAX code (or `jax.pure_callback`), outside any program will do.
        optimality: The equations x* satisfies: a function F(x, *args) that is zero there, or one
            of `Argmin(f)`, `FixedPoint(T)`, `KKT(f, …)` for constrained minima.
        linear_solver: "dense", "minres", "gmres" or a `LinearSolver`; None chooses by size.
        aux: Whether the solver returns (x*, anything else).

    Returns:
        A function of the same arguments, with forward and reverse derivatives of any order in all
        its floating-point arguments (positional, keyword, closed over), under `jit` and `vmap`.
        Where ∂F/∂x is singular there is no derivative, and it is NaN.

    >>> import jax
    >>> import jax.numpy as jnp
    >>> def newton(a):
    ...     return jax.lax.fori_loop(0, 30, lambda _, x: (x + a / x) / 2, jnp.ones_like(a))
    >>> root = implicit(newton, lambda x, a: x**2 - a)
    >>> round(float(jax.grad(root)(4.0)), 4)  # 1 / (2√a)
    0.25
    """
    condition = optimality if isinstance(optimality, Condition) else Root(optimality)
    return ImplicitFunction(solver, condition, linear_solver, aux)


def _attached(
    F: Callable[[Any, list[Any]], Any],
    linear_solver: LinearSolver | str | None,
    *,
    symmetric: bool,
) -> Callable[[Any, list[Any]], Any]:
    """(z, operands) ↦ z, with the derivative in the operands that F(z, operands) = 0 gives it."""

    @jax.custom_jvp
    def attached(z: Any, operands: list[Any]) -> Any:
        return z

    def rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
        z, operands = primals
        z = attached(z, operands)  # so that A and ∂F/∂θ move with θ in second derivatives
        live = [not isinstance(t, SymbolicZero) for t in tangents[1]]
        if not any(live):
            return z, jax.tree.map(jnp.zeros_like, z)
        dF = _along(F, z, operands, tangents[1], live)
        A = jax.linearize(lambda at: F(at, operands), z)[1]
        minus = jax.tree.map(jnp.negative, dF)
        return z, solve_linear(A, minus, solver=linear_solver, symmetric=symmetric)

    attached.defjvp(rule, symbolic_zeros=True)
    return attached


def _along(
    F: Callable[[Any, list[Any]], Any],
    z: Any,
    operands: list[Any],
    tangents: list[Any],
    live: list[bool],
) -> Any:
    """(∂F/∂θ) dθ, pushing forward only the operands that have a direction."""

    def moved(*moves: Any) -> Any:
        rest = iter(moves)
        return F(z, [next(rest) if on else at for at, on in zip(operands, live, strict=True)])

    at = [operand for operand, on in zip(operands, live, strict=True) if on]
    to = [tangent for tangent, on in zip(tangents, live, strict=True) if on]
    return jax.jvp(moved, at, to)[1]


def _hoisted(
    F: Callable[[Any, Any], Any], z: Any, theta: Any
) -> tuple[Callable[[Any, list[Any]], Any], list[Any]]:
    """F with everything it closes over turned into operands: (F', [θ leaves…, closed-over…])."""
    closed, shape = jax.make_jaxpr(F, return_shape=True)(z, theta)
    out = jax.tree.structure(shape)
    count = len(jax.tree.leaves(theta))

    def pure(at: Any, operands: list[Any]) -> Any:
        whole = jex.ClosedJaxpr(closed.jaxpr, operands[count:])
        flat = jex.jaxpr_as_fun(whole)(*jax.tree.leaves(at), *operands[:count])
        return jax.tree.unflatten(out, flat)

    return pure, [*jax.tree.leaves(theta), *closed.consts]


def _without_derivative(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), cut off from differentiation in its arguments and in what it closes over.

    A solver that cannot be traced is a host program: it is called as it is, on concrete values.
    """
    cut = jax.tree.map(_cut, args)
    moves, stays = eqx.partition(cut, eqx.is_array)
    static: list[Any] = []

    def arrays_only(m: Any) -> Any:
        out, rest = eqx.partition(f(*eqx.combine(m, stays)), eqx.is_array_like)
        static[:] = [rest]
        return out

    try:
        closed, shape = jax.make_jaxpr(arrays_only, return_shape=True)(moves)
    except _HOST_ERRORS:
        return jax.tree.map(_cut, f(*cut))
    whole = jex.ClosedJaxpr(closed.jaxpr, [_cut(const) for const in closed.consts])
    flat = jex.jaxpr_as_fun(whole)(*jax.tree.leaves(moves))
    found = jax.tree.unflatten(jax.tree.structure(shape), [_cut(part) for part in flat])
    return eqx.combine(found, static[0])


_HOST_ERRORS = (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError)


def _cut(leaf: Any) -> Any:
    if not isinstance(leaf, float | jax.Array) or not jnp.issubdtype(
        jnp.result_type(leaf), jnp.inexact
    ):
        return leaf
    # A tracer of a Python number gives the bare number back: solvers are promised arrays.
    return jnp.asarray(jax.lax.stop_gradient(jnp.asarray(leaf)))


def _moving_or_nothing(data: Any) -> tuple[Any, Any]:
    if any(map(can_move, jax.tree.leaves(data))):
        return moving(data)
    return jax.tree.map(lambda _: None, data), data


def _all_real(x: Any) -> None:
    leaves = jax.tree.leaves(x)
    if leaves and all(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in leaves):
        return
    raise InputError(
        f"the solver returned {describe(x)}",
        "a solution of real floating-point arrays",
        "Return counters and flags beside it, as (x, aux) with aux=True",
    )


def _same_shapes(value: Any, z: Any) -> None:
    def shapes(tree: Any) -> list[tuple[int, ...]]:
        return [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]

    if shapes(value) == shapes(z):
        return
    raise InputError(
        f"the condition returned {describe(value)} for unknowns {describe(z)}",
        "as many equations as unknowns, with the same structure",
        "For an argmin pass Argmin(f), for constraints KKT(f, …)",
    )
