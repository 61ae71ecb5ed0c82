"""Storey two of the linear support vector machines: data and C to a `Solution`.

NumPy arrays are solved on the host to certified gaps; JAX arrays in one XLA program, in float64
whatever JAX's setting, whose derivative is that of the optimum itself (`solve/interior_traced.py`).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import any_jax, double, in_float64
from wonderland.core.errors import InputError
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.solve.interior_problem import Intervals
from wonderland.solve.interior_routes import solve_intervals
from wonderland.solve.interior_traced import Stated, solve_program
from wonderland.svm.linear_check import HINGES, TUBES, check_choice
from wonderland.svm.linear_model import Scores
from wonderland.svm.linear_problem import of_signs, of_targets, strengths

__all__ = ["fit_linear_svc", "fit_linear_svr"]

STEPS = 1000


def fit_linear_svc(
    X: Any,
    y: Any,
    C: Any = 1.0,
    sample_weight: Any = None,
    *,
    loss: str = "squared_hinge",
    fit_intercept: bool = True,
    tol: float = 1e-9,
) -> Solution[Scores]:
    """The linear support vector machine of two classes as a pure function.

    Args:
        X: (n, d).
        y: Signs (n,): positive numbers are one class, all others the other.
        C: Weight of the loss, > 0; a scalar.
        sample_weight: ω (n,) > 0.
        loss: "squared_hinge" or "hinge". The derivative of the hinge is that of its support
            set, and holds as long as no sample enters or leaves it.
        fit_intercept: Whether b is free; it is never penalised.
        tol: Relative duality gap.

    >>> import jax, jax.numpy as jnp
    >>> X, y = jnp.array([[0.0], [1.0], [2.0], [3.0]]), jnp.array([-1, -1, 1, 1])
    >>> def slope(C):
    ...     return fit_linear_svc(X, y, C, loss="hinge").model.coef[0]
    >>> [round(float(value), 6) for value in (slope(0.1), jax.grad(slope)(0.1))]  # 4C: all held
    [0.4, 4.0]
    """
    check_choice("loss", loss, HINGES)
    squared = loss == "squared_hinge"
    if any_jax(X, y, C, sample_weight):
        low, high = _sides(y)
        return _traced(X, low, high, _strength(C, sample_weight), fit_intercept, squared, tol)
    table, signs, weight = _checked(X, y, C, sample_weight)
    strength = strengths(float(C), weight, len(signs))
    problem = of_signs(table, signs, strength, intercept=fit_intercept, squared=squared)
    return _host(problem, tol)


def fit_linear_svr(
    X: Any,
    y: Any,
    C: Any = 1.0,
    epsilon: Any = 0.0,
    sample_weight: Any = None,
    *,
    loss: str = "epsilon_insensitive",
    fit_intercept: bool = True,
    tol: float = 1e-9,
) -> Solution[Scores]:
    """Linear support vector regression as a pure function.

    Args:
        X: (n, d).
        y: (n,).
        C: Weight of the loss, > 0; a scalar.
        epsilon: ε ≥ 0.
        sample_weight: ω (n,) > 0.
        loss: "epsilon_insensitive" or "squared_epsilon_insensitive".
        fit_intercept: Whether b is free.
        tol: Relative duality gap.

    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 2.0, 9.0])
    >>> fit_linear_svr(X, y, 100.0).model.coef.round(6).tolist()
    [1.0]
    """
    check_choice("loss", loss, TUBES)
    squared = loss == "squared_epsilon_insensitive"
    if any_jax(X, y, C, epsilon, sample_weight):
        low, high = _apart(y, epsilon)
        return _traced(X, low, high, _strength(C, sample_weight), fit_intercept, squared, tol)
    table, target, weight = _checked(X, y, C, sample_weight)
    strength = strengths(float(C), weight, len(target))
    return _host(
        of_targets(
            table, target, float(epsilon), strength, intercept=fit_intercept, squared=squared
        ),
        tol,
    )


def _host(problem: Intervals, tol: float) -> Solution[Scores]:
    answer = solve_intervals(problem, tol, STEPS)
    found = answer.certificate
    evidence = {
        "primal": found.primal,
        "dual": found.dual,
        "duality_gap": found.gap,
        "kkt_violation": found.kkt,
        "dual_coef": answer.point.beta,
        "support_vectors": int(np.count_nonzero(answer.point.beta)),
        "solver": answer.solver,
    }
    model = Scores(answer.point.w, np.asarray(answer.point.b))
    return Solution(model, np.asarray(int(answer.status)), evidence)


def _checked(X: Any, y: Any, C: Any, weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Concrete numbers that state a problem; inside a trace there is nothing to look at."""
    table, target = X if hasattr(X, "tocsr") else double(X), double(y)
    omega = None if weight is None else double(weight)
    shapes = {"y": target.shape, "sample_weight": target.shape if omega is None else omega.shape}
    if len(table.shape) != 2 or set(shapes.values()) != {(table.shape[0],)}:
        raise InputError(
            f"X of shape {table.shape}, y of shape {target.shape}",
            "X (n, d), y (n,), sample_weight (n,)",
            "Check that all come from the same rows",
        )
    numbers = [table.data if hasattr(table, "tocsr") else table, target]
    if not all(np.isfinite(values).all() for values in numbers):
        raise InputError("X or y holds NaN or infinity", "finite numbers", "Drop those rows")
    if not 0 < float(C) < np.inf or (omega is not None and not np.all(omega >= 0)):
        raise InputError(f"C is {C!r}", "C > 0 and weights ≥ 0", "Check C and sample_weight")
    return table, target, omega


