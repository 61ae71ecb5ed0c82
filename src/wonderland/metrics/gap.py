"""The generalisation gap of a fitted estimator: how much worse is it on rows it has not seen?

    R̂ = Σ_train ω ℓ / Σω,   R = E ℓ estimated by Σ_test ω ℓ / Σω,   gap = R − R̂

R̂ is a number that belongs to the fit; the interval is that of R given the fit, over new rows.
Shapes: n training rows, m test rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, nearest
from wonderland.metrics.intervals import Interval, check_fraction, mean_interval
from wonderland.metrics.probabilities import read_forecast

__all__ = ["LOSSES", "Gap", "generalisation_gap"]

LOSSES = ("log", "brier", "zero-one", "squared", "absolute")


@dataclass(frozen=True)
class Gap:
    """Expected less empirical risk, with the interval of the expected one.

    Attributes:
        gap: R − R̂.
        expected: R.
        empirical: R̂.
        loss: Which ℓ.
    """

    gap: Interval
    expected: Interval
    empirical: float
    loss: str

    @property
    def value(self) -> float:
        """R − R̂."""
        return self.gap.value

    @property
    def overfits(self) -> bool:
        """Whether a gap of zero is refuted, from above."""
        return self.gap.low > 0

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return (
            f"generalisation gap {self.gap} of the {self.loss} loss: "
            f"{self.expected.value:.4g} on new rows, {self.empirical:.4g} on those of the fit"
        )

    __str__ = __repr__


def generalisation_gap(
    estimator: Any,
    train: tuple[Any, ...],
    test: tuple[Any, ...],
    *,
    loss: str | Callable[..., Any] | None = None,
    level: float = 0.95,
) -> Gap:
    """Measure a fitted estimator on both samples.

    Args:
        estimator: Fitted, with scikit-learn's manners; it is asked for predictions only.
        train: (X, y) or (X, y, sample_weight): the sample it was fitted on.
        test: The same of rows it has not seen.
        loss: "log" or "brier" (of `predict_proba`), "zero-one", "squared", "absolute" (of
            `predict`), or ℓ(prediction, y) → (n,) of what `predict` gives. None: "log" where there
            are probabilities, "zero-one" for other classifiers, "squared" for regressors.
        level: Of the interval.

    >>> import wonderland as wl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 30)); y = X[:, 0] + rng.normal(size=60)
    >>> fitted = wl.LinearRegression().fit(X[:40], y[:40])
    >>> generalisation_gap(fitted, (X[:40], y[:40]), (X[40:], y[40:])).overfits
    True
    """
    check_fraction(level)
    chosen = _default(estimator) if loss is None else loss
    if not callable(chosen) and chosen not in LOSSES:
        expected = f"one of {', '.join(LOSSES)}, or a function"
        raise InputError(f"loss is {chosen!r}", expected, nearest(chosen, LOSSES))
    seen, new = _sample("train", train), _sample("test", test)
    inside = np.average(_losses(estimator, *seen[:2], chosen), weights=seen[2])
    values = _losses(estimator, *new[:2], chosen)
    if len(values) < 2:
        raise InputError("test has one row", "at least two, for an interval", "Pass more rows")
    risk = mean_interval(values, new[2], level)
    base = float(inside)
    gap = Interval(risk.value - base, risk.low - base, risk.high - base, level)
    name = chosen if isinstance(chosen, str) else getattr(chosen, "__name__", "given")
    return Gap(gap, risk, base, name)


def _sample(name: str, given: tuple[Any, ...]) -> tuple[Any, np.ndarray, np.ndarray | None]:
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise InputError(
            f"{name} is a {type(given).__name__}", "(X, y) or (X, y, sample_weight)", "Pass a tuple"
        )
    weight = given[2] if len(given) == 3 else None
    return given[0], np.asarray(given[1]), None if weight is None else np.asarray(weight, float)


def _default(estimator: Any) -> str:
    if hasattr(estimator, "predict_proba"):
        return "log"
    return "zero-one" if hasattr(estimator, "classes_") else "squared"


def _losses(estimator: Any, X: Any, y: np.ndarray, loss: Any) -> np.ndarray:
    """ℓ of each row (n,)."""
    if loss in ("log", "brier"):
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"the {loss} loss of a {type(estimator).__name__}",
                "an estimator with predict_proba",
                'Wrap it in wl.CalibratedClassifier, or pass loss="zero-one"',
            )
        p = np.asarray(estimator.predict_proba(X))
        found = read_forecast(y, p, classes=np.asarray(estimator.classes_))
        own = found.p[np.arange(len(y)), found.codes]
        if loss == "log":
            with np.errstate(divide="ignore"):
                return -np.log(own)
        square = (found.p**2).sum(axis=1) - 2 * own + 1
        return square / 2 if p.shape[1] == 2 else square
    z = np.asarray(estimator.predict(X))
    if callable(loss):
        return np.asarray(loss(z, y), dtype=np.float64)
    if loss == "zero-one":
        return (z != y).astype(np.float64)
    if z.shape != y.shape:
        raise InputError(f"{z.shape} predictions for y {y.shape}", "one for each", "Check y")
    distance = np.abs(z - y) if loss == "absolute" else (z - y) ** 2
    return distance.reshape(len(y), -1).sum(axis=1)
