"""Row-parallel work on host arrays: one thread per core, each with a single-threaded BLAS.

A tall table times itself (n ≫ d) is a reduction over rows; BLAS libraries split its small d × d
result among threads instead, and wait for memory. Splitting the rows lets every core stream its
own part through its cache and run at its own peak.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["calm", "limited", "map_rows", "workers"]

T = TypeVar("T")

SERIAL = 1 << 18  # entries below which starting threads costs more than it saves


_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)


@contextmanager
def limited(jobs: int | None) -> Iterator[None]:
    """Use at most `jobs` cores inside; None and −1 use all, −2 all but one, as in scikit-learn."""
    if jobs is None or jobs == -1:
        yield
        return
    count = jobs if jobs > 0 else max(1, workers() + 1 + jobs)
    token = _allowed.set(count)
    try:
        with _controller().limit(limits=count):
            yield
    finally:
        _allowed.reset(token)


def workers() -> int:
    """How many cores this process may use here."""
    cores, allowed = _cores(), _allowed.get()
    return cores if allowed is None else min(cores, allowed)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def map_rows(work: Callable[[int, int], T], n: int, size: int) -> list[T]:
    """Call `work(start, stop)` on consecutive row ranges, in parallel; results in row order.

    Args:
        work: Does the rows start … stop; must release the interpreter lock in its heavy part.
        n: Number of rows.
        size: Entries in the table, which decides whether threads pay off.

    >>> map_rows(lambda start, stop: stop - start, 10, 10)
    [10]
    """
    parts = workers() if size > SERIAL else 1
    if parts == 1:
        return [work(0, n)]
    edges = [n * part // parts for part in range(parts + 1)]
    with _controller().limit(limits=1), ThreadPoolExecutor(parts) as pool:
        return list(pool.map(work, edges[:-1], edges[1:]))


CALM = 1 << 28  # operations below which BLAS threads wait for one another longer than they work


@contextmanager
def calm(operations: float) -> Iterator[None]:
    """One BLAS thread for work too small to share, all for more; entering takes microseconds."""
    with _controller().limit(limits=1 if operations <= CALM else workers()):
        yield


_found: list[ThreadpoolController] = []


def _controller() -> ThreadpoolController:
    """Find the process's BLAS libraries once; looking for them takes milliseconds."""
    if not _found:
        _found.append(ThreadpoolController())
    return _found[0]
