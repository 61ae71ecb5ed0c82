"""Ridge and least squares as one differentiable XLA program.

    w(α, X, y, ω) = argmin Σ ω_i ‖y_i − wᵀx_i − b‖² + α‖w‖² ,

by Cholesky of the scaled normal equations, in the primal (d × d) or the dual (n × n), whichever is
smaller. JAX differentiates the solve exactly: its derivative is that of the optimum itself.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from wonderland.core.arrays import product
from wonderland.core.status import Status
from wonderland.solve.moments import traced_moments

__all__ = ["TracedFit", "solve_traced"]


class TracedFit(NamedTuple):
    """What the program returns: w (d, t), b (t,), a status, and its measurements."""

    coef: jax.Array
    intercept: jax.Array
    status: jax.Array
    condition: jax.Array
    gradient: jax.Array


def solve_traced(
    X: jax.Array,
    y: jax.Array,
    alpha: jax.Array,
    weight: jax.Array | None = None,
    *,
    fit_intercept: bool = True,
) -> TracedFit:
    """Solve for X (n, d), y (n, t), alpha () or (t,), ω (n,)."""
    alphas = jnp.broadcast_to(alpha, (y.shape[1],))
    solve = _dual if X.shape[0] < X.shape[1] else _primal
    coef, condition, mean_x, mean_y = solve(X, y, alphas, weight, fit_intercept=fit_intercept)
    intercept = mean_y - product(mean_x, coef)
    gradient = _gradient(X, y, alphas, weight, coef, intercept)
    # An eigenvalue at rounding level, 16 min(n, d)·ε of the largest, may be zero: a triangle can
    # still come out finite, but nothing in it can be trusted.
    floor = 16 * min(X.shape) * jnp.finfo(X.dtype).eps
    sound = jnp.isfinite(coef).all() & (condition**2 * floor < 1.0)
    status = jnp.where(sound, int(Status.SOLVED), int(Status.SINGULAR))
    return TracedFit(coef, intercept, status, condition, gradient)


def _primal(
    X: jax.Array, y: jax.Array, alphas: jax.Array, weight: jax.Array | None, *, fit_intercept: bool
) -> tuple[jax.Array, ...]:
    moments = traced_moments(X, y, weight, fit_intercept=fit_intercept)
    coef, condition = _solve_each(moments.gram, moments.cross, alphas)
    return coef, condition, moments.mean_x, moments.mean_y


def _dual(
    X: jax.Array, y: jax.Array, alphas: jax.Array, weight: jax.Array | None, *, fit_intercept: bool
) -> tuple[jax.Array, ...]:
    omega = jnp.ones(X.shape[0], X.dtype) if weight is None else weight
    share = (1.0 if fit_intercept else 0.0) * omega / omega.sum()
    mean_x, mean_y = product(share, X), product(share, y)
    # √ω would make the derivative at ω = 0 infinite; (K + αΩ⁻¹)⁻¹ = Ω^½(Ω^½KΩ^½ + α)⁻¹Ω^½ keeps
    # one root on each side, and the form ΩK + αI needs none at all.
    centred_x, centred_y = X - mean_x[None, :], y - mean_y[None, :]
    K = omega[:, None] * product(centred_x, centred_x.T)
    right = omega[:, None] * centred_y
    eye = jnp.eye(len(X), dtype=X.dtype)
    each = jax.vmap(lambda a, b: jnp.linalg.solve(K + a * eye, b), (0, 1), 1)
    weighted = jnp.sqrt(jax.lax.stop_gradient(omega))[:, None] * jax.lax.stop_gradient(centred_x)
    least = jax.lax.stop_gradient(alphas.min())
    condition = jnp.sqrt((jnp.linalg.norm(weighted, ord=2) ** 2 + least) / least)
    return product(centred_x.T, each(alphas, right)), condition, mean_x, mean_y


def _solve_each(gram: jax.Array, cross: jax.Array, alphas: jax.Array) -> tuple[jax.Array, ...]:
    """(G + α_t I)⁻¹ h_t for each output, and the worst condition number."""
    eye = jnp.eye(gram.shape[0], dtype=gram.dtype)

    def one(alpha: jax.Array, right: jax.Array) -> tuple[jax.Array, jax.Array]:
        scaled = gram + alpha * eye
        D = jax.lax.stop_gradient(jax.lax.rsqrt(jnp.diag(scaled)))
        C = scaled * (D[None, :] * D[:, None])
        w = D * cho_solve(cho_factor(C), D * right)
        values = jnp.linalg.eigvalsh(jax.lax.stop_gradient(C))
        return w, jnp.sqrt(values[-1] / jnp.maximum(values[0], 0.0))

    coef, condition = jax.vmap(one, (0, 1), (1, 0))(alphas, cross)
    return coef, condition.max()


def _gradient(
    X: jax.Array,
    y: jax.Array,
    alphas: jax.Array,
    weight: jax.Array | None,
    coef: jax.Array,
    intercept: jax.Array,
) -> jax.Array:
    """Largest |xᵀΩr − αw| / (‖x‖‖y‖), as in the host solver; carries no derivative."""
    X, y, coef, intercept = jax.lax.stop_gradient((X, y, coef, intercept))
    omega = jnp.ones(X.shape[0], X.dtype) if weight is None else jax.lax.stop_gradient(weight)
    residual = omega[:, None] * (y - product(X, coef) - intercept[None, :])
    slack = jnp.abs(product(X.T, residual) - jax.lax.stop_gradient(alphas)[None, :] * coef)
    norms = jnp.sqrt(product(omega, X**2))[:, None] * jnp.sqrt(product(omega, y**2))[None, :]
    return jnp.max(slack / jnp.where(norms > 0, norms, 1.0))
