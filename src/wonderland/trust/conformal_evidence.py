"""What can be said of a conformal fit from its calibration rows.

The calibration rows are dealt into two halves; thresholds from the first are tried on the second.
With distinct scores the number covered there is beta-binomial, whatever the model and the data, so
that the share is held against an exact band: a share below it speaks against exchangeability
(rows in order of time, copies of rows in training and calibration).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta

from wonderland.core.evidence import Claim
from wonderland.metrics.intervals import clopper_pearson, coverage_band
from wonderland.trust.conformal_parts import Groups
from wonderland.trust.quantiles import rank_of, smallest_sample, stream

__all__ = ["LEVEL", "Trial", "claims_of", "coverage_claims", "halves", "new_claims"]

LEVEL = 0.999  # of the bands: a sound fit is called into question once in two thousand


class Trial(NamedTuple):
    """One half of the calibration rows, tried with thresholds from the other.

    Attributes:
        covered: Whether each row's truth was in its set or interval (m,).
        size: Of its set or interval (m,).
        calibrated: How many rows the thresholds came from.
    """

    covered: np.ndarray
    size: np.ndarray
    calibrated: int


def halves(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of n rows, dealt at random."""
    order = stream(seed, "halves").permutation(n)
    return order[: n - n // 2], order[n - n // 2 :]


def claims_of(calibration: Groups, alpha: float, promise: float, exact: bool) -> list[Claim]:  # noqa: FBT001  # a fact of the method
    """What is promised, and from how many rows.

    Args:
        calibration: The scores.
        alpha: The level.
        promise: The coverage that the theorem behind the method gives.
        exact: Whether coverage given the calibration rows is Beta distributed.
    """
    counts, least = calibration.counts, smallest_sample(alpha)
    smallest = int(counts.min())
    inside = "" if calibration.names is None else ", those of the smallest group"
    claims = [
        Claim.fact(
            "promised_coverage", promise, "probability that a set holds the truth, at least"
        ),
        Claim.above("calibration_rows", smallest, least, f"rows that thresholds come from{inside}"),
    ]
    if exact:
        rank = rank_of(smallest, alpha)
        tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
        low, high = beta.ppf(tails, rank, smallest + 1 - rank)
        claims.append(
            Claim.fact(
                "coverage_given_calibration",
                (float(low), float(high)),
                f"{LEVEL:.1%} Beta band of the coverage that calibration rows like these give, "
                f"{rank / (smallest + 1):.4g} on average",
            )
        )
    return claims


def coverage_claims(
    trial: Trial, alpha: float, *, unit: str, exact: bool, groups: Any, labels: Any
) -> list[Claim]:
    """Coverage and sizes on the half that was kept apart, and the group that fares worst.

    Args:
        trial: What was found there.
        alpha: The level.
        unit: "set" or "interval".
        exact: Whether the share covered is beta-binomial.
        groups: Number of each row's group, class or bin (m,).
        labels: What the groups are called; a sentence beginning is derived from it.
    """
    m = len(trial.covered)
    band = coverage_band(trial.calibrated, m, alpha, LEVEL) if exact else (0.0, 1.0)
    share = float(trial.covered.mean())
    how = f"one half of the calibration rows ({m}) with thresholds from the other"
    claims = [
        Claim(
            "coverage",
            share,
            band if exact else None,
            bool(share >= band[0]) if exact else None,
            f"share of {unit}s with the truth: {how}"
            + (f"; exact {LEVEL:.1%} band" if exact else ""),
        ),
        *_sizes(trial, unit),
    ]
    return [*claims, _worst(trial.covered, groups, labels)]


def _sizes(trial: Trial, unit: str) -> list[Claim]:
    size = trial.size
    if unit == "interval":
        finite = size[np.isfinite(size)]
        middle = float(np.median(size)) if finite.size else float("inf")
        mean = float(size.mean()) if finite.size == size.size else float("inf")
        return [
            Claim.fact("mean_width", mean, "mean width of the intervals there, in units of y"),
            Claim.fact("median_width", middle, "median width of the intervals there"),
        ]
    return [
        Claim.fact("mean_size", float(size.mean()), "mean number of labels in a set there"),
        Claim.fact("singletons", float(np.mean(size == 1)), "share of sets with one label"),
        Claim.fact("empty", float(np.mean(size == 0)), "share of sets with no label"),
    ]


def _worst(covered: np.ndarray, groups: np.ndarray, labels: tuple[str, Sequence[Any]]) -> Claim:
    """The group covered least, with its exact interval."""
    what, names = labels
    count = np.bincount(groups, minlength=len(names))
    hit = np.bincount(groups, weights=covered, minlength=len(names))
    share = np.where(count > 0, hit / np.maximum(count, 1), np.inf)
    worst = int(np.argmin(share))
    low, high = clopper_pearson(hit[worst], count[worst], LEVEL)
    return Claim.fact(
        f"worst_{what}",
        (names[worst], float(share[worst]), float(low), float(high)),
        f"the {what} covered least there, its share and the {LEVEL:.1%} Clopper–Pearson interval",
    )


def new_claims(
    covered: np.ndarray,
    size: np.ndarray,
    rows: int,
    alpha: float,
    promise: float,
    unit: str,
    *,
    exact: bool,
) -> list[Claim]:
    """Coverage on data that neither fit nor calibration has seen.

    Args:
        covered: Whether each row's truth was in its set or interval (m,).
        size: Of its set or interval (m,).
        rows: n, calibration rows.
        alpha: The level.
        promise: Coverage that is promised.
        unit: "set" or "interval".
        exact: Whether the number covered is beta-binomial; else the promise is a lower bound that
            holds on average over calibration samples, and both samples' errors are allowed for.
    """
    m, share = len(covered), float(np.mean(covered))
    if exact:
        bound = coverage_band(rows, m, alpha, LEVEL)
    else:
        error = np.sqrt(promise * (1 - promise) * (1 / m + 1 / rows))
        bound = (max(0.0, promise - 3.3 * float(error)), 1.0)
    meaning = f"share of {m} new rows whose {unit} has the truth; " + (
        f"exact {LEVEL:.1%} band" if exact else "bound 3.3 errors below the promise"
    )
    average = "mean_width" if unit == "interval" else "mean_size"
    return [
        Claim("test_coverage", share, bound, bool(share >= bound[0]), meaning),
        Claim.fact(f"test_{average}", float(np.mean(size)), f"mean over {m} new rows"),
    ]
