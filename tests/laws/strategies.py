"""Data for laws: well-posed tables made from a few drawn numbers, so that failures shrink."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def tables(draw, *, rows=(12, 40), features=(1, 4), outputs=(1, 3), flat=True):
    """(X (n, d), y (n,) or (n, t)) with columns of moderate correlation, scale and mean."""
    n, d = draw(st.integers(*rows)), draw(st.integers(*features))
    t = draw(st.integers(*outputs))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 10.0 ** draw(st.integers(-2, 2))
    mean = draw(st.sampled_from([0.0, 1.0, -5.0]))
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.2 * rng.normal(size=(d, d)))
    y = X @ rng.normal(size=(d, t)) + rng.normal(size=(n, t)) + 1.0
    X = scale * (X + mean)
    return X, (y[:, 0] if flat and t == 1 else y)


def orders(n: int):
    """Permutations of n samples."""
    return st.permutations(range(n)).map(np.array)


def generators():
    """NumPy generators from a drawn seed."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)
