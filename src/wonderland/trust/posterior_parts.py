"""What every way of averaging answers, and how members are averaged."""

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr, ndtri

from wonderland.core.errors import InputError
from wonderland.losses.averages import entropy
from wonderland.shell.inputs import read_features
from wonderland.shell.objective import Objective
from wonderland.trust.wrapper import Task

__all__ = [
    "Classes",
    "Numbers",
    "Predictive",
    "inside",
    "mixture_interval",
    "objective_of",
    "plain",
    "pool",
]


DENSE = 1 << 27  # entries of a sparse table that is made dense: 1 GB


class Classes(NamedTuple):
    """E p (n, k), H[E p] (n,) and E H[p] (n,)."""

    average: np.ndarray
    entropy: np.ndarray
    expected_entropy: np.ndarray


class Numbers(NamedTuple):
    """E f (n,), Var f (n,) and E σ² (n,)."""

    mean: np.ndarray
    epistemic: np.ndarray
    aleatoric: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Variance of a new target (n,)."""
        return self.epistemic + self.aleatoric


class Predictive(eqx.Module):
    """Predictions averaged over a posterior; `estimator` is the fitted one that reads X."""

    @abstractmethod
    def classes(self, estimator: Any, X: Any) -> Classes:
        """Of a classifier."""

    @abstractmethod
    def numbers(self, estimator: Any, X: Any) -> Numbers:
        """Of a regressor."""

    @abstractmethod
    def interval(self, estimator: Any, X: Any, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Central interval of a new target."""

    @abstractmethod
    def members(self, estimator: Any, X: Any, count: int) -> np.ndarray:
        """Predictions of each member: (m, n, k) or (m, n)."""


def pool(members: np.ndarray) -> Classes:
    """The average of probabilities (m, n, k)."""
    average = members.mean(axis=0)
    return Classes(average, entropy(average), entropy(members).mean(axis=0))


def mixture_interval(
    means: np.ndarray, variances: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of 1/m Σ_i N(f_i, σ_i²) at each row, by bisection.

    Args:
        means: (m, n).
        variances: σ² (m, 1) or (m, n), > 0 or zero throughout.
        level: Probability between the ends.

    >>> low, high = mixture_interval(np.zeros((3, 1)), np.ones((3, 1)), 0.95)
    >>> low.round(4), high.round(4)
    (array([-1.96]), array([1.96]))
    """
    deviation = np.sqrt(np.broadcast_to(variances, means.shape))
    if not np.all(deviation > 0):
        tails = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
        low, high = np.quantile(means, tails, axis=0)
        return low, high
    ends = []
    for tail in (0.5 - 0.5 * level, 0.5 + 0.5 * level):
        # The quantile of a mixture lies between the least and the largest of its parts.
        parts = means + ndtri(tail) * deviation
        low, high = parts.min(axis=0), parts.max(axis=0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = ndtr((middle - means) / deviation).mean(axis=0) < tail
            low, high = np.where(below, middle, low), np.where(below, high, middle)
            if np.all(high - low <= 1e-12 * (np.abs(low) + np.abs(high))):
                break
        ends.append(0.5 * (low + high))
    return ends[0], ends[1]


def plain(tree: Any) -> Any:
    """The same tree with NumPy arrays: these are what estimators keep, and what can be saved."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if eqx.is_array(leaf) else leaf, tree)


def inside(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The last step of a pipeline, and X as it sees it."""
    steps = getattr(estimator, "steps", None)
    if not steps:
        return estimator, X
    return inside(steps[-1][1], estimator[:-1].transform(X) if len(steps) > 1 else X)


def read_inside(estimator: Any, X: Any) -> np.ndarray:
    """The table that the model of the last step reads (n, d), float64."""
    last, seen = inside(estimator, X)
    read = read_features(last, seen)
    return np.asarray(read.toarray() if sp.issparse(read) else read, dtype=np.float64)


def objective_of(estimator: Any, task: Task, method: str) -> Objective:
    """The log posterior that the (last) estimator states."""
    last, seen = inside(estimator, task.X)
    if not hasattr(last, "_objective"):
        raise InputError(
            f"{type(last).__name__} states no log posterior, which method={method!r} needs",
            "wl.LinearRegression, wl.Ridge, wl.LogisticRegression or a network of ours",
            'Pass method="ensemble", which takes any estimator',
        )
    return last._objective(_dense(seen), task.y, task.weight)


def _dense(X: Any) -> Any:
    """A sparse table as a dense one, where that is no burden: derivatives are taken of its rows."""
    if not sp.issparse(X):
        return X
    if X.shape[0] * X.shape[1] > DENSE:
        raise InputError(
            f"a sparse table of {X.shape[0]:,} × {X.shape[1]:,} entries",
            f"at most {DENSE:,}, which are taken as a dense table",
            'Pass method="ensemble", or fewer columns',
        )
    return X.toarray()
