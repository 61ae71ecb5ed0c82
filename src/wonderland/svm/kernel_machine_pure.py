"""Storey two of the support vector machine with a kernel: samples, signs, k and C to a `Solution`.

    minimise over f, b:   ½‖f‖² + C Σ_i ω_i max(0, 1 − y_i(f(x_i) + b)),   f(x) = Σ_i β_i k(x_i, x)

The derivative is that of the optimum. Let F be the samples with 0 < |β_i| < Cω_i and B those at
their bound, β_B = Cω_B y_B. While no sample changes its set, β_F and b follow from

    K_FF β_F + b·1 = y_F − K_FB β_B,    1ᵀβ_F = −1ᵀβ_B,

which is linear: the sets are found without derivatives, the system is solved with them, and the
same solve takes β to rounding level. Shapes: X (n, d), y, β (n,).

Reference: Amos & Kolter (2017), OptNet.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import any_jax, double, in_float64, product
from wonderland.core.errors import InputError
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.kernels.kernel import Kernel
from wonderland.solve.box_gram import Gram
from wonderland.solve.box_problem import BoxProblem
from wonderland.solve.box_solver import Limits, solve_box
from wonderland.solve.interior_traced import Stated, solve_program
from wonderland.svm.kernel_model import KernelModel

__all__ = ["fit_svc"]

SHIFT = 1e-14  # of the mean diagonal of K, so that equal samples do not make the system singular
EDGE = 1e-7  # of Cω: how near to a bound β counts as lying on it
SLACK = 1e-7  # of Cω: how far β may lie outside its bounds before the sets are taken to be wrong


def fit_svc(
    X: Any, y: Any, kernel: Kernel, C: Any = 1.0, sample_weight: Any = None, *, tol: float = 1e-9
) -> Solution[KernelModel]:
    """The support vector machine of two classes as a pure function.

    NumPy arrays are solved on the host, for any n that blocks of the matrix allow; JAX arrays in
    XLA with the whole matrix, in float64 whatever JAX's setting, differentiable in C, ω, X and the
    parameters of the kernel.

    Args:
        X: (n, d).
        y: Signs (n,): positive numbers are one class, all others the other.
        kernel: k; its array leaves are parameters.
        C: Weight of the loss, > 0.
        sample_weight: ω (n,) > 0.
        tol: Relative duality gap.

    >>> import jax, jax.numpy as jnp
    >>> from wonderland.kernels import Gaussian
    >>> X, y = jnp.array([[0.0], [1.0], [2.0], [3.0]]), jnp.array([-1, 1, 1, -1])
    >>> def score(gamma):
    ...     return fit_svc(X, y, Gaussian(gamma), 10.0).model(jnp.array([1.5]))
    >>> bool(jnp.isfinite(jax.grad(score)(1.0)))
    True
    """
    if any_jax(X, y, C, sample_weight, kernel):
        return _traced(X, y, kernel, C, sample_weight, tol)
    signs = np.where(double(y) > 0, 1.0, -1.0)
    if not (float(C) > 0 and np.isfinite(C)) or np.abs(signs.sum()) == len(signs):
        raise InputError(
            f"C is {C!r}, {int((signs > 0).sum())} of {len(signs)} signs are positive",
            "a finite C > 0 and samples of both signs",
            "Check C and y",
        )
    height = float(C) * signs * (1.0 if sample_weight is None else double(sample_weight))
    problem = BoxProblem(signs, np.minimum(height, 0.0), np.maximum(height, 0.0))
    table = double(X)
    fit = solve_box(problem, Gram(kernel, table), Limits(tol))
    found = fit.certificate
    evidence = {
        "primal": found.primal,
        "dual": found.dual,
        "duality_gap": found.gap,
        "kkt_violation": found.violation,
    }
    model = KernelModel(kernel, table, fit.beta, np.asarray(found.bias))
    return Solution(model, np.asarray(int(fit.status)), evidence)


@in_float64
def _traced(
    X: Any, y: Any, kernel: Kernel, C: Any, weight: Any, tol: float
) -> Solution[KernelModel]:
    """Sets without derivatives, then the linear system with them; returned in the type of X."""
    dtype = jnp.result_type(jnp.float32, jnp.asarray(X).dtype)
    points = jnp.asarray(X, jnp.float64)
    signs = jnp.where(jnp.asarray(y) > 0, 1.0, -1.0).astype(jnp.float64)
    omega = jnp.ones_like(signs) if weight is None else jnp.asarray(weight, jnp.float64)
    cost = jnp.asarray(C, jnp.float64) * omega
    K = kernel.traced(points, points).astype(jnp.float64)
    beta, b = _polished(K, signs, cost, *_sets(K, signs, cost, tol))
    good, evidence = _judged(*jax.lax.stop_gradient((K, signs, cost, beta, b)), tol)
    evidence = {name: value.astype(dtype) for name, value in evidence.items()}
    model = KernelModel(kernel, points.astype(dtype), beta.astype(dtype), b.astype(dtype))
    status = jnp.where(good, int(Status.CONVERGED), int(Status.ITERATIONS))
    return Solution(model, status, evidence)


def _judged(
    K: jax.Array, signs: jax.Array, cost: jax.Array, beta: jax.Array, b: jax.Array, tol: float
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Whether β is feasible and its gap closed, and the evidence."""
    f = product(K, beta)
    norm = product(beta, f)
    primal = 0.5 * norm + product(cost, jnp.maximum(0.0, 1.0 - signs * (f + b)))
    dual = product(signs, beta) - 0.5 * norm
    gap = (primal - dual) / primal
    inside = ((signs * beta >= -SLACK * cost) & (signs * beta <= (1.0 + SLACK) * cost)).all()
    return inside & (gap <= tol), {"primal": primal, "dual": dual, "duality_gap": gap}


