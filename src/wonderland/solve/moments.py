"""Second moments of a table: all that least squares needs to know of tall data.

    x̄ = Σ ω x / Σ ω,   G = Σ ω (x − x̄)(x − x̄)ᵀ,   H = Σ ω (x − x̄)(y − ȳ)ᵀ,   V = Σ ω (y − ȳ)²

`host_moments` passes once over host rows, block by block through the cache; `traced_moments` is
the same mathematics for XLA, differentiable. Shapes: X (n, d), y (n, t), ω (n,).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import product
from wonderland.core.blocks import map_rows
from wonderland.core.errors import NotFiniteError
from wonderland.solve.problem import Array, LeastSquares

__all__ = ["Moments", "host_moments", "traced_moments"]

ROWS = 1024  # rows of one block: with 100 columns 800 KB, within a second-level cache
SAMPLE = 256  # rows looked at to find a shift
OFFSET = 8.0  # |mean| beyond so many deviations is taken away before squaring


class Moments(NamedTuple):
    """Centred second moments; with no intercept the means are zero and nothing is centred.

    Attributes:
        mass: Σ ω.
        mean_x: (d,).
        mean_y: (t,).
        gram: G (d, d).
        cross: H (d, t).
        power: V (t,).
    """

    mass: Any
    mean_x: Any
    mean_y: Any
    gram: Any
    cross: Any
    power: Any


def host_moments(problem: LeastSquares) -> Moments:
    """One pass over host data, rows split among the cores."""
    n, d = problem.X.shape
    t = problem.y.shape[1]
    shift = _shift(problem)
    # NaN and infinity survive a sum: looking for them costs no pass of its own.
    parts = map_rows(lambda i, j: _accumulate(problem, shift, i, j), n, problem.X.size)
    total = np.sum(parts, axis=0)
    if not np.isfinite(total).all() and not _finite(problem):
        raise NotFiniteError("X or y holds NaN or infinity")
    mass = total[-1, -1]
    if not problem.fit_intercept:
        means, centred = np.zeros(d + t), total[:-1, :-1]
    else:
        means = total[-1, :-1] / mass
        centred = total[:-1, :-1] - mass * np.outer(means, means)
        means = means if shift is None else means + shift
    power = np.diag(centred)[d:]
    return Moments(
        mass, means[:d], means[d:], centred[:d, :d], centred[:d, d:], np.maximum(power, 0.0)
    )


def _finite(problem: LeastSquares) -> bool:
    return bool(np.isfinite(problem.X).all() and np.isfinite(problem.y).all())


def _shift(problem: LeastSquares) -> Array | None:
    """Rough column means where |mean| ≫ deviation, so that centring does not cancel digits."""
    if not problem.fit_intercept:
        return None
    step = max(1, len(problem.X) // SAMPLE)
    seen = np.hstack([problem.X[::step], problem.y[::step]])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = seen.mean(axis=0)
        return mean if np.any(np.abs(mean) > OFFSET * seen.std(axis=0)) else None


@np.errstate(over="ignore", invalid="ignore")
def _accumulate(problem: LeastSquares, shift: Array | None, start: int, stop: int) -> Array:
    """Σ ω [x−s, y−s, 1][x−s, y−s, 1]ᵀ over rows start … stop, (d+t+1, d+t+1)."""
    X, y = problem.X, problem.y
    if shift is None and problem.weight is None and X.flags.c_contiguous:
        return _accumulate_in_place(X, y, start, stop)
    d, q = X.shape[1], X.shape[1] + y.shape[1]
    root = problem.root_weight()
    block = np.empty((min(ROWS, max(stop - start, 1)), q + 1))
    total, product = np.zeros((q + 1, q + 1)), np.empty((q + 1, q + 1))
    for i in range(start, stop, ROWS):
        j = min(i + ROWS, stop)
        z = block[: j - i]
        z[:, :d], z[:, d:q], z[:, q] = X[i:j], y[i:j], 1.0
        if shift is not None:
            z[:, :q] -= shift
        if root is not None:
            z *= root[i:j]
        # zᵀz of one array and its own transpose is a symmetric rank-k update: half the work.
        np.matmul(z.T, z, out=product)
        total += product
    return total


def _accumulate_in_place(X: Array, y: Array, start: int, stop: int) -> Array:
    """The same where nothing is shifted or weighted: the rows are multiplied where they lie."""
    d = X.shape[1]
    beside = np.vstack([y[start:stop].T, np.ones((1, stop - start))])
    gram, product = np.zeros((d, d)), np.empty((d, d))
    cross = np.zeros((len(beside), d))
    for i in range(start, stop, ROWS):
        x = X[i : min(i + ROWS, stop)]
        np.matmul(x.T, x, out=product)
        gram += product
        for k, row in enumerate(beside[:, i - start : i - start + len(x)]):
            cross[k] += row @ x  # while x is in the cache; thin products are slower than vectors
    return np.block([[gram, cross.T], [cross, beside @ beside.T]])


def traced_moments(
    X: jax.Array, y: jax.Array, weight: jax.Array | None, *, fit_intercept: bool
) -> Moments:
    """The same moments as one differentiable XLA program; X (n, d), y (n, t)."""
    omega = jnp.ones(X.shape[0], X.dtype) if weight is None else weight
    mass = omega.sum()
    keep = 1.0 if fit_intercept else 0.0
    mean_x, mean_y = keep * product(omega, X) / mass, keep * product(omega, y) / mass
    cx, cy = X - mean_x[None, :], y - mean_y[None, :]
    wx = omega[:, None] * cx
    return Moments(
        mass, mean_x, mean_y, product(wx.T, cx), product(wx.T, cy), product(omega, cy**2)
    )
