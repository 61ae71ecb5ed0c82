"""Newton's method on a kernel problem once it is nearly known which variables are free.

A variable's place follows from z = β + (g − b)/k: beyond a bound it lies on it, within the kink it
is zero, else it is free, with g_i − ε·sign = b at the optimum. For the free set F this is linear:

    [K_FF  1] [β_F]   [p_F − ε·sign − K_FB β_B]
    [1ᵀ    0] [ b ] = [c − Σβ_B               ]

solved by Cholesky in float64 and corrected on the residual; places are read again until they stay.
This is the semismooth Newton method on the optimality conditions: near the optimum a handful of
turns end at rounding level. It may cycle far from it, and then says so. `walk` cannot: it keeps β
feasible, goes towards the optimum over the free set as far as the first bound, leaves the variable
there and goes on, so that D only falls.

Reference: Hintermüller, Ito, Kunisch, The primal-dual active set strategy as a semismooth Newton
method (SIAM J. Optim. 2002).
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from wonderland.solve.box_gram import Gram
from wonderland.solve.box_problem import BoxProblem, violation

__all__ = ["Point", "newton", "walk"]

TURNS = 30
LARGEST = 8192  # free variables whose matrix is factorised
SHIFT = 1e-13  # of the mean diagonal, added so that dependent samples can be factorised
CORRECTIONS = 3
FLAT = 1e-12  # of the largest k(x_i, x_i): where it is zero g alone says which bound is meant
WORK = 2e10  # cubes of the number of free variables that one walk may spend


class Point(NamedTuple):
    """β and g = p − Kβ (n,)."""

    beta: np.ndarray
    g: np.ndarray


def newton(problem: BoxProblem, gram: Gram, start: Point, bias: float, tol: float) -> Point | None:
    """A feasible point of violation at most `tol`; None where the turns did not settle.

    Args:
        problem: Bounds, kink, total.
        gram: K.
        start: A point close to the optimum, its g in float64.
        bias: b there.
        tol: Violation to reach.
    """
    beta, g = start
    scale = gram.diagonal()
    largest = float(scale.max())
    scale = np.maximum(scale, FLAT * largest if largest > 0 else 1.0)
    for _ in range(TURNS):
        places = _Places.read(problem, beta, (g - bias) / scale, scale)
        if not 0 < places.free.sum() <= LARGEST:
            return None
        found = _solve(problem, gram, Point(beta, g), places)
        if found is None:
            return None
        change, bias = found
        moved = np.flatnonzero(change)
        beta = beta + change
        g = g - gram.product(None, moved, change[moved], np.float64)
        if not np.isfinite(g).all():
            return None
        if _feasible(problem, beta, places) and violation(problem, beta, g) <= tol:
            return Point(np.clip(beta, problem.low, problem.high), g)
    return None


class _Places(NamedTuple):
    """Which variables are free, with what sign of the kink, and where the others lie."""

    free: np.ndarray
    sign: np.ndarray
    fixed: np.ndarray

    @classmethod
    def read(
        cls, problem: BoxProblem, beta: np.ndarray, pull: np.ndarray, scale: np.ndarray
    ) -> "_Places":
        z, width = beta + pull, problem.kink / scale
        at_high, at_low = z >= problem.high + width, z <= problem.low - width
        at_zero = (np.abs(z) <= width) if problem.kink else np.zeros(len(z), bool)
        fixed = np.where(at_high, problem.high, np.where(at_low, problem.low, 0.0))
        return cls(~(at_high | at_low | at_zero), np.sign(z), fixed)


def _solve(
    problem: BoxProblem, gram: Gram, point: Point, places: _Places
) -> tuple[np.ndarray, float] | None:
    """The change of β that meets the linear conditions of these places, and b."""
    free = np.flatnonzero(places.free)
    change = np.where(places.free, 0.0, places.fixed - point.beta)
    moved = np.flatnonzero(change)
    pull = point.g[free] - gram.product(free, moved, change[moved], np.float64)
    if problem.kink:
        pull = pull - problem.kink * places.sign[free]
    K = gram.block(free, None, np.float64)
    solved = _corrected(K, np.column_stack([pull, np.ones(len(free))]))
    if solved is None:
        return None
    left, ones = solved.T
    missing = problem.total - float((point.beta + change).sum())
    bias = (float(left.sum()) - missing) / float(ones.sum())
    change[free] = left - bias * ones
    return change, bias


def walk(problem: BoxProblem, gram: Gram, start: Point) -> Point:
    """Down to the optimum over the free variables that stay free; never up, never infeasible."""
    beta, g = start
    free = np.flatnonzero((beta > problem.low) & (beta < problem.high) & (beta != 0))
    if not 0 < len(free) <= LARGEST:
        return start
    K = gram.block(free, None, np.float64)
    value, pull = beta[free].copy(), g[free].copy()
    sign = np.sign(value)
    low = np.where((sign > 0) & bool(problem.kink), 0.0, problem.low[free])
    high = np.where((sign < 0) & bool(problem.kink), 0.0, problem.high[free])
    inside, work = np.arange(len(free)), 0.0
    while len(inside) > 1 and work < WORK:
        work += float(len(inside)) ** 3
        part = K[np.ix_(inside, inside)]
        right = pull[inside] - problem.kink * sign[inside]
        solved = _corrected(part, np.column_stack([right, np.ones(len(inside))]))
        if solved is None:
            break
        left, ones = solved.T
        step = left - float(left.sum()) / float(ones.sum()) * ones
        length, stopped = _until_bound(value[inside], step, low[inside], high[inside])
        value[inside] = np.clip(value[inside] + length * step, low[inside], high[inside])
        pull -= K[:, inside] @ (length * step)
        if not stopped.any():
            break
        ends = np.where(step < 0, low[inside], high[inside])
        value[inside[stopped]] = ends[stopped]
        inside = inside[~stopped]
    return _arrived(problem, gram, start, free, value)


def _until_bound(
    value: np.ndarray, step: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[float, np.ndarray]:
    """How much of a step can be made, and which variables then lie on a bound."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step > 0, (high - value) / step, (low - value) / step)
    room = np.where(step == 0, np.inf, room)
    length = min(1.0, float(room.min()))
    return length, (room <= length * (1.0 + ROUND)) & (length < 1.0)


