"""Networks beside PyTorch and scikit-learn: epochs, whole grids, memory, tables, regression sets.

`python -m benchmarks networks [--only PART …] [--rounds K] [--json]`

The parts are the files of this folder. Contenders share architecture, minibatch size, epochs and
optimiser, and print the loss or the score they end with.
"""

import argparse
import importlib
import time
from pathlib import Path

from benchmarks.measure import Figure, Result, machine, show

FIRST = ("engine", "many", "memory", "progress")
FOUND = tuple(sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py")))
PARTS = (*FIRST, *(part for part in FOUND if part not in FIRST))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks networks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    chosen = parser.parse_args(arguments)
    began = time.perf_counter()
    host = machine()
    results: list[Result | Figure] = []
    for part in chosen.only:
        module = importlib.import_module(f"benchmarks.networks.{part}")
        results += module.cases(host, chosen.rounds)
    results.append(Figure("the whole benchmark", time.perf_counter() - began, "s"))
    show(results, host, as_json=chosen.json)
