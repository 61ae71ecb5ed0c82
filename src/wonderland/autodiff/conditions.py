"""What makes a point a solution: equations that hold there, F(x, θ) = 0.

    root          F(x, θ) = 0
    fixed point   T(x, θ) − x = 0
    argmin        ∇ₓ f(x, θ) = 0
    constrained   the Karush–Kuhn–Tucker equations below

`implicit` differentiates any of them; each also is its own certificate, `condition(x, *args)` ≈ 0.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from wonderland.autodiff.arguments import describe
from wonderland.autodiff.linear_solve import Minres
from wonderland.autodiff.modes import gradient
from wonderland.core.errors import InputError

__all__ = ["KKT", "Argmin", "Condition", "FixedPoint", "Root"]


class Condition(eqx.Module):
    """Equations F(z, θ) = 0 in as many unknowns; z is the solution x with its multipliers."""

    symmetric: eqx.AbstractClassVar[bool]  # whether ∂F/∂z is a symmetric matrix

    @abstractmethod
    def __call__(self, z: Any, *args: Any, **kwargs: Any) -> Any:
        """F(z, θ), with the structure of z."""

    def complete(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The unknowns z that go with what the solver returned: x itself, unless overridden."""
        return x

    def answer(self, z: Any) -> Any:
        """What the solver returned, read off z."""
        return z


class Root(Condition):
    """F(x, θ) = 0.

    >>> float(Root(lambda x, a: x**2 - a)(3.0, 9.0))
    0.0
    """

    F: Callable[..., Any]
    symmetric: ClassVar[bool] = False

    def __call__(self, z: Any, *args: Any, **kwargs: Any) -> Any:
        """F(x, θ)."""
        return self.F(z, *args, **kwargs)


class FixedPoint(Condition):
    """x = T(x, θ), written T(x, θ) − x = 0.

    >>> float(FixedPoint(lambda x, a: (x + a / x) / 2)(3.0, 9.0))
    0.0
    """

    T: Callable[..., Any]
    symmetric: ClassVar[bool] = False

    def __call__(self, z: Any, *args: Any, **kwargs: Any) -> Any:
        """T(x, θ) − x."""
        return jax.tree.map(jnp.subtract, self.T(z, *args, **kwargs), z)


class Argmin(Condition):
    """x ∈ argmin f(·, θ) (or any other stationary point): ∇ₓ f(x, θ) = 0.

    >>> float(Argmin(lambda x, a: (x - a) ** 2)(3.0, 3.0))
    0.0
    """

    f: Callable[..., Any]
    symmetric: ClassVar[bool] = True

    def __call__(self, z: Any, *args: Any, **kwargs: Any) -> Any:
        """∇ₓ f(x, θ)."""
        return gradient(lambda x: self.f(x, *args, **kwargs), z)


