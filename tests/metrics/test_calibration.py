"""Calibration errors beside the published formulas, netcal, the loop over resampled rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.laws.strategies import generators
from wonderland.metrics import calibration_error, reliability
from wonderland.metrics import intervals as intervals_module
from wonderland.metrics.calibration import KINDS

few = settings(max_examples=8)


def made(rng, n=500, k=4, power=1.0):
    """Labels drawn from probabilities, and those probabilities distorted by a power."""
    z = rng.normal(size=(n, k)) * 1.5
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    q = p**power
    return y, q / q.sum(axis=1, keepdims=True)


def ece(correct, confidence, weight, bins):
    """The formula of the notes, bin by bin."""
    total = 0.0
    for i in range(bins):
        last = i == bins - 1
        inside = (confidence >= i / bins) & ((confidence < (i + 1) / bins) | last)
        if weight[inside].sum() > 0:
            a = np.average(correct[inside], weights=weight[inside])
            c = np.average(confidence[inside], weights=weight[inside])
            total += weight[inside].sum() * abs(a - c)
    return total / weight.sum()


@given(rng=generators(), bins=st.integers(1, 30), weighted=st.booleans())
@few
def test_the_errors_are_the_formulas(rng, bins, weighted):
    y, p = made(rng, power=1.5)
    w = rng.uniform(size=len(y)) if weighted else np.ones(len(y))
    options = {"bins": bins, "draws": 5, "sample_weight": w if weighted else None}
    top = ece(p.argmax(axis=1) == y, p.max(axis=1), w, bins)
    assert calibration_error(y, p, **options).value == pytest.approx(top, rel=1e-12)
    assert reliability(
        y, p, bins=bins, sample_weight=options["sample_weight"]
    ).error == pytest.approx(top, rel=1e-12)
    each = [ece(y == j, p[:, j], w, bins) for j in range(4)]
    found = calibration_error(y, p, "classwise", **options)
    assert found.value == pytest.approx(np.mean(each), rel=1e-12)
    assert calibration_error(y, p, label=2, **options).value == pytest.approx(each[2], rel=1e-12)


def test_top_label_is_netcals():
    metrics = pytest.importorskip("netcal.metrics")
    rng = np.random.default_rng(3)
    for k, bins in ((3, 10), (10, 15)):
        y, p = made(rng, 2000, k, 0.7)
        theirs = metrics.ECE(bins).measure(p, y)
        assert calibration_error(y, p, bins=bins, draws=5).value == pytest.approx(theirs, rel=1e-10)
    y, p = made(rng, 2000, 2, 0.7)
    found = calibration_error(y, p, label=1, bins=10, draws=5).value
    assert found == pytest.approx(metrics.ECE(10).measure(p[:, 1], y), rel=1e-10)


def test_the_debiased_error_is_the_published_one(rng):
    """Kumar, Liang, Ma (2019), definition 5.2, over bins of equal mass."""
    y, p = made(rng, 1500, 3, 1.6)
    c, o = p.max(axis=1), (p.argmax(axis=1) == y).astype(float)
    found = calibration_error(y, p, "l2", bins=10, strategy="mass", draws=5)
    squares, order = 0.0, np.argsort(c)
    for rows in np.array_split(order, 10):
        a, n = o[rows].mean(), len(rows)
        squares += n / 1500 * ((a - c[rows].mean()) ** 2 - a * (1 - a) / (n - 1))
    assert found.value == pytest.approx(np.sqrt(max(squares, 0)), rel=1e-9)


def test_the_smooth_error_is_its_integral(rng):
    """∫ |Σ r K_σ(t, c)| dt by the rule of midpoints, reflections summed one by one."""
    y, p = made(rng, 300, 3, 2.0)
    c, o = p.max(axis=1), (p.argmax(axis=1) == y).astype(float)
    t = (np.arange(2000) + 0.5) / 2000

    def error(sigma):
        kernel = np.zeros((2000, 300))
        for shift in range(-6, 7):
            for mirrored in (c + 2 * shift, -c + 2 * shift):
                kernel += np.exp(-0.5 * ((t[:, None] - mirrored) / sigma) ** 2)
        return np.abs(kernel @ (o - c)).sum() / (sigma * np.sqrt(2 * np.pi) * 2000 * 300)

    found = calibration_error(y, p, "smooth", draws=5).value
    assert error(found) == pytest.approx(found, rel=2e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [4096, 600])
def test_the_interval_is_the_loops(kind, blocks, rng, monkeypatch):
    """Ends of the interval from the loop over resampled rows, rows or blocks being drawn."""
    monkeypatch.setattr(intervals_module, "BLOCKS", blocks)
    monkeypatch.setattr("wonderland.metrics.measures.BLOCKS", blocks)
    y, p = made(rng, 1200, 3, 2.0)
    found = calibration_error(y, p, kind, draws=1000, level=0.9)
    draws = []
    for _ in range(60 if kind == "smooth" else 150):
        rows = rng.integers(1200, size=1200)
        draws.append(calibration_error(y[rows], p[rows], kind, draws=1, classes=range(3)).value)
    value, low, high = found.value, *np.quantile(draws, [0.05, 0.95])
    power = 2 if kind == "l2" else 1
    centre = value
    if kind == "l2":  # the population of the resampled rows is the plain sum of squares
        t = reliability(y, p)
        centre = np.sqrt(t.weight @ t.gap**2 / t.weight.sum())
    ends = value**power + centre**power - np.array([high, low]) ** power
    width = ends[1] - ends[0]
    ours = np.array([found.low, found.high]) ** power
    np.testing.assert_allclose(ours, ends, atol=0.35 * width)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [400, 6000])
def test_p_values_of_calibrated_models_are_uniform(kind, n, rng):
    """By rows, and beyond 4096 of them by cells or multipliers; as they should be, or modest."""
    draws, turns = (49, 25) if kind == "smooth" else (199, 80)
    found = [
        calibration_error(*made(rng, n, 3), kind, draws=draws, random_state=t).p_value
        for t in range(turns)
    ]
    # Binomial(turns, q) stays within four standard deviations.
    for q in (0.1, 0.5, 0.9):
        assert abs(np.mean(np.array(found) <= q) - q) < 4 * np.sqrt(q * (1 - q) / turns) + 0.02


def test_weighted_tests_keep_their_level(rng):
    found = []
    for t in range(60):
        y, p = made(rng, 5000, 3)
        w = rng.exponential(size=5000)
        found.append(calibration_error(y, p, sample_weight=w, draws=99, random_state=t).p_value)
    assert abs(np.mean(np.array(found) <= 0.5) - 0.5) < 4 * 0.5 / np.sqrt(60)


@pytest.mark.slow
@pytest.mark.parametrize("power", [1.0, 1.2, 2.0])
def test_the_interval_covers_the_error_of_the_population(power, rng):
    y, p = made(rng, 400_000, 3, power)
    truth = ece(p.argmax(axis=1) == y, p.max(axis=1), np.ones(len(y)), 15)
    truth = 0.0 if power == 1 else truth
    held = 0
    for t in range(200):
        found = calibration_error(*made(rng, 2000, 3, power), draws=300, random_state=t, level=0.9)
        held += found.low <= truth + 1e-3 and found.high >= truth - 1e-3
    assert held / 200 >= 0.9 - 4 * np.sqrt(0.09 / 200)


@given(rng=generators())
@few
def test_rows_in_any_order_and_weights_as_copies(rng):
    y, p = made(rng, 200, 3, 1.5)
    order, counts = rng.permutation(200), rng.integers(0, 3, size=200)
    counts[0] = 1
    for kind in KINDS:
        value = calibration_error(y, p, kind, draws=2).value
        again = calibration_error(y[order], p[order], kind, draws=2).value
        assert again == pytest.approx(value, rel=1e-9, abs=1e-12)
        if kind != "l2":  # whose n_b counts rows and not weight
            options = {"draws": 2, "classes": range(3)}
            weighted = calibration_error(y, p, kind, sample_weight=counts, **options).value
            rows = np.repeat(np.arange(200), counts)
            copied = calibration_error(y[rows], p[rows], kind, **options).value
            assert weighted == pytest.approx(copied, rel=1e-9, abs=1e-12)


def test_labels_of_any_kind(rng):
    y, p = made(rng, 300, 3, 1.5)
    value = calibration_error(y, p, draws=2).value
    names = np.array(["ant", "bee", "cat"])
    assert calibration_error(names[y], p, draws=2).value == value
    shuffled = calibration_error(names[y], p[:, [2, 0, 1]], classes=names[[2, 0, 1]], draws=2)
    assert shuffled.value == value
    assert calibration_error(names[y], p, label="bee", draws=2).value > 0


@pytest.mark.parametrize(
    ("y", "p", "options", "sentence"),
    [
        ([0, 1], [[0.5, 0.5], [0.5, 0.6]], {}, r"1 row of 2 that does not sum to one: row 1 \(1.1"),
        ([0, 1, 0], [0.5, 1.5, -0.2], {}, r"2 rows of 3 that hold numbers outside"),
        ([0, 1], [0.5, np.nan], {}, "NaN: row 1"),
        ([0, 1], ["a", "b"], {}, "does not hold numbers"),
        ([0, 1], [[1.0], [1.0]], {}, "a column for each class"),
        ([0, 1, 1], [0.5, 0.5], {}, "p has 2 rows"),
        (["a", "b"], np.full((2, 3), 1 / 3), {}, "2 labels and p has 3 columns"),
        (["a", "d"], np.full((2, 3), 1 / 3), {"classes": ["a", "b", "c"]}, "'d' in row 1"),
        (["a", "b"], np.full((2, 3), 1 / 3), {"classes": ["a", "b"]}, "own for each column"),
        ([0, 1], [0.5, 0.5], {"kind": "ece"}, "kind is 'ece'"),
        ([0, 1], [0.5, 0.5], {"bins": 0}, "bins is 0"),
        ([0, 1], [0.5, 0.5], {"strategy": "equal"}, "strategy is 'equal'"),
        ([0, 1], [0.5, 0.5], {"level": 95}, "level is 95"),
        ([0, 1], [0.5, 0.5], {"label": 7}, "label is 7"),
        ([0, 1], [0.5, 0.5], {"sample_weight": [1, -1]}, "weights ≥ 0"),
    ],
)
def test_bad_input_is_told_in_three_parts(y, p, options, sentence):
    with pytest.raises(wl.InputError, match=sentence):
        calibration_error(y, p, **options)


def test_many_classes_stay_small(rng):
    y, p = made(rng, 1500, 100)
    assert calibration_error(y, p, "classwise", draws=20).value > 0
