"""Fit a Parquet data set in one pass: rows are read in batches and never held together.

The second moments are accumulated in doubled precision, so that the coefficients are those of the
fit in memory; what is kept grows with the number of columns, not with the number of rows.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import wonderland as wl
from wonderland.core.errors import optional

TRUTH = np.array([1.0, -2.0, 0.5, 3.0, 0.0])
NAMES = [f"sensor{j}" for j in range(len(TRUTH))]


def batches(count: int, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Readings far from zero: means a thousand times their spread."""
    chance = np.random.default_rng(11)
    for _ in range(count):
        X = 1000.0 + chance.normal(size=(rows, len(TRUTH)))
        yield X, X @ TRUTH + 7.0 + chance.normal(size=rows)


def write(folder: Path, count: int, rows: int) -> None:
    """One file a batch, as a data set that grows from day to day."""
    pa, pq = optional("pyarrow", "arrow"), optional("pyarrow.parquet", "arrow")
    for day, (X, y) in enumerate(batches(count, rows)):
        columns = {**dict(zip(NAMES, X.T, strict=True)), "output": y}
        pq.write_table(pa.table(columns), folder / f"day{day:03d}.parquet")


def main(count: int = 20, rows: int = 20_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), count, rows)
        start = time.perf_counter()
        model = wl.LinearRegression().fit(folder, "output")
        spent = time.perf_counter() - start
    print(
        f"{count * rows:,} rows from Parquet in {spent:.2f} s ({count * rows / spent:,.0f} rows/s)"
    )
    print(model.evidence_, "\n")
    for name, w, error in zip(
        model.feature_names_in_, model.coef_, model.standard_errors_, strict=True
    ):
        print(f"{name}: {w:9.5f} ± {error:.5f}")

    # The same from any iterable of chunks, and from everything in memory.
    chunked = wl.LinearRegression().fit(batches(count, rows))
    X, y = (np.concatenate(parts) for parts in zip(*batches(count, rows), strict=True))
    whole = wl.LinearRegression().fit(X, y)
    for other in (chunked, whole):
        apart = np.max(np.abs(model.coef_ - other.coef_)) / np.max(np.abs(whole.coef_))
        print(f"largest relative difference: {apart:.1e}")
        assert apart < 1e-10


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