@in_float64
def _sides(y: Any) -> tuple[jax.Array, jax.Array]:
    """[1, ∞) or (−∞, −1]."""
    positive = jnp.asarray(y) > 0
    return jnp.where(positive, 1.0, -jnp.inf), jnp.where(positive, jnp.inf, -1.0)


@in_float64
def _apart(y: Any, epsilon: Any) -> tuple[jax.Array, jax.Array]:
    target = jnp.asarray(y).astype(jnp.float64)
    epsilon = jnp.asarray(epsilon).astype(jnp.float64)
    return target - epsilon, target + epsilon


@in_float64
def _strength(C: Any, weight: Any) -> jax.Array:
    """C·ω (n,), or C alone where weights are not given."""
    C = jnp.asarray(C).astype(jnp.float64)
    return C if weight is None else C * jnp.asarray(weight).astype(jnp.float64)


@in_float64
def _traced(
    X: Any,
    low: jax.Array,
    high: jax.Array,
    strength: jax.Array,
    fit_intercept: bool,  # noqa: FBT001
    squared: bool,  # noqa: FBT001
    tol: float,
) -> Solution[Scores]:
    """Computed in float64, returned in the type of X."""
    table = jnp.asarray(X)
    dtype = jnp.result_type(jnp.float32, table.dtype).name
    wide = table.astype(jnp.float64)
    c = jnp.broadcast_to(strength, (wide.shape[0],))
    found, primal, dual = solve_program(
        Stated(wide, low, high, c),
        jnp.asarray(tol, jnp.float64),
        intercept=bool(fit_intercept),
        squared=squared,
    )
    gap = (primal - dual) / jnp.maximum(primal, jnp.finfo(jnp.float64).tiny)
    status = jnp.where(gap <= tol, int(Status.CONVERGED), int(Status.ITERATIONS))
    evidence = {"primal": primal, "dual": dual, "duality_gap": gap}
    evidence = {name: value.astype(dtype) for name, value in evidence.items()}
    evidence["dual_coef"] = found.beta.astype(dtype)
    return Solution(Scores(found.w.astype(dtype), found.b.astype(dtype)), status, evidence)
