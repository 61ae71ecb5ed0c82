"""Targets of estimators that learn one at a time."""

import warnings

import numpy as np
from sklearn.exceptions import DataConversionWarning

from wonderland.core.errors import InputError
from wonderland.shell.inputs import Table

__all__ = ["one_target"]


def one_target(table: Table) -> np.ndarray:
    """y (n,); a single column is taken with scikit-learn's warning, several are refused."""
    if table.y.shape[1] != 1:
        raise InputError(
            f"y should be a 1d array, got an array of shape {table.y.shape} instead",
            "one target (n,)",
            "Fit one estimator for each column (sklearn.multioutput.MultiOutputRegressor)",
        )
    if not table.flat:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel()",
            DataConversionWarning,
            stacklevel=5,
        )
    return table.y[:, 0]
