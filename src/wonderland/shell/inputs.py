"""From what a person has (NumPy, pandas, polars, Arrow, sparse, JAX, lists) to float64 arrays."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from wonderland.core.errors import InputError
from wonderland.shell.explain import column_names, explained, refuse_non_finite

__all__ = [
    "Classes",
    "Table",
    "read_classes",
    "read_features",
    "read_table",
    "read_weight",
    "target_names",
]


class Table(NamedTuple):
    """Validated training data.

    Attributes:
        X: (n, d), float64, dense or CSR.
        y: (n, t), float64.
        weight: (n,) or None.
        flat: Whether y came with one dimension, so that outputs lose theirs.
        names: Column names (d,).
        targets: Target names (t,).
        dtype: The floating type predictions and coefficients are given in.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    flat: bool
    names: list[str]
    targets: list[str]
    dtype: np.dtype


class Classes(NamedTuple):
    """Validated training data of a classifier.

    Attributes:
        X: (n, d), float64, dense or CSR.
        codes: (n,) whole numbers: sample i belongs to `classes[codes[i]]`.
        classes: The labels themselves, sorted (k,), k ≥ 2.
        weight: (n,) sample weight times class weight; None where all are one.
        names: Column names (d,).
        target: The name of y.
        dtype: The floating type scores and coefficients are given in.
    """

    X: Any
    codes: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None
    names: list[str]
    target: str
    dtype: np.dtype

    @property
    def signs(self) -> np.ndarray:
        """Two classes as −1 and +1 (n,), the second of `classes` being +1."""
        return np.where(self.codes == 1, 1.0, -1.0)


def read_table(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, *, sparse: bool = True
) -> Table:
    """Validate X, y and weights; remembers the number and names of columns on the estimator."""
    original = X
    X, target = _validated(estimator, X, y, sparse=sparse, multi_output=True, y_numeric=True)
    dtype = np.dtype(X.dtype)
    # Finiteness is checked by whoever sums the data (NaN survives a sum): a pass less over it.
    if sp.issparse(X) or X.size < SMALL or dtype == np.float32:
        refuse_non_finite(X, source=original)
    target = explained(lambda: np.asarray(target, dtype=np.float64), y=y)
    refuse_non_finite(target, what="y")
    _refuse_degenerate(estimator, target)
    return Table(
        X=X.astype(np.float64, copy=False),
        y=target[:, None] if target.ndim == 1 else target,
        weight=read_weight(sample_weight, X),
        flat=target.ndim == 1,
        names=_names(estimator, original, X.shape[1]),
        targets=target_names(y, target),
        dtype=dtype,
    )


def read_classes(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    class_weight: Any = None,
    sparse: bool = True,
) -> Classes:
    """Validate X, labels and weights; remembers the number and names of columns.

    Args:
        estimator: Given `n_features_in_` and `feature_names_in_`.
        X: (n, d).
        y: Labels (n,): numbers, strings or booleans.
        sample_weight: (n,) ≥ 0, or None.
        class_weight: None, "balanced" (n/(k·n_c), weighted) or a mapping label → weight.
        sparse: Whether scipy sparse tables are kept as CSR.
    """
    original = X
    X, labels = _validated(estimator, X, y, sparse=sparse)
    refuse_non_finite(X, source=original)
    explained(lambda: check_classification_targets(labels), y=y)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            f"y holds one class only: all {len(labels)} labels are {classes[0]!r}",
            "at least 2 classes",
            "Check the target column and the filter before it; "
            "wl.OneClassSVM describes a single class",
        )
    weight = _class_weighted(read_weight(sample_weight, X), class_weight, classes, labels, codes)
    return Classes(
        X=X.astype(np.float64, copy=False),
        codes=codes,
        classes=classes,
        weight=weight,
        names=_names(estimator, original, X.shape[1]),
        target=target_names(y, labels)[0],
        dtype=np.dtype(X.dtype),
    )


