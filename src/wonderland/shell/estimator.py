"""The base of every estimator: a fit is a transaction, its results are published together."""

import inspect
import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from wonderland.core.blocks import calm, limited
from wonderland.core.cache import enable_compile_cache
from wonderland.core.errors import InputError, NotFiniteError
from wonderland.core.evidence import Evidence
from wonderland.core.status import Status
from wonderland.shell.containers import check_container, wrap
from wonderland.shell.explain import refuse_non_finite
from wonderland.shell.inputs import Table, read_features, read_table
from wonderland.shell.streams import Stream, is_stream, read_stream

__all__ = ["Estimator", "Regressor", "in_memory_only"]


class Estimator(BaseEstimator):
    """Shared manners: transactional fit, evidence, output containers.

    A subclass has `_check_parameters`, which raises before any data is looked at, and `_fit`,
    which returns the fitted attributes as a mapping and sets none itself. Whatever interrupts a
    fit, the estimator afterwards is as it was before, or completely fitted.
    """

    evidence_: Evidence
    status_: Status

    def _check_parameters(self) -> None:
        """Raise an InputError for a constructor parameter that cannot be used."""

    def _transact(self, *data: Any) -> Self:
        """Run `_learn(*data)` and publish what it returns, all or nothing."""
        enable_compile_cache()
        before = dict(self.__dict__)
        try:
            self._check_parameters()
            with limited(getattr(self, "n_jobs", None)):
                learned = self._learn(*data)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        for name in set(before) - set(inspect.signature(type(self)).parameters):
            # Results of an earlier fit that this one did not renew would contradict it.
            if name.endswith("_") and name not in _READ:
                self.__dict__.pop(name, None)
        self.__dict__.update(learned)
        return self._report_end()

    def _require_fit(self) -> None:
        """Raise scikit-learn's NotFittedError before `fit`."""
        check_is_fitted(self)

    @abstractmethod
    def _learn(self, *data: Any) -> dict[str, Any]:
        """Validate, solve, and return the fitted attributes."""

    def _report_end(self) -> Self:
        """Warn when the fit fell short of its standard; hand an interrupt on."""
        if self.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt(Status.INTERRUPTED.sentence)
        if not self.status_.ok:
            warnings.warn(
                f"{type(self).__name__}: {self.status_.sentence}",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    def set_output(self, *, transform: str | None = None, predict: str | None = None) -> Self:
        """Choose the container of predictions: "default" (NumPy), "pandas" or "polars".

        Args:
            transform: As in scikit-learn; read as the container for every output.
            predict: The same under a name that says what it does here.
        """
        chosen = check_container(predict) or check_container(transform)
        if chosen is not None:
            # scikit-learn's own attribute, so that `clone` carries it along.
            self._sklearn_output_config = {"transform": chosen}
        return self

    def _contain(self, values: np.ndarray, X: Any) -> Any:
        container = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        return wrap(values, container, X, list(self.target_names_))


def in_memory_only(estimator: Any) -> InputError:
    """The refusal of estimators that pass over the rows many times."""
    return InputError(
        f"data in chunks for {type(estimator).__name__}",
        "a table in memory: this fit passes over the rows many times",
        "Pass arrays or a frame, or a sample of the rows",
    )


_READ = frozenset({"n_features_in_", "feature_names_in_"})


class Regressor(MultiOutputMixin, RegressorMixin, Estimator):
    """A regressor over a validated `Table`."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a table, or from more data than memory holds.

        Args:
            X: (n, d): NumPy, pandas, polars, Arrow, scipy sparse, JAX, lists; or a path to a
                Parquet/Arrow dataset; or an iterable of chunks (X, y) or (X, y, weight).
            y: (n,) or (n, t); for a dataset the name (or names) of the target columns.
            sample_weight: (n,) weights ≥ 0; for a dataset the name of a column.

        Returns:
            The fitted estimator.
        """
        return self._transact(X, y, sample_weight)

    def _learn(self, *data: Any) -> dict[str, Any]:
        X, y, sample_weight = data
        if is_stream(X):
            stream = read_stream(self, X, y, sample_weight)
            return {"target_names_": stream.targets, **self._learn_stream(stream)}
        sparse = self.__sklearn_tags__().input_tags.sparse
        table = read_table(self, X, y, sample_weight, sparse=sparse)
        try:
            # What remains after the passes over rows is of the order of the columns.
            with calm(float(min(table.X.shape)) * table.X.shape[1] ** 2):
                return {"target_names_": table.targets, **self._fit(table)}
        except NotFiniteError:
            refuse_non_finite(X)
            raise

    def _read_aside(self, X: Any, y: Any, sample_weight: Any) -> Table:
        """Validate data without remembering anything about it."""
        reader = clone(self)
        reader._check_parameters()
        return read_table(reader, X, y, sample_weight, sparse=False)

    def _learn_stream(self, stream: Stream) -> dict[str, Any]:
        """Learn from chunks that pass by once, and return the fitted attributes."""
        raise in_memory_only(self)

    @abstractmethod
    def _fit(self, table: Table) -> dict[str, Any]:
        """Solve, and return the fitted attributes."""

    def predict(self, X: Any) -> Any:
        """Predicted targets (n,) or (n, t) in the container chosen by `set_output`."""
        check_is_fitted(self)
        return self._contain(self._predict(read_features(self, X)), X)

    @abstractmethod
    def _predict(self, X: Any) -> np.ndarray:
        """Predictions for validated X (n, d)."""
