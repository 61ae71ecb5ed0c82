"""The two modes and what is made of them: J v, Jᵀ u, ∇f, H v, and the best linear approximation.

For f from x (any pytree, n numbers) to y (any pytree, m numbers), J = ∂y/∂x (m × n):

    forward   jvp   v ↦ J v     one run along with f, costs ≤ 2–3 runs of f, stores nothing
    reverse   vjp   u ↦ Jᵀ u    one run back through f, costs ≤ 3–4 runs, stores the intermediates

Every function takes `f(x, *args)` and differentiates in `x` alone; `args` are data. Leaves of `x`
that are not floating-point (integers, functions, `None`) are held constant. Everything here runs
under `jit`, `vmap` and further differentiation.

Reference: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapters 3–4.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from wonderland.autodiff.arguments import as_cotangent, as_tangent, moving, restricted, scalar
from wonderland.core.errors import InputError

__all__ = [
    "LinearMap",
    "directional_derivative",
    "gradient",
    "hvp",
    "jvp",
    "linearise",
    "value_and_gradient",
    "vjp",
]


def jvp(f: Callable[..., Any], x: Any, v: Any, *args: Any) -> tuple[Any, Any]:
    """Forward mode: the value and the derivative along one direction, (f(x), J v).

        J v = lim_{t→0} (f(x + t v) − f(x)) / t

    Args:
        f: Any JAX function f(x, *args).
        x: Where: any pytree.
        v: The direction: the structure and shapes of `x`.
        *args: Further arguments of `f`, held constant.

    >>> value, slope = jvp(lambda x: x**2, 3.0, 1.0)
    >>> float(value), float(slope)
    (9.0, 6.0)
    """
    moves, stays = moving(x)
    return jax.jvp(restricted(f, stays, args), (moves,), (as_tangent(v, moves),))


def vjp(f: Callable[..., Any], x: Any, *args: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Reverse mode: the value and the pullback u ↦ Jᵀ u, reusable for many u.

        (Jᵀ u)_j = Σ_i u_i ∂f_i/∂x_j

    Returns:
        f(x) and a function from weights of the outputs (structure of f(x)) to a pytree like `x`.

    >>> import jax.numpy as jnp
    >>> value, pull = vjp(lambda x: x**2, jnp.array([1.0, 3.0]))
    >>> pull(jnp.array([1.0, 1.0]))
    Array([2., 6.], dtype=float32)
    """
    moves, stays = moving(x)
    value, pull = jax.vjp(restricted(f, stays, args), moves)
    return value, lambda u: pull(as_cotangent(u, value))[0]


def gradient(f: Callable[..., Any], x: Any, *args: Any) -> Any:
    """The gradient of a scalar function by one reverse pass, ∇f(x)_j = ∂f/∂x_j, shaped like `x`.

    For complex leaves it is JAX's ∂f/∂Re − i ∂f/∂Im, the conjugate of the steepest ascent.

    >>> import jax.numpy as jnp
    >>> gradient(lambda w, X, y: ((X @ w - y) ** 2).sum(), jnp.zeros(2), jnp.eye(2), jnp.ones(2))
    Array([-2., -2.], dtype=float32)
    """
    return value_and_gradient(f, x, *args)[1]


def value_and_gradient(f: Callable[..., Any], x: Any, *args: Any) -> tuple[jax.Array, Any]:
    """The value and the gradient (f(x), ∇f(x)), the forward run shared.

    >>> value, slope = value_and_gradient(lambda x: x**3, 2.0)
    >>> float(value), float(slope)
    (8.0, 12.0)
    """
    moves, stays = moving(x)
    value, pull = jax.vjp(restricted(f, stays, args), moves)
    number = scalar(value, "a gradient")
    return number, pull(jax.tree.map(jnp.ones_like, value))[0]


def hvp(f: Callable[..., Any], x: Any, v: Any, *args: Any) -> Any:
    """The Hessian times a direction, forward over reverse, without ever forming H.

        H v = d/dt ∇f(x + t v) at t = 0,   about the cost of four runs of f

    Reference: B. Pearlmutter, Fast exact multiplication by the Hessian, Neural Computation 6, 1994.

    >>> import jax.numpy as jnp
    >>> hvp(lambda x: (x**3).sum(), jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
    Array([ 6., 12.], dtype=float32)
    """
    moves, stays = moving(x)
    g = restricted(f, stays, args)
    return jax.jvp(lambda at: gradient(g, at), (moves,), (as_tangent(v, moves),))[1]


