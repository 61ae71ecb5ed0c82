"""Intervals with coverage guaranteed for finitely many samples, around any regressor.

A band [low, high] in units σ (`trust.conformal_bands`) is widened until it covers:

    split      [low(x) − qσ(x), high(x) + qσ(x)],   q the ⌈(n+1)(1−α)⌉-th score     P ≥ 1 − α
    cv+        order statistics over models fitted without each fold                P ≥ 1 − 2α
    jackknife+ the same, each row its own fold; in closed form for ridge            P ≥ 1 − 2α
    …-minmax   the widest of the models' intervals                                  P ≥ 1 − α

for exchangeable samples, whatever the model and the distribution. (For K folds of n/K rows the
promise of cv+ is less by at most √(2/n); in practice coverage is about 1 − α.)

Reference: Lei, G'Sell, Rinaldo, Tibshirani, Wasserman (2018); Barber, Candès, Ramdas, Tibshirani
(2021); Romano, Patterson, Candès (2019).
"""

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.status import Status
from wonderland.trust.conformal_bands import Band, BandSpec, fit_band, prefit_band, quantile_names
from wonderland.trust.conformal_base import Conformal, index_of
from wonderland.trust.conformal_evidence import new_claims
from wonderland.trust.conformal_intervals import (
    IntervalRows,
    NewRows,
    calibrate,
    folded_bounds,
    interval_claims,
    left_out_bounds,
    method_claim,
    split_bounds,
)
from wonderland.trust.conformal_parts import (
    calibration_folds,
    calibration_split,
    check_choice,
    fixed_seed,
    typical,
)
from wonderland.trust.conformal_ridge import LeftOut, leave_one_out
from wonderland.trust.quantiles import check_alpha
from wonderland.trust.sets import Intervals
from wonderland.trust.wrapper import (
    NotFittedInputError,
    RegressorWrapper,
    Split,
    Task,
    prefit,
    take,
)

__all__ = ["ConformalRegressor"]

METHODS = ("split", "cv+", "jackknife+", "cv-minmax", "jackknife-minmax")
BANDS = ("absolute", "normalised", "quantile")


