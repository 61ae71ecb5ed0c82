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


def _overlap(x, z):
    return (1.0 + x @ z) ** 2


wl.storable(_overlap)

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

KERNELS = [
    Part("linear", wl.kernels.Linear),
    Part("quadratic", lambda: wl.kernels.Polynomial(2)),
    Part("cubic", lambda: wl.kernels.Polynomial(3, gamma=0.5, coef0=2.0)),
    Part("quintic", lambda: wl.kernels.Polynomial(5, gamma=0.3)),
    Part("gaussian", lambda: wl.kernels.Gaussian(0.3)),
    Part("laplace", lambda: wl.kernels.Laplace(0.3)),
    Part("matern 1/2", lambda: wl.kernels.Matern(1.5, nu=0.5)),
    Part("matern 3/2", lambda: wl.kernels.Matern(1.5, nu=1.5)),
    Part("matern 5/2", lambda: wl.kernels.Matern(1.5, nu=2.5)),
    Part("sigmoid", lambda: wl.kernels.Sigmoid(0.2, -0.5)),
    Part("cosine", wl.kernels.Cosine),
    Part("sum", lambda: wl.kernels.Gaussian(0.5) + 0.2 * wl.kernels.Linear()),
    Part("product", lambda: wl.kernels.Laplace(0.1) * wl.kernels.Polynomial(2)),
    Part("function of pairs", lambda: wl.kernels.Function(_overlap, positive=True)),
]

LOSSES = [
    Part("zero-one", wl.losses.ZeroOne),
    Part("margin", wl.losses.Margin),
    Part("perceptron", wl.losses.Perceptron),
    Part("hinge", wl.losses.Hinge),
    Part("squared hinge", wl.losses.SquaredHinge),
    Part("logistic", wl.losses.Logistic),
    Part("exponential", wl.losses.Exponential),
    Part("sigmoid", lambda: wl.losses.Tilted(-1.0)),
    Part("forgiving", lambda: wl.losses.Tilted(-3.0)),
    Part("untilted", lambda: wl.losses.Tilted(0.0)),
    Part("between logistic and exponential", lambda: wl.losses.Tilted(0.5)),
    Part("tilted to exponential", lambda: wl.losses.Tilted(1.0)),
    Part("binary cross-entropy", wl.losses.BinaryCrossEntropy),
    Part("cross-entropy", wl.losses.CrossEntropy),
    Part("squared", wl.losses.Squared),
    Part("absolute", wl.losses.Absolute),
    Part("huber", wl.losses.Huber),
    Part("wide huber", lambda: wl.losses.Huber(2.5)),
    Part("tube", lambda: wl.losses.EpsilonInsensitive(0.5)),
    Part("squared tube", lambda: wl.losses.SquaredEpsilonInsensitive(0.5)),
    Part("median", wl.losses.Quantile),
    Part("upper quantile", lambda: wl.losses.Quantile(0.9)),
    Part("normal", wl.losses.GaussianNLL),
    Part("narrow normal", lambda: wl.losses.GaussianNLL(0.25)),
]

PENALTIES = [
    Part("none", wl.penalties.NoPenalty),
    Part("L2", lambda: wl.penalties.L2(0.7)),
    Part("L2, one strength each", lambda: wl.penalties.L2(np.array([0.5, 0.5, 2.0, 3.0]))),
    Part("L1", lambda: wl.penalties.L1(0.7)),
    Part("elastic net", lambda: wl.penalties.ElasticNet(0.7, 0.4)),
    Part("elastic net, all L1", lambda: wl.penalties.ElasticNet(0.7, 1.0)),
    Part("elastic net, all L2", lambda: wl.penalties.ElasticNet(0.7, 0.0)),
    Part("groups", lambda: wl.penalties.Group(0.7, [0, 1, 0, 1])),
    Part("box", lambda: wl.penalties.Box(-0.5, 1.0)),
    Part("half-line", lambda: wl.penalties.Box(0.0)),
]

