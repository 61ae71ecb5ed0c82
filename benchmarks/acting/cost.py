"""Decisions of least expected cost for many rows, with one matrix of costs or one for each."""

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Case, Contender, Machine, Result, race
from wonderland.trust.cost_evidence import expected_costs

ROWS, CLASSES = 1_000_000, 10


def cases(host: Machine | None = None, rounds: int = 3, rows: int = ROWS) -> Iterator[Result]:
    """One matrix for all rows, then a matrix for each of a tenth of them."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(CLASSES), size=rows)
    costs = rng.uniform(size=(CLASSES, CLASSES))
    few = p[: rows // 10]
    own = rng.uniform(size=(len(few), CLASSES, CLASSES))

    def spent(chosen: np.ndarray) -> float:
        matrices = costs if len(chosen) == rows else own
        at = np.arange(len(chosen))
        C = matrices[chosen] if matrices.ndim == 2 else matrices[at, chosen]
        return float(np.einsum("nj,nj->n", C, p[: len(chosen)]).mean())

    yield race(
        Case(
            f"decisions for {rows:,} × {CLASSES} probabilities",
            [
                Contender("wonderland", lambda: expected_costs(p, costs).argmin(axis=1), spent),
                Contender(
                    "a loop over decisions",
                    lambda: np.stack([(p * row).sum(axis=1) for row in costs]).argmin(axis=0),
                    spent,
                ),
            ],
            flops=2.0 * rows * CLASSES**2,
            bytes=float(p.nbytes),
            quality_name="expected cost",
        ),
        host,
        rounds,
    )
    yield race(
        Case(
            f"decisions for {len(few):,} rows with costs of their own",
            [
                Contender("wonderland", lambda: expected_costs(few, own).argmin(axis=1), spent),
                Contender(
                    "a loop over rows",
                    lambda: np.array([np.argmin(C @ q) for C, q in zip(own, few, strict=True)]),
                    spent,
                ),
            ],
            flops=2.0 * own.size,
            bytes=float(own.nbytes),
            quality_name="expected cost",
        ),
        host,
        rounds,
    )
