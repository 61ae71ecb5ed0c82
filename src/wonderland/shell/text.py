"""The base of what turns texts into tables, and the reading of texts from what a person has."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from wonderland.core.errors import InputError, InputTypeError, optional
from wonderland.shell.estimator import Estimator

__all__ = ["COUNTS", "TextTransformer", "read_texts"]

COUNTS = "_counts_of_fit"  # under this name `_learn` returns the counts of the texts themselves


class TextTransformer(TransformerMixin, Estimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """A transformer from texts to a sparse table with a name for each column."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from texts.

        Args:
            X: A list, a series, or a frame of one column of texts.
            y: Ignored.
        """
        del y
        self._learn_table(read_texts(X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit` and `transform` in one pass over the texts."""
        del y
        return self._contained(self._finished(self._learn_table(read_texts(X))), X)

    def _learn_table(self, texts: list[str]) -> sp.csr_array:
        """Fit; the counts that were made on the way are handed on, not kept."""
        self._transact(texts)
        return self.__dict__.pop(COUNTS)

    def transform(self, X: Any) -> Any:
        """The table of these texts (n, d): CSR, or the container chosen by `set_output`."""
        check_is_fitted(self)
        return self._contained(self._table(read_texts(X)), X)

    def _table(self, texts: list[str]) -> sp.csr_array:
        """One row for each text."""
        return self._finished(self._counts(texts))

    @abstractmethod
    def _counts(self, texts: list[str]) -> sp.csr_array:
        """What is counted in each text, by what was learnt."""

    @abstractmethod
    def _finished(self, counts: sp.csr_array) -> sp.csr_array:
        """The table made of counts."""

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """A name for each column (d,)."""

    # scikit-learn's own would refuse sparse tables in frames.
    set_output = Estimator.set_output

    def _contained(self, table: Any, X: Any) -> Any:
        container = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        names = self.get_feature_names_out().tolist()
        if container == "pandas":
            pd = optional("pandas", "frames")
            index = getattr(X, "index", None)
            index = index if isinstance(index, pd.Index) else None
            return pd.DataFrame.sparse.from_spmatrix(table, index=index, columns=names)
        if container == "polars":
            return optional("polars", "frames").DataFrame(table.toarray(), schema=names)
        return table

    def __sklearn_tags__(self) -> Any:
        """Texts come in one dimension."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = True
        return tags


def read_texts(X: Any) -> list[str]:
    """The texts of a list, series, array, or frame of one column.

    >>> read_texts(np.array([["one"], ["two"]]))
    ['one', 'two']
    """
    if isinstance(X, str | bytes):
        raise InputError(
            f"Iterable over raw text documents expected, string object received: {X!r:.60}",
            "a list of texts, one for each sample",
            "Pass [text] for a single one",
        )
    texts = _listed(_only_column(X))
    row = next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)
    if row is not None:
        raise InputTypeError(
            f"row {row} holds {texts[row]!r:.60}, a {type(texts[row]).__name__}",
            "a text in every row",
            "Fill missing texts with '' and decode bytes; pass numbers to an estimator directly",
        )
    if not texts:
        raise InputError("no texts", "at least one", "Check the filter before it")
    return texts


def _only_column(X: Any) -> Any:
    """X itself, or the one column of a frame or two-dimensional array."""
    shape = getattr(X, "shape", None)
    if shape is None or len(shape) < 2:
        return X
    if len(shape) > 2 or shape[1] != 1:
        raise InputError(
            f"a table of shape {tuple(shape)}",
            "one column of texts",
            "Select it, such as X['text'], or give each column a transformer of its own with "
            "sklearn.compose.ColumnTransformer",
        )
    if hasattr(X, "iloc"):
        return X.iloc[:, 0]
    if hasattr(X, "get_column"):
        return X.to_series(0)
    return X.column(0) if hasattr(X, "column") else np.asarray(X)[:, 0]


def _listed(X: Any) -> list[Any]:
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(X, name):
            return list(getattr(X, name)())
    if not isinstance(X, Iterable):
        raise InputTypeError(
            f"X is {X!r:.60}", "a list, a series or one column of texts", "Pass a list of texts"
        )
    return list(X)