class ConformalRegressor(Conformal, RegressorWrapper):
    """Prediction intervals that hold the true value with probability 1 − α.

    Args:
        estimator: Any regressor of one target.
        method: "split", "cv+", "jackknife+", "cv-minmax" or "jackknife-minmax". The jackknives of
            `Ridge` and `LinearRegression` (ours and scikit-learn's) refit nothing.
        conformity_score: "absolute" (one width), "normalised" (width follows the spread σ(x)) or
            "quantile" (from a lower and an upper quantile).
        alpha: α, the share of errors that is allowed.
        cv: For "split" None (a quarter of the rows), a share between 0 and 1, or a splitter whose
            first split is taken; for "cv…" None (5), a number of folds or a splitter; "prefit" for
            an estimator that is fitted, calibrated on all rows passed.
        groups: None; a column of X (name or number) or a callable X → (n,) for coverage within
            each group. An array goes to `fit` and `predict_interval` as `groups=`.
        shift: None; a callable X → ω (n,), the likelihood ratio of the rows to be predicted for to
            those seen; "estimate" or a classifier to estimate it from `fit(..., X_target=)`.
        scale: For "normalised" the regressor of log σ; None for a clone of `estimator`.
        upper: For "quantile" the regressor of the upper end, `estimator` being that of the lower.
        quantile_parameter: For "quantile" with one regressor the name of its parameter; None finds
            `quantile`, and `alpha` of gradient boosting.
        n_jobs: Processes for refits.
        random_state: Seed of the split and of the folds.

    Attributes:
        estimator_: The regressor that `predict` uses, fitted (for folds on all rows).
        bands_: Fitted bands, one for each fold; empty where the jackknife is in closed form.
        left_out_: The fits without one row in closed form, or None.
        calibration_: The ordered scores, apart for each group.
        threshold_: The quantile q of the scores at α, one for each group where there are such.
        evidence_: Claims: promised_coverage, coverage with its exact band, widths, worst_bin, ….

    >>> import wonderland as wl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1)); y = 2 * X[:, 0] + rng.normal(size=500)
    >>> fitted = wl.ConformalRegressor(wl.Ridge(), "jackknife+").fit(X, y)
    >>> lower, upper = fitted.predict_interval([[0.0], [1.0]])
    >>> print((upper - lower).round(1))
    [3. 3.]
    """

    bands_: list[Band]
    left_out_: LeftOut | None

    def __init__(
        self,
        estimator: Any,
        method: str = "split",
        *,
        conformity_score: str = "absolute",
        alpha: float = 0.1,
        cv: Any = None,
        groups: Any = None,
        shift: Any = None,
        scale: Any = None,
        upper: Any = None,
        quantile_parameter: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.conformity_score = conformity_score
        self.alpha = alpha
        self.cv = cv
        self.groups = groups
        self.shift = shift
        self.scale = scale
        self.upper = upper
        self.quantile_parameter = quantile_parameter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_alpha(self.alpha)
        check_choice("method", self.method, METHODS)
        check_choice("conformity_score", self.conformity_score, BANDS)
        if self._by_class():
            raise InputError(
                'groups="class" for a regressor',
                "a column of X or a callable X → (n,)",
                "Classes are for wl.ConformalClassifier",
            )
        if (
            self.conformity_score == "quantile"
            and self.upper is None
            and hasattr(self.estimator, "get_params")
        ):
            quantile_names(self.estimator, self.quantile_parameter)

    def _fit(self, task: Task) -> dict[str, Any]:
        seed, ready = fixed_seed(self.random_state), prefit(self)
        spec = self._spec(seed)
        whole, bands, left, folds, train = self._models(spec, task, ready, seed)
        rows, shift = self._rows(task, bands, left, folds, train, seed)
        calibration = calibrate(rows)
        self._check_level(self.alpha, calibration)
        single = len(bands) == 1
        promise = 1 - self.alpha * (1 if single or "minmax" in self.method else 2)
        claims = interval_claims(rows, calibration, self.alpha, promise, exact=single)
        return {
            "estimator_": whole.middle if whole.middle is not None else whole.low,
            "band_": whole,
            "bands_": bands,
            "left_out_": left,
            "rows_": rows._replace(y=None, low=None, high=None, unit=None),
            "shift_": shift,
            "seed_": seed,
            "calibration_": calibration,
            "threshold_": calibration.bounds(self.alpha, *typical(calibration, rows.weights)),
            "promise_": max(0.0, promise),
            "status_": Status.SOLVED,
            "evidence_": Evidence([*claims, method_claim(self.method, left, len(bands))]),
        }

    def _spec(self, seed: int) -> BandSpec:
        return BandSpec(
            self.conformity_score,
            self.estimator,
            self.upper,
            self.scale,
            self.quantile_parameter,
            self.alpha,
            seed,
        )

    def _models(
        self, spec: BandSpec, task: Task, ready: Any, seed: int
    ) -> tuple[Band, list[Band], LeftOut | None, list[Split], np.ndarray]:
        """The band for `predict`, those of the folds, the closed form, the folds, rows learnt."""
        everything = np.arange(len(task.y))
        if ready is not None:
            for other in (self.scale, self.upper):
                _check_fitted(other)
            band = prefit_band(spec, task)
            return band, [band], None, [Split(everything, everything)], everything
        if self.method == "split":
            part = calibration_split(self.cv, task, self.alpha, seed)
            band = fit_band(spec, task, part.train)
            return band, [band], None, [part], part.train
        if len(task.y) < 2:
            raise InputError(
                "1 sample (n_samples = 1), which no fold can leave out",
                "at least two samples",
                "Pass more rows",
            )
        whole = fit_band(spec, task)
        left = None
        if self.method.startswith("jackknife"):
            if self.conformity_score == "absolute":
                left = leave_one_out(whole.middle, task.X, task.y, task.weight)
            if left is not None:
                return whole, [], left, [Split(everything, everything)], everything
            folds = [Split(np.delete(everything, i), everything[i : i + 1]) for i in everything]
        else:
            folds = calibration_folds(self, task, seed)
        work = (delayed(fit_band)(spec, task, fold.train) for fold in folds)
        return whole, list(Parallel(n_jobs=self.n_jobs)(work)), left, folds, everything

    def _rows(
        self,
        task: Task,
        bands: list[Band],
        left: LeftOut | None,
        folds: list[Split],
        train: np.ndarray,
        seed: int,
    ) -> tuple[IntervalRows, Any]:
        """The calibration rows in the order of their folds, and what tells likelihood ratios."""
        order = np.concatenate([fold.test for fold in folds])
        if left is None:
            read = [b.ends(take(task.X, f.test)) for b, f in zip(bands, folds, strict=True)]
            low, high, unit = (np.concatenate(part) for part in zip(*read, strict=True))
        else:
            low = high = task.y - left.errors
            unit = np.ones(len(low))
        models = len(bands) if left is None else len(order)
        groups, weights, shift = self._read_extras(task, train, order, models)
        number = np.repeat(np.arange(len(folds)), [len(fold.test) for fold in folds])
        y = task.y[order]
        scores = np.maximum(low - y, y - high) / unit
        rows = IntervalRows(scores, number, groups, weights, y, low, high, unit, seed)
        return rows, shift

    def predict(self, X: Any) -> Any:
        """The regressor's own prediction (n,); of a pair of quantiles their middle."""
        check_is_fitted(self)
        return self._contain(self.band_.predict(X), X)

    def predict_interval(
        self, X: Any, alpha: Any = None, *, groups: Any = None, weights: Any = None
    ) -> Any:
        """The interval for each row.

        Args:
            X: (m, …).
            alpha: The level, or several; None for that of the fit.
            groups: The group of each row (m,), where `fit` was given groups.
            weights: Likelihood ratio of each row (m,), where `fit` was given weights.

        Returns:
            `Intervals`; a list of them, one for each level, where several were asked for.
        """
        levels, single = self._levels(alpha)
        middle = self.band_.predict(X)
        m = len(middle)
        new = NewRows(self._places(X, groups, m), self._ratios(X, weights, m))
        found = []
        for level, (low, high) in zip(levels, self._bounds(X, middle, levels, new), strict=True):
            # Crossed ends hold nothing; the point between them is the smallest honest interval.
            crossed = low > high
            centre = (low[crossed] + high[crossed]) / 2
            low[crossed], high[crossed] = centre, centre
            found.append(Intervals(low, high, level, index_of(X)))
        return found[0] if single else found

    def _bounds(
        self, X: Any, middle: np.ndarray, levels: tuple[float, ...], new: NewRows
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Lower and upper ends for each level."""
        widest = "minmax" in self.method
        if self.left_out_ is not None:
            return left_out_bounds(
                self.left_out_, X, middle, self.rows_, self.calibration_, levels, new, widest
            )
        read = [band.ends(X) for band in self.bands_]
        if len(read) == 1:
            return [split_bounds(read[0], self.calibration_, level, new) for level in levels]
        return folded_bounds(read, self.rows_, self.calibration_, levels, new, widest)

    def prediction_interval(self, X: Any, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends that cover with probability `level`, as of linear estimators."""
        found = self.predict_interval(X, alpha=round(1.0 - level, 12))
        return found.lower, found.upper

    def claims_on(self, X: Any, y: Any) -> list[Claim]:
        """Coverage and widths on test data; `wl.verify` adds them to the evidence."""
        found = self.predict_interval(X)
        rows, plain = int(self.calibration_.counts.sum()), self.calibration_.plain
        return new_claims(
            found.contains(y),
            found.width,
            rows,
            self.alpha,
            self.promise_,
            "interval",
            exact=plain and len(self.bands_) == 1,
        )


def _check_fitted(estimator: Any) -> None:
    """Refuse a second estimator that came unfitted."""
    if estimator is None:
        return
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError) as error:
        raise NotFittedInputError(
            f'cv="prefit", but this {type(estimator).__name__} is not fitted',
            "an estimator fitted on data that is not passed here",
            "Fit it before, or pass cv=None to have it fitted inside",
        ) from error
