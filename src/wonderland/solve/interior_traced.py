"""Problems of intervals as one XLA program, differentiable in everything.

The augmented Lagrangian of `interior_lagrangian.py` with masks in place of selected rows, so that
shapes are fixed. The derivative is that of the optimum, not of the loop. Where losses are squared,
∇P(w, b; θ) = 0 is differentiated. Where they are not, let M be the rows strictly between their
bounds at the solution; while the sets do not change,

    dw − X_Mᵀdβ_M = dXᵀβ + X_Nᵀdβ_N,   Σdβ_M = −Σdβ_N,   X_M dw + db = d(end) − dX_M w,

N being the rows at a bound, β = ±c (dβ = ±dc). This linear system is solved by the method of
multipliers, which needs one (d + 1) × (d + 1) factorisation and forgives dependent rows of M.

References: Amos & Kolter (2017), OptNet; Blondel et al. (2022), implicit differentiation.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from wonderland.core.arrays import product

__all__ = ["Solved", "Stated", "solve_program", "solve_traced_intervals"]

NEWTON = 40  # steps per inner problem
OUTER = 60
SHARPEN = 5.0
REFINE = 6  # passes of the method of multipliers for the derivative
PROBES = 40


class Stated(NamedTuple):
    """X (n, d), low, high, strength (n,): what is differentiated."""

    X: jax.Array
    low: jax.Array
    high: jax.Array
    strength: jax.Array


class Solved(NamedTuple):
    """w (d,), b, β (n,)."""

    w: jax.Array
    b: jax.Array
    beta: jax.Array


class Inner(NamedTuple):
    """Centres and weights (n,) of one smoothed problem."""

    centre: jax.Array
    weight: jax.Array


def _free(stated: Stated, inner: Inner, z: jax.Array) -> jax.Array:
    """β before the box; an end at infinity never pulls."""
    low = jnp.where(jnp.isfinite(stated.low), stated.low, 0.0)
    high = jnp.where(jnp.isfinite(stated.high), stated.high, 0.0)
    up = jnp.where(jnp.isfinite(stated.low), inner.centre + (low - z) * inner.weight, 0.0)
    down = jnp.where(jnp.isfinite(stated.high), inner.centre + (high - z) * inner.weight, 0.0)
    return jnp.maximum(up, 0.0) + jnp.minimum(down, 0.0)


def _boxed(stated: Stated, free: jax.Array, *, squared: bool) -> tuple[jax.Array, jax.Array]:
    """β and the rows between their bounds, as zeros and ones."""
    beta = free if squared else jnp.clip(free, -stated.strength, stated.strength)
    return beta, jnp.where((free != 0) & (beta == free), 1.0, 0.0).astype(free.dtype)


def _system(
    X: jax.Array, D: jax.Array, right: jax.Array, right_b: jax.Array, *, intercept: bool
) -> tuple[jax.Array, jax.Array]:
    """[I + XᵀDX, XᵀD1; 1ᵀDX, 1ᵀD1] (dw, db) = (right, right_b)."""
    H = product(X.T, D[:, None] * X) + jnp.eye(X.shape[1], dtype=X.dtype)
    column = product(X.T, D)
    factor = cho_factor(H)
    # Two solves, not one with two right sides: the second carries no derivative of `right`.
    plain = cho_solve(factor, right)
    if not intercept:
        return plain, jnp.zeros_like(right_b)
    beside, total = cho_solve(factor, column), D.sum()
    schur = jnp.maximum(total - product(column, beside), 1e-13 * total)
    db = (right_b - product(column, plain)) / jnp.where(schur > 0, schur, 1.0)
    db = jnp.where(schur > 0, db, 0.0)
    return plain - db * beside, db


def _minimise(
    stated: Stated, inner: Inner, w: jax.Array, b: jax.Array, *, intercept: bool, squared: bool
) -> Solved:
    """Newton's method with a line search on one smoothed problem."""

    def slope(t: jax.Array, now: tuple[jax.Array, ...]) -> jax.Array:
        at, z, dw, dz = now
        beta, _ = _boxed(stated, _free(stated, inner, z + t * dz), squared=squared)
        return product(at + t * dw, dw) - product(beta, dz)

    def body(carry: Any) -> Any:
        w, b, _, k = carry
        z = product(stated.X, w) + b
        beta, between = _boxed(stated, _free(stated, inner, z), squared=squared)
        g = w - product(stated.X.T, beta)
        g_b = -beta.sum() if intercept else jnp.zeros((), w.dtype)
        dw, db = _system(stated.X, between * inner.weight, -g, -g_b, intercept=intercept)
        if intercept:  # where nothing curves along the intercept, it moves by the spread of z
            db = jnp.where(between.sum() > 0, db, -jnp.sign(g_b) * (1.0 + jnp.ptp(z)))
        now = (w, z, dw, product(stated.X, dw) + db)
        t = _search(lambda t: slope(t, now), w.dtype)
        moved = jnp.abs(t * now[3]).max() > 1e-15 * (1.0 + jnp.abs(z).max())
        return w + t * dw, b + t * db, moved, k + 1

    start = (w, b, jnp.ones((), bool), jnp.zeros((), int))
    w, b, _, _ = jax.lax.while_loop(lambda c: c[2] & (c[3] < NEWTON), body, start)
    z = product(stated.X, w) + b
    return Solved(w, b, _boxed(stated, _free(stated, inner, z), squared=squared)[0])