def _class_weighted(
    weight: np.ndarray | None,
    class_weight: Any,
    classes: np.ndarray,
    labels: np.ndarray,
    codes: np.ndarray,
) -> np.ndarray | None:
    """Sample weights times the weight of each sample's class (n,)."""
    if class_weight is None:
        return weight
    per_class = explained(
        lambda: compute_class_weight(class_weight, classes=classes, y=labels, sample_weight=weight),
        class_weight=class_weight,
    )
    return per_class[codes] if weight is None else weight * per_class[codes]


def _validated(
    estimator: BaseEstimator, X: Any, y: Any, *, sparse: bool, **options: Any
) -> tuple[Any, Any]:
    return explained(
        lambda: validate_data(
            estimator,
            X,
            y,
            dtype=[np.float64, np.float32],
            accept_sparse="csr" if sparse else False,
            ensure_all_finite=False,
            **options,
        ),
        X=X,
        y=y,
    )


def _names(estimator: BaseEstimator, X: Any, count: int) -> list[str]:
    """Names of the columns: those remembered, else what X carries, else x0, x1, …."""
    names = getattr(estimator, "feature_names_in_", None)
    return column_names(X, count) if names is None else list(names)


SMALL = 1 << 20  # entries below which an extra pass for NaN is not felt


def _refuse_degenerate(estimator: Any, y: np.ndarray) -> None:
    """One sample, or a target that never varies, determines no slope."""
    if not getattr(estimator, "fit_intercept", True):
        return
    if len(y) == 1:
        raise InputError(
            "X and y hold one sample (n_samples = 1)",
            "at least two samples: one cannot determine slope and intercept",
            "Pass more rows, or fit_intercept=False for a line through the origin",
        )
    if np.all(y == y[:1]):
        raise InputError(
            f"y is constant: all {len(y)} targets equal {np.ravel(y)[0]:g}",
            "a target that varies: with an intercept every slope would be zero",
            "Check the target column, or use sklearn.dummy.DummyRegressor for a constant",
        )


def read_weight(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Validated weights (n,), float64, ≥ 0 and not all zero; None where none were given."""
    if sample_weight is None:
        return None
    weight = explained(
        lambda: _check_sample_weight(sample_weight, X, dtype=np.float64, copy=False),
        sample_weight=sample_weight,
    )
    if np.any(weight < 0):
        rows = np.flatnonzero(weight < 0)
        raise InputError(
            f"Negative values in data passed to `sample_weight`: {len(rows)} of {len(weight)}, "
            f"the first in row {rows[0]}",
            "weights ≥ 0",
            "Drop rows by weight 0; a negative weight makes the loss unbounded below",
        )
    if not np.any(weight > 0):
        raise InputError(
            "all sample weights are zero",
            "at least one positive weight",
            "Pass sample_weight=None for equal weights",
        )
    return weight


def target_names(y: Any, target: np.ndarray) -> list[str]:
    """The names y itself carries, else "y", or y0, y1, …."""
    count = 1 if target.ndim == 1 else target.shape[1]
    name = getattr(y, "name", None)
    if count == 1 and isinstance(name, str):
        return [name]
    found = column_names(y, count)
    return found if found[0] != "x0" else [f"y{k}" if count > 1 else "y" for k in range(count)]


def read_features(estimator: BaseEstimator, X: Any) -> Any:
    """Validate X for prediction against what fit has seen: float64 (n, d), dense or CSR."""
    _refuse_other_order(estimator, X)
    read = explained(
        lambda: validate_data(
            estimator,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        ),
        X=X,
    )
    refuse_non_finite(read, source=X)
    return read


def _refuse_other_order(estimator: Any, X: Any) -> None:
    """The same columns in another order: say where they part."""
    seen = [str(name) for name in getattr(estimator, "feature_names_in_", [])]
    came = column_names(X, len(seen))
    if came == seen or set(came) != set(seen):
        return
    where = next(j for j, (a, b) in enumerate(zip(came, seen, strict=True)) if a != b)
    raise InputError(
        "The feature names should match those that were passed during fit: they come in another "
        f"order, first at position {where} with {came[where]!r} where fit saw {seen[where]!r}",
        "the columns in the order of fit",
        "Select them with X[list(estimator.feature_names_in_)]",
    )
