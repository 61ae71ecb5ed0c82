"""Linear systems A x = b known by their products, solved so that JAX can differentiate the answer.

    x = A⁻¹ b,   dx = A⁻¹ (db − dA x),   b̄ = A⁻ᵀ x̄ ,  Ā = −b̄ xᵀ

so neither mode ever looks inside the solver. `x` and `b` are pytrees of equal structure. What is
returned satisfied its certificate, the normwise backward error

    ‖b − A x‖ ≤ ε^⅔ (‖A‖ ‖x‖ + ‖b‖),   ‖A‖ ‖x‖ ≤ ‖b‖ / (100 ε),

and is NaN where it did not (A is singular to working precision, or the steps ran out): a missing
answer, never a wrong one.

References: C. Paige and M. Saunders, SIAM J. Numer. Anal. 12, 1975 (MINRES); Y. Saad and M.
Schultz, SIAM J. Sci. Stat. Comput. 7, 1986 (GMRES); N. Higham, Accuracy and Stability, 2002, §7.1.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from wonderland.core.errors import InputError, nearest

__all__ = ["Dense", "Gmres", "LinearSolver", "Minres", "solve_linear"]

Product = Callable[[jax.Array], jax.Array]

_DENSE_BELOW = 512  # unknowns up to which n products and one LU beat any iteration
_CHUNK = 64  # products taken at once when the matrix is written out


class LinearSolver(eqx.Module):
    """A way to solve A x = b for flat b (n,), given v ↦ A v."""

    @abstractmethod
    def solve(self, product: Product, b: jax.Array) -> jax.Array:
        """The solution x (n,), NaN where it cannot be certified."""


class Dense(LinearSolver):
    """Write A out by n products, scale its rows, factorise, refine once. For small n."""

    def solve(self, product: Product, b: jax.Array) -> jax.Array:
        """LU with partial pivoting, O(n³); NaN when A is singular to working precision."""
        A = jax.lax.map(product, jnp.eye(b.size, dtype=b.dtype), batch_size=_CHUNK).T
        rows = jnp.abs(A).max(axis=1)
        rows = jnp.where(rows > 0, rows, 1)
        A, b = A / rows[:, None], b / rows
        factors = jax.scipy.linalg.lu_factor(A)
        x = jax.scipy.linalg.lu_solve(factors, b)
        x = x + jax.scipy.linalg.lu_solve(factors, b - A @ x)
        return _certified(x, b - A @ x, b, jnp.linalg.norm(A))


class Minres(LinearSolver):
    """Minimum residuals for symmetric A, definite or not: one product and O(n) memory a step.

    Attributes:
        steps: Most products in one run; restarted up to `restarts` times on the true residual.
        restarts: How often.
    """

    steps: int = 5000
    restarts: int = 4

    def solve(self, product: Product, b: jax.Array) -> jax.Array:
        """The x ∈ argmin over span{b, Ab, …} of ‖b − Ax‖; the shortest if A is singular."""
        return _refined(lambda r, size: _minres(product, r, self.steps, size), product, b, self)


class Gmres(LinearSolver):
    """Generalised minimum residuals for any A, restarted after `span` products.

    Where the restarts stagnate, MINRES gets the symmetric system [0 A; Aᵀ 0] [y; x] = [b; 0]:
    slower when A is kind, but its steps are bounded by the condition number alone.

    Attributes:
        span: Vectors kept (memory `span` · n).
        restarts: How often a new span is begun on the true residual.
    """

    span: int = 60
    restarts: int = 20

    def solve(self, product: Product, b: jax.Array) -> jax.Array:
        """The x ∈ argmin over span{r, Ar, …} of ‖b − Ax‖, span by span."""
        x = _refined(lambda r, _: _gmres(product, r, min(self.span, b.size)), product, b, self)
        failed = ~jnp.isfinite(x).all()
        return jax.lax.cond(failed, lambda: _augmented(product, b), lambda: x)


_NAMES: dict[str, LinearSolver] = {"dense": Dense(), "minres": Minres(), "gmres": Gmres()}


def solve_linear(
    product: Callable[[Any], Any],
    b: Any,
    *,
    solver: LinearSolver | str | None = None,
    symmetric: bool = False,
) -> Any:
    """Solve A x = b for the linear map v ↦ A v, differentiably in b and in whatever A depends on.

    Args:
        product: v ↦ A v, from pytrees like `b` to pytrees like `b`.
        b: The right-hand side, a pytree of n real numbers.
        solver: A `LinearSolver`, "dense", "minres" (symmetric A), "gmres", or None: dense up to
            512 unknowns, beyond that MINRES where A is symmetric and GMRES where not.
        symmetric: Whether A = Aᵀ is known.

    >>> import jax.numpy as jnp
    >>> solve_linear(lambda v: jnp.array([2 * v[0] + v[1], v[1]]), jnp.array([4.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    flat, restore = ravel_pytree(b)
    method = _method(solver, flat.size, symmetric=symmetric)

    def flat_product(v: jax.Array) -> jax.Array:
        return ravel_pytree(product(restore(v)))[0]

    x = jax.lax.custom_linear_solve(
        flat_product, flat, method.solve, transpose_solve=method.solve, symmetric=symmetric
    )
    return restore(x)


def _method(solver: LinearSolver | str | None, size: int, *, symmetric: bool) -> LinearSolver:
    if isinstance(solver, LinearSolver):
        return solver
    if solver is None:
        return Dense() if size <= _DENSE_BELOW else Minres() if symmetric else Gmres()
    if solver not in _NAMES:
        raise InputError(
            f"solver is {solver!r}", "a LinearSolver or its name", nearest(solver, _NAMES)
        )
    return _NAMES[solver]


def _certified(x: jax.Array, residual: jax.Array, b: jax.Array, size: jax.Array) -> jax.Array:
    eps = jnp.finfo(b.dtype).eps
    solved = _backward_error(x, residual, b, size) <= eps ** (2 / 3)
    determined = size * jnp.linalg.norm(x) * 100 * eps <= jnp.linalg.norm(b)
    return jnp.where(solved & determined, x, jnp.nan)


def _backward_error(x: jax.Array, residual: jax.Array, b: jax.Array, size: jax.Array) -> jax.Array:
    """‖r‖ / (‖A‖‖x‖ + ‖b‖), 0 for b = 0."""
    whole = size * jnp.linalg.norm(x) + jnp.linalg.norm(b)
    return jnp.linalg.norm(residual) / jnp.where(whole > 0, whole, 1)


class _State(NamedTuple):
    x: jax.Array
    residual: jax.Array
    size: jax.Array  # the largest ‖Av‖/‖v‖ seen: an estimate of ‖A‖ from below
    passes: jax.Array


def _refined(
    inner: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
    product: Product,
    b: jax.Array,
    method: Minres | Gmres,
) -> jax.Array:
    """Iterative refinement: solve for the correction of the true residual until nothing is left."""
    wanted = 20 * jnp.finfo(b.dtype).eps

    def unfinished(s: _State) -> jax.Array:
        error = _backward_error(s.x, s.residual, b, s.size)
        return (s.passes < method.restarts) & (error > wanted)

    def improve(s: _State) -> _State:
        step, size = inner(s.residual, s.size)
        x = s.x + step
        return _State(x, b - product(x), jnp.maximum(size, s.size), s.passes + 1)

    start = _State(jnp.zeros_like(b), b, jnp.zeros((), b.dtype), jnp.zeros((), jnp.int32))
    end = jax.lax.while_loop(unfinished, improve, start)
    return _certified(end.x, end.residual, b, end.size)


class _Lanczos(NamedTuple):
    """The three-term recurrence, the two last rotations (c, s), and two search directions."""

    step: jax.Array
    x: jax.Array
    v: jax.Array
    v_old: jax.Array
    beta: jax.Array
    w: jax.Array
    w_old: jax.Array
    c: jax.Array
    c_old: jax.Array
    s: jax.Array
    s_old: jax.Array
    rest: jax.Array
    size: jax.Array


def _minres(
    product: Product, b: jax.Array, steps: int, size: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """One run of MINRES from zero; returns x and the estimate of ‖A‖."""
    norm, eps = jnp.linalg.norm(b), jnp.finfo(b.dtype).eps
    zero, one, nought = jnp.zeros_like(b), jnp.ones((), b.dtype), jnp.zeros((), b.dtype)

    def unfinished(k: _Lanczos) -> jax.Array:
        enough = eps * (k.size * jnp.linalg.norm(k.x) + norm)
        return (k.step < steps) & (jnp.abs(k.rest) > enough) & (k.beta > 0)

    start = _Lanczos(
        jnp.zeros((), jnp.int32),
        zero, _over(b, norm), zero, norm, zero, zero, one, one, nought, nought, norm, size,
    )  # fmt: skip
    end = jax.lax.while_loop(unfinished, lambda k: _minres_step(product, k), start)
    return end.x, end.size


def _minres_step(product: Product, k: _Lanczos) -> _Lanczos:
    p = product(k.v)
    alpha = k.v @ p
    p = p - alpha * k.v - k.beta * k.v_old
    beta = jnp.linalg.norm(p)
    delta = k.c * alpha - k.c_old * k.s * k.beta
    diagonal = jnp.hypot(delta, beta)
    above = k.s * alpha + k.c_old * k.c * k.beta
    corner = k.s_old * k.beta
    c, s = _over(delta, diagonal), _over(beta, diagonal)
    w = _over(k.v - corner * k.w_old - above * k.w, diagonal)
    size = jnp.maximum(k.size, jnp.sqrt(alpha**2 + beta**2))
    # A remainder of rounding errors is no new direction: the Krylov space is exhausted.
    beta = jnp.where(beta > jnp.finfo(p.dtype).eps * size, beta, 0)
    return _Lanczos(
        k.step + 1, k.x + c * k.rest * w, _over(p, beta), k.v, beta, w, k.w,
        c, k.c, s, k.s, -s * k.rest, size,
    )  # fmt: skip


def _gmres(product: Product, b: jax.Array, span: int) -> tuple[jax.Array, jax.Array]:
    """One span of GMRES from zero: A V_k = V_{k+1} H, min ‖‖b‖e₁ − H y‖; returns x and ‖A‖."""
    norm, eps = jnp.linalg.norm(b), jnp.finfo(b.dtype).eps

    def arnoldi(k: int, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        V, H = carry
        p = product(V[k])
        size = jnp.linalg.norm(p)
        first = V @ p  # rows of V beyond k are still zero
        p = p - first @ V
        second = V @ p  # twice is enough (Kahan)
        p = p - second @ V
        rest = jnp.linalg.norm(p)
        rest = jnp.where(rest > 10 * eps * size, rest, 0)
        H = H.at[:, k].set(first + second).at[k + 1, k].set(rest)
        return V.at[k + 1].set(_over(p, rest)), H

    V = jnp.zeros((span + 1, b.size), b.dtype).at[0].set(_over(b, norm))
    H = jnp.zeros((span + 1, span), b.dtype)
    V, H = jax.lax.fori_loop(0, span, arnoldi, (V, H))
    right = jnp.zeros(span + 1, b.dtype).at[0].set(norm)
    y = jnp.linalg.lstsq(H, right)[0]
    return y @ V[:-1], jnp.linalg.norm(H, axis=0).max()


def _augmented(product: Product, b: jax.Array) -> jax.Array:
    """A x = b through the symmetric matrix [0 A; Aᵀ 0], whose eigenvalues are ± those of √(AᵀA)."""
    transposed = jax.linear_transpose(product, b)

    def symmetric(z: jax.Array) -> jax.Array:
        y, x = jnp.split(z, 2)
        return jnp.concatenate([product(x), transposed(y)[0]])

    return jnp.split(Minres().solve(symmetric, jnp.concatenate([b, jnp.zeros_like(b)])), 2)[1]


def _over(a: jax.Array, b: jax.Array) -> jax.Array:
    """The quotient a / b, and 0 where b is 0."""
    return jnp.where(b > 0, a / jnp.where(b > 0, b, 1), 0)
