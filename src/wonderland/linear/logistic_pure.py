"""Storey two of logistic regression: a pure function from data and C to a `Solution`.

On the host the solvers of `linear.logistic_fit`; for JAX arrays one XLA program, damped Newton with
Cholesky, in float64. Its derivative is that of the optimum itself: ∇F(θ*; X, ω, C) = 0 gives
dθ* = −(∇²F)⁻¹ ∂∇F, whatever path the iterations took.

    F(θ) = Σωℓ/Σω + ‖W‖²/(2CΣω) + ‖Σ_c θ_c‖²/(2k)

The last term is there for softmax, where one vector may be added to the parameters of every class;
it is zero at the optimum with the least norm, and changes no probability.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.autodiff.implicit import implicit
from wonderland.core.arrays import any_jax, double, in_float64, is_traced, product
from wonderland.core.errors import InputError
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.linear.logistic_solve import Wish, regress, state
from wonderland.linear.model import LinearModel

__all__ = ["fit_logistic"]

STEPS = 100
HALVINGS = 40


def fit_logistic(
    X: Any,
    y: Any,
    C: Any = 1.0,
    weight: Any = None,
    *,
    classes: int | None = None,
    fit_intercept: bool = True,
) -> Solution[LinearModel]:
    """Logistic regression as a pure function: jittable, differentiable in X, C and weights.

    Args:
        X: (n, d).
        y: Class numbers 0 … k − 1 (n,).
        C: Weight of the loss beside ½‖W‖², > 0; inf for no penalty.
        weight: ω (n,) ≥ 0.
        classes: k; needed where y is traced, else counted.
        fit_intercept: Whether b is free; it is never penalised.

    Returns:
        The model of the scores, W (d,) and b () for two classes, else (k, d) and (k,); how it
        ended; gradient_norm and iterations.

    >>> import jax, jax.numpy as jnp
    >>> X, y = jnp.array([[0.0], [1.0], [2.0], [3.0]]), jnp.array([0, 1, 0, 1])
    >>> def slope(C):
    ...     return fit_logistic(X, y, C).model.coef[0]
    >>> bool(slope(2.0) > slope(1.0)), bool(jax.grad(slope)(1.0) > 0)
    (True, True)
    """
    count = _count(y) if classes is None else classes
    if any_jax(X, y, C, weight):
        return _traced(X, y, C, weight, classes=count, fit_intercept=fit_intercept)
    return _host(X, y, C, weight, classes=count, fit_intercept=fit_intercept)


def _count(y: Any) -> int:
    if is_traced(y):
        raise InputError(
            "y is traced, so that its classes cannot be counted",
            "the number of classes",
            "Pass fit_logistic(…, classes=2)",
        )
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size == 0 or not np.all(labels == np.floor(labels)):
        raise InputError(
            f"y of shape {labels.shape} and type {labels.dtype}",
            "class numbers 0 … k − 1 (n,)",
            "Number the labels first: np.unique(y, return_inverse=True)[1]",
        )
    if labels.min() < 0 or labels.max() < 1:
        raise InputError(
            f"y holds {labels.min():g} … {labels.max():g}",
            "class numbers from 0 on, at least two classes",
            "Number the labels first: np.unique(y, return_inverse=True)[1]",
        )
    return int(labels.max()) + 1


def _host(
    X: Any, y: Any, C: Any, weight: Any, *, classes: int, fit_intercept: bool
) -> Solution[LinearModel]:
    table, codes = double(X), np.asarray(y).astype(int)
    omega = None if weight is None else double(weight)
    _check(table, codes, float(C), omega)
    problem = state(table, codes, classes, omega, float(C), fit_intercept=fit_intercept)
    report = regress(problem, float(C), Wish(tol=1e-9))
    coef, intercept = problem.split(report.end.theta)
    model = LinearModel(*((coef[0], intercept[0]) if classes == 2 else (coef, intercept)))
    evidence = {
        "gradient_norm": float(np.abs(report.end.gradient).max()),
        "iterations": report.end.iterations,
        "solver": report.solver,
    }
    return Solution(model, np.asarray(int(report.end.status)), evidence)


def _check(X: np.ndarray, y: np.ndarray, C: float, weight: np.ndarray | None) -> None:
    """Refuse concrete numbers that state no problem."""
    if X.ndim != 2 or y.shape != X.shape[:1] or (weight is not None and weight.shape != y.shape):
        raise InputError(
            f"X of shape {X.shape}, y of shape {y.shape}",
            "X (n, d), y (n,), weight (n,)",
            "Check that all come from the same rows",
        )
    if not np.isfinite(X).all():
        raise InputError("X holds NaN or infinities", "finite numbers", "Drop or fill those rows")
    if not C > 0:
        raise InputError(f"C is {C!r}", "a number > 0", "Pass C=float('inf') for no penalty")
    if weight is not None and not np.all((weight >= 0) & np.isfinite(weight)):
        raise InputError("weight holds negative numbers or NaN", "finite numbers ≥ 0", "Check it")


@in_float64
def _traced(
    X: Any, y: Any, C: Any, weight: Any, *, classes: int, fit_intercept: bool
) -> Solution[LinearModel]:
    """Computed in float64 whatever JAX's setting, returned in the widest type that came in."""
    given = [a for a in (X, C, weight) if isinstance(a, jax.Array)]
    floats = [a.dtype for a in given if jnp.issubdtype(a.dtype, jnp.floating)]
    dtype = jnp.result_type(jnp.float32, *floats)
    table = jnp.asarray(X)
    omega = jnp.ones(table.shape[0], jnp.float64) if weight is None else jnp.asarray(weight)
    theta, status, count, slope = _program(
        table,
        jnp.asarray(y),
        jnp.asarray(C),
        omega,
        dtype=dtype.name,
        columns=1 if classes == 2 else classes,
        fit_intercept=fit_intercept,
    )
    d = table.shape[1]
    coef = theta[:, :d]
    intercept = theta[:, d] if fit_intercept else jnp.zeros(theta.shape[0], theta.dtype)
    model = LinearModel(*((coef[0], intercept[0]) if classes == 2 else (coef, intercept)))
    return Solution(model, status, {"gradient_norm": slope, "iterations": count})


