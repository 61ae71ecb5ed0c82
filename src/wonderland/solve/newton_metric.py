"""Metrics: how a gradient becomes a step, B∇f with B close to the inverse Hessian.

    Dense      B = H⁻¹ by Cholesky of the scaled Hessian; where H is singular the pseudo-inverse,
               which leaves alone what no data determine
    Product    B = (A ⊗ G + Λ)⁻¹, what couples classes times what couples columns
    Diagonal   B = 1/diag(H)
    Embedded   B of some of the parameters; the others stay where they are

Scaling H to unit diagonal first takes away what is due to the columns' units. Shapes: H (p, p).
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

__all__ = ["Dense", "Diagonal", "Embedded", "Metric", "Product"]

WIDE = 200  # columns above which a Kronecker factor is decomposed in single precision
SINGULAR = 1e-13  # of the largest eigenvalue of the scaled Hessian: a direction without curvature


class Metric(ABC):
    """A symmetric positive semi-definite B."""

    @abstractmethod
    def solve(self, gradient: np.ndarray) -> np.ndarray:
        """B∇f (p,), a new array."""

    @abstractmethod
    def rescaled(self, factor: float) -> "Metric":
        """The metric of the Hessian times `factor`."""


class Dense(Metric):
    """The inverse of one matrix.

    >>> Dense(np.diag([2.0, 4.0])).solve(np.ones(2))
    array([0.5 , 0.25])
    """

    def __init__(self, hessian: np.ndarray) -> None:
        diagonal = np.diag(hessian)
        self.scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scaled = hessian * self.scale * self.scale[:, None]
        self.pseudo, self.singular = None, False
        try:
            self.factor = cho_factor(scaled, lower=True, check_finite=False)
            # Pivots of a matrix with unit diagonal: a tiny one is a column that others reproduce.
            self.singular = bool(np.min(np.diag(self.factor[0]), initial=1.0) ** 2 < SINGULAR)
        except LinAlgError:
            self.singular = True
        if self.singular and np.isfinite(scaled).all():
            self.pseudo = _pseudo_inverse(scaled)

    def solve(self, gradient: np.ndarray) -> np.ndarray:
        """H⁻¹∇f."""
        right = self.scale * gradient
        if self.pseudo is not None:
            return self.scale * (self.pseudo @ right)
        if self.singular:
            return np.full_like(gradient, np.nan)
        return self.scale * cho_solve(self.factor, right, check_finite=False)

    def inverse(self) -> np.ndarray:
        """H⁻¹ (p, p)."""
        p = len(self.scale)
        if self.pseudo is not None:
            inner = self.pseudo
        else:
            inner = cho_solve(self.factor, np.eye(p), check_finite=False)
        return self.scale * inner * self.scale[:, None]

    def rescaled(self, factor: float) -> "Dense":
        """The metric of factor·H."""
        other = object.__new__(Dense)
        other.__dict__.update(self.__dict__)
        other.scale = self.scale / np.sqrt(factor)
        return other


def _pseudo_inverse(scaled: np.ndarray) -> np.ndarray:
    values, vectors = eigh(scaled, check_finite=False)
    kept = values > SINGULAR * max(values[-1], 0.0)
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T


class Product(Metric):
    """B = (A ⊗ G + Λ)⁻¹ from the eigenvectors of both factors: A (c, c), G (q, q), Λ (q,).

    Λ is raised to 10⁻⁵ of G's diagonal where it is smaller, which keeps single precision sound.
    """

    def __init__(self, A: np.ndarray, G: np.ndarray, ridge: np.ndarray) -> None:
        floor = np.maximum(ridge, 1e-5 * np.diag(G))
        self.scale = 1.0 / np.sqrt(np.where(floor > 0, floor, 1.0))
        inner = G * self.scale * self.scale[:, None]
        # Wide factors in single precision: this is a metric, and f and ∇f judge the steps.
        inner = inner.astype(np.float32 if len(G) > WIDE else np.float64)
        values, self.rows = eigh(inner, check_finite=False, overwrite_a=True, driver="evd")
        shares, self.classes = eigh(A)
        self.values = 1.0 + np.maximum(shares, 0.0)[:, None] * np.maximum(values, 0.0)
        self.factor = 1.0

    def solve(self, gradient: np.ndarray) -> np.ndarray:
        """(A ⊗ G + Λ)⁻¹∇f."""
        table = self.classes.T @ (gradient.reshape(len(self.classes), -1) * self.scale)
        table = (table.astype(self.rows.dtype) @ self.rows) / self.values
        table = self.classes @ (table.astype(self.rows.dtype) @ self.rows.T) * self.scale
        return np.asarray(table, dtype=np.float64).ravel() / self.factor

    def rescaled(self, factor: float) -> "Product":
        """The metric of the Hessian times `factor`."""
        other = object.__new__(Product)
        other.__dict__.update(self.__dict__)
        other.factor = self.factor * factor
        return other


class Diagonal(Metric):
    """B = 1/diagonal (p,); where the diagonal is zero nothing moves."""

    def __init__(self, diagonal: np.ndarray) -> None:
        self.inverted = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)

    def solve(self, gradient: np.ndarray) -> np.ndarray:
        """∇f/diagonal."""
        return self.inverted * gradient

    def rescaled(self, factor: float) -> "Diagonal":
        """The metric of factor·H."""
        other = object.__new__(Diagonal)
        other.inverted = self.inverted / factor
        return other


class Embedded(Metric):
    """A metric of the parameters at `places`, zero on all others.

    >>> Embedded(Diagonal(np.array([2.0])), np.array([1]), 3).solve(np.ones(3))
    array([0. , 0.5, 0. ])
    """

    def __init__(self, inner: Metric, places: np.ndarray, size: int) -> None:
        self.inner, self.places, self.size = inner, places, size

    def solve(self, gradient: np.ndarray) -> np.ndarray:
        """B∇f at the places (p,)."""
        step = np.zeros(self.size)
        step[self.places] = self.inner.solve(gradient[self.places])
        return step

    def rescaled(self, factor: float) -> "Embedded":
        """The metric of factor·H."""
        return Embedded(self.inner.rescaled(factor), self.places, self.size)
