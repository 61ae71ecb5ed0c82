"""Rows are split without gaps or overlaps, in order, each part on its own single-threaded BLAS."""

import threading

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given
from hypothesis import strategies as st

from wonderland.core.blocks import calm, limited, map_rows, workers

LARGE = 1 << 30


@given(n=st.integers(0, 1000))
def test_parts_cover_all_rows_once_and_in_order(n):
    parts = map_rows(lambda start, stop: list(range(start, stop)), n, LARGE)
    assert [row for part in parts for row in part] == list(range(n))


def test_small_tables_stay_on_this_thread():
    (name,) = map_rows(lambda *_: threading.current_thread().name, 100, 10)
    assert name == threading.current_thread().name


def test_large_tables_use_every_core_with_one_blas_thread_each():
    def look(start, stop):
        pools = threadpoolctl.threadpool_info()
        return [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]

    found = map_rows(look, 100, LARGE)
    assert len(found) == workers()
    if workers() > 1:
        assert all(threads == 1 for part in found for threads in part)


def test_the_answer_is_that_of_one_thread(rng):
    X = rng.normal(size=(10_001, 7))
    parts = map_rows(lambda i, j: X[i:j].T @ X[i:j], len(X), LARGE)
    np.testing.assert_allclose(np.sum(parts, axis=0), X.T @ X, rtol=1e-12)


def test_an_error_in_a_part_is_raised_here():
    def fail(start, stop):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        map_rows(fail, 10, LARGE)


def test_cores_can_be_limited_and_come_back():
    before = workers()
    with limited(1):
        assert workers() == 1
        assert len(map_rows(lambda *_: None, 100, LARGE)) == 1
        with limited(None):
            assert workers() == 1
    with limited(-2):
        assert workers() == max(1, before - 1)
    with limited(10_000):
        assert workers() == before
    assert workers() == before


def test_small_work_keeps_to_one_blas_thread():
    def threads():
        pools = threadpoolctl.threadpool_info()
        return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}

    before = threads()
    with calm(1000.0):
        assert threads() == {1}
    with calm(1e15):
        assert threads() == before
    assert threads() == before
