"""The base of estimators that learn what is usual from samples without targets."""

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from wonderland.shell.containers import wrap
from wonderland.shell.estimator import Estimator, in_memory_only
from wonderland.shell.explain import explained, refuse_non_finite
from wonderland.shell.inputs import read_features, read_weight
from wonderland.shell.streams import is_stream

__all__ = ["OutlierDetector", "Samples"]


class Samples(NamedTuple):
    """Validated samples.

    Attributes:
        X: (n, d), float64, dense or CSR.
        weight: (n,) or None.
    """

    X: Any
    weight: np.ndarray | None


class OutlierDetector(OutlierMixin, Estimator):
    """Says of a sample whether it is usual (+1) or not (−1).

    A subclass has `_check_parameters`, `_fit`, which returns the fitted attributes as a mapping,
    and `_scores`, positive for what is usual.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a table.

        Args:
            X: (n, d): NumPy, pandas, polars, Arrow, scipy sparse, JAX, lists.
            y: Not used; there for scikit-learn's pipelines.
            sample_weight: (n,) weights ≥ 0.

        Returns:
            The fitted estimator.
        """
        return self._transact(X, sample_weight)

    def _learn(self, *data: Any) -> dict[str, Any]:
        X, sample_weight = data
        if is_stream(X):
            raise in_memory_only(self)
        sparse = self.__sklearn_tags__().input_tags.sparse
        read = explained(
            lambda: validate_data(
                self,
                X,
                dtype=[np.float64, np.float32],
                accept_sparse="csr" if sparse else False,
                ensure_all_finite=False,
            ),
            X=X,
        )
        refuse_non_finite(read, source=X)
        weight = read_weight(sample_weight, read)
        return self._fit(Samples(read.astype(np.float64, copy=False), weight))

    @abstractmethod
    def _fit(self, samples: Samples) -> dict[str, Any]:
        """Solve, and return the fitted attributes."""

    @abstractmethod
    def _scores(self, X: Any) -> np.ndarray:
        """Scores (n,) for validated X, positive for what is usual."""

    def decision_function(self, X: Any) -> Any:
        """Scores (n,), positive for what is usual."""
        check_is_fitted(self)
        return self._named(self._scores(read_features(self, X)), X)

    def predict(self, X: Any) -> Any:
        """+1 for what is usual, −1 for what is not (n,)."""
        check_is_fitted(self)
        scores = self._scores(read_features(self, X))
        return self._named(np.where(scores > 0, 1, -1), X)

    def _named(self, values: np.ndarray, X: Any) -> Any:
        container = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        return wrap(values, container, X, ["usual"])
