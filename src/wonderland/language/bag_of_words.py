"""Texts as bags of words.

    x_ij = how often word j occurs in text i          (binary: whether it does)
    tf-idf:  x_ij · (1 + ln((1 + n)/(1 + n_j))),  rows brought to length 1,  n_j texts with word j

Columns are the words in alphabetical order, as in scikit-learn's CountVectorizer and
TfidfVectorizer, whose parameters these are. Shapes: n texts → (n, d), CSR.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from wonderland.core.errors import InputError, nearest
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.status import Status
from wonderland.shell.text import COUNTS, TextTransformer

__all__ = ["BagOfWords"]

WORD = r"(?u)\b\w\w+\b"
Words = Callable[[str], list[str]]


class BagOfWords(TextTransformer):
    r"""Counts of the words of each text, as a sparse table.

    Args:
        lowercase: Whether words that differ in case only are one word.
        token_pattern: What a word is, a regular expression with at most one group; by default two
            or more letters, digits or underscores.
        ngram_range: (shortest, longest) run of words that counts as one.
        stop_words: Words that are left out.
        min_df: Fewest texts a word must occur in: a number, or a share of all texts as a float.
        max_df: Most texts, likewise.
        max_features: Keep this many of the most frequent words.
        vocabulary: The words to count, instead of those found: a list, or word → column.
        binary: Count each word once in a text.
        tfidf: Whether to weigh words by their rarity (see above).
        norm: Length of rows with tf-idf: "l2", "l1" or None.
        sublinear_tf: With tf-idf, 1 + ln(count) instead of the count.

    Attributes:
        vocabulary_: Word → column.
        idf_: Weight of each word (d,), with tf-idf.
        evidence_: Claims: texts, words, vocabulary, left_out.

    >>> bag = BagOfWords()
    >>> bag.fit_transform(["The cat sat", "the cat, the hat"]).toarray().astype(int).tolist()
    [[1, 0, 1, 1], [1, 1, 0, 2]]
    >>> bag.get_feature_names_out().tolist()
    ['cat', 'hat', 'sat', 'the']
    """

    vocabulary_: dict[str, int]

    def __init__(
        self,
        *,
        lowercase: bool = True,
        token_pattern: str = WORD,
        ngram_range: tuple[int, int] = (1, 1),
        stop_words: Any = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
        tfidf: bool = False,
        norm: str | None = "l2",
        sublinear_tf: bool = False,
    ) -> None:
        self.lowercase = lowercase
        self.token_pattern = token_pattern
        self.ngram_range = ngram_range
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.vocabulary = vocabulary
        self.binary = binary
        self.tfidf = tfidf
        self.norm = norm
        self.sublinear_tf = sublinear_tf

    def _check_parameters(self) -> None:
        self._words()
        if self.norm not in (None, "l1", "l2"):
            raise InputError(f"norm is {self.norm!r}", "'l2', 'l1' or None", nearest(self.norm, LP))
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            share = isinstance(value, float) and not 0.0 <= value <= 1.0
            if isinstance(value, bool | str) or share or value < 0:
                raise InputError(
                    f"{name} is {value!r}",
                    "a number of texts ≥ 0, or a share of them from 0.0 to 1.0",
                    f"Leave {name} at its default",
                )
        if self.max_features is not None and self.max_features < 1:
            raise InputError(
                f"max_features is {self.max_features!r}", "a number ≥ 1, or None", "Pass None"
            )
        low, high = self.ngram_range
        if not 1 <= low <= high:
            raise InputError(
                f"ngram_range is {self.ngram_range!r}",
                "(shortest, longest) with 1 ≤ shortest ≤ longest",
                "Pass (1, 1) for single words, (1, 2) for words and pairs",
            )

    def _words(self) -> Words:
        """The function from one text to its words."""
        pattern = _compiled(self.token_pattern)
        if self.token_pattern == WORD:
            # A run of letters is taken whole or not at all: looking for its ends changes nothing.
            pattern = re.compile(r"\w\w+")
        find, low, (first, last) = pattern.findall, bool(self.lowercase), self.ngram_range
        if self.stop_words is None and (first, last) == (1, 1):
            return (lambda text: find(text.lower())) if low else find
        stopped = frozenset(_stop_list(self.stop_words))

        def words(text: str) -> list[str]:
            found = [word for word in find(text.lower() if low else text) if word not in stopped]
            return found if last == 1 else _runs(found, first, last)

        return words

    def _learn(self, *data: Any) -> dict[str, Any]:
        (texts,) = data
        given = self.vocabulary is not None
        vocabulary = _given(self.vocabulary) if given else None
        counts, found = _counted(texts, self._words(), vocabulary)
        if not given:
            counts, found = self._kept(*_in_order(counts, found))
        learned: dict[str, Any] = {
            "vocabulary_": found,
            "status_": Status.SOLVED,
            "evidence_": _claims(counts, len(texts)),
        }
        if self.tfidf:
            # As scikit-learn: one more text that holds every word keeps the logarithm finite.
            seen = np.bincount(counts.indices, minlength=counts.shape[1])
            learned["idf_"] = np.log((1 + len(texts)) / (1 + seen)) + 1.0
        return {**learned, COUNTS: counts}

    def _kept(
        self, counts: sp.csr_array, found: dict[str, int]
    ) -> tuple[sp.csr_array, dict[str, int]]:
        """Without words that are too rare, too common, or beyond the most frequent."""
        texts = counts.shape[0]
        seen = np.bincount(counts.indices, minlength=counts.shape[1])
        low, high = (_texts(value, texts) for value in (self.min_df, self.max_df))
        if high < low:
            raise InputError(
                f"max_df={self.max_df} corresponds to < texts than min_df={self.min_df}",
                "min_df at most max_df",
                "Lower min_df or raise max_df",
            )
        kept = np.flatnonzero((seen >= low) & (seen <= high))
        if self.max_features is not None and len(kept) > self.max_features:
            total = np.bincount(counts.indices, weights=counts.data, minlength=counts.shape[1])
            if self.binary:
                total = seen
            kept = np.sort(kept[np.argsort(-total[kept])[: self.max_features]])
        if not len(kept):
            raise InputError(
                f"no word of {len(seen)} is left after pruning",
                "some words with min_df, max_df and stop_words as they are",
                "Lower min_df, raise max_df, or check the texts",
            )
        if len(kept) == len(seen):
            return counts, found
        names = list(found)
        return counts[:, kept], {names[j]: column for column, j in enumerate(kept.tolist())}

    def _counts(self, texts: list[str]) -> sp.csr_array:
        return _counted(texts, self._words(), self.vocabulary_)[0]

    def _finished(self, counts: sp.csr_array) -> sp.csr_array:
        if self.binary:
            counts.data[:] = 1.0
        return self._weighed(counts) if self.tfidf else counts

    def _weighed(self, counts: sp.csr_array) -> sp.csr_array:
        data = 1.0 + np.log(counts.data) if self.sublinear_tf else counts.data
        data = data * self.idf_[counts.indices]
        if self.norm is not None:
            sizes = np.abs(data) if self.norm == "l1" else data**2
            rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
            length = np.bincount(rows, weights=sizes, minlength=counts.shape[0])
            length = np.sqrt(length) if self.norm == "l2" else length
            data = data / length[rows]
        return sp.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The words, in the order of the columns (d,)."""
        del input_features
        self._require_fit()
        names = np.empty(len(self.vocabulary_), dtype=object)
        names[list(self.vocabulary_.values())] = list(self.vocabulary_)
        return names


