"""Least squares and ridge on a tall table, beside scikit-learn; first fit and import apart.

`python -m benchmarks linear [--rows N] [--columns D] [--rounds K] [--json] [--only PART …]`
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV

import wonderland as wl
from benchmarks.measure import (
    Case,
    Contender,
    Figure,
    Goal,
    Machine,
    Result,
    best_of,
    machine,
    race,
    show,
)

ALPHAS = np.logspace(-3, 4, 20)
PARTS = ("least-squares", "ridge", "loo", "start", "stream")
CHUNK = 50_000  # rows of one Parquet row group


class Data(NamedTuple):
    """X (n, d) with mildly correlated columns, y (n,) linear in them with noise."""

    X: np.ndarray
    y: np.ndarray

    @property
    def size(self) -> str:
        """The table in words."""
        n, d = self.X.shape
        return f"{n:,} × {d} float64"


def make_data(rows: int, columns: int, seed: int = 0) -> Data:
    """Columns share one common factor (correlation 0.2), unequal means and spreads."""
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(rows, columns))
    X += 0.5 * chance.normal(size=(rows, 1))
    X *= np.linspace(0.5, 2.0, columns)
    X += chance.normal(size=columns)
    w = chance.normal(size=columns)
    return Data(X, X @ w + 3.0 + chance.normal(size=rows))


def ridge_objective(data: Data, model: Any, alpha: float) -> float:
    """‖y − Xw − b‖² + α‖w‖², per row."""
    residual = data.y - data.X @ np.ravel(model.coef_) - model.intercept_
    return float((residual @ residual + alpha * np.sum(model.coef_**2)) / len(data.y))


def loo_objective(data: Data, alpha: float) -> float:
    """Mean squared leave-one-out error of ridge(α) with intercept, by its closed form."""
    n = len(data.y)
    X, y = data.X - data.X.mean(axis=0), data.y - data.y.mean()
    factor = np.linalg.cholesky(X.T @ X + alpha * np.eye(X.shape[1]))
    half = np.linalg.solve(factor, X.T).T  # (n, d): its rows have squared norm h_i − 1/n
    residual = y - half @ (half.T @ y)
    leverage = 1.0 / n + np.einsum("ij,ij->i", half, half)
    return float(np.mean((residual / (1.0 - leverage)) ** 2))


def least_squares(data: Data) -> Case:
    """wl.LinearRegression against scikit-learn's, and against the normal equations by hand."""

    def judge(model: Any) -> float:
        return ridge_objective(data, model, 0.0)

    def fit(estimator: Any) -> Callable[[], Any]:
        return lambda: estimator.fit(data.X, data.y)

    return Case(
        f"LinearRegression, {data.size}",
        [
            Contender("wonderland LinearRegression()", fit(wl.LinearRegression()), judge),
            Contender("scikit-learn LinearRegression()", fit(LinearRegression()), judge, 15.0),
            Contender(
                "  LinearRegression(tol=1e-12, n_jobs=2)",
                fit(LinearRegression(tol=1e-12, n_jobs=2)),
                judge,
            ),
            Contender(
                "  Ridge(1e-9, solver='cholesky')", fit(Ridge(1e-9, solver="cholesky")), judge
            ),
            Contender("NumPy normal equations, centred copy", lambda: _by_hand(data), judge),
        ],
        *_least_work(data),
    )


class _Plain(NamedTuple):
    coef_: np.ndarray
    intercept_: float


def _by_hand(data: Data) -> _Plain:
    """What a NumPy user writes who knows the conditioning to be good."""
    means, level = data.X.mean(axis=0), data.y.mean()
    X = data.X - means
    w = np.linalg.solve(X.T @ X, X.T @ (data.y - level))
    return _Plain(w, level - means @ w)


def _least_work(data: Data) -> tuple[float, float]:
    """FLOPs and bytes: one symmetric rank-n update of d + 1 columns, one read of the table."""
    n, d = data.X.shape
    return float(n) * (d + 1) * (d + 2), 8.0 * n * (d + 1)


def ridge(data: Data) -> Case:
    """wl.Ridge against scikit-learn's with each solver its users would pick for a tall table."""

    def judge(model: Any) -> float:
        return ridge_objective(data, model, 1.0)

    def fit(estimator: Any) -> Callable[[], Any]:
        return lambda: estimator.fit(data.X, data.y)

    peers = [
        Contender("scikit-learn Ridge(1.0)", fit(Ridge(1.0)), judge, 1.5),
        Contender("  solver='cholesky'", fit(Ridge(1.0, solver="cholesky")), judge, 1.5),
        Contender("  solver='lsqr', tol=1e-10", fit(Ridge(1.0, solver="lsqr", tol=1e-10)), judge),
    ]
    ours = Contender("wonderland Ridge(1.0)", fit(wl.Ridge(1.0)), judge)
    return Case(f"Ridge(alpha=1), {data.size}", [ours, *peers], *_least_work(data))


