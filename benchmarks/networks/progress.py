"""A whole fit of 100,000 × 50, 20 epochs, with its progress line on a terminal and without."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import numpy as np

import wonderland as wl
from benchmarks.measure import Figure, Goal, Machine, Result, best_of


class Terminal(io.StringIO):
    """Something that takes a line as a terminal does."""

    def isatty(self) -> bool:
        return True


@contextmanager
def terminal() -> Iterator[None]:
    """Standard error is a terminal."""
    before, sys.stderr = sys.stderr, Terminal()
    try:
        yield
    finally:
        sys.stderr = before


def cases(host: Machine, rounds: int) -> list[Result | Figure]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 50)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(np.int32)
    model = wl.nn.MLP((50, 64, 2), "relu", key=jax.random.key(0))

    def fit(*, progress: bool) -> Callable[[], float]:
        def run() -> float:
            with terminal():
                found = wl.train(
                    model, "cross_entropy", (X, y), epochs=20, batch_size=200, progress=progress
                )
            return float(found.evidence["history"].loss[-1])

        return run

    (plain, shown), _ = best_of([fit(progress=False), fit(progress=True)], rounds)
    name = "fit of 100,000 × 50, 20 epochs: time with the progress line beside without"
    return [
        Figure(name, shown / plain, "×", Goal(1.03, at_least=False)),
        Figure("its seconds without", plain, "s"),
    ]
