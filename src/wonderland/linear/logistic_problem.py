"""Logistic regression in numbers: objective, gradient and Hessian of many fits in one pass.

    F(W, b) = Σ_i ω_i ℓ(Wx_i + b, y_i)/Σω + ½ Σ_j λ_j ‖w_j − μ_j‖² ,   λ = 1/(CΣω)

with ℓ(z, y) = log(1 + e^z) − yz for two classes (one column of scores, y ∈ {0, 1}) and
log Σ_c e^{z_c} − z_y for k > 2. This is C Σωℓ + ½‖W‖² divided by CΣω, which makes ∇F a mean
over samples: the unit of `tol`. m problems on the same X and y, with weights and penalties of their
own, share each pass: their scores are one matrix product. Scores are laid out (m, c, rows), so that
reductions over classes run along rows; a block of rows is multiplied by W, turned into residuals
and multiplied back while it lies in the cache.

Shapes: X (n, d), W (c, d), b (c,), θ = [W | b] (c, q) flattened to (p,), q = d + 1, or d without
intercept; c = 1 for two classes, else k.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import map_rows

__all__ = [
    "CACHE",
    "Logistic",
    "Total",
    "back",
    "bend",
    "losses",
    "objective",
    "part_of",
    "product",
    "scores",
    "sweep",
]

FEWEST = 512  # rows of a block: narrower products waste the time in which BLAS packs them
CACHE = 1 << 18  # entries of a block of rows: within the last cache, and long beside a call


class Logistic(NamedTuple):
    """m problems on the same table.

    Attributes:
        X: (n, d) float64, dense or CSR; float32 for the way up to the last steps.
        codes: Class numbers (n,).
        classes: k.
        weight: ω (n,), one row for each problem (m, n), or None for ones.
        penalty: λ (m, d) ≥ 0.
        centre: μ (c, d), or None for zero.
        fit_intercept: Whether b is free; it is never penalised.
    """

    X: Any
    codes: np.ndarray
    classes: int
    weight: np.ndarray | None
    penalty: np.ndarray
    centre: np.ndarray | None = None
    fit_intercept: bool = True

    @property
    def columns(self) -> int:
        """c: columns of scores."""
        return 1 if self.classes == 2 else self.classes

    @property
    def width(self) -> int:
        """q: parameters of one column of scores."""
        return self.X.shape[1] + int(self.fit_intercept)

    @property
    def fits(self) -> int:
        """m: problems."""
        return len(self.penalty)

    @property
    def mass(self) -> np.ndarray:
        """Σω of each problem (m,)."""
        n = float(self.X.shape[0])
        total = n if self.weight is None else self.weight.sum(axis=-1)
        return np.broadcast_to(total, (self.fits,))

    def split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """W (…, c, d) and b (…, c) of θ (…, p)."""
        table = theta.reshape(*theta.shape[:-1], self.columns, self.width)
        d = self.X.shape[1]
        if self.fit_intercept:
            return table[..., :d], table[..., d]
        return table, np.zeros(table.shape[:-1])

    def join(self, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """θ (…, p) of W and b."""
        table = coef
        if self.fit_intercept:
            table = np.concatenate([coef, intercept[..., None]], axis=-1)
        return table.reshape(*table.shape[:-2], -1)

    def pick(self, chosen: Sequence[int]) -> "Logistic":
        """Some of the m problems."""
        if len(chosen) == self.fits:
            return self
        index = np.asarray(chosen)
        several = self.weight is not None and self.weight.ndim == 2
        weight = self.weight[index] if several and self.weight is not None else self.weight
        return self._replace(penalty=self.penalty[index], weight=weight)

    def rows(self, chosen: Any) -> "Logistic":
        """The same problems on some of the rows."""
        weight = None if self.weight is None else self.weight[..., chosen]
        return self._replace(X=self.X[chosen], codes=self.codes[chosen], weight=weight)


class Total(NamedTuple):
    """Sums over rows: Σωℓ (m,), Σω(p − y)[x, 1] (m, c, q), and Hessians of those asked for."""

    loss: np.ndarray
    gradient: np.ndarray
    hessian: Any = None

    def __add__(self, other: Any) -> "Total":
        hessian = None if self.hessian is None else self.hessian + other.hessian
        return Total(self.loss + other.loss, self.gradient + other.gradient, hessian)


Summed = Callable[[Any, np.ndarray, np.ndarray | None], Any]  # (X, P, ω) → sums over a block


def sweep(
    problem: Logistic,
    thetas: np.ndarray,
    curvature: Summed | None = None,
) -> Total:
    """Sums over all rows at m points θ (m, p).

    Args:
        problem: m problems.
        thetas: (m, p).
        curvature: curvature(X, P, ω) sums Hessians over a block; P as from `losses`.
    """
    coef, intercept = problem.split(thetas)
    n, d = problem.X.shape
    width = max(d, thetas.shape[0] * problem.columns)

    def work(start: int, stop: int) -> Total:
        total = None
        step = stop - start if sp.issparse(problem.X) else max(FEWEST, CACHE // max(width, 1))
        if curvature is not None:  # a (q, q) product pays off with more rows than it has columns
            step = max(step, 4 * width)
        for low in range(start, stop, max(step, 1)):
            part = _block(problem, low, min(low + step, stop), (coef, intercept), curvature)
            total = part if total is None else total + part
        if total is None:
            raise ValueError("a sweep needs rows")
        return total

    parts = map_rows(work, n, n * width)
    return sum(parts[1:], parts[0])


def _block(
    problem: Logistic,
    start: int,
    stop: int,
    at: tuple[np.ndarray, np.ndarray],
    curvature: Summed | None,
) -> Total:
    X = part_of(problem.X, start, stop)
    weight = None if problem.weight is None else problem.weight[..., start:stop]
    Z = scores(X, *(part.astype(X.dtype, copy=False) for part in at))
    loss, R, P = losses(Z, problem.codes[start:stop], weight)
    gradient = back(R.astype(X.dtype, copy=False), X, fit_intercept=problem.fit_intercept)
    return Total(
        loss,
        gradient.astype(np.float64, copy=False),
        None if curvature is None else curvature(X, P, weight),
    )


def objective(problem: Logistic, thetas: np.ndarray, total: Total) -> tuple[np.ndarray, np.ndarray]:
    """F (m,) and ∇F (m, p) from sums over rows."""
    coef, intercept = problem.split(thetas)
    away = coef if problem.centre is None else coef - problem.centre
    pull = away * problem.penalty[:, None]
    mass = problem.mass
    value = total.loss / mass + 0.5 * (pull * away).sum(axis=(1, 2))
    slope = total.gradient.reshape(thetas.shape) / mass[:, None]
    return value, slope + problem.join(pull, np.zeros_like(intercept))


def part_of(X: Any, start: int, stop: int) -> Any:
    """Rows start … stop without a copy."""
    if not sp.issparse(X):
        return X[start:stop]
    if start == 0 and stop == X.shape[0]:
        return X
    low, high = X.indptr[start], X.indptr[stop]
    parts = (X.data[low:high], X.indices[low:high], X.indptr[start : stop + 1] - low)
    return sp.csr_array(parts, shape=(stop - start, X.shape[1]), copy=False)


def scores(X: Any, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Z = Wxᵀ + b (m, c, rows)."""
    flat = coef.reshape(-1, coef.shape[-1])
    product = (X @ flat.T).T if sp.issparse(X) else flat @ X.T
    return product.reshape(*coef.shape[:-1], -1) + intercept[..., None]


