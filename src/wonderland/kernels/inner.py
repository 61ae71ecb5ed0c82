"""Kernels of the inner product ⟨x, z⟩: linear, polynomial, sigmoid, cosine."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from wonderland.core.arrays import any_jax, product
from wonderland.core.errors import InputError
from wonderland.kernels.kernel import Kernel, like, parameter
from wonderland.kernels.panels import Panels
from wonderland.kernels.tiles import Tile, products, squares

__all__ = ["Cosine", "Linear", "Polynomial", "Sigmoid"]


class Inner(Kernel):
    """Functions of ⟨x, z⟩."""

    def panels(self, X: Any, Z: Any = None) -> Panels | None:
        """The rows themselves."""
        if sp.issparse(X) or sp.issparse(Z):
            return None
        left = np.asarray(X, np.float32)
        return Panels(self, left, left if Z is None else np.asarray(Z, np.float32))


class Linear(Inner):
    """k(x, z) = ⟨x, z⟩; φ is the identity.

    >>> float(Linear()(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    11.0
    """

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        return x @ z

    @property
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""
        return True

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        return products(X, Z, 1.0, 0.0, dtype)

    def finish(self, inner: Any) -> Any:
        """k itself."""
        return inner

    def traced(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        """The matrix of JAX arrays (n, m)."""
        return product(X, Z.T)

    def diagonal(self, X: Any) -> Any:
        """k(x_i, x_i) for each row (n,)."""
        return squares(X)


class Polynomial(Inner):
    """k(x, z) = (γ⟨x, z⟩ + c)^q.

    φ holds all monomials up to degree q; see `quadratic_features` for q = 2.

    Args:
        degree: q ≥ 0, a whole number.
        gamma: γ.
        coef0: c; the kernel is positive semi-definite for γ, c ≥ 0.

    >>> float(Polynomial(2)(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    144.0
    """

    degree: int = eqx.field(static=True)
    gamma: Any = eqx.field(converter=parameter)
    coef0: Any = eqx.field(converter=parameter)

    def __init__(self, degree: int = 3, gamma: Any = 1.0, coef0: Any = 1.0) -> None:
        if int(degree) != degree or degree < 0:
            raise InputError(
                f"degree is {degree!r}", "a whole number ≥ 0", "Pass degree=2 for a quadratic"
            )
        self.degree, self.gamma, self.coef0 = int(degree), gamma, coef0

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        return (like(self.gamma, x) * (x @ z) + like(self.coef0, x)) ** self.degree

    @property
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""
        return bool(self.gamma >= 0) and bool(self.coef0 >= 0)

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        inner, degree = products(X, Z, self.gamma, self.coef0, dtype), self.degree

        def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
            inner(rows, columns, out)
            power(out, degree)

        return tile

    def finish(self, inner: Any) -> Any:
        """(γ⟨x, z⟩ + c)^q."""
        return (like(self.gamma, inner) * inner + like(self.coef0, inner)) ** self.degree

    def traced(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        """The matrix of JAX arrays (n, m)."""
        return self.finish(product(X, Z.T))

    def diagonal(self, X: Any) -> Any:
        """k(x_i, x_i) for each row (n,)."""
        return (like(self.gamma, X) * squares(X) + like(self.coef0, X)) ** self.degree


def power(out: np.ndarray, degree: int) -> None:
    """out ← out^degree by squarings: NumPy's own power is far slower than products."""
    base, left = (out.copy() if degree > 2 else out), degree
    if degree == 0:
        out[:] = 1.0
    if degree == 2:
        np.multiply(out, out, out=out)
    if degree <= 2:
        return
    if left % 2 == 0:
        out[:] = 1.0
    left //= 2
    while left:
        np.multiply(base, base, out=base)
        if left % 2:
            out *= base
        left //= 2


class Sigmoid(Inner):
    """k(x, z) = tanh(γ⟨x, z⟩ + c): not positive semi-definite in general, whatever γ and c.

    Args:
        gamma: γ.
        coef0: c.

    >>> float(Sigmoid(1.0, 0.0)(np.zeros(2), np.ones(2)))
    0.0
    """

    gamma: Any = eqx.field(converter=parameter, default=1.0)
    coef0: Any = eqx.field(converter=parameter, default=1.0)

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        return jnp.tanh(like(self.gamma, x) * (x @ z) + like(self.coef0, x))

    @property
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""
        return False

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        inner = products(X, Z, self.gamma, self.coef0, dtype)

        def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
            inner(rows, columns, out)
            np.tanh(out, out=out)

        return tile

    def finish(self, inner: Any) -> Any:
        """tanh(γ⟨x, z⟩ + c)."""
        return jnp.tanh(like(self.gamma, inner) * inner + like(self.coef0, inner))

    def traced(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        """The matrix of JAX arrays (n, m)."""
        return self.finish(product(X, Z.T))

    def diagonal(self, X: Any) -> Any:
        """k(x_i, x_i) for each row (n,)."""
        xp = jnp if any_jax(X, self) else np
        return xp.tanh(like(self.gamma, X) * squares(X) + like(self.coef0, X))


class Cosine(Inner):
    """k(x, z) = ⟨x, z⟩/(‖x‖‖z‖), zero where x or z is.

    >>> float(Cosine()(np.array([1.0, 0.0]), np.array([1.0, 1.0]))).__round__(4)
    0.7071
    """

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        size = (x @ x) * (z @ z)
        return jnp.where(size > 0, (x @ z) / jnp.sqrt(jnp.where(size > 0, size, 1.0)), 0.0)

    @property
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""
        return True

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        return products(_unit(X), None if Z is None else _unit(Z), 1.0, 0.0, dtype)

    def panels(self, X: Any, Z: Any = None) -> Panels | None:
        """Rows of length one."""
        return super().panels(_unit(X), None if Z is None else _unit(Z))

    def finish(self, inner: Any) -> Any:
        """k itself."""
        return inner

    def diagonal(self, X: Any) -> Any:
        """k(x_i, x_i) for each row (n,)."""
        return (squares(X) > 0).astype(X.dtype)


def _unit(X: Any) -> Any:
    """Rows of length one; rows of zeros stay."""
    size = np.sqrt(squares(X))
    inverse = 1.0 / np.where(size > 0, size, 1.0)
    return sp.diags_array(inverse).tocsr() @ X if sp.issparse(X) else X * inverse[:, None]
