"""Full-batch training by L-BFGS, in float64.

    f(w) = Σ_i ω_i ℓ(m_w(x_i), y_i)/Σ_i ω_i + ½λ Σ_matrices ‖W‖²

The value and gradient are one compiled program; SciPy's L-BFGS-B, which scikit-learn calls too,
goes down. It stops when the largest entry of ∇f is at most `tol`.

Reference: Liu & Nocedal (1989); Byrd, Lu, Nocedal & Zhu (1995).
"""

from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from wonderland import nn
from wonderland.core.arrays import in_float64
from wonderland.core.status import Status
from wonderland.neural.heads import Head
from wonderland.training.parameters import Frozen

__all__ = ["Descent", "Limits", "descend"]


class Limits(NamedTuple):
    """When to stop: steps, values of f, largest entry of the gradient."""

    steps: int
    values: int
    tol: float


class Descent(NamedTuple):
    """Where it ended.

    Attributes:
        model: Parameters in float64, as NumPy arrays.
        status: CONVERGED or ITERATIONS.
        steps: Steps taken.
        value: f.
        gradient: The largest entry of ∇f.
        curve: f after each step.
    """

    model: Any
    status: Status
    steps: int
    value: float
    gradient: float
    curve: list[float]


def descend(
    model: Any, head: Head, data: tuple[Any, Any, Any], decay: float, limits: Limits
) -> Descent:
    """Minimise f from the model's own weights.

    Args:
        model: A network without statistics of the batch.
        head: Its outputs.
        data: X (n, d), y, and weights (n,) or None.
        decay: λ.
        limits: When to stop.
    """
    parameters, rest = nn.partition(model)
    leaves, structure = jax.tree.flatten(parameters)
    arrays, static = eqx.partition(rest, eqx.is_array)
    marks = zip(
        jax.tree.leaves(nn.trainable(model)), jax.tree.leaves(nn.decaying(model)), strict=True
    )
    flags = tuple(decays for trained, decays in marks if trained)
    shapes = tuple(leaf.shape for leaf in leaves)
    program = _program(structure, shapes, flags, Frozen(static), head)
    X, y, weight = data
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, np.float64)
    given = (arrays, np.asarray(X, np.float64), y, weight, np.float64(decay))
    curve: list[float] = []
    latest: list[Any] = [None, None]

    def evaluate(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = in_float64(program)(w, *given)
        latest[:] = float(value), np.asarray(slope)
        return latest[0], latest[1]

    found = minimize(
        evaluate,
        np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in leaves]),
        method="L-BFGS-B",
        jac=True,
        callback=lambda _: curve.append(latest[0]),
        options={"maxiter": limits.steps, "maxfun": limits.values, "gtol": limits.tol},
    )
    parts = [part.reshape(shape) for part, shape in zip(_cut(found.x, shapes), shapes, strict=True)]
    fitted = eqx.combine(jax.tree.unflatten(structure, parts), rest)
    status = Status.CONVERGED if found.status == 0 else Status.ITERATIONS
    slope = float(np.abs(np.asarray(found.jac)).max())
    return Descent(fitted, status, int(found.nit), float(found.fun), slope, curve)


def _cut(flat: Any, shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return (
        list(np.split(flat, ends[:-1]))
        if isinstance(flat, np.ndarray)
        else jnp.split(flat, ends[:-1])
    )


@lru_cache(maxsize=64)
def _program(structure: Any, shapes: Any, flags: Any, static: Frozen, head: Head) -> Any:
    def value(w: Any, arrays: Any, X: Any, y: Any, weight: Any, decay: Any) -> Any:
        parts = [part.reshape(shape) for part, shape in zip(_cut(w, shapes), shapes, strict=True)]
        rest = eqx.combine(arrays, static.tree)
        model = eqx.combine(jax.tree.unflatten(structure, parts), rest)
        losses = jax.vmap(head.loss)(jax.vmap(model)(X), y)
        squares = [jnp.sum(part**2) for part, flag in zip(parts, flags, strict=True) if flag]
        return jnp.sum(losses * weight) / jnp.sum(weight) + 0.5 * decay * sum(squares)

    return jax.jit(jax.value_and_grad(value))
