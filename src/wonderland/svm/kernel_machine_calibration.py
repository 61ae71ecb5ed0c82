"""Probabilities for machines that only have scores, from held-out samples.

Scores f of samples that a machine has not learned from are turned into probabilities by

    P(+ | f) = 1/(1 + exp(A f + B)),

A, B minimising the cross-entropy with Platt's targets (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2) instead of
1 and 0. For more than two classes the probabilities r_ij of all pairs are coupled: p minimises
Σ_{i≠j} (r_ji p_i − r_ij p_j)² over the simplex, a linear system.

Reference: Platt (1999); Lin, Lin, Weng (2007); Wu, Lin, Weng (JMLR 2004), second method.
"""

from itertools import combinations

import numpy as np

__all__ = ["couple", "folds", "platt", "sigmoid"]

TURNS = 100
RIDGE = 1e-12  # keeps the two-by-two Hessian invertible
DECREASE = 1e-4  # of the predicted decrease that a step must reach
CLIP = 1e-7  # probabilities of a pair stay this far from 0 and 1, as in LIBSVM


def folds(signs: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """A fold number for each sample, both signs spread evenly (n,)."""
    fold = np.empty(len(signs), int)
    for sign in (-1.0, 1.0):
        rows = np.flatnonzero(signs == sign)
        fold[generator.permutation(rows)] = np.arange(len(rows)) % count
    return fold


def sigmoid(scores: np.ndarray, slope: float, offset: float) -> np.ndarray:
    """1/(1 + exp(A f + B)), without overflow."""
    z = slope * scores + offset
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, small, 1.0) / (1.0 + small)


def platt(scores: np.ndarray, signs: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """A and B by Newton's method with a line search on the convex cross-entropy.

    Args:
        scores: Held-out f (n,).
        signs: ±1 (n,).
        weight: ω (n,).
    """
    plus, minus = float(weight[signs > 0].sum()), float(weight[signs < 0].sum())
    target = np.where(signs > 0, (plus + 1.0) / (plus + 2.0), 1.0 / (minus + 2.0))
    at = np.array([0.0, np.log((minus + 1.0) / (plus + 1.0))])
    columns = np.stack([scores, np.ones(len(scores))], axis=1)

    def loss(at: np.ndarray) -> float:
        z = columns @ at
        return float(weight @ (np.logaddexp(0.0, -z) + target * z - 0.0))

    value = loss(at)
    for _ in range(TURNS):
        p = sigmoid(columns @ at, 1.0, 0.0)
        slope = columns.T @ (weight * (target - p))
        if np.abs(slope).max() < 1e-9 * max(1.0, float(weight.sum())):
            break
        bend = (columns * (weight * p * (1.0 - p))[:, None]).T @ columns + RIDGE * np.eye(2)
        step = -np.linalg.solve(bend, slope)
        length, promised = 1.0, float(slope @ step)
        while length > 1e-10 and loss(at + length * step) > value + DECREASE * length * promised:
            length *= 0.5
        at = at + length * step
        value = loss(at)
    return float(at[0]), float(at[1])


def couple(pairs: np.ndarray, k: int) -> np.ndarray:
    """p (n, k) from P(i | i or j) of all pairs i < j (n, k(k − 1)/2)."""
    r = np.zeros((len(pairs), k, k))
    bounded = np.clip(pairs, CLIP, 1.0 - CLIP)
    for column, (i, j) in zip(bounded.T, combinations(range(k), 2), strict=True):
        r[:, i, j], r[:, j, i] = column, 1.0 - column
    # Q_ii = Σ_s r_si², Q_ij = −r_ji r_ij;   [Q 1; 1ᵀ 0] [p; λ] = [0; 1]
    Q = -r * np.swapaxes(r, 1, 2)
    Q[:, range(k), range(k)] = np.square(r).sum(axis=1)
    system = np.ones((len(pairs), k + 1, k + 1))
    system[:, :k, :k], system[:, k, k] = Q, 0.0
    right = np.zeros((len(pairs), k + 1, 1))
    right[:, k] = 1.0
    p = np.clip(np.linalg.solve(system, right)[:, :k, 0], 0.0, None)
    return p / p.sum(axis=1, keepdims=True)
