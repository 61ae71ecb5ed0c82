"""Linear classifiers, support vectors and kernels beside scikit-learn, LIBLINEAR and LIBSVM.

`python -m benchmarks classify [--only PART …] [--rounds K] [--json]`

Every contender ends at the same objective or is printed with the one it reached; peers run at the
best setting found for the work. Growth with the number of rows is the slope on a log–log plot.
"""

import argparse
import importlib
import time

from benchmarks.measure import Figure, Result, machine, show

PARTS = ("logistic", "path", "linear_svm", "kernel_svm", "scale")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks classify", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    chosen = parser.parse_args(arguments)
    began = time.perf_counter()
    host = machine()
    results: list[Result | Figure] = []
    for part in chosen.only:
        module = importlib.import_module(f"benchmarks.classification.{part}")
        results += module.cases(host, chosen.rounds)
    results.append(Figure("the whole benchmark", time.perf_counter() - began, "s"))
    show(results, host, as_json=chosen.json)
