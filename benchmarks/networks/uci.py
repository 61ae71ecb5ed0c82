"""UCI regression with fixed splits: `MLPRegressor("gaussian", architecture="table")` as it is.

    python -m benchmarks.networks.uci [--sets boston,yacht] [--splits 3] [--processes 2]

One setting for all sets; test rows are touched once, by `predict`. Printed beside each mean over
splits: the figures published for dropout as a Bayesian approximation, the same sets and splits.

Reference: Gal & Ghahramani (2016), Dropout as a Bayesian approximation.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

# name: (file, RMSE, log-likelihood) of MC dropout
SETS = {
    "boston": ("bostonHousing", 2.90, -2.40),
    "concrete": ("concrete", 4.82, -2.93),
    "energy": ("energy", 0.54, -1.21),
    "kin8nm": ("kin8nm", 0.08, 1.14),
    "power-plant": ("power-plant", 4.01, -2.80),
    "protein": ("protein-tertiary-structure", 4.27, -2.87),
    "wine-red": ("wine-quality-red", 0.62, -0.93),
    "yacht": ("yacht", 0.67, -1.25),
}
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def one(job: tuple[str, str, int]) -> tuple[str, int, float, float, float]:
    """(set, split, RMSE, mean log-likelihood, seconds) of one split."""
    folder, name, split = job
    import wonderland as wl

    table = np.load(Path(folder) / "uci_regression_bnn" / f"{SETS[name][0]}.npz")
    X, y, test = table["x"], table["y"].ravel(), table["test_idx"][split]
    train = np.setdiff1d(np.arange(len(y)), test)
    began = time.perf_counter()
    fitted = wl.MLPRegressor("gaussian", architecture="table", random_state=split)
    fitted.fit(X[train], y[train])
    seconds = time.perf_counter() - began
    mean, std = fitted.predict(X[test], return_std=True)
    rmse = float(np.sqrt(np.mean((mean - y[test]) ** 2)))
    each = -0.5 * np.log(2 * np.pi * std**2) - 0.5 * ((y[test] - mean) / std) ** 2
    return name, split, rmse, float(each.mean()), seconds


def pinned(numbers: Any) -> None:
    """Give this process one core of its own."""
    os.sched_setaffinity(0, {numbers.get()})


def results(
    jobs: list[tuple[str, str, int]], processes: int, judge: Callable[..., tuple] = one
) -> Iterator[tuple]:
    """Each split as it is done, in so many processes of one core each."""
    if processes == 1:
        yield from map(judge, jobs)
        return
    context = get_context("spawn")
    numbers = context.Queue()
    for core in sorted(os.sched_getaffinity(0))[:processes]:
        numbers.put(core)
    with ProcessPoolExecutor(processes, context, pinned, (numbers,)) as pool:
        yield from pool.map(judge, jobs)


def main(arguments: Sequence[str]) -> None:
    """Run the sets and print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks networks uci", description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--data", default=str(DATA))
    chosen = parser.parse_args(arguments)
    names = chosen.sets.split(",")
    jobs = []
    for name in names:
        table = np.load(Path(chosen.data) / "uci_regression_bnn" / f"{SETS[name][0]}.npz")
        jobs += [(chosen.data, name, k) for k in range(min(chosen.splits, len(table["test_idx"])))]
    found: dict[str, list[tuple]] = {name: [] for name in names}
    print(f"{'set':12}{'splits':>7}{'RMSE':>9}{'(MC)':>7}{'LL':>9}{'(MC)':>7}{'seconds':>9}  both")
    for done in results(jobs, chosen.processes):
        name = done[0]
        found[name].append(done)
        if len(found[name]) == sum(job[1] == name for job in jobs):
            print(row(name, found[name]), flush=True)


def row(name: str, done: list[tuple]) -> str:
    """One line: means over splits beside what was published, compared as it is printed there."""
    _, theirs_rmse, theirs_ll = SETS[name]
    rmse, ll, seconds = (float(np.mean([d[i] for d in done])) for i in (2, 3, 4))
    kept = round(rmse, 2) <= theirs_rmse and round(ll, 2) >= theirs_ll
    return (
        f"{name:12}{len(done):7}{rmse:9.3f}{theirs_rmse:7.2f}{ll:9.3f}{theirs_ll:7.2f}"
        f"{seconds:9.1f}  {'yes' if kept else 'no'}"
    )


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
