"""Least-squares problems for the tests of this folder, and textbook answers to them."""

import numpy as np

from wonderland.solve.problem import LeastSquares


def make(
    rng, n=30, d=4, t=2, *, alpha=0.0, weighted=False, fit_intercept=True, noise=0.3, mean=0.0
) -> LeastSquares:
    """A random problem; `alpha` is a number or one per output."""
    X = rng.normal(size=(n, d)) + mean
    y = X @ rng.normal(size=(d, t)) + 2.0 + noise * rng.normal(size=(n, t))
    weight = rng.uniform(0.2, 3.0, size=n) if weighted else None
    alphas = np.broadcast_to(np.asarray(alpha, float), (t,)).copy()
    return LeastSquares(X, y, weight, alphas, fit_intercept)


def textbook(problem: LeastSquares) -> tuple[np.ndarray, np.ndarray]:
    """(w, b) by NumPy's lstsq on centred rows √ω(x − x̄) with √α·I below: an SVD, no Gram matrix."""
    n, d = problem.X.shape
    weight = np.ones(n) if problem.weight is None else problem.weight
    keep = float(problem.fit_intercept) / weight.sum()
    mean_x, mean_y = keep * (weight @ problem.X), keep * (weight @ problem.y)
    root = np.sqrt(weight)[:, None]
    coef = np.empty((d, problem.y.shape[1]))
    for k, alpha in enumerate(problem.alpha):
        rows = np.vstack([root * (problem.X - mean_x), np.sqrt(alpha) * np.eye(d)])
        right = np.concatenate([root[:, 0] * (problem.y[:, k] - mean_y[k]), np.zeros(d)])
        coef[:, k] = np.linalg.lstsq(rows, right, rcond=None)[0]
    return coef, mean_y - mean_x @ coef


def objective(problem: LeastSquares, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Σ ω‖y − Xw − b‖² + α‖w‖², per output."""
    weight = np.ones(len(problem.X)) if problem.weight is None else problem.weight
    loss = weight @ (problem.y - problem.X @ coef - intercept) ** 2
    return loss + problem.alpha * (coef**2).sum(axis=0)
