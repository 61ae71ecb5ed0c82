"""Storey two of the linear estimators: a pure function from data and penalty to a `Solution`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.bases.basis import expand
from wonderland.core.arrays import any_jax, double, in_float64
from wonderland.core.errors import InputError
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.linear.evidence import values_of
from wonderland.linear.model import LinearModel
from wonderland.solve.direct import solve_direct
from wonderland.solve.problem import LeastSquares
from wonderland.solve.traced import solve_traced

__all__ = ["solve_pure"]

Basis = Callable[[Any], Any]


def solve_pure(
    X: Any, y: Any, alpha: Any, weight: Any, *, fit_intercept: bool, basis: Basis | None
) -> Solution[LinearModel]:
    """On the host for NumPy arrays, as one XLA program when anything is a JAX array."""
    if any_jax(X, y, alpha, weight):
        return _traced(X, y, alpha, weight, fit_intercept=fit_intercept, basis=basis)
    return _host(X, y, alpha, weight, fit_intercept=fit_intercept, basis=basis)


def _host(
    X: Any, y: Any, alpha: Any, weight: Any, *, fit_intercept: bool, basis: Basis | None
) -> Solution[LinearModel]:
    target, table, low = double(y), double(X), None
    outputs = target[:, None] if target.ndim == 1 else target
    omega = None if weight is None else double(weight)
    _check(table, target, double(alpha), omega)
    alphas = np.broadcast_to(double(alpha), (outputs.shape[1],))
    if basis is not None:
        table, low = expand(basis, table)
        low = low if low.any() else None
    fit = solve_direct(LeastSquares(table, outputs, omega, alphas, fit_intercept, low))
    flat = target.ndim == 1
    coef = fit.coef[:, 0] if flat else fit.coef.T
    model = LinearModel(coef, fit.intercept[0] if flat else fit.intercept, basis)
    return Solution(model, np.asarray(int(Status.SOLVED)), dict(values_of(fit)))


def _check(X: np.ndarray, y: np.ndarray, alpha: np.ndarray, weight: np.ndarray | None) -> None:
    """Refuse concrete numbers that state no problem; inside a trace there is nothing to look at."""
    if X.ndim != 2 or len(y) != len(X) or (weight is not None and weight.shape != (len(X),)):
        omega = "" if weight is None else f", sample_weight of shape {weight.shape}"
        raise InputError(
            f"X of shape {X.shape}, y of shape {y.shape}{omega}",
            "X (n, d), y (n,) or (n, t), sample_weight (n,)",
            "Check that all come from the same rows",
        )
    for name, values in (("X", X), ("y", y)):
        if not np.isfinite(values).all():
            raise InputError(
                f"{name} holds {np.count_nonzero(~np.isfinite(values))} NaN or infinities",
                "finite numbers",
                "Drop or fill in those rows",
            )
    weights = np.ones(0) if weight is None else weight
    for name, values in (("alpha", alpha), ("sample_weight", weights)):
        if not np.all((values >= 0) & np.isfinite(values)):
            raise InputError(f"{name} is {values!r}", "finite numbers ≥ 0", f"Check {name}")


@in_float64
def _traced(
    X: Any, y: Any, alpha: Any, weight: Any, *, fit_intercept: bool, basis: Basis | None
) -> Solution[LinearModel]:
    """Computed in float64 whatever JAX's setting, returned in the widest type that came in."""
    given = [a for a in (X, y, alpha, weight) if isinstance(a, jax.Array)]
    dtype = jnp.result_type(jnp.float32, *(a.dtype for a in given))
    phi = jnp.asarray(X)
    if basis is not None:
        phi = basis(phi.astype(jnp.float64))
    target = jnp.asarray(y)
    outputs = target[:, None] if target.ndim == 1 else target
    fit = _program(phi, outputs, alpha, weight, dtype=dtype.name, fit_intercept=fit_intercept)
    coef, intercept, status, evidence = fit
    flat = target.ndim == 1
    model = LinearModel(coef[:, 0] if flat else coef.T, intercept[0] if flat else intercept, basis)
    return Solution(model, status, evidence)


@partial(jax.jit, static_argnames=("dtype", "fit_intercept"))
def _program(
    X: jax.Array, y: jax.Array, alpha: Any, weight: Any, *, dtype: str, fit_intercept: bool
) -> tuple[jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]:
    X, y = X.astype(jnp.float64), y.astype(jnp.float64)
    alpha = jnp.asarray(alpha, jnp.float64)
    omega = None if weight is None else jnp.asarray(weight, jnp.float64)
    fit = solve_traced(X, y, alpha, omega, fit_intercept=fit_intercept)
    evidence = {"condition_number": fit.condition, "gradient_norm": fit.gradient}
    return (
        fit.coef.astype(dtype),
        fit.intercept.astype(dtype),
        fit.status,
        {name: value.astype(dtype) for name, value in evidence.items()},
    )
