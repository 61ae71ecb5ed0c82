"""The base of conformal predictors: what `fit` takes besides X and y, and what new rows need."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim
from wonderland.trust.conformal_parts import Extras, Groups, fit_shift, read_groups, shift_weights
from wonderland.trust.quantiles import levels_of
from wonderland.trust.wrapper import Task, Wrapper, take

__all__ = ["Conformal", "index_of"]


class Conformal(Wrapper):
    """A wrapper whose predictions are sets or intervals.

    A subclass has the parameters `alpha`, `groups`, `shift` and `random_state`.
    """

    alpha: float
    groups: Any
    shift: Any
    shift_: Any
    calibration_: Groups
    promise_: float
    _extras: Extras

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        weights: Any = None,
        X_target: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the estimator inside and calibrate it on rows it has not seen.

        Args:
            X: (n, …): whatever the estimator takes.
            y: (n,).
            sample_weight: (n,) ≥ 0, for the estimator's fit.
            groups: The group of each row (n,), for coverage within groups.
            weights: Likelihood ratio ω of each row (n,), for a shift of the covariates.
            X_target: Unlabelled rows of where predictions are for, to estimate ω from.
            **fit_params: Further arguments of the estimator's `fit`.

        Returns:
            The fitted estimator.
        """
        extras = Extras(groups, weights, X_target)
        return self._transact(X, y, sample_weight, fit_params, extras)

    def _learn(self, *data: Any) -> dict[str, Any]:
        *data_of_fit, self._extras = data
        try:
            return super()._learn(*data_of_fit)
        finally:
            self.__dict__.pop("_extras", None)

    def _by_class(self) -> bool:
        """Whether each class has its own threshold."""
        return isinstance(self.groups, str) and self.groups == "class"

    def _columns(self) -> Any:
        """Where groups are read from; classes are no column."""
        return None if self._by_class() else self.groups

    def _read_extras(
        self, task: Task, train: np.ndarray, order: np.ndarray, models: int
    ) -> tuple[np.ndarray | None, np.ndarray | None, Any]:
        """Groups and likelihood ratios of the calibration rows, and what tells the latter.

        Args:
            task: The data.
            train: Rows learnt from.
            order: Calibration rows.
            models: How many models sets come from.
        """
        extras, n = self._extras, len(task.y)
        shift = fit_shift(self.shift, take(task.X, train), extras.X_target)
        groups = read_groups(self._columns(), task.X, extras.groups, n)
        weights = shift_weights(shift, task.X, extras.weights, n)
        if weights is not None and models > 1:
            raise InputError(
                "likelihood ratios with folds",
                "one model calibrated on rows kept apart",
                "Pass method='split'",
            )
        groups = None if groups is None else groups[order]
        return groups, None if weights is None else weights[order], shift

    def _levels(self, alpha: Any) -> tuple[tuple[float, ...], bool]:
        """The levels asked for, each with enough calibration rows; whether it is one only."""
        check_is_fitted(self)
        levels, single = levels_of(self.alpha if alpha is None else alpha)
        for level in levels:
            self._check_level(level, self.calibration_)
        return levels, single

    def _check_level(self, level: float, calibration: Groups, labels: Any = None) -> None:
        by_class = self._by_class()
        labels = getattr(self, "classes_", None) if by_class and labels is None else labels
        calibration.check(level, "class" if by_class else "group", labels)

    def _places(self, X: Any, groups: Any, count: int) -> np.ndarray:
        """The number of each new row's group (m,)."""
        if self._by_class() or self.calibration_.names is None:
            return np.zeros(count, dtype=int)
        found = read_groups(self._columns(), X, groups, count)
        if found is None:
            raise InputError(
                "predictions without groups from calibration within groups",
                "the group of each row",
                "Pass groups=..., as to fit",
            )
        return self.calibration_.places(found, count)

    def _ratios(self, X: Any, given: Any, count: int) -> np.ndarray | None:
        """Likelihood ratios of new rows, which weighted scores cannot do without."""
        if all(part.mass is None for part in self.calibration_.parts[0]):
            return None
        found = shift_weights(self.shift_, X, given, count)
        if found is None:
            raise InputError(
                "predictions without weights from weighted calibration rows",
                "the likelihood ratio of each row",
                "Pass weights=..., or a callable as shift",
            )
        return found

    @abstractmethod
    def claims_on(self, X: Any, y: Any) -> list[Claim]:
        """Coverage and sizes on test data; `wl.verify` adds them to the evidence."""


def index_of(X: Any) -> Any:
    """The row index a frame carries, else None."""
    index = getattr(X, "index", None)
    return None if callable(index) else index
