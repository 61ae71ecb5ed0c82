"""One line per part: whatever is listed here is tried by every law of its family."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import wonderland as wl


@dataclass(frozen=True)
class Part:
    """How to make one part, and what its family's laws may ask of it.

    Attributes:
        name: Shown in test ids.
        make: Builds an unfitted estimator, or a basis.
        features: Number of columns it needs; None for any.
        exact: Solved to rounding level, so that laws hold to their default tolerance.
        repeats: Whether a weight is a number of copies (leave-one-out leaves out one of them).
        separate: Whether outputs are fitted independently.
    """

    name: str
    make: Callable[[], Any]
    features: int | None = None
    exact: bool = True
    repeats: bool = True
    separate: bool = True

    @property
    def rtol(self) -> float:
        """What laws allow this part."""
        return 1e-8 if self.exact else 1e-5


def _squares(X):
    return X**2


wl.storable(_squares)

LINEAR = [
    Part("least squares", wl.LinearRegression),
    Part("no intercept", lambda: wl.LinearRegression(fit_intercept=False)),
    Part("direct", lambda: wl.LinearRegression(solver="direct")),
    Part("descent", lambda: wl.LinearRegression(solver="descent", tol=1e-12), exact=False),
    Part(
        "plain descent",
        lambda: wl.LinearRegression(solver="descent", momentum=False, tol=1e-12),
        exact=False,
    ),
    Part("positive", lambda: wl.LinearRegression(positive=True), exact=False),
    Part("polynomial", lambda: wl.LinearRegression(basis=wl.bases.Polynomial(2))),
    Part("callable basis", lambda: wl.LinearRegression(basis=_squares)),
    Part("ridge", wl.Ridge),
    Part("ridge, no intercept", lambda: wl.Ridge(0.3, fit_intercept=False)),
    Part("ridge, strong", lambda: wl.Ridge(1e3)),
    Part("ridge, cholesky", lambda: wl.Ridge(solver="cholesky")),
    Part("ridge, lsqr", lambda: wl.Ridge(solver="lsqr", tol=1e-13), exact=False),
    Part("ridge, descent", lambda: wl.Ridge(solver="descent", tol=1e-12), exact=False),
    Part("ridge, positive", lambda: wl.Ridge(positive=True), exact=False),
    Part("ridge, fourier", lambda: wl.Ridge(basis=wl.bases.Fourier(2, period=8.0))),
    Part("ridge loo", lambda: wl.Ridge("loo"), repeats=False, separate=False),
    Part(
        "ridge gradient", lambda: wl.Ridge("gradient"), exact=False, repeats=False, separate=False
    ),
]

BASES = [
    Part("line", lambda: wl.bases.Polynomial(1)),
    Part("parabola", lambda: wl.bases.Polynomial(2)),
    Part("quintic", lambda: wl.bases.Polynomial(5)),
    Part("powers", lambda: wl.bases.Polynomial(4, interaction=False)),
    Part("one wave", lambda: wl.bases.Fourier(1)),
    Part("waves", lambda: wl.bases.Fourier(4, period=3.0)),
    Part("bumps", lambda: wl.bases.RadialBasis(np.linspace(-2, 2, 5), 0.7), features=1),
    Part("bumps in a plane", lambda: wl.bases.RadialBasis(np.eye(2), 1.5), features=2),
]

# Claims every linear fit makes, and those descent adds.
CLAIMS = ("condition_number", "rank", "gradient_norm", "digits", "solver", "collinear")
DESCENT_CLAIMS = ("lipschitz", "strong_convexity", "iterations", "iteration_bound")
