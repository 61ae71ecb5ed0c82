"""The smooth calibration error: bins without edges.

With residuals o_i − c_i at the confidences c_i and the Gaussian kernel K_σ reflected at 0 and 1,

    smECE_σ = ∫₀¹ | Σ_i ω_i (o_i − c_i) K_σ(t, c_i) | dt / Σω,      smECE = smECE_σ at σ = smECE_σ .

smECE_σ falls as σ grows, so that the σ that equals it is unique; it is within a constant factor of
the distance to the nearest calibrated forecaster. Residuals lie on a grid of m cells, each shared
linearly by its two neighbours. Cosines are the eigenfunctions of the reflected kernel with the
eigenvalues exp(−π²σ²j²/2): smoothing is a cosine transform and its inverse.

Shapes: n rows, m cells, any number of replicates in front.

Reference: Błasiok and Nakkiran (2023), Smooth ECE: principled reliability diagrams via kernel
smoothing.
"""

import numpy as np
from scipy.fft import dct, idct

__all__ = ["CELLS", "on_grid", "smooth_error"]

CELLS = 1024
TURNS = 9  # of the search for the bandwidth: the error is then known to about 10⁻⁶ of itself


def on_grid(confidence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower of the two cells between whose centres a confidence lies (n,), and the upper's share.

    The lower one of the first half cell is 0 with share 0: what lies outside all centres stays.
    """
    place = np.clip(confidence * CELLS - 0.5, 0.0, CELLS - 1.0)
    cell = np.minimum(place.astype(np.intp), CELLS - 2)
    return cell, place - cell


def smooth_error(residual: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """smECE and its bandwidth from residuals on the grid (…, m) and Σω (…).

    >>> residual = np.zeros(CELLS); residual[300] = 0.2  # all rows say c, and c + 0.2 is true
    >>> value, width = smooth_error(residual, np.array(1.0))
    >>> round(float(value), 4)
    0.2
    """
    wave = dct(residual, axis=-1, norm="ortho")
    falloff = -0.5 * (np.pi * np.arange(CELLS)) ** 2

    def error(sigma: np.ndarray) -> np.ndarray:
        damped = wave * np.exp(falloff * sigma[..., None] ** 2)
        return np.abs(idct(damped, axis=-1, norm="ortho", overwrite_x=True)).sum(axis=-1) / total

    # The excess error(σ) − σ falls from error(0) to below 0 at σ = error(0): false position, the
    # end that stays being drawn in by half (Illinois).
    low = np.zeros(residual.shape[:-1])
    above = high = error(low)
    below = error(high) - high
    for _ in range(TURNS):
        sigma = low + (high - low) * above / np.maximum(above - below, np.finfo(float).tiny)
        excess = error(sigma) - sigma
        up = excess > 0
        above, below = (
            np.where(up, excess, 0.5 * above),
            np.where(up, 0.5 * below, excess),
        )
        low, high = np.where(up, sigma, low), np.where(up, high, sigma)
    return sigma + excess, sigma
