"""What calibration was worth, on rows that neither the classifier nor the map has learned from."""

from typing import Any

import numpy as np

from wonderland.core.evidence import Claim, Evidence
from wonderland.core.solution import Solution
from wonderland.metrics.bins import assign, edges_of
from wonderland.metrics.calibration import error_of
from wonderland.metrics.intervals import Interval, mean_interval
from wonderland.metrics.measures import TopLabel
from wonderland.metrics.probabilities import Forecast, judged

__all__ = ["calibration_claims"]

BINS, LEVEL, DRAWS = 15, 0.95, 1000
FOLDS = 5  # of the map

SOURCES = {
    "decision_function": "the scores of decision_function were calibrated",
    "predict_proba": "the probabilities of predict_proba were calibrated: it gives no scores",
}


def calibration_claims(
    method: Any,
    before: np.ndarray,
    inputs: np.ndarray,
    task: Any,
    solutions: list[Solution],
    source: str,
) -> Evidence:
    """The evidence of a calibrated classifier.

    Args:
        method: The family of maps.
        before: Held-out probabilities before calibration (n, k).
        inputs: Held-out inputs of the map (n, …).
        task: Labels and weights.
        solutions: The maps that were fitted.
        source: What was read.
    """
    after = _cross_fitted(method, inputs, task)
    forecasts = [Forecast(p, task.codes, task.classes, task.weight) for p in (before, after)]
    errors = [_error(forecast) for forecast in forecasts]
    losses = [_log_loss(p, task) for p in (before, after)]
    changed = np.count_nonzero(before.argmax(axis=1) != after.argmax(axis=1))
    claims = [
        Claim.fact("source", source, SOURCES[source]),
        *_parameters(solutions),
        *(
            Claim.fact(
                f"calibration_error_{when}",
                Interval(error.value, error.low, error.high, LEVEL),
                f"ECE of the largest probability, {BINS} bins, on held-out rows {when} "
                f"calibration: value, {LEVEL:.0%} interval",
            )
            for when, error in zip(("before", "after"), errors, strict=True)
        ),
        Claim.above(
            "calibrated",
            errors[1].p_value,
            1 - LEVEL,
            "p-value of the calibrated probabilities being calibrated; holds where not refuted",
        ),
        *(
            Claim.fact(
                f"log_loss_{when}",
                _interval(loss, task.weight),
                f"mean −log p of the true label on held-out rows {when} calibration",
            )
            for when, loss in zip(("before", "after"), losses, strict=True)
        ),
        _changed_claim(method, int(changed), len(task.y)),
    ]
    return Evidence(claims)


def _cross_fitted(method: Any, inputs: np.ndarray, task: Any) -> np.ndarray:
    """Probabilities (n, k) of each row by a map fitted on the other folds."""
    fold = _folds(task.codes)
    p = np.empty((len(task.y), len(task.classes)))
    for number in range(fold.max() + 1):
        test = fold == number
        train = ~test
        weight = None if task.weight is None else task.weight[train]
        if weight is not None and not weight.any():
            train, weight = slice(None), task.weight
        model = method.fit(inputs[train], task.codes[train], weight).model
        p[test] = model.probabilities(inputs[test])
    return p


def _folds(codes: np.ndarray) -> np.ndarray:
    """A fold number for each row, the rows of a class dealt in turn (n,)."""
    order = np.argsort(codes, kind="stable")
    fold = np.empty(len(codes), int)
    fold[order] = np.arange(len(codes)) % min(FOLDS, max(len(codes), 2))
    return fold


def _error(forecast: Forecast) -> Any:
    found = judged(forecast)
    edges = edges_of(found.confidence, found.weight, BINS, "width")
    measure = TopLabel(BINS, found, assign(found.confidence, edges))
    return error_of(measure, "top-label", LEVEL, DRAWS, np.random.default_rng(0))


def _log_loss(p: np.ndarray, task: Any) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return -np.log(p[np.arange(len(p)), task.codes])


def _interval(losses: np.ndarray, weight: np.ndarray | None) -> Interval:
    if weight is not None:
        losses, weight = losses[weight > 0], weight[weight > 0]
    if len(losses) < 2 or not np.all(np.isfinite(losses)):
        value = float(np.average(losses, weights=weight))
        return Interval(value, value, np.inf, LEVEL)
    return mean_interval(losses, weight, LEVEL)


def _parameters(solutions: list[Solution]) -> list[Claim]:
    """The parameters of the map, of several maps one after the other; how exactly it is solved."""
    names = solutions[0].model.parameters()
    claims = []
    for name in names:
        values = [solution.model.parameters()[name] for solution in solutions]
        value = values[0] if len(values) == 1 else np.asarray(values)
        claims.append(Claim.fact(name, value, f"{name} of the map from scores to probabilities"))
    for name, meaning in _EXACT.items():
        values = [solution.evidence[name] for solution in solutions if name in solution.evidence]
        if values:
            claims.append(Claim.fact(name, max(values), meaning))
    return claims


_EXACT = {
    "gradient_norm": "largest slope of the calibration loss where its last step began",
    "separable": "whether no finite temperature was best, so that the labels were softened",
}


def _changed_claim(method: Any, changed: int, n: int) -> Claim:
    if method.largest:
        meaning = f"held-out rows of {n} whose most probable label calibration changed"
        return Claim.below("argmax_changed", changed, 0, meaning)
    meaning = f"held-out rows of {n} whose most probable label calibration changed; it may"
    return Claim.fact("argmax_changed", changed, meaning)
