"""Temperature scaling: one number makes a classifier as sure as it should be.

    p_i = softmax(z_i / T),  T = 1/β,    minimise over β ≥ 0    −Σ_i ω_i log softmax(β z_i)_{y_i}

Convex in β, so that the optimum is one number whoever finds it. Every row keeps its order: the arg
max never changes, and where rounding would make two probabilities equal it is kept by one unit in
the last place. z are logits or log-probabilities; adding a constant to a row changes nothing.

When every label is its row's largest score no finite β is best: the labels are then softened by
one row's worth of doubt (see `metrics/sharpness.py`), and the evidence says so. Scores that say
nothing, or the opposite, have β = 0, an infinite temperature.

NumPy arrays are solved on the host, in blocks that stay in the cache: three times as fast as the
same passes by XLA. JAX arrays are solved in one compiled program, with the derivative of the
optimum. Shapes: n rows, k classes; z (n, k), y (n,) class numbers.

Reference: Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.autodiff.implicit import implicit
from wonderland.core.arrays import any_jax, double, in_float64
from wonderland.core.blocks import map_rows
from wonderland.core.errors import InputError
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.metrics.sharpness import best_sharpness
from wonderland.trust.calibration_rows import keep_largest, softmax

__all__ = ["Temperature", "fit_temperature"]

TURNS = 100
TOLERANCE = 1e-12


class Temperature(eqx.Module):
    """p = softmax(β z).

    Attributes:
        beta: β = 1/T ≥ 0.
    """

    beta: Any

    def __call__(self, z: Any) -> jax.Array:
        """Probabilities (k,) from the logits of one sample (k,)."""
        return jax.nn.softmax(self.beta * jnp.asarray(z))

    @property
    def temperature(self) -> float:
        """T; infinite where β = 0."""
        return float("inf") if self.beta == 0 else 1.0 / float(self.beta)

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        """Probabilities (n, k) of host rows, each with the arg max of its scores."""
        return keep_largest(softmax(float(self.beta) * z), z)

    def parameters(self) -> dict[str, Any]:
        """What was fitted, by name."""
        return {"temperature": self.temperature}


def fit_temperature(logits: Any, y: Any, sample_weight: Any = None) -> Solution[Temperature]:
    """The temperature of least log loss, as a pure function.

    JAX arrays: differentiable in logits and weights, jittable; no check of the labels then, and
    logits that separate the classes end at the longest β the search reached.

    Args:
        logits: z (n, k), or the log-odds (n,) of the second of two classes.
        y: Class numbers (n,).
        sample_weight: ω (n,) ≥ 0.

    >>> z = np.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> fitted = fit_temperature(z, [0, 0, 1, 1])  # three in four are right: log 3 = 2/T
    >>> round(fitted.model.temperature, 6), fitted.ended.name
    (1.820478, 'CONVERGED')
    """
    if any_jax(logits, y, sample_weight):
        return in_float64(_fit_traced)(logits, y, sample_weight)
    z, codes, weight = _checked(logits, y, sample_weight)
    found = best_sharpness(z, codes, weight)
    status = Status.CONVERGED if found.converged else Status.ITERATIONS
    evidence = {
        "log_loss": found.loss,
        "gradient_norm": abs(found.slope),
        "passes": found.passes,
        "separable": found.separable,
    }
    return Solution(Temperature(np.float64(found.beta)), status, evidence)


def _checked(logits: Any, y: Any, weight: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    z, codes = double(logits), np.asarray(y)
    z = np.column_stack([np.zeros(len(z)), z]) if z.ndim == 1 else z
    if z.ndim != 2 or z.shape[1] < 2 or codes.shape != (len(z),) or not len(z):
        raise InputError(
            f"logits have the shape {z.shape} and y the shape {codes.shape}",
            "a row of at least two logits, and one label, for each sample",
            "Pass logits (n, k) and y (n,)",
        )
    if not np.isfinite(sum(map_rows(lambda a, b: float(z[a:b].sum()), len(z), z.size))):
        row = int(np.flatnonzero(~np.isfinite(z).all(axis=1))[0])
        raise InputError(
            f"logits hold NaN or infinity, first in row {row}",
            "finite numbers",
            "Clip log-probabilities from below, for instance at log(1e-12)",
        )
    if codes.dtype.kind not in "iub" or codes.min() < 0 or codes.max() >= z.shape[1]:
        raise InputError(
            f"y holds {codes.min()!r} … {codes.max()!r}" if codes.dtype.kind in "iub" else "y",
            f"class numbers 0 … {z.shape[1] - 1}",
            "Encode labels first: np.searchsorted(classes, y)",
        )
    return z, codes.astype(np.intp), None if weight is None else double(weight)


def _slope(beta: jax.Array, z: jax.Array, codes: jax.Array, weight: jax.Array) -> jax.Array:
    """Σ ω (m − z_y)/Σω."""
    mean = (jax.nn.softmax(beta * z) * z).sum(axis=1)
    own = jnp.take_along_axis(z, codes[:, None], axis=1)[:, 0]
    return weight @ (mean - own) / weight.sum()


def _newton(z: jax.Array, codes: jax.Array, weight: jax.Array) -> jax.Array:
    """β by Newton's method within a bracket, from the inverse spread of the scores."""

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        beta, low, high, _, turn = state
        slope, bend = jax.value_and_grad(_slope)(beta, z, codes, weight)
        low, high = jnp.where(slope < 0, beta, low), jnp.where(slope < 0, high, beta)
        to = beta - slope / jnp.where(bend > 0, bend, 1.0)
        inside = (to > low) & (to < high) & (bend > 0)
        middle = jnp.where(jnp.isfinite(high), 0.5 * (low + high), 4.0 * beta)
        to = jnp.minimum(jnp.where(inside, to, middle), 4.0 * beta)
        return to, low, high, jnp.abs(to - beta), turn + 1

    def go(state: tuple[Any, ...]) -> jax.Array:
        beta, _, _, moved, turn = state
        return (turn < TURNS) & (moved > TOLERANCE * beta) & (beta > 0)

    centred = z - z.max(axis=1, keepdims=True)
    start = 1.0 / jnp.maximum(-centred.mean(), 1e-300)
    start = jnp.where(_slope(0.0 * start, z, codes, weight) < 0, start, 0.0)
    infinite = jnp.asarray(jnp.inf, z.dtype)
    state = (start, 0.0 * start, infinite, infinite, 0)
    return jax.lax.while_loop(go, step, state)[0]