class KKT(Condition):
    """min f(x, θ) subject to h(x, θ) = 0, g(x, θ) ≤ 0 and l ≤ x ≤ u.

    With L = f + νᵀh + λᵀg the equations in z = (x, ν, λ) are

        x − clip(x − ∇ₓL, l, u) = 0        (∇ₓL = 0 where there are no bounds)
        h(x, θ) = 0
        min(λ, −g(x, θ)) = 0               (λ ≥ 0, g ≤ 0, λᵀg = 0 in one equation)

    They select the active set by themselves; where a constraint is active with multiplier zero the
    solution has a kink in θ, and no derivative.

    Args:
        f: The objective f(x, *args).
        equality: h(x, *args), any pytree of arrays.
        inequality: g(x, *args) ≤ 0, any pytree of arrays.
        lower: l: a number, an array or pytree like x, or a function of `*args` that returns one.
        upper: u, likewise.
        duals: Whether the solver returns (x, ν, λ), with None for a kind of constraint that is
            absent. Otherwise it returns x and the multipliers are found by least squares from
            ∇ₓL = 0 on the coordinates away from their bounds.
        slack: How far from zero −g may be for the constraint to count as active in that search,
            and x from its bounds; None takes ε^⅓ of the working precision.

    Reference: A. Fiacco, Introduction to Sensitivity and Stability Analysis, 1983, theorem 2.1.

    >>> import jax.numpy as jnp
    >>> simplex = KKT(lambda x, c: ((x - c) ** 2).sum(), equality=lambda x, c: x.sum() - 1, lower=0)
    >>> x, c = jnp.array([0.75, 0.25, 0.0]), jnp.array([1.0, 0.5, -3.0])
    >>> z = simplex.complete(x, c)
    >>> float(z[1])
    0.5
    >>> bool(jnp.allclose(simplex(z, c)[0], 0.0, atol=1e-6))
    True
    """

    f: Callable[..., Any]
    equality: Callable[..., Any] | None = None
    inequality: Callable[..., Any] | None = None
    lower: Any = None
    upper: Any = None
    duals: bool = eqx.field(static=True, default=False)
    slack: float | None = None
    symmetric: ClassVar[bool] = False

    def __call__(self, z: Any, *args: Any, **kwargs: Any) -> Any:
        """The three residuals at (x, ν, λ)."""
        x, nu, lam = z
        slope = self._slope(x, nu, lam, args, kwargs)
        lower, upper = self._bounds(x, args, kwargs)
        still = jax.tree.map(_projected_step, x, slope, lower, upper)
        feasible = None if self.equality is None else self.equality(x, *args, **kwargs)
        complementary = None
        if self.inequality is not None:
            room = self.inequality(x, *args, **kwargs)
            complementary = jax.tree.map(lambda m, g: jnp.minimum(m, -g), lam, room)
        return still, feasible, complementary

    def complete(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """(x, ν, λ), the multipliers as the solver gave them or by least squares."""
        if self.duals:
            return self._checked(x)
        values = self._constraints(x, args, kwargs)
        flat, restore = ravel_pytree(values)
        if flat.size == 0:
            return x, *values
        return x, *restore(self._multipliers(x, values, args, kwargs))

    def answer(self, z: Any) -> Any:
        """x, or (x, ν, λ) where the solver returns the multipliers too."""
        return z if self.duals else z[0]

    def _checked(self, z: Any) -> Any:
        if isinstance(z, tuple) and len(z) == 3:
            return z
        raise InputError(
            f"the solver returned {describe(z)}",
            "(x, ν, λ), because the condition was made with duals=True",
            "Return None for multipliers that do not exist, or leave duals out",
        )

    def _constraints(self, x: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        both = (self.equality, self.inequality)
        h, g = (None if c is None else c(x, *args, **kwargs) for c in both)
        return h, g

    def _slope(self, x: Any, nu: Any, lam: Any, args: Any, kwargs: Any) -> Any:
        """∇ₓ L(x, ν, λ)."""

        def lagrangian(at: Any) -> jax.Array:
            h, g = self._constraints(at, args, kwargs)
            return self.f(at, *args, **kwargs) + _inner(nu, h) + _inner(lam, g)

        return gradient(lagrangian, x)

    def _bounds(self, x: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        return (
            _bound(self.lower, x, -jnp.inf, "lower", args, kwargs),
            _bound(self.upper, x, jnp.inf, "upper", args, kwargs),
        )

    def _multipliers(self, x: Any, values: Any, args: Any, kwargs: Any) -> jax.Array:
        """The argmin over m = (ν, λ) of Σ over free j of (∇f + Jᵀ S m)_j², S the active rows."""
        flat_x, _ = ravel_pytree(x)
        tolerance = jnp.finfo(flat_x.dtype).eps ** (1 / 3) if self.slack is None else self.slack
        free = ravel_pytree(self._free(x, tolerance, args, kwargs))[0]
        h, g = values
        ones = jax.tree.map(jnp.ones_like, h)
        active = jax.tree.map(lambda v: (v >= -tolerance).astype(v.dtype), g)
        chosen, restore = ravel_pytree((ones, active))
        steepest = free * ravel_pytree(gradient(lambda at: self.f(at, *args, **kwargs), x))[0]
        pull = jax.vjp(lambda at: self._constraints(at, args, kwargs), x)[1]

        def row(m: jax.Array) -> jax.Array:
            return free * ravel_pytree(pull(restore(chosen * m))[0])[0]

        return _least_squares(row, -steepest, chosen)

    def _free(self, x: Any, tolerance: Any, args: Any, kwargs: Any) -> Any:
        """1 where a coordinate is away from its bounds, 0 where it sits on one."""
        lower, upper = self._bounds(x, args, kwargs)
        return jax.tree.map(
            lambda v, l, u: ((v - l > tolerance) & (u - v > tolerance)).astype(v.dtype),  # noqa: E741
            *(x, lower, upper),
        )


def _projected_step(x: jax.Array, slope: jax.Array, lower: jax.Array, upper: jax.Array) -> Any:
    """The step x − clip(x − slope, l, u), written without cancellation where no bound is met."""
    to = x - slope
    return jnp.where(to < lower, x - lower, jnp.where(to > upper, x - upper, slope))


def _inner(m: Any, values: Any) -> Any:
    products = jax.tree.map(lambda a, b: jnp.sum(a * b), m, values)
    return sum(jax.tree.leaves(products), start=0.0)


def _bound(bound: Any, x: Any, absent: float, name: str, args: Any, kwargs: Any) -> Any:
    """One bound, brought to the structure and shapes of x."""
    value = bound(*args, **kwargs) if callable(bound) else bound
    value = absent if value is None else value
    if isinstance(value, int | float) or (hasattr(value, "shape") and hasattr(value, "dtype")):
        value = jax.tree.map(lambda _: value, x)
    try:
        return jax.tree.map(
            lambda b, at: jnp.broadcast_to(jnp.asarray(b, at.dtype), at.shape), value, x
        )
    except (ValueError, TypeError) as error:
        raise InputError(
            f"the {name} bound is {describe(value)}, x is {describe(x)}",
            "a number, or an array or pytree like x",
            "Use ±inf for coordinates without a bound",
        ) from error


def _least_squares(row: Callable[[jax.Array], jax.Array], b: jax.Array, like: jax.Array) -> Any:
    """The shortest m with ‖Rᵀm − b‖ least: by SVD for few multipliers, by products for many."""
    if like.size <= _FEW:
        R = jax.vmap(row)(jnp.eye(like.size, dtype=b.dtype))
        return jnp.linalg.lstsq(R.T, b)[0]
    transposed = jax.linear_transpose(row, like)
    return Minres().solve(lambda m: transposed(row(m))[0], transposed(b)[0])


_FEW = 512
