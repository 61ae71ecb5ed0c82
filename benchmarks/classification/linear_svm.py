"""Linear support vector machines: hinge and squared hinge on tall tables, text, the hard margin.

LIBLINEAR penalises the intercept; both sides fit without one here, and then solve the same problem.
It is run at the loosest tolerance of 0.1, 0.01, 0.001 … at which its objective comes within 1e-4 of
the optimum, or, where none does within its budget of passes, at the budget.
"""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import Case, Contender, Figure, Machine, Result, best_of, race

__all__ = ["cases"]

PASSES = 2000  # of LIBLINEAR over the rows
WANTED = 1e-4


def cases(host: Machine, rounds: int) -> Iterator[Result | Figure]:
    """The demanded case first."""
    yield race(_hinge(50_000, 100, goal=10.0), host, rounds)
    yield race(_squared(50_000, 100), host, rounds)
    yield race(_text(10_000, 20_000), host, rounds)
    yield from _growth()


def _labelled(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    scores = 2.0 * X @ rng.normal(size=d) / np.sqrt(d)
    return X, np.where(scores + rng.logistic(size=n) > 0, 1, -1)


def _objective(X: Any, y: np.ndarray, *, squared: bool) -> Any:
    def quality(fitted: Any) -> float:
        w = np.ravel(fitted.coef_)
        short = np.maximum(0.0, 1.0 - y * (X @ w))
        return float(0.5 * w @ w + (short**2 if squared else short).sum())

    return quality


def _ours(X: Any, y: Any = None, loss: str = "hinge") -> Any:
    import wonderland as wl

    return wl.LinearSVC(loss=loss, fit_intercept=False, tol=WANTED).fit(X, y)


def _theirs(X: Any, y: np.ndarray, loss: str, tol: float) -> Any:
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LinearSVC(
            loss=loss,
            fit_intercept=False,
            tol=tol,
            max_iter=PASSES,
            dual=loss == "hinge",
            random_state=0,
        ).fit(X, y)


def _loosest(X: Any, y: np.ndarray, loss: str) -> float:
    """LIBLINEAR's tolerance that suffices, found outside the timing."""
    quality = _objective(X, y, squared=loss != "hinge")
    aim = quality(_ours(X, y, loss)) * (1 + WANTED)
    for tol in (1e-1, 1e-2, 1e-3):
        if quality(_theirs(X, y, loss, tol)) <= aim:
            return tol
    return 1e-3


def _against(work: str, X: Any, y: np.ndarray, loss: str, goal: float | None) -> Case:
    quality = _objective(X, y, squared=loss != "hinge")
    tol = _loosest(X, y, loss)
    return Case(
        work,
        [
            Contender("wonderland", lambda: _ours(X, y, loss), quality),
            Contender(
                f"LIBLINEAR, tol {tol:g}", lambda: _theirs(X, y, loss, tol), quality, goal=goal
            ),
        ],
        bytes=2.0 * (X.data.nbytes if sp.issparse(X) else X.nbytes),
    )


def _hinge(n: int, d: int, goal: float) -> Case:
    work = f"linear SVM, hinge, {n:,} × {d}, relative gap ≤ {WANTED:g}"
    return _against(work, *_labelled(n, d), "hinge", goal)


def _squared(n: int, d: int) -> Case:
    work = f"linear SVM, squared hinge, {n:,} × {d}"
    return _against(work, *_labelled(n, d), "squared_hinge", None)


def _text(n: int, d: int) -> Case:
    """Rows of a hundred words or so, labels from some of them."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.005, rng=rng, format="csr")
    X.data[:] = 1.0 / np.sqrt(0.005 * d)
    y = np.where(X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0, 1, -1)
    return _against(f"linear SVM, hinge, sparse {n:,} × {d:,}", sp.csr_matrix(X), y, "hinge", None)


def _growth() -> Iterator[Figure]:
    """Slope of log time over log n, and a million rows."""
    sizes = (50_000, 200_000)
    times = []
    for n in sizes:
        table = _labelled(n, 50)
        (seconds,), _ = best_of([partial(_ours, *table, "hinge")], 2)
        times.append(seconds)
    slope = np.log(times[1] / times[0]) / np.log(sizes[1] / sizes[0])
    yield Figure("linear SVM, hinge, 50 columns: exponent of growth with n", float(slope), "")
    X, y = _labelled(1_000_000, 50)
    (seconds,), _ = best_of([lambda: _ours(X, y, "hinge")], 1)
    yield Figure("linear SVM, hinge, 1,000,000 × 50", seconds, "s")
    (seconds,), _ = best_of([lambda: _passing(X, y)], 1)
    yield Figure("the same in chunks of 50,000 rows, none held longer", seconds, "s")


def _passing(X: np.ndarray, y: np.ndarray) -> Any:
    """The same table as chunks that come by."""
    return _ours(lambda: ((X[i : i + 50_000], y[i : i + 50_000]) for i in range(0, len(y), 50_000)))
