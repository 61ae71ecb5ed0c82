"""Samples drawn from a seed, together with what they were drawn from."""

import numpy as np

from wonderland.core.errors import InputError
from wonderland.datasets.dataset import Dataset

__all__ = ["make_blobs", "make_circles", "make_moons", "make_separable", "make_sparse_logistic"]


def make_separable(n: int = 200, d: int = 2, *, margin: float = 0.1, seed: int = 0) -> Dataset:
    """Samples of a ball, none nearer than `margin` to a plane that separates their labels.

    y_i (w·x_i + b) ≥ margin,  ‖w‖ = 1,  ‖x_i‖ ≤ 1 + margin

    Args:
        n: Samples, at least two.
        d: Columns.
        margin: Distance > 0 of every sample from the plane.
        seed: Of the draw.

    >>> sample = make_separable(50, 3, margin=0.2)
    >>> w, b = sample.truth["coef"], sample.truth["intercept"]
    >>> bool((sample.y * (sample.X @ w + b)).min() >= 0.2 - 1e-12)
    True
    """
    _refuse(n >= 2 and d >= 1, f"n={n}, d={d}", "n ≥ 2 and d ≥ 1")
    _refuse(margin > 0, f"margin={margin}", "a margin > 0")
    rng = np.random.default_rng(seed)
    w = _direction(rng, d)
    b = rng.uniform(-0.3, 0.3)
    X = rng.normal(size=(n, d))
    X *= (rng.random(n) ** (1 / d) / np.linalg.norm(X, axis=1))[:, None]
    score = X @ w + b
    y = np.where(score > 0, 1, -1)
    y[:2] = -1, 1  # both classes, whatever was drawn
    # Samples are moved away from the plane, along its normal, to their own side of it.
    aim = y * (margin + np.abs(score))
    X += (np.where(y * score >= margin, score, aim) - score)[:, None] * w
    return Dataset(
        name=f"{n} samples in {d} dimensions, {margin:g} or more from a plane",
        X=X,
        y=y,
        features=_columns(d),
        source=f"drawn from seed {seed}",
        truth={"coef": w, "intercept": b, "margin": margin},
    )


def make_blobs(
    n: int = 300, d: int = 2, *, classes: int = 3, spread: float = 1.0, seed: int = 0
) -> Dataset:
    """Gaussian clouds around centres drawn from a cube of side 20.

    Args:
        n: Samples, shared out evenly.
        d: Columns.
        classes: Clouds.
        spread: Standard deviation of each.
        seed: Of the draw.

    >>> make_blobs(9, classes=3).y.tolist()
    [0, 1, 2, 0, 1, 2, 0, 1, 2]
    """
    _refuse(n >= classes >= 1 and d >= 1, f"n={n}, classes={classes}", "n ≥ classes ≥ 1")
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-10, 10, size=(classes, d))
    y = np.arange(n) % classes
    X = centres[y] + spread * rng.normal(size=(n, d))
    return Dataset(
        name=f"{classes} clouds of {n} samples in {d} dimensions",
        X=X,
        y=y,
        features=_columns(d),
        source=f"drawn from seed {seed}",
        truth={"centres": centres},
    )


def make_moons(n: int = 200, *, noise: float = 0.1, seed: int = 0) -> Dataset:
    """Two half circles that reach into each other.

    >>> make_moons(4, noise=0.0).X.round(2).tolist()
    [[1.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [2.0, 0.5]]
    """
    _refuse(n >= 2, f"n={n}", "n ≥ 2")
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    rank = np.arange(n) // 2
    counts = np.bincount(y)
    angle = np.pi * rank / np.maximum(counts[y] - 1, 1)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lower = np.stack([1.0 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
    X = np.where(y[:, None] == 0, upper, lower) + noise * rng.normal(size=(n, 2))
    return Dataset("two half moons", X, y, ("x", "y"), f"drawn from seed {seed}", {})


def make_circles(
    n: int = 200, *, noise: float = 0.05, factor: float = 0.5, seed: int = 0
) -> Dataset:
    """A circle (label 1) within a circle (label 0); no line separates them, a quadric does.

    Args:
        n: Samples, shared out evenly.
        noise: Standard deviation in both coordinates.
        factor: Radius of the inner circle, the outer one being 1.
        seed: Of the draw.

    >>> sample = make_circles(6, noise=0.0)
    >>> np.linalg.norm(sample.X, axis=1).round(12).tolist()
    [1.0, 0.5, 1.0, 0.5, 1.0, 0.5]
    """
    _refuse(n >= 2 and 0 < factor < 1, f"n={n}, factor={factor}", "n ≥ 2 and 0 < factor < 1")
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle = 2 * np.pi * rng.random(n)
    radius = np.where(y == 1, factor, 1.0)
    X = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X += noise * rng.normal(size=(n, 2))
    return Dataset("a circle within a circle", X, y, ("x", "y"), f"drawn from seed {seed}", {})


def make_sparse_logistic(
    n: int = 1000, d: int = 100, *, informative: int = 10, noise: float = 1.0, seed: int = 0
) -> Dataset:
    """Labels of a logistic model in which few columns matter: p(y = 1 | x) = σ((w·x)/noise).

    Args:
        n: Samples.
        d: Columns, standard normal.
        informative: How many have a coefficient that is not zero (±1).
        noise: Temperature: labels are surer as it falls.
        seed: Of the draw.

    >>> sample = make_sparse_logistic(50, 20, informative=3)
    >>> int(np.count_nonzero(sample.truth["coef"])), sorted(set(sample.y.tolist()))
    (3, [0, 1])
    """
    _refuse(0 <= informative <= d, f"informative={informative}", f"0 ≤ informative ≤ d = {d}")
    _refuse(noise > 0, f"noise={noise}", "noise > 0")
    rng = np.random.default_rng(seed)
    w = np.zeros(d)
    w[rng.permutation(d)[:informative]] = rng.choice([-1.0, 1.0], size=informative)
    X = rng.normal(size=(n, d))
    y = (rng.logistic(size=n) * noise < X @ w).astype(int)
    return Dataset(
        name=f"{n} samples of a logistic model, {informative} of {d} columns matter",
        X=X,
        y=y,
        features=_columns(d),
        source=f"drawn from seed {seed}",
        truth={"coef": w, "noise": noise},
    )


def _direction(rng: np.random.Generator, d: int) -> np.ndarray:
    w = rng.normal(size=d)
    return w / np.linalg.norm(w)


def _columns(d: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(d))


def _refuse(fits: bool, came: str, expected: str) -> None:  # noqa: FBT001  # the condition itself
    if not fits:
        raise InputError(came, expected, "Change that argument")
