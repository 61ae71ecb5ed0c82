"""Support vector problems as one: distances of predictions to intervals, and their certificate.

    minimise over w, b    P = ½‖w‖² + Σ_i ℓ_i(z_i),    z_i = x_iᵀw + b
    ℓ_i(z) = c_i·dist(z, [l_i, u_i])   or, squared,   c_i·dist(z, [l_i, u_i])²

The hinge of label ±1 is the interval [1, ∞) or (−∞, −1]; ε-insensitive regression is
[y − ε, y + ε]; a hard margin is c = ∞. With a multiplier β_i = −ℓ_i′(z_i) for each row, the dual is

    maximise over β       D = Σ_i s_i(β_i) − ½‖Xᵀβ‖²    with |β_i| ≤ c_i and Σβ_i = 0 ,
    s_i(β) = l_i·max(β, 0) − u_i·max(−β, 0)   (− β²/(4c_i), unbounded, where squared),

Σβ = 0 being the work of the intercept, which is not penalised; at the optimum w = Xᵀβ. Since

    P − D = Σ_i (ℓ_i(z_i) + β_i z_i − s_i(β_i)) + ½‖w − Xᵀβ‖² − b·Σβ

is a sum of terms ≥ 0 (the last is zero), it is computed without cancellation. Shapes: X (n, d),
w (d,), β (n,).

Reference: Boyd & Vandenberghe, Convex Optimization (2004), §5.5; Vapnik (1995), §5.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

__all__ = [
    "Certificate",
    "Intervals",
    "Point",
    "balance",
    "complementarity",
    "distances",
    "judge",
    "losses",
    "norms",
    "settled",
    "supports",
]

ROUNDING = 1e-9  # of the box: multipliers so near a bound count as standing there


class Intervals(NamedTuple):
    """The problem in numbers.

    Attributes:
        X: (n, d), dense or CSR.
        low: l (n,), −∞ where there is no lower end.
        high: u (n,), ∞ where there is no upper end.
        strength: c (n,) > 0; ∞ for a hard margin.
        intercept: Whether b is free; else it is zero.
        squared: Whether distances are squared.
    """

    X: Any
    low: np.ndarray
    high: np.ndarray
    strength: np.ndarray
    intercept: bool = True
    squared: bool = False

    def rows(self, chosen: np.ndarray | slice) -> "Intervals":
        """The same problem on some of its rows."""
        return self._replace(
            X=self.X[chosen],
            low=self.low[chosen],
            high=self.high[chosen],
            strength=self.strength[chosen],
        )

    @property
    def box(self) -> np.ndarray:
        """Largest |β| (n,)."""
        return np.full(len(self.strength), np.inf) if self.squared else self.strength


class Point(NamedTuple):
    """A primal and a dual guess: w (d,), b, β (n,)."""

    w: np.ndarray
    b: float
    beta: np.ndarray


class Certificate(NamedTuple):
    """How far from the optimum a point can be at most.

    Attributes:
        primal: P(w, b), an upper bound of the optimum.
        dual: D(β), a lower bound of it.
        kkt: Largest violation of the optimality conditions, in units of predictions.
    """

    primal: float
    dual: float
    kkt: float

    @property
    def gap(self) -> float:
        """(P − D)/P, zero where both are zero."""
        if not np.isfinite(self.primal):
            return float(np.inf)
        return max(self.primal - self.dual, 0.0) / max(self.primal, np.finfo(float).tiny)


def distances(problem: Intervals, z: np.ndarray) -> np.ndarray:
    """dist(z, [l, u]) (n,)."""
    return np.maximum(np.maximum(problem.low - z, z - problem.high), 0.0)


def losses(problem: Intervals, z: np.ndarray) -> np.ndarray:
    """ℓ_i(z_i) (n,); inside its interval a row costs nothing even under c = ∞."""
    distance = distances(problem, z)
    inside = distance == 0
    power = distance * distance if problem.squared else distance
    return np.where(inside, 0.0, np.where(inside, 0.0, problem.strength) * power)


def supports(problem: Intervals, beta: np.ndarray) -> np.ndarray:
    """s_i(β_i) (n,)."""
    up, down = beta > 0, beta < 0
    ends = np.where(up, problem.low, 0.0) + np.where(down, problem.high, 0.0)
    values = ends * beta
    return values - beta * beta / (4 * problem.strength) if problem.squared else values


def judge(problem: Intervals, point: Point, pulled: np.ndarray) -> Certificate:
    """The certificate of any point with a feasible β; `pulled` is Xᵀβ."""
    z = problem.X @ point.w + point.b
    primal = 0.5 * float(point.w @ point.w) + float(losses(problem, z).sum())
    dual = float(supports(problem, point.beta).sum()) - 0.5 * float(pulled @ pulled)
    return Certificate(primal, dual, violation(problem, point.beta, z))


def complementarity(problem: Intervals, beta: np.ndarray, z: np.ndarray) -> np.ndarray:
    """ℓ(z) + βz − s(β) ≥ 0 (m,), zero where β is the multiplier of z; a sum of terms ≥ 0."""
    below, above = np.maximum(problem.low - z, 0.0), np.maximum(z - problem.high, 0.0)
    up, down = np.maximum(beta, 0.0), np.maximum(-beta, 0.0)
    # Ends at infinity never pull: 0·∞ is avoided, not computed.
    past = np.where(up > 0, up * np.maximum(z - np.where(up > 0, problem.low, 0.0), 0.0), 0.0)
    past += np.where(down > 0, down * np.maximum(np.where(down > 0, problem.high, 0) - z, 0.0), 0.0)
    if problem.squared:
        meant = np.where(up > 0, below, 0.0) + np.where(down > 0, above, 0.0)
        other = np.where(up > 0, 0.0, below) ** 2 + np.where(down > 0, 0.0, above) ** 2
        short = (up + down) / (2 * problem.strength) - meant
        return past + problem.strength * (short * short + other)
    room = np.where(below > 0, problem.strength - up, 0.0) * below
    return past + room + np.where(above > 0, problem.strength - down, 0.0) * above


def violation(problem: Intervals, beta: np.ndarray, z: np.ndarray) -> float:
    """How far predictions are from where their multipliers say they should be.

    A row with 0 < β < c must predict l, one with β = 0 inside [l, u], one with β = c below l
    (and the mirror image above u); a squared row with β > 0 must predict l − β/(2c).
    """
    if problem.squared:
        shift = np.abs(beta) / (2 * problem.strength)
        below = np.where(beta > 0, np.abs(problem.low - shift - z), 0.0)
        above = np.where(beta < 0, np.abs(problem.high + shift - z), 0.0)
        still = np.where(beta == 0, distances(problem, z), 0.0)
        return float(np.max(below + above + still, initial=0.0))
    scale = np.where(np.isfinite(problem.strength), problem.strength, np.abs(beta).max(initial=0.0))
    up, down = beta > ROUNDING * scale, beta < -ROUNDING * scale
    full = np.abs(beta) >= (1.0 - ROUNDING) * problem.strength
    below = np.where(up, np.where(full, z - problem.low, np.abs(z - problem.low)), 0.0)
    above = np.where(down, np.where(full, problem.high - z, np.abs(z - problem.high)), 0.0)
    still = np.where(up | down, 0.0, distances(problem, z))
    return float(np.max(np.maximum(np.maximum(below, above), still), initial=0.0))


def balance(problem: Intervals, beta: np.ndarray, outside: float = 0.0) -> np.ndarray:
    """β moved as little as needed to keep its signs and box and to sum to zero.

    `outside` is what multipliers of rows that are not at hand add to the sum. The surplus is taken
    from the multipliers that pull its way, each in proportion to the room it has; nothing that
    stands at zero starts to pull.
    """
    if not problem.intercept:
        return beta
    surplus = float(beta.sum()) + outside
    pulling = beta if surplus > 0 else -beta
    room = np.where(pulling > 0, pulling, 0.0)
    inner = np.where(np.abs(beta) < problem.box, room, 0.0)
    # Rows between the bounds first: those at a bound stand there exactly.
    room = inner if inner.sum() > 2 * abs(surplus) else room
    total = float(room.sum())
    if surplus == 0.0 or total == 0.0:
        return beta
    moved = beta - np.sign(surplus) * room * (abs(surplus) / total)
    inside = np.minimum(np.abs(moved), problem.box - np.abs(moved))
    last = int(np.argmax(inside if inside.max() > 0 else room))
    moved[last] -= moved.sum() + outside  # what rounding left
    least = np.where(np.isfinite(problem.high), -problem.box, 0.0)
    return np.clip(moved, least, np.where(np.isfinite(problem.low), problem.box, 0.0))


def norms(X: Any) -> np.ndarray:
    """‖x_i‖² (n,)."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def settled(problem: Intervals, point: Point) -> float:
    """b, or the middle of all b that are as good, where no row holds it in place.

    With every multiplier at a bound, rows that pull up say b ≤ l − xᵀw, rows that pull down
    b ≥ u − xᵀw, and rows that do not pull l ≤ xᵀw + b ≤ u.
    """
    if problem.squared or not problem.intercept:
        return point.b
    size, beta = ROUNDING * problem.strength, point.beta
    up, down = beta > size, beta < -size
    if np.any((up | down) & (np.abs(beta) < problem.strength - size)):
        return point.b
    z, still = problem.X @ point.w, ~(up | down)
    most = np.concatenate([(problem.low - z)[up], (problem.high - z)[still]]).min(initial=np.inf)
    least = np.concatenate([(problem.high - z)[down], (problem.low - z)[still]]).max(
        initial=-np.inf
    )
    between = np.isfinite(least) and np.isfinite(most) and least <= most
    return float(0.5 * (least + most)) if between else point.b
