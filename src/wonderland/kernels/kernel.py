"""What a kernel is: k(x, z) = ⟨φ(x), φ(z)⟩ of one pair; matrices and compositions follow from it.

A kernel written for one pair of JAX vectors (d,), (d,) is complete: `matrix` derives the table by
`vmap`. What the library offers has a fast way on the host beside it (see `tiles`), and the laws in
`wonderland.testing` hold the two together. Sums, products and positive multiples of positive
semi-definite kernels are such kernels again:

    k₁ + k₂ ↔ [φ₁, φ₂],   k₁·k₂ ↔ φ₁ ⊗ φ₂,   c·k ↔ √c φ .

Reference: Schölkopf & Smola, Learning with Kernels (2002), chapters 2 and 13.
"""

from abc import abstractmethod
from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from wonderland.core.arrays import any_jax
from wonderland.core.errors import InputError
from wonderland.kernels.panels import Panels
from wonderland.kernels.tiles import Tile, apply_tiles, assemble, check_tables, working_type

__all__ = ["Kernel", "Product", "Scaled", "Sum", "parameter"]

EPS = float(np.finfo(np.float64).eps)
OPERATIONS = 8  # roundings of an entry besides those of its inner product


def parameter(value: Any) -> Any:
    """A number that a kernel holds: an array leaf, differentiable and never baked in."""
    return value if isinstance(value, jax.Array) else np.asarray(value, np.float64)


def like(value: Any, x: Any) -> Any:
    """A parameter in the type of the data, so that it does not widen the result."""
    if isinstance(x, jax.Array):
        return jnp.asarray(value, jnp.result_type(x.dtype, jnp.float32))
    return value


