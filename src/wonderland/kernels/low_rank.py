"""Kernels at scale: k(x, z) ≈ ⟨φ(x), φ(z)⟩ with φ of few entries, and how far that is from k.

**Nyström** projects onto the span of landmarks L: with K_LL = U Λ Uᵀ, φ(x) = Λ^{−1/2} Uᵀ k(L, x).
What is left, K − ΦΦᵀ, is positive semi-definite; its trace norm, which no other norm exceeds, is

    Σ_i k(x_i, x_i) − ‖φ(x_i)‖² ,

exactly, in the pass that makes Φ. **Pivoted Cholesky** chooses the landmarks one by one, each
where the residual is largest, until a tolerance is met. **Random features** draw frequencies ω from
the Fourier transform of a stationary k: φ(x) = √(2/r) [cos⟨ω_j, x⟩, sin⟨ω_j, x⟩]; by Hoeffding's
inequality and a union over the pairs of n samples, with probability 1 − δ all of them satisfy

    |⟨φ(x_i), φ(x_j)⟩ − k(x_i, x_j)| ≤ 2 k(0) √( log(n(n − 1)/δ) / r ) .

Shapes: X (n, d), L (m, d), Φ (n, r).

References: Williams & Seeger (2001); Fine & Scheinberg (2001); Rahimi & Recht (2007).
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from wonderland.core.arrays import any_jax, product
from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim
from wonderland.kernels.kernel import Kernel

__all__ = [
    "Approximation",
    "Features",
    "LandmarkFeatures",
    "Nystroem",
    "PivotedCholesky",
    "RandomFeatures",
    "WaveFeatures",
]

ROWS = 4096  # rows whose features are made at once
SAMPLE = 20  # rows looked at for each pivot
TRIED = 512  # rows on which the error of random features is measured
DOUBT = 0.01  # δ


class Features(eqx.Module):
    """φ: (n, d) → (n, r), of one sample or of a table, on the host and on JAX."""

    @abstractmethod
    def __call__(self, X: Any) -> Any:
        """Φ (n, r); for one sample (d,) → (r,)."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """r."""

    @abstractmethod
    def claims(self, trace: float, kept: float, X: Any) -> list[Claim]:
        """The error bound, from Σ k(x_i, x_i), Σ ‖φ(x_i)‖² and the samples (or the first)."""

    @abstractmethod
    def own(self, X: Any) -> Any:
        """k(x_i, x_i) (n,), which Σ ‖φ‖² is held against."""

    def blocks(self, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Φ by blocks of rows, so that it need not be held."""
        for i in range(0, X.shape[0], ROWS):
            rows = slice(i, min(i + ROWS, X.shape[0]))
            yield rows, self(X[rows])


class Approximation(eqx.Module):
    """A recipe for features; `approximation=` of kernel estimators takes one."""

    @abstractmethod
    def features(self, kernel: Kernel, X: Any, chance: np.random.Generator) -> Features:
        """Features for a kernel, made from samples X (n, d)."""


class LandmarkFeatures(Features):
    """φ(x) = Wᵀ k(L, x).

    Attributes:
        kernel: k.
        landmarks: L (m, d).
        whiten: W (m, r) with W Wᵀ = K_LL⁺.
        how: How the landmarks were chosen.
    """

    kernel: Kernel
    landmarks: Any
    whiten: np.ndarray
    how: str = eqx.field(static=True)

    def __call__(self, X: Any) -> Any:
        """Φ = K(X, L) W."""
        if not sp.issparse(X) and np.ndim(X) == 1:
            return self(X[None, :])[0]
        if any_jax(X, self):
            K = self.kernel.matrix(X, jnp.asarray(self.landmarks))
            return product(K, jnp.asarray(self.whiten))
        return self.kernel.apply(X, self.landmarks, self.whiten)

    @property
    def rank(self) -> int:
        """Columns of W."""
        return int(self.whiten.shape[1])

    def own(self, X: Any) -> Any:
        """k(x_i, x_i)."""
        return self.kernel.diagonal(X)

    def claims(self, trace: float, kept: float, X: Any) -> list[Claim]:
        """The trace norm of K − ΦΦᵀ."""
        left = max(trace - kept, 0.0)
        return [
            Claim.below(
                "approximation_error",
                left,
                trace,
                f"trace norm of K − ΦΦᵀ, Σ k(x_i, x_i) − ‖φ(x_i)‖² over all training rows; no "
                f"eigenvalue and no entry of K is off by more; the bound is the trace of K; "
                f"{self.rank} features from {self.how}",
            ),
            Claim.fact("approximation_share", left / trace if trace else 0.0, "of the trace of K"),
        ]