def _condition(beta: jax.Array, z: jax.Array, codes: jax.Array, weight: jax.Array) -> jax.Array:
    """Zero at the optimum; where β = 0 is best it stays there, whatever the scores."""
    return jnp.where(beta > 0, _slope(beta, z, codes, weight), beta)


@jax.jit
def _solve_traced(z: jax.Array, codes: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
    """β with the derivative of the optimum, and the slope that is left."""
    beta = implicit(_newton, _condition)(z, codes, weight)
    return beta, jnp.abs(_slope(beta, z, codes, weight))


def _fit_traced(logits: Any, y: Any, sample_weight: Any) -> Solution[Temperature]:
    z, codes = jnp.asarray(logits, jnp.float64), jnp.asarray(y)
    if z.ndim == 1:
        z = jnp.stack([jnp.zeros_like(z), z], axis=1)
    ones = jnp.ones(len(z), z.dtype)
    weight = ones if sample_weight is None else jnp.asarray(sample_weight, z.dtype)
    beta, slope = _solve_traced(z, codes, weight)
    status = jnp.where(slope <= 1e-9 * (1 + jnp.abs(z).max()), Status.CONVERGED, Status.ITERATIONS)
    status = jnp.where(beta > 0, status, Status.CONVERGED)
    return Solution(Temperature(beta), status, {"gradient_norm": slope})
