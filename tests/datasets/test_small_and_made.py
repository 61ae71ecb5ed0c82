"""Small and made sets are what they say."""

import numpy as np
import pytest

import wonderland as wl
from wonderland.solve.separation import separate

MADE = [
    lambda seed: wl.datasets.make_separable(60, 4, margin=0.3, seed=seed),
    lambda seed: wl.datasets.make_blobs(60, 4, classes=4, seed=seed),
    lambda seed: wl.datasets.make_moons(60, seed=seed),
    lambda seed: wl.datasets.make_circles(60, seed=seed),
    lambda seed: wl.datasets.make_sparse_logistic(60, 12, informative=4, seed=seed),
]


def test_truth_tables():
    a, b = wl.datasets.load_or().X.T.astype(bool)
    for load, truth in (
        (wl.datasets.load_or, a | b),
        (wl.datasets.load_and, a & b),
        (wl.datasets.load_xor, a ^ b),
    ):
        assert (load().y == np.where(truth, 1, -1)).all()
    assert separate(*wl.datasets.load_or()[1:3]).separable
    assert separate(*wl.datasets.load_and()[1:3]).separable
    assert not separate(*wl.datasets.load_xor()[1:3]).separable


def test_mails():
    mails = wl.datasets.load_email_filtering()
    assert mails.X[:, mails.features.index("viagra")].tolist() == [1, 0, 1, 0, 0, 0]
    assert mails.X.sum(axis=0).tolist() == [4, 2, 4, 4, 2]
    assert separate(mails.X, mails.y).separable
    fitted = wl.Perceptron(tol=None).fit(mails.X, mails.y)
    assert fitted.score(mails.X, mails.y) == 1.0
    # A loaded table may be written to without changing the next one.
    mails.X[:] = 0
    assert wl.datasets.load_email_filtering().X.any()


@pytest.mark.parametrize("make", MADE)
def test_made_sets_repeat_by_seed(make):
    one, two, other = make(3), make(3), make(4)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    assert not np.array_equal(one.X, other.X)
    assert one.X.shape == (60, len(one.features))
    assert len(np.unique(one.y)) >= 2


@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("margin", [0.01, 0.5])
def test_separable_sets_have_their_margin(d, margin):
    sample = wl.datasets.make_separable(80, d, margin=margin, seed=d)
    found = separate(sample.X, sample.y)
    assert found.separable
    assert found.margin >= margin * (1 - 1e-9)
    assert np.linalg.norm(sample.X, axis=1).max() <= 3.0


def test_few_columns_matter():
    sample = wl.datasets.make_sparse_logistic(4000, 15, informative=3, noise=0.2)
    fitted = wl.Ridge().fit(sample.X, sample.y)
    largest = np.argsort(-np.abs(fitted.coef_))[:3]
    assert set(largest) == set(np.flatnonzero(sample.truth["coef"]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: wl.datasets.make_separable(margin=0),
        lambda: wl.datasets.make_separable(1),
        lambda: wl.datasets.make_blobs(2, classes=3),
        lambda: wl.datasets.make_circles(factor=2.0),
        lambda: wl.datasets.make_sparse_logistic(d=3, informative=4),
    ],
)
def test_what_cannot_be_made(make):
    with pytest.raises(wl.InputError):
        make()
