"""Proofs of separability and of its opposite that rounding cannot spoil.

A float64 is a fraction, so that a table of floats either is separable or is not. Two facts decide:

    a plane         z_i·v > 0 for every signed row z_i = s_i (x_i, 1)
    a meeting       Σ λ_i z_i = 0 with λ ≥ 0 and Σ λ_i = 1       (Gordan 1873: exactly one exists)

A score counts as positive when it exceeds its rounding bound, or else by its exact sign. A meeting
found in floats counts when a true one lies near it: on a square basis E_S u = f it suffices that
‖E_S u − f‖ < σ_min(E_S)·min u, and otherwise the basis is solved in whole numbers (E = [Zᵀ; 1ᵀ],
S the rows with λ > 0).
Shapes: Z (m, p) signed rows, p = d + 1 with the intercept; λ (m,).
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from wonderland.core.doubled import two_product

__all__ = ["Rows", "first_phase", "meeting_near", "null_vector", "surely_positive"]

Array = np.ndarray

EPS = np.finfo(np.float64).eps
DOUBTFUL = 4096  # rows whose sign is worth an exact computation
SMALL = 80  # unknowns of a system solved in whole numbers
SHORT = 600  # the same where the entries are short, such as counts and indicators
WHOLE = 24  # multiples of 1/24 are tried as factors between dependent columns
UNIT = 2.0**20
TINY = 5000  # entries of a table whose linear program is solved in fractions


class Rows(NamedTuple):
    """The samples with their signs.

    Attributes:
        X: (n, d), dense or CSR, float64.
        signs: (n,), −1.0 or +1.0.
        intercept: Whether the plane need not pass through the origin.
        norms: ‖x_i‖ (n,).
    """

    X: Any
    signs: Array
    intercept: bool
    norms: Array

    @classmethod
    def of(cls, X: Any, signs: Array, *, intercept: bool) -> "Rows":
        """Measure the rows once."""
        if sp.issparse(X):
            squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", X, X)
        return cls(X, signs, intercept, np.sqrt(squares))

    def scores(self, coef: Array, intercept: float) -> Array:
        """s_i (w·x_i + b) (n,)."""
        return self.signs * (self.X @ coef + intercept)

    def dense(self, index: Any) -> Array:
        """The samples `index` themselves, dense (m, d)."""
        found = self.X[index]
        return found.toarray() if sp.issparse(found) else np.asarray(found)


def surely_positive(rows: Rows, coef: Array, intercept: float, scores: Array) -> bool:
    """Whether every exact score is positive, given the computed ones."""
    width = float(len(coef) + 4)
    size = rows.norms * float(np.linalg.norm(coef)) + abs(intercept)
    bound = width * EPS * size + np.finfo(float).tiny
    if not np.all(np.isfinite(size)) or np.any(scores < -bound):
        return False
    doubtful = np.flatnonzero(scores <= bound)
    if len(doubtful) > DOUBTFUL:
        return False
    return all(_exact_sign(rows, i, coef, intercept) > 0 for i in doubtful.tolist())


def _exact_sign(rows: Rows, i: int, coef: Array, intercept: float) -> float:
    """A number with the sign of the exact score: exact products, correctly rounded sum."""
    high, low = two_product(rows.dense([i])[0], coef)
    return math.fsum([*high.tolist(), *low.tolist(), intercept]) * float(rows.signs[i])


def meeting_near(Z: Array, weights: Array) -> Array | None:
    """A λ ≥ 0 with Σ λ_i z_i = 0, Σ λ_i = 1, proved to exist near `weights`; else None.

    Args:
        Z: (m, p) signed rows.
        weights: A candidate (m,), positive on a basis.
    """
    support = np.flatnonzero(weights > 0)
    basis, candidate = Z[support], weights[support] / weights.sum()
    found = _near(basis, candidate)
    if found is None and len(support) <= (SHORT if _short(basis) else SMALL):
        found = _whole_meeting(basis)
    if found is None:
        return None
    spread = np.zeros(len(weights))
    spread[support] = found / found.sum()
    return spread


def _near(basis: Array, weights: Array) -> Array | None:
    """The candidate itself where E_S u = f is far enough from singular, and nearly solved."""
    E = np.vstack([basis.T, np.ones(len(basis))])
    if len(E) > len(basis):
        E = _without_dependent(E)
    if len(E) != len(basis):
        return None
    right = np.zeros(len(E))
    right[-1] = 1.0
    rounding = len(E) * EPS * (np.abs(E) @ np.abs(weights) + right)
    apart = float(np.linalg.norm(np.abs(E @ weights - right) + rounding))
    least = np.linalg.svd(E, compute_uv=False)[-1] - len(E) ** 2 * EPS * np.linalg.norm(E)
    return weights if apart < least * weights.min() else None


def _without_dependent(E: Array) -> Array:
    """As many equations as unknowns, where whole multiples of these give the others exactly.

    Indicator columns that add up to the constant are the common case. Entries are taken only where
    they are multiples of 2⁻²⁰, so that the products below are exact.
    """
    count = E.shape[1]
    order = scipy.linalg.qr(E[:-1].T, mode="r", pivoting=True)[1]
    kept = np.append(np.sort(order[: count - 1]), len(E) - 1)
    rest = np.sort(order[count - 1 :])
    try:
        factors = np.linalg.solve(E[kept].T, E[rest].T).T
    except np.linalg.LinAlgError:
        return E
    whole = np.round(WHOLE * factors)
    units = E * UNIT
    exact = _short(E) and np.abs(whole).max(initial=0.0) * np.abs(units).max() * count < 2.0**53
    given = np.all(whole @ units[kept] == WHOLE * units[rest])
    # The last equation alone has a right side that is not zero.
    return E[kept] if exact and given and not np.any(whole[:, -1]) else E


def _short(basis: Array) -> bool:
    units = basis * UNIT
    return bool(np.all(units == np.round(units)))


def _whole_meeting(basis: Array) -> Array | None:
    """The combination of the basis that vanishes exactly, where it is unique and of one sign."""
    columns = [_whole(column) for column in basis.T if np.any(column)]
    found = null_vector(columns, len(basis))
    if found is None or not (min(found) >= 0 or max(found) <= 0):
        return None
    total = sum(found)
    return np.array([float(value / total) for value in found])


def _whole(column: Array) -> list[int]:
    """The column as whole numbers, all divided by the same power of two."""
    ratios = [float(value).as_integer_ratio() for value in column]
    common = max(bottom for _, bottom in ratios)
    return [top * (common // bottom) for top, bottom in ratios]


def null_vector(equations: Sequence[list[int]], unknowns: int) -> list[Fraction] | None:
    """The one solution of homogeneous equations in whole numbers, up to its length, else None.

    Rows are eliminated without fractions, their common divisors taken out; once all unknowns but
    one are pivots the solution is known and the remaining equations are only tried on it.

    >>> [int(value) for value in null_vector([[1, -1, 0], [0, 1, -2]], 3)]
    [2, 2, 1]
    """
    pivots: list[tuple[int, list[int]]] = []
    for number, equation in enumerate(equations):
        if len(pivots) == unknowns - 1:
            found = _back(pivots, unknowns)
            rest = equations[number:]
            fits = all(_dot(row, found) == 0 for row in rest)
            return found if fits else None
        reduced = _reduce(equation, pivots)
        place = next((j for j, value in enumerate(reduced) if value), None)
        if place is not None:
            pivots.append((place, reduced))
    return _back(pivots, unknowns) if len(pivots) == unknowns - 1 else None


def _reduce(equation: list[int], pivots: list[tuple[int, list[int]]]) -> list[int]:
    for place, pivot in pivots:
        if equation[place]:
            a, b = pivot[place], equation[place]
            equation = [a * x - b * y for x, y in zip(equation, pivot, strict=True)]
            common = math.gcd(*equation)
            equation = [x // common for x in equation] if common > 1 else equation
    return equation


def _back(pivots: list[tuple[int, list[int]]], unknowns: int) -> list[Fraction]:
    places = {place for place, _ in pivots}
    solution = [Fraction(0 if j in places else 1) for j in range(unknowns)]
    for place, row in reversed(pivots):
        solution[place] = -_dot(row, solution) / row[place]
    return solution


def _dot(row: Sequence[Any], solution: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(row, solution, strict=True) if x and y), Fraction(0))


def first_phase(Z: Array) -> tuple[list[Fraction] | None, list[Fraction]]:
    """Decide Σ λ_i z_i = 0, Σ λ_i = 1, λ ≥ 0 by the simplex method in fractions.

    Bland's rule (1977) makes it finite. It is meant for tables of a few hundred entries.

    Args:
        Z: (m, p).

    Returns:
        (λ, []) where a meeting exists, else (None, v) with z_i·v > 0 for every row.
    """
    m, p = Z.shape
    table = [[*_fractions(Z[:, j]), *_unit(j, p + 1), Fraction(0)] for j in range(p)]
    table.append([*[Fraction(1)] * m, *_unit(p, p + 1), Fraction(1)])
    basis = list(range(m, m + p + 1))
    # The sum of the artificial variables, written by those outside the basis.
    cost = [-sum(column, Fraction(0)) for column in zip(*table, strict=True)]
    cost[m : m + p + 1] = [Fraction(0)] * (p + 1)
    while (enter := next((j for j in range(m) if cost[j] < 0), None)) is not None:
        _pivot(table, cost, basis, enter)
    if cost[-1] != 0:
        # Multipliers of the equations: y·(z_i, 1) ≤ 0 while the last is positive.
        multipliers = [cost[m + j] - 1 for j in range(p)]
        return None, multipliers
    meeting = [Fraction(0)] * m
    for row, variable in enumerate(basis):
        if variable < m:
            meeting[variable] = table[row][-1]
    return meeting, []


def _fractions(column: Array) -> list[Fraction]:
    return [Fraction(float(value)) for value in column]


def _unit(j: int, size: int) -> list[Fraction]:
    return [Fraction(int(k == j)) for k in range(size)]


def _pivot(table: list[list[Fraction]], cost: list[Fraction], basis: list[int], enter: int) -> None:
    """Bring column `enter` into the basis; the lowest variable among the tied leaves."""
    ratios = [(row[-1] / row[enter], basis[i], i) for i, row in enumerate(table) if row[enter] > 0]
    leave = min(ratios)[2]
    pivot = [value / table[leave][enter] for value in table[leave]]
    table[leave], basis[leave] = pivot, enter
    for row in [*(row for i, row in enumerate(table) if i != leave), cost]:
        if factor := row[enter]:
            row[:] = [x - factor * y for x, y in zip(row, pivot, strict=True)]