def _sets(
    K: jax.Array, signs: jax.Array, cost: jax.Array, tol: float
) -> tuple[jax.Array, jax.Array]:
    """Which samples are free, and which at their bound: by the linear machine on √K."""
    K, cost = jax.lax.stop_gradient((K, cost))
    values, vectors = jnp.linalg.eigh(0.5 * (K + K.T))
    table = vectors * jnp.sqrt(jnp.maximum(values, 0.0))[None, :]
    low = jnp.where(signs > 0, 1.0, -jnp.inf)
    high = jnp.where(signs > 0, jnp.inf, -1.0)
    stated = Stated(table, low, high, cost)
    found, _, _ = solve_program(stated, jnp.asarray(tol), intercept=True, squared=False)
    size = jnp.abs(jax.lax.stop_gradient(found.beta))
    held = size >= (1.0 - EDGE) * cost
    return (size > EDGE * cost) & ~held, held


def _polished(
    K: jax.Array, signs: jax.Array, cost: jax.Array, free: jax.Array, held: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """β and b of these sets; where no sample is free, b is the middle of its interval."""
    n, m = len(signs), free.astype(K.dtype)
    fixed = jnp.where(held, cost * signs, 0.0)
    g = signs - product(K, fixed)
    up = jnp.where(jnp.where(signs > 0, ~held, held), g, -jnp.inf)
    down = jnp.where(jnp.where(signs > 0, held, ~held), g, jnp.inf)
    some = free.any()
    middle = 0.5 * (jnp.where(some, 0.0, up).max() + jnp.where(some, 0.0, down).min())
    shift = SHIFT * jnp.diag(jax.lax.stop_gradient(K)).mean() * m + (1.0 - m)
    corner = jnp.where(some, 0.0, 1.0)
    inner = K * m[:, None] * m[None, :] + jnp.diag(shift)
    system = jnp.block([[inner, m[:, None]], [m[None, :], corner[None, None]]])
    right = jnp.append(m * g, jnp.where(some, -fixed.sum(), middle))
    solved = jnp.linalg.solve(system, right)
    # Products in place of slices: JAX turns slices round in the type of its global setting.
    pick = jnp.eye(n + 1, dtype=K.dtype)
    return fixed + m * product(pick[:n], solved), product(pick[n], solved)
