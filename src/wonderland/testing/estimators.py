"""Laws of every estimator: data, weights, seeds, storage, evidence.

An estimator comes unfitted and is cloned, so that the caller's own is never touched.
"""

import json
import pickle
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import jax
import numpy as np
from sklearn.base import clone

from wonderland.core.arrays import in_float64
from wonderland.core.evidence import Claim
from wonderland.core.store import load, save
from wonderland.testing.compare import close, same

__all__ = [
    "clones_and_pickles",
    "evidence_is_plain",
    "fitted",
    "predictions_are_the_models",
    "same_seed_same_fit",
    "samples_in_any_order",
    "saving_keeps_every_bit",
    "weights_are_repetition",
    "zero_weight_is_absence",
]


def fitted(estimator: Any, *data: Any, **options: Any) -> Any:
    """A fitted clone."""
    return clone(estimator).fit(*data, **options)


def _same_function(a: Any, b: Any, X: Any, sentence: str, rtol: float) -> None:
    close(a.predict(X), b.predict(X), f"{sentence} (predictions)", rtol=rtol)
    if hasattr(b, "coef_"):
        close(a.coef_, b.coef_, f"{sentence} (coefficients)", rtol=rtol)


def weights_are_repetition(
    estimator: Any, X: Any, y: Any, *, counts: np.ndarray, rtol: float = 1e-8
) -> None:
    """A sample of weight k counts as k copies of it: Σ ω_i ℓ_i = Σ_i Σ_{1…ω_i} ℓ_i.

    Args:
        estimator: Takes `sample_weight`.
        X: (n, d).
        y: (n,) or (n, t).
        counts: Whole numbers ≥ 0 (n,).
        rtol: What is allowed.

    >>> import wonderland as wl
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 2.5])
    >>> weights_are_repetition(wl.LinearRegression(), X, y, counts=np.array([1, 3, 2]))
    """
    X, y, counts = np.asarray(X), np.asarray(y), np.asarray(counts)
    weighted = fitted(estimator, X, y, sample_weight=counts.astype(float))
    repeated = fitted(estimator, np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0))
    _same_function(weighted, repeated, X, "a weight is a number of copies", rtol)


def zero_weight_is_absence(
    estimator: Any, X: Any, y: Any, *, absent: np.ndarray, rtol: float = 1e-8
) -> None:
    """Samples of weight 0 may as well not be there, whatever their target.

    >>> import wonderland as wl
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 9.0])
    >>> zero_weight_is_absence(wl.Ridge(), X, y, absent=np.array([False, False, True]))
    """
    X, y, absent = np.asarray(X), np.asarray(y, float), np.asarray(absent, bool)
    changed = y.copy()
    changed[absent] += 1.0 + np.abs(y).max()
    ones = np.ones(len(X))
    weighted = fitted(estimator, X, changed, sample_weight=np.where(absent, 0.0, ones))
    without = fitted(estimator, X[~absent], y[~absent], sample_weight=ones[~absent])
    _same_function(weighted, without, X, "weight 0 is absence", rtol)


def samples_in_any_order(
    estimator: Any, X: Any, y: Any, *, order: np.ndarray, rtol: float = 1e-8
) -> None:
    """A fit does not depend on the order of the samples.

    >>> import wonderland as wl
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 9.0])
    >>> samples_in_any_order(wl.LinearRegression(), X, y, order=np.array([2, 0, 1]))
    """
    X, y = np.asarray(X), np.asarray(y)
    turned = fitted(estimator, X[order], y[order])
    _same_function(turned, fitted(estimator, X, y), X, "samples may come in any order", rtol)


def same_seed_same_fit(estimator: Any, X: Any, y: Any) -> None:
    """Two fits with the same `random_state` are equal bit for bit.

    >>> import wonderland as wl
    >>> same_seed_same_fit(wl.Ridge(), np.eye(3), np.arange(3.0))
    """
    estimator = clone(estimator)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    one, two = fitted(estimator, X, y), fitted(estimator, X, y)
    if not same(_results(one), _results(two)):
        raise AssertionError("two fits with the same seed differ")