def leave_one_out(data: Data) -> Case:
    """wl.Ridge("loo") over 20 α against RidgeCV over the same."""
    n, d = data.X.shape
    judged: dict[float, float] = {}

    def judge(model: Any) -> float:
        alpha = float(np.ravel(model.alpha_)[0])
        if alpha not in judged:
            judged[alpha] = loo_objective(data, alpha)
        return judged[alpha]

    def fit(estimator: Any) -> Callable[[], Any]:
        return lambda: estimator.fit(data.X, data.y)

    return Case(
        f"Ridge by exact leave-one-out over {len(ALPHAS)} α, {data.size}",
        [
            Contender(
                'wonderland Ridge("loo", alphas)', fit(wl.Ridge("loo", alphas=ALPHAS)), judge
            ),
            Contender("scikit-learn RidgeCV(alphas)", fit(RidgeCV(ALPHAS)), judge, 15.0),
            Contender("  gcv_mode='eigen'", fit(RidgeCV(ALPHAS, gcv_mode="eigen")), judge),
        ],
        # Gram matrix, scores T = XV, and leverages and residuals of every α from T.
        flops=float(n) * ((d + 1) * (d + 2) + 2 * d * d + 4 * d * len(ALPHAS)),
        bytes=2 * 8.0 * n * (d + 1),
        quality_name="leave-one-out error",
    )


FIRST_FIT = """
import sys, time
import numpy as np
import wonderland as wl
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
estimator = eval(sys.argv[1], {"wl": wl})
start = time.perf_counter()
estimator.fit(X, y.astype(float))
print(time.perf_counter() - start)
"""
IMPORT = """
import sys, time
start = time.perf_counter()
exec(sys.argv[1])
print(time.perf_counter() - start)
"""
IMPORTS = {
    "import wonderland": Goal(0.8, at_least=False),
    "from wonderland import LinearRegression": None,  # with scikit-learn and JAX, which it needs
}
FIRST = (
    "wl.LinearRegression()",
    "wl.Ridge(1.0)",
    'wl.Ridge("loo")',
    'wl.LinearRegression(solver="descent")',
)


def _child(code: str, *arguments: str, cache: str) -> float:
    """Seconds that a fresh process prints."""
    environment = {**os.environ, "WONDERLAND_COMPILE_CACHE": cache}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def start_up(rounds: int) -> Iterator[Figure]:
    """Import time and iris-sized first fits, each in fresh processes."""
    with tempfile.TemporaryDirectory() as cache:
        for text, goal in IMPORTS.items():
            best = min(_child(IMPORT, text, cache=cache) for _ in range(rounds + 1))
            yield Figure(f"{text} (best)", best, "s", goal)
        for text in FIRST:
            cold = _child(FIRST_FIT, text, cache=cache)
            warm = [_child(FIRST_FIT, text, cache=cache) for _ in range(rounds)]
            yield Figure(f"first fit on iris, cold cache, {text}", cold, "s")
            yield Figure(
                f"first fit on iris, warm cache (median), {text}",
                float(np.median(warm)),
                "s",
                Goal(0.3, at_least=False),
            )


def streaming(data: Data, host: Machine, rounds: int) -> Iterator[Result | Figure]:
    """A Parquet file read and fitted in one pass, against reading it and fitting in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n, d = data.X.shape
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        columns = {f"x{j}": data.X[:, j] for j in range(d)} | {"y": data.y}
        pq.write_table(pa.table(columns), path, row_group_size=CHUNK, compression="none")

        def whole() -> Any:
            frame = pq.read_table(path)
            X = np.column_stack([frame[f"x{j}"].to_numpy() for j in range(d)])
            return LinearRegression().fit(X, frame["y"].to_numpy())

        def judge(model: Any) -> float:
            return ridge_objective(data, model, 0.0)

        case = Case(
            f"Parquet file, {data.size}, one pass",
            [
                Contender(
                    "wonderland fit(path, 'y')",
                    lambda: wl.LinearRegression().fit(str(path), "y"),
                    judge,
                ),
                Contender("PyArrow, all in memory, scikit-learn", whole, judge),
            ],
            *_least_work(data),
        )
        result = race(case, host, rounds)
        (read,), _ = best_of([lambda: pq.read_table(path)], rounds)
        yield result
        yield Figure("rows fitted from Parquet", n / result.seconds[0], "rows/s")
        yield Figure("rows PyArrow reads (no fit)", n / read, "rows/s")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks linear", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    chosen = parser.parse_args(arguments)
    began = time.perf_counter()
    host, data = machine(), make_data(chosen.rows, chosen.columns)
    results: list[Result | Figure] = []
    for name, make in (("least-squares", least_squares), ("ridge", ridge), ("loo", leave_one_out)):
        if name in chosen.only:
            results.append(race(make(data), host, chosen.rounds))
    if "stream" in chosen.only:
        results += streaming(data, host, min(chosen.rounds, 3))
    if "start" in chosen.only:
        results += start_up(chosen.rounds)
    results.append(Figure("the whole benchmark", time.perf_counter() - began, "s"))
    show(results, host, as_json=chosen.json)
