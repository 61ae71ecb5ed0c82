"""A grid of networks on folds, all in one program, beside scikit-learn's search on two processes.

12 settings × 5 folds of a 64-100-10 network on the digits, 30 epochs each. The quality is the best
mean accuracy of the search. A fresh process is timed with an empty compile cache (cold) and with
the one it has filled (warm); the peer keeps its workers alive between its turns.
"""

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier

import wonderland as wl
from benchmarks.measure import Case, Contender, Figure, Goal, Machine, Result, race

SPACE = {"learning_rate_init": [1e-3, 3e-3, 1e-2], "alpha": [1e-5, 1e-4, 1e-3, 1e-2]}
EPOCHS = 30
FIXED: dict[str, Any] = {
    "max_iter": EPOCHS,
    "random_state": 0,
    "n_iter_no_change": np.inf,
    "batch_size": 64,
}


def data() -> tuple[np.ndarray, np.ndarray]:
    """The digits, pixels from 0 to 1."""
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def ours() -> Any:
    """Our search."""
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return wl.SearchCV(wl.MLPClassifier(**FIXED), SPACE, cv=5, refit=False).fit(X, y)


def peer() -> Any:
    """scikit-learn's, each worker silent about the epochs it was allowed."""
    X, y = data()
    os.environ["PYTHONWARNINGS"] = "ignore"
    fixed = FIXED | {"n_iter_no_change": EPOCHS + 1}
    return GridSearchCV(MLPClassifier(**fixed), SPACE, cv=5, n_jobs=2, refit=False).fit(X, y)


def cases(host: Machine, rounds: int) -> Iterator[Result | Figure]:
    """The search in a process that has run it before, then in fresh ones."""
    result = race(
        Case(
            "grid 12 × 5 folds, digits, 30 epochs, caches warm",
            [
                Contender("wl.SearchCV", ours, _best),
                Contender("GridSearchCV(n_jobs=2)", peer, _best, goal=6.0),
            ],
            quality_name="best mean accuracy",
        ),
        host,
        min(rounds, 2),
    )
    yield result
    with tempfile.TemporaryDirectory() as cache:
        for name, goal in (("cold", 3.0), ("warm", 6.0)):
            ratio = result.seconds[1] / _fresh(cache)
            title = f"the same in a fresh process, {name} compile cache, beyond imports"
            yield Figure(title, ratio, "times as fast as GridSearchCV", Goal(goal, at_least=True))


def _best(search: Any) -> float:
    return float(np.max(search.cv_results_["mean_test_score"]))


def _fresh(cache: str) -> float:
    """Seconds of the search in a process of its own."""
    environment = {**os.environ, "WONDERLAND_COMPILE_CACHE": cache}
    command = [sys.executable, "-m", "benchmarks.networks.search"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    parts = wl.SearchCV, wl.MLPClassifier  # imported when first named: that is not what is timed
    began = time.perf_counter()
    ours()
    print(time.perf_counter() - began)
