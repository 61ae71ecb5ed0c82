"""Kernels of the difference x − z: Gaussian, Laplace, Matérn.

Their derivatives at x = z are those of the mathematics: no square root is taken that would turn a
vanishing distance into NaN. Where there is a kink (Laplace, Matérn 1/2) the derivative given there
is zero, the middle of the subdifferential.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from wonderland.core.arrays import any_jax, product
from wonderland.core.errors import InputError
from wonderland.kernels.kernel import EPS, OPERATIONS, Kernel, like, parameter
from wonderland.kernels.panels import Panels
from wonderland.kernels.tiles import Tile, augmented, distances

__all__ = ["Gaussian", "Laplace", "Matern"]


class Stationary(Kernel):
    """Positive semi-definite, with k(x, x) = 1."""

    @property
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""
        return True

    def diagonal(self, X: Any) -> Any:
        """k(x_i, x_i) for each row (n,)."""
        return (jnp if any_jax(X, self) else np).ones(X.shape[0], X.dtype)

    def noise(self, X: Any) -> float:
        """Rounding of squared distances, at most 4ε of the largest squared row, times the slope."""
        X = np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)
        sizes = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
        reach = self.rate() * float(sizes.max(initial=0.0))
        return EPS * (X.shape[1] + OPERATIONS) * (1.0 + reach)

    def rate(self) -> float:
        """Steepest change of k per unit of ‖x − z‖²."""
        return 0.0


class Gaussian(Stationary):
    """k(x, z) = exp(−γ‖x − z‖²), scikit-learn's "rbf"; γ = 1/σ in the notation exp(−‖x − z‖²/σ).

    Args:
        gamma: γ ≥ 0.

    >>> float(Gaussian(0.5)(np.zeros(1), np.ones(1))).__round__(4)
    0.6065
    """

    gamma: Any = eqx.field(converter=parameter, default=1.0)

    def __check_init__(self) -> None:
        refuse_negative("gamma", self.gamma)

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        apart = x - z
        return jnp.exp(-like(self.gamma, x) * (apart @ apart))

    def rate(self) -> float:
        """Steepest change of k per unit of ‖x − z‖²."""
        return float(self.gamma)

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        inner = distances(X, Z, float(self.gamma), dtype)

        def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
            inner(rows, columns, out)
            np.exp(out, out=out)

        return tile

    def panels(self, X: Any, Z: Any = None) -> Panels | None:
        """Rows for products in float32; None where its rounding would be felt."""
        if sp.issparse(X) or sp.issparse(Z):
            return None
        A, B, _ = augmented(X, Z, float(self.gamma), np.float32)
        return Panels(self, A, B) if A.dtype == np.float32 else None

    def finish(self, inner: Any) -> Any:
        """From −γ‖x − z‖², rounded, to k."""
        return jnp.exp(jnp.minimum(inner, 0.0))

    def traced(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        """One matrix product; rounding below zero is clipped, which has no derivative."""
        middle = jax.lax.stop_gradient(Z.mean(axis=0))[None, :]
        left, right = X - middle, Z - middle
        sizes = (left * left).sum(axis=1)[:, None] + (right * right).sum(axis=1)[None, :]
        square = sizes - 2.0 * product(left, right.T)
        square += jax.lax.stop_gradient(jnp.maximum(square, 0.0) - square)
        return jnp.exp(-like(self.gamma, X) * square)

    def frequencies(self, chance: np.random.Generator, count: int, d: int) -> np.ndarray:
        """Normal with variance 2γ."""
        return np.sqrt(2.0 * float(self.gamma)) * chance.normal(size=(count, d))


class Laplace(Stationary):
    """k(x, z) = exp(−γ‖x − z‖₁), scikit-learn's "laplacian"; see `Matern` with ν = 1/2 for ‖·‖₂.

    Args:
        gamma: γ ≥ 0.

    >>> float(Laplace(0.5)(np.zeros(2), np.ones(2))).__round__(4)
    0.3679
    """

    gamma: Any = eqx.field(converter=parameter, default=1.0)

    def __check_init__(self) -> None:
        refuse_negative("gamma", self.gamma)

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        return jnp.exp(-like(self.gamma, x) * jnp.abs(x - z).sum())

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        right, gamma = X if Z is None else Z, float(self.gamma)

        def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
            apart = cdist(_dense(X[rows]), _dense(right[columns]), "cityblock")
            np.multiply(apart, -gamma, out=out, casting="same_kind")
            np.exp(out, out=out)

        return tile

    def frequencies(self, chance: np.random.Generator, count: int, d: int) -> np.ndarray:
        """Cauchy of width γ in each coordinate."""
        return float(self.gamma) * chance.standard_cauchy(size=(count, d))


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)


class Matern(Stationary):
    """The Matérn kernels of half-integer smoothness.

    With r = √(2ν)‖x − z‖₂/ℓ

        ν = 1/2: e^{−r},   ν = 3/2: (1 + r)e^{−r},   ν = 5/2: (1 + r + r²/3)e^{−r} .

    ν = 1/2 is the Laplace kernel of the Euclidean distance, exp(−‖x − z‖₂/ℓ).

    Args:
        length: ℓ > 0.
        nu: ν: 0.5, 1.5 or 2.5.

    Reference: Rasmussen & Williams, Gaussian Processes (2006), section 4.2.1.

    >>> float(Matern(2.0, nu=0.5)(np.zeros(1), np.ones(1))).__round__(4)
    0.6065
    """

    length: Any = eqx.field(converter=parameter)
    nu: float = eqx.field(static=True)

    def __init__(self, length: Any = 1.0, nu: float = 1.5) -> None:
        if nu not in (0.5, 1.5, 2.5):
            raise InputError(
                f"nu is {nu!r}", "0.5, 1.5 or 2.5", "Pass Gaussian for the limit of large nu"
            )
        self.length, self.nu = length, float(nu)

    def __check_init__(self) -> None:
        refuse_negative("length", self.length, least=np.finfo(float).tiny)

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        apart = (x - z) / like(self.length, x)
        return decay(2.0 * self.nu * (apart @ apart), int(self.nu - 0.5))

    def rate(self) -> float:
        """Steepest change of k per unit of ‖x − z‖²."""
        # Of the kernel one smoother than a kink, whose close distances are taken exactly.
        return 2.0 * self.nu / float(self.length) ** 2

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        order = int(self.nu - 0.5)
        inner = distances(X, Z, 2.0 * self.nu / float(self.length) ** 2, dtype, kinked=True)

        def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
            inner(rows, columns, out)
            np.negative(out, out=out)
            np.sqrt(out, out=out)
            front = None if order == 0 else 1.0 + out if order == 1 else 1.0 + out + out * out / 3
            np.negative(out, out=out)
            np.exp(out, out=out)
            if front is not None:
                out *= front

        return tile

    def frequencies(self, chance: np.random.Generator, count: int, d: int) -> np.ndarray:
        """Student's t with 2ν degrees of freedom, of d dimensions, divided by ℓ."""
        mixed = chance.chisquare(2.0 * self.nu, size=(count, 1)) / (2.0 * self.nu)
        return chance.normal(size=(count, d)) / np.sqrt(mixed) / float(self.length)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def decay(u: Any, order: int) -> Any:
    """The Matérn profile M_p of u = r², p = ν − 1/2; its derivative is the profile one below.

    M₂' = −M₁/6,  M₁' = −M₀/2,  M₀' = −M₀/(2√u), taken as zero at u = 0.
    """
    r = jnp.sqrt(u)
    front = (1.0, 1.0 + r, 1.0 + r + u / 3.0)[order]
    return front * jnp.exp(-r)


@decay.defjvp
def _(order: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (u,), (moved,) = primals, tangents
    if order:
        slope = -decay(u, order - 1) / (2.0 if order == 1 else 6.0)
    else:
        away = u > 0
        slope = jnp.where(away, -decay(u, 0) / (2.0 * jnp.sqrt(jnp.where(away, u, 1.0))), 0.0)
    return decay(u, order), slope * moved


def refuse_negative(name: str, value: Any, least: float = 0.0) -> None:
    """Concrete parameters must be finite and ≥ 0; inside a trace there is nothing to look at."""
    if isinstance(value, np.ndarray) and not (value.ndim == 0 and least <= value < np.inf):
        sign = ">" if least else "≥"
        raise InputError(f"{name} is {value}", f"a finite number {sign} 0", f"Pass {name}=1.0")
