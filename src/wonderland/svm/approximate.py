"""Kernel machines on features of a low rank: any number of rows, memory of the order of the rank.

    minimise over w:   P(w) = Σ_i ω_i (y_i − ⟨w, φ(x_i)⟩)² + α‖w‖²

In memory Φ is made block by block and never held: one pass sums ΦᵀΩΦ and ΦᵀΩy, a second one at the
solution measures the gradient, corrects w by it and finds the leave-one-out errors
e_i = r_i/(1 − ω_i φ_iᵀ(ΦᵀΩΦ + αI)⁻¹φ_i). P is 2α-strongly convex: P(w) − min P ≤ ‖∇P‖²/(4α).
Chunks pass by once, into moments of doubled precision (`solve.sweep`).
Shapes: X (n, d), y (n, t), Φ (n, r), w (r, t), α (t,).
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl

from wonderland.core.evidence import Claim
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.low_rank import Approximation, Features
from wonderland.shell.streams import Stream
from wonderland.solve.problem import Array
from wonderland.solve.sweep import accumulate, solve_sweep
from wonderland.svm.kernel_model import FeatureModel

__all__ = ["FeatureFit", "fit_features", "stream_features"]

ENOUGH = 1e-12  # gradient, as a cosine, below which no correction is made
PASSES = 3  # corrections at most
FIRST = 20  # rows kept of the first chunks, for each landmark
FEWEST = 2000


class FeatureFit(NamedTuple):
    """What was found.

    Attributes:
        features: φ.
        coef: w (r, t).
        claims: Evidence.
    """

    features: Features
    coef: Array
    claims: list[Claim]

    def model(self, *, flat: bool) -> FeatureModel:
        """The fitted function; of one output where y was flat."""
        return FeatureModel(self.features, self.coef[:, 0] if flat else self.coef.T.copy())


class _Sums(NamedTuple):
    gram: Array  # (r, r)
    cross: Array  # (r, t)
    power: Array  # (t,)
    mass: float
    trace: float
    kept: float


class _Seen(NamedTuple):
    """What a pass at a solution sees, per output."""

    gradient: Array  # ΦᵀΩr − αw (r, t)
    rss: Array
    leave_one_out: Array


def fit_features(phi: Features, X: Any, y: Array, weight: Array | None, alpha: Array) -> FeatureFit:
    """Ridge regression on φ(X), which is never held.

    Args:
        phi: φ.
        X: (n, d), dense or CSR.
        y: (n, t).
        weight: ω (n,) or None.
        alpha: (t,) ≥ 0.

    >>> from wonderland.kernels import Linear, Nystroem
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> phi = Nystroem(3).features(Linear(), X, np.random.default_rng(0))
    >>> fit = fit_features(phi, X, X[:, :1], None, np.array([1e-8]))
    >>> bool(np.abs(fit.model(flat=True).predict(X) - X[:, 0]).max() < 1e-6)
    True
    """
    sums = _sum(phi, X, y, weight)
    solvers = [_Inverse(sums.gram, level) for level in alpha]
    w = np.stack([inverse(sums.cross[:, k]) for k, inverse in enumerate(solvers)], axis=1)
    norms = np.sqrt(np.maximum(np.diag(sums.gram), 0.0))[:, None] * np.sqrt(sums.power)
    norms = np.where(norms > 0, norms, 1.0)
    seen = _look(phi, X, y, weight, alpha, (w, solvers))
    for _ in range(PASSES):
        cosine = float(np.max(np.abs(seen.gradient) / norms, initial=0.0))
        if cosine <= ENOUGH:
            break
        moved = [inverse(seen.gradient[:, k]) for k, inverse in enumerate(solvers)]
        other = w + np.stack(moved, axis=1)
        after = _look(phi, X, y, weight, alpha, (other, solvers))
        if np.abs(after.gradient / norms).max() >= cosine:
            break  # at rounding level
        w, seen = other, after
    cosine = float(np.max(np.abs(seen.gradient) / norms, initial=0.0))
    claims = _claims(sums, seen, w, alpha, max(inverse.condition for inverse in solvers))
    claims.insert(1, _gradient_claim(cosine))
    return FeatureFit(phi, w, claims + phi.claims(sums.trace, sums.kept, X))


def _gradient_claim(cosine: float) -> Claim:
    return Claim.below(
        "gradient_norm",
        cosine,
        1e-8,
        "largest cosine of a feature and the residual, penalty included; zero at the optimum",
    )


class _Inverse:
    """(G + αI)⁻¹ by Cholesky; by eigenvalues where that fails."""

    def __init__(self, gram: Array, alpha: float) -> None:
        values, vectors = sl.eigh(gram, check_finite=False)
        shifted = np.maximum(values, 0.0) + alpha
        floor = len(gram) * np.finfo(float).eps * float(shifted.max(initial=0.0))
        self.kept = shifted > floor
        self.half = vectors[:, self.kept] / np.sqrt(shifted[self.kept])  # half·halfᵀ is the inverse
        self.freedom = float((np.maximum(values, 0.0)[self.kept] / shifted[self.kept]).sum())
        self.condition = float(shifted.max() / shifted.min()) if shifted.min() > 0 else np.inf

    def __call__(self, right: Array) -> Array:
        return self.half @ (self.half.T @ right)


def _sum(phi: Features, X: Any, y: Array, weight: Array | None) -> _Sums:
    r, t = phi.rank, y.shape[1]
    gram, cross, power = np.zeros((r, r)), np.zeros((r, t)), np.zeros(t)
    trace, kept = 0.0, 0.0
    for rows, block in phi.blocks(X):
        own = float((block * block).sum())
        heavy = block if weight is None else block * np.sqrt(weight[rows])[:, None]
        target = y[rows] if weight is None else y[rows] * np.sqrt(weight[rows])[:, None]
        gram += heavy.T @ heavy
        cross += heavy.T @ target
        power += (target**2).sum(axis=0)
        trace += float(np.sum(phi.own(X[rows])))
        kept += own
    return _Sums(gram, cross, power, _mass(weight, len(y)), trace, kept)


def _mass(weight: Array | None, n: int) -> float:
    return float(n if weight is None else weight.sum())


def _look(
    phi: Features,
    X: Any,
    y: Array,
    weight: Array | None,
    alpha: Array,
    found: tuple[Array, list[_Inverse]],
) -> _Seen:
    w, solvers = found
    gradient, rss, out = -alpha * w, np.zeros(len(alpha)), np.zeros(len(alpha))
    for rows, block in phi.blocks(X):
        omega = np.ones((len(block), 1)) if weight is None else weight[rows][:, None]
        residual = y[rows] - block @ w
        gradient += block.T @ (omega * residual)
        rss += (omega * residual**2).sum(axis=0)
        spare = 1.0 - omega * _leverage(block, solvers)
        out += (omega * (residual / spare) ** 2).sum(axis=0)
    return _Seen(gradient, rss, out)


def _leverage(block: Array, solvers: list[_Inverse]) -> Array:
    """φᵀ(G + αI)⁻¹φ (b, t)."""
    made: dict[int, Array] = {}
    for inverse in solvers:
        if id(inverse) not in made:
            scores = block @ inverse.half
            made[id(inverse)] = np.einsum("ij,ij->i", scores, scores)
    return np.stack([made[id(inverse)] for inverse in solvers], axis=1)


def _claims(sums: _Sums, seen: _Seen, w: Array, alpha: Array, condition: float) -> list[Claim]:
    primal = float((seen.rss + alpha * (w**2).sum(axis=0)).sum())
    slack = (seen.gradient**2).sum(axis=0)
    gap = float(np.sum(np.where(alpha > 0, slack / np.where(alpha > 0, alpha, 1.0), np.inf)))
    return [
        Claim.fact("solver", "normal equations", "features made by blocks, corrected on the data"),
        Claim.fact("condition_number", condition, "2-norm of ΦᵀΩΦ + αI"),
        Claim.fact("primal", primal, "Σω(y − f)² + α‖w‖² over the training rows and outputs"),
        Claim.fact("dual", primal - gap, "a lower bound on its minimum"),
        Claim.fact(
            "duality_gap",
            gap,
            "‖∇P‖²/4α, which bounds P − min P by strong convexity (infinite for α = 0)",
        ),
        Claim.fact(
            "leave_one_out_error",
            float(seen.leave_one_out.sum() / sums.mass),
            "exact mean squared error on each row by the fit without it, φ unchanged",
        ),
    ]


def stream_features(
    resolve: Callable[[Any], Kernel],
    approximation: Approximation,
    stream: Stream,
    alpha: Array,
    chance: np.random.Generator,
) -> tuple[Kernel, FeatureFit]:
    """One pass over chunks; kernel widths and landmarks come from the first of them.

    Args:
        resolve: From the first rows to the kernel.
        approximation: The recipe.
        stream: Chunks (X, y, ω).
        alpha: (t,).
        chance: For the draws.
    """
    chunks = iter(stream.chunks)
    wanted = max(FEWEST, FIRST * int(getattr(approximation, "rank", 0)))
    first: list[Any] = []
    for chunk in chunks:
        first.append(chunk)
        if sum(len(part[0]) for part in first) >= wanted:
            break
    rows = np.concatenate([part[0] for part in first])
    kernel = resolve(rows)
    phi = approximation.features(kernel, rows, chance)
    sizes = [0.0, 0.0]

    def mapped() -> Iterator[tuple[Array, Array, Array | None]]:
        for X, y, weight in chain(first, chunks):
            for part, block in phi.blocks(X):
                sizes[0] += float(np.sum(phi.own(X[part])))
                sizes[1] += float((block * block).sum())
                yield block, y[part], None if weight is None else weight[part]

    totals = accumulate(mapped(), fit_intercept=False)
    fit = solve_sweep(totals, alpha, fit_intercept=False)
    primal = float((fit.rss + alpha * (fit.coef**2).sum(axis=0)).sum())
    claims = [
        Claim.fact("solver", fit.solver, fit.reason),
        _gradient_claim(fit.gradient),
        Claim.fact("condition_number", fit.condition, f"of the features: {fit.condition_how}"),
        Claim.fact("primal", primal, "Σω(y − f)² + α‖w‖² over the rows and outputs"),
    ]
    return kernel, FeatureFit(phi, fit.coef, claims + phi.claims(sizes[0], sizes[1], rows))
