"""Every law of estimators over every classifier of the registry."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import wonderland as wl
from tests.laws.strategies import generators, orders
from tests.registry import CLASSIFIERS
from wonderland.core.arrays import in_float64
from wonderland.testing.compare import close

# Many estimators under each law: few examples each, and other ones in every run.
few = settings(max_examples=2)
every = pytest.mark.parametrize("part", CLASSIFIERS, ids=lambda part: part.name)


@st.composite
def labelled(draw, *, rows=(24, 40), features=(1, 4)):
    """(X (n, d), labels (n,)) of two or three classes that overlap, each there at least thrice."""
    n, d = draw(st.integers(*rows)), draw(st.integers(*features))
    k = draw(st.sampled_from([2, 2, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.2 * rng.normal(size=(d, d)))
    scores = X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))
    labels = scores.argmax(axis=1)
    labels[: 3 * k] = np.arange(3 * k) % k
    X = 10.0 ** draw(st.integers(-1, 1)) * (X + draw(st.sampled_from([0.0, 1.0, -5.0])))
    return X, labels.astype(float)


def fits(part, data):
    """Whether this classifier takes so many classes."""
    return not (part.two and len(np.unique(data[1])) > 2)


def scored(part, data):
    """Whether the largest score of `model_` is the decision."""
    return fits(part, data) and not (part.votes and len(np.unique(data[1])) > 2)


@every
@few
@given(data=labelled(), rng=generators())
def test_weights_are_repetition(part, data, rng):
    if part.repeats and fits(part, data):
        counts = rng.integers(1, 4, size=len(data[0]))
        wl.testing.weights_are_repetition(part.make(), *data, counts=counts, rtol=part.rtol)


@every
@few
@given(data=labelled(rows=(40, 50)))
def test_zero_weight_is_absence(part, data):
    X, y = data
    if not (part.repeats and fits(part, data)):
        return
    absent = np.arange(len(y)) % 5 == 4
    turned = np.where(absent, y[0], y)  # the label of an absent sample does not matter
    weight = np.where(absent, 0.0, 1.0)
    one = clone(part.make()).fit(X, turned, sample_weight=weight)
    two = clone(part.make()).fit(X[~absent], y[~absent], sample_weight=weight[~absent])
    _same_decision(one, two, X, part.rtol, "weight 0 is absence")


@every
@few
@given(draw=st.data(), data=labelled())
def test_samples_in_any_order(part, draw, data):
    if not (part.ordered and fits(part, data)):
        return
    (X, y), order = data, draw.draw(orders(len(data[0])))
    one, two = part.make().fit(X[order], y[order]), part.make().fit(X, y)
    _same_decision(one, two, X, part.rtol, "samples may come in any order")


def _same_decision(one, two, X, rtol, sentence):
    close(one.decision_function(X), two.decision_function(X), sentence, rtol=rtol)


@every
@few
@given(data=labelled())
def test_decisions_are_the_models(part, data):
    """decision_function(X)_i = model_(x_i): the batch is derived from a function of one sample."""
    if not scored(part, data):
        return
    first = part.make().fit(*data)
    if hasattr(first, "model_"):
        alone = in_float64(lambda: np.stack([np.asarray(first.model_(x)) for x in data[0]]))()
        close(first.decision_function(data[0]), alone, "the model of one sample", rtol=1e-9)


@every
@few
@given(data=labelled())
def test_decisions_name_the_labels(part, data):
    """predict takes the sign or the largest column; labels may be anything that sorts."""
    if not scored(part, data):
        return
    X, y = data
    words = np.array(["ash", "birch", "cedar"])[y.astype(int)]
    one, two = part.make().fit(X, y), part.make().fit(X, words)
    scores = one.decision_function(X)
    chosen = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
    np.testing.assert_array_equal(one.predict(X), one.classes_[chosen.astype(int)])
    np.testing.assert_array_equal(two.predict(X), two.classes_[chosen.astype(int)])


@every
@few
@given(data=labelled())
def test_same_seed_same_fit(part, data):
    if fits(part, data):
        wl.testing.same_seed_same_fit(part.make(), *data)


@every
@few
@given(data=labelled())
def test_saving_keeps_every_bit(part, data):
    if fits(part, data):
        wl.testing.saving_keeps_every_bit(part.make(), *data)


@every
@few
@given(data=labelled())
def test_clones_and_pickles(part, data):
    if fits(part, data):
        wl.testing.clones_and_pickles(part.make(), *data)


@every
@few
@given(data=labelled())
def test_evidence_is_plain(part, data):
    if fits(part, data):
        wl.testing.evidence_is_plain(part.make(), *data, required=part.claims)


@every
def test_failed_fit_changes_nothing(part, rng):
    X = rng.normal(size=(15, 3))
    y = np.arange(15.0) % 2
    wl.testing.failed_fit_changes_nothing(part.make(), X, y)


@every
def test_interrupted_fit_changes_nothing(part, rng):
    X = rng.normal(size=(15, 3))
    wl.testing.interrupted_fit_changes_nothing(part.make(), X, np.arange(15.0) % 2)


@every
def test_nothing_compiles_again(part, rng):
    """Neither a second fit of the same shape nor another hyperparameter value compiles."""
    X = rng.normal(size=(25, 3))
    y, other = np.arange(25.0) % 2, (np.arange(25) // 2) % 2
    changed = part.make()
    given = changed.get_params()
    for name in ("C", "alpha"):
        if isinstance(given.get(name), float) and np.isfinite(given[name]):
            changed.set_params(**{name: 0.7 * given[name]})
    wl.testing.nothing_compiles_again(
        lambda: part.make().fit(X, y).predict(X),
        lambda: part.make().fit(X + 1.0, other).predict(X),
        lambda: changed.fit(X, y).predict(X),
    )
