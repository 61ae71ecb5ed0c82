"""What decisions of least expected cost did cost, on rows held out from the classifier.

Shapes: n rows, k classes; C (k, k) or (n, k, k), decisions in rows and truths in columns.
"""

from typing import Any

import numpy as np

from wonderland.core.evidence import Claim, Evidence
from wonderland.metrics.calibration import error_of
from wonderland.metrics.intervals import Interval, mean_interval
from wonderland.metrics.measures import Classwise
from wonderland.metrics.probabilities import Forecast

__all__ = ["ALARM", "cost_claims", "expected_costs", "mean_cost", "realised_costs"]

BINS, LEVEL, DRAWS = 15, 0.95, 1000
ALARM = 0.01  # p-value under which probabilities are called uncalibrated


def expected_costs(
    p: np.ndarray, costs: np.ndarray, abstain: np.ndarray | None = None
) -> np.ndarray:
    """Σ_j C_ij p_j for each decision (n, k), and for abstaining in a last column.

    >>> expected_costs(np.array([[0.8, 0.2]]), np.array([[0.0, 10.0], [1.0, 0.0]])).tolist()
    [[2.0, 0.8]]
    """
    found = p @ costs.T if costs.ndim == 2 else np.einsum("nij,nj->ni", costs, p)
    return found if abstain is None else np.column_stack([found, p @ abstain])


def realised_costs(
    chosen: np.ndarray, codes: np.ndarray, costs: np.ndarray, abstain: np.ndarray | None = None
) -> np.ndarray:
    """C_ij of each row (n,), i decided and j true; decision k is to abstain."""
    k = costs.shape[-1]
    decided = np.minimum(chosen, k - 1)
    rows = (np.arange(len(codes)),) if costs.ndim == 3 else ()
    found = costs[(*rows, decided, codes)]
    return found if abstain is None else np.where(chosen == k, abstain[codes], found)


def mean_cost(costs: np.ndarray, weight: np.ndarray | None, level: float) -> Interval:
    """The mean of costs (n,) with its interval; a single row leaves the cost unknown."""
    if len(costs) < 2:
        return Interval(float(costs[0]), 0.0, np.inf, level)
    found = mean_interval(costs, weight, level)
    return found._replace(low=max(found.low, 0.0))


def cost_claims(
    p: np.ndarray, task: Any, costs: np.ndarray, abstain: np.ndarray | None
) -> Evidence:
    """The evidence, from held-out probabilities (n, k)."""
    expected = expected_costs(p, costs, abstain)
    chosen, weight = expected.argmin(axis=1), task.weight
    spent = realised_costs(chosen, task.codes, costs, abstain)
    plain = realised_costs(p.argmax(axis=1), task.codes, costs)
    always = costs[:, task.codes]
    best = int(np.average(always, axis=1, weights=weight).argmin())
    saved = (
        mean_interval(plain - spent, weight, LEVEL)
        if len(spent) > 1
        else Interval(float(plain[0] - spent[0]), -np.inf, np.inf, LEVEL)
    )
    label = repr(task.classes[[best]].tolist()[0])
    claims = [
        Claim.fact(
            "expected_cost",
            mean_cost(spent, weight, LEVEL),
            f"mean cost of the decisions on {len(spent)} held-out rows, with its {LEVEL:.0%} "
            "interval",
        ),
        Claim.fact(
            "saving",
            saved,
            "what deciding for the most probable label would cost more, with its interval",
        ),
        Claim.fact(
            "promised_cost",
            float(np.average(expected.min(axis=1), weights=weight)),
            "what the probabilities themselves expect the decisions to cost",
        ),
        Claim.fact(
            "constant_cost",
            mean_cost(always[best], weight, LEVEL),
            f"what always deciding {label}, the best constant, would cost",
        ),
        _calibrated(p, task),
    ]
    if abstain is not None:
        share = float(np.average(chosen == len(costs), weights=weight))
        claims.append(Claim.fact("abstained", share, "share of held-out rows left undecided"))
    return Evidence(claims)


def _calibrated(p: np.ndarray, task: Any) -> Claim:
    forecast = Forecast(p, task.codes, task.classes, task.weight)
    measure = Classwise.over(forecast, BINS, "width")
    found = error_of(measure, "classwise", LEVEL, DRAWS, np.random.default_rng(0))
    return Claim.above(
        "calibrated",
        found.p_value,
        ALARM,
        f"p-value of the probabilities being calibrated (classwise error {found.value:.3g}); "
        "decisions are only as good as they are",
    )
