"""64 configurations on 10,000 × 50 in one call, beside one after another in PyTorch.

A 50-64-2 network, minibatches of 200, three epochs, 64 learning rates; the quality is the lowest
of the 64 losses of the last epoch.
"""

from collections.abc import Callable

import jax
import numpy as np

import wonderland as wl
from benchmarks.measure import Case, Contender, Figure, Machine, Result, race
from benchmarks.networks import _torch

SIZES, BATCH, EPOCHS, MEMBERS = (50, 64, 2), 200, 3, 64
RATES = 10.0 ** np.linspace(-4, -2, MEMBERS)


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 50)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int32)


def ours(X: np.ndarray, y: np.ndarray) -> Callable[[], float]:
    models = wl.training.stacked(
        [wl.nn.MLP(SIZES, "relu", key=jax.random.key(i)) for i in range(MEMBERS)]
    )

    def run() -> float:
        found = wl.training.fit_many(
            models,
            "cross_entropy",
            (X, y),
            epochs=EPOCHS,
            batch_size=BATCH,
            numbers={"learning_rate": RATES},
        )
        return float(np.min(found.evidence["history"].loss[-1]))

    return run


def peer(X: np.ndarray, y: np.ndarray) -> Callable[[], float]:
    import torch

    given, classes = torch.tensor(X), torch.tensor(y).long()

    def run() -> float:
        losses = []
        for rate in RATES:
            net = _torch.network(SIZES)
            losses.append(_torch.fit(net, net, given, classes, BATCH, EPOCHS, float(rate)))
        return min(losses)

    return run


def cases(host: Machine, rounds: int) -> list[Result | Figure]:
    X, y = data()
    contenders = [
        Contender("wonderland", ours(X, y), float),
        Contender("PyTorch, one by one", peer(X, y), float, 8.0),
    ]
    flops = 6.0 * (50 * 64 + 64 * 2) * len(X) * EPOCHS * MEMBERS
    work = "64 configurations on 10,000 × 50, 50-64-2, 3 epochs"
    return [race(Case(work, contenders, flops, quality_name="best loss"), host, rounds)]
