"""Logistic regression beside scikit-learn's solvers at their best settings.

Quality is the final objective C Σωℓ + ½‖W‖², written out once more here. Which of scikit-learn's
solvers is best was measured for each table; those that come close are shown too.
"""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import wonderland as wl
from benchmarks.measure import Case, Contender, Figure, Goal, Machine, Result, best_of, race

ROWS, COLUMNS = 200_000, 100
IMAGES = 10_000
PATH = np.logspace(-4, 2, 16)


class Data(NamedTuple):
    """X (n, d) and class numbers (n,)."""

    X: np.ndarray
    y: np.ndarray

    @property
    def size(self) -> str:
        """The table in words."""
        return f"{self.X.shape[0]:,} × {self.X.shape[1]}, {self.y.max() + 1} classes"


def made(rows: int = ROWS, columns: int = COLUMNS, seed: int = 0) -> Data:
    """Correlated columns of unequal means and spreads; labels drawn from a logistic model."""
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(rows, columns))
    X += 0.5 * chance.normal(size=(rows, 1))
    X *= np.linspace(0.5, 2.0, columns)
    X += chance.normal(size=columns)
    w = chance.normal(size=columns) / np.sqrt(columns)
    scores = (X - X.mean(axis=0)) @ w
    return Data(X, (chance.random(rows) < 1 / (1 + np.exp(-scores))).astype(int))


def images(rows: int = IMAGES) -> Data:
    """MNIST from the folder shared/data beside the project, or scikit-learn's digits tiled."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "data" / "mnist"
    if not folder.is_dir():
        X, y = load_digits(return_X_y=True)
        return Data(np.repeat(X / 16.0, 4, axis=1)[:rows], y[:rows])
    raw = gzip.decompress((folder / "train-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes())
    X = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784)[:rows] / 255.0
    return Data(X, np.frombuffer(labels, np.uint8, offset=8)[:rows].astype(int))


def objective(data: Data, coef: np.ndarray, intercept: np.ndarray, C: float = 1.0) -> float:
    """C Σℓ + ½‖W‖²."""
    Z = data.X @ coef.T + intercept
    if Z.shape[1] == 1:
        losses = np.logaddexp(0.0, np.where(data.y == 1, -Z[:, 0], Z[:, 0]))
    else:
        top = Z.max(axis=1)
        losses = top + np.log(np.exp(Z - top[:, None]).sum(axis=1)) - Z[np.arange(len(Z)), data.y]
    return C * float(losses.sum()) + 0.5 * float((coef**2).sum())


def fitting(data: Data, *peers: tuple[str, dict[str, Any], float | None]) -> Case:
    """One fit at C = 1, ours first."""

    def judge(model: Any) -> float:
        return objective(data, model.coef_, model.intercept_)

    def fit(estimator: Any) -> Callable[[], Any]:
        return lambda: estimator.fit(data.X, data.y)

    n, d = data.X.shape
    columns = 1 if data.y.max() == 1 else int(data.y.max()) + 1
    contenders = [Contender("wonderland LogisticRegression()", fit(wl.LogisticRegression()), judge)]
    for name, options, goal in peers:
        contenders.append(Contender(name, fit(LogisticRegression(**options)), judge, goal))
    # One gradient: scores and their way back, and one read of the table.
    return Case(f"logistic regression, {data.size}", contenders, 4.0 * n * d * columns, 8.0 * n * d)


def path(data: Data) -> Case:
    """Sixteen values of C in shared passes, and one after another."""

    def ours() -> list[Any]:
        found = wl.logistic_path(data.X, data.y, PATH)
        return list(zip(found.coef, found.intercept, strict=True))

    def theirs() -> list[Any]:
        model, found = LogisticRegression(solver="newton-cholesky"), []
        for C in PATH:
            model.set_params(C=C).fit(data.X, data.y)
            found.append((model.coef_.copy(), model.intercept_.copy()))
        return found

    def judge(found: list[Any]) -> float:
        return sum(
            objective(data, coef, intercept, C) / C
            for (coef, intercept), C in zip(found, PATH.tolist(), strict=True)
        )

    return Case(
        f"{len(PATH)} values of C, {data.size}",
        [
            Contender("wonderland logistic_path", ours, judge),
            Contender("scikit-learn newton-cholesky, one after another", theirs, judge, 8.0),
        ],
        quality_name="Σ objective / C",
    )


def tuning(data: Data, options: dict[str, Any], rounds: int) -> Figure:
    """C by gradient, in untuned fits of scikit-learn."""
    runs = [
        lambda: wl.LogisticRegression(C="gradient").fit(data.X, data.y),
        lambda: LogisticRegression(**options).fit(data.X, data.y),
    ]
    seconds, _ = best_of(runs, rounds)
    return Figure(
        f"C='gradient', {data.size}, in single fits of scikit-learn",
        seconds[0] / seconds[1],
        "fits",
        Goal(3.0, at_least=False),
    )


def growth() -> Figure:
    """Slope of log time over log n."""
    sizes = [25_000, 100_000]
    tables = [made(rows) for rows in sizes]
    runs = [lambda t=t: wl.LogisticRegression().fit(t.X, t.y) for t in tables]
    seconds, _ = best_of(runs, 3)
    slope = np.log(seconds[1] / seconds[0]) / np.log(sizes[1] / sizes[0])
    return Figure("logistic regression: growth of time with n, log–log slope", float(slope), "")


def cases(host: Machine, rounds: int) -> Iterator[Result | Figure]:
    """Every measurement of this area."""
    table = made()
    cholesky = {"solver": "newton-cholesky"}
    binary = fitting(
        table,
        ("scikit-learn newton-cholesky", cholesky, 3.0),
        ("  lbfgs, tol=1e-6", {"tol": 1e-6, "max_iter": 1000}, None),
        ("  newton-cg", {"solver": "newton-cg"}, None),
    )
    yield race(binary, host, rounds)
    yield race(path(table), host, 1)
    yield tuning(table, cholesky, rounds)
    digits = images()
    conjugate = {"solver": "newton-cg"}
    softmax = fitting(
        digits,
        ("scikit-learn newton-cg", conjugate, 4.0),
        ("  lbfgs, tol=1e-4", {"max_iter": 5000}, None),
    )
    yield race(softmax, host, rounds)
    yield tuning(digits, conjugate, 1)
    yield growth()
