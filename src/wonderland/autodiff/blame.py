"""Which step of a program has a wrong derivative: each is tried alone, where it runs.

For every equation y = g(a), with the tangent ȧ that reaches it and a random weighting u of y,

    forward   ẏ = g'(a) ȧ      against central differences of g along ȧ
    reverse   ⟨u, ẏ⟩           against ⟨g'(a)ᵀ u, ȧ⟩

A derivative rule somebody wrote by hand (`custom_jvp`, `custom_vjp`) is one equation here, so a
mistake in it is found by name and line, however deep in loops and branches it sits.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from wonderland.autodiff.differences import Slope, central
from wonderland.autodiff.probe import Dual, bind, is_inexact, probed

__all__ = ["Blame", "blamed"]

_LEVELS = 6
_BEYOND = 10.0  # how many times its expected error a difference must be to count


class Blame(NamedTuple):
    """One equation whose derivative is not that of its value.

    Attributes:
        primitive: The operation, or the function that carries its own rule.
        mode: "forward" or "reverse": the rule that is wrong.
        found: What the rule gives, along the direction tried.
        expected: What differences of the value give.
        line: Where it is in the source.
        path: The loops and functions around it.
    """

    primitive: str
    mode: str
    found: float
    expected: float
    line: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        place = f" at {self.line}" if self.line else ""
        within = f", inside {' > '.join(self.path)}" if self.path else ""
        told = f"its {self.mode} rule gives {self.found:.6g}, differences {self.expected:.6g}"
        return f"{self.primitive}{place}{within}: {told}"


def blamed(
    closed: jex.ClosedJaxpr, at: Sequence[jax.Array], *, eps: float, seed: int
) -> list[Blame]:
    """The equations whose derivative parts ways with their value, in program order."""
    rng = np.random.default_rng(seed)
    along = [jnp.asarray(rng.normal(size=part.shape), part.dtype) for part in at]
    sites, run = probed(closed, _RuleProbe(eps, seed))
    _, _, table = jax.jit(run)(at, along)
    return [
        Blame(site.primitive, "reverse" if row[1] else "forward", row[2], row[3], *site[1:3])
        for site, row in zip(sites, np.asarray(table, float), strict=True)
        if row[0] > _BEYOND
    ]


class _RuleProbe(NamedTuple):
    """Measures (error / expected error, reverse?, found, expected) of each equation."""

    eps: float
    seed: int

    @property
    def width(self) -> int:
        return 4

    def watches(self, equation: jex.JaxprEqn) -> bool:
        """Everything that computes with real numbers."""
        return any(
            jnp.issubdtype(getattr(out.aval, "dtype", bool), jnp.floating)
            for out in equation.outvars
        )

    def measure(self, equation: jex.JaxprEqn, inputs: list[Dual], outputs: list[Dual]) -> jax.Array:
        """The worse of the two comparisons."""
        moving = [k for k, (_, tangent) in enumerate(inputs) if tangent is not None]
        values = [value for value, _ in inputs]

        def g(*new: Any) -> list[Any]:
            full = list(values)
            for k, value in zip(moving, new, strict=True):
                full[k] = value
            return [out for out in bind(equation, full) if _real(out)]

        at, along = [values[k] for k in moving], [inputs[k][1] for k in moving]
        slopes = _scaled_central(g, at, along, self.eps)
        pushed = [tangent for value, tangent in outputs if _real(value)]
        kept = [
            self._forward(pushed_out, slope)
            for pushed_out, slope in zip(pushed, slopes, strict=True)
        ]
        kept.append(self._reverse(g, at, along, slopes))
        rows = jnp.stack(kept)
        return rows[jnp.argmax(rows[:, 0])]

    def _forward(self, tangent: Any, slope: Slope) -> jax.Array:
        found, wanted = jnp.ravel(tangent), jnp.ravel(slope.value)
        if found.size == 0:
            return jnp.full(4, -jnp.inf)
        allowed = jnp.ravel(slope.error) + 100 * self.eps * (jnp.abs(found) + jnp.abs(wanted))
        ratio = jnp.abs(found - wanted) / jnp.maximum(allowed, jnp.finfo(found.dtype).tiny)
        ratio = jnp.where(jnp.isfinite(found), ratio, jnp.inf)
        worst = jnp.argmax(ratio)
        return _row(ratio[worst], 0.0, found[worst], wanted[worst])

    def _reverse(
        self, g: Any, at: Sequence[Any], along: Sequence[Any], slopes: Sequence[Slope]
    ) -> jax.Array:
        """⟨g'(a)ᵀu, ȧ⟩ against ⟨u, D⟩ with D the central differences."""
        try:
            values, pull = jax.vjp(g, *at)
            keys = jax.random.split(jax.random.key(self.seed), len(values))
            weights = [
                jax.random.normal(key, jnp.shape(v), jnp.result_type(v))
                for key, v in zip(keys, values, strict=True)
            ]
            back = pull(weights)
        except (NotImplementedError, TypeError, ValueError):  # has no reverse mode: nothing to test
            return jnp.full(4, -jnp.inf)
        found = _inner(back, along)
        wanted = _inner(weights, [slope.value for slope in slopes])
        sizes = [jnp.abs(slope.value) * 100 * self.eps + slope.error for slope in slopes]
        allowed = _inner([jnp.abs(u) for u in weights], sizes)
        ratio = jnp.abs(found - wanted) / jnp.maximum(allowed, jnp.finfo(found.dtype).tiny)
        return _row(jnp.where(jnp.isnan(ratio), 0, ratio), 1.0, found, wanted)


def _scaled_central(g: Any, at: Sequence[Any], along: Sequence[Any], eps: float) -> list[Slope]:
    """Central differences along ȧ with steps in proportion to the size of a."""
    length = jnp.max(jnp.stack([jnp.max(jnp.abs(v), initial=0) for v in along]))
    length = jnp.where((length > 0) & jnp.isfinite(length), length, 1)
    sizes = [jnp.where(a == 0, jnp.inf, jnp.abs(a)).min(initial=jnp.inf) for a in at]
    size = jnp.min(jnp.stack(sizes))
    size = jnp.where(jnp.isfinite(size), jnp.clip(size, 1e-3, 1e3), 1)
    factor = size / length
    unit = [v * factor.astype(v.dtype) for v in along]
    slopes = central(g, at, unit, first=0.05, levels=_LEVELS, eps=eps)
    return [Slope(s.value / factor, s.error / factor) for s in slopes]


def _inner(a: Sequence[Any], b: Sequence[Any]) -> jax.Array:
    return sum((jnp.sum(p * q) for p, q in zip(a, b, strict=True)), start=jnp.zeros(()))


def _row(*numbers: Any) -> jax.Array:
    return jnp.stack([jnp.asarray(number, jnp.result_type(float)) for number in numbers])


def _real(value: Any) -> bool:
    return is_inexact(value) and not jnp.iscomplexobj(value)
