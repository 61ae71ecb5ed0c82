"""Hessians of logistic regression, whole or in part, and the metrics made of them.

    H = Σ_i ω_i (diag p_i − p_i p_iᵀ) ⊗ x̃_i x̃_iᵀ / Σω + diag λ ,    x̃ = [x, 1]

`Whole` sums all of it, (p, p). `Shared` takes it for a Kronecker product of a (c, c) and a (q, q)
factor; `Spread` sums only the diagonal (p,), for wide sparse tables. Softmax scores may all move by
the same vector without changing a probability; that direction is given the curvature of the
average, so that a Cholesky factor exists; steps never use it, as gradients sum to zero over
classes.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from wonderland.linear.logistic_problem import Logistic
from wonderland.solve.newton_metric import Dense, Diagonal, Metric, Product

__all__ = ["Curvature", "Shared", "Spread", "Whole"]


class Curvature(ABC):
    """What is summed over rows, and the metric it becomes."""

    @abstractmethod
    def sums(self, X: Any, P: np.ndarray, weight: np.ndarray | None, *, intercept: bool) -> Any:
        """Sums over a block of rows, for each of m problems: X (r, d), P (m, c, r)."""

    @abstractmethod
    def metric(self, sums: Any, problem: Logistic) -> Metric:
        """The metric of one problem from its sums."""


class Whole(Curvature):
    """The Hessian itself."""

    def sums(self, X: Any, P: np.ndarray, weight: np.ndarray | None, *, intercept: bool) -> Any:
        """(m, p, p)."""
        several = weight is not None and weight.ndim == 2
        return np.stack(
            [
                _whole(X, P[k], weight[k] if several and weight is not None else weight, intercept)
                for k in range(len(P))
            ]
        )

    def metric(self, sums: Any, problem: Logistic) -> Metric:
        """Cholesky of H."""
        return Dense(hessian_of(sums, problem))


def hessian_of(sums: np.ndarray, problem: Logistic) -> np.ndarray:
    """H of one problem, with the null direction of softmax filled."""
    H = sums / problem.mass[0]
    c, q, d = problem.columns, problem.width, problem.X.shape[1]
    table = H.reshape(c, q, c, q)
    for k in range(c):
        table[k, range(d), k, range(d)] += problem.penalty[0]
    if c > 1:
        # One curvature per column of x̃, that of its average over classes, on the direction 1/√k.
        mean = np.einsum("aiai->i", table) / c
        mean[mean <= 0] = 1.0
        for j in range(q):
            if j == d or problem.penalty[0, j] == 0:
                table[:, j, :, j] += mean[j] / c
    return H


def _whole(X: Any, P: np.ndarray, weight: np.ndarray | None, intercept: bool) -> np.ndarray:  # noqa: FBT001
    if len(P) == 1:
        return _gram(X, _times(P[0] * (1.0 - P[0]), weight), intercept)
    c, q = len(P), X.shape[1] + int(intercept)
    table = np.empty((c, q, c, q))
    for a in range(c):
        for b in range(a + 1):
            share = P[a] * (1.0 - P[a]) if a == b else -P[a] * P[b]
            table[a, :, b] = _gram(X, _times(share, weight), intercept)
            table[b, :, a] = table[a, :, b]
    return table.reshape(c * q, c * q)


def _times(share: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return share if weight is None else share * weight


def _gram(X: Any, h: np.ndarray, intercept: bool) -> np.ndarray:  # noqa: FBT001
    """Σ h x̃x̃ᵀ (q, q)."""
    d = X.shape[1]
    h = h.astype(X.dtype, copy=False)
    G = np.empty((d + int(intercept),) * 2, X.dtype)
    if sp.issparse(X):
        G[:d, :d] = (X.T @ (sp.diags_array(h) @ X)).toarray()
    elif np.all(h >= 0):
        root = X * np.sqrt(h)[:, None]
        G[:d, :d] = root.T @ root  # symmetric: half the work
    else:
        G[:d, :d] = (X * h[:, None]).T @ X
    if intercept:
        G[d, :d] = G[:d, d] = h @ X
        G[d, d] = h.sum()
    return G


class Shared(Curvature):
    """H ≈ A ⊗ B + Λ with A = mean(diag p − ppᵀ) over samples and B = Σ tr(A_i) x̃x̃ᵀ / Σ tr(A_i).

    How classes exchange probability and how columns vary together are taken for independent, as in
    K-FAC (Martens & Grosse 2015). One table of columns then serves all classes.
    """

    def sums(self, X: Any, P: np.ndarray, weight: np.ndarray | None, *, intercept: bool) -> Any:
        """(m, c·c + q·q): A and B, one behind the other."""
        several = weight is not None and weight.ndim == 2
        parts = []
        for k, p in enumerate(P):
            own = weight[k] if several and weight is not None else weight
            share = p if own is None else p * own
            A = np.diag(share.sum(axis=1)) - share @ p.T
            B = _gram(X, _times((p * (1.0 - p)).sum(axis=0), own), intercept)
            parts.append(np.concatenate([A.ravel(), B.ravel()]))
        return np.stack(parts)

    def metric(self, sums: Any, problem: Logistic) -> Metric:
        """Eigenvectors of both factors."""
        c, q = problem.columns, problem.width
        A = sums[: c * c].reshape(c, c) / problem.mass[0]
        B = sums[c * c :].reshape(q, q) / problem.mass[0]
        free = np.zeros(q - problem.X.shape[1])
        return Product(A, B / max(float(np.trace(A)), 1e-300), np.append(problem.penalty[0], free))


class Spread(Curvature):
    """The diagonal."""

    def sums(self, X: Any, P: np.ndarray, weight: np.ndarray | None, *, intercept: bool) -> Any:
        """(m, c, q)."""
        h = P * (1.0 - P)
        if weight is not None:
            h = h * (weight if weight.ndim == 2 else weight[None])[:, None]
        squares = X.multiply(X).T.tocsr() if sp.issparse(X) else (X * X).T
        flat = h.reshape(-1, h.shape[-1])
        total = (squares @ flat.T).T
        if intercept:
            total = np.concatenate([total, flat.sum(axis=1)[:, None]], axis=1)
        return total.reshape(*h.shape[:-1], -1)

    def metric(self, sums: Any, problem: Logistic) -> Metric:
        """1/diag H."""
        table = sums / problem.mass[0]
        table[:, : problem.X.shape[1]] += problem.penalty[0]
        return Diagonal(table.ravel())
