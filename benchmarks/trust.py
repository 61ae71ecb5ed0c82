"""Calibration, costs, coverage and averaging beside netcal, scikit-learn, MAPIE and plain loops.

`python -m benchmarks trust [--only PART …] [--rounds K] [--json]`

The parts are the files of `benchmarks/acting` and the conformal benchmark; each prints what its
peers reach beside what it reaches itself, so that equal work is compared.
"""

import argparse
import importlib
import time
from pathlib import Path

from benchmarks.measure import Figure, Result, machine, show

FOLDER = Path(__file__).parent / "acting"
PARTS = {path.stem: f"benchmarks.acting.{path.stem}" for path in sorted(FOLDER.glob("[!_]*.py"))}
PARTS["conformal"] = "benchmarks.conformal"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks trust", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    chosen = parser.parse_args(arguments)
    began = time.perf_counter()
    host = machine()
    results: list[Result | Figure] = []
    for part in chosen.only:
        results += importlib.import_module(PARTS[part]).cases(host, chosen.rounds)
    results.append(Figure("the whole benchmark", time.perf_counter() - began, "s"))
    show(results, host, as_json=chosen.json)
