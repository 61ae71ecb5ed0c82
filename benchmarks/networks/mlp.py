"""Multilayer perceptrons with scikit-learn's parameters beside scikit-learn's own, epoch by epoch.

The same widths, minibatches, epochs and optimiser (Adam, 10⁻³); the time of a whole fit of stated
epochs is divided by them, start-up included; the quality printed is the final training loss. A
first fit on 1,000 rows is timed in a fresh process with a warm compile cache, imports taken off.
"""

import os
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.measure import Case, Contender, Figure, Goal, Machine, Result, race

WORK = {
    # name: (samples, sizes, batch, epochs)
    "MLP 64-128-10, batch 64": (1_797, (64, 128, 10), 64, 20),
    "MLP 20-64-64-2, batch 200": (20_000, (20, 64, 64, 2), 200, 5),
    "MLP 784-512-256-10, batch 128": (6_000, (784, 512, 256, 10), 128, 2),
}
FIRST = """
import time, numpy as np, wonderland as wl, jax, sklearn.base
from wonderland.neural.classifier import MLPClassifier
rng = np.random.default_rng(0)
X, y = rng.normal(size=(1000, 20)), rng.integers(0, 2, 1000)
began = time.perf_counter()
MLPClassifier(max_iter=10, n_iter_no_change=10, random_state=0).fit(X, y)
print(time.perf_counter() - began)
"""


def made(samples: int, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Classes that a network can tell apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(samples, sizes[0])).astype(np.float32)
    y = np.argmax(
        np.tanh(X @ rng.normal(size=(sizes[0], 16))) @ rng.normal(size=(16, sizes[-1])), 1
    )
    return X, y


def fit(kind: Any, work: tuple[int, tuple[int, ...], int, int]) -> Any:
    """One fit of stated epochs."""
    samples, sizes, batch, epochs = work
    X, y = made(samples, sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = kind(
            sizes[1:-1], batch_size=batch, max_iter=epochs, random_state=0, n_iter_no_change=np.inf
        )
        return network.fit(X, y)


def first_fit() -> float:
    """Seconds of a first fit in a fresh process, warm cache, beyond imports."""
    with tempfile.TemporaryDirectory() as folder:
        given = {**os.environ, "WONDERLAND_COMPILE_CACHE": folder}
        times = [
            float(
                subprocess.run(
                    [sys.executable, "-W", "ignore", "-c", FIRST],
                    env=given,
                    check=True,
                    capture_output=True,
                    text=True,
                ).stdout
            )
            for _ in range(3)
        ]
    return min(times[1:])


def cases(host: Machine, rounds: int) -> list[Result | Figure]:
    """Fits beside scikit-learn's, then the first fit."""
    from sklearn.neural_network import MLPClassifier

    import wonderland as wl

    found: list[Result | Figure] = []
    for name, work in WORK.items():
        samples, sizes, _, epochs = work
        products = sum(a * b for a, b in pairwise(sizes))
        case = Case(
            name,
            [
                Contender("wonderland", partial(fit, wl.MLPClassifier, work), _loss),
                Contender("scikit-learn", partial(fit, MLPClassifier, work), _loss, 4.0),
            ],
            flops=6.0 * products * samples * epochs,
            quality_name="training loss",
        )
        found.append(race(case, host, rounds))
    goal = Goal(0.6, at_least=False)
    found.append(Figure("first fit, 1,000 rows, warm cache", first_fit(), "s", goal))
    return found


def _loss(network: Any) -> float:
    return float(network.loss_)
