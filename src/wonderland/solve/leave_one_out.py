"""Leave-one-out error of ridge for a whole path of penalties, from one factorisation.

With the centred, weighted table X̃ = T Vᵀ (T = X̃V the scores, V the eigenvectors of X̃ᵀX̃, s its
eigenvalues) and c = Tᵀỹ,

    r_i(α) = ỹ_i − Σ_k T_ik c_k / (s_k + α),    h_i(α) = ω_i/Σω + Σ_k T_ik² / (s_k + α),

and the error made on sample i by the fit without it is e_i = r_i / (1 − h_i), exactly (Allen 1974).
Its derivative in α is closed form too, since d/dα 1/(s + α) = −1/(s + α)²:

    e' = r'/(1 − h) + r·h'/(1 − h)² .

Everything is matrix products over row blocks: T is never stored. A wide table interpolates, r and
1 − h both vanish with α, and their quotient loses its digits; there, with U the eigenvectors of
X̃X̃ᵀ across the intercept's direction, α cancels from the quotient before anything is computed:

    e_i = Σ_k U_ik (Uᵀỹ)_k / (s_k + α)  ÷  Σ_k U_ik² / (s_k + α) .

Shapes: alphas (a,), T (n, k), U (n, m).
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl
from scipy.optimize import brentq

from wonderland.core.blocks import map_rows
from wonderland.solve.moments import ROWS, Moments, host_moments
from wonderland.solve.problem import Array, LeastSquares

__all__ = ["Curve", "Spectrum", "default_alphas", "loo_curve", "spectrum", "tune"]


DECADES = 12  # how far beyond the path a falling error is followed


class Spectrum(NamedTuple):
    """One factorisation that serves every penalty.

    Attributes:
        problem: The data; `alpha` is ignored.
        moments: Weighted means and total weight.
        values: Eigenvalues s of X̃ᵀX̃, largest first (k,).
        vectors: V (d, k), so that the scores are T = X̃V.
        cross: c = Tᵀỹ (k, t).
        rows: The same for X̃X̃ᵀ where the table is wide; None where it is tall.
    """

    problem: LeastSquares
    moments: Moments
    values: Array
    vectors: Array
    cross: Array
    rows: "RowSpectrum | None" = None

    def coefficients(self, alpha: Array) -> Array:
        """w(α) = V diag(1/(s + α)) c for one α per output (d, t)."""
        return self.vectors @ (self.cross * self.shrink(alpha))

    def shrink(self, alphas: Array) -> Array:
        """1/(s + α) (k, a); zero where s + α is, which gives the minimum-norm fit at α = 0."""
        curve = self.values[:, None] + alphas
        return np.where(curve > 0, 1.0 / np.where(curve > 0, curve, 1.0), 0.0)


class RowSpectrum(NamedTuple):
    """Eigenvalues s (m,), eigenvectors U (n, m) of X̃X̃ᵀ without √ω, and Uᵀỹ (m, t)."""

    values: Array
    vectors: Array
    cross: Array


class Curve(NamedTuple):
    """Mean squared leave-one-out error and its derivative in α, per output: (a, t) each."""

    alphas: Array
    error: Array
    slope: Array

    def best(self) -> "Curve":
        """The point of smallest total error."""
        here = int(np.argmin(self.error.sum(axis=1)))
        return Curve(*(part[here : here + 1] for part in self))

    @property
    def log_slope(self) -> float:
        """d(total error)/d log α at the first point."""
        return float(self.alphas[0] * self.slope[0].sum())


def spectrum(problem: LeastSquares) -> Spectrum:
    """Eigendecompose the smaller of the two Gram matrices."""
    n, d = problem.X.shape
    if d + 1 < n:
        moments = host_moments(problem)
        values, vectors = sl.eigh(moments.gram, check_finite=False, driver="evd")
        # Below rounding level an eigenvalue says nothing; zero says "nothing here", exactly.
        floor = 8 * values[-1] * d * np.finfo(float).eps
        values, vectors = np.where(values > floor, values, 0.0)[::-1], vectors[:, ::-1]
        return Spectrum(problem, moments, values, vectors, vectors.T @ moments.cross)
    return _wide_spectrum(problem)


def _wide_spectrum(problem: LeastSquares) -> Spectrum:
    weight = np.ones(len(problem.X)) if problem.weight is None else problem.weight
    mass, keep, root = weight.sum(), float(problem.fit_intercept), np.sqrt(weight)[:, None]
    mean_x, mean_y = keep * (weight @ problem.X) / mass, keep * (weight @ problem.y) / mass
    X, y = root * (problem.X - mean_x), root * (problem.y - mean_y)
    across = _across(root) if problem.fit_intercept else np.eye(len(X))
    rows = across.T @ X
    values, turn = sl.eigh(rows @ rows.T, check_finite=False)
    values, U = values[::-1], across @ turn[:, ::-1]
    floor = values.max(initial=0.0) * len(X) * np.finfo(float).eps
    values, cross = np.maximum(values, floor), U.T @ y
    kept = values > floor
    root_values = np.sqrt(values[kept])
    empty = np.zeros((0, 0))
    return Spectrum(
        problem,
        Moments(mass, mean_x, mean_y, empty, empty, (y**2).sum(axis=0)),
        values[kept],
        X.T @ (U[:, kept] / root_values),
        root_values[:, None] * cross[kept],
        RowSpectrum(values, U, cross),
    )


def _across(root: Array) -> Array:
    """Orthonormal columns (n, n − 1) across √ω (n, 1): a Householder reflection but its first."""
    mirror = root / np.sqrt((root**2).sum())
    mirror[0] += 1.0
    return (np.eye(len(root)) - mirror * mirror.T / mirror[0])[:, 1:]


def default_alphas(values: Array, count: int = 20) -> Array:
    """A logarithmic path across the spectrum: from hardly any shrinkage to nearly all of it."""
    top = max(float(values[0]) if len(values) else 1.0, np.finfo(float).tiny)
    return np.geomspace(1e-8 * top, 1e2 * top, count)


def loo_curve(found: Spectrum, alphas: Array, *, slopes: bool = True) -> Curve:
    """Weighted mean of e_i² at each α, one pass over the data; without `slopes` they are NaN."""
    problem, n = found.problem, len(found.problem.X)
    if found.rows is not None:
        total = _wide_pass(found.rows, alphas)
    else:
        work = _slope_pass if slopes else _pass
        total = np.sum(map_rows(lambda i, j: work(found, alphas, i, j), n, problem.X.size), axis=0)
    error, slope = total / found.moments.mass
    return Curve(alphas, error, slope if slopes else np.full_like(error, np.nan))


def _wide_pass(rows: RowSpectrum, alphas: Array) -> Array:
    """Σ e² and d/dα Σ e² of the interpolating form: (2, a, t)."""
    total = np.empty((2, len(alphas), rows.cross.shape[1]))
    for a, alpha in enumerate(alphas):
        curve = rows.values + alpha
        shrink = 1.0 / np.where(curve > 0, curve, 1.0)[:, None]
        spare = rows.vectors**2 @ np.hstack([shrink, shrink**2])  # D, −D' (n, 2)
        e = rows.vectors @ (shrink * rows.cross) / spare[:, :1]
        slope = (e * spare[:, 1:] - rows.vectors @ (shrink**2 * rows.cross)) / spare[:, :1]
        total[:, a] = (e**2).sum(axis=0), 2.0 * (e * slope).sum(axis=0)
    return total


def _pass(found: Spectrum, alphas: Array, start: int, stop: int) -> Array:
    """Σ e² over rows start … stop, and zeros where `_slope_pass` has its derivative: (2, a, t)."""
    t, shrink = found.cross.shape[1], found.shrink(alphas)
    maps = (found.cross[:, :, None] * shrink[:, None, :]).reshape(len(shrink), -1)
    total = np.zeros((2, len(alphas), t))
    for i in range(start, stop, ROWS):
        T, y, base = _scores(found, slice(i, min(i + ROWS, stop)))
        e = y[:, :, None] - (T @ maps).reshape(len(T), t, len(alphas))
        np.multiply(T, T, out=T)
        spare = T @ shrink  # h without the intercept's share (b, a)
        np.subtract(1.0 - base, spare, out=spare)
        e /= spare[:, None, :]
        e *= e
        total[0] += e.sum(axis=0).T
    return total


def _slope_pass(found: Spectrum, alphas: Array, start: int, stop: int) -> Array:
    """Σ e² and d/dα Σ e² over rows start … stop: (2, a, t)."""
    t, shrink = found.cross.shape[1], found.shrink(alphas)
    shrunk = (found.cross[:, :, None] * shrink[:, None, :]).reshape(len(shrink), -1)
    turned = (found.cross[:, :, None] * shrink[:, None, :] ** 2).reshape(len(shrink), -1)
    maps, squares = np.hstack([shrunk, turned]), np.hstack([shrink, shrink**2])
    total = np.zeros((2, len(alphas), t))
    for i in range(start, stop, ROWS):
        T, y, base = _scores(found, slice(i, min(i + ROWS, stop)))
        moved = (T @ maps).reshape(len(T), 2, t, len(alphas))
        leverage = T**2 @ squares
        spare = 1.0 - base - leverage[:, : len(alphas)]  # 1 − h (b, a)
        inverse = 1.0 / spare[:, None, :]
        e = (y[:, :, None] - moved[:, 0]) * inverse
        # r' = +T c/(s+α)², h' = −T²/(s+α)²
        slope = (moved[:, 1] - e * leverage[:, None, len(alphas) :]) * inverse
        total[0] += (e**2).sum(axis=0).T
        total[1] += 2.0 * (e * slope).sum(axis=0).T
    return total


def _scores(found: Spectrum, rows: slice) -> tuple[Array, Array, Array]:
    """Scores T (b, k), targets ỹ (b, t) and the intercept's share of leverage (b, 1)."""
    problem, moments = found.problem, found.moments
    T = problem.X[rows] @ found.vectors
    T -= moments.mean_x @ found.vectors
    y = problem.y[rows] - moments.mean_y
    keep = float(problem.fit_intercept)
    if problem.weight is None:
        return T, y, np.full((len(T), 1), keep / moments.mass)
    weight = problem.weight[rows, None]
    return np.sqrt(weight) * T, np.sqrt(weight) * y, keep * weight / moments.mass


def tune(found: Spectrum, curve: Curve) -> Curve:
    """The α where the derivative of the error vanishes, one for all outputs; a curve of one point.

    From the best point of the path the slope says which way is down; steps of a decade go on until
    it turns, then Brent's method finds the zero of dLOO/d log α. Each evaluation is one pass over
    the data. An error that falls for ever (α → 0 or ∞) is followed for `DECADES` decades.
    """
    points: dict[float, Curve] = {}

    def slope(log_alpha: float) -> float:
        points[log_alpha] = loo_curve(found, np.exp([log_alpha]))
        return points[log_alpha].log_slope

    start = float(np.log(curve.best().alphas[0]))
    here, down = start, -np.sign(slope(start))
    for _ in range(DECADES):
        before, here = here, here + down * np.log(10.0)
        if down == 0 or slope(here) * down > 0:
            low, high = min(before, here), max(before, here)
            slope(float(brentq(slope, low, high, xtol=1e-10)) if down else start)
            break
    return min(points.values(), key=lambda point: float(point.error.sum()))