LP = ("l2", "l1")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        found = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise InputError(
            f"token_pattern is {pattern!r}: {error}",
            "a regular expression",
            r"Leave it at its default, (?u)\b\w\w+\b",
        ) from error
    if found.groups > 1:
        raise InputError(
            f"More than 1 capturing group in token pattern {pattern!r}",
            "one group at most: only a single group is the word",
            "Write the others as (?:…)",
        )
    return found


def _stop_list(stop_words: Any) -> list[str]:
    if isinstance(stop_words, str):
        raise InputError(
            f"stop_words is {stop_words!r}",
            "a list of words",
            "Pass the words themselves, such as ['the', 'and']",
        )
    return list(stop_words or ())


def _runs(words: list[str], first: int, last: int) -> list[str]:
    """Runs of `first` … `last` words, each as one."""
    singles = [words] if first == 1 else []
    longer = range(max(first, 2), min(last, len(words)) + 1)
    joined = [map(" ".join, zip(*(words[k:] for k in range(n)), strict=False)) for n in longer]
    return list(chain(*singles, *joined))


class _Known(dict[str, int]):
    """A fixed vocabulary: a word that is not in it counts in column −1."""

    def __missing__(self, word: str) -> int:
        return -1


def _counted(
    texts: list[str], words: Words, vocabulary: Mapping[str, int] | None
) -> tuple[sp.csr_array, dict[str, int]]:
    """(counts (n, d), word → column); without a vocabulary, columns in order of appearance."""
    known: dict[str, int]
    if vocabulary is None:
        known = defaultdict(int)
        known.default_factory = known.__len__
    else:
        known = _Known(vocabulary)
    column = known.__getitem__
    found, marks = array("q"), [0]
    for text in texts:
        found.extend(map(column, words(text)))
        marks.append(len(found))
    columns, ends = np.frombuffer(found, np.int64), np.array(marks)
    if vocabulary is not None:
        inside = columns >= 0
        ends = np.concatenate([[0], np.cumsum(inside)])[ends]
        columns = columns[inside]
    counts = sp.csr_array((np.ones(len(columns)), columns, ends), shape=(len(texts), len(known)))
    counts.sum_duplicates()
    return counts, dict(known)


