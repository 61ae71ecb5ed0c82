"""What a search can say for itself: how it was computed, and whether its winner won by chance.

The best mean of many is an optimistic estimate. For the winner a and the runner-up b, with fold
scores s_aj and s_bj, the lead is d = mean_j (s_aj − s_bj). Folds share training rows, so that

    Var[d] ≈ (1/k + |V|/|T|) Var_j[s_aj − s_bj],

and d ± t_{k−1} √Var[d] is its interval (Nadeau & Bengio 2003, Inference for the Generalization
Error).
"""

from typing import Any

import numpy as np
from scipy import stats

from wonderland.core.evidence import Claim, Evidence
from wonderland.shell.together import Bank

__all__ = ["describe", "lead"]

LEVEL = 0.95


def lead(best: np.ndarray, other: np.ndarray, ratio: float) -> tuple[float, float, float]:
    """The mean lead of one candidate over another with its interval at 95 %.

    Args:
        best: Scores (k,) of the winner on the folds.
        other: Scores (k,) of the other.
        ratio: Rows of a validation fold over rows of its training fold, |V|/|T|.

    >>> lead(np.array([0.9, 0.8, 1.0]), np.array([0.8, 0.8, 0.9]), 0.5)[0].__round__(3)
    0.067
    """
    difference = best - other
    k = len(difference)
    spread = np.sqrt((1 / k + ratio) * difference.var(ddof=1)) if k > 1 else np.inf
    reach = float(stats.t.ppf((1 + LEVEL) / 2, max(k - 1, 1)) * spread)
    centre = float(difference.mean())
    return centre, centre - reach, centre + reach


def describe(search: Any, bank: Bank | None, reason: str) -> Evidence:
    """Claims about a finished search."""
    claims = [Claim.fact("fits", _fits(search), "candidates times folds, each fitted once")]
    claims += _sharing(bank, reason)
    name = "score" if not search.multimetric_ else search.refit
    if isinstance(name, str) and f"rank_test_{name}" in search.cv_results_:
        claims += _winner(search.cv_results_, name, search.n_splits_)
    return Evidence(claims)


def _fits(search: Any) -> int:
    return len(search.cv_results_["params"]) * search.n_splits_


def _sharing(bank: Bank | None, reason: str) -> list[Claim]:
    if bank is None:
        return [Claim.fact("programs", 0, f"fits that shared a program: none, since {reason}")]
    why = "; others were fitted one by one: " + "; ".join(bank.reasons) if bank.reasons else ""
    meaning = f"compiled programs that {bank.shared} of the fits shared{why}"
    short = "fits of the search that ended short of their own standard (see their max_iter, tol)"
    return [
        Claim.fact("programs", bank.programs, meaning),
        Claim.fact("unconverged", bank.short, short),
    ]


def _winner(results: dict[str, Any], name: str, folds: int) -> list[Claim]:
    """The lead of the best candidate over the runner-up, where there are two."""
    mean = np.asarray(results[f"mean_test_{name}"], dtype=float)
    order = np.argsort(-np.where(np.isfinite(mean), mean, -np.inf), kind="stable")
    if len(order) < 2 or folds < 2 or not np.isfinite(mean[order[1]]):
        return []
    scores = np.array([results[f"split{j}_test_{name}"] for j in range(folds)], dtype=float)
    centre, low, high = lead(scores[:, order[0]], scores[:, order[1]], 1 / (folds - 1))
    verdict = "more than chance" if low > 0 else "within chance"
    meaning = (
        "mean score of the best candidate minus that of the runner-up (mean, low, high at 95 %): "
        f"{verdict}; candidates compared: {len(mean)}"
    )
    return [Claim.fact("lead", (centre, low, high), meaning)]
