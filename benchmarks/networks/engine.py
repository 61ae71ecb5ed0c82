"""Epochs of three networks beside PyTorch (eager and compiled) and scikit-learn; the first fit.

Each contender runs whole fits of a few epochs; the loss printed is that of the last epoch. PyTorch
begins with the same weights as we do, scikit-learn with its own. The first fit is timed in a fresh
process with a warm compile cache, imports apart.
"""

import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import wonderland as wl
from benchmarks.measure import Case, Contender, Figure, Goal, Machine, Result, race
from benchmarks.networks import _torch

# Layers, minibatch, samples, epochs, and what is asked for beside PyTorch.
WORK = (
    ((64, 128, 10), 64, 10_000, 12, 3.0),
    ((20, 64, 64, 2), 200, 20_000, 12, 2.0),
    ((784, 512, 256, 10), 128, 8_000, 2, 1.8),
)
FIRST_FIT = """
import time
import numpy as np, jax, optax, sklearn.base, wonderland as wl
from wonderland import training
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 20)).astype(np.float32)
y = (X[:, 0] * X[:, 1] > 0).astype(np.int32)
model = wl.nn.MLP((20, 100, 2), "relu", key=jax.random.key(0))
began = time.perf_counter()
wl.train(model, "cross_entropy", (X, y), epochs=10)
print(time.perf_counter() - began)
"""


def made(sizes: Sequence[int], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Clouds around random centres, one for each class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, sizes[-1], count).astype(np.int32)
    centres = rng.normal(size=(sizes[-1], sizes[0]))
    X = centres[y] * 0.3 + rng.normal(size=(count, sizes[0]))
    return X.astype(np.float32), y


def ours(
    sizes: Sequence[int], X: np.ndarray, y: np.ndarray, batch: int, epochs: int
) -> Callable[[], float]:
    """`wl.train` from the weights that PyTorch is given too."""
    model = network(sizes)

    def run() -> float:
        found = wl.train(
            model, "cross_entropy", (X, y), epochs=epochs, batch_size=batch, learning_rate=1e-3
        )
        return float(found.evidence["history"].loss[-1])

    return run


def network(sizes: Sequence[int]) -> wl.nn.MLP:
    """The network all fits begin with."""
    return wl.nn.MLP(sizes, "relu", key=jax.random.key(0))


def sklearn(
    sizes: Sequence[int], X: np.ndarray, y: np.ndarray, batch: int, epochs: int
) -> Callable[[], float]:
    """scikit-learn's network with its penalty off."""
    net = MLPClassifier(
        tuple(sizes[1:-1]),
        alpha=0.0,
        batch_size=batch,
        max_iter=epochs,
        n_iter_no_change=epochs + 1,
        random_state=0,
    )

    def run() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return float(net.fit(X, y).loss_curve_[-1])

    return run


def cases(host: Machine, rounds: int) -> list[Result | Figure]:
    found: list[Result | Figure] = []
    for sizes, batch, count, epochs, goal in WORK:
        X, y = made(sizes, count)
        given = (sizes, X, y, batch, epochs)
        weights = [(np.asarray(a.weight), np.asarray(a.bias)) for a in network(sizes).linears]
        numbers = sum(i * o for i, o in pairwise(sizes))
        found.append(
            race(
                Case(
                    f"{'-'.join(map(str, sizes))}, batch {batch}, {epochs} epochs of {count:,}",
                    [
                        Contender("wonderland", ours(*given), float),
                        Contender(
                            "PyTorch eager",
                            _torch.loop(*given, weights, compiled=False),
                            float,
                            goal,
                        ),
                        Contender(
                            "PyTorch eager, one thread",
                            _torch.loop(*given, weights, compiled=False, threads=1),
                            float,
                            goal,
                        ),
                        Contender(
                            "torch.compile",
                            _torch.loop(*given, weights, compiled=True),
                            float,
                            goal,
                        ),
                        Contender("scikit-learn", sklearn(*given), float, 4.0),
                    ],
                    flops=6.0 * numbers * count * epochs,
                    quality_name="last loss",
                ),
                host,
                rounds,
            )
        )
    return [*found, first_fit()]


def first_fit() -> Figure:
    """The best of three fresh processes; one before them fills the cache."""
    seconds = []
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_FIT], capture_output=True, text=True, check=True
        )
        seconds.append(float(done.stdout))
    name = "first fit of 1,000 rows beyond imports, warm cache, fresh process"
    return Figure(name, min(seconds[1:]), "s", Goal(0.6, at_least=False))
