"""Trust-region Newton with preconditioned conjugate gradients, and accelerated gradient descent.

    s_t ≈ argmin ∇fᵀs + ½sᵀ∇²f s   over ‖s‖_M ≤ Δ_t        (Steihaug's conjugate gradients)

M is the metric's own norm, so that the region has the shape of the problem. The Hessian is used by
products alone: for tables too wide for a matrix of it. The radius grows where the quadratic has
told the truth, ρ = (decrease)/(predicted decrease), and shrinks where it has not.

Both are searches as in `solve.newton` and run beside others under `drive`. Shapes: θ (p,).

References: Steihaug (1983); Lin, Weng & Keerthi (2008); O'Donoghue & Candès (2015) for restarts.
"""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from wonderland.core.status import Status
from wonderland.solve.newton import Ask, End, Found, Rules, Search
from wonderland.solve.newton_metric import Metric

__all__ = ["accelerated", "trust_region"]

TURNS = 250  # of conjugate gradients, at most, for one step
UNIT = float(np.finfo(float).eps)


class _Step(NamedTuple):
    """A step, the decrease the quadratic predicts, its M-norm, and whether it met the border."""

    step: np.ndarray
    predicted: float
    length: float
    border: bool = False


def trust_region(theta: np.ndarray, rules: Rules) -> Search:
    """Minimise from θ; every accepted point renews the metric."""
    found = yield Ask(theta, hessian=True)
    radius, count, taken = np.inf, 0, np.zeros_like(theta)
    while True:
        metric = _metric(found)
        decrement = 0.5 * float(found.gradient @ metric.solve(found.gradient))
        status = _ended(found, decrement, count, rules)
        if status is not Status.RUNNING:
            return End(
                theta, found.value, found.gradient, metric, decrement, count, 0, status, taken
            )
        moved = yield from _conjugate(theta, found, metric, radius)
        trial = yield Ask(theta + moved.step, hessian=True)
        count += 1
        radius, accepted = _judge(found, trial, moved, radius)
        if accepted:
            theta, found, taken = theta + moved.step, trial, moved.step
        elif radius <= UNIT * float(np.linalg.norm(theta)):
            rules = rules._replace(max_iter=0)


def _metric(found: Found) -> Metric:
    if found.metric is None:
        raise LookupError("the evaluation left out the metric it was asked for")
    return found.metric


def _ended(found: Found, decrement: float, count: int, rules: Rules) -> Status:
    if not (np.isfinite(found.value) and np.isfinite(decrement)):
        return Status.DIVERGED
    if found.value <= rules.floor:
        return Status.SEPARATED
    certified = float(np.max(np.abs(found.gradient), initial=0.0)) <= rules.tol
    if certified and decrement <= max(rules.precision, UNIT**2) * abs(found.value):
        return Status.CONVERGED
    return Status.ITERATIONS if count >= rules.max_iter else Status.RUNNING


def _judge(found: Found, trial: Found, moved: _Step, radius: float) -> tuple[float, bool]:
    """The next radius, and whether the step is taken."""
    if not np.isfinite(trial.value):
        return 0.1 * moved.length, False
    slack = 64 * UNIT * abs(found.value)
    ratio = (found.value - trial.value + slack) / (moved.predicted + slack)
    if ratio < 0.25:
        return 0.25 * moved.length, ratio > 1e-4
    if ratio > 0.75 and moved.border:
        radius = 3.0 * radius
    return radius, True


def _conjugate(
    theta: np.ndarray, found: Found, metric: Metric, radius: float
) -> Generator[Ask, Found, _Step]:
    """Conjugate gradients on the quadratic, up to the border; accurate as ∇f grows small."""
    step, g = np.zeros_like(theta), found.gradient
    residual = -g
    z = metric.solve(residual)
    p, inner = z.copy(), float(residual @ z)
    # Norms in M without M: ‖s‖², ⟨s, p⟩ and ‖p‖² follow by recursion (Conn, Gould & Toint 7.5.1).
    ss, sp, pp = 0.0, 0.0, inner
    goal = inner * min(0.1, np.sqrt(float(np.sqrt(max(inner, 0.0))))) ** 2
    for _ in range(TURNS):
        product = (yield Ask(theta, vector=p)).product
        if product is None:
            raise LookupError("the evaluation left out the product it was asked for")
        curved = float(p @ product)
        share = inner / curved if curved > 0 else np.inf
        if ss + 2 * share * sp + share**2 * pp >= radius**2:
            share = (-sp + np.sqrt(sp**2 + pp * (radius**2 - ss))) / pp
            step = step + share * p
            left = residual - share * product
            return _Step(step, _predicted(g, step, left), radius, border=True)
        if not np.isfinite(share):
            break
        step, residual = step + share * p, residual - share * product
        ss, sp = ss + 2 * share * sp + share**2 * pp, sp + share * pp
        z = metric.solve(residual)
        following = float(residual @ z)
        if following <= goal:
            break
        turn = following / inner
        p, inner = z + turn * p, following
        sp, pp = turn * sp, following + turn**2 * pp
    return _Step(step, _predicted(g, step, residual), float(np.sqrt(ss)))


def _predicted(g: np.ndarray, step: np.ndarray, residual: np.ndarray) -> float:
    """−(gᵀs + ½sᵀHs) with Hs = −g − residual."""
    return -float(g @ step) + 0.5 * float(step @ (g + residual))


def accelerated(theta: np.ndarray, rules: Rules, lipschitz: float) -> Search:
    """Nesterov's method with step 1/L, restarted whenever it turns uphill.

    Args:
        theta: Start (p,).
        rules: When to stop; `precision` is not judged, as there is no metric.
        lipschitz: L ≥ the largest eigenvalue of any Hessian.
    """
    ahead, count, momentum, taken = theta, 0, 1.0, np.zeros_like(theta)
    found = yield Ask(theta)
    while True:
        status = _descended(found, count, rules)
        if status is not Status.RUNNING:
            decrement = 0.5 * float(found.gradient @ found.gradient) / lipschitz
            flat = _Flat(lipschitz)
            return End(ahead, found.value, found.gradient, flat, decrement, count, 0, status, taken)
        following = ahead - found.gradient / lipschitz
        taken = following - theta
        if float(found.gradient @ taken) > 0:
            momentum = 1.0
        grown = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = following + (momentum - 1.0) / grown * taken
        theta, momentum, count = following, grown, count + 1
        found = yield Ask(ahead)


def _descended(found: Found, count: int, rules: Rules) -> Status:
    if not np.isfinite(found.value):
        return Status.DIVERGED
    if found.value <= rules.floor:
        return Status.SEPARATED
    if float(np.max(np.abs(found.gradient), initial=0.0)) <= rules.tol:
        return Status.CONVERGED
    return Status.ITERATIONS if count >= rules.max_iter else Status.RUNNING


class _Flat(Metric):
    """B = 1/L."""

    def __init__(self, lipschitz: float) -> None:
        self.lipschitz = lipschitz

    def solve(self, gradient: np.ndarray) -> np.ndarray:
        """∇f/L."""
        return gradient / self.lipschitz

    def rescaled(self, factor: float) -> "_Flat":
        """1/(factor·L)."""
        return _Flat(self.lipschitz * factor)
