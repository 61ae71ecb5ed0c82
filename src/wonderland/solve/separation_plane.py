"""The widest plane through few rows, and rounds that make it the widest through all.

The plane of the largest margin min_i z_i·v / ‖v‖ is normal to the point of the rows' hull nearest
to the origin: one problem of non-negative least squares (Lawson & Hanson 1974, chapter 23),

    min ‖Eu − f‖ over u ≥ 0,   E = [Zᵀ; 1ᵀ],  f = (0, …, 0, 1),     v = Zᵀu / ‖Zᵀ u‖²·Σu

The origin itself lies in the hull when the residual is zero. Only rows near the plane matter: each
round solves for a working set and lets those rows in that the plane found does not keep apart.
Shapes: Z (m, p) signed rows of the working set, u (m,), v (p,).
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import nnls

from wonderland.solve.separation_proof import Rows

__all__ = ["Frame", "Plane", "affine", "augmented", "balanced", "nearest", "outside", "widen"]

Array = np.ndarray

FAR = 1e3  # size of the constant column, in radii, that leaves the intercept free
SHARP = 1e-9  # relative amount by which rows may lie inside the widest margin
ROUNDS = 200


class Frame(NamedTuple):
    """The coordinates in which hulls are measured: ((x − shift)·scale, constant).

    Attributes:
        shift: (d,).
        scale: (d,).
        constant: The entry that carries the intercept, where there is one.
        free: Whether the intercept counts for nothing in the length of a plane's normal.
    """

    shift: Array
    scale: Array
    constant: float = 1.0
    free: bool = False

    def into(self, rows: Rows, index: Array) -> Array:
        """The signed rows `index` in these coordinates (m, p)."""
        X = (rows.dense(index) - self.shift) * self.scale
        if rows.intercept:
            X = np.hstack([X, np.full((len(X), 1), self.constant)])
        return rows.signs[index][:, None] * X

    def back(self, v: Array) -> tuple[Array, float]:
        """(w, b) of the original coordinates."""
        coef = v[: len(self.shift)] * self.scale
        offset = float(v[-1] * self.constant) if len(v) > len(self.shift) else 0.0
        return coef, offset - float(coef @ self.shift)


class Plane(NamedTuple):
    """A plane and the point of the hull it is normal to.

    Attributes:
        coef: w (d,).
        intercept: b.
        margin: min_i s_i (w·x_i + b) over all rows, over the length of v in its frame.
        members: The working set.
        share: Weights of its rows (m,), one in sum: where the hull comes nearest to the origin.
    """

    coef: Array
    intercept: float
    margin: float
    members: Array
    share: Array


def augmented(d: int) -> Frame:
    """The coordinates (x, 1) in which the perceptron works."""
    return Frame(np.zeros(d), np.ones(d))


def affine(X: Array) -> Frame:
    """The coordinates of x, with an intercept that costs next to nothing.

    Args:
        X: Samples (m, d) near the plane; medians, so that a few that lie far off do not matter.
    """
    centre = np.median(X, axis=0)
    radius = float(np.median(np.linalg.norm(X - centre, axis=1))) or 1.0
    return Frame(centre, np.ones(len(centre)), FAR * radius, free=True)


def balanced(Z: Array) -> tuple[Array, Array]:
    """The rows brought to about one length by powers of two, and those powers (m,)."""
    sizes = np.abs(Z).max(axis=1, initial=0.0)
    powers = np.ldexp(1.0, -np.frexp(np.where(sizes > 0, sizes, 1.0))[1])
    return Z * powers[:, None], powers


def nearest(Z: Array) -> tuple[Array, Array]:
    """(u, v): the hull's point nearest to the origin is Zᵀu, Σu = 1; Zv ≥ 1 where it is not zero.

    >>> u, v = nearest(np.array([[2.0, 0.0], [2.0, 2.0]]))
    >>> v.round(12).tolist()
    [0.5, 0.0]
    """
    rows, powers = balanced(Z)
    # A rotation changes no distance: tall problems are solved in the span of their rows.
    root = rows.T if Z.shape[1] <= 2 * len(Z) else scipy.linalg.qr(rows.T, mode="r")[0][: len(Z)]
    E = np.vstack([root, powers / np.median(powers)])
    f = np.zeros(len(E))
    f[-1] = 1.0
    u = nnls(E, f, maxiter=30 * len(Z) + 100)[0] * powers
    share = u / (u.sum() or 1.0)
    point = Z.T @ share
    length = float(point @ point)
    return share, point / length if length > 0 else point


def widen(rows: Rows, frame: Frame, start: Array) -> Plane:
    """The widest plane over all rows that rounds reach.

    Args:
        rows: All samples.
        frame: Where margins are measured.
        start: Indices to begin with.
    """
    index = np.unique(start)
    for _ in range(ROUNDS):
        Z = frame.into(rows, index)
        share, v = nearest(Z)
        v = _polished(Z, share, v, frame)
        coef, intercept = frame.back(v)
        scores = rows.scores(coef, intercept)
        entering = outside(scores, index, 1.0 - SHARP, 2 * len(v) + 50)
        if not len(entering):
            break
        index = np.union1d(index, entering)
    return Plane(coef, intercept, float(scores.min()) / _length(frame, v), index, share)


def _length(frame: Frame, v: Array) -> float:
    return float(np.linalg.norm(v[:-1] if frame.free else v)) or 1.0


def outside(scores: Array, index: Array, least: float, most: int) -> Array:
    """Rows not in `index` with scores below `least`, the lowest `most` of them."""
    low = scores < least
    low[index] = False
    found = np.flatnonzero(low)
    if len(found) > most:
        found = found[np.argpartition(scores[found], most)[:most]]
    return found


def _polished(Z: Array, u: Array, v: Array, frame: Frame) -> Array:
    """v again from its support, where Zv = 1: the shortest such vector, where that is better."""
    support = Z[u > 0]
    better = _level_free(support, frame) if frame.free else _level(support, np.ones(len(support)))
    gains = _width(Z, better, frame) >= _width(Z, v, frame)
    return better if gains else v


def _width(Z: Array, v: Array, frame: Frame) -> float:
    return float(np.min(Z @ v)) / _length(frame, v)


def _level(rows: Array, values: Array) -> Array:
    """The shortest v with rows·v = values."""
    return np.linalg.lstsq(rows, values, rcond=None)[0]


def _level_free(support: Array, frame: Frame) -> Array:
    """The same when the last entry is free: both sides are centred first."""
    signs = support[:, -1] / frame.constant
    X = signs[:, None] * support[:, :-1]
    middle = X.mean(axis=0)
    w = _level(X - middle, signs - signs.mean())
    return np.append(w, (signs.mean() - middle @ w) / frame.constant)