# A layer maps one sample of `features` numbers; dropout is tried by a law of its own besides.
LAYERS = [
    Part("relu", lambda: wl.nn.relu, 4),
    Part("leaky relu", lambda: wl.nn.LeakyReLU(0.1), 4),
    Part("prelu", lambda: wl.nn.PReLU(4), 4),
    Part("prelu, one slope", wl.nn.PReLU, 4),
    Part("sigmoid", lambda: wl.nn.Sigmoid(3.0), 4),
    Part("tanh", lambda: wl.nn.tanh, 4),
    Part("softplus", lambda: wl.nn.softplus, 4),
    Part("elu", lambda: wl.nn.ELU(0.7), 4),
    Part("gelu", lambda: wl.nn.gelu, 4),
    Part("silu", lambda: wl.nn.silu, 4),
    Part("identity", lambda: wl.nn.identity, 4),
    Part("linear", lambda: wl.nn.Linear(4, 3, key=0), 4),
    Part("linear, no bias", lambda: wl.nn.Linear(4, 3, key=0, bias=False), 4),
    Part("dropout", lambda: wl.nn.Dropout(0.3), 4),
    Part("batch norm", lambda: wl.nn.BatchNorm(4), 4),
    Part("layer norm", lambda: wl.nn.LayerNorm(4), 4),
    Part("residual", lambda: wl.nn.Residual(wl.nn.Linear(4, 4, key=0)), 4),
    Part("embedding", lambda: wl.nn.Embedding(5, 3, key=0)),
    Part(
        "periodic",
        lambda: wl.nn.NumericalEmbedding(wl.nn.Periodic(4, 6, key=0), 4, 5, key=1),
        4,
    ),
    Part(
        "piecewise linear",
        lambda: wl.nn.NumericalEmbedding(
            wl.nn.PiecewiseLinear([[-9.0, -0.5, 0.0, 0.5, 9.0]] * 4), 4, 6, key=1
        ),
        4,
    ),
    Part("mlp", lambda: wl.nn.MLP((4, 8, 7, 2), "tanh", key=0), 4),
    Part(
        "mlp, batch norm, dropout, prelu",
        lambda: wl.nn.MLP((4, 8, 2), "prelu", dropout=0.2, norm="batch", key=0),
        4,
    ),
    Part("network for tables", lambda: wl.nn.TabularNet(3, (3,), 2, width=8, key=0), 4),
]

# Claims every linear fit makes, and those descent adds.
CLAIMS = ("condition_number", "rank", "gradient_norm", "digits", "solver", "collinear")
DESCENT_CLAIMS = ("lipschitz", "strong_convexity", "iterations", "iteration_bound")


@dataclass(frozen=True)
class Labels(Part):
    """A classifier, and what the laws of classifiers may ask of it.

    Attributes:
        two: Whether it takes two classes only.
        ordered: Whether the fit does not depend on the order of the samples.
        votes: Whether several classes are decided by votes of pairs: `model_` holds the scores of
            the pairs, and a tie of votes goes to the first class, as in LIBSVM.
        claims: Names its evidence must hold.
    """

    two: bool = False
    votes: bool = False
    ordered: bool = True
    claims: tuple[str, ...] = ("solver",)


LOGISTIC = ("solver", "gradient_norm", "primal", "iterations", "separable", "log_likelihood")

MARGIN = (
    *("solver", "primal", "dual", "duality_gap", "kkt_violation", "iterations"),
    *("support_vectors", "margin", "separable"),
)

ONLINE = ("solver", "separable", "mistakes", "margin", "radius", "cycle")

# One line for each classifier and variant; each owner adds their own.
CLASSIFIERS = [
    Labels("logistic", wl.LogisticRegression, claims=(*LOGISTIC, "dual", "duality_gap")),
    Labels(
        "logistic, no intercept",
        lambda: wl.LogisticRegression(fit_intercept=False, C=0.3),
        claims=(*LOGISTIC, "dual", "duality_gap"),
    ),
    Labels(
        "logistic, trust region",
        lambda: wl.LogisticRegression(solver="trust-region", tol=1e-9),
        exact=False,
        claims=LOGISTIC,
    ),
    Labels("logistic, prior", lambda: wl.LogisticRegression(prior=(0.5, 2.0)), claims=LOGISTIC),
    Labels(
        "bayesian logistic",
        wl.BayesianLogisticRegression,
        claims=(*LOGISTIC, "log_marginal_likelihood", "effective_parameters"),
    ),
    Labels(
        "logistic, elastic net",
        lambda: wl.LogisticRegression(l1_ratio=0.4, tol=1e-12, max_iter=1000),
        exact=False,
        claims=LOGISTIC,
    ),
    Labels(
        "kernel machine",
        wl.SVC,
        exact=False,
        votes=True,
        claims=("primal", "dual", "duality_gap"),
    ),
    Labels("linear svc", wl.LinearSVC, exact=False, claims=(*MARGIN, "gradient_norm")),
    Labels("linear svc, hinge", lambda: wl.LinearSVC(loss="hinge"), exact=False, claims=MARGIN),
    Labels(
        "linear svc, no intercept",
        lambda: wl.LinearSVC(fit_intercept=False, C=0.3, class_weight="balanced"),
        exact=False,
        claims=MARGIN,
    ),
    Labels(
        "linear svc, sparse penalty",
        lambda: wl.LinearSVC(penalty="l1", tol=1e-12),
        exact=False,
        claims=("solver", "primal", "dual", "duality_gap", "gradient_norm", "iterations"),
    ),
    Labels("perceptron", wl.Perceptron, repeats=False, ordered=False, claims=ONLINE),
    Labels(
        "perceptron, pairs",
        lambda: wl.Perceptron(multi_class="ovo", variant="averaged", penalty="l2"),
        repeats=False,
        ordered=False,
        claims=ONLINE,
    ),
    Labels(
        "perceptron, voted",
        lambda: wl.Perceptron(multi_class="ovo", variant="voted", shuffle=False),
        repeats=False,
        ordered=False,
        claims=ONLINE,
    ),
]
