"""One pass in doubled precision: exact arithmetic, QR in memory and NIST say what is right."""

import re
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solve.problems import make
from wonderland.core.doubled import Doubled
from wonderland.core.errors import InputError, NotFiniteError
from wonderland.solve.choose import Method
from wonderland.solve.direct import solve_direct
from wonderland.solve.problem import LeastSquares
from wonderland.solve.sweep import accumulate, solve_sweep
from wonderland.solve.triangle import PANEL, pivoted_cholesky, times, transposed


def chunked(problem, size):
    for i in range(0, len(problem.X), size):
        weight = None if problem.weight is None else problem.weight[i : i + size]
        yield problem.X[i : i + size], problem.y[i : i + size], weight


def swept(problem, size=13):
    totals = accumulate(chunked(problem, size), fit_intercept=problem.fit_intercept)
    return solve_sweep(totals, problem.alpha, problem.fit_intercept)


def close(ours, theirs, tol):
    """Relative to the largest entry."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert np.abs(ours - theirs).max() <= tol * np.abs(theirs).max()


def exact(problem):
    """[b; w] for one output by Gaussian elimination in rational numbers."""
    Z = [[Fraction(v) for v in row] for row in problem.X]
    if problem.fit_intercept:
        Z = [[Fraction(1), *row] for row in Z]
    weight = np.ones(len(Z)) if problem.weight is None else problem.weight
    omega = [Fraction(v) for v in weight]
    right = [Fraction(v) for v in problem.y[:, 0]]
    p = len(Z[0])
    rows = [
        [sum(w * z[i] * z[j] for w, z in zip(omega, Z, strict=True)) for j in range(p)]
        + [sum(w * z[i] * b for w, z, b in zip(omega, Z, right, strict=True))]
        for i in range(p)
    ]
    for i in range(int(problem.fit_intercept), p):
        rows[i][i] += Fraction(problem.alpha[0])
    for i in range(p):
        for j in range(p):
            if j != i:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return np.array([float(rows[i][p] / rows[i][i]) for i in range(p)])


problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n": st.integers(12, 60),
        "d": st.integers(1, 6),
        "weighted": st.booleans(),
        "fit_intercept": st.booleans(),
        "mean": st.sampled_from([0.0, 1.0, 1e3, 1e6]),
    }
)


@given(problems, st.sampled_from([(0.0, 0.0), (1.0, 1.0), (0.1, 20.0)]), st.integers(1, 70))
def test_same_answer_as_in_memory(case, alpha, size):
    rng = np.random.default_rng(case.pop("seed"))
    if case["weighted"]:
        case["mean"] = min(case["mean"], 1e3)  # beyond, rounding √ω·y shows in memory
    problem = make(rng, **case, alpha=alpha)
    here, there = swept(problem, size), solve_direct(problem)
    close(here.coef, there.coef, 1e-10)
    close(here.rss, there.rss, 1e-9)
    close(here.condition, there.condition, 1e-5)
    if problem.fit_intercept:
        close(here.intercept, there.intercept, 1e-10)
    else:
        assert np.all(here.intercept == 0)
    if there.inverse is not None:
        close(here.inverse, there.inverse, 1e-10)
    assert here.rank == there.rank
    assert here.gradient < 1e-8
    assert here.solver == Method.SWEEP


@given(problems, st.integers(0, 6))
def test_exact_arithmetic_agrees_where_conditioning_is_hard(case, digits):
    """κ ≈ 10^digits and means a million deviations off still leave 13 digits."""
    rng = np.random.default_rng(case.pop("seed"))
    if not case["fit_intercept"]:
        case["mean"] = 0.0  # without an intercept a common mean is ill-conditioning of its own
    problem = make(rng, **{**case, "d": 3, "n": 25}, t=1, alpha=1e-3 * (digits % 2))
    problem.X[:, 1] = problem.X[:, 0] + 10.0**-digits * (problem.X[:, 1] - case["mean"])
    truth, fit = exact(problem), swept(problem)
    beta = np.concatenate([fit.intercept, fit.coef[:, 0]]) if problem.fit_intercept else fit.coef.T
    close(np.ravel(beta)[-3:], truth[-3:], 1e-13)
    close(np.ravel(beta), truth, 1e-13)


def test_moments_hold_a_hundred_bits(rng):
    X = rng.normal(size=(1500, 3)) * np.exp(5 * rng.normal(size=(1500, 3)))
    weight = rng.uniform(size=1500)
    totals = accumulate([(X[:, :2], X[:, 2:], weight)], fit_intercept=False)
    truth = sum(
        Fraction(w) * Fraction(a) * Fraction(b) for w, a, b in zip(weight, *X.T[:2], strict=True)
    )
    ours = Fraction(totals.moments.high[1, 2]) + Fraction(totals.moments.low[1, 2])
    size = np.sqrt(totals.moments.value[1, 1] * totals.moments.value[2, 2])
    assert abs(float(ours - truth)) <= 2.0**-98 * size


def test_chunk_lengths_do_not_matter(rng):
    problem = make(rng, n=5000, d=5, weighted=True, mean=1e4)
    whole = swept(problem, 5000)
    for size in (1, 7, 512, 4999):
        fit = swept(problem, size)
        close(fit.coef, whole.coef, 1e-15)
        close(fit.intercept, whole.intercept, 1e-15)


def test_two_cores_give_what_one_gives(rng):
    problem = make(rng, n=60_000, d=8, t=1)
    fit, small = swept(problem, 60_000), swept(problem, 1000)
    close(fit.coef, small.coef, 1e-15)
    close(fit.coef, np.linalg.lstsq(np.c_[np.ones(60_000), problem.X], problem.y)[0][1:], 1e-12)


def test_weights_are_repetition(rng):
    problem = make(rng, n=40)
    times_seen = rng.integers(0, 4, 40)
    repeated = problem._replace(
        X=np.repeat(problem.X, times_seen, 0), y=np.repeat(problem.y, times_seen, 0)
    )
    once, often = swept(problem._replace(weight=times_seen.astype(float))), swept(repeated)
    close(once.coef, often.coef, 1e-15)
    close(once.rss, often.rss, 1e-13)


def test_rows_are_counted_by_positive_weight(rng):
    X, y = rng.normal(size=(9, 2)), rng.normal(size=(9, 1))
    totals = accumulate([(X, y, np.r_[np.zeros(4), np.ones(5)]), (X, y, None)], fit_intercept=True)
    assert (totals.seen, totals.rows, totals.mass) == (18, 14, 14.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dependent_columns_get_the_minimum_norm(rng, fit_intercept):
    problem = make(rng, n=50, d=4, fit_intercept=fit_intercept)
    X = np.c_[problem.X, problem.X[:, 0] - 2 * problem.X[:, 2], problem.X[:, 3]]
    problem = problem._replace(X=X)
    fit = swept(problem)
    table = X - fit_intercept * X.mean(axis=0)
    close(fit.coef, np.linalg.pinv(table) @ (problem.y - fit_intercept * problem.y.mean(0)), 1e-10)
    assert fit.rank == 4
    assert fit.inverse is None
    assert np.isinf(fit.error).all()
    named = {frozenset({j, *others}) for j, others in fit.collinear}
    assert named == {frozenset({0, 2, 4}), frozenset({3, 5})}
    assert "2 dependent columns" in fit.reason


def test_a_constant_column_is_the_intercept_again(rng):
    problem = make(rng, n=3000, d=3)
    wider = problem._replace(X=np.c_[problem.X, np.full(3000, 0.1)])
    fit, plain = swept(wider), swept(problem)
    assert fit.collinear == ((3, ()),)
    close(fit.coef[:3], plain.coef, 1e-13)
    close(fit.intercept, plain.intercept, 1e-13)
    assert np.abs(fit.coef[3]).max() < 1e-12


def test_more_columns_than_rows(rng):
    problem = make(rng, n=5, d=9, t=1)
    fit = swept(problem, 2)
    centred = problem.X - problem.X.mean(axis=0)
    close(fit.coef, np.linalg.pinv(centred) @ (problem.y - problem.y.mean()), 1e-12)
    assert fit.rank == 4
    assert fit.collinear == ()


def test_columns_of_any_size(rng):
    problem = make(rng, n=60, d=4, weighted=True)
    power = np.array([-100, -30, 30, 100])
    stretched = problem._replace(X=problem.X * 10.0**power)
    fit, plain = swept(stretched), swept(problem)
    close(fit.coef * 10.0 ** power[:, None], plain.coef, 1e-14)
    close(fit.condition, plain.condition, 1e-10)


def test_bound_covers_the_truth_and_admits_what_moments_lose(rng):
    problem = make(rng, n=40, d=2, t=1)
    share = {}
    for digits in (4, 8, 11):
        X = problem.X.copy()
        X[:, 1] = X[:, 0] + 10.0**-digits * X[:, 1]
        hard = problem._replace(X=X)
        fit = swept(hard)
        beta = np.concatenate([fit.intercept, fit.coef[:, 0]])
        assert np.all(np.abs(beta - exact(hard)) <= fit.error[:, 0])
        share[digits] = "lost" in fit.reason
    assert share == {4: False, 8: False, 11: True}


def test_exact_data_have_a_small_bound(rng):
    X = rng.integers(-50, 50, (200, 3)).astype(float)
    y = rng.integers(-9, 9, (200, 1)).astype(float)
    exactly = swept(LeastSquares(X, y, None, np.zeros(1), fit_intercept=True))
    rounded = swept(LeastSquares(X / 3, y, None, np.zeros(1), fit_intercept=True))
    assert np.all(exactly.error[1:] <= 1.5e-16 * np.abs(exactly.coef))
    assert np.all(rounded.error[1:] > 3e-16 * np.abs(rounded.coef))


NIST = {
    "Norris": (1, 13), "Pontius": (2, 12), "NoInt1": (1, 13), "NoInt2": (1, 13), "Filip": (10, 7),
    "Longley": (0, 12), "Wampler1": (5, 9), "Wampler2": (5, 9), "Wampler3": (5, 9),
    "Wampler4": (5, 9), "Wampler5": (5, 9),
}  # fmt: skip


@pytest.mark.parametrize("name", NIST)
def test_nist(shared_data, name):
    """Digits of the certified coefficients, from float64 columns in chunks of five."""
    degree, digits = NIST[name]
    path = shared_data / "nist_strd" / f"{name}.dat"
    lines = path.read_text().splitlines()
    table = np.array([[float(v) for v in line.split()] for line in lines[60:] if line.strip()])
    found = (re.match(r"\s*B(\d+)\s+(\S+)\s+(\S+)", line) for line in lines[:60])
    certified = np.array([[float(m[2]), float(m[3])] for m in found if m])
    X = table[:, 1:] if degree == 0 else table[:, 1:] ** np.arange(1, degree + 1)
    free = "NoInt" not in name
    problem = LeastSquares(X, table[:, :1], None, np.zeros(1), fit_intercept=free)
    fit = swept(problem, 5)
    beta = np.concatenate([fit.intercept, fit.coef[:, 0]])[0 if free else 1 :]
    error = np.abs(beta - certified[:, 0]) / np.abs(certified[:, 0])
    assert -np.log10(max(error.max(), 1e-15)) >= digits
    assert np.all(error <= fit.error[:, 0] / np.abs(certified[:, 0]) + 1e-14)
    spread = np.sqrt(np.diag(fit.inverse) * fit.rss / (len(X) - fit.rank - free))
    if certified[0, 1] > 0:
        assert np.all(np.abs(spread / certified[:, 1] - 1) < 10.0**-digits)


def test_memory_does_not_grow_with_the_number_of_chunks(rng):
    X, y = rng.normal(size=(2000, 20)), rng.normal(size=(2000, 1))

    def peak(count):
        tracemalloc.start()
        accumulate(((X.copy(), y.copy(), None) for _ in range(count)), fit_intercept=True)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(40)
    assert peak(400) < 1.1 * peak(40)


def test_progress_is_told_rows(rng):
    X, y, seen = rng.normal(size=(300_000, 2)), rng.normal(size=(300_000, 1)), []
    accumulate([(X, y, None)] * 2, fit_intercept=True, progress=seen.append)
    assert seen == [300_000, 600_000]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("row", [0, 900])
def test_what_is_not_finite_is_refused(rng, bad, mean, row):
    X, y = rng.normal(size=(1000, 3)) + mean, rng.normal(size=(1000, 1))
    X[row, 1] = bad
    with pytest.raises(NotFiniteError):
        accumulate([(X, y, None)], fit_intercept=True)


def test_overflow_and_emptiness_are_explained():
    X = np.ones((300_000, 1))
    with pytest.raises(InputError, match="overflow"):
        accumulate([(X, X, None), (1e300 * X, X, None)], fit_intercept=True)
    with pytest.raises(InputError, match="0 samples"):
        accumulate(iter([]), fit_intercept=True)


def test_shifted_totals_are_not_used_without_an_intercept():
    X = 1e3 + np.arange(4.0)[:, None]
    totals = accumulate([(X, X, None)], fit_intercept=True)
    with pytest.raises(ValueError, match="shifted"):
        solve_sweep(totals, np.zeros(1), False)


@pytest.mark.parametrize("p", [1, 7, PANEL, 2 * PANEL + 5])
def test_cholesky_in_doubled_precision(rng, p):
    A = rng.normal(size=(p + 3, p))
    C = times(Doubled.of(A.T.copy()), Doubled.of(A))
    found = pivoted_cholesky(C, np.zeros(p), np.ones(p))
    again = times(transposed(found.R), found.R) - C.take(*np.ix_(found.order, found.order))
    unit = times(found.inverse, found.R) - Doubled.of(np.eye(p))
    assert np.abs(again.value).max() < 1e-28 * p
    assert np.abs(unit.value).max() < 1e-26
    diagonal = np.diag(found.R.high)
    assert np.all(diagonal[:-1] >= diagonal[1:] * (1 - 1e-15))
    h = Doubled.of(rng.normal(size=(p, 2)))
    w, step = found.solve(C, h)
    close(w.value, np.linalg.solve(C.value, h.value), 1e-8)
    assert np.all(step <= 1e-20 * np.abs(w.value).max())


def test_cholesky_of_the_hilbert_matrix():
    """κ = 10¹³ of the matrix itself: integers from its known inverse."""
    p = 10
    i = np.arange(1.0, p + 1)
    C = Doubled.of(np.ones((p, p))) / Doubled.of(i[:, None] + i - 1)
    found = pivoted_cholesky(C, np.zeros(p), np.ones(p))
    w, _ = found.solve(C, Doubled.of(np.eye(p)[:, :1]))
    first = [100, -4950, 79200, -600600, 2522520, -6306300, 9609600, -8751600, 4375800, -923780]
    np.testing.assert_allclose(w.value[:, 0], first, rtol=1e-14)