def _arrived(
    problem: BoxProblem, gram: Gram, start: Point, free: np.ndarray, value: np.ndarray
) -> Point:
    """The point with these values, unless rounding made it worse than the start."""
    change = value - start.beta[free]
    moved = np.flatnonzero(change)
    lost = gram.product(None, free[moved], change[moved], np.float64)
    beta = start.beta.copy()
    beta[free] = value
    # D(new) − D(old) = −δᵀ(g + ½(−Kδ)) + ε(‖new‖₁ − ‖old‖₁)
    rise = -float(change @ (start.g[free] - 0.5 * lost[free]))
    rise += problem.kink * float(np.abs(value).sum() - np.abs(start.beta[free]).sum())
    return Point(beta, start.g - lost) if rise <= 0 and np.isfinite(rise) else start


def _corrected(K: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """K⁻¹·right by Cholesky of K + δI, corrected until the shift no longer shows."""
    shift = SHIFT * float(np.trace(K)) / len(K)
    for _ in range(4):
        try:
            shifted = K.copy()
            shifted[np.diag_indices_from(shifted)] += shift
            factor = sl.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
            break
        except np.linalg.LinAlgError:
            shift *= 100.0
    else:
        return None
    solved = sl.cho_solve(factor, right, check_finite=False)
    for _ in range(CORRECTIONS):
        solved = solved + sl.cho_solve(factor, right - K @ solved, check_finite=False)
    return solved if np.isfinite(solved).all() and solved[:, 1].sum() != 0 else None


ROUND = 1e-12  # of a bound: how far a free variable may overstep it by rounding


def _feasible(problem: BoxProblem, beta: np.ndarray, places: _Places) -> bool:
    """Whether the free variables kept to their side of bounds and kink."""
    slack = ROUND * max(1.0, float(np.abs(beta).max()))
    inside = (beta >= problem.low - slack) & (beta <= problem.high + slack)
    if problem.kink:
        inside &= ~places.free | (beta * places.sign >= -slack)
    return bool(inside.all())