@partial(jax.jit, static_argnames=("dtype", "columns", "fit_intercept"))
def _program(
    X: jax.Array,
    y: jax.Array,
    C: jax.Array,
    weight: jax.Array,
    *,
    dtype: str,
    columns: int,
    fit_intercept: bool,
) -> tuple[jax.Array, ...]:
    table = X.astype(jnp.float64)
    if fit_intercept:
        table = jnp.concatenate([table, jnp.ones((table.shape[0], 1), jnp.float64)], axis=1)
    data = (table, y.astype(jnp.int32), C.astype(jnp.float64), weight.astype(jnp.float64))
    slope = partial(_gradient, free=int(fit_intercept))
    newton = partial(_newton, columns=columns, free=int(fit_intercept))
    theta, (status, count) = implicit(newton, slope, linear_solver="dense", aux=True)(*data)
    norm = jnp.max(jnp.abs(slope(theta, *jax.lax.stop_gradient(data))))
    return theta.astype(dtype), status, count, jax.lax.stop_gradient(norm).astype(dtype)


def _targets(columns: int, y: jax.Array) -> jax.Array:
    """y as 0/1 (n, 1) for two classes, as one-hot rows (n, k) for more."""
    if columns == 1:
        return y.astype(jnp.float64)[:, None]
    return (y[:, None] == jnp.arange(columns, dtype=y.dtype)[None, :]).astype(jnp.float64)


def _probabilities(scores: jax.Array) -> jax.Array:
    return jax.nn.sigmoid(scores) if scores.shape[1] == 1 else jax.nn.softmax(scores, axis=1)


def _value(
    theta: jax.Array, X: jax.Array, y: jax.Array, C: jax.Array, weight: jax.Array, *, free: int
) -> jax.Array:
    """F(θ), θ (c, q)."""
    scores, target = product(X, theta.T), _targets(theta.shape[0], y)
    own = jnp.sum(scores * target, axis=1)
    if theta.shape[0] == 1:
        losses = jax.nn.softplus(scores[:, 0]) - own
    else:
        losses = jax.nn.logsumexp(scores, axis=1) - own
    total = jnp.sum(losses * weight) + 0.5 * jnp.sum(theta[:, : theta.shape[1] - free] ** 2) / C
    return total / jnp.sum(weight) + _common(theta)


