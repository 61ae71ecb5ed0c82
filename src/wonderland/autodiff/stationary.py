"""Minimum, maximum or saddle: what a point with zero gradient is, and how to leave it.

    ∇f(x) = 0 and   λ_min(H) > 0            minimum
                    λ_max(H) < 0            maximum
                    λ_min(H) < 0 < λ_max    saddle: f falls along the eigenvector of λ_min

H = ∇²f(x) is never formed: its ends come from Lanczos on Hessian-vector products. Where an end is
zero the second derivative cannot tell; the third and fourth along that direction are then asked.

Reference: J. Nocedal and S. Wright, Numerical Optimization, 2006, theorems 2.2–2.4.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from wonderland.autodiff.arguments import scalar
from wonderland.autodiff.lanczos import Ritz, Spectrum, extremes, unseen
from wonderland.autodiff.modes import directional_derivative
from wonderland.autodiff.widen import widened

__all__ = ["Stationary", "stationary"]

_CHANCE = 1e-3  # an unseen negative eigenvalue less probable than this is none


class Stationary(NamedTuple):
    """What `stationary` found.

    Attributes:
        kind: "minimum", "maximum", "saddle", "undecided" or "not stationary".
        value: f(x).
        gradient_norm: ‖∇f(x)‖.
        lowest: The smallest eigenvalue of the Hessian found.
        lowest_error: An eigenvalue lies within this of it.
        highest: The largest, and
        highest_error: its bound.
        escape: A direction along which f falls, a pytree like x of length one; None at a minimum
            and where none was found.
        drop: How much f was measured to fall along it, f(x) − min over t of f(x + t · escape).
        chance: The probability that a smaller eigenvalue has gone unseen and the verdict is wrong.
        products: Hessian-vector products used.
        sentence: All this in words.
    """

    kind: str
    value: float
    gradient_norm: float
    lowest: float
    lowest_error: float
    highest: float
    highest_error: float
    escape: Any
    drop: float
    chance: float
    products: int
    sentence: str

    def __str__(self) -> str:
        return (
            f"{self.kind}: {self.sentence}\n"
            f"f = {self.value:.6g}, ‖∇f‖ = {self.gradient_norm:.2g}, eigenvalues from "
            f"{self.lowest:.6g} (± {self.lowest_error:.1g}) to {self.highest:.6g} "
            f"(± {self.highest_error:.1g}) by {self.products} Hessian-vector products"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the direction as nested lists."""
        fields = self._asdict()
        fields["escape"] = jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), self.escape)
        return fields


def stationary(
    f: Callable[..., Any],
    x: Any,
    *args: Any,
    tolerance: float = 1e-5,
    flat: float = 1e-8,
    steps: int = 300,
    seed: int = 0,
) -> Stationary:
    """Say what kind of stationary point x is, with the direction of escape.

    Args:
        f: A scalar JAX function f(x, *args), twice differentiable at x.
        x: Where: any pytree of real numbers.
        *args: Further arguments, held constant.
        tolerance: x counts as stationary if ‖∇f‖ / max|λ| ≤ tolerance · (1 + ‖x‖): the shift of x
            that the gradient asks for.
        flat: Eigenvalues below flat · max|λ| count as zero.
        steps: Most Hessian-vector products; up to as many unknowns the whole spectrum is seen.
        seed: Of the random start.

    >>> import jax.numpy as jnp
    >>> found = stationary(lambda x: x[0] ** 2 - x[1] ** 2, jnp.zeros(2))
    >>> found.kind, round(found.lowest, 9), round(found.highest, 9)
    ('saddle', -2.0, 2.0)
    >>> abs(found.escape).round(6)
    Array([0., 1.], dtype=float64)
    """
    with widened(f, x, args) as (closed, at, tree):
        point = _Point(closed, at)
        spectrum = extremes(
            point.product,
            point.x.size,
            steps=steps,
            enough=lambda spectrum: _enough(spectrum, flat, point.x.size),
            rng=np.random.default_rng(seed),
        )
        finding = _decide(point, spectrum, tolerance, flat)
        return _told(point, spectrum, finding, tree)


def _enough(spectrum: Spectrum, flat: float, n: int) -> bool:
    """Whether the ends are known well enough for a verdict that will not change."""
    low, floor = spectrum.lowest, flat * spectrum.size
    if spectrum.highest.error > 1e-3 * spectrum.size:
        return False
    if low.value <= floor:
        return low.error <= 1e-6 * abs(low.value) + 0.01 * floor
    sure = unseen(spectrum, low.value / (spectrum.highest.value - low.value or 1.0), n)
    return low.error <= 0.01 * low.value and sure <= 0.1 * _CHANCE


class _Finding(NamedTuple):
    kind: str
    sentence: str
    escape: np.ndarray | None = None
    drop: float = 0.0
    chance: float = 0.0


