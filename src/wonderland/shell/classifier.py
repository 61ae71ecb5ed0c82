"""The base of every classifier: labels in, labels out; in between there are only class numbers."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from wonderland.shell.containers import wrap
from wonderland.shell.estimator import Estimator, in_memory_only
from wonderland.shell.inputs import Classes, read_classes, read_features
from wonderland.shell.streams import is_stream

__all__ = ["Classifier"]


class Classifier(ClassifierMixin, Estimator):
    """A classifier over validated `Classes`.

    A subclass has `_check_parameters`, `_fit`, which returns the fitted attributes as a mapping,
    and `_scores`, whose largest column (or sign, for two classes) is the decision. `classes_` is
    set here. Class weights are read from a parameter `class_weight` where there is one.

    Attributes:
        classes_: The labels, sorted (k,).
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a table with one label for each row.

        Args:
            X: (n, d): NumPy, pandas, polars, Arrow, scipy sparse, JAX, lists.
            y: Labels (n,): strings, numbers or booleans; at least two classes.
            sample_weight: (n,) weights ≥ 0.

        Returns:
            The fitted estimator.
        """
        return self._transact(X, y, sample_weight)

    def _learn(self, *data: Any) -> dict[str, Any]:
        X, y, sample_weight = data
        if is_stream(X):
            return self._learn_stream(X, y, sample_weight)
        table = read_classes(
            self,
            X,
            y,
            sample_weight,
            class_weight=getattr(self, "class_weight", None),
            sparse=self.__sklearn_tags__().input_tags.sparse,
        )
        fixed = {"target_names_": [table.target], "classes_": table.classes}
        return {**fixed, **self._fit(table)}

    def _learn_stream(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        """Learn from a path or from chunks, and return the fitted attributes."""
        raise in_memory_only(self)

    @abstractmethod
    def _fit(self, table: Classes) -> dict[str, Any]:
        """Solve, and return the fitted attributes."""

    @abstractmethod
    def _scores(self, X: Any) -> np.ndarray:
        """Scores for validated X: (n,) for two classes, positive for the second; else (n, k)."""

    def _read(self, X: Any) -> Any:
        """Validate X for prediction; scikit-learn's NotFittedError before `fit`."""
        check_is_fitted(self)
        return read_features(self, X)

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        """Class numbers (n,) from scores."""
        return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)

    def decision_function(self, X: Any) -> Any:
        """Scores (n,) for two classes, else one column for each of `classes_` (n, k)."""
        scores = self._scores(self._read(X))
        return self._labelled(scores, X)

    def predict(self, X: Any) -> Any:
        """The label with the largest score (n,), in the container chosen by `set_output`."""
        scores = self._scores(self._read(X))
        return self._contain(self.classes_[self._decide(scores)], X)

    def _labelled(self, values: np.ndarray, X: Any) -> Any:
        """Columns of values (n, k) named for the classes; (n,) for the target."""
        container = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        names = [str(label) for label in self.classes_]
        return wrap(values, container, X, self.target_names_ if values.ndim == 1 else names)
