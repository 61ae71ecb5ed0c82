"""Laws of every loss ℓ(z, y): each fact that an object states is tried on numbers.

z is (n,), or (n, k) for the cross-entropy, y (n,). Points on kinks are welcome.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import any_jax, in_float64
from wonderland.losses.calibration import calibrated
from wonderland.losses.loss import Loss
from wonderland.testing.compare import close

__all__ = [
    "loss_and_conjugate_are_fenchel_young",
    "loss_bends_as_stated",
    "loss_conjugate_is_the_supremum",
    "loss_curvature_is_finite_difference",
    "loss_derivative_is_finite_difference",
    "loss_duality_gap_closes",
    "loss_is_calibrated_as_stated",
    "loss_is_the_same_on_host_and_jax",
    "loss_prox_minimises",
    "loss_prox_splits_by_moreau",
]

REACH = 30.0  # how far from zero facts are looked for
STEP = 1e-5


@in_float64
def loss_derivative_is_finite_difference(loss: Loss, z: Any, y: Any, rtol: float = 1e-6) -> None:
    """dℓ/dz and JAX's derivative of ℓ lie between the differences to the left and to the right.

    Where ℓ is smooth these agree, at a kink they are the ends of the subdifferential.

    >>> import wonderland as wl
    >>> loss_derivative_is_finite_difference(wl.losses.Hinge(), np.array([0.5, 1.0]), np.ones(2))
    """
    z = np.asarray(z, np.float64)
    slope = loss.derivative(z, y)
    traced = jax.grad(lambda at: jnp.sum(loss.value(at, jnp.asarray(y))))(jnp.asarray(z))
    for direction in _directions(loss, z):
        ends = _differences(lambda at: loss.value(at, y), z, direction)
        _between(_dot(loss, slope, direction), ends, "the derivative is a difference", rtol)
        came = _dot(loss, np.asarray(traced), direction)
        _between(came, ends, "JAX's derivative of the value is a difference", rtol)


def loss_curvature_is_finite_difference(loss: Loss, z: Any, y: Any, rtol: float = 1e-5) -> None:
    """d²ℓ/dz² lies between the left and right differences of dℓ/dz, except where that jumps.

    >>> import wonderland as wl
    >>> loss_curvature_is_finite_difference(wl.losses.Squared(), np.array([0.5]), np.ones(1))
    """
    z = np.asarray(z, np.float64)
    curvature = loss.curvature(z, y)

    def slope(at: Any, along: Any) -> Any:
        return _dot(loss, loss.derivative(at, y), along)

    for direction in _directions(loss, z):
        ends = _differences(partial(slope, along=direction), z, direction)
        jumps = np.maximum(*np.abs(ends)) > 0.1 / STEP / np.maximum(1.0, np.max(np.abs(z)))
        came = np.where(jumps, ends[0], _dot(loss, curvature, direction))
        _between(came, ends, "the curvature is a difference of derivatives", rtol)


def loss_and_conjugate_are_fenchel_young(loss: Loss, z: Any, other: Any, y: Any) -> None:
    """ℓ(z) + ℓ*(u) ≥ uz for every slope u, with equality at u = dℓ/dz where ℓ is convex.

    Both together say ℓ** = ℓ. The slopes tried are those at the points `other`.

    >>> import wonderland as wl
    >>> z = np.array([-1.0, 2.0])
    >>> loss_and_conjugate_are_fenchel_young(wl.losses.Hinge(), z, z[::-1], np.ones(2))
    """
    z, other = np.asarray(z, np.float64), np.asarray(other, np.float64)
    value = loss.value(z, y)
    for slope in (loss.derivative(other, y), loss.derivative(other, y) + 0.25):
        short = _dot(loss, slope, z) - value - loss.conjugate(slope, y)
        if not np.all(short <= 1e-9 * _size(value, _dot(loss, slope, z))):
            raise AssertionError(f"Fenchel and Young: uz exceeds ℓ + ℓ* by {np.max(short):.3g}")
    if loss.convex:
        slope = _into_domain(loss, loss.derivative(z, y), y)
        gap = value + loss.conjugate(slope, y) - _dot(loss, slope, z)
        if not np.all(np.abs(gap) <= 1e-8 * _size(value, _dot(loss, slope, z))):
            raise AssertionError(f"ℓ + ℓ* exceeds uz at the derivative by {np.max(gap):.3g}")


def loss_conjugate_is_the_supremum(loss: Loss, fraction: Any, y: Any) -> None:
    """ℓ*(u) = sup_z uz − ℓ(z) inside the domain, and the supremum is infinite outside.

    Args:
        loss: Of one number.
        fraction: Where in its domain each u lies, from 0 to 1 (n,).
        y: Targets (n,).

    >>> import wonderland as wl
    >>> loss_conjugate_is_the_supremum(wl.losses.Logistic(), np.array([0.25]), np.ones(1))
    """
    low, high = loss.domain(y)
    inner = np.maximum(low, -5.0), np.minimum(high, 5.0)
    u = inner[0] + np.asarray(fraction) * (inner[1] - inner[0])
    found = np.max([u * z - loss.value(z, y) for z in _grid(loss, u, y)], axis=0)
    # Where the supremum is a limit the grid stops short of it by what is left of an exponential.
    close(found, loss.conjugate(u, y), "the conjugate is the supremum", rtol=1e-6, atol=1e-6)
    for end, way in ((low, -1.0), (high, 1.0)):
        beyond = np.where(np.isfinite(end), end, 0.0) + 0.1 * way
        outside = np.isfinite(end)
        if np.isfinite(loss.conjugate(beyond, y)[outside]).any():
            raise AssertionError("the conjugate is finite outside its domain")
        far = np.full(np.shape(y), way * 1e9)
        if not np.all((beyond * far - loss.value(far, y))[outside] > 1e6):
            raise AssertionError("the supremum is finite outside the stated domain")


def loss_prox_minimises(loss: Loss, point: Any, y: Any, step: float) -> None:
    """No point does better than the prox on ℓ(z) + ‖z − p‖²/2t.

    >>> import wonderland as wl
    >>> loss_prox_minimises(wl.losses.Huber(), np.array([5.0]), np.zeros(1), 0.5)
    """
    p = np.asarray(point, np.float64)
    found = loss.prox(p, y, step)

    def objective(z: Any) -> Any:
        return loss.value(z, y) + 0.5 * _dot(loss, z - p, z - p) / step

    least = objective(found)
    tried = [p, *(p + s for s in np.linspace(-REACH, REACH, 121))]
    for size in (1e-6, 1e-4, 1e-2, 1.0):
        tried += [found + s * size * d for d in _directions(loss, p) for s in (-1, 1)]
    for z in tried:
        worse = least - objective(z)
        if not np.all(worse <= 1e-10 * _size(least)):
            raise AssertionError(f"the prox minimises: another point is lower by {worse.max():.3g}")


def loss_prox_splits_by_moreau(loss: Loss, point: Any, y: Any, step: float) -> None:
    """p = x + tu with x = prox(p) and u a slope at x: ℓ(x) + ℓ*(u) = ux, where ℓ is convex.

    >>> import wonderland as wl
    >>> loss_prox_splits_by_moreau(wl.losses.Hinge(), np.array([0.2]), np.ones(1), 0.5)
    """
    if not loss.convex:
        return
    p = np.asarray(point, np.float64)
    x = loss.prox(p, y, step)
    u = _into_domain(loss, (p - x) / step, y)
    gap = loss.value(x, y) + loss.conjugate(u, y) - _dot(loss, u, x)
    allowed = 1e-8 * _size(loss.value(x, y), _dot(loss, u, x), np.max(np.abs(p)) / step)
    if not np.all(np.abs(gap) <= allowed):
        raise AssertionError(f"Moreau: ℓ(x) + ℓ*(u) − ux is {np.max(np.abs(gap)):.3g}, not zero")


def loss_duality_gap_closes(loss: Loss, y: Any, C: float) -> None:
    """With one sample x = 1 the primal and the dual form meet: min ½z² + Cℓ = max C·dual − ½z².

    >>> import wonderland as wl
    >>> loss_duality_gap_closes(wl.losses.Hinge(), np.array([1.0, -1.0]), 0.5)
    """
    if not loss.convex:
        return
    y = np.asarray(y)
    shape = (*y.shape, int(y.max()) + 2) if loss.targets == "classes" else y.shape
    z = loss.prox(np.zeros(shape), y, C)
    a = -_into_domain(loss, -z / C, y) * _side(loss, y)
    primal = 0.5 * _dot(loss, z, z) + C * loss.value(z, y)
    dual = C * loss.dual(a, y) - 0.5 * _dot(loss, z, z)
    close(dual, primal, "the dual meets the primal", rtol=1e-8, atol=1e-8)


def loss_bends_as_stated(loss: Loss, y: Any) -> None:
    """convex, smoothness and strong_convexity are true on a grid, and could not be better.

    Args:
        loss: Any.
        y: Targets to try (n,).

    >>> import wonderland as wl
    >>> loss_bends_as_stated(wl.losses.SquaredHinge(), np.array([-1.0, 1.0]))
    """
    s = np.linspace(-REACH, REACH, 60_001)
    for target in np.asarray(y):
        value, slope = _line(loss, s, target)
        bend = np.diff(slope) / np.diff(s)
        chord = value[1:-1] - 0.5 * (value[2:] + value[:-2])
        upper, lower = float(np.abs(bend).max()), float(bend.min())
        if np.isinf(loss.smoothness):  # the value itself may jump
            upper = max(upper, 2 * float(np.abs(chord).max()) / (s[1] - s[0]) ** 2)
        _told_truly(loss, upper, lower)
        violated = bool(np.any(chord > 1e-9 * _size(value[1:-1])))
        if violated and loss.convex:
            raise AssertionError("the loss is not convex: a chord lies below it")
        if not violated and not loss.convex:
            raise AssertionError("the loss says that it is not convex, and no chord shows it")


def loss_is_calibrated_as_stated(loss: Loss) -> None:
    """What `classification_calibrated` says is what `losses.calibrated` finds.

    >>> import wonderland as wl
    >>> loss_is_calibrated_as_stated(wl.losses.Perceptron())
    """
    stated = loss.classification_calibrated
    if stated is not None and stated != calibrated(loss):
        raise AssertionError(f"classification_calibrated is {stated}, the risks say {not stated}")


@in_float64
def loss_is_the_same_on_host_and_jax(loss: Loss, z: Any, y: Any, step: float) -> None:
    """value, derivative, curvature, conjugate, prox and dual agree on NumPy and JAX arrays.

    >>> import wonderland as wl
    >>> loss_is_the_same_on_host_and_jax(wl.losses.Logistic(), np.zeros(2), np.ones(2), 0.5)
    """
    z = np.asarray(z, np.float64)
    slope = loss.derivative(z, y)
    slope = _into_domain(loss, slope, y) if loss.convex else slope
    for name, first in _questions(z, slope).items():
        rest = (y, step) if name == "prox" else (y,)
        host = getattr(loss, name)(first, *rest)
        traced = getattr(loss, name)(jnp.asarray(first), *map(jnp.asarray, rest))
        if any_jax(host) or not any_jax(traced):
            raise AssertionError(f"{name}: NumPy in, NumPy out; JAX in, JAX out")
        finite = np.isfinite(host)
        if not np.array_equal(finite, np.isfinite(traced)):
            raise AssertionError(f"{name} is finite on one side only")
        sentence = f"{name} is the same on host and JAX"
        close(np.asarray(traced)[finite], np.asarray(host)[finite], sentence, rtol=1e-9, atol=1e-12)


def _questions(z: Any, slope: Any) -> dict[str, Any]:
    asked = dict.fromkeys(("value", "derivative", "curvature", "prox"), z)
    return {**asked, "conjugate": slope, "dual": -slope}


def _told_truly(loss: Loss, upper: float, lower: float) -> None:
    """Compare the stated L and m with the largest |bend| and least bend found on the grid."""
    L, m = float(loss.smoothness), float(loss.strong_convexity)
    if upper > L * (1 + 1e-6) + 1e-6:
        raise AssertionError(f"smoothness is {L:.6g}, a bend of {upper:.6g} was found")
    if upper < (100.0 if np.isinf(L) else 0.999 * L - 1e-6):
        raise AssertionError(f"smoothness is {L:.6g}, no bend above {upper:.6g} was found")
    if loss.convex and abs(lower - m) > 1e-6:
        raise AssertionError(f"strong_convexity is {m:.6g}, the least bend is {lower:.6g}")


def _line(loss: Loss, s: np.ndarray, target: Any) -> tuple[Any, Any]:
    """(ℓ, dℓ/ds) along z = s, or along the unit direction (1, −1)/√2 of two classes."""
    y = np.full(len(s), target)
    if loss.targets != "classes":
        return loss.value(s, y), loss.derivative(s, y)
    unit = np.array([1.0, -1.0]) / np.sqrt(2.0)
    z, y = s[:, None] * unit, np.minimum(y, 1)
    return loss.value(z, y), loss.derivative(z, y) @ unit


def _grid(loss: Loss, u: Any, y: Any) -> list[Any]:
    """Points among which the supremum is: a grid, and the peak of the concave uz − ℓ."""
    low, high = np.full(np.shape(y), -200.0), np.full(np.shape(y), 200.0)
    for _ in range(200):  # thirds of the interval in which the peak is
        a, b = low + (high - low) / 3, high - (high - low) / 3
        rises = u * a - loss.value(a, y) < u * b - loss.value(b, y)
        low, high = np.where(rises, a, low), np.where(rises, high, b)
    return [low, high, *(np.full(np.shape(y), s) for s in np.linspace(-50, 50, 201))]


def _differences(f: Callable[[Any], Any], z: np.ndarray, direction: Any) -> tuple[Any, Any]:
    """Difference quotients to the left and to the right."""
    h = STEP * np.maximum(1.0, np.max(np.abs(z), axis=-1) if z.ndim > 1 else np.abs(z))
    here, shift = f(z), (h[:, None] if z.ndim > 1 else h) * direction
    return (here - f(z - shift)) / h, (f(z + shift) - here) / h


def _between(came: Any, ends: tuple[Any, Any], sentence: str, rtol: float) -> None:
    slack = rtol * (1.0 + np.abs(came))
    low, high = np.minimum(*ends) - slack, np.maximum(*ends) + slack
    if not np.all((came >= low) & (came <= high)):
        worst = np.max(np.maximum(low - came, came - high))
        raise AssertionError(f"{sentence}: it lies {worst:.3g} outside of both")


def _directions(loss: Loss, z: np.ndarray) -> list[Any]:
    return [np.float64(1.0)] if loss.targets != "classes" else list(np.eye(z.shape[-1]))


def _dot(loss: Loss, a: Any, b: Any) -> Any:
    return np.sum(a * b, axis=-1) if loss.targets == "classes" else a * b


def _side(loss: Loss, y: Any) -> Any:
    """s of the dual form."""
    return {"signs": y, "bits": 2.0 * y - 1.0}.get(loss.targets, 1.0)


def _into_domain(loss: Loss, slope: Any, y: Any) -> Any:
    """The slope moved by no more than rounding to where the conjugate is finite."""
    if loss.targets != "classes":
        moved = np.clip(slope, *loss.domain(y))
    else:
        chosen = 1.0 * (np.arange(slope.shape[-1]) == np.asarray(y)[..., None])
        q = np.maximum(slope + chosen, 0.0)
        moved = q / q.sum(axis=-1, keepdims=True) - chosen
    if not np.all(np.abs(moved - slope) <= 1e-7 * (1.0 + np.abs(slope))):
        raise AssertionError("a slope of the loss lies outside the domain of its conjugate")
    return moved


def _size(*values: Any) -> Any:
    return 1.0 + sum(np.abs(np.where(np.isfinite(v), v, 0.0)) for v in values)