def _search(slope: Callable[[jax.Array], jax.Array], dtype: Any) -> jax.Array:
    """The root of an increasing slope; 1 where the full step is near it; 0 without descent."""
    first = slope(jnp.zeros((), dtype))
    one = jnp.ones((), dtype)
    aim = 0.1 * jnp.abs(first)

    def widen(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return 4.0 * carry[0], carry[1] + 1

    high, _ = jax.lax.while_loop(
        lambda c: (slope(c[0]) < -aim) & (c[1] < PROBES), widen, (one, jnp.zeros((), int))
    )

    def halve(carry: Any) -> Any:
        low, high, t, value, k = carry
        low, high = jnp.where(value < 0, t, low), jnp.where(value < 0, high, t)
        middle = 0.5 * (low + high)
        return low, high, middle, slope(middle), k + 1

    start = (jnp.zeros((), dtype), high, high, slope(high), jnp.zeros((), int))
    done = jax.lax.while_loop(lambda c: (jnp.abs(c[3]) > aim) & (c[4] < PROBES), halve, start)
    return jnp.where(first < 0, done[2], 0.0)


def _gap(stated: Stated, found: Solved, *, squared: bool) -> tuple[jax.Array, jax.Array]:
    """(P, D), each from its definition, at w, b, β."""
    z = product(stated.X, found.w) + found.b
    distance = jnp.maximum(jnp.maximum(stated.low - z, z - stated.high), 0.0)
    paid = stated.strength * (distance**2 if squared else distance)
    half = 0.5 * product(found.w, found.w)
    ends = jnp.where(found.beta > 0, stated.low, jnp.where(found.beta < 0, stated.high, 0.0))
    gained = ends * found.beta
    if squared:
        gained = gained - found.beta**2 / (4 * stated.strength)
    v = product(found.beta, stated.X)
    return half + paid.sum(), gained.sum() - 0.5 * product(v, v) - found.b * found.beta.sum()


def _solve(stated: Stated, tol: jax.Array, *, intercept: bool, squared: bool) -> Solved:
    n, d = stated.X.shape
    dtype = stated.X.dtype
    zero = Solved(jnp.zeros(d, dtype), jnp.zeros((), dtype), jnp.zeros(n, dtype))
    options = {"intercept": intercept, "squared": squared}
    if squared:
        inner = Inner(zero.beta, 2.0 * stated.strength)
        return _minimise(stated, inner, zero.w, zero.b, **options)
    start = jnp.maximum(jnp.maximum(stated.low, -stated.high), 0.0)
    width = jnp.maximum(start.mean(), 1e-3)

    def relative(found: Solved) -> jax.Array:
        primal, dual = _gap(stated, found, squared=False)
        return jnp.abs(primal - dual) / jnp.maximum(primal, jnp.finfo(dtype).tiny)

    def body(carry: Any) -> Any:
        found, weight, gap, best, least, k = carry
        found = _minimise(stated, Inner(found.beta, weight), found.w, found.b, **options)
        before, gap = gap, relative(found)
        weight = jnp.where(gap > 0.2 * before, SHARPEN, 1.0) * weight
        better = gap < least
        best = jax.tree.map(lambda a, b: jnp.where(better, a, b), found, best)
        return found, weight, gap, best, jnp.minimum(gap, least), k + 1

    far = jnp.full((), jnp.inf, dtype)
    first = (zero, stated.strength / width, far, zero, far, jnp.zeros((), int))
    done = jax.lax.while_loop(lambda c: (c[4] > tol) & (c[5] < OUTER), body, first)
    return done[3]


def _tangent(
    stated: Stated, moved: Stated, found: Solved, *, intercept: bool, squared: bool
) -> Solved:
    """(dw, db, dβ) for moved data; linear in `moved`, so that JAX can turn it around."""
    X, dX, beta, w = stated.X, moved.X, found.beta, found.w
    up, down = jnp.where(beta > 0, 1.0, 0.0), jnp.where(beta < 0, 1.0, 0.0)
    ends = jnp.where(beta > 0, moved.low, 0.0) + jnp.where(beta < 0, moved.high, 0.0)
    lost = ends - product(dX, w)  # how far the end moves from the prediction, w and b held
    pulled = product(dX.T, beta)
    if squared:
        D = 2.0 * stated.strength * (up + down)
        own = D * lost + jnp.where(beta != 0, beta / stated.strength, 0.0) * moved.strength
        right, right_b = pulled + product(X.T, own), own.sum()
        dw, db = _system(X, D, right, right_b, intercept=intercept)
        return Solved(dw, db, own - D * (product(X, dw) + db))
    full = jnp.abs(beta) >= stated.strength * (1.0 - 1e-9)
    between = jnp.where(full, 0.0, up + down)
    fixed = jnp.where(full, up - down, 0.0) * moved.strength
    scale = 1e6 / jnp.maximum(jnp.mean(product(X**2, jnp.ones_like(w))), 1e-300)
    D = between * scale
    right, right_b = pulled + product(X.T, fixed), fixed.sum()
    push = jnp.zeros_like(beta)
    for _ in range(REFINE):
        inside = push + D * lost
        total = right + product(X.T, inside)
        dw, db = _system(X, D, total, right_b + inside.sum(), intercept=intercept)
        push = inside - D * (product(X, dw) + db)
    return Solved(dw, db, push + fixed)


def solve_traced_intervals(
    stated: Stated, tol: jax.Array, *, intercept: bool, squared: bool
) -> tuple[Solved, jax.Array, jax.Array]:
    """(solution, P, D); the solution differentiable in everything stated.

    Args:
        stated: X, low, high, strength.
        tol: Relative gap at which the loop ends.
        intercept: Whether b is free.
        squared: Whether distances are squared.
    """
    options = {"intercept": intercept, "squared": squared}

    @jax.custom_jvp
    def solve(stated: Stated, tol: jax.Array) -> Solved:
        return _solve(stated, tol, **options)

    @solve.defjvp
    def _(primals: tuple[Stated, jax.Array], tangents: tuple[Stated, jax.Array]) -> Any:
        found = solve(*primals)
        return found, _tangent(primals[0], tangents[0], found, **options)

    found = solve(stated, tol)
    primal, dual = jax.lax.stop_gradient(
        _gap(jax.lax.stop_gradient(stated), jax.lax.stop_gradient(found), squared=squared)
    )
    return found, primal, dual


solve_program = jax.jit(solve_traced_intervals, static_argnames=("intercept", "squared"))
