"""Bags of words beside scikit-learn's vectorisers, on made and real messages."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

import wonderland as wl

TEXTS = [
    "The cat sat on the mat.",
    "the dog, the cat and THE hat",
    "",
    "Ünïcode wörds, 12 numbers_and under_scores",
    "a b c",
    "cat cat dog hat mat sat",
]
SETTINGS = [
    {},
    {"lowercase": False},
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 3)},
    {"min_df": 2},
    {"max_df": 0.4},
    {"min_df": 0.2, "max_df": 3},
    {"max_features": 3},
    {"binary": True},
    {"stop_words": ["the", "and"]},
    {"token_pattern": r"(?u)\b\w+\b"},
    {"token_pattern": r"(\w)at"},
    {"vocabulary": ["dog", "cat", "unseen"]},
]


def same_tables(ours, theirs):
    assert sp.issparse(ours)
    assert ours.shape == theirs.shape
    assert ours.has_sorted_indices or not ours.nnz
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=1e-14)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("tfidf", [False, True])
def test_equals_scikit_learn(setting, tfidf):
    ours = wl.BagOfWords(**setting, tfidf=tfidf)
    theirs = TfidfVectorizer(**setting) if tfidf else CountVectorizer(**setting)
    same_tables(ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS))
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    assert ours.vocabulary_ == theirs.vocabulary_
    new = ["the unseen cat", "nothing known", *TEXTS[::-1]]
    same_tables(ours.transform(new), theirs.transform(new))
    np.testing.assert_array_equal(
        ours.fit(TEXTS).transform(TEXTS).toarray(), ours.fit_transform(TEXTS).toarray()
    )


@pytest.mark.parametrize("options", [{"norm": "l1"}, {"norm": None}, {"sublinear_tf": True}])
def test_weights_of_words(options):
    ours, theirs = wl.BagOfWords(tfidf=True, **options), TfidfVectorizer(**options)
    same_tables(ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS))
    np.testing.assert_allclose(ours.idf_, theirs.idf_)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=8))
def test_any_text(texts):
    texts = [*texts, "some words"]
    ours, theirs = wl.BagOfWords(), CountVectorizer()
    same_tables(ours.fit_transform(texts), theirs.fit_transform(texts))


def test_real_messages(shared_data):
    with gzip.open(shared_data / "sms_spam/SMSSpamCollection.tsv.gz", "rt", encoding="utf-8") as f:
        texts = [line.rstrip("\n").split("\t", 1)[1] for line in f]
    for ours, theirs in (
        (wl.BagOfWords(), CountVectorizer()),
        (
            wl.BagOfWords(tfidf=True, ngram_range=(1, 2), min_df=2),
            TfidfVectorizer(ngram_range=(1, 2), min_df=2),
        ),
    ):
        mine, other = ours.fit_transform(texts), theirs.fit_transform(texts)
        assert mine.shape == other.shape
        assert abs(mine - other).max() < 1e-14
        assert abs(ours.transform(texts[:500]) - theirs.transform(texts[:500])).max() < 1e-14


@pytest.mark.parametrize(
    "container",
    [
        tuple,
        np.array,
        lambda t: np.array(t)[:, None],
        pd.Series,
        lambda t: pd.DataFrame({"text": t}),
        lambda t: pl.Series("text", t),
        lambda t: pl.DataFrame({"text": t}),
        pa.array,
        lambda t: pa.table({"text": t}),
    ],
)
def test_texts_come_in_many_containers(container):
    expected = wl.BagOfWords().fit_transform(TEXTS).toarray()
    np.testing.assert_array_equal(
        wl.BagOfWords().fit_transform(container(TEXTS)).toarray(), expected
    )


def test_tables_go_into_frames():
    frame = (
        wl.BagOfWords()
        .set_output(transform="pandas")
        .fit_transform(pd.Series(TEXTS, index=range(10, 16)))
    )
    assert list(frame.index) == list(range(10, 16))
    assert frame.loc[15, "cat"] == 2
    table = wl.BagOfWords().set_output(transform="polars").fit_transform(TEXTS)
    assert table["cat"][5] == 2


def test_is_saved_without_pickle(tmp_path):
    for bag in (wl.BagOfWords(tfidf=True), wl.BagOfWords(ngram_range=(1, 2))):
        wl.save(bag.fit(TEXTS), tmp_path / "bag.wl")
        again = wl.load(tmp_path / "bag.wl")
        assert again.vocabulary_ == bag.vocabulary_
        np.testing.assert_array_equal(
            again.transform(TEXTS).toarray(), bag.transform(TEXTS).toarray()
        )
    assert not [name for name in vars(bag) if name.startswith("_counts")]


def test_goes_before_a_linear_model():
    texts = ["buy now cheap", "see you at home", "cheap pills now", "home at six"]
    labels = ["spam", "ham", "spam", "ham"]
    pipeline = make_pipeline(wl.BagOfWords(), wl.Perceptron()).fit(texts, labels)
    assert list(pipeline.predict(["cheap cheap", "at home"])) == ["spam", "ham"]
    assert pipeline[-1].evidence_["separable"].value is True


@pytest.mark.parametrize(
    ("options", "texts", "message"),
    [
        ({}, "one text", "Iterable over raw text documents expected"),
        ({}, [], "no texts"),
        ({}, ["a", None], "row 1 holds None"),
        ({}, [b"bytes"], "a bytes"),
        ({}, np.eye(3), "one column of texts"),
        ({}, ["a", "b"], "empty vocabulary"),
        ({"min_df": 5}, TEXTS[:2], "max_df"),
        ({"min_df": 2}, ["one two", "three four"], "is left after pruning"),
        ({"token_pattern": "("}, TEXTS, "a regular expression"),
        ({"token_pattern": "(a)(b)"}, TEXTS, "capturing group"),
        ({"ngram_range": (2, 1)}, TEXTS, "shortest"),
        ({"norm": "l3"}, TEXTS, "'l1'"),
        ({"max_df": 1.5}, TEXTS, "share of them"),
        ({"max_features": 0}, TEXTS, "max_features is 0"),
        ({"stop_words": "english"}, TEXTS, "a list of words"),
        ({"vocabulary": ["a", "a"]}, TEXTS, "Duplicate term"),
        ({"vocabulary": []}, TEXTS, "an empty vocabulary"),
        ({"vocabulary": {"a": 3}}, TEXTS, "columns are not 0, 1, 2"),
    ],
)
def test_what_cannot_be_used_is_told(options, texts, message):
    with pytest.raises(wl.InputError, match=message):
        wl.BagOfWords(**options).fit(texts)


def test_text_given_to_a_linear_model_points_here():
    frame = pd.DataFrame({"text": ["a b", "c d"], "x": [1.0, 2.0]})
    with pytest.raises(wl.InputError, match=r"wl\.BagOfWords"):
        wl.Perceptron().fit(frame, [0, 1])
    with pytest.raises(wl.InputError, match=r"wl\.BagOfWords"):
        wl.Perceptron().fit(["a b", "c d"], [0, 1])
