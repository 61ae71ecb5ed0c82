"""Intervals for what was measured on a sample: exact ones where there are, else the bootstrap.

    Clopper–Pearson   { p : neither tail of Binomial(n, p) at the count is below (1 − level)/2 }
    coverage band     covered test samples ~ BetaBinomial(m, l, n + 1 − l), l = ⌈(n + 1)(1 − α)⌉
    mean              Σ_i ω_i v_i ± t · s of the weighted mean, Student's t
    bootstrap         quantiles of T(Σ_i c_i v_i), the counts c drawn as n rows are drawn from n

The bootstrap takes statistics of sums over rows. Its resampling is exact, multinomial over the
rows, up to `BLOCKS` rows. More rows are dealt at random into that many blocks and whole blocks are
drawn: the sums keep their expectation and covariance, the latter known to a relative error of
about √(2/BLOCKS) = 2 %, a quarter of what a thousand draws leave uncertain in a quantile.

Shapes: n rows, s sums, b blocks, r draws.

Reference: Clopper and Pearson (1934); Vovk (2012), Conditional validity of inductive conformal
predictors; Efron and Tibshirani (1993), An Introduction to the Bootstrap.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, stdtrit
from scipy.stats import beta, betabinom

from wonderland.core.arrays import double
from wonderland.core.errors import InputError

__all__ = [
    "BLOCKS",
    "Interval",
    "block_sums",
    "bootstrap",
    "check_fraction",
    "clopper_pearson",
    "coverage_band",
    "deal",
    "mean_interval",
    "resample",
]

BLOCKS = 4096  # rows up to which the bootstrap resamples rows; blocks beyond
CHUNK = 128  # draws whose counts are in memory together


class Interval(NamedTuple):
    """A number measured on a sample, and the interval for what it estimates.

    >>> print(Interval(0.5, 0.4, 0.6, 0.95))
    0.5 (95 % interval 0.4 to 0.6)
    """

    value: float
    low: float
    high: float
    level: float

    def __contains__(self, number: object) -> bool:
        return bool(self.low <= number <= self.high)  # type: ignore[operator]

    def __str__(self) -> str:
        ends = f"{self.low:.4g} to {self.high:.4g}"
        return f"{self.value:.4g} ({100 * self.level:g} % interval {ends})"


def check_fraction(number: Any, name: str = "level") -> float:
    """The number, or an InputError where it is not strictly between 0 and 1."""
    real = isinstance(number, int | float | np.number) and not isinstance(number, bool)
    if not real or not 0 < number < 1:
        usual = 0.95 if name == "level" else 0.1
        raise InputError(
            f"{name} is {number!r}", "a number strictly between 0 and 1", f"Pass {name}={usual}"
        )
    return float(number)


def clopper_pearson(successes: Any, n: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Exact interval for a probability from the number of successes in n independent trials.

    It covers with at least the level, for every n and every probability.

    Args:
        successes: 0 ≤ s ≤ n, a number or an array.
        n: Trials, a number or an array; the interval of none is (0, 1).
        level: Confidence.

    Returns:
        (low, high), of the shape of the counts.

    >>> low, high = clopper_pearson(0, 10)
    >>> round(float(low), 4), round(float(high), 4)  # 1 − 0.025^(1/10)
    (0.0, 0.3085)
    """
    tail = (1 - check_fraction(level)) / 2
    s, n = np.broadcast_arrays(double(successes), double(n))
    if np.any((s < 0) | (s > n)):
        raise InputError(
            f"{successes!r} successes in {n!r} trials",
            "0 ≤ successes ≤ trials",
            "Check the order of the arguments: clopper_pearson(successes, n)",
        )
    with np.errstate(invalid="ignore"):
        low = np.where(s > 0, betaincinv(np.maximum(s, 1e-300), n - s + 1, tail), 0.0)
        high = np.where(s < n, betaincinv(s + 1, np.maximum(n - s, 1e-300), 1 - tail), 1.0)
    return low[()], high[()]