def back(R: np.ndarray, X: Any, *, fit_intercept: bool) -> np.ndarray:
    """Σ_i r_i [x_i, 1] (m, c, q) from R (m, c, rows)."""
    flat = R.reshape(-1, R.shape[-1])
    product = (X.T @ flat.T).T if sp.issparse(X) else flat @ X
    if fit_intercept:
        product = np.concatenate([product, flat.sum(axis=1)[:, None]], axis=1)
    return product.reshape(*R.shape[:-1], -1)


def losses(
    Z: np.ndarray, codes: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σωℓ (m,), residuals ω(p − y) (m, c, rows) and probabilities P from scores (m, c, rows).

    For two classes P is the probability of the other class, which keeps its digits where that is
    small; p(1 − p) is the same for both.

    >>> loss, R, P = losses(np.zeros((1, 1, 1)), np.array([1]), None)
    >>> round(loss.item(), 4), R.item(), P.item()
    (0.6931, -0.5, 0.5)
    """
    if Z.shape[1] == 1:
        loss, R, P = _two(Z[:, 0], codes)
        R, P = R[:, None], P[:, None]
    else:
        loss, R, P = _many(Z, codes)
    if weight is None:
        return loss.sum(axis=-1), R, P
    shared = weight if weight.ndim == 2 else weight[None]
    R *= shared[:, None]
    return (loss * shared).sum(axis=-1), R, P


def _two(Z: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ℓ = log(1 + e^u), |r| = 1/(1 + e^−u), with u = −z for the second class, z for the first."""
    sign = (1 - 2 * codes).astype(Z.dtype)
    u = Z * sign
    e = np.exp(-np.abs(u))  # never overflows
    q = np.where(u > 0, 1.0, e)
    loss = np.log1p(e).astype(np.float64, copy=False)
    loss += np.maximum(u, 0.0)
    e += 1.0
    q /= e
    return loss, q * sign, q


def _many(Z: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    own = (slice(None), codes, np.arange(len(codes)))
    top = Z.max(axis=1)
    lead = Z[own] - top
    P = np.exp(Z - top[:, None])
    mine = P[own]
    P[own] = 0.0
    rest = P.sum(axis=1)  # of the other classes: 1 − p keeps its digits
    total = rest + mine
    loss = np.where(lead == 0, np.log1p(rest), np.log(total) - lead).astype(np.float64)
    P /= total[:, None]
    R = P.copy()
    R[own] = -rest / total
    P[own] = mine / total
    return loss, R, P


def product(problem: Logistic, thetas: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """∇²F(θ) v (m, p) at m points θ for m vectors, in one pass."""
    both = problem.split(thetas), problem.split(vectors)
    n, d = problem.X.shape
    width = max(d, 2 * thetas.shape[0] * problem.columns)

    def work(start: int, stop: int) -> np.ndarray:
        total = np.zeros((*both[1][1].shape, problem.width))
        step = stop - start if sp.issparse(problem.X) else max(FEWEST, CACHE // max(width, 1))
        for low in range(start, stop, max(step, 1)):
            high = min(low + step, stop)
            X = part_of(problem.X, low, high)
            weight = None if problem.weight is None else problem.weight[..., low:high]
            at, along = (tuple(each.astype(X.dtype, copy=False) for each in x) for x in both)
            P = losses(scores(X, *at), problem.codes[low:high], None)[2]
            bent = bend(P, scores(X, *along))
            if weight is not None:
                bent *= (weight if weight.ndim == 2 else weight[None])[:, None]
            total += back(bent.astype(X.dtype, copy=False), X, fit_intercept=problem.fit_intercept)
        return total

    image = (
        np.sum(map_rows(work, n, n * width), axis=0).reshape(thetas.shape) / problem.mass[:, None]
    )
    coef, intercept = both[1]
    slope = coef * problem.penalty[:, None]
    return image + problem.join(slope, np.zeros_like(intercept))


def bend(P: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(diag p − ppᵀ)v for each sample."""
    if P.shape[1] == 1:
        return P * (1.0 - P) * V
    return P * (V - (P * V).sum(axis=1, keepdims=True))
