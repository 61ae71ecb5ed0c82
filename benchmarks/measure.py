"""How everything here is timed: peers take turns in one run, and the machine is measured too.

The best of several turns is reported: noise only ever adds time. A turn of a fast contender is
repeated until it is long enough to be timed. What a piece of work could cost at least is

    limit = max( FLOPs / matrix-multiply peak, bytes / memory bandwidth ),

with both peaks measured in the same process, and the share of it that was reached is limit / time.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "Case",
    "Contender",
    "Figure",
    "Goal",
    "Machine",
    "Result",
    "best_of",
    "machine",
    "race",
    "render",
    "show",
]

TURN = 0.05  # seconds a turn should last at least
BUDGET = 20.0  # seconds after which a slow contender takes no further turn
SQUARE = 1536  # side of the matrices that measure the matrix-multiply peak
STREAM = 1 << 25  # float64 numbers read to measure the bandwidth: 256 MiB, beyond every cache


@dataclass(frozen=True)
class Goal:
    """What a figure is held against: at least (speed-up) or at most (seconds)."""

    value: float
    at_least: bool

    def met(self, figure: float) -> bool:
        """Whether the figure reaches it."""
        return figure >= self.value if self.at_least else figure <= self.value


@dataclass(frozen=True)
class Contender:
    """One way to do the work; `quality` judges its outcome (the objective value, say)."""

    name: str
    run: Callable[[], Any]
    quality: Callable[[Any], float] | None = None
    goal: float | None = None  # ours should be so many times faster than this contender


@dataclass(frozen=True)
class Case:
    """One piece of work, ours first; FLOPs and bytes are the least it needs."""

    work: str
    contenders: Sequence[Contender]
    flops: float = 0.0
    bytes: float = 0.0
    quality_name: str = "objective"


@dataclass(frozen=True)
class Result:
    """Seconds and quality of each contender of a case, in its order."""

    work: str
    names: list[str]
    seconds: list[float]
    ratios: list[float]
    goals: list[float | None]
    quality: list[float | None]
    quality_name: str
    limit: float | None = None
    limited_by: str = ""


@dataclass(frozen=True)
class Figure:
    """A single number that has no peer: seconds, rows per second."""

    name: str
    value: float
    unit: str
    goal: Goal | None = None


@dataclass(frozen=True)
class Machine:
    """What this machine can do at most, measured in this process."""

    cores: int
    matmul: dict[str, float] = field(default_factory=dict)  # FLOP/s, float64
    bandwidth: float = 0.0  # bytes/s, streaming read on all cores

    @property
    def peak(self) -> float:
        """The faster of the matrix products (FLOP/s)."""
        return max(self.matmul.values())

    def limit(self, flops: float, size: float) -> tuple[float, str]:
        """Least seconds for that many FLOPs and bytes, and which of the two binds."""
        compute, memory = flops / self.peak, size / self.bandwidth
        return (compute, "compute") if compute >= memory else (memory, "memory")


def best_of(runs: Sequence[Callable[[], Any]], rounds: int = 5) -> tuple[list[float], list[Any]]:
    """Best seconds of each run over interleaved rounds, and what each last returned.

    The first, untimed call of each warms caches and compiles; it also says how often to repeat it
    within one turn.
    """
    outcomes, repeats, spent = [], [], []
    for run in runs:
        seconds, outcome = _clock(run, 1)
        outcomes.append(outcome)
        # A first call that compiled says nothing about the next one; one of minutes is enough.
        repeats.append(1 if seconds >= BUDGET else _repeats(run))
        spent.append(seconds)
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            if spent[i] > BUDGET and np.isfinite(best[i]):
                continue
            seconds = _clock(run, repeats[i])[0]
            best[i], spent[i] = min(best[i], seconds), spent[i] + seconds * repeats[i]
    return best, outcomes


def _repeats(run: Callable[[], Any]) -> int:
    """How many calls fill a turn: the first few are slow ones, so they do not decide it."""
    repeats, spent = 1, 0.0
    while spent < TURN / 2:
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        spent, tried = time.perf_counter() - start, repeats
        repeats *= 4
    return max(1, round(TURN * tried / spent))


def _clock(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Mean seconds of `repeats` calls; with few repeats, a mean of nearly equal numbers."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(repeats):
            outcome = run()
        return (time.perf_counter() - start) / repeats, outcome
    finally:
        gc.enable()


def race(case: Case, host: Machine | None = None, rounds: int = 5) -> Result:
    """Time the contenders of one case against each other."""
    seconds, outcomes = best_of([contender.run for contender in case.contenders], rounds)
    limit, limited_by = None, ""
    if host is not None and (case.flops or case.bytes):
        limit, limited_by = host.limit(case.flops, case.bytes)
    return Result(
        work=case.work,
        names=[contender.name for contender in case.contenders],
        seconds=seconds,
        ratios=[other / seconds[0] for other in seconds],
        goals=[contender.goal for contender in case.contenders],
        quality=[
            None if contender.quality is None else float(contender.quality(outcome))
            for contender, outcome in zip(case.contenders, outcomes, strict=True)
        ],
        quality_name=case.quality_name,
        limit=limit,
        limited_by=limited_by,
    )


def machine() -> Machine:
    """Measure the peaks of this machine; takes about a second."""
    return Machine(
        cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        matmul={"NumPy": _numpy_matmul(), "XLA": _xla_matmul()},
        bandwidth=_bandwidth(),
    )


def _numpy_matmul() -> float:
    A = np.random.default_rng(0).normal(size=(SQUARE, SQUARE))
    (seconds,), _ = best_of([lambda: A @ A], 5)
    return 2.0 * SQUARE**3 / seconds


def _xla_matmul() -> float:
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):  # noqa: FBT003
        A = jnp.asarray(np.random.default_rng(0).normal(size=(SQUARE, SQUARE)))
        product = jax.jit(lambda M: M @ M)
        (seconds,), _ = best_of([lambda: product(A).block_until_ready()], 5)
    return 2.0 * SQUARE**3 / seconds


def _bandwidth() -> float:
    """Streaming read: Σx² of slices far beyond the caches, one thread for each core."""
    from threadpoolctl import threadpool_limits

    threads = max(1, os.cpu_count() or 1)
    stream = np.ones(STREAM)
    parts = np.array_split(stream, threads)
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        (seconds,), _ = best_of([lambda: list(pool.map(lambda part: part @ part, parts))], 5)
    return stream.nbytes / seconds


def show(
    results: Iterable[Result | Figure], host: Machine | None = None, *, as_json: bool = False
) -> None:
    """Print results as text, or as one JSON document."""
    listed = list(results)
    if as_json:
        document = {
            "machine": None if host is None else asdict(host),
            "cases": [asdict(item) for item in listed if isinstance(item, Result)],
            "figures": [asdict(item) for item in listed if isinstance(item, Figure)],
        }
        print(json.dumps(document, indent=2))
    else:
        print(render(listed, host))
    sys.stdout.flush()


def render(results: Iterable[Result | Figure], host: Machine | None = None) -> str:
    """The same as plain text, at most 100 columns wide."""
    lines = [] if host is None else [_machine_line(host), ""]
    for item in results:
        lines += _case_lines(item) if isinstance(item, Result) else [_figure_line(item)]
    return "\n".join(lines)


def _machine_line(host: Machine) -> str:
    products = ", ".join(f"{name} {rate / 1e9:.0f} GF/s" for name, rate in host.matmul.items())
    read = f"streaming read {host.bandwidth / 1e9:.0f} GB/s"
    return f"machine: {host.cores} cores; float64 matrix product {products}; {read}"


def _case_lines(result: Result) -> list[str]:
    head = result.work
    if result.limit is not None:
        share = result.limit / result.seconds[0]
        head += (
            f"\n  least time by {result.limited_by} {_seconds(result.limit)}: "
            f"ours reaches {share:.0%} of it"
        )
    rows = [("", "time", "ratio", "goal", result.quality_name)]
    for i, name in enumerate(result.names):
        goal = result.goals[i]
        rows.append(
            (
                name,
                _seconds(result.seconds[i]),
                "" if i == 0 else f"{result.ratios[i]:.2f}×",
                "" if goal is None else f"≥ {goal:g}× {_verdict(result.ratios[i] >= goal)}",
                "" if result.quality[i] is None else f"{result.quality[i]:.12g}",
            )
        )
    return [head, *_columns(rows), ""]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w)
            for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _figure_line(figure: Figure) -> str:
    value = _seconds(figure.value) if figure.unit == "s" else f"{figure.value:,.4g} {figure.unit}"
    if figure.goal is None:
        return f"{figure.name}: {value}"
    sign = "≥" if figure.goal.at_least else "≤"
    verdict = _verdict(figure.goal.met(figure.value))
    return f"{figure.name}: {value} (goal {sign} {figure.goal.value:g} {figure.unit}, {verdict})"


def _verdict(met: bool) -> str:  # noqa: FBT001
    return "met" if met else "MISSED"


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}" if value < 1000 * size else f"{value:.0f} s"
    return f"{value / 1e-9:.3g} ns"
