"""The two precisions of Bayesian regression at the maximum of the evidence.

With a the precision of the noise, λ that of the prior, κ = λ/a and the table in its axes
(`bayesian_axes`),

    log p(y | a, λ) = ½ Σ_j log κ/(s_j + κ) + N/2 log a/2π − a B(κ),
    B(κ) = ½ (rest + Σ_j c_j² κ/(s_j + κ)),

to which the Gamma priors of both precisions add a₁ log a − a₂ a + l₁ log λ − l₂ λ. For given κ the
best a is in closed form, so that one variable t = log κ is left. A grid over all t finds the right
hill; Newton's method with exact derivatives ends at its top.

Reference: MacKay (1992), Bayesian interpolation; Tipping (2001), appendix A.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.errors import InputError
from wonderland.core.status import Status
from wonderland.linear.bayesian_axes import Axes

__all__ = ["Fixed", "Gammas", "Levels", "levels_of", "log_evidence"]

POINTS = 401  # of the grid: an e-fold apart or less
NOTHING = 1e-28  # of Σω(y − ȳ)²: a rest that is rounding
BELOW, ABOVE = 60.0, 60.0  # how far the grid goes beyond the values s, in log κ


class Gammas(NamedTuple):
    """Shape and rate of the Gamma priors: a₁, a₂ of the noise precision, l₁, l₂ of the prior's."""

    alpha_1: Any = 0.0
    alpha_2: Any = 0.0
    lambda_1: Any = 0.0
    lambda_2: Any = 0.0


class Fixed(NamedTuple):
    """Precisions that are known; None where the evidence chooses."""

    noise: Any = None
    prior: Any = None


class Levels(NamedTuple):
    """What the evidence chose.

    Attributes:
        noise: a = 1/σ².
        prior: λ.
        slopes: ∂/∂log a and ∂/∂log λ of the objective; zero where a precision is fixed.
        steps: Newton steps.
        trace: The objective at each step, the last being the value reached.
        inner: Whether the maximum is inside the range searched.
        status: How it ended.
    """

    noise: float
    prior: float
    slopes: tuple[float, float]
    steps: int
    trace: np.ndarray
    inner: bool
    status: Status


class _Sums(NamedTuple):
    """Sums over axes at t: S = ½ Σ log κ/(s + κ), B, and two derivatives in t of each."""

    S: Any
    S1: Any
    S2: Any
    B: Any
    B1: Any
    B2: Any


def _sums(axes: Axes, t: np.ndarray) -> _Sums:
    """At several t (g,)."""
    kappa = np.exp(t)[:, None]
    s, q = axes.values[None, :], axes.along[None, :] ** 2
    share = s / (s + kappa)  # of the data in each axis
    left = kappa / (s + kappa)
    bend = share * left
    return _Sums(
        0.5 * np.log(left).sum(axis=1),
        0.5 * share.sum(axis=1),
        -0.5 * bend.sum(axis=1),
        0.5 * (axes.rest + (q * left).sum(axis=1)),
        0.5 * (q * bend).sum(axis=1),
        0.5 * (q * bend * (share - left)).sum(axis=1),
    )


Curve = Callable[[np.ndarray], tuple[Any, Any, Any]]  # t (g,) → objective and two derivatives


def _free(axes: Axes, gammas: Gammas) -> Curve:
    """Both precisions free: a = M/P is in closed form."""
    M = 0.5 * axes.mass + gammas.alpha_1 + gammas.lambda_1
    constant = M * np.log(M) - M - 0.5 * axes.mass * np.log(2 * np.pi)

    def curve(t: np.ndarray) -> tuple[Any, Any, Any]:
        at, pull = _sums(axes, t), gammas.lambda_2 * np.exp(t)
        P, P1, P2 = at.B + gammas.alpha_2 + pull, at.B1 + pull, at.B2 + pull
        value = at.S + gammas.lambda_1 * t - M * np.log(P) + constant
        slope = at.S1 + gammas.lambda_1 - M * P1 / P
        return value, slope, at.S2 - M * (P2 / P - (P1 / P) ** 2)

    return curve


def _noise_known(axes: Axes, gammas: Gammas, a: float) -> Curve:
    constant = (0.5 * axes.mass + gammas.alpha_1 + gammas.lambda_1) * np.log(a)
    constant -= gammas.alpha_2 * a + 0.5 * axes.mass * np.log(2 * np.pi)

    def curve(t: np.ndarray) -> tuple[Any, Any, Any]:
        at, pull = _sums(axes, t), gammas.lambda_2 * np.exp(t)
        value = at.S + gammas.lambda_1 * t - a * (at.B + pull) + constant
        slope = at.S1 + gammas.lambda_1 - a * (at.B1 + pull)
        return value, slope, at.S2 - a * (at.B2 + pull)

    return curve


def _prior_known(axes: Axes, gammas: Gammas, lam: float) -> Curve:
    M = 0.5 * axes.mass + gammas.alpha_1
    constant = (M + gammas.lambda_1) * np.log(lam) - gammas.lambda_2 * lam
    constant -= 0.5 * axes.mass * np.log(2 * np.pi)

    def curve(t: np.ndarray) -> tuple[Any, Any, Any]:
        at, a = _sums(axes, t), lam * np.exp(-t)
        P = at.B + gammas.alpha_2
        value = at.S - M * t - a * P + constant
        slope = at.S1 - M - a * (at.B1 - P)
        return value, slope, at.S2 - a * (at.B2 - 2.0 * at.B1 + P)

    return curve


