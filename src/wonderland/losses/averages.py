"""Averages over Gaussian logits: what a classifier predicts when its parameters are uncertain.

    E σ(f) ,  E H(σ(f))  for f ~ N(m, s²) ,     E softmax(f) ,  E H(softmax(f))  for f ~ N(m, S)

with H the entropy in nats. The integrals over one logit are sums at equal steps h (trapezoidal
rule), which for analytic integrands that decay converge like e^{−2πc/h}, c the distance of the
nearest pole, here π or more from the real line in the variable chosen:

    s ≤ 1:  ∫ g(m + su) φ(u) du ,  g = σ or H∘σ
    s > 1:  ∫ Φ((m − l)/s) σ'(l) dl   and   ∫ H(σ(l)) φ((l − m)/s)/s dl

so that a step of ½ leaves nothing but rounding of 1, for every m and s: MacKay's approximation
without its error. Several logits are averaged over the points of a low-discrepancy sequence, the
same for every row. Shapes: n rows, k classes, q points.

Reference: MacKay (1992), The evidence framework applied to classification networks; Trefethen and
Weideman (2014), The exponentially convergent trapezoidal rule.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, log_expit, ndtr, ndtri

from wonderland.core.arrays import double

__all__ = ["entropy", "entropy_average", "normal_points", "sigmoid_average", "softmax_average"]

STEP = 0.5
NEAR = np.arange(-18, 19) * STEP  # φ(9) is below rounding
FAR = np.arange(-80, 81) * STEP  # and so is σ'(40)
ROWS = 1 << 14  # of one block


def sigmoid_average(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """E σ(f) for f ~ N(m, s²), elementwise (n,).

    >>> sigmoid_average(np.array([0.0, 2.0, 2.0]), np.array([3.0, 0.0, 3.0])).round(4)
    array([0.5   , 0.8808, 0.7174])
    """
    return _blocks(_sigmoid_block, mean, deviation)


def entropy_average(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """E H(σ(f)) for f ~ N(m, s²), elementwise (n,), in nats.

    >>> entropy_average(np.zeros(2), np.array([0.0, 1e6])).round(4)
    array([0.6931, 0.    ])
    """
    return _blocks(_entropy_block, mean, deviation)


def _blocks(
    work: Callable[[np.ndarray, np.ndarray], np.ndarray], mean: np.ndarray, deviation: np.ndarray
) -> np.ndarray:
    m, s = np.broadcast_arrays(double(mean), double(deviation))
    parts = [work(m[i : i + ROWS], s[i : i + ROWS]) for i in range(0, len(m), ROWS)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _sigmoid_block(m: np.ndarray, s: np.ndarray) -> np.ndarray:
    found, wide = np.empty(len(m)), s > 1
    found[~wide] = _gaussian(expit, m[~wide], s[~wide])
    reach = (m[wide, None] - FAR) / s[wide, None]
    slope = STEP * expit(FAR) * expit(-FAR)
    found[wide] = ndtr(reach) @ slope
    return found


def _entropy_block(m: np.ndarray, s: np.ndarray) -> np.ndarray:
    found, wide = np.empty(len(m)), s > 1
    found[~wide] = _gaussian(_two, m[~wide], s[~wide])
    away = (FAR - m[wide, None]) / s[wide, None]
    density = np.exp(-0.5 * away**2) / (np.sqrt(2 * np.pi) * s[wide, None])
    found[wide] = density @ (STEP * _two(FAR))
    return found


def _gaussian(g: Callable[[np.ndarray], np.ndarray], m: np.ndarray, s: np.ndarray) -> np.ndarray:
    weight = STEP * np.exp(-0.5 * NEAR**2) / np.sqrt(2 * np.pi)
    return g(m[:, None] + s[:, None] * NEAR) @ weight


def _two(f: np.ndarray) -> np.ndarray:
    """H(σ(f))."""
    return -(expit(f) * log_expit(f) + expit(-f) * log_expit(-f))


def entropy(p: np.ndarray) -> np.ndarray:
    """−Σ_c p_c log p_c over the last axis, in nats.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
    array([0.6931, 0.    ])
    """
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    return np.maximum(-(p * logs).sum(axis=-1), 0.0)


def normal_points(count: int, dimension: int) -> np.ndarray:
    """Points of Sobol's sequence with normal margins, each with its mirror image (2·count, k).

    >>> abs(normal_points(512, 3).mean(axis=0)).max() < 1e-12
    np.True_
    """
    from scipy.stats.qmc import Sobol  # not needed for two classes, and slow to import

    # Scrambled, so that no point has a zero for a coordinate; always in the same way.
    half = ndtri(Sobol(dimension, rng=np.random.default_rng(0)).random(count))
    return np.concatenate([half, -half])


def softmax_average(
    mean: np.ndarray, root: np.ndarray, count: int = 512
) -> tuple[np.ndarray, np.ndarray]:
    """E softmax(f) (n, k) and E H(softmax(f)) (n,) for f ~ N(m, RRᵀ).

    Args:
        mean: m (n, k).
        root: R (n, k, r).
        count: Points, of which each is used with its mirror image.

    >>> average, spread = softmax_average(np.zeros((1, 3)), np.eye(3)[None])
    >>> average.round(2), bool(spread[0] < np.log(3))
    (array([[0.33, 0.33, 0.33]]), True)
    """
    points = normal_points(count, root.shape[2])
    average, spread = np.empty(mean.shape), np.empty(len(mean))
    rows = max(1, (1 << 22) // (len(points) * mean.shape[1]))
    for i in range(0, len(mean), rows):
        logits = mean[i : i + rows, None] + np.einsum("nkr,qr->nqk", root[i : i + rows], points)
        logits -= logits.max(axis=2, keepdims=True)
        total = np.exp(logits)
        scale = total.sum(axis=2, keepdims=True)
        total /= scale
        average[i : i + rows] = total.mean(axis=1)
        spread[i : i + rows] = (np.log(scale[..., 0]) - (total * logits).sum(axis=2)).mean(axis=1)
    return average, spread
