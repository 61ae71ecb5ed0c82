"""Ranks, quantiles and scores against their definitions, written out with loops and fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.trust.quantiles import (
    check_alpha,
    levels_of,
    ordered,
    rank_of,
    smallest_sample,
)
from wonderland.trust.scores import APS, LAC, Margin, resolve_score


@given(n=st.integers(0, 10_000), percent=st.integers(1, 999))
def test_ranks_are_those_of_exact_arithmetic(n, percent):
    alpha = percent / 1000
    exact = (n + 1) * (1 - Fraction(percent, 1000))
    assert rank_of(n, alpha) == -(-exact.numerator // exact.denominator)
    least = smallest_sample(alpha)
    assert rank_of(least, alpha) <= least
    assert rank_of(least - 1, alpha) > least - 1 or least == 0


def test_quantile_is_the_order_statistic(rng):
    scores = rng.normal(size=57)
    for alpha in (0.02, 0.1, 0.5, 0.9):
        rank = rank_of(57, alpha)
        assert ordered(scores).quantile(alpha) == np.sort(scores)[rank - 1]
    assert ordered(scores).quantile(0.01) == np.inf
    assert ordered(np.zeros(20)).quantile(0.1) == 0.0  # ties


def test_equal_weights_are_no_weights(rng):
    scores, n = rng.normal(size=80), 80
    plain, weighed = ordered(scores), ordered(scores, np.full(n, 0.3))
    for alpha in (0.01, 0.1, 0.2, 0.25, 0.5):
        found = weighed.quantile(alpha, np.array([0.3, 0.3]))
        np.testing.assert_array_equal(found, np.repeat(plain.quantile(alpha), 2))


def test_weighted_quantile_is_the_definition(rng):
    scores, weight, new = rng.normal(size=30), rng.random(30), rng.random(5)
    found = ordered(scores, weight).quantile(0.2, new)
    for value, own in zip(found, new, strict=True):
        total = weight.sum() + own

        def mass(s, total=total):
            return weight[scores <= s].sum() / total

        enough = [s for s in np.sort(scores) if mass(s) >= 0.8]
        assert value == (enough[0] if enough else np.inf)


def test_levels():
    assert levels_of(0.1) == ((0.1,), True)
    assert levels_of([0.1, 0.2]) == ((0.1, 0.2), False)
    for wrong in (0.0, 1.0, -0.1, 90, float("nan")):
        with pytest.raises(wl.InputError, match="strictly between 0 and 1"):
            check_alpha(wrong)
    with pytest.raises(wl.InputError, match=r"Pass alpha=0\.1 for 90% coverage"):
        check_alpha(90)
    for wrong in ("a", None, True):
        with pytest.raises(TypeError):
            check_alpha(wrong)
    with pytest.raises(wl.InputError, match="empty"):
        levels_of([])


def by_definition(p, u, penalty, free):
    """s_y = Σ_{j before y} p_j + u p_y + λ(rank − κ)₊, classes ordered by (−p, number)."""
    table = np.empty_like(p)
    for i, row in enumerate(p):
        order = sorted(range(len(row)), key=lambda j: (-row[j], j))
        for rank, y in enumerate(order):
            mass = sum(row[j] for j in order[:rank])
            table[i, y] = mass + u[i] * row[y] + penalty * max(0, rank + 1 - free)
    return table


@pytest.mark.parametrize("k", [2, 3, 10, 32, 40])
def test_sums_of_more_probable_classes(k, rng):
    p = rng.dirichlet(np.full(k, 0.4), size=200)
    p[::3] = np.round(p[::3], 1)  # ties
    u, codes = rng.random(200), rng.integers(k, size=200)
    for penalty, free in ((0.0, 0), (0.1, 2)):
        score = APS(penalty, free)
        for chance in (None, u):
            table = score.table(p, chance)
            meant = by_definition(p, np.ones(200) if chance is None else u, penalty, free)
            np.testing.assert_allclose(table, meant, atol=1e-12)
            np.testing.assert_array_equal(
                score.of(p, codes, chance), table[np.arange(200), codes], "bit for bit"
            )
            for bound in (0.3, 0.9, table[7, 0], table[:, :1], table[:1]):
                np.testing.assert_array_equal(score.within(p, bound, chance), table <= bound)


def test_many_rows_are_those_of_few(rng):
    p = rng.dirichlet(np.ones(4), size=70_000)
    for score in (APS(), APS(0.1, 1), LAC(), Margin()):
        table = score.table(p)
        np.testing.assert_array_equal(score.within(p, 0.4), table <= 0.4)
        np.testing.assert_array_equal(score.table(p[-100:]), table[-100:])
        np.testing.assert_array_equal(score.within(p, table[:, :1]), table <= table[:, :1])


def test_threshold_and_margin(rng):
    p = rng.dirichlet(np.ones(5), size=100)
    codes = rng.integers(5, size=100)
    np.testing.assert_array_equal(LAC().within(p, -0.2), p >= 0.2)
    rest = p.copy()
    rest[np.arange(100), codes] = -np.inf
    meant = rest.max(axis=1) - p[np.arange(100), codes]
    np.testing.assert_allclose(Margin().of(p, codes), meant, atol=0)


def test_names_of_scores():
    assert isinstance(resolve_score("lac"), LAC)
    assert resolve_score("raps", 0.5, 3) == APS(0.5, 3)
    own = Margin()
    assert resolve_score(own) is own
    with pytest.raises(wl.InputError, match="Did you mean 'aps'"):
        resolve_score("app")
