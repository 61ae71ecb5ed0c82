"""ℓ₁ logistic paths of 100 values beside LIBLINEAR and saga.

    for each C:   minimise over w   C Σ_i log(1 + e^{−y_i w·x_i}) + ‖w‖₁

without an intercept, which LIBLINEAR would penalise. The quality is the worst relative excess of an
objective on the path over the lower bound that our dual gives there: zero is the optimum.
LIBLINEAR stops on its projected gradient, relative to the start, and ours on the gap: beside its
default tolerance 1e-4 and beside a looser one ours runs at the tolerance that ends as close to the
optimum or closer. LIBLINEAR's fits come one after another, for it has no warm start.
saga starts each fit where the last one ended, with at most 100 passes over the rows for each C.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from benchmarks.measure import Case, Contender, Figure, Machine, Result, race
from wonderland.linear.path import SparsePath, least_C, solve_l1_path

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "libsvm"
VALUES = 100
DECADES = 2.0
# LIBLINEAR's tolerance, and our relative gap whose worst excess is no larger: dense and sparse.
LEVELS = {1e-3: (1e-3, 1e-4), 1e-4: (1e-5, 1.5e-6)}


class Data(NamedTuple):
    """X (n, d), signs (n,), and the C of the path (100,)."""

    name: str
    X: Any
    y: np.ndarray
    Cs: np.ndarray


def made(rows: int = 2000, columns: int = 500, seed: int = 0) -> Data:
    """Neighbouring columns correlate by a half; one in twenty carries a coefficient."""
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(rows, columns))
    for j in range(1, columns):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    w = np.where(np.arange(columns) % 20 == 0, chance.normal(size=columns), 0.0)
    y = np.where(X @ w + chance.logistic(size=rows) > 0, 1.0, -1.0)
    return spread(f"made, {rows:,} × {columns:,} dense", X, y)


def real(name: str) -> Data | None:
    """A LIBSVM set, sparse; None where the reference data are not beside the project."""
    file = REAL / f"{name}.libsvm.gz"
    if not file.is_file():
        return None
    X, y = load_svmlight_file(str(file))
    X = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
    return spread(f"{name}, {X.shape[0]:,} × {X.shape[1]:,} sparse", X, np.where(y > 0, 1.0, -1.0))


def spread(name: str, X: Any, y: np.ndarray) -> Data:
    """The C from the largest that leaves all coefficients zero, over two decades."""
    least = least_C(X, y, fit_intercept=False)
    return Data(name, X, y, 1.0001 * least * np.logspace(0, DECADES, VALUES))


def ours(data: Data, tol: float) -> np.ndarray:
    """Coefficients (100, d)."""
    return path(data, tol).coef[:, 0]


def path(data: Data, tol: float) -> SparsePath:
    return solve_l1_path(data.X, data.y, None, data.Cs, fit_intercept=False, tol=tol)


def liblinear(data: Data, tol: float) -> np.ndarray:
    """One fit after another (100, d)."""
    fits = [
        LogisticRegression(
            C=C, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=tol, max_iter=1000
        ).fit(data.X, data.y)
        for C in data.Cs
    ]
    return np.array([fit.coef_[0] for fit in fits])


def saga(data: Data, passes: int = 100) -> np.ndarray:
    """Warm starts along the path (100, d)."""
    model = LogisticRegression(
        l1_ratio=1.0, solver="saga", fit_intercept=False, warm_start=True, tol=1e-4, max_iter=passes
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the passes are limited on purpose
        coef = [model.set_params(C=C).fit(data.X, data.y).coef_[0].copy() for C in data.Cs]
    return np.array(coef)


def worst_excess(data: Data, bound: np.ndarray, coef: np.ndarray) -> float:
    """max over C of P(w)/D − 1."""
    margins = data.y[:, None] * (data.X @ coef.T)
    objective = data.Cs * np.logaddexp(0, -margins).sum(axis=0) + np.abs(coef).sum(axis=1)
    return float(np.max(objective / bound - 1.0))


def case(data: Data, level: float, *, with_saga: bool) -> Case:
    """All contenders on one set, at one tolerance of LIBLINEAR and ours to match."""
    best = path(data, 1e-9)
    bound = best.objective - best.gap

    def quality(coef: np.ndarray) -> float:
        return worst_excess(data, bound, coef)

    own = LEVELS[level][int(sp.issparse(data.X))]
    contenders = [
        Contender(f"wonderland, gap {own:g}", lambda: ours(data, own), quality),
        Contender(f"LIBLINEAR, tol={level:g}", lambda: liblinear(data, level), quality, 5.0),
    ]
    if with_saga:
        contenders.append(Contender("saga, warm starts", lambda: saga(data), quality, 5.0))
    work = f"ℓ₁ logistic path, {VALUES} values of C: {data.name}"
    return Case(work, contenders, quality_name="worst excess")


def cases(host: Machine, rounds: int) -> Iterator[Result | Figure]:
    """The made dense table, and a real sparse one where it is there, at both levels."""
    sparse = real("a9a")
    for data in [made()] if sparse is None else [made(), sparse]:
        for level in LEVELS:
            # saga is the slowest by far: once is enough.
            with_saga = data is not sparse and level == max(LEVELS)
            yield race(case(data, level, with_saga=with_saga), host, rounds)
