"""SVC with the Gaussian kernel beside LIBSVM: 20,000 × 50, and ten classes of images."""

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn import svm as libsvm
from sklearn.datasets import make_classification

import wonderland as wl
from benchmarks.classification.logistic import images
from benchmarks.measure import Case, Contender, Figure, Machine, Result, best_of, race

ROWS, COLUMNS, CACHE = 20_000, 50, 4000
GROWTH = (2500, 5000, 10_000)


@cache
def made(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A made problem of two classes, columns scaled."""
    X, y = make_classification(rows, COLUMNS, n_informative=20, flip_y=0.05, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def objective(model: Any, X: np.ndarray) -> float:
    """½βᵀKβ − Σ|β| of a machine of two classes, from its coefficients alone (to be small)."""
    beta = model.dual_coef_[0]
    gamma = 1.0 / (X.shape[1] * X.var())
    K = wl.kernels.Gaussian(gamma).matrix(model.support_vectors_)
    return float(0.5 * beta @ K @ beta - np.abs(beta).sum())


def cases(host: Machine | None = None, rounds: int = 2) -> Iterator[Result | Figure]:
    """Fit, prediction, images, growth with n."""
    X, y = made(ROWS)
    fit = Case(
        f"RBF SVC fit {ROWS:,} × {COLUMNS}, C = 1, tol 1e-3",
        [
            Contender("wonderland", lambda: wl.SVC().fit(X, y), lambda m: objective(m, X)),
            Contender(
                "LIBSVM",
                lambda: libsvm.SVC(cache_size=CACHE).fit(X, y),
                lambda m: objective(m, X),
                goal=8.0,
            ),
        ],
        # Each support vector against every row, once.
        flops=2.0 * len(wl.SVC().fit(X, y).support_) * ROWS * COLUMNS,
    )
    yield race(fit, host, rounds)
    ours, theirs = wl.SVC().fit(X, y), libsvm.SVC(cache_size=CACHE).fit(X, y)
    predict = Case(
        f"the same, prediction of {ROWS:,} rows",
        [
            Contender("wonderland", lambda: ours.predict(X), lambda p: float((p == y).mean())),
            Contender(
                "LIBSVM",
                lambda: theirs.predict(X),
                lambda p: float((p == y).mean()),
                goal=25.0,
            ),
        ],
        flops=2.0 * len(ours.support_) * ROWS * COLUMNS,
        quality_name="accuracy",
    )
    yield race(predict, host, rounds)
    yield _images(host, rounds)
    yield _growth()


def _images(host: Machine | None, rounds: int) -> Result:
    data = images(10_000)
    X, y = data.X, data.y
    return race(
        Case(
            f"RBF SVC, 10 classes of images, {len(X):,} × {X.shape[1]}, fit and prediction",
            [
                Contender(
                    "wonderland",
                    lambda: wl.SVC().fit(X, y).predict(X),
                    lambda p: float((p == y).mean()),
                ),
                Contender(
                    "LIBSVM",
                    lambda: libsvm.SVC(cache_size=CACHE).fit(X, y).predict(X),
                    lambda p: float((p == y).mean()),
                    goal=15.0,
                ),
            ],
            flops=2.0 * len(X) ** 2 * X.shape[1],
            quality_name="accuracy",
        ),
        host,
        rounds,
    )


def _growth() -> Figure:
    """The slope of log time over log n."""
    seconds, _ = best_of([lambda n=n: wl.SVC().fit(*made(n)) for n in GROWTH], 2)  # type: ignore[misc]
    slope = float(np.polyfit(np.log(GROWTH), np.log(seconds), 1)[0])
    return Figure("growth of an RBF fit's time with n, slope on a log-log plot", slope, "")


if __name__ == "__main__":
    from benchmarks.measure import machine, show

    show(cases(machine()), as_json="--json" in sys.argv)
