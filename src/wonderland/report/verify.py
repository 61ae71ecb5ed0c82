"""Evidence from data the fit has not seen.

    R̂ = (1/n) Σ ℓ(f(x_i), y_i)  on the training sample (empirical risk)
    R  = E ℓ(f(X), Y)            estimated on a test sample, independent of f (expected risk)
    gap = R − R̂

Given f the test losses are independent and identically distributed, so that their mean has the
standard error s/√n and, by the central limit theorem, R̄ ± t·s/√n covers R. The empirical risk is a
number, not an estimate: the interval of R carries over to the gap.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim, Evidence

__all__ = ["evidence", "verify"]


def evidence(estimator: Any) -> Evidence:
    """The evidence of a fitted estimator: `est.evidence_` as a function.

    >>> import wonderland as wl
    >>> fitted = wl.LinearRegression().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.5])
    >>> wl.evidence(fitted)["rank"].holds
    True
    """
    try:
        return estimator.evidence_
    except AttributeError as error:
        raise InputError(
            f"{type(estimator).__name__} has no evidence yet",
            "a fitted estimator of this library",
            "Call fit(X, y) first",
        ) from error


class Mean(NamedTuple):
    """A weighted mean with the interval that covers its expectation."""

    value: float
    low: float
    high: float


def verify(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, level: float = 0.95
) -> Evidence:
    """Measure a fitted regressor on a test sample; the claims join `estimator.evidence_`.

    Adds `expected_risk` (mean squared error, summed over outputs, with its interval),
    `generalisation_gap` (with its interval; it holds when no gap is also possible) and, where the
    estimator gives prediction intervals, `coverage`. An estimator with a promise of its own
    (`claims_on(X, y)`: conformal predictors) is held to that instead.

    Args:
        estimator: Fitted.
        X: Test samples (n, d), n ≥ 2, not used in the fit.
        y: Their targets (n,) or (n, t).
        sample_weight: (n,) weights ≥ 0.
        level: Confidence of the intervals.

    Returns:
        All evidence, old and new.

    >>> import numpy as np, wonderland as wl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)); y = X @ [1.0, 2.0, 3.0] + rng.normal(size=200)
    >>> fitted = wl.LinearRegression().fit(X[:100], y[:100])
    >>> bool(wl.verify(fitted, X[100:], y[100:])["generalisation_gap"].holds)
    True
    """
    known = evidence(estimator)
    if not 0 < level < 1:
        raise InputError(f"level is {level!r}", "a probability between 0 and 1", "Pass level=0.95")
    if hasattr(estimator, "claims_on"):  # it knows what its own promise is measured by
        estimator.evidence_ = known.with_claims(*estimator.claims_on(X, y))
        return estimator.evidence_
    target = _table(y)
    prediction = _table(estimator.predict(X))
    if prediction.shape != target.shape or len(target) < 2:
        raise InputError(
            f"{target.shape} targets for {prediction.shape} predictions",
            "one row of targets per prediction, at least two",
            "Check that X and y come from the same rows",
        )
    weight = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight, float)
    risk = _mean(((prediction - target) ** 2).sum(axis=1), weight, level)
    claims = [
        Claim(
            "expected_risk",
            risk.value,
            (risk.low, risk.high),
            None,
            f"mean squared error on {len(target)} new samples, with its {level:.0%} interval",
        )
    ]
    if "empirical_risk" in known:
        claims.append(_gap(risk, known["empirical_risk"].value, level))
    if hasattr(estimator, "prediction_interval"):
        claims.append(_coverage(estimator, X, target, level))
    estimator.evidence_ = known.with_claims(*claims)
    return estimator.evidence_


def _gap(risk: Mean, empirical: float, level: float) -> Claim:
    low, high = risk.low - empirical, risk.high - empirical
    return Claim(
        "generalisation_gap",
        risk.value - empirical,
        (low, high),
        bool(low <= 0),
        f"expected minus empirical risk, {level:.0%} interval; holds where zero is possible",
    )


def _coverage(estimator: Any, X: Any, target: np.ndarray, level: float) -> Claim:
    """Share of new targets inside their prediction interval, against three standard errors."""
    low, high = (_table(end) for end in estimator.prediction_interval(X, level))
    share = float(((low <= target) & (target <= high)).mean())
    slack = 3 * np.sqrt(level * (1 - level) / target.size)
    return Claim.above(
        "coverage",
        share,
        level - slack,
        f"share of new targets in the {level:.0%} prediction interval; bound 3 errors below",
    )


def _mean(values: np.ndarray, weight: np.ndarray, level: float) -> Mean:
    share = weight / weight.sum()
    value = float(share @ values)
    # Σω²(ℓ − R̄)², the variance of a ratio of sums, with the usual n/(n − 1).
    rows = np.count_nonzero(weight)
    error = np.sqrt(((share * (values - value)) ** 2).sum() * rows / max(rows - 1, 1))
    half = float(stdtrit(max(rows - 1, 1), (1 + level) / 2) * error)
    return Mean(value, value - half, value + half)


def _table(values: Any) -> np.ndarray:
    table = np.asarray(values, dtype=np.float64)
    return table[:, None] if table.ndim == 1 else table