def directional_derivative(
    f: Callable[..., Any], x: Any, v: Any, *args: Any, order: int = 1
) -> Any:
    """How fast f changes along v, to any order, by forward mode over a single number t.

        D_v^k f(x) = dᵏ/dtᵏ f(x + t v) at t = 0;   k = 1: J v,   k = 2: vᵀ H v

    `v` is taken as it is; divide it by its norm for the slope per unit length.

    >>> round(float(directional_derivative(lambda x: x**4, 1.0, 1.0, order=3)), 4)
    24.0
    """
    if order < 1:
        raise InputError(f"order is {order}", "an integer ≥ 1", "Call f itself for order 0")
    moves, stays = moving(x)
    g, along = restricted(f, stays, args), as_tangent(v, moves)
    kind = jnp.result_type(float)  # t moves in the working precision, each leaf in its own

    def line(t: jax.Array) -> Any:
        return g(jax.tree.map(lambda at, to: at + t.astype(at.dtype) * to, moves, along))

    slope: Callable[[jax.Array], Any] = line
    for _ in range(order):
        slope = _slope(slope)
    return slope(jnp.zeros((), kind))


def _slope(line: Callable[[jax.Array], Any]) -> Callable[[jax.Array], Any]:
    return lambda t: jax.jvp(line, (t,), (jnp.ones_like(t),))[1]


class LinearMap(eqx.Module):
    """A linear map known by what it does to a vector: v ↦ L v, with its transpose and its matrix.

    `linearise` makes one out of a function; it is a pytree, so it passes through `jit` and `vmap`.

    Attributes:
        at: The point x the map was taken at.
        value: f(x), so that `approximate` knows the constant term.
    """

    at: Any
    value: Any
    _apply: Callable[[Any], Any]
    _transposed: bool = eqx.field(static=True, default=False)

    def __call__(self, v: Any) -> Any:
        """L v; for the transpose, Lᵀ u."""
        if self._transposed:
            return self._pull(as_cotangent(v, self.value))
        return self._apply(as_tangent(v, self.at))

    def _pull(self, u: Any) -> Any:
        return jax.linear_transpose(self._apply, self.at)(u)[0]

    @property
    def T(self) -> "LinearMap":  # noqa: N802
        """The transpose Lᵀ: ⟨u, L v⟩ = ⟨Lᵀ u, v⟩; transposing twice gives L back."""
        return LinearMap(self.at, self.value, self._apply, not self._transposed)

    def transpose(self) -> "LinearMap":
        """The transpose Lᵀ, as a method."""
        return self.T

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n): how many numbers come out, how many go in."""
        sizes = _size(self.value), _size(self.at)
        return sizes[::-1] if self._transposed else sizes

    def approximate(self, x: Any) -> Any:
        """The best affine approximation at another point: f(x₀) + J (x − x₀)."""
        if self._transposed:
            raise InputError(
                "approximate was asked of a transposed map", "the map itself", "Use L.T.approximate"
            )
        step = jax.tree.map(jnp.subtract, as_tangent(x, self.at, "x"), self.at)
        return jax.tree.map(jnp.add, self.value, self._apply(step))

    def matrix(self) -> jax.Array:
        """The dense matrix (m, n), by min(m, n) products; leaves are stacked in tree order."""
        if self._transposed:
            return self.T.matrix().T
        m, n = self.shape
        if n <= m:
            return _rows(self._apply, self.at).T
        return _rows(self._pull, self.value)


def linearise(f: Callable[..., Any], x: Any, *args: Any) -> LinearMap:
    """The best linear approximation of f at x, evaluated once, applied as often as wanted.

        f(x + v) = f(x) + L v + o(‖v‖),   L = J(x)

    Returns:
        L: `L(v)` is J v, `L.T(u)` is Jᵀ u, `L.matrix()` is J, `L.value` is f(x),
        `L.approximate(z)` is f(x) + J (z − x).

    >>> import jax.numpy as jnp
    >>> L = linearise(lambda x: jnp.array([x[0] * x[1], x[0]]), jnp.array([2.0, 3.0]))
    >>> L.matrix()
    Array([[3., 2.],
           [1., 0.]], dtype=float32)
    >>> L.T(jnp.array([1.0, 1.0]))
    Array([4., 2.], dtype=float32)
    """
    moves, stays = moving(x)
    value, apply = jax.linearize(restricted(f, stays, args), moves)
    return LinearMap(moves, value, apply)


def _size(tree: Any) -> int:
    return sum(leaf.size for leaf in map(jnp.asarray, jax.tree.leaves(tree)))


def _rows(apply: Callable[[Any], Any], like: Any) -> jax.Array:
    """Stack L e_1, L e_2, … as rows, for the unit vectors e_i of the flattened `like`."""
    leaves, tree = jax.tree.flatten(like)
    sizes = [leaf.size for leaf in leaves]
    starts = [sum(sizes[:k]) for k in range(len(sizes))]

    def one(index: jax.Array) -> jax.Array:
        units = [
            (jnp.arange(leaf.size) == index - start).astype(leaf.dtype).reshape(leaf.shape)
            for leaf, start in zip(leaves, starts, strict=True)
        ]
        image = apply(jax.tree.unflatten(tree, units))
        return jnp.concatenate([jnp.ravel(part) for part in jax.tree.leaves(image)])

    return jax.vmap(one)(jnp.arange(sum(sizes)))