def coverage_band(
    n_calibration: int, n_test: int | None, alpha: float, level: float = 0.95
) -> tuple[float, float]:
    """Between which shares of test samples split conformal prediction covers, exactly.

    With continuous scores the probability of coverage, given n calibration samples, is
    Beta(l, n + 1 − l), l = ⌈(n + 1)(1 − α)⌉, so that the covered ones among m test samples are
    beta-binomial. For l > n nothing is left out, and the share is 1.

    Args:
        n_calibration: n.
        n_test: m; None for the coverage of infinitely many.
        alpha: α, the accepted share of errors.
        level: Probability of the band.

    >>> low, high = coverage_band(1000, None, alpha=0.1)
    >>> round(low, 3), round(high, 3)
    (0.881, 0.918)
    """
    tail = (1 - check_fraction(level)) / 2
    # Rounding must not lift (n + 1)(1 − α) over a whole number that it equals.
    rank = int(np.ceil((n_calibration + 1) * (1 - check_fraction(alpha, "alpha")) - 1e-9))
    if rank > n_calibration:
        return 1.0, 1.0
    shape = (rank, n_calibration + 1 - rank)
    if n_test is None:
        low, high = beta.ppf([tail, 1 - tail], *shape)
    else:
        low, high = betabinom.ppf([tail, 1 - tail], n_test, *shape) / n_test
    return float(low), float(high)


def mean_interval(values: Any, weight: Any = None, level: float = 0.95) -> Interval:
    """The (weighted) mean of independent values, with Student's interval for its expectation.

    Args:
        values: (n,), n ≥ 2.
        weight: ω (n,) ≥ 0; a weight says how much a row counts, not that it was seen ω times.
        level: Confidence, exact for normal values and asymptotically for others.

    >>> print(mean_interval([1.0, 2.0, 3.0, 4.0]))
    2.5 (95 % interval 0.4457 to 4.554)
    """
    values = double(values)
    share = np.full(len(values), 1 / len(values)) if weight is None else double(weight)
    share = share / share.sum()
    mean, rows = float(share @ values), np.count_nonzero(share)
    # Σω²(v − v̄)², the variance of a ratio of sums, with the usual n/(n − 1).
    error = np.sqrt((share**2 @ (values - mean) ** 2) * rows / max(rows - 1, 1))
    half = float(stdtrit(max(rows - 1, 1), (1 + check_fraction(level)) / 2) * error)
    return Interval(mean, mean - half, mean + half, level)


def deal(
    n: int, generator: np.random.Generator, blocks: int | None = None
) -> tuple[np.ndarray, int]:
    """A block number for each row (n,), and how many blocks there are.

    Up to `blocks` rows, by default `BLOCKS`, each row is its own block. More are dealt at random,
    never in order: rows sorted by anything would make blocks alike and the interval too short.
    """
    blocks = BLOCKS if blocks is None else blocks
    if n <= blocks:
        return np.arange(n), n
    return generator.integers(blocks, size=n, dtype=np.uint16).astype(np.intp), blocks


def block_sums(rows: np.ndarray, block: np.ndarray, count: int) -> np.ndarray:
    """Sums (b, s) of the rows (n, s) of each block."""
    if count == len(rows):
        return rows
    return np.stack([np.bincount(block, column, count) for column in rows.T], axis=1)


def resample(sums: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Σ_b c_b sums_b for multinomial counts c (r, s): blocks drawn with replacement."""
    b = len(sums)
    found = np.empty((draws, sums.shape[1]))
    for start in range(0, draws, CHUNK):
        size = min(CHUNK, draws - start)
        drawn = generator.integers(b, size=(size, b), dtype=np.int32)
        cell = drawn + (b * np.arange(size, dtype=np.int32))[:, None]
        counts = np.bincount(cell.ravel(), minlength=size * b).reshape(size, b)
        found[start : start + size] = counts.astype(np.float64) @ sums
    return found


def bootstrap(
    statistic: Callable[[np.ndarray], np.ndarray],
    rows: Any,
    *,
    draws: int = 1000,
    level: float = 0.95,
    random_state: int = 0,
) -> Interval:
    """A statistic of sums over rows, with its percentile bootstrap interval.

    Args:
        statistic: From sums (…, s) to numbers (…): all draws are handed over at once.
        rows: v_i (n, s): what each row adds to the sums.
        draws: r.
        level: Confidence.
        random_state: Seed of the draws.

    >>> values = np.arange(1.0, 101.0)
    >>> rows = np.column_stack([np.ones(100), values, values**2])
    >>> def deviation(sums):
    ...     return np.sqrt(sums[..., 2] / sums[..., 0] - (sums[..., 1] / sums[..., 0]) ** 2)
    >>> found = bootstrap(deviation, rows)
    >>> round(found.value, 2), found.low < found.value < found.high
    (28.87, True)
    """
    tail = (1 - check_fraction(level)) / 2
    rows = double(rows)
    generator = np.random.default_rng(random_state)
    drawn = statistic(resample(block_sums(rows, *deal(len(rows), generator)), draws, generator))
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(float(statistic(rows.sum(axis=0))), float(low), float(high), level)
