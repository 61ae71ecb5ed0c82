"""A centred table in its own axes: all that the evidence of Bayesian regression depends on.

    √Ω(X − 1x̄ᵀ) = U S Vᵀ ,   c = Uᵀ√Ω(y − ȳ) ,   rest = ‖√Ω(y − ȳ) − Uc‖²

Shapes: X (n, d), V (d, r), s = S² (r,), c (r,), r ≤ min(n, d). One factorisation serves every
value of the precisions. Tall tables are squared (one pass over the rows) where that loses nothing,
and otherwise reduced by QR.
"""

from typing import NamedTuple

import numpy as np

from wonderland.core.errors import NotFiniteError
from wonderland.solve.moments import Moments, host_moments
from wonderland.solve.problem import Array, LeastSquares
from wonderland.solve.totals import Totals

__all__ = ["Axes", "axes_of", "axes_of_totals"]

LONG = 100_000_000  # n·d² above which squaring the table pays off
SQUARED = 1e-10  # smallest over largest s above which s from the squared table has enough digits
CANCELLED = 1e-8  # of ‖y − ȳ‖² below which `rest` is summed again from the rows
EPS = float(np.finfo(float).eps)


class Axes(NamedTuple):
    """The table in its axes.

    Attributes:
        values: s, descending (r,).
        axes: V (d, r).
        along: c (r,).
        rest: What no coefficients reach of Σω(y − ȳ)².
        mass: N = Σω.
        mean_x: x̄ (d,), zero without an intercept.
        mean_y: ȳ.
        reason: How it was computed.
    """

    values: Array
    axes: Array
    along: Array
    rest: float
    mass: float
    mean_x: Array
    mean_y: float
    reason: str

    @property
    def condition(self) -> float:
        """Largest over smallest singular value of the centred table."""
        if not len(self.values) or self.values[0] == 0:
            return np.inf
        full = len(self.values) == len(self.mean_x)
        low = self.values[-1] if full else 0.0
        return float(np.sqrt(self.values[0] / low)) if low > 0 else np.inf

    @property
    def rank(self) -> int:
        """Axes along which the table is longer than rounding."""
        if not len(self.values):
            return 0
        small = EPS * max(len(self.mean_x), len(self.values)) * np.sqrt(self.values[0])
        return int(np.count_nonzero(np.sqrt(self.values) > small))


def axes_of(problem: LeastSquares) -> Axes:
    """The axes of a table in memory; y (n, 1)."""
    n, d = problem.X.shape
    if n > d and float(n) * d * d >= LONG:
        moments = host_moments(problem)
        found = _squared(moments, "eigenvectors of the squared table: one pass over the rows")
        if found.values[-1] >= SQUARED * found.values[0]:
            return _summed_again(problem, found)
    return _factored(problem)


def _centred(problem: LeastSquares) -> tuple[Array, Array, Array, float, float]:
    """√Ω(X − x̄), √Ω(y − ȳ), x̄, ȳ, Σω."""
    X, y, root = problem.X, problem.y[:, 0], problem.root_weight()
    omega = np.ones(len(y)) if problem.weight is None else problem.weight
    mass = float(omega.sum())
    mean_x: Array = np.zeros(X.shape[1])
    mean_y = 0.0
    if problem.fit_intercept:
        mean_x, mean_y = omega @ X / mass, float(omega @ y / mass)
        # Once more around the means: what rounding left in the first sum goes.
        mean_x = mean_x + omega @ (X - mean_x) / mass
        mean_y += float(omega @ (y - mean_y) / mass)
    Z, t = X - mean_x, y - mean_y
    if root is not None:
        Z, t = Z * root, t * root[:, 0]
    if not (np.isfinite(Z).all() and np.isfinite(t).all()):
        raise NotFiniteError("X or y holds NaN or infinity")
    return Z, t, mean_x, float(mean_y), mass


def _factored(problem: LeastSquares) -> Axes:
    """By QR and singular values: every digit that the table has."""
    Z, t, mean_x, mean_y, mass = _centred(problem)
    reason, rest = "singular values of the centred table", 0.0
    if len(Z) > Z.shape[1]:
        R = np.asarray(np.linalg.qr(np.column_stack([Z, t]), mode="r"))
        Z, t, rest = R[:-1, :-1], R[:-1, -1], float(R[-1, -1] ** 2)
        reason = "QR of the centred table, singular values of its triangle"
    U, S, Vt = np.linalg.svd(Z, full_matrices=False)
    S[EPS * max(problem.X.shape) * S.max(initial=0.0) >= S] = 0.0
    along = np.where(S > 0, U.T @ t, 0.0)  # axes of rounding noise tell nothing
    rest += float(np.sum((t - U @ along) ** 2))
    return Axes(S**2, Vt.T, along, rest, mass, mean_x, mean_y, reason)


def _squared(moments: Moments, reason: str) -> Axes:
    values, axes = np.linalg.eigh(moments.gram)
    values, axes = values[::-1], np.ascontiguousarray(axes[:, ::-1])
    kept = values > EPS * len(values) * max(float(values[0]), 0.0)
    values = np.where(kept, values, 0.0)
    pulled = axes.T @ moments.cross[:, 0]
    along = np.divide(pulled, np.sqrt(values), out=np.zeros_like(pulled), where=kept)
    rest = max(float(moments.power[0] - along @ along), 0.0)
    mean_y = float(np.ravel(moments.mean_y)[0])
    return Axes(values, axes, along, rest, float(moments.mass), moments.mean_x, mean_y, reason)


def _summed_again(problem: LeastSquares, found: Axes) -> Axes:
    """`rest` from the rows where the difference of two sums would have no digits left."""
    if found.rest > CANCELLED * float(found.along @ found.along):
        return found
    w = found.axes @ (found.along / np.sqrt(found.values))
    residual = problem.y[:, 0] - problem.X @ w
    if problem.fit_intercept:
        residual -= found.mean_y - found.mean_x @ w
    omega = 1.0 if problem.weight is None else problem.weight
    return found._replace(rest=float(np.sum(omega * residual**2)))


def axes_of_totals(totals: Totals, *, fit_intercept: bool) -> Axes:
    """The axes of data that passed by once."""
    d, M, mass = totals.features, totals.moments.value, totals.mass
    scale, mean = totals.scale[1:], np.zeros(d + 1)
    rest = M[1:, 1:]
    if fit_intercept:
        mean = M[0, 1:] / M[0, 0]
        rest = rest - np.outer(M[0, 1:], mean)
        mean = totals.shift[1:] + mean / scale
    rest = rest / np.outer(scale, scale)
    moments = Moments(mass, mean[:d], mean[d:], rest[:d, :d], rest[:d, d:], np.diag(rest)[d:])
    return _squared(moments, f"{totals.seen:,} rows came in chunks: one pass, then eigenvectors")