def _results(estimator: Any) -> dict[str, Any]:
    """What fit has set: the public names with a trailing underscore."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    }


def saving_keeps_every_bit(estimator: Any, X: Any, y: Any) -> None:
    """load(save(e)) equals e: parameters, results, evidence and predictions, bit for bit.

    >>> import wonderland as wl
    >>> saving_keeps_every_bit(wl.LinearRegression(), np.eye(3)[:, :2], np.arange(3.0))
    """
    first = fitted(estimator, X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "estimator.wl"
        save(first, path)
        again = load(path)
    _equal(first, again, X, "a saved and loaded estimator")


def clones_and_pickles(estimator: Any, X: Any, y: Any) -> None:
    """`clone` keeps the parameters and drops the fit; pickling keeps everything.

    >>> import wonderland as wl
    >>> clones_and_pickles(wl.Ridge(2.0), np.eye(3), np.arange(3.0))
    """
    first = fitted(estimator, X, y)
    copy = clone(first)
    if _results(copy):
        raise AssertionError(f"clone kept results of the fit: {', '.join(_results(copy))}")
    if not same(_plain(copy.get_params()), _plain(first.get_params())):
        raise AssertionError("clone changed a parameter")
    _equal(first, pickle.loads(pickle.dumps(first)), X, "a pickled estimator")


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters without the objects that are themselves parameters' owners."""
    return {name: parameters[name] for name in sorted(parameters)}


def _equal(first: Any, again: Any, X: Any, which: str) -> None:
    if type(again) is not type(first):
        raise AssertionError(f"{which} is a {type(again).__name__}")
    if not same(_plain(again.get_params()), _plain(first.get_params())):
        raise AssertionError(f"{which} has other parameters")
    ours, theirs = _results(first), _results(again)
    wrong = [name for name in ours if name not in theirs or not same(ours[name], theirs[name])]
    if wrong or len(ours) != len(theirs):
        raise AssertionError(f"{which} differs in {', '.join(wrong) or 'its attributes'}")
    if not same(np.asarray(again.predict(X)), np.asarray(first.predict(X))):
        raise AssertionError(f"{which} predicts differently")


def predictions_are_the_models(estimator: Any, X: Any, y: Any, *, rtol: float = 1e-9) -> None:
    """predict(X)_i = model_(x_i): the batch is derived from a function of one sample.

    >>> import wonderland as wl
    >>> predictions_are_the_models(wl.Ridge(), np.eye(3), np.arange(3.0))
    """
    first = fitted(estimator, X, y)
    alone = in_float64(lambda: jax.vmap(first.model_)(jax.numpy.asarray(X)))()
    close(first.predict(X), alone, "predict is the model of one sample, mapped", rtol=rtol)


def evidence_is_plain(estimator: Any, X: Any, y: Any, *, required: Collection[str]) -> None:
    """`evidence_` has the required claims, each with its sentence, and becomes plain JSON.

    >>> import wonderland as wl
    >>> evidence_is_plain(wl.Ridge(), np.eye(3), np.arange(3.0), required=["rank", "digits"])
    """
    evidence = fitted(estimator, X, y).evidence_
    if not hasattr(evidence, "to_dict"):
        raise AssertionError(f"evidence_ is a {type(evidence).__name__}, not an Evidence")
    if missing := sorted(set(required) - set(evidence)):
        raise AssertionError(f"evidence_ lacks {', '.join(missing)}")
    for name, claim in evidence.items():
        if not isinstance(claim, Claim) or claim.name != name or not claim.meaning:
            raise AssertionError(f"claim {name!r} lacks its name or its meaning")
        if (claim.bound is None) != (claim.holds is None):
            raise AssertionError(f"claim {name!r} has a bound without a verdict, or the reverse")
        if name not in str(evidence) or name not in evidence._repr_html_():
            raise AssertionError(f"claim {name!r} is missing from the table")
    again = json.loads(json.dumps(evidence.to_dict(), allow_nan=False))
    if again != evidence.to_dict():
        raise AssertionError("evidence changes on its way through JSON")
