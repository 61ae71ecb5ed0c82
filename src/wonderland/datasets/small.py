"""Tables of a few rows on which methods are understood."""

import numpy as np

from wonderland.datasets.dataset import Dataset

__all__ = ["load_and", "load_email_filtering", "load_or", "load_xor"]

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
WORDS = ("and", "viagra", "the", "of", "nigeria")
# One row for each mail: which of the words it holds.
MAILS = np.array(
    [
        [1, 1, 0, 1, 1],
        [0, 0, 1, 1, 0],
        [0, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [1, 0, 1, 0, 1],
        [1, 0, 1, 1, 0],
    ],
    dtype=np.float64,
)


def _truth_table(name: str, y: list[int]) -> Dataset:
    return Dataset(
        name=name,
        X=CORNERS.copy(),
        y=np.array(y),
        features=("a", "b"),
        source="the truth table, false and true as −1 and +1",
        truth={},
    )


def load_or() -> Dataset:
    """The four corners of the square, labelled by a or b; a line separates them.

    >>> load_or().y.tolist()
    [-1, 1, 1, 1]
    """
    return _truth_table("a or b", [-1, 1, 1, 1])


def load_and() -> Dataset:
    """The four corners of the square, labelled by a and b; a line separates them.

    >>> load_and().y.tolist()
    [-1, -1, -1, 1]
    """
    return _truth_table("a and b", [-1, -1, -1, 1])


def load_xor() -> Dataset:
    """The four corners of the square, labelled by either a or b; no line separates them.

    The fourth label is −1, of (1, 1): tables that print + there show a or b instead.

    >>> load_xor().y.tolist()
    [-1, 1, 1, -1]
    """
    return _truth_table("either a or b (exclusive or)", [-1, 1, 1, -1])


def load_email_filtering() -> Dataset:
    """Six mails as bags of five words, spam +1 or not −1; `truth["new"]` is a seventh, unlabelled.

    >>> mails = load_email_filtering()
    >>> mails.X.shape, mails.y.tolist(), mails.truth["new"].astype(int).tolist()
    ((6, 5), [1, -1, 1, -1, 1, -1], [1, 1, 0, 0, 0])
    """
    return Dataset(
        name="six mails, spam or not, as bags of five words",
        X=MAILS.copy(),
        y=np.array([1, -1, 1, -1, 1, -1]),
        features=WORDS,
        source="a textbook example of spam filtering",
        truth={"new": np.array([1.0, 1.0, 0.0, 0.0, 0.0])},
    )