def levels_of(
    axes: Axes, gammas: Gammas, fixed: Fixed, *, tol: float = 1e-3, max_iter: int = 300
) -> Levels:
    """The precisions at the maximum.

    Args:
        axes: The table.
        gammas: Priors of the precisions.
        fixed: Precisions that are known.
        tol: Bound on the slopes in nats per e-fold; Newton's method goes on to rounding.
        max_iter: Most steps.
    """
    if fixed.noise is not None and fixed.prior is not None:
        value = log_evidence(axes, fixed.noise, fixed.prior, gammas)
        pair = float(fixed.noise), float(fixed.prior)
        return Levels(*pair, (0.0, 0.0), 0, np.array([value]), inner=True, status=Status.SOLVED)
    if fixed.noise is not None:
        curve = _noise_known(axes, gammas, fixed.noise)
    elif gammas.alpha_2 == 0 and axes.rest <= NOTHING * float(axes.along @ axes.along):
        raise InputError(
            "the table reproduces y exactly: the evidence grows without end as the noise vanishes",
            "a noise that the data or a prior can tell",
            "Pass noise_variance, or leave alpha_1 and alpha_2 at their defaults",
        )
    elif fixed.prior is not None:
        curve = _prior_known(axes, gammas, fixed.prior)
    else:
        curve = _free(axes, gammas)
    t, trace, inner, steps = _top(curve, _grid(axes), max_iter)
    noise, prior = _both(axes, gammas, fixed, t)
    slopes = _slopes(axes, gammas, fixed, noise, prior)
    reached = max(map(abs, slopes)) <= tol or not inner
    status = Status.CONVERGED if reached else Status.ITERATIONS
    return Levels(noise, prior, slopes, steps, trace, inner, status)


def _grid(axes: Axes) -> np.ndarray:
    positive = axes.values[axes.values > 0]
    low, high = (positive[-1], positive[0]) if len(positive) else (1.0, 1.0)
    return np.linspace(np.log(low) - BELOW, np.log(high) + ABOVE, POINTS)


def _top(curve: Curve, grid: np.ndarray, max_iter: int) -> tuple[float, np.ndarray, bool, int]:
    """t, the objective on the way, whether t is inside the grid, Newton steps."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        values = np.concatenate([curve(part)[0] for part in np.array_split(grid, 16)])
    best = int(np.nanargmax(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    if not low < grid[best] < high:
        return float(grid[best]), values[best : best + 1], False, 0
    t, trace = float(grid[best]), [float(values[best])]
    for step in range(max_iter):
        value, slope, bend = (float(part[0]) for part in curve(np.array([t])))
        trace.append(value)
        low, high = (t, high) if slope > 0 else (low, t)
        new = t - slope / bend if bend < 0 else np.nan
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - t) <= 1e-13 * max(abs(t), 1.0) or slope == 0:
            return t, np.array(trace), True, step
        t = new
    return t, np.array(trace), True, max_iter


def _both(axes: Axes, gammas: Gammas, fixed: Fixed, t: float) -> tuple[float, float]:
    """a and λ at t."""
    if fixed.noise is not None:
        return float(fixed.noise), float(fixed.noise * np.exp(t))
    if fixed.prior is not None:
        return float(fixed.prior * np.exp(-t)), float(fixed.prior)
    M = 0.5 * axes.mass + gammas.alpha_1 + gammas.lambda_1
    B = _sums(axes, np.array([t])).B[0]
    P = B + gammas.alpha_2 + gammas.lambda_2 * np.exp(t)
    noise = M / max(float(P), np.finfo(float).tiny)
    return noise, noise * float(np.exp(t))


def _slopes(
    axes: Axes, gammas: Gammas, fixed: Fixed, noise: float, prior: float
) -> tuple[float, float]:
    """∂/∂log a and ∂/∂log λ from the posterior itself: ½(N − γ − a·rss) and ½(γ − λ‖w‖²)."""
    s, c = axes.values, axes.along
    share = noise * s / (noise * s + prior)
    gamma = float(share.sum())
    rss = axes.rest + float(np.sum(((1.0 - share) * c) ** 2))
    norm = float(np.sum(s * (noise * c / (noise * s + prior)) ** 2))
    of_noise = 0.5 * (axes.mass - gamma - noise * rss) + gammas.alpha_1 - gammas.alpha_2 * noise
    of_prior = 0.5 * (gamma - prior * norm) + gammas.lambda_1 - gammas.lambda_2 * prior
    return (
        0.0 if fixed.noise is not None else float(of_noise),
        0.0 if fixed.prior is not None else float(of_prior),
    )


def log_evidence(axes: Axes, noise: float, prior: float, gammas: Gammas | None = None) -> float:
    """log p(y | a, λ), with the priors of a and λ where `gammas` is given."""
    at = _sums(axes, np.array([np.log(prior / noise)]))
    value = float(at.S[0]) + 0.5 * axes.mass * np.log(noise / (2 * np.pi)) - noise * float(at.B[0])
    if gammas is not None:
        value += gammas.alpha_1 * np.log(noise) - gammas.alpha_2 * noise
        value += gammas.lambda_1 * np.log(prior) - gammas.lambda_2 * prior
    return float(value)