class Kernel(eqx.Module):
    """A symmetric function of two samples; compose with `+`, `*` and numbers.

    `psd` says whether every matrix of it is positive semi-definite (Mercer's condition), whatever
    the samples; `mercer` looks at a given table.

    >>> from wonderland.kernels import Gaussian, Linear
    >>> k = 2.0 * Gaussian(gamma=0.5) + Linear()
    >>> k.matrix(np.array([[0.0], [1.0]])).round(4)
    array([[2.    , 1.2131],
           [1.2131, 3.    ]])
    """

    @abstractmethod
    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) for one pair (d,), (d,): a number."""

    @property
    @abstractmethod
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""

    @abstractmethod
    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepare host tables; the result writes k(X[rows], Z[columns]) where it is told."""

    def panels(self, X: Any, Z: Any = None) -> Panels | None:
        """Rows in float32 with k(x_i, z_j) = `finish`(⟨a_i, b_j⟩); None where there are none.

        Args:
            X: (n, d), dense or CSR.
            Z: (m, d), or None for X itself.
        """
        return None

    def finish(self, inner: Any) -> Any:
        """From the inner products of `panels` to kernel values, in JAX."""
        raise NotImplementedError(f"{type(self).__name__} is no function of one inner product")

    def traced(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        """The matrix (n, m) of JAX arrays: the pairs, mapped."""
        return jax.vmap(lambda x: jax.vmap(lambda z: self(x, z))(Z))(X)

    def matrix(
        self, X: Any, Z: Any = None, out: np.ndarray | None = None, *, dtype: Any = None
    ) -> Any:
        """K_ij = k(x_i, z_j) (n, m).

        Args:
            X: (n, d): NumPy or CSR, worked on by all cores on the host; or a JAX array, worked on
                by XLA and differentiable.
            Z: (m, d); None for X itself, which costs half.
            out: Where to write (n, m), to spare the allocation.
            dtype: float32 or float64; by default float32 where the tables are.

        >>> from wonderland.kernels import Gaussian
        >>> Gaussian(gamma=1.0).matrix(np.zeros((2, 3)), np.zeros((1, 3)))
        array([[1.],
               [1.]])
        """
        if any_jax(X, Z, self):
            return self.traced(jnp.asarray(X), jnp.asarray(X if Z is None else Z))
        X, Z = _table(X), None if Z is None else _table(Z)
        check_tables(X, Z)
        n, m = X.shape[0], (X if Z is None else Z).shape[0]
        kind = out.dtype if out is not None else working_type(X, Z, dtype)
        if out is None:
            out = np.empty((n, m), kind)
        elif out.shape != (n, m):
            raise InputError(f"out has shape {out.shape}", f"({n}, {m})", "Pass out=None")
        return assemble(self.tile(X, Z, kind), n, m, out, symmetric=Z is None)

    def diagonal(self, X: Any) -> Any:
        """k(x_i, x_i) for each row (n,)."""
        if any_jax(X, self):
            return jax.vmap(lambda x: self(x, x))(jnp.asarray(X))
        X = _table(X)
        rows = [self.matrix(X[i : i + 1]).ravel() for i in range(X.shape[0])]
        return np.concatenate(rows) if rows else np.zeros(0)

    def apply(self, X: Any, Z: Any, V: np.ndarray) -> np.ndarray:
        """K(X, Z) V (n, t) on the host, without K: each tile is used as soon as it is made.

        Args:
            X: (n, d).
            Z: (m, d).
            V: (m, t); float32 tiles where all three are float32.

        >>> from wonderland.kernels import Linear
        >>> Linear().apply(np.eye(2), np.ones((1, 2)), np.ones((1, 1)))
        array([[1.],
               [1.]])
        """
        X, Z = _table(X), _table(Z)
        check_tables(X, Z)
        kind = np.result_type(working_type(X, Z), V.dtype)
        return apply_tiles(self.tile(X, Z, kind), X.shape[0], V.astype(kind, copy=False))

    def frequencies(self, chance: np.random.Generator, count: int, d: int) -> np.ndarray:
        """Draws ω (count, d) with E cos⟨ω, x − z⟩ = k(x, z)/k(0, 0), for stationary kernels."""
        raise InputError(
            f"random features for {type(self).__name__}, which is no function of x − z alone",
            "a Gaussian, Laplace or Matern kernel, a product or a multiple of such",
            "Pass approximation=wl.kernels.Nystroem(300), which takes every kernel",
        )

    def noise(self, X: Any) -> float:
        """What rounding may take from an entry of the float64 matrix, about ε·d·max k(x, x)."""
        sizes = np.abs(np.asarray(self.diagonal(X), np.float64))
        return EPS * (X.shape[1] + OPERATIONS) * float(sizes.max(initial=0.0))

    def __add__(self, other: Any) -> "Kernel":
        return Sum((self, _kernel(other)))

    def __mul__(self, other: Any) -> "Kernel":
        return Product((self, other)) if isinstance(other, Kernel) else Scaled(self, other)

    __radd__, __rmul__ = __add__, __mul__


def _table(X: Any) -> Any:
    return X.tocsr() if sp.issparse(X) else np.asarray(X)


def _kernel(value: Any) -> Kernel:
    if isinstance(value, Kernel):
        return value
    raise InputError(
        f"{value!r} was added to a kernel",
        "another kernel",
        "For a constant c add c * Polynomial(degree=0)",
    )


class Sum(Kernel):
    """k₁(x, z) + k₂(x, z) + … of any number of kernels.

    >>> from wonderland.kernels import Linear
    >>> float(Sum((Linear(), Linear()))(np.ones(2), np.ones(2)))
    4.0
    """

    parts: tuple[Kernel, ...]

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        return reduce(lambda a, b: a + b, [part(x, z) for part in self.parts])

    @property
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""
        return all(part.psd for part in self.parts)

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        return _combined([part.tile(X, Z, dtype) for part in self.parts], np.add)

    def traced(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        """The matrix of JAX arrays (n, m)."""
        return reduce(jnp.add, [part.traced(X, Z) for part in self.parts])

    def diagonal(self, X: Any) -> Any:
        """k(x_i, x_i) for each row (n,)."""
        return reduce(lambda a, b: a + b, [part.diagonal(X) for part in self.parts])

    def noise(self, X: Any) -> float:
        """What rounding may take from an entry."""
        return sum(part.noise(X) for part in self.parts)


class Product(Kernel):
    """k₁(x, z)·k₂(x, z)·… of any number of kernels.

    >>> from wonderland.kernels import Linear
    >>> float(Product((Linear(), Linear()))(np.ones(2), np.ones(2)))
    4.0
    """

    parts: tuple[Kernel, ...]

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        return reduce(lambda a, b: a * b, [part(x, z) for part in self.parts])

    @property
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""
        return all(part.psd for part in self.parts)

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        return _combined([part.tile(X, Z, dtype) for part in self.parts], np.multiply)

    def traced(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        """The matrix of JAX arrays (n, m)."""
        return reduce(jnp.multiply, [part.traced(X, Z) for part in self.parts])

    def diagonal(self, X: Any) -> Any:
        """k(x_i, x_i) for each row (n,)."""
        return reduce(lambda a, b: a * b, [part.diagonal(X) for part in self.parts])

    def noise(self, X: Any) -> float:
        """What rounding may take from an entry."""
        sizes = [float(np.abs(part.diagonal(X)).max(initial=0.0)) for part in self.parts]
        return sum(
            part.noise(X) * float(np.prod(sizes[:k] + sizes[k + 1 :]))
            for k, part in enumerate(self.parts)
        )

    def frequencies(self, chance: np.random.Generator, count: int, d: int) -> np.ndarray:
        """Sums of independent draws: the transform of a product is a convolution."""
        drawn = [part.frequencies(chance, count, d) for part in self.parts]
        return np.sum(drawn, axis=0)


def _combined(tiles: list[Tile], join: np.ufunc) -> Tile:
    def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
        tiles[0](rows, columns, out)
        other = np.empty(out.shape, out.dtype)
        for next_tile in tiles[1:]:
            next_tile(rows, columns, other)
            join(out, other, out=out)

    return tile


class Scaled(Kernel):
    """c·k(x, z).

    >>> from wonderland.kernels import Linear
    >>> float(Scaled(Linear(), 3.0)(np.ones(2), np.ones(2)))
    6.0
    """

    kernel: Kernel
    factor: Any = eqx.field(converter=parameter)

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        return like(self.factor, x) * self.kernel(x, z)

    @property
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""
        return self.kernel.psd and bool(self.factor >= 0)

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        inner, factor = self.kernel.tile(X, Z, dtype), dtype.type(self.factor)

        def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
            inner(rows, columns, out)
            out *= factor

        return tile

    def panels(self, X: Any, Z: Any = None) -> Panels | None:
        """Those of the kernel."""
        found = self.kernel.panels(X, Z)
        return None if found is None else found._replace(kernel=self)

    def finish(self, inner: Any) -> Any:
        """c·k."""
        return like(self.factor, inner) * self.kernel.finish(inner)

    def traced(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        """The matrix of JAX arrays (n, m)."""
        return like(self.factor, X) * self.kernel.traced(X, Z)

    def diagonal(self, X: Any) -> Any:
        """k(x_i, x_i) for each row (n,)."""
        return like(self.factor, X) * self.kernel.diagonal(X)

    def noise(self, X: Any) -> float:
        """What rounding may take from an entry."""
        return abs(float(self.factor)) * self.kernel.noise(X)

    def frequencies(self, chance: np.random.Generator, count: int, d: int) -> np.ndarray:
        """Those of the kernel."""
        return self.kernel.frequencies(chance, count, d)
