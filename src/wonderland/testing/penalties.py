"""Laws of every penalty ρ(w), w (d,) or (d, t)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import any_jax, in_float64
from wonderland.penalties.penalty import Penalty
from wonderland.testing.compare import close

__all__ = [
    "penalty_bends_as_stated",
    "penalty_distance_certifies",
    "penalty_is_the_same_on_host_and_jax",
    "penalty_prox_minimises",
    "penalty_prox_splits_by_moreau",
]


def penalty_prox_minimises(penalty: Penalty, w: np.ndarray, step: float, seed: int = 0) -> None:
    """No point does better than the prox on ρ(v) + ‖v − w‖²/2t; neighbours near and far are tried.

    >>> import wonderland as wl
    >>> penalty_prox_minimises(wl.penalties.L1(0.5), np.array([3.0, 0.1]), 1.0)
    """
    found, chance = penalty.prox(w, step), np.random.default_rng(seed)

    def objective(v: Any) -> Any:
        return penalty.value(v) + 0.5 * np.sum((v - w) ** 2) / step

    least = objective(found)
    tried = [w, 0.0 * w]
    for size in (1e-6, 1e-3, 1.0):
        tried += [found + size * chance.normal(size=w.shape) for _ in range(10)]
        tried += [penalty.prox(v, 1e-12) for v in tried[-10:]]
    worse = least - min(objective(v) for v in tried)
    if not worse <= 1e-10 * (1.0 + abs(least)):
        raise AssertionError(f"the prox minimises: another point is lower by {worse:.3g}")


def penalty_prox_splits_by_moreau(penalty: Penalty, w: np.ndarray, step: float) -> None:
    """w = x + tu with x = prox(w) and ρ(x) + ρ*(u) = ⟨u, x⟩; and ρ(v) + ρ*(u) ≥ ⟨u, v⟩.

    >>> import wonderland as wl
    >>> penalty_prox_splits_by_moreau(wl.penalties.L1(0.5), np.array([3.0, 0.1]), 1.0)
    """
    x = penalty.prox(w, step)
    # Rounding may push u over the edge of the domain, behind which ρ* is infinite.
    u = (w - x) / step * (1.0 - 1e-12 * (1.0 + np.max(np.abs(w)) / step))
    gap = penalty.value(x) + penalty.conjugate(u) - np.sum(u * x)
    size = 1.0 + abs(np.sum(u * x)) + np.max(np.abs(w)) / step
    if not abs(gap) <= 1e-9 * size:
        raise AssertionError(f"Moreau: ρ(x) + ρ*(u) − ⟨u, x⟩ is {gap:.3g}, not zero")
    for v in (w, -w, 0.5 * x, penalty.prox(-w, step)):
        short = np.sum(u * v) - penalty.value(v) - penalty.conjugate(u)
        if not short <= 1e-9 * size:
            raise AssertionError(f"Fenchel and Young: ⟨u, v⟩ exceeds ρ + ρ* by {short:.3g}")


def penalty_distance_certifies(penalty: Penalty, w: np.ndarray, gradient: np.ndarray) -> None:
    """`residual` less the gradient is a subgradient at x = prox(w), and is zero at an optimum.

    x minimises ρ(v) + ½‖v − w‖², whose smooth part has the gradient x − w. At the gradient given,
    ρ(v) ≥ ρ(x) + ⟨residual − gradient, v − x⟩ must hold, and nothing nearer to zero may do.

    >>> import wonderland as wl
    >>> penalty_distance_certifies(wl.penalties.L1(0.5), np.array([3.0, 0.1]), np.ones(2))
    """
    x = penalty.prox(w, 1.0)
    at_optimum = float(penalty.distance(x, x - w))
    if not at_optimum <= 1e-12 * (1.0 + np.max(np.abs(w))):
        raise AssertionError(f"the distance at an optimum is {at_optimum:.3g}, not zero")
    rest = penalty.residual(x, gradient)
    chosen, nearer = rest - gradient, 0.9 * rest - gradient
    close(penalty.distance(x, gradient), np.max(np.abs(rest)), "the distance is the largest entry")
    if not _supports(penalty, x, chosen, rest):
        raise AssertionError("the residual is not the gradient plus a subgradient")
    if np.max(np.abs(rest)) > 1e-3 and _supports(penalty, x, nearer, rest):
        raise AssertionError("a subgradient nearer to minus the gradient was overlooked")


def penalty_bends_as_stated(penalty: Penalty, a: np.ndarray, b: np.ndarray) -> None:
    """m/8 ‖a − b‖² ≤ ½ρ(a) + ½ρ(b) − ρ(½(a + b)) ≤ L/8 ‖a − b‖² at allowed points.

    m is met with equality where one entry, or all together, are halved.

    >>> import wonderland as wl
    >>> penalty_bends_as_stated(wl.penalties.L2(0.5), np.ones(2), -np.ones(2))
    """
    m, L = float(penalty.strong_convexity), float(penalty.smoothness)
    a, b = penalty.prox(np.where(a == 0, 1.0, a), 1e-12), penalty.prox(b, 1e-12)
    size = 1.0 + float(np.sum(a**2))  # of nearer points only rounding would be compared
    halves = [0.5 * a, *(a - 0.5 * a * e.reshape(a.shape) for e in np.eye(a.size))]
    bends = [_bend(penalty, a, v) for v in (b, *halves) if np.sum((v - a) ** 2) > 1e-6 * size]
    if min(bends) < m - 1e-6 * (1.0 + m):
        raise AssertionError(f"strong_convexity is {m:.6g}, a bend of {min(bends):.6g} was found")
    if max(bends) > L * (1.0 + 1e-6) + 1e-6:
        raise AssertionError(f"smoothness is {L:.6g}, a bend of {max(bends):.6g} was found")
    if min(bends) > m + 1e-6 * (1.0 + m):
        raise AssertionError(f"strong_convexity could be {min(bends):.6g}, it is {m:.6g}")


def _bend(penalty: Penalty, a: np.ndarray, b: np.ndarray) -> float:
    """How far the chord lies above ρ, in units of ‖a − b‖²/8."""
    middle = float(penalty.value(0.5 * (a + b)))
    gap = 0.5 * (float(penalty.value(a)) + float(penalty.value(b))) - middle
    return 8.0 * gap / float(np.sum((a - b) ** 2))


@in_float64
def penalty_is_the_same_on_host_and_jax(penalty: Penalty, w: np.ndarray, step: float) -> None:
    """value, prox, conjugate, residual and distance agree on NumPy and JAX arrays, also compiled.

    >>> import wonderland as wl
    >>> penalty_is_the_same_on_host_and_jax(wl.penalties.L1(0.5), np.array([3.0, 0.1]), 1.0)
    """
    asked: dict[str, tuple[Any, ...]] = {
        "value": (w,),
        "prox": (w, step),
        "conjugate": (w,),
        "residual": (w, w + 1.0),
        "distance": (w, w + 1.0),
    }
    for name, given in asked.items():
        host = getattr(penalty, name)(*given)
        method = getattr(type(penalty), name)
        arrays = tuple(jnp.asarray(g) for g in given)
        for traced in (method(penalty, *arrays), jax.jit(method)(penalty, *arrays)):
            if any_jax(host) or not any_jax(traced):
                raise AssertionError(f"{name}: NumPy in, NumPy out; JAX in, JAX out")
            if np.all(np.isfinite(host)) or np.any(np.isfinite(traced)):
                close(traced, host, f"{name} is the same on host and JAX", rtol=1e-12, atol=1e-15)


def _supports(penalty: Penalty, x: np.ndarray, slope: np.ndarray, rest: np.ndarray) -> bool:
    """Whether ⟨slope, ·⟩ touches ρ from below at x, tried on the axes and along the arguments."""
    size = 1e-3 * (1.0 + np.max(np.abs(x)))
    moves = [size * e.reshape(x.shape) for e in np.eye(x.size)] + [slope, x]
    for way in (slope, rest):
        moves += [s * way / (1.0 + np.max(np.abs(way))) for s in (1e-3, 1e-5)]
    here = penalty.value(x)
    for v in [x + sign * move for move in moves for sign in (-1, 1)]:
        if here + np.sum(slope * (v - x)) - penalty.value(v) > 1e-9 * (1.0 + abs(here)):
            return False
    return True
