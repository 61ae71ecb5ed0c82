"""Have the chains of a sampler mixed, and how much do their draws tell?

    split-R̂    √(pooled variance / mean variance within half chains), of the normalised ranks of
                the draws and of their distances from the median; the larger of both
    bulk ESS    S / (1 + 2 Σ_t ρ_t) of the normalised ranks: how many independent draws locate
                the centre as well, ρ by Geyer's initial monotone sequence over all chains
    tail ESS    the smaller of those of 1[θ ≤ q05] and 1[θ ≤ q95]
    MCSE        sd / √ESS of the draws themselves: the standard error of the posterior mean

Draws are (m, n, …): m chains of n draws each, of any parameters; results have the shape (…).

Reference: Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Rank-normalization, folding, and
localization: an improved R̂; Geyer (1992), Practical Markov chain Monte Carlo.
"""

from typing import Any

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata

from wonderland.core.arrays import double
from wonderland.core.errors import InputError

__all__ = ["bulk_ess", "mean_error", "mean_ess", "rhat", "tail_ess"]

FEWEST = 4  # draws of a chain: two in each half


def rhat(draws: Any) -> Any:
    """Rank-normalised, folded split-R̂; 1 when all chains draw from the same distribution.

    >>> rng = np.random.default_rng(0)
    >>> mixed = rng.normal(size=(4, 500))
    >>> apart = mixed + np.arange(4.0)[:, None]
    >>> bool(rhat(mixed) < 1.01), bool(rhat(apart) > 1.5)
    (True, True)
    """
    halves = _split(_read(draws))
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_classic(_normalised(halves)), _classic(_normalised(folded)))[()]


def bulk_ess(draws: Any) -> Any:
    """How many independent draws would locate the centre of the posterior as well.

    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> bool(1500 < bulk_ess(draws) < 2700)
    True
    """
    return _ess(_normalised(_split(_read(draws))))[()]


def tail_ess(draws: Any) -> Any:
    """The same for the 5 % and 95 % quantiles, the smaller of both."""
    halves = _split(_read(draws))
    ends = np.quantile(halves, [0.05, 0.95], axis=(0, 1))
    below = [_ess((halves <= end).astype(np.float64)) for end in ends]
    return np.minimum(*below)[()]


def mean_ess(draws: Any) -> Any:
    """The same for the mean of the draws as they are."""
    return _ess(_split(_read(draws)))[()]


def mean_error(draws: Any) -> Any:
    """Monte Carlo standard error of the posterior mean."""
    read = _read(draws)
    return (read.std(axis=(0, 1), ddof=1) / np.sqrt(mean_ess(read)))[()]


def _read(draws: Any) -> np.ndarray:
    array = double(draws)
    if array.ndim < 2 or array.shape[1] < FEWEST:
        raise InputError(
            f"draws of shape {array.shape}",
            f"(chains, draws, …) with at least {FEWEST} draws for each chain",
            "Pass draws[None] for a single chain",
        )
    return array


def _split(draws: np.ndarray) -> np.ndarray:
    """Each chain as two (2m, n // 2, …); of an odd number the middle draw is left out."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normalised(draws: np.ndarray) -> np.ndarray:
    """Φ⁻¹((rank − 3/8)/(S + 1/4)), ranks over all chains (Blom 1958)."""
    flat = draws.reshape(draws.shape[0] * draws.shape[1], -1)
    ranks = rankdata(flat, axis=0)
    return ndtri((ranks - 0.375) / (len(flat) + 0.25)).reshape(draws.shape)


def _classic(chains: np.ndarray) -> np.ndarray:
    """R̂ of Gelman and Rubin; 1 where nothing moves anywhere, infinite where only chains differ."""
    n = chains.shape[1]
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sqrt((n - 1) / n + between / within)
    return np.where((between == 0) & (within == 0), 1.0, found)


def _ess(chains: np.ndarray) -> np.ndarray:
    """S over the integrated autocorrelation time of several chains."""
    m, n = chains.shape[:2]
    flat = chains.reshape(m, n, -1)
    covariance = _autocovariance(flat).mean(axis=0)  # (n, p)
    within = covariance[0] * n / (n - 1)
    pooled = covariance[0] + flat.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1.0 - (within - covariance) / pooled
    rho[0] = 1.0
    tau = np.maximum(_time(rho), 1.0 / np.log10(m * n))
    # Where nothing moves every draw is as good as independent.
    return np.where(pooled > 0, m * n / tau, float(m * n)).reshape(chains.shape[2:])


def _autocovariance(flat: np.ndarray) -> np.ndarray:
    """(m, n, p), biased: divided by n at every lag."""
    n = flat.shape[1]
    length = next_fast_len(2 * n, real=True)
    spectrum = rfft(flat - flat.mean(axis=1, keepdims=True), length, axis=1)
    return irfft(np.abs(spectrum) ** 2, length, axis=1)[:, :n] / n


def _time(rho: np.ndarray) -> np.ndarray:
    """1 + 2 Σ ρ_t (p,) of rho (n, p), pairs of lags while their sums are positive, falling."""
    pairs = len(rho) // 2
    even, odd = rho[: 2 * pairs : 2], rho[1 : 2 * pairs : 2]
    sums = even + odd
    count = np.cumprod(sums > 0, axis=0).sum(axis=0)  # pairs before the first that is not
    keep = np.arange(pairs)[:, None] < count
    falling = np.minimum.accumulate(sums, axis=0)
    last = np.take_along_axis(even, np.minimum(count, pairs - 1)[None], axis=0)[0]
    last = np.where(count < pairs, last, 0.0)
    return -1.0 + 2.0 * np.where(keep, falling, 0.0).sum(axis=0) + np.maximum(last, 0.0)