class _Point:
    """f around x, as a function of a flat vector (n,)."""

    def __init__(self, closed: jex.ClosedJaxpr, at: list[jax.Array]) -> None:
        self.x = jnp.concatenate([part.ravel() for part in at])
        ends, shapes = np.cumsum([part.size for part in at])[:-1], [part.shape for part in at]
        run = jex.jaxpr_as_fun(closed)

        def f(z: jax.Array) -> jax.Array:
            parts = jnp.split(z, ends)
            return run(*(part.reshape(s) for part, s in zip(parts, shapes, strict=True)))

        self.f = jax.jit(lambda z: scalar(f(z), "a kind of stationary point"))
        self.value = float(self.f(self.x))
        slope, self._product = jax.linearize(jax.grad(self.f), self.x)
        self._product = jax.jit(self._product)
        self.slope = np.asarray(slope, float)
        self.eps = float(jnp.finfo(self.x.dtype).eps)

    def product(self, v: np.ndarray) -> np.ndarray:
        """H v."""
        return np.asarray(self._product(jnp.asarray(v, self.x.dtype)), float)

    def along(self, v: np.ndarray, order: int) -> float:
        """The derivative of that order at t = 0 of f(x + t v)."""
        return float(directional_derivative(self.f, self.x, jnp.asarray(v), order=order))

    def fall(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        """The largest fall of f found along ±v, and the direction it is in."""
        reach = (1 + float(jnp.linalg.norm(self.x))) * 2.0 ** -np.arange(28)
        paths = np.concatenate([reach, -reach])
        many = jax.jit(lambda t: jax.lax.map(lambda s: self.f(self.x + s * jnp.asarray(v)), t))
        values = np.asarray(many(jnp.asarray(paths, self.x.dtype)), float)
        falls = np.where(np.isfinite(values), self.value - values, -np.inf)
        best = int(np.argmax(falls))
        noise = 8 * self.eps * abs(self.value)
        return (float(falls[best]) if falls[best] > noise else 0.0), np.sign(paths[best]) * v


def _decide(point: _Point, spectrum: Spectrum, tolerance: float, flat: float) -> _Finding:
    low, high = spectrum.lowest, spectrum.highest
    slope = float(np.linalg.norm(point.slope))
    if not np.isfinite([slope, low.value, high.value]).all():
        return _Finding("undecided", "The derivatives are not finite here.")
    near = tolerance * (1 + float(jnp.linalg.norm(point.x)))
    if slope > near * spectrum.size:
        drop, escape = point.fall(-point.slope / slope)
        told = "The gradient is not zero; f falls along its negative."
        return _Finding("not stationary", told, escape, drop)
    floor = flat * spectrum.size
    if low.value < -floor:
        return _below(point, low, high, floor)
    if low.value <= floor:
        return _flat(point, low, high, floor)
    chance = unseen(spectrum, low.value / (high.value - low.value or 1.0), point.x.size)
    if chance > _CHANCE:
        told = (
            f"All curvatures seen are positive, but after {spectrum.steps} products a smaller one "
            f"may be hidden (probability ≤ {chance:.2g}): raise steps."
        )
        return _Finding("undecided", told, chance=chance)
    return _Finding("minimum", "The curvature is positive in every direction.", chance=chance)


def _below(point: _Point, low: Ritz, high: Ritz, floor: float) -> _Finding:
    drop, escape = point.fall(low.vector)
    if high.value > floor:
        told = "f rises along some directions and falls along others; escape is the steepest fall."
        return _Finding("saddle", told, escape, drop)
    if high.value < -floor:
        return _Finding("maximum", "The curvature is negative everywhere.", escape, drop)
    third, fourth = point.along(high.vector, 3), point.along(high.vector, 4)
    size = max(-low.value, 1e-300)
    if abs(third) > 1e-6 * size or fourth > 1e-6 * size:
        told = "f falls along some directions and, by its higher derivatives, rises along others."
        return _Finding("saddle", told, escape, drop)
    told = "No direction of rising curvature; along the flattest the second derivative is zero."
    return _Finding("undecided", told, escape, drop)


def _flat(point: _Point, low: Ritz, high: Ritz, floor: float) -> _Finding:
    """λ_min = 0: the line along its eigenvector is looked at to fourth order."""
    third, fourth = point.along(low.vector, 3), point.along(low.vector, 4)
    size = max(high.value, abs(third), abs(fourth), 1e-300)
    drop, escape = point.fall(low.vector)
    only = point.x.size == 1
    if abs(third) > 1e-6 * size:
        escape = -np.sign(third) * low.vector
        told = "Flat to second order, with a third derivative: f falls on one side of a line."
        return _Finding("saddle", told, escape, drop)
    if fourth < -1e-6 * size:
        told = "Flat to second order along a line on which the fourth derivative is negative."
        return _Finding("maximum" if only else "saddle" if high.value > floor else "undecided",
                        told, escape, drop)  # fmt: skip
    if fourth > 1e-6 * size and only:
        return _Finding("minimum", "Flat to second order; the fourth derivative is positive.")
    told = "The curvature is zero along a direction: a valley, or a higher order decides."
    return _Finding("undecided", told, escape if drop > 0 else None, drop)


def _told(point: _Point, spectrum: Spectrum, finding: _Finding, tree: Any) -> Stationary:
    low, high = spectrum.lowest, spectrum.highest
    escape = None
    if finding.escape is not None:
        leaves = jax.tree.leaves(tree)
        ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
        parts = np.split(finding.escape, ends)
        shaped = [
            jnp.asarray(part.reshape(leaf.shape), leaf.dtype)
            for part, leaf in zip(parts, leaves, strict=True)
        ]
        escape = jax.tree.unflatten(jax.tree.structure(tree), shaped)
    return Stationary(
        kind=finding.kind,
        value=point.value,
        gradient_norm=float(np.linalg.norm(point.slope)),
        lowest=low.value,
        lowest_error=low.error,
        highest=high.value,
        highest_error=high.error,
        escape=escape,
        drop=finding.drop,
        chance=finding.chance,
        products=spectrum.steps,
        sentence=finding.sentence,
    )
