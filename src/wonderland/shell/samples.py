"""Data that ships with scikit-learn, with names a person can read."""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

__all__ = ["Sample", "diabetes"]


class Sample(NamedTuple):
    """A small data set, split once into a part to learn from and a part to test on.

    Attributes:
        name: What it is about, in one line.
        features: Column names (d,).
        target: The name of y.
        X: (n, d); the part to learn from.
        y: (n,).
        X_test: (m, d).
        y_test: (m,).
    """

    name: str
    features: list[str]
    target: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


# Serum measurements in the order of scikit-learn's columns s1 … s6.
SERUM = ["total chol.", "LDL", "HDL", "chol. ratio", "log triglyc.", "glucose"]


def diabetes(*, seed: int = 0) -> Sample:
    """Ten measurements of 442 patients in their own units, and the disease a year later.

    Reference: Efron, Hastie, Johnstone, Tibshirani, Least Angle Regression (2004).

    Args:
        seed: Which quarter of the patients is kept for testing.

    >>> sample = diabetes()
    >>> sample.X.shape, sample.X_test.shape
    ((331, 10), (111, 10))
    """
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    return Sample(
        name="diabetes: 442 patients, ten measurements each, disease progression a year later",
        features=["age", "sex", "body mass", "blood pres.", *SERUM],
        target="progression",
        X=X,
        y=y,
        X_test=X_test,
        y_test=y_test,
    )
