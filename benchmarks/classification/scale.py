"""Kernels at scale: matrices beside the machine's peak, exact and low-rank fits, growth with n."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Case, Contender, Figure, Goal, Machine, Result, best_of, race

__all__ = ["cases"]

RANK = 300
MILLION = 1_000_000


def cases(host: Machine, rounds: int) -> Iterator[Result | Figure]:
    """Matrices, the exact fit, the low-rank fit, and a million rows."""
    for n, d in ((8_000, 50), (4_000, 784)):
        yield race(_matrix(n, d), host, rounds)
        yield from _share(n, d)
    yield race(_exact(2_000, 20), host, rounds)
    yield race(_low_rank(100_000, 50), host, min(rounds, 2))
    yield from _growth(50)


def _table(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)


def _matrix(n: int, d: int) -> Case:
    """Gaussian kernel between two float64 tables, into fresh memory on both sides."""
    from sklearn.metrics.pairwise import rbf_kernel

    import wonderland as wl

    X, Z = _table(n, d)[0], _table(n, d)[0] + 1.0
    kernel = wl.kernels.Gaussian(1.0 / d)
    return Case(
        f"Gaussian kernel matrix, {n:,} × {n:,} of {d} columns, float64",
        [
            Contender("wonderland kernel.matrix(X, Z)", lambda: kernel.matrix(X, Z), np.sum),
            Contender("scikit-learn rbf_kernel", lambda: rbf_kernel(X, Z, gamma=1.0 / d), np.sum),
        ],
        flops=2.0 * n * n * d,
        bytes=8.0 * n * n,
        quality_name="sum of entries",
    )


def _share(n: int, d: int) -> Iterator[Figure]:
    """float32, in place: entries per second, and the shares of the two peaks they stand for."""
    import wonderland as wl

    X = _table(n, d)[0].astype(np.float32)
    Z, out = X + np.float32(1.0), np.empty((n, n), np.float32)
    square = np.ones((2048, 2048), np.float32)
    kernel = wl.kernels.Gaussian(1.0 / d)
    runs: list[Callable[[], Any]] = [
        lambda: kernel.matrix(X, Z, out=out),
        lambda: kernel.matrix(X, out=out),
        lambda: square @ square,
        lambda: np.copyto(out, 1.0),
    ]
    (full, half, product, fill), _ = best_of(runs, 5)
    peak = 2.0 * 2048**3 / product
    name = f"float32 Gaussian matrix, {n:,} × {n:,} of {d} columns"
    yield Figure(f"{name}: entries", n * n / full / 1e9, "10⁹/s")
    yield Figure(f"{name}: entries where symmetric", n * n / half / 1e9, "10⁹/s")
    yield Figure(f"{name}: share of NumPy's product peak", 2.0 * n * n * d / full / peak, "")
    yield Figure(f"{name}: share of the speed of filling memory", fill / full, "")


def _exact(n: int, d: int) -> Case:
    """KernelRidge, with its leave-one-out errors, against scikit-learn's without."""
    from sklearn.kernel_ridge import KernelRidge as Peer

    import wonderland as wl

    X, y = _table(n, d)
    K = wl.kernels.Gaussian(1.0 / d).matrix(X)

    def judge(model: Any) -> float:
        a = model.dual_coef_
        residual = y - K @ a
        return float(residual @ residual + 0.1 * a @ K @ a)

    return Case(
        f"KernelRidge, rbf, {n:,} × {d}; ours gives the leave-one-out error as well",
        [
            Contender("wonderland", lambda: wl.KernelRidge(0.1, kernel="rbf").fit(X, y), judge),
            Contender("scikit-learn", lambda: Peer(alpha=0.1, kernel="rbf").fit(X, y), judge),
        ],
        flops=2.0 * n**3 / 3.0,
        quality_name="primal",
    )


def _low_rank(n: int, d: int) -> Case:
    """Ridge on Nyström features; both sides use all cores."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    import wonderland as wl

    X, y = _table(n, d)
    chosen = X[np.random.default_rng(1).permutation(n)[:RANK]]
    recipe = wl.kernels.Nystroem(RANK, landmarks=chosen)

    def ours() -> Any:
        return wl.KernelRidge(1.0, kernel="rbf", approximation=recipe).fit(X, y)

    def theirs() -> Any:
        map_to = Nystroem(kernel="rbf", gamma=1.0 / d, n_components=RANK, random_state=0)
        return make_pipeline(map_to, Ridge(1.0, fit_intercept=False, solver="cholesky")).fit(X, y)

    def judge(model: Any) -> float:
        return float(np.mean((y[:20_000] - model.predict(X[:20_000])) ** 2))

    return Case(
        f"Ridge on {RANK} Nyström features, {n:,} × {d}; ours with gap and leave-one-out error",
        [
            Contender("wonderland KernelRidge(approximation=)", ours, judge),
            Contender("scikit-learn Nystroem, Ridge", theirs, judge),
        ],
        flops=n * RANK * (2.0 * d + 3.0 * RANK),
        quality_name="mean squared error",
    )


def _growth(d: int) -> Iterator[Figure]:
    """Time over n on a log–log plot, up to a million rows in memory."""
    import wonderland as wl

    X, y = _table(MILLION, d)
    recipe = wl.kernels.Nystroem(RANK)
    model = wl.KernelRidge(1.0, kernel="rbf", approximation=recipe, random_state=0)
    sizes, seconds = [62_500, 250_000, MILLION], []
    model.fit(X[:20_000], y[:20_000])
    for n in sizes:
        start = time.perf_counter()
        model.fit(X[:n], y[:n])
        seconds.append(time.perf_counter() - start)
        yield Figure(f"KernelRidge on {RANK} Nyström features, {n:,} × {d}", seconds[-1], "s")
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    yield Figure(
        "growth of its time with n, slope on a log–log plot", slope, "", Goal(1.1, at_least=False)
    )
