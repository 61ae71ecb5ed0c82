"""Data sets for comparisons with peers: small real ones, real ones beside the project, made ones.

Each is (X, y), X dense or CSR, y class numbers; the made ones are the hard cases: badly scaled,
duplicated, nearly separable, imbalanced 1 to 1000, fewer rows than columns, dependent columns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import datasets

Data = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class Set:
    """A named set; `load` takes the folder of reference data, which only `shared` ones read."""

    name: str
    load: Callable[[Path | None], Data]
    shared: bool = False
    slow: bool = False


def standard(X):
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def two(data, first, second):
    X, y = data
    keep = (y == first) | (y == second)
    return X[keep], (y[keep] == second).astype(int)


def toolkit(name, **options):
    return getattr(datasets, f"load_{name}")(return_X_y=True, **options)


def scaled(data):
    return standard(data[0]), data[1]


def head(data, rows):
    """A fixed draw of rows that keeps every class."""
    X, y = data
    chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:rows])
    return X[chosen], y[chosen]


# Made.


def noisy(n, d, *, classes=2, seed=0, informative=4, noise=1.0):
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(n, d)) + 0.5 * chance.normal(size=(n, 1))
    scores = X[:, :informative] @ chance.normal(size=(min(informative, d), classes))
    y = (scores + noise * chance.gumbel(size=scores.shape)).argmax(axis=1)
    y[:classes] = np.arange(classes)
    return X, y


def duplicated_rows():
    X, y = noisy(40, 5, seed=1)
    return np.tile(X, (4, 1)), np.tile(y, 4)


def duplicated_columns():
    X, y = noisy(120, 4, seed=2)
    return np.hstack([X, X, -X[:, :2]]), y


def badly_scaled():
    X, y = noisy(150, 7, seed=3)
    return X * 10.0 ** np.arange(-3, 4), y


def dependent():
    X, y = noisy(100, 3, seed=4, informative=3)
    return X @ np.random.default_rng(4).normal(size=(3, 9)), y


def flat_columns():
    X, y = noisy(90, 4, seed=5)
    return np.column_stack([X, np.full(90, 3.0), np.zeros(90)]), y


def far_away():
    X, y = noisy(120, 4, seed=6)
    return X + 50.0, y


def imbalanced():
    X, _ = noisy(1001, 3, seed=7, informative=3)
    y = np.r_[np.zeros(1000, int), 1]
    X[-1] += 2.0
    return X, y


def nearly_separable():
    X, _ = noisy(100, 3, seed=8, informative=3)
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y == 1, 0.2, -0.2)
    y[0] = 1 - y[0]
    return X, y


def separable():
    X, y = nearly_separable()
    return X[1:], y[1:]


def corners():
    """The four corners of exclusive or, with a little spread."""
    chance = np.random.default_rng(9)
    bits = chance.integers(0, 2, size=(120, 2))
    return bits + 0.1 * chance.normal(size=(120, 2)), bits[:, 0] ^ bits[:, 1]


def counts():
    """Word counts: sparse, more columns than rows."""
    chance = np.random.default_rng(10)
    X = chance.poisson(0.03, size=(150, 300)).astype(float)
    y = (X[:, :30].sum(axis=1) - X[:, 30:60].sum(axis=1) + chance.normal(size=150) > 0).astype(int)
    return sp.csr_array(X), y


def heavy_tails():
    chance = np.random.default_rng(11)
    X = np.clip(chance.standard_cauchy(size=(150, 4)), -100, 100)
    return X, (np.tanh(X[:, 0]) + 0.5 * chance.normal(size=150) > 0).astype(int)


def whole_numbers():
    """Few distinct rows, each with both labels."""
    chance = np.random.default_rng(12)
    X = chance.integers(-1, 2, size=(150, 3)).astype(float)
    return X, (X[:, 0] + chance.normal(size=150) > 0).astype(int)


def coin():
    """Labels that have nothing to do with the columns."""
    chance = np.random.default_rng(13)
    return chance.normal(size=(120, 6)), chance.integers(0, 2, size=120)


def one_column():
    X, y = noisy(60, 1, seed=14, informative=1)
    return X, y


def six_rows():
    X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 2.0], [1.5, 3.0], [3.0, 0.0], [2.5, 2.5]])
    return X, np.array([0, 0, 1, 1, 0, 1])


def moons():
    return datasets.make_moons(150, noise=0.2, random_state=0)


def circles():
    return datasets.make_circles(150, noise=0.1, factor=0.5, random_state=0)


def made(name, build, **options):
    return Set(name, lambda _: build(**options))


# Beside the project.


def libsvm(folder, name):
    X, y = datasets.load_svmlight_file(str(folder / "libsvm" / f"{name}.libsvm.gz"))
    # scikit-learn's peers accept sparse tables with 32-bit indices only.
    X = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
    return X, np.unique(y, return_inverse=True)[1]


def arrays(folder, path, X, y):
    with np.load(folder / path) as file:
        return file[X].astype(float), np.unique(file[y], return_inverse=True)[1]


def dense(data):
    return data[0].toarray(), data[1]


def beside(name, load, *, slow=True):
    return Set(name, load, shared=True, slow=slow)


SETS = [
    Set("iris", lambda _: toolkit("iris")),
    Set("iris, two classes", lambda _: two(toolkit("iris"), 1, 2)),
    Set("iris, separable", lambda _: two(toolkit("iris"), 0, 1)),
    Set("wine", lambda _: scaled(toolkit("wine"))),
    Set("wine, raw units", lambda _: two(toolkit("wine"), 0, 1)),
    Set("breast cancer", lambda _: scaled(toolkit("breast_cancer")), slow=True),
    Set("breast cancer, raw units", lambda _: toolkit("breast_cancer"), slow=True),
    Set("digits 3 and 8", lambda _: two(scaled(toolkit("digits")), 3, 8)),
    Set("digits", lambda _: head(scaled(toolkit("digits")), 200), slow=True),
    made("made", noisy, n=200, d=8),
    made("made, four classes", noisy, n=200, d=6, classes=4, seed=20),
    made("fewer rows than columns", noisy, n=40, d=120, seed=21),
    made("fewer rows than columns, three classes", noisy, n=30, d=60, classes=3, seed=22),
    made("duplicated rows", duplicated_rows),
    made("duplicated columns", duplicated_columns),
    made("badly scaled", badly_scaled),
    made("dependent columns", dependent),
    made("flat columns", flat_columns),
    made("far from the origin", far_away),
    made("imbalanced 1:1000", imbalanced),
    made("nearly separable", nearly_separable),
    made("separable", separable),
    made("exclusive or", corners),
    made("word counts", counts),
    made("heavy tails", heavy_tails),
    made("whole numbers", whole_numbers),
    made("coin", coin),
    made("one column", one_column),
    made("six rows", six_rows),
    made("moons", moons),
    made("circles", circles),
    beside("heart", lambda at: dense(libsvm(at, "heart_scale")), slow=False),
    beside("fourclass", lambda at: dense(libsvm(at, "fourclass_scale")), slow=False),
    beside(
        "svmguide1", lambda at: head(arrays(at, "libsvm/svmguide1.npz", "x_train", "y_train"), 400)
    ),
    beside("mushrooms", lambda at: head(libsvm(at, "mushrooms"), 400)),
    beside("agaricus", lambda at: head(libsvm(at, "agaricus.train"), 300)),
    beside("a9a", lambda at: head(libsvm(at, "a9a"), 500)),
    beside("w8a", lambda at: head(libsvm(at, "w8a"), 600)),
    beside("banknote", lambda at: head(arrays(at, "banknote/banknote.npz", "x", "y"), 400)),
    beside("spambase", lambda at: head(scaled(arrays(at, "spambase/spambase.npz", "x", "y")), 400)),
    beside("covtype", lambda at: head(scaled(covtype(at)), 400)),
    beside("higgs", lambda at: head(scaled(higgs(at)), 400)),
]


def covtype(folder):
    return two(arrays(folder, "covtype_15k/covtype_15k.npz", "x", "y"), 0, 1)


def higgs(folder):
    return arrays(folder, "higgs_subsets/higgs_11k.npz", "x", "y")
