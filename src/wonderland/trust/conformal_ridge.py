"""Jackknife+ of ridge and least squares without refitting.

With z = (1, x), D the penalty on coefficients (the intercept is free) and M = ZᵀΩZ + D, the fit
without row i predicts, by the Sherman–Morrison formula,

    μ_{−i}(x) = μ(x) − ω_i zᵀM⁻¹z_i · e_i / (1 − h_i),     h_i = ω_i z_iᵀM⁻¹z_i,

with e_i = y_i − μ(x_i), and its error on that row is e_i/(1 − h_i). Centring splits M:
zᵀM⁻¹z_i = 1/Σω + x̃ᵀA⁻¹x̃_i with A = X̃ᵀΩX̃ + αI. For all new rows and all i this is one matrix
product (m, d)(d, n).

The fitted coefficients are compared with those of the closed form, so that an estimator that is not
what its name says (a basis of its own, an early end) is refitted instead.

Reference: Barber, Candès, Ramdas, Tibshirani (2021); Allen (1974) for e_i/(1 − h_i).
"""

import numbers
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from wonderland.bases.basis import expand
from wonderland.core.blocks import map_rows

__all__ = ["LeftOut", "leave_one_out"]

NAMES = ("Ridge", "LinearRegression")  # of this library and of scikit-learn
AGREE = 1e-6  # relative difference of predictions that closed form and fit may have
ROWS = 256  # new rows that share one choice of candidates
ENTRIES = 1 << 17  # of a block of shifts, which stays in the cache
SPARE = 1e-9  # 1 − h below which a row determines a coefficient alone, and cannot be left out


