"""What a basis is, and what rounding of its source does to its columns."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.doubled import Doubled
from wonderland.core.errors import InputError

__all__ = ["Basis", "expand", "names_of", "namespace", "wobble"]

STEP = 2.0**-20  # relative step of the central difference: error ~ STEP² of the derivative
TABLE = 4_000_000  # entries of the sensitivity table above which it is not worth its memory


class Basis(eqx.Module):
    """m functions of a sample: φ(X) maps (n, d) to (n, m), in NumPy or JAX alike."""

    @abstractmethod
    def __call__(self, X: Any) -> Any:
        """φ for every row of X: (n, d) → (n, m)."""

    @abstractmethod
    def names(self, features: Sequence[str]) -> list[str]:
        """A name for each column, made from the names of the features."""

    def doubled(self, X: np.ndarray) -> Doubled | None:
        """The columns in doubled precision, where the basis can compute them; None otherwise."""
        return None


def namespace(X: Any) -> Any:
    """`jax.numpy` for JAX arrays and tracers, NumPy for everything else."""
    return jnp if isinstance(X, jax.Array) else np


def expand(basis: Callable[[Any], Any], X: np.ndarray) -> Doubled:
    """Columns of any basis or callable on host data, as (high, low) parts (n, m)."""
    precise = basis.doubled(X) if isinstance(basis, Basis) else None
    if precise is not None:
        return precise
    columns = np.asarray(basis(X), dtype=np.float64)
    if columns.ndim != 2 or len(columns) != len(X):
        raise InputError(
            f"the basis returned shape {columns.shape} for X of shape {X.shape}",
            f"a table with {len(X)} rows, one column per basis function",
            "Let the callable map (n, d) to (n, m), for instance with np.column_stack",
        )
    return Doubled.of(columns)


def names_of(basis: Any, features: Sequence[str], count: int) -> list[str]:
    """Column names of a basis; a plain callable has numbered ones."""
    if isinstance(basis, Basis):
        return basis.names(features)
    return [f"{getattr(basis, '__name__', 'basis')}{j}" for j in range(count)]


def wobble(basis: Callable[[Any], Any], X: np.ndarray, moved: np.ndarray) -> np.ndarray | None:
    """How far each column moves when one source variable moves by what rounding took from it.

    Args:
        basis: φ.
        X: Source values (n, d).
        moved: Half a unit in the last place of each, zero where exact (n, d).

    Returns:
        moved_v · ∂φ/∂x_v by central differences, (d, n, m); None when the table would be large.
    """
    width = np.shape(basis(X[:1]))[1]
    if X.size * width > TABLE:
        return None
    table = np.empty((X.shape[1], len(X), width))
    for v in range(X.shape[1]):
        step = STEP * np.maximum(np.abs(X[:, v]), 2.0**-500)
        up, down = X.copy(), X.copy()
        up[:, v] += step
        down[:, v] -= step
        slope = (np.asarray(basis(up)) - np.asarray(basis(down))) / (2 * step)[:, None]
        table[v] = moved[:, v, None] * slope
    return table
