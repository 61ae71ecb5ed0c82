"""Gaussian bumps around given centres."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from numpy.typing import ArrayLike

from wonderland.bases.basis import Basis, namespace
from wonderland.core.errors import InputError

__all__ = ["RadialBasis"]


class RadialBasis(Basis):
    """φ_j(x) = exp(−‖x − c_j‖² / (2·width²)).

    Args:
        centres: c (m, d), or (m,) for one variable.
        width: Standard deviation of each bump > 0.

    >>> import numpy as np
    >>> RadialBasis([0.0, 1.0], width=1.0)(np.array([[0.0]])).round(4)
    array([[1.    , 0.6065]])
    """

    centres: np.ndarray = eqx.field(converter=lambda c: np.asarray(c, np.float64))
    width: float

    def __init__(self, centres: ArrayLike, width: float) -> None:
        table = np.asarray(centres, np.float64)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or not np.isfinite(table).all() or not width > 0:
            raise InputError(
                f"centres of shape {np.shape(centres)}, width = {width!r}",
                "finite centres (m, d) and a width > 0",
                "Pass for instance RadialBasis(np.linspace(0, 1, 10), width=0.1)",
            )
        self.centres, self.width = table, width

    def __call__(self, X: Any) -> Any:
        """φ(X): (n, d) → (n, m)."""
        if X.shape[1] != self.centres.shape[1]:
            raise InputError(
                f"X has {X.shape[1]} columns, the centres have {self.centres.shape[1]}",
                "centres in the space of the samples",
                "Pass centres of shape (m, d) with d the number of columns of X",
            )
        xp = namespace(X)
        apart = X[:, None, :] - self.centres[None, :, :]  # (n, m, d)
        return xp.exp(-0.5 * (apart**2).sum(axis=2) / self.width**2)

    def names(self, features: Sequence[str]) -> list[str]:
        """Names such as 'bump 3'."""
        return [f"bump {j}" for j in range(len(self.centres))]
