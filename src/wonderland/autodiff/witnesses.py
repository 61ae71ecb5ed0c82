"""The Jacobian of one function at one point, by every method there is: tables to be compared."""

import importlib.util
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from wonderland.autodiff.complex_step import NotAnalyticError, complex_slopes
from wonderland.autodiff.differences import central
from wonderland.autodiff.kinks import one_sided
from wonderland.autodiff.probe import is_inexact
from wonderland.autodiff.symbolic import NotSymbolicError, symbolic_jacobian

__all__ = ["Witnesses"]

_BATCH = 16  # columns differenced at once
_SYMBOLIC_INPUTS = 16  # unknowns up to which a formula is tried unasked


class Witnesses:
    """One check: f as a function of a flat vector (n,) to a flat vector (m,)."""

    def __init__(
        self,
        closed: jex.ClosedJaxpr,
        at: list[jax.Array],
        eps: float,
        rng: np.random.Generator,
        most: int,
    ) -> None:
        self.closed, self.at = closed, at
        self.eps = max(eps, max(float(jnp.finfo(part.dtype).eps) for part in at))
        self.x = jnp.concatenate([part.ravel() for part in at])
        self.y = self.flat(self.x)
        self.columns = _some(self.x.size, most, rng)
        self.rows = _some(self.y.size, most, rng)
        self.batch = self._batch()

    def _batch(self) -> int | None:
        """How many columns go at once; one by one where the program has no `vmap`."""
        try:
            jax.eval_shape(jax.vmap(self.flat), self.x[None])
        except (NotImplementedError, ValueError):
            return None
        return _BATCH

    def flat(self, x: jax.Array) -> jax.Array:
        """The function from (n,) to (m,)."""
        outputs = jex.jaxpr_as_fun(self.closed)(*self.split(x))
        real = [jnp.ravel(out).astype(x.dtype) for out in outputs if is_inexact(out)]
        return jnp.concatenate(real)

    def split(self, x: jax.Array) -> list[jax.Array]:
        """A vector (n,) as the inputs of the program."""
        ends = np.cumsum([part.size for part in self.at])
        parts = jnp.split(x, ends[:-1])
        return [
            part.reshape(at.shape).astype(at.dtype) for part, at in zip(parts, self.at, strict=True)
        ]

    def left_out(self) -> list[str]:
        """Sentences on what is not looked at, and how precisely the rest can be."""
        notes = []
        for kept, whole, what in (
            (self.columns, self.x.size, "inputs"),
            (self.rows, self.y.size, "outputs"),
        ):
            if len(kept) < whole:
                notes.append(
                    f"{len(kept)} of {whole} {what}, chosen at random; raise most for more"
                )
        if self.eps > 1e-15:
            notes.append(f"the program computes to a relative accuracy of {self.eps:.1g} only")
        return notes

    def either(self, method: Callable[[], np.ndarray], notes: list[str]) -> np.ndarray | None:
        """What a method gives, or None and a note where it does not apply."""
        try:
            return method()
        except NotAnalyticError as reason:
            notes.append(f"no complex step: {reason} is not continued to complex numbers here")
        except (NotImplementedError, TypeError, ValueError) as reason:
            told = str(reason).strip().splitlines()[0]
            notes.append(f"no {method.__name__} mode: {told}")
        return None

    def reverse(self) -> np.ndarray:
        """Rows e_iᵀ J."""

        def rows(x: jax.Array) -> jax.Array:
            pull = jax.vjp(self.flat, x)[1]
            units = jnp.zeros((len(self.rows), self.y.size), x.dtype)
            units = units.at[np.arange(len(self.rows)), self.rows].set(1)
            return jax.lax.map(lambda u: pull(u)[0], units, batch_size=self.batch)[:, self.columns]

        return np.asarray(jax.jit(rows)(self.x))

    def forward(self) -> np.ndarray:
        """Columns J e_j."""
        return self._by_columns(lambda x, e: jax.jvp(self.flat, (x,), (e,))[1])

    def complex_step(self) -> np.ndarray:
        """Columns Im f(x + i h e_j) / h."""

        def column(x: jax.Array, e: jax.Array) -> jax.Array:
            slopes = complex_slopes(self.closed, self.split(x), self.split(e))
            return jnp.concatenate([jnp.ravel(slope) for slope in slopes])

        return self._by_columns(column)

    def central(self) -> tuple[np.ndarray, np.ndarray]:
        """Columns by central differences, and their expected errors."""

        def column(x: jax.Array, e: jax.Array) -> jax.Array:
            (slope,) = central(lambda z: [self.flat(z)], [x], [e], first=0.1, eps=self.eps)
            return jnp.stack([slope.value, slope.error])

        both = self._by_columns(column, scale=self._sizes())
        return both[0], both[1]

    def one_sided(self) -> np.ndarray:
        """The two slopes at each entry, (2, rows, columns)."""

        def column(x: jax.Array, e: jax.Array) -> jax.Array:
            return jnp.stack(one_sided(self.flat, x, e, self.eps**0.5))

        return self._by_columns(column, scale=self._sizes())

    def _sizes(self) -> np.ndarray:
        """The natural length of a step in each column."""
        size = np.abs(np.asarray(self.x))[self.columns]
        return np.where(size > 0, size, 1.0)

    def _by_columns(
        self, column: Callable[[jax.Array, jax.Array], jax.Array], scale: np.ndarray | None = None
    ) -> np.ndarray:
        lengths = jnp.ones(len(self.columns)) if scale is None else jnp.asarray(scale)

        def one(pair: Any) -> jax.Array:
            index, length = pair
            e = jnp.zeros_like(self.x).at[index].set(length.astype(self.x.dtype))
            return column(self.x, e)[..., self.rows] / length

        indices = jnp.asarray(self.columns)
        found = jax.jit(lambda: jax.lax.map(one, (indices, lengths), batch_size=self.batch))()
        return np.moveaxis(np.asarray(found), 0, -1)

    def scale(self, found: np.ndarray) -> np.ndarray:
        """What rounding errors of a derivative are relative to: its row, and f itself."""
        size = np.abs(np.where(np.isfinite(found), found, 0))
        value = np.abs(np.asarray(self.y))[self.rows][:, None]
        value = np.where(np.isfinite(value), value, 0) / np.maximum(1, self._sizes())
        return size + size.max(axis=1, keepdims=True) + value

    def formula(self, notes: list[str], *, symbolic: bool | None) -> np.ndarray | None:
        """SymPy's derivative, where the program is small enough or it is insisted on."""
        if symbolic is None:
            small = self.x.size <= _SYMBOLIC_INPUTS and self.y.size <= _SYMBOLIC_INPUTS
            symbolic = small and importlib.util.find_spec("sympy") is not None
        if not symbolic:
            return None
        try:
            return symbolic_jacobian(self.closed, self.at)[self.rows][:, self.columns]
        except NotSymbolicError as reason:
            notes.append(f"no formula: {reason}")
            return None


def _some(size: int, most: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(size) if size <= most else np.sort(rng.choice(size, most, replace=False))
