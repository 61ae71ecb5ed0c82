"""Where a search goes by gradient: down the cross-validated loss, in the logarithms of its numbers.

    L(θ) = 1/k Σ_j 1/|V_j| Σ_{i∈V_j} ℓ(f_{λ=exp θ, T_j}(x_i), y_i),    dL/dθ = λ ∘ dL/dλ

by L-BFGS-B within the stated ranges, from the best of a few points spread over them. The points it
visited are then judged as the candidates of any search: by the user's scores, on the same folds.

An estimator that can say how its held-out loss changes has a method

    _validation_slopes(names, X, y, sample_weight, splits) -> slopes
        slopes(values (p,)) gives the losses (k,) of the folds and their derivatives (k, p) in the
        parameters `names`. Raises `NotTogether` with the reason where it cannot.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from wonderland.core.errors import InputError
from wonderland.shell.together import NotTogether, Split

__all__ = ["ranges_of", "visited"]

SPREAD = (0.25, 0.5, 0.75)  # of the way through the ranges, in logarithms: where to look first

Slopes = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def ranges_of(space: Any) -> dict[str, tuple[float, float]]:
    """The range of each number: (low, high), or the support of a distribution.

    >>> ranges_of({"C": (0.01, 100)})
    {'C': (0.01, 100.0)}
    """
    if not isinstance(space, Mapping):
        raise InputError(
            "a list of spaces for a search by gradient",
            "one mapping from parameter names to ranges",
            "Pass for example space={'C': (1e-3, 1e3)}",
        )
    return {name: _range(name, values) for name, values in space.items()}


def _range(name: str, values: Any) -> tuple[float, float]:
    ends = values.support() if hasattr(values, "support") else values
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        low = high = np.nan
    if not 0 < low < high < np.inf:
        raise InputError(
            f"the space of {name} is {values!r}",
            "a range (low, high) of positive numbers, or a distribution on one",
            f"Pass {name}=(1e-3, 1e3), or method='grid' for a list of values",
        )
    return low, high


def visited(
    estimator: Any, space: Any, data: tuple[Any, Any, Any], splits: Sequence[Split], turns: int
) -> list[dict[str, float]]:
    """The points a descent of the held-out loss goes through, in the order of its visits.

    Args:
        estimator: With `_validation_slopes`.
        space: As for `ranges_of`.
        data: X, y and sample_weight of the whole table.
        splits: (training rows, validation rows) of each fold.
        turns: How many points at most.
    """
    ranges = ranges_of(space)
    if not hasattr(estimator, "_validation_slopes"):
        raise _no_slopes(estimator, "it does not say how its held-out loss changes")
    try:
        slopes = estimator._validation_slopes(list(ranges), *data, splits)
    except NotTogether as reason:
        raise _no_slopes(estimator, str(reason)) from None
    points = _descend(slopes, np.log(np.array(list(ranges.values()))), turns)
    return [dict(zip(ranges, np.exp(point).tolist(), strict=True)) for point in points]


def _no_slopes(estimator: Any, reason: str) -> InputError:
    return InputError(
        f"method='gradient' for {type(estimator).__name__}: {reason}",
        "an estimator whose held-out loss can be differentiated",
        'Pass method="halving" or "random" with distributions',
    )


class _Enough(Exception):  # noqa: N818  # ends a descent whose points are counted
    """All turns are taken."""


def _descend(slopes: Slopes, bounds: np.ndarray, turns: int) -> list[np.ndarray]:
    """Points (p,) of a bounded descent; `bounds` (p, 2) in logarithms."""
    seen: list[tuple[np.ndarray, float]] = []

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        if len(seen) >= turns:
            raise _Enough
        values = np.exp(point)
        losses, derivatives = slopes(values)
        # A diverged fit is a wall, not an end: the line search comes back from it.
        loss = float(np.mean(losses)) if np.isfinite(losses).all() else 1e30
        seen.append((point.copy(), loss))
        return loss, np.nan_to_num(np.mean(derivatives, axis=0) * values)

    low, high = bounds.T
    try:
        for part in SPREAD:
            objective(low + part * (high - low))
        first = min(seen, key=lambda pair: pair[1])[0]
        minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds)
    except _Enough:
        pass
    return _distinct([point for point, _ in seen])


def _distinct(points: Sequence[np.ndarray]) -> list[np.ndarray]:
    kept: dict[bytes, np.ndarray] = {}
    for point in points:
        kept.setdefault(point.tobytes(), point)
    return list(kept.values())