class LeftOut(NamedTuple):
    """All fits without one row, as one linear map.

    Attributes:
        estimator: Fitted on all rows.
        errors: y_i − μ_{−i}(x_i) (n,).
        slope: (n, d), and
        offset: (n,): μ_{−i}(x) = μ(x) − offset_i − slope_i·x.
        mean: x̄ (d,), zeros without an intercept.
        leverage: The largest h_i.
    """

    estimator: Any
    errors: np.ndarray
    slope: np.ndarray
    offset: np.ndarray
    mean: np.ndarray
    leverage: float

    def table(self, X: Any) -> np.ndarray:
        """X as the columns that coefficients belong to (m, d)."""
        return _columns(self.estimator, X)

    def shifts(self, table: np.ndarray) -> np.ndarray:
        """μ(x) − μ_{−i}(x) for rows of a table (m, n)."""
        return table @ self.slope.T + self.offset

    def reach(
        self, table: np.ndarray, kept: np.ndarray, scores: np.ndarray, rank: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rank-th smallest of R_i + (μ − μ_{−i})(x) and of R_i − (μ − μ_{−i})(x) (m,) each.

        The lower end of jackknife+ is μ(x) less the first, the upper end μ(x) plus the second. What
        leaving out a row changes is small beside R, |slope_i·(x − x̄) + base_i| ≤ b_i: the value
        sought lies between the rank-th smallest of R − b and that of R + b, and only rows whose own
        interval R_i ± b_i meets those two are looked at.

        Args:
            table: New rows (m, d).
            kept: Rows whose fits are in play (n,).
            scores: R of those (n,).
            rank: Counted from one, at most n.
        """
        slope, base = self.slope[kept], (self.offset + self.slope @ self.mean)[kept]
        length = np.sqrt((slope**2).sum(axis=1))
        down, up = np.empty(len(table)), np.empty(len(table))

        def work(start: int, stop: int) -> None:
            for i in range(start, stop, ROWS):
                rows = slice(i, min(i + ROWS, stop))
                centred = table[rows] - self.mean
                far = np.sqrt((centred**2).sum(axis=1).max())
                slack = (np.abs(base) + length * far) * (1 + 1e-9)
                least = np.partition(scores - slack, rank - 1)[rank - 1]
                most = np.partition(scores + slack, rank - 1)[rank - 1]
                below = scores + slack < least
                here = np.flatnonzero(~below & (scores - slack <= most))
                place = rank - 1 - int(np.count_nonzero(below))
                down[rows], up[rows] = _selected(
                    centred, slope[here], base[here], scores[here], place
                )

        map_rows(work, len(table), len(table) * len(kept))
        return down, up


def _selected(
    centred: np.ndarray, slope: np.ndarray, base: np.ndarray, scores: np.ndarray, place: int
) -> tuple[np.ndarray, np.ndarray]:
    """The value at `place` of R + shift and of R − shift for each row, a few rows at a time."""
    down, up = np.empty(len(centred)), np.empty(len(centred))
    step = max(1, ENTRIES // len(scores))
    for i in range(0, len(centred), step):
        rows = slice(i, i + step)
        shift = centred[rows] @ slope.T
        shift += base
        rest = scores - shift
        shift += scores
        for values, found in ((shift, down), (rest, up)):
            values.partition(place, axis=1)
            found[rows] = values[:, place]
    return down, up


def leave_one_out(estimator: Any, X: Any, y: np.ndarray, weight: Any = None) -> LeftOut | None:
    """The fits without each row, or None where refitting is needed.

    Args:
        estimator: Fitted on X, y.
        X: (n, d).
        y: (n,).
        weight: ω (n,) > 0 of the fit.
    """
    alpha = _penalty(estimator)
    if alpha is None or (alpha == 0 and np.asarray(estimator.coef_).size + 1 >= len(y)):
        return None
    table = _columns(estimator, X)
    if table is None:
        return None
    omega = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    keep = 1.0 if estimator.fit_intercept else 0.0
    mass, mean = omega.sum(), keep * (omega @ table) / omega.sum()
    centred = table - mean
    gram = (centred * omega[:, None]).T @ centred
    gram[np.diag_indices_from(gram)] += alpha
    try:
        factor = sl.cho_factor(gram, check_finite=False)
        inverse = sl.cho_solve(factor, centred.T, check_finite=False)  # A⁻¹x̃_i (d, n)
    except sl.LinAlgError:
        return None
    fitted = np.asarray(estimator.predict(X), dtype=np.float64).reshape(-1)
    e = y - fitted
    target = (y - keep * (omega @ y) / mass) * omega
    closed = keep * (omega @ y) / mass + centred @ (inverse @ target)
    h = omega * (keep / mass + (centred * inverse.T).sum(axis=1))
    if not _same(closed, fitted, y) or h.max() > 1 - SPARE:
        return None
    share = omega * e / (1 - h)
    slope = inverse.T * share[:, None]
    return LeftOut(
        estimator, e / (1 - h), slope, keep * share / mass - slope @ mean, mean, float(h.max())
    )


def _same(closed: np.ndarray, fitted: np.ndarray, y: np.ndarray) -> bool:
    """Whether the closed form and the fit are one: NaN is not."""
    return bool(np.abs(closed - fitted).max() <= AGREE * max(float(np.ptp(y)), 1e-300))


def _penalty(estimator: Any) -> float | None:
    """α of a ridge or least-squares fit whose penalty the data did not choose; else None."""
    kind = type(estimator)
    ours = kind.__module__.partition(".")[0] in ("wonderland", "sklearn")
    if not ours or kind.__name__ not in NAMES or getattr(estimator, "positive", False):
        return None
    alpha = getattr(estimator, "alpha", 0.0)
    if isinstance(alpha, numbers.Real) and np.asarray(estimator.coef_).ndim == 1:
        return float(alpha)
    return None


def _columns(estimator: Any, X: Any) -> Any:
    """X as the columns that coefficients belong to, dense float64 (n, d)."""
    table = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    basis = getattr(estimator, "basis", None)
    return table if basis is None else np.asarray(expand(basis, table).high)
