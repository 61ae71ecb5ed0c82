"""Quantiles with a guarantee for finitely many samples.

Let s_1 … s_n be the scores of calibration samples and s_{n+1} that of a new one, exchangeable. The
rank of s_{n+1} among all n + 1 is then uniform (ties only help), so that

    P( s_{n+1} ≤ s_(r) ) ≥ 1 − α,        r = ⌈(n + 1)(1 − α)⌉,

with s_(r) the r-th smallest calibration score. With r = n + 1 > n no finite score will do: the
quantile is ∞ and the smallest sample that gives a finite one has ⌈1/α⌉ − 1 members. With distinct
scores the probability is exactly r/(n + 1) < 1 − α + 1/(n + 1). Given the calibration sample the
share of new samples that are covered is Beta(r, n + 1 − r) distributed (r/(n+1) on average).

Weights ω make samples of one distribution stand for another, ω ∝ dQ/dP: the quantile is that of
Σ_i ω_i δ(s_i) + ω_{n+1} δ(∞), normalised (Tibshirani et al. 2019).

Reference: Vovk, Gammerman, Shafer (2005); Lei et al. (2018); Tibshirani, Foygel Barber, Candès,
Ramdas (2019).
"""

import math
import numbers
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.errors import InputError, InputTypeError

__all__ = [
    "Ordered",
    "check_alpha",
    "levels_of",
    "ordered",
    "rank_of",
    "smallest_sample",
    "stream",
]


def check_alpha(alpha: Any) -> float:
    """A level of error strictly between 0 and 1.

    >>> check_alpha(0.1)
    0.1
    """
    if isinstance(alpha, bool | np.bool_) or not isinstance(alpha, numbers.Real | np.number):
        raise InputTypeError(
            f"alpha is {alpha!r}", "a number between 0 and 1", "Pass alpha=0.1 for 90% coverage"
        )
    level = float(alpha)
    if not 0.0 < level < 1.0:
        meant = 1.0 - level / 100.0
        todo = f"Pass alpha={meant:g}" if 1.0 < level < 100.0 else "Pass alpha=0.1"
        raise InputError(
            f"alpha is {alpha!r}",
            "the share of errors that is allowed, strictly between 0 and 1",
            f"{todo} for {1 - meant if 1 < level < 100 else 0.9:.0%} coverage",
        )
    return level


def levels_of(alpha: Any) -> tuple[tuple[float, ...], bool]:
    """The levels asked for, and whether there was one only (a number, not a list)."""
    if isinstance(alpha, Sequence | np.ndarray) and not isinstance(alpha, str):
        found = tuple(check_alpha(one) for one in alpha)
        if not found:
            raise InputError("alpha is an empty list", "at least one level", "Pass alpha=[0.1]")
        return found, False
    return (check_alpha(alpha),), True


def _exact(alpha: float) -> Fraction:
    """The decimal that α prints as: 0.1 is meant as 1/10, not as the nearest binary number."""
    return Fraction(repr(float(alpha)))


def rank_of(n: int, alpha: float) -> int:
    """r = ⌈(n + 1)(1 − α)⌉, in exact arithmetic; n + 1 where no finite score will do.

    >>> rank_of(9, 0.1), rank_of(8, 0.1), rank_of(99, 0.05)
    (9, 9, 95)
    """
    return math.ceil((n + 1) * (1 - _exact(alpha)))


def smallest_sample(alpha: float) -> int:
    """⌈1/α⌉ − 1: the smallest calibration sample with a finite quantile.

    >>> smallest_sample(0.1), smallest_sample(0.05), smallest_sample(0.3)
    (9, 19, 3)
    """
    return math.ceil(1 / _exact(alpha)) - 1


class Ordered(NamedTuple):
    """Calibration scores in increasing order; every level is then read off.

    Attributes:
        scores: s_(1) ≤ … ≤ s_(n) (n,).
        mass: Cumulative weights Σ_{j ≤ i} ω_(j) (n,); None where all samples weigh the same.

    >>> scores = ordered([0.3, 0.1, 0.2, 0.4])
    >>> scores.quantile(0.2).item(), scores.quantile(0.1).item()
    (0.4, inf)
    """

    scores: np.ndarray
    mass: np.ndarray | None = None

    def __len__(self) -> int:
        """Calibration samples, not fields."""
        return self.scores.size

    def quantile(self, alpha: float, weight: Any = None) -> np.ndarray:
        """The score that a new sample exceeds with probability α at most; ∞ where none is enough.

        Args:
            alpha: α.
            weight: ω_{n+1} of the new samples (m,), for weighted scores.

        Returns:
            A scalar array; (m,) for m weights.
        """
        if self.mass is None or weight is None:
            rank = rank_of(self.scores.size, alpha)
            return np.asarray(np.inf if rank > self.scores.size else self.scores[rank - 1])
        total = self.mass[-1] if self.mass.size else 0.0
        reach = (1.0 - alpha) * (total + np.asarray(weight, dtype=np.float64))
        # Rounding of the cumulative sum must not ask for a whole sample more.
        reach -= 4 * np.finfo(float).eps * total
        place = np.searchsorted(self.mass, reach, side="left")
        return np.append(self.scores, np.inf)[np.minimum(place, self.scores.size)]


def ordered(scores: Any, weight: Any = None) -> Ordered:
    """Sort scores, with their weights where there are any.

    Args:
        scores: (n,), each larger the stranger its sample.
        weight: ω (n,) ≥ 0.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if weight is None:
        return Ordered(np.sort(scores))
    order = np.argsort(scores, kind="stable")
    return Ordered(scores[order], np.cumsum(np.asarray(weight, dtype=np.float64)[order]))


def stream(seed: int, use: str) -> np.random.Generator:
    """A generator for one use of a seed, like no other's of the same seed.

    The numbers of `np.random.default_rng(seed)` may be those the data were drawn from: uniform
    numbers that depend on the data would void the guarantee.
    """
    key = tuple(use.encode())
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