def _whitened(kernel: Kernel, landmarks: Any, how: str) -> LandmarkFeatures:
    """Directions of K_LL at rounding level carry nothing and are left out."""
    K = np.asarray(kernel.matrix(landmarks), np.float64)
    values, vectors = sl.eigh((K + K.T) / 2.0, check_finite=False)
    floor = len(K) * np.finfo(float).eps * float(np.abs(values).max(initial=0.0))
    if values[0] < -WRONG * floor:
        raise InputError(
            f"the kernel matrix of the landmarks has the negative eigenvalue {values[0]:.4g}",
            "a positive semi-definite kernel: only such a one has features",
            "wl.kernels.mercer(kernel, X) gives the witness; fit without approximation",
        )
    kept = values > WRONG * floor
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    return LandmarkFeatures(kernel, landmarks, np.ascontiguousarray(whiten[:, ::-1]), how)


WRONG = 8.0  # times n·ε·‖K‖: what counts as rounding


def _count(name: str, value: Any) -> int:
    if int(value) != value or value < 1:
        raise InputError(f"{name} is {value!r}", "a whole number ≥ 1", f"Pass {name}=300")
    return int(value)


class Nystroem(Approximation):
    """Projection onto landmarks.

    Args:
        rank: Number of landmarks, at most as many as samples.
        landmarks: "uniform" draws them from the samples; "pivots" chooses them as
            `PivotedCholesky` does; an array (m, d) gives them.

    >>> from wonderland.kernels import Gaussian
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> phi = Nystroem(12).features(Gaussian(1.0), X, np.random.default_rng(0))
    >>> bool(np.abs(phi(X) @ phi(X).T - Gaussian(1.0).matrix(X)).max() < 1e-6)
    True
    """

    rank: int = eqx.field(static=True)
    landmarks: Any

    def __init__(self, rank: int = 300, landmarks: Any = "uniform") -> None:
        if isinstance(landmarks, str) and landmarks not in ("uniform", "pivots"):
            raise InputError(
                f"landmarks is {landmarks!r}",
                "'uniform', 'pivots' or an array (m, d)",
                "Pass landmarks='uniform'",
            )
        self.rank = _count("rank", rank)
        self.landmarks = landmarks if isinstance(landmarks, str) else np.asarray(landmarks, float)

    def features(self, kernel: Kernel, X: Any, chance: np.random.Generator) -> LandmarkFeatures:
        """Choose the landmarks and whiten their kernel matrix."""
        if not isinstance(self.landmarks, str):
            return _whitened(kernel, self.landmarks, f"{len(self.landmarks)} given landmarks")
        if self.landmarks == "pivots":
            return PivotedCholesky(self.rank, tolerance=0.0).features(kernel, X, chance)
        rows = np.sort(chance.permutation(X.shape[0])[: self.rank])
        return _whitened(kernel, X[rows], f"{len(rows)} landmarks drawn from the rows")


