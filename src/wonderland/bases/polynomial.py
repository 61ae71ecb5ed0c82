"""Monomials x₁^a₁ ⋯ x_d^a_d of total degree 1 … k."""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

import equinox as eqx
import numpy as np

from wonderland.bases.basis import Basis, namespace
from wonderland.core.doubled import Doubled
from wonderland.core.errors import InputError

__all__ = ["Polynomial"]


class Polynomial(Basis):
    """All monomials of degree 1 … `degree`; the constant is the estimator's intercept.

    Order as in scikit-learn's PolynomialFeatures without the bias: by degree, then
    lexicographically. On host data the columns are computed in doubled precision, so that
    high powers do not cost the digits that the fit could certify.

    Args:
        degree: Highest total degree k ≥ 1.
        interaction: Whether products of different variables are included.

    >>> import numpy as np
    >>> Polynomial(2)(np.array([[2.0, 3.0]]))
    array([[2., 3., 4., 6., 9.]])
    >>> Polynomial(2).names(["a", "b"])
    ['a', 'b', 'a^2', 'a b', 'b^2']
    """

    degree: int = eqx.field(static=True)
    interaction: bool = eqx.field(static=True)

    def __init__(self, degree: int, *, interaction: bool = True) -> None:
        if not isinstance(degree, int | np.integer) or degree < 1:
            raise InputError(
                f"degree is {degree!r}", "an integer ≥ 1", "Pass degree=2 for squares and products"
            )
        self.degree = int(degree)
        self.interaction = interaction

    def exponents(self, d: int) -> list[tuple[int, ...]]:
        """Each monomial as the tuple of the variables it multiplies: (0, 0, 2) is x₀²·x₂."""
        if not self.interaction:
            return [(v,) * k for k in range(1, self.degree + 1) for v in range(d)]
        degrees = range(1, self.degree + 1)
        return [term for k in degrees for term in combinations_with_replacement(range(d), k)]

    def __call__(self, X: Any) -> Any:
        """φ(X): (n, d) → (n, m)."""
        xp = namespace(X)
        made: dict[tuple[int, ...], Any] = {}
        for term in self.exponents(X.shape[1]):
            last = X[:, term[-1]]
            made[term] = made[term[:-1]] * last if len(term) > 1 else last
        return xp.stack(list(made.values()), axis=1)

    def doubled(self, X: np.ndarray) -> Doubled:
        """The same columns with what float64 could not hold."""
        made: dict[tuple[int, ...], Doubled] = {}
        for term in self.exponents(X.shape[1]):
            last = Doubled.of(X[:, term[-1]])
            made[term] = made[term[:-1]] * last if len(term) > 1 else last
        parts = list(made.values())
        return Doubled(
            np.stack([part.high for part in parts], axis=1),
            np.stack([part.low for part in parts], axis=1),
        )

    def names(self, features: Sequence[str]) -> list[str]:
        """Names such as 'a^2 b'."""
        return [_monomial(term, features) for term in self.exponents(len(features))]


def _monomial(term: tuple[int, ...], features: Sequence[str]) -> str:
    powers = [(features[v], term.count(v)) for v in dict.fromkeys(term)]
    return " ".join(name if power == 1 else f"{name}^{power}" for name, power in powers)
