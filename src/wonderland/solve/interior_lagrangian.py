"""Augmented Lagrangian with a semismooth Newton method, for problems of intervals.

With centres β⁰ and weights D, the inner problem replaces each loss by a smooth one,

    minimise over w, b   ½‖w‖² − pᵀw − q·b + Σ_i max_{|β| ≤ c} (s_i(β) − βz_i − (β − β⁰_i)²/(2D_i)),

whose maximisers β_i(z_i) become the next centres. Its gradient (w − p − Xᵀβ, −q − Σβ) is piecewise
linear, with the derivative I + X_BᵀD_B X_B over the rows B that stand between their bounds, a few
of many: Newton's method with an exact line search ends after finitely many steps. (p, q) is the
pull of rows left out. Squared losses are a single inner problem: β⁰ = 0, D = 2c, no bound.

References: Rockafellar (1976), augmented Lagrangians and the proximal point algorithm; Li, Sun &
Toh (2018), A highly efficient semismooth Newton augmented Lagrangian method; Chapelle (2007),
Training a support vector machine in the primal.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from wonderland.solve.interior_linear import Curvature, solve_newton
from wonderland.solve.interior_problem import Intervals, complementarity, norms

__all__ = ["Outer", "Plan", "Pull", "State", "level_slope", "solve_lagrangian", "start"]

INNER = 60  # Newton steps per inner problem
FLAT = 0.1  # |φ′(t)| ≤ FLAT·|φ′(0)| ends a line search
STILL = 4e-16  # predictions that move by less, relatively, do not move
FEW = 0.2  # share of rows whose change is cheaper than all rows
PROBES = 30  # evaluations per line search
SHARPEN = 5.0  # factor on D when an outer step gained too little
GAIN = 0.2  # the gap an outer step should leave, of the one before
INEXACT = 0.05  # share of its right side that a Newton step may leave: the next takes it
LOOSE = 0.01  # an inner problem is solved to this share of the gap
PATIENCE = 8  # outer steps without a smaller gap before giving up


class Pull(NamedTuple):
    """What rows left out contribute: −pᵀw − q·b."""

    w: np.ndarray
    b: float


class State(NamedTuple):
    """w (d,), b, z = Xw + b (m,), the multipliers β(z) (m,) and which rows are between bounds.

    `pulled` is Xᵀβ (d,).
    """

    w: np.ndarray
    b: float
    z: np.ndarray
    beta: np.ndarray
    between: np.ndarray
    pulled: np.ndarray


class Plan(NamedTuple):
    """What to reach and when to stop.

    Attributes:
        target: (P − D)/P wanted.
        width: Width in z of the first smoothed kinks.
        reach: Predictions that move further than this end the attempt.
        steps: Most Newton steps.
    """

    target: float
    width: float
    reach: float = np.inf
    steps: int = 1000


class Smoothed(NamedTuple):
    """An inner problem: rows, centres β⁰ (m,), weights D (m,), pull."""

    problem: Intervals
    box: np.ndarray
    centre: np.ndarray
    weight: np.ndarray
    pull: Pull

    def multipliers(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """β(z) and which rows move with z."""
        up = self.centre + (self.problem.low - z) * self.weight
        down = self.centre + (self.problem.high - z) * self.weight
        free = np.maximum(up, 0.0) + np.minimum(down, 0.0)
        beta = np.clip(free, -self.box, self.box)
        return beta, (free != 0) & (beta == free)

    def state(self, w: np.ndarray, b: float, z: np.ndarray, known: State | None = None) -> State:
        """Multipliers at given predictions; Xᵀβ from that of a known state where few differ."""
        beta, between = self.multipliers(z)
        X = self.problem.X
        if known is not None:
            changed = np.flatnonzero(beta != known.beta)
            if len(changed) < FEW * len(beta):
                pulled = known.pulled + X[changed].T @ (beta[changed] - known.beta[changed])
                return State(w, b, z, beta, between, pulled)
        return State(w, b, z, beta, between, X.T @ beta)

    def gradient(self, state: State) -> tuple[np.ndarray, float]:
        """(w − p − Xᵀβ, −q − Σβ)."""
        along = state.w - self.pull.w - state.pulled
        return along, (-self.pull.b - float(state.beta.sum()) if self.problem.intercept else 0.0)


def start(problem: Intervals, w: np.ndarray, b: float) -> State:
    """A state without multipliers."""
    m = len(problem.low)
    z = problem.X @ w + b
    return State(w, b, z, np.zeros(m), np.zeros(m, dtype=bool), np.zeros(len(w)))


def minimise_smooth(
    inner: Smoothed, state: State, accuracy: float, limit: int
) -> tuple[State, int]:
    """Newton's method on the inner problem; (state, steps).

    Args:
        inner: The problem.
        state: Where to begin; its multipliers are computed anew.
        accuracy: Ends when ½‖∇_w‖² + |∇_b|·max(1, |b|) is at most this (in units of P).
        limit: Most steps.
    """
    now, exact = inner.state(state.w, state.b, state.z), False
    for steps in range(min(INNER, limit)):
        g, g_b = inner.gradient(now)
        small = 0.5 * float(g @ g) + abs(g_b) * max(1.0, abs(now.b)) <= accuracy
        if exact or (small and steps > 0):  # one step always: the centres have moved
            return now, steps
        moved = _step(inner, now, g, g_b)
        if moved is None:
            return now, steps
        now, exact = moved
    return now, min(INNER, limit)


def _step(inner: Smoothed, now: State, g: np.ndarray, g_b: float) -> tuple[State, bool] | None:
    """One Newton step; whether it solved the problem exactly; None where rounding ends descent."""
    problem = inner.problem
    rows = np.flatnonzero(now.between)
    curvature = Curvature(problem.X, rows, inner.weight[rows], problem.intercept)
    dw, db = solve_newton(curvature, g, g_b, float(np.ptp(now.z)) + 1.0, INEXACT)
    dz = problem.X @ dw + db
    pull = float(inner.pull.w @ dw) + inner.pull.b * db

    def slope(t: float) -> float:
        beta, _ = inner.multipliers(now.z + t * dz)
        return float((now.w + t * dw) @ dw) - pull - float(beta @ dz)

    t = level_slope(slope)
    if t is None or t * np.abs(dz).max() <= STILL * (1.0 + np.abs(now.z).max()):
        return None
    after = inner.state(now.w + t * dw, now.b + t * db, now.z + t * dz, now)
    # The same rows on the same side of their interval: the quadratic just minimised is still it.
    same = np.array_equal(after.between, now.between) and np.array_equal(
        np.sign(after.beta), np.sign(now.beta)
    )
    return after, bool(t == 1.0 and same and curvature.factorised)


def level_slope(slope: Callable[[float], float]) -> float | None:
    """t with φ′(t) ≈ 0 for an increasing piecewise linear φ′; None unless φ′(0) < 0."""
    first = slope(0.0)
    if not first < 0:
        return None
    aim = FLAT * abs(first)
    low, below, high = 0.0, first, 1.0
    above = slope(high)
    if abs(above) <= aim:
        return high
    for _ in range(PROBES):
        if above >= 0:
            break
        low, below, high = high, above, 4.0 * high
        above = slope(high)
    for _ in range(PROBES):
        # Regula falsi, halved where it would stand still (Illinois).
        t = (low * above - high * below) / (above - below) if above > below else 0.5 * (low + high)
        value = slope(t)
        if abs(value) <= aim or high - low <= 1e-15 * high:
            return t
        if value < 0:
            low, below, above = t, value, 0.5 * above
        else:
            high, above, below = t, value, 0.5 * below
    return high


class Outer(NamedTuple):
    """The best state, its gap (in units of P), Newton steps, and whether it stayed in reach."""

    state: State
    gap: float
    steps: int
    within: bool = True


def solve_lagrangian(
    problem: Intervals,
    state: State,
    pull: Pull,
    plan: Plan,
    measure: Callable[[Smoothed, State], tuple[float, float]],
) -> Outer:
    """Multipliers and predictions whose relative gap is at most `plan.target`.

    Args:
        problem: Rows not left out.
        state: Start; its multipliers are the first centres.
        pull: Of rows left out.
        plan: What to reach.
        measure: (P − D, P) of a state.
    """
    weight, z = _weights(problem, plan.width), state.z
    best, gap, scale, steps, idle = Outer(state, np.inf, 0), np.inf, 0.0, 0, 0
    while idle < PATIENCE and steps < plan.steps:
        inner = Smoothed(problem, problem.box, state.beta, weight, pull)
        aim = 0.1 * max(plan.target * scale, LOOSE * gap if np.isfinite(gap) else 0.0)
        state, taken = minimise_smooth(inner, state, aim, plan.steps - steps)
        steps += max(taken, 1)
        before, (gap, scale) = gap, measure(inner, state)
        if np.abs(state.z - z).max() > plan.reach:
            return Outer(state, gap, steps, within=False)
        idle = 0 if gap < best.gap or not np.isfinite(gap) else idle + 1
        best = Outer(state, gap, steps) if gap < best.gap else best._replace(steps=steps)
        if problem.squared or gap <= plan.target * scale:
            break
        if taken >= INNER:  # too steep to be solved: the centres have not earned it yet
            weight = weight / SHARPEN**2
        elif gap > GAIN * before or not np.isfinite(gap):
            weight = weight * SHARPEN
    return best


def _weights(problem: Intervals, width: float) -> np.ndarray:
    """D: β crosses its box, or for c = ∞ a natural scale, while z crosses `width`."""
    if problem.squared:
        return 2.0 * problem.strength
    natural = 1.0 / max(float(norms(problem.X).mean()), np.finfo(float).tiny)
    return np.where(np.isfinite(problem.strength), problem.strength, natural) / width


def gap_of(inner: Smoothed, state: State) -> float:
    """P − D on these rows, as a sum of terms ≥ 0."""
    g, g_b = inner.gradient(state)
    slack = complementarity(inner.problem, state.beta, state.z)
    return float(slack.sum()) + 0.5 * float(g @ g) + abs(g_b * state.b)
