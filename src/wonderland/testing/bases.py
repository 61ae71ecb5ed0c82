"""Laws of every basis φ: (n, d) → (n, m)."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from wonderland.bases.basis import Basis, expand, names_of
from wonderland.core.arrays import in_float64
from wonderland.testing.compare import close

__all__ = [
    "basis_has_one_name_per_column",
    "basis_is_the_same_on_host_and_jax",
    "basis_maps_each_row_alone",
    "doubled_columns_round_to_the_host",
]


@in_float64
def basis_is_the_same_on_host_and_jax(basis: Callable[[Any], Any], X: np.ndarray) -> None:
    """φ on NumPy arrays equals φ on JAX arrays, column by column.

    >>> import wonderland as wl
    >>> basis_is_the_same_on_host_and_jax(wl.bases.Fourier(2), np.ones((3, 1)))
    """
    host, traced = np.asarray(basis(X)), basis(jnp.asarray(X))
    for j in range(host.shape[1]):
        close(traced[:, j], host[:, j], f"column {j} is the same on host and JAX", rtol=1e-12)


def basis_has_one_name_per_column(basis: Basis, X: np.ndarray) -> None:
    """As many names as columns, all different, each telling the features it is made from.

    >>> import wonderland as wl
    >>> basis_has_one_name_per_column(wl.bases.Polynomial(3), np.ones((2, 2)))
    """
    features = [f"feature{j}" for j in range(X.shape[1])]
    columns = np.asarray(basis(X)).shape[1]
    names = names_of(basis, features, columns)
    if len(names) != columns:
        raise AssertionError(f"the basis makes {columns} columns and {len(names)} names")
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise AssertionError(f"names must differ; these come twice: {', '.join(twice)}")


def basis_maps_each_row_alone(basis: Callable[[Any], Any], X: np.ndarray) -> None:
    """φ(X)_i = φ(x_i): a row's columns do not depend on the rows beside it.

    >>> import wonderland as wl
    >>> basis_maps_each_row_alone(wl.bases.RadialBasis([0.0, 1.0], 0.5), np.ones((3, 1)))
    >>> basis_maps_each_row_alone(lambda X: X - X.mean(axis=0), np.arange(3.0)[:, None])
    Traceback (most recent call last):
    ...
    AssertionError: a row is mapped alone as among others: they differ by 1 where 1e-12 is allowed
    """
    together = np.asarray(basis(X))
    alone = np.concatenate([np.asarray(basis(X[[i]])) for i in range(len(X))])
    close(alone, together, "a row is mapped alone as among others", rtol=1e-12)


def doubled_columns_round_to_the_host(basis: Callable[[Any], Any], X: np.ndarray) -> None:
    """The sum high + low rounds to φ(X), and |low| ≤ half a unit in the last place of high.

    >>> import wonderland as wl
    >>> doubled_columns_round_to_the_host(wl.bases.Polynomial(4), np.array([[0.1, 3.0]]))
    """
    columns = expand(basis, X)
    close(columns.value, np.asarray(basis(X)), "doubled columns round to the host's", rtol=1e-13)
    if np.any(np.abs(columns.low) > 0.5 * np.spacing(np.abs(columns.high))):
        raise AssertionError("a low part exceeds half a unit in the last place of its high part")
