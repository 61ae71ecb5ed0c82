"""Bands around a regression before calibration: what a score of residuals is measured from.

    absolute     s = |y − μ(x)|                            low = high = μ, unit 1
    normalised   s = |y − μ(x)| / σ(x)                     low = high = μ, unit σ
    quantile     s = max(q_low(x) − y, y − q_high(x))      low, high quantiles, unit 1   (CQR)

All are s = max(low − y, y − high)/unit, and the interval for a bound q on s is
[low − q·unit, high + q·unit]. σ is learnt from residuals of rows that the inner model had not seen:
log σ(x) is fitted to log(|residual| + δ), so that σ is positive.

Reference: Papadopoulos, Gammerman, Vovk (2008) for normalised scores; Romano, Patterson, Candès
(2019), Conformalized quantile regression.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from wonderland.core.errors import InputError
from wonderland.trust.quantiles import stream
from wonderland.trust.wrapper import Task, fit_on, take

__all__ = ["Band", "BandSpec", "fit_band", "prefit_band", "quantile_names"]

FOLDS = 5  # in which the residuals that σ is learnt from are made
FLOOR = 1e-2  # δ over the mean absolute residual


class BandSpec(NamedTuple):
    """What bands are made of.

    Attributes:
        score: "absolute", "normalised" or "quantile".
        estimator: The regressor, or that of the lower quantile where `upper` is given.
        upper: The regressor of the upper quantile, or None.
        scale: The regressor of log σ; None for the estimator itself.
        parameter: Which parameter of the estimator is the quantile; None to find out.
        alpha: Quantiles are fitted at α/2 and 1 − α/2.
        seed: Of the folds that residuals come from.
    """

    score: str
    estimator: Any
    upper: Any = None
    scale: Any = None
    parameter: str | None = None
    alpha: float = 0.1
    seed: int = 0


class Band(NamedTuple):
    """Fitted regressors: of the middle, of both ends, of log σ; those not in use are None."""

    middle: Any
    low: Any = None
    high: Any = None
    log_scale: Any = None

    def ends(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """low, high and unit (m,) each."""
        if self.low is not None:
            one, two = _numbers(self.low, X), _numbers(self.high, X)
            return np.minimum(one, two), np.maximum(one, two), np.ones(len(one))
        middle = _numbers(self.middle, X)
        if self.log_scale is None:
            return middle, middle, np.ones(len(middle))
        return middle, middle, np.exp(_numbers(self.log_scale, X))

    def predict(self, X: Any) -> np.ndarray:
        """The middle (m,): the regressor's own prediction, or half-way between a given pair."""
        if self.middle is not None:
            return _numbers(self.middle, X)
        low, high, _ = self.ends(X)
        return (low + high) / 2


def _numbers(estimator: Any, X: Any) -> np.ndarray:
    found = np.asarray(estimator.predict(X), dtype=np.float64)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise InputError(
            f"{type(estimator).__name__} predicts an array of shape {found.shape}",
            "one number for each row",
            "Fit one output, or wrap one estimator for each",
        )
    return found


def fit_band(spec: BandSpec, task: Task, rows: np.ndarray | None = None) -> Band:
    """Fit what the score needs, on all rows or on some."""
    task = task if rows is None else task.rows(rows)
    if spec.score == "quantile":
        if spec.upper is not None:
            return Band(None, fit_on(spec.estimator, task), fit_on(spec.upper, task))
        levels = (0.5, spec.alpha / 2, 1 - spec.alpha / 2)
        names = quantile_names(spec.estimator, spec.parameter)
        return Band(*(fit_on(_at(spec.estimator, names, level), task) for level in levels))
    middle = fit_on(spec.estimator, task)
    if spec.score == "absolute":
        return Band(middle)
    size = np.abs(_residuals(spec, task))
    target = np.log(size + max(FLOOR * size.mean(), np.finfo(float).tiny))
    log_scale = fit_on(
        spec.estimator if spec.scale is None else spec.scale, task._replace(y=target)
    )
    return Band(middle, log_scale=log_scale)


def prefit_band(spec: BandSpec, task: Task) -> Band:
    """The band of estimators that came fitted."""
    if spec.score == "absolute":
        return Band(spec.estimator)
    if spec.score == "normalised" and spec.scale is not None:
        return Band(spec.estimator, log_scale=spec.scale)
    if spec.score == "quantile" and spec.upper is not None:
        return Band(None, spec.estimator, spec.upper)
    missing = "scale, fitted to log|residual|" if spec.score == "normalised" else "upper"
    raise InputError(
        f'cv="prefit" with conformity_score={spec.score!r} and one estimator',
        f"a second fitted estimator: {missing}",
        "Pass both, or cv=None to have them fitted inside",
    )


def _residuals(spec: BandSpec, task: Task) -> np.ndarray:
    """y_i less the prediction of a clone that has not seen row i (n,)."""
    n = len(task.y)
    if n < 2:
        raise InputError(
            f"{n} training row for a normalised score (n_samples = {n})",
            "at least 2",
            "Pass more rows, or conformity_score='absolute'",
        )
    found = np.empty(n)
    folds = KFold(
        min(FOLDS, n),
        shuffle=True,
        random_state=int(stream(spec.seed, "residuals").integers(2**32)),
    )
    for train, test in folds.split(np.empty((n, 0))):
        model = fit_on(spec.estimator, task, train)
        found[test] = task.y[test] - _numbers(model, take(task.X, test))
    return found


def quantile_names(estimator: Any, parameter: str | None) -> tuple[str, str | None]:
    """The parameter that is the quantile, and the one that must say loss="quantile", if any.

    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> quantile_names(GradientBoostingRegressor(), None)
    ('alpha', 'loss')
    """
    known = estimator.get_params()
    if parameter is None:
        ends = [name for name in known if name.rpartition("__")[2] == "quantile"]
        ends += [
            name
            for name in known
            if name.rpartition("__")[2] == "alpha" and _sibling(name, "loss") in known
            if "GradientBoosting" in type(_owner(estimator, name)).__name__
        ]
        parameter = min(ends, key=len) if ends else None
    if parameter is None or parameter not in known:
        raise InputError(
            f"conformity_score='quantile', and {type(estimator).__name__} has no parameter "
            + ("that is a quantile" if parameter is None else repr(parameter)),
            "quantile_parameter, the name of one, or upper, a second regressor for the upper end",
            "Use for instance sklearn.linear_model.QuantileRegressor, or GradientBoostingRegressor",
        )
    loss = _sibling(parameter, "loss")
    return parameter, loss if loss in known else None


def _sibling(name: str, other: str) -> str:
    head, between, _ = name.rpartition("__")
    return f"{head}{between}{other}"


def _owner(estimator: Any, name: str) -> Any:
    head = name.rpartition("__")[0]
    return estimator.get_params()[head] if head else estimator


def _at(estimator: Any, names: tuple[str, str | None], level: float) -> Any:
    """A clone that estimates one quantile."""
    parameter, loss = names
    chosen = {parameter: level} if loss is None else {parameter: level, loss: "quantile"}
    return clone(estimator).set_params(**chosen)
