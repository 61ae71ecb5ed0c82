"""Mercer's condition, decided on samples: K symmetric, and αᵀKα ≥ 0 for all α.

The smallest eigenvalue λ of a computed K is known up to rounding: each entry of K is off by at most
`kernel.noise(X)`, the eigenvalue solver is backward stable, and by Weyl's theorem λ is then off by
at most the norm of both, n·noise + 8nε·max|K|. Below minus that bound the kernel fails, and the
eigenvector is the witness: αᵀKα is computed anew from K.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl

from wonderland.core.errors import InputError

__all__ = ["Verdict", "mercer"]

SLACK = 8.0  # units of n·ε·max|K| that the eigenvalue solver and αᵀKα may be off by


class Verdict(NamedTuple):
    """What was found; `bool(verdict)` is whether Mercer's condition holds on these samples.

    Attributes:
        holds: Whether K is symmetric and positive semi-definite up to rounding.
        smallest: Smallest eigenvalue of the symmetric part of K.
        largest: Largest one.
        bound: What rounding may have moved them by.
        asymmetry: max |K_ij − K_ji|.
        witness: α (n,), ‖α‖ = 1, with αᵀKα < 0; None where there is none.
        value: αᵀKα, computed from K and α; None where there is no witness.
        samples: n.
    """

    holds: bool
    smallest: float
    largest: float
    bound: float
    asymmetry: float
    witness: np.ndarray | None
    value: float | None
    samples: int

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        spectrum = (
            f"eigenvalues {self.smallest:.4g} … {self.largest:.4g}, known to ±{self.bound:.1g}"
        )
        if self.holds:
            return f"positive semi-definite on these {self.samples} samples: {spectrum}"
        if self.witness is None:
            return (
                f"not a kernel: K is not symmetric on these {self.samples} samples, "
                f"|K_ij − K_ji| reaches {self.asymmetry:.4g}"
            )
        return (
            f"not a kernel: the witness α (‖α‖ = 1) has αᵀKα = {self.value:.4g} < 0 on these "
            f"{self.samples} samples: {spectrum}"
        )

    def __repr__(self) -> str:
        return str(self)


def mercer(kernel: Any, X: Any) -> Verdict:
    """Whether a kernel meets Mercer's condition on samples, with the witness where it does not.

    Args:
        kernel: A kernel, a name, a function; or "precomputed" with X the matrix.
        X: (n, d), n ≤ a few thousand: an eigenvalue problem of size n is solved.

    >>> import numpy as np
    >>> from wonderland.kernels import Gaussian, Sigmoid
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> bool(mercer(Gaussian(1.0), X))
    True
    >>> verdict = mercer(Sigmoid(1.0, -1.0), X)
    >>> bool(verdict), bool(verdict.value < 0)
    (False, True)
    """
    from wonderland.kernels.resolve import resolve

    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
    chosen = resolve(kernel, X)
    K = np.asarray(chosen.matrix(X), np.float64)
    # Asymmetry is looked for where both halves were computed, not mirrored.
    other = np.asarray(chosen.matrix(X, X), np.float64)
    if K.size == 0 or not (np.isfinite(K).all() and np.isfinite(other).all()):
        raise InputError(
            "a kernel matrix that is empty or holds NaN or infinity",
            "finite values",
            "Look at kernel.matrix(X)",
        )
    size, n = float(np.abs(other).max()), len(K)
    noise = chosen.noise(X)
    bound = n * (SLACK * np.finfo(float).eps * size + noise)
    asymmetry = float(np.abs(other - other.T).max())
    half = (other + other.T) / 2.0
    values, vectors = sl.eigh(half, check_finite=False)
    alpha = vectors[:, 0] / np.linalg.norm(vectors[:, 0])
    value = float(alpha @ half @ alpha)
    fails = bool(values[0] < -bound and value < 0)
    return Verdict(
        holds=bool(not fails and asymmetry <= max(bound, ROUGH * size)),
        smallest=float(values[0]),
        largest=float(values[-1]),
        bound=bound,
        asymmetry=asymmetry,
        witness=alpha if fails else None,
        value=value if fails else None,
        samples=n,
    )


ROUGH = 1e-12  # asymmetry relative to the largest entry that differing orders of summation leave