class PivotedCholesky(Approximation):
    """Landmarks where the residual is largest, one after another.

    On more than 20 · rank rows, pivots are looked for in a random sample of so many; the
    error in evidence is that of all rows.

    Args:
        rank: Most landmarks.
        tolerance: Share of the trace of K at which to stop.

    >>> from wonderland.kernels import Gaussian
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> recipe = PivotedCholesky(tolerance=1e-8)
    >>> recipe.features(Gaussian(1.0), X, np.random.default_rng(0)).rank < 10
    True
    """

    rank: int = eqx.field(static=True)
    tolerance: float

    def __init__(self, rank: int = 300, tolerance: float = 1e-4) -> None:
        if not 0.0 <= tolerance < 1.0:
            raise InputError(
                f"tolerance is {tolerance!r}", "a share of the trace in [0, 1)", "Pass 1e-4"
            )
        self.rank, self.tolerance = _count("rank", rank), float(tolerance)

    def features(self, kernel: Kernel, X: Any, chance: np.random.Generator) -> LandmarkFeatures:
        """Choose the landmarks and whiten their kernel matrix."""
        n, most = X.shape[0], SAMPLE * self.rank
        seen = X if n <= most else X[np.sort(chance.permutation(n)[:most])]
        rows, share = self._pivots(kernel, seen)
        how = f"{len(rows)} pivots among {seen.shape[0]} rows, {share:.2g} of their trace left"
        return _whitened(kernel, seen[rows], how)

    def _pivots(self, kernel: Kernel, X: Any) -> tuple[np.ndarray, float]:
        """Rows chosen, and the share of the trace that is left."""
        left = np.asarray(kernel.diagonal(X), np.float64).copy()
        trace, most = float(left.sum()), min(self.rank, X.shape[0])
        floor = np.finfo(float).eps * X.shape[0] * float(left.max(initial=0.0))
        columns, chosen = np.empty((most, X.shape[0])), []
        for step in range(most):
            pivot = int(np.argmax(left))
            if left[pivot] <= floor or left.sum() <= self.tolerance * trace:
                break
            column = np.asarray(kernel.matrix(X, X[pivot : pivot + 1]), np.float64)[:, 0]
            column = column - columns[:step, pivot] @ columns[:step]
            column /= np.sqrt(left[pivot])
            columns[step] = column
            left = np.maximum(left - column**2, 0.0)
            left[pivot] = 0.0
            chosen.append(pivot)
        return np.array(chosen, int), float(left.sum()) / trace if trace else 0.0


class RandomFeatures(Approximation):
    """Random waves for stationary kernels: Gaussian, Laplace, Matérn, their products and multiples.

    Args:
        count: r, the number of features; two for each frequency.

    >>> from wonderland.kernels import Gaussian
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> phi = RandomFeatures(4000).features(Gaussian(1.0), X, np.random.default_rng(0))
    >>> bool(np.abs(phi(X) @ phi(X).T - Gaussian(1.0).matrix(X)).max() < 0.05)
    True
    """

    count: int = eqx.field(static=True)

    def __init__(self, count: int = 1000) -> None:
        self.count = 2 * ((_count("count", count) + 1) // 2)

    def features(self, kernel: Kernel, X: Any, chance: np.random.Generator) -> "WaveFeatures":
        """Draw the frequencies."""
        d = X.shape[1]
        frequencies = kernel.frequencies(chance, self.count // 2, d)
        size = float(kernel(np.zeros(d), np.zeros(d)))
        return WaveFeatures(kernel, frequencies.T.copy(), np.asarray(np.sqrt(size)))


class WaveFeatures(Features):
    """φ(x) = √(2k(0)/r) [cos⟨ω_j, x⟩, sin⟨ω_j, x⟩].

    Attributes:
        kernel: k.
        frequencies: ω (d, r/2).
        size: √k(0).
    """

    kernel: Kernel
    frequencies: np.ndarray
    size: np.ndarray

    def __call__(self, X: Any) -> Any:
        """Φ (n, r)."""
        unit = self.size / np.sqrt(self.frequencies.shape[1])
        if isinstance(X, jax.Array) or any_jax(self):
            moved = product(jnp.asarray(X), jnp.asarray(self.frequencies))
            return unit * jnp.concatenate([jnp.cos(moved), jnp.sin(moved)], axis=-1)
        angle = np.asarray(X @ self.frequencies)
        return unit * np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)

    @property
    def rank(self) -> int:
        """Two for each frequency."""
        return 2 * int(self.frequencies.shape[1])

    def own(self, X: Any) -> Any:
        """k(x_i, x_i)."""
        return self.kernel.diagonal(X)

    def claims(self, trace: float, kept: float, X: Any) -> list[Claim]:
        """Largest error on pairs of some rows, under the bound that holds for pairs of all."""
        n, size = X.shape[0], float(self.size) ** 2
        rows = X[:: max(1, n // TRIED)][:TRIED]
        phi = self(rows)
        worst = float(np.abs(phi @ phi.T - self.kernel.matrix(rows)).max(initial=0.0))
        bound = 2.0 * size * np.sqrt(np.log(max(n * (n - 1.0), 2.0) / DOUBT) / self.rank)
        return [
            Claim.below(
                "approximation_error",
                worst,
                float(bound),
                f"largest |⟨φ(x), φ(z)⟩ − k(x, z)| on pairs of {rows.shape[0]} rows; all pairs of "
                f"{n:,} rows stay below the bound with probability {1.0 - DOUBT:g} (Hoeffding); "
                f"{self.rank} random features",
            )
        ]
