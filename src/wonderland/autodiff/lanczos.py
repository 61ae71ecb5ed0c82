"""The extreme eigenvalues of a symmetric matrix known by its products, with error bounds.

From a random unit vector q₁, A Q_k = Q_k T_k + β_k q_{k+1} e_kᵀ with T_k tridiagonal; an
eigenpair T_k s = θ s gives the Ritz pair (θ, Q_k s), and there is an eigenvalue of A within

    |λ − θ| ≤ β_k |s_k| .

Every new vector is made orthogonal to all before, twice, so no ghost copies appear. After
k < n steps an eigenvalue beyond the outermost θ by more than the fraction ε of the spread has gone
unseen with probability ≤ 1.648 √n exp(−√ε (2k − 1)); after n steps none has.

References: B. Parlett, The Symmetric Eigenvalue Problem, 1998, chapter 13; J. Kuczyński and H.
Woźniakowski, SIAM J. Matrix Anal. Appl. 13, 1992, theorem 4.2.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

__all__ = ["Ritz", "Spectrum", "extremes", "unseen"]

_FIRST_LOOK = 10  # steps before convergence is asked for


class Ritz(NamedTuple):
    """An approximate eigenpair: value, bound on its error, unit vector (n,)."""

    value: float
    error: float
    vector: np.ndarray


class Spectrum(NamedTuple):
    """Both ends of the spectrum after `steps` products; `complete` if these span the space."""

    lowest: Ritz
    highest: Ritz
    steps: int
    complete: bool

    @property
    def size(self) -> float:
        """The largest |θ|, an estimate of ‖A‖ from below."""
        return max(abs(self.lowest.value), abs(self.highest.value))


def extremes(
    product: Callable[[np.ndarray], np.ndarray],
    n: int,
    *,
    steps: int,
    enough: Callable[[Spectrum], bool],
    rng: np.random.Generator,
) -> Spectrum:
    """The lowest and the highest eigenvalue of A, given v ↦ A v.

    Args:
        product: v (n,) ↦ A v (n,).
        n: The order of A.
        steps: Most products.
        enough: Whether a spectrum is known well enough to stop; asked now and then.
        rng: For the start.

    Returns:
        The spectrum; of NaN where a product was not finite.

    >>> import numpy as np
    >>> A = np.diag([1.0, -2.0, 5.0])
    >>> random = np.random.default_rng(0)
    >>> found = extremes(lambda v: A @ v, 3, steps=9, enough=lambda s: False, rng=random)
    >>> round(found.lowest.value, 9), round(found.highest.value, 9), found.complete
    (-2.0, 5.0, True)
    """
    last = min(steps, n)
    Q = np.empty((last, n))
    diagonal, below = np.zeros(last), np.zeros(last)
    Q[0] = _unit(rng.normal(size=n))
    look = _FIRST_LOOK
    for k in range(last):
        p = product(Q[k])
        if not np.isfinite(p).all():
            unknown = Ritz(np.nan, np.nan, np.full(n, np.nan))
            return Spectrum(unknown, unknown, steps=k + 1, complete=False)
        diagonal[k] = Q[k] @ p
        rest, below[k] = _orthogonal(p, Q[: k + 1])
        if k + 1 == last or k + 1 >= look:
            spectrum = _spectrum(Q[: k + 1], diagonal[: k + 1], below[: k + 1])
            if k + 1 == last or enough(spectrum):
                break
            look = int(1.25 * look) + 1
        scale = np.abs(diagonal[: k + 1]).max() + below[: k + 1].max()
        if below[k] <= 1e-13 * scale:  # an invariant subspace: begin anew beside it
            rest, below[k] = _orthogonal(rng.normal(size=n), Q[: k + 1])[0], 0.0
        Q[k + 1] = _unit(rest)
    return spectrum


def unseen(spectrum: Spectrum, fraction: float, n: int) -> float:
    """How probable an eigenvalue beyond the ends by this fraction of the spread still is."""
    if spectrum.complete:
        return 0.0
    if fraction <= 0:
        return 1.0
    bound = 1.648 * np.sqrt(n) * np.exp(-np.sqrt(fraction) * (2 * spectrum.steps - 1))
    return float(min(1.0, bound))


def _spectrum(Q: np.ndarray, diagonal: np.ndarray, below: np.ndarray) -> Spectrum:
    """The ends of T_k, as Ritz pairs; `below` ends with β_k."""
    values, vectors = eigh_tridiagonal(diagonal, below[:-1])
    low, high = (
        Ritz(float(values[k]), float(below[-1] * abs(vectors[-1, k])), vectors[:, k] @ Q)
        for k in (0, -1)
    )
    return Spectrum(low, high, steps=len(Q), complete=Q.shape[0] == Q.shape[1])


def _orthogonal(p: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, float]:
    for _ in range(2):  # twice is enough
        p = p - (Q @ p) @ Q
    return p, float(np.linalg.norm(p))


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v)