def _common(theta: jax.Array) -> jax.Array:
    """‖Σ_c θ_c‖²/(2k), for more than one column of scores."""
    c = theta.shape[0]
    return jnp.zeros((), theta.dtype) if c == 1 else 0.5 * jnp.sum(theta.sum(axis=0) ** 2) / c


def _gradient(
    theta: jax.Array, X: jax.Array, y: jax.Array, C: jax.Array, weight: jax.Array, *, free: int
) -> jax.Array:
    """∇F (c, q), written out so that its derivatives are those of few operations."""
    c, q = theta.shape
    residual = _probabilities(product(X, theta.T)) - _targets(c, y)
    pulled = jnp.where(jnp.arange(q)[None, :] < q - free, theta, 0.0) / C
    slope = (product((residual * weight[:, None]).T, X) + pulled) / jnp.sum(weight)
    return slope if c == 1 else slope + theta.sum(axis=0)[None, :] / c


def _hessian(
    theta: jax.Array, X: jax.Array, C: jax.Array, weight: jax.Array, *, free: int
) -> jax.Array:
    """∇²F (cq, cq)."""
    c, q = theta.shape
    p = _probabilities(product(X, theta.T))
    mass = jnp.sum(weight)
    ridge = jnp.where(jnp.arange(q) < q - free, 1.0 / (C * mass), 0.0)
    if c == 1:
        h = (p * (1.0 - p))[:, 0] * weight / mass
        return product(X.T, X * h[:, None]) + jnp.diag(ridge)
    bend = (p[:, :, None] * jnp.eye(c)[None] - p[:, :, None] * p[:, None, :]) * (
        weight[:, None, None] / mass
    )
    H = jnp.einsum("nab,ni,nj->aibj", bend, X, X)
    same = jnp.eye(q)[None, :, None, :]
    H = H + same * (jnp.eye(c)[:, None, :, None] * ridge[None, :, None, None] + 1.0 / c)
    return H.reshape(c * q, c * q)


def _newton(
    X: jax.Array, y: jax.Array, C: jax.Array, weight: jax.Array, *, columns: int, free: int
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Damped Newton from zero until the predicted decrease is at rounding."""
    start = jnp.zeros((columns, X.shape[1]), jnp.float64)
    value = partial(_value, X=X, y=y, C=C, weight=weight, free=free)

    def step(state: Any) -> Any:
        theta, f, _, count = state
        g = _gradient(theta, X, y, C, weight, free=free)
        H = _hessian(theta, X, C, weight, free=free)
        scale = jax.lax.rsqrt(jnp.diag(H))
        factor = jax.scipy.linalg.cho_factor(H * (scale[:, None] * scale[None, :]))
        move = scale * jax.scipy.linalg.cho_solve(factor, scale * g.ravel())
        decrement = 0.5 * jnp.sum(move * g.ravel())
        move = -move.reshape(theta.shape)

        def worse(tried: Any) -> jax.Array:
            length, new, halved = tried
            fallen = new <= f - 2e-4 * length * decrement + 1e-14 * jnp.abs(f)
            return ~fallen & (halved < HALVINGS)

        def halve(tried: Any) -> Any:
            length, _, halved = tried
            return 0.5 * length, value(theta + 0.5 * length * move), halved + 1

        first = (jnp.ones((), jnp.float64), value(theta + move), jnp.zeros((), jnp.int32))
        length, new, _ = jax.lax.while_loop(worse, halve, first)
        return theta + length * move, new, decrement, count + 1

    def going(state: Any) -> jax.Array:
        _, f, decrement, count = state
        return (decrement > 1e-22 * jnp.abs(f)) & (count < STEPS) & jnp.isfinite(f)

    begin = (start, value(start), jnp.full((), jnp.inf, jnp.float64), jnp.zeros((), jnp.int32))
    theta, f, decrement, count = jax.lax.while_loop(going, step, begin)
    reached = jnp.where(
        decrement <= 1e-12 * jnp.abs(f), int(Status.CONVERGED), int(Status.ITERATIONS)
    )
    sound = jnp.isfinite(f) & jnp.isfinite(theta).all()
    return theta, (jnp.where(sound, reached, int(Status.DIVERGED)), count)