def _in_order(counts: sp.csr_array, found: dict[str, int]) -> tuple[sp.csr_array, dict[str, int]]:
    """Columns in alphabetical order."""
    if not found:
        raise InputError(
            "empty vocabulary; perhaps the texts only contain stop words",
            "at least one word by token_pattern",
            "Check the texts; words of one letter need token_pattern=r'(?u)\\b\\w+\\b'",
        )
    names = sorted(found)
    place = np.empty(len(names), np.int64)
    place[[found[name] for name in names]] = np.arange(len(names))
    ordered = sp.csr_array((counts.data, place[counts.indices], counts.indptr), shape=counts.shape)
    ordered.sort_indices()
    return ordered, {name: column for column, name in enumerate(names)}


def _given(vocabulary: Any) -> dict[str, int]:
    """A vocabulary the user brings: words in order, or word → column."""
    if not isinstance(vocabulary, Mapping):
        words = sorted(vocabulary) if isinstance(vocabulary, set) else list(vocabulary)
        vocabulary = {word: column for column, word in enumerate(words)}
        if len(vocabulary) < len(words):
            twice = next(word for word in words if words.count(word) > 1)
            raise InputError(f"Duplicate term in vocabulary: {twice!r}", "each once", "Drop one")
    if not vocabulary:
        raise InputError("an empty vocabulary", "at least one word", "Pass vocabulary=None")
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise InputError(
            "a vocabulary whose columns are not 0, 1, 2, …",
            "each column from 0 to d − 1 once",
            "Pass the words as a list",
        )
    return dict(vocabulary)


def _texts(value: float, count: int) -> float:
    """A number of texts from a number or a share."""
    return value * count if isinstance(value, float) else value


def _claims(counts: sp.csr_array, texts: int) -> Evidence:
    filled = np.diff(counts.indptr)
    return Evidence(
        [
            Claim.fact("texts", texts, "texts the vocabulary was learnt from"),
            Claim.fact("vocabulary", counts.shape[1], "columns: different words that are counted"),
            Claim.fact("words", int(counts.data.sum()), "words of those texts that are counted"),
            Claim.fact("empty_texts", int((filled == 0).sum()), "texts without a counted word"),
        ]
    )
