"""Least squares in exact rational arithmetic: the truth that floating answers are held to.

Every float64 is a fraction, and elimination on fractions rounds nothing.
"""

from fractions import Fraction

import numpy as np


def rows_of(X, *, fit_intercept: bool) -> list[list[Fraction]]:
    first = [Fraction(1)] if fit_intercept else []
    return [first + [Fraction(float(x)) for x in row] for row in X]


def eliminate(A: list[list[Fraction]], b: list[Fraction]) -> list[Fraction]:
    """A⁻¹b by Gauss–Jordan."""
    n = len(A)
    work = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if work[i][k] != 0)
        work[k], work[pivot] = work[pivot], work[k]
        for i in range(n):
            if i != k and work[i][k] != 0:
                factor = work[i][k] / work[k][k]
                work[i] = [a - factor * b for a, b in zip(work[i], work[k], strict=True)]
    return [row[n] / row[k] for k, row in enumerate(work)]


def exact_least_squares(X, y, *, fit_intercept: bool, alpha=0.0, weight=None) -> list[Fraction]:
    """(ZᵀΩZ + αD)⁻¹Zᵀ Ωy for Z = [1, X], as fractions; D is zero at the intercept."""
    Z = rows_of(X, fit_intercept=fit_intercept) if not isinstance(X, list) else X
    y = [Fraction(v) if isinstance(v, Fraction) else Fraction(float(v)) for v in y]
    omega = [Fraction(1)] * len(Z) if weight is None else [Fraction(float(w)) for w in weight]
    p = len(Z[0])
    G = [
        [sum(w * z[i] * z[j] for w, z in zip(omega, Z, strict=True)) for j in range(p)]
        for i in range(p)
    ]
    for j in range(int(fit_intercept), p):
        G[j][j] += Fraction(float(alpha))
    h = [sum(w * z[i] * v for w, z, v in zip(omega, Z, y, strict=True)) for i in range(p)]
    return eliminate(G, h)


def relative(found, truth: list[Fraction]) -> float:
    """Largest |found − truth| over the largest |truth|."""
    size = max(abs(t) for t in truth)
    return float(max(abs(Fraction(float(f)) - t) for f, t in zip(found, truth, strict=True)) / size)


def correct_digits(found, truth: list[Fraction]) -> float:
    """−log₁₀ of the worst relative error of a coefficient, within 0 … 16."""
    worst = max(
        abs(Fraction(float(f)) - t) / abs(t) for f, t in zip(found, truth, strict=True) if t != 0
    )
    return 16.0 if worst == 0 else float(np.clip(-np.log10(float(worst)), 0.0, 16.0))
