"""The joint hinge of several classes (Crammer & Singer), by an augmented Lagrangian.

    minimise over W, b   P = ½‖W‖² + Σ_i c_i max_k s_ik ,   s_ik = z_ik − z_{i,y} + 1 − δ_{yk} ,
    maximise over p      D = Σ_i c_i Σ_{k ≠ y} p_ik − ½‖W_p‖² ,   W_p = Σ_i c_i (e_y − p_i) x_iᵀ ,

with z_i = Wx_i + b, p_i in the simplex of k classes and, for the work of b, Σ c_i p_i = Σ c_i e_y.
A row's loss is max_p p·s, and becomes smooth with p held near a centre p⁰:

    max_p  c (p·s − (μ/2)‖p − p⁰‖²)   at   p = projection of p⁰ + s/μ onto the simplex.

Newton's method solves for W and b (the projection is piecewise linear, its derivative
(I_S − 11ᵀ/|S|)/μ on the support S of p); the p it ends with are the next centres, and their gap to
P is the certificate. Shapes: X (n, d), W (k, d), p, s (n, k).

Reference: Crammer & Singer (2001), Multiclass kernel-based vector machines; Rockafellar (1976).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.status import Status
from wonderland.solve.interior_lagrangian import level_slope
from wonderland.solve.interior_linear import inverse_of

__all__ = ["Joint", "solve_joint"]

DENSE = 2000  # parameters of the widest Hessian that is factored
INNER = 60  # Newton steps of one inner problem
GAIN = 0.2  # the gap an outer step should leave, of the one before
SHARPEN = 5.0  # factor on 1/μ where it left more
LOOSE = 0.01  # an inner problem is solved to this share of the gap
PATIENCE = 8  # outer steps without a smaller gap before giving up
KRYLOV = 200  # steps of conjugate gradients
INEXACT = 0.05  # share of the right side they leave


class Joint(NamedTuple):
    """The best point with its certificate.

    Attributes:
        W: (k, d).
        b: (k,), of mean zero.
        alpha: c(e_y − p) (n, k): W = αᵀX.
        primal: P.
        dual: D.
        kkt: How far the largest score of a row lies above those its multipliers say are largest.
        steps: Newton steps.
        status: How it ended.
    """

    W: np.ndarray
    b: np.ndarray
    alpha: np.ndarray
    primal: float
    dual: float
    kkt: float
    steps: int
    status: Status

    @property
    def gap(self) -> float:
        """(P − D)/P."""
        return max(self.primal - self.dual, 0.0) / max(self.primal, np.finfo(float).tiny)

    def relaxed(self, tol: float) -> "Joint":
        """Converged also where the gap is only below `tol`."""
        return self._replace(status=Status.CONVERGED) if self.gap <= tol else self


class _Problem(NamedTuple):
    """X (n, d), class numbers (n,), strengths c (n,), k, whether b is free."""

    X: Any
    codes: np.ndarray
    strength: np.ndarray
    classes: int
    intercept: bool

    @property
    def own(self) -> np.ndarray:
        """e_y (n, k)."""
        return np.eye(self.classes)[self.codes]

    def scores(self, theta: np.ndarray) -> np.ndarray:
        """z (n, k) of θ = [W | b] (k, d + 1)."""
        return np.asarray(self.X @ theta[:, :-1].T) + theta[:, -1]

    def shortfall(self, z: np.ndarray) -> np.ndarray:
        """s without its constant: z_k − z_y (n, k)."""
        return z - z[np.arange(len(z)), self.codes][:, None]

    def pulled(self, alpha: np.ndarray) -> np.ndarray:
        """[αᵀX | Σα] (k, d + 1); the last column zero without an intercept."""
        sums = alpha.sum(axis=0) if self.intercept else np.zeros(self.classes)
        return np.column_stack([np.asarray((self.X.T @ alpha).T), sums])


class _State(NamedTuple):
    """θ (k, d + 1), s (n, k), p (n, k), ∇ (k, d + 1)."""

    theta: np.ndarray
    s: np.ndarray
    p: np.ndarray
    gradient: np.ndarray


def solve_joint(
    X: Any,
    codes: np.ndarray,
    strength: np.ndarray,
    *,
    classes: int,
    intercept: bool,
    tol: float,
    limit: int,
) -> Joint:
    """Solve to a relative duality gap of `tol` in at most `limit` Newton steps.

    Args:
        X: (n, d), dense or CSR.
        codes: Class numbers (n,).
        strength: c (n,) ≥ 0.
        classes: k.
        intercept: Whether b is free.
        tol: (P − D)/P.
        limit: Most Newton steps.

    >>> X, codes = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 1, 2])
    >>> c = np.full(3, 10.0)
    >>> found = solve_joint(X, codes, c, classes=3, intercept=True, tol=1e-9, limit=100)
    >>> (X @ found.W.T + found.b).argmax(axis=1).tolist(), found.status.name
    ([0, 1, 2], 'CONVERGED')
    """
    problem = _Problem(X, codes, strength, classes, intercept)
    theta, centre = np.zeros((classes, X.shape[1] + 1)), problem.own
    width, steps, idle, gap, scale = 1.0, 0, 0, np.inf, 0.0
    best: Joint | None = None
    while idle < PATIENCE and steps < max(limit, 1):
        aim = 0.1 * max(tol * scale, LOOSE * gap if np.isfinite(gap) else 0.0)
        state, taken = _minimise(problem, (theta, centre, width), aim, max(limit, 1) - steps)
        steps += max(taken, 1)
        found = _judged(problem, state, steps)
        before, gap, scale = gap, found.primal - found.dual, found.primal
        better = best is None or gap < best.primal - best.dual
        best, idle = (found, 0) if better or best is None else (best, idle + 1)
        if gap <= tol * scale:
            return best._replace(steps=steps, status=Status.CONVERGED)
        if taken >= INNER:
            width *= SHARPEN**2
        elif gap > GAIN * before or not np.isfinite(before):
            width /= SHARPEN
        theta, centre = state.theta, state.p
    if best is None:
        raise ValueError("no step was taken")
    return best._replace(steps=steps)


def _project(q: np.ndarray) -> np.ndarray:
    """The nearest points of the simplex, row by row.

    >>> _project(np.array([[0.5, 0.9, -1.0]])).round(2).tolist()
    [[0.3, 0.7, 0.0]]
    """
    down = -np.sort(-q, axis=1)
    sums = np.cumsum(down, axis=1) - 1.0
    ranks = np.arange(1, q.shape[1] + 1)
    count = (down * ranks > sums).sum(axis=1)
    level = sums[np.arange(len(q)), count - 1] / count
    return np.maximum(q - level[:, None], 0.0)


def _at(
    problem: _Problem, theta: np.ndarray, z: np.ndarray, centre: np.ndarray, width: float
) -> _State:
    own = problem.own
    s = problem.shortfall(z) + 1.0 - own
    p = _project(centre + s / width)
    gradient = -problem.pulled(problem.strength[:, None] * (own - p))
    gradient[:, :-1] += theta[:, :-1]
    return _State(theta, s, p, gradient)


def _minimise(
    problem: _Problem, place: tuple[np.ndarray, np.ndarray, float], aim: float, limit: int
) -> tuple[_State, int]:
    """Newton's method at (θ, p⁰, μ) until ½‖∇‖² is at most `aim`; (state, steps)."""
    theta, centre, width = place
    z = problem.scores(theta)
    now = _at(problem, theta, z, centre, width)
    for steps in range(min(INNER, limit)):
        size = 0.5 * float((now.gradient**2).sum()) * max(1.0, float(np.abs(theta[:, -1]).max()))
        if size <= aim and steps > 0:
            return now, steps
        step = _newton(problem, now, width)
        dz = problem.scores(step)
        slope = _slope(problem, now, step, (z, dz, centre, width))
        t = level_slope(slope)
        if t is None or t * np.abs(dz).max() <= 1e-15 * (1.0 + np.abs(z).max()):
            return now, steps
        theta, z = theta + t * step, z + t * dz
        now = _at(problem, theta, z, centre, width)
    return now, min(INNER, limit)


def _slope(
    problem: _Problem,
    now: _State,
    step: np.ndarray,
    along: tuple[np.ndarray, np.ndarray, np.ndarray, float],
) -> Callable[[float], float]:
    """The derivative of the inner objective along a step, as a function of its length."""
    z, dz, centre, width = along
    own, ds = problem.own, problem.shortfall(dz)
    weighted = problem.strength[:, None] * ds
    W, dW = now.theta[:, :-1], step[:, :-1]

    def slope(t: float) -> float:
        s = problem.shortfall(z + t * dz) + 1.0 - own
        p = _project(centre + s / width)
        return float(np.vdot(W + t * dW, dW)) + float(np.vdot(weighted, p))

    return slope


def _newton(problem: _Problem, now: _State, width: float) -> np.ndarray:
    """−H⁻¹∇ (k, d + 1)."""
    on = now.p > 0
    rows = np.flatnonzero((on.sum(axis=1) > 1) & (problem.strength > 0))
    part = problem._replace(X=problem.X[rows], codes=problem.codes[rows])
    S = on[rows].astype(np.float64)
    weight = problem.strength[rows] / width
    if now.theta.size <= DENSE:
        if sp.issparse(part.X):
            part = part._replace(X=part.X.toarray())
        return _factored(part, S, weight, now.gradient)
    return _by_products(part, S, weight, now.gradient)


def _factored(
    part: _Problem, S: np.ndarray, weight: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """By Cholesky: blocks Σ c/μ (δ_ab − 1/|S|) x̃x̃ᵀ over the rows with a and b in S."""
    k, q = gradient.shape
    Z = np.column_stack([part.X, np.ones(len(S))])
    H = np.zeros((k, q, k, q))
    share = weight / np.maximum(S.sum(axis=1), 1.0)
    for a in range(k):
        for b in range(a + 1):
            h = S[:, a] * ((weight if a == b else 0.0) - share * S[:, b])
            chosen = np.flatnonzero(h)
            block = (Z[chosen] * h[chosen, None]).T @ Z[chosen]
            H[a, :, b], H[b, :, a] = block, block.T
        H[a, range(q - 1), a, range(q - 1)] += 1.0
    used = q if part.intercept else q - 1
    if part.intercept:  # scores may all move alike: that costs nothing, and is not done
        level = max(float(np.einsum("aiai->i", H)[-1]) / k, 1.0)
        H[:, -1, :, -1] += level / k
    matrix = H[:, :used, :, :used].reshape(k * used, k * used)
    step = np.zeros((k, q))
    step[:, :used] = -inverse_of(matrix)(gradient[:, :used].reshape(-1, 1)).reshape(k, used)
    return step


def _by_products(
    part: _Problem, S: np.ndarray, weight: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """By conjugate gradients, for wide or sparse tables."""
    size = np.maximum(S.sum(axis=1, keepdims=True), 1.0)

    def product(v: np.ndarray) -> np.ndarray:
        u = S * part.scores(v)
        u -= S * (u.sum(axis=1, keepdims=True) / size)
        out = part.pulled(weight[:, None] * u)
        out[:, :-1] += v[:, :-1]
        return out

    bends = weight[:, None] * S * (1.0 - 1.0 / size)
    squares = part.X.multiply(part.X) if sp.issparse(part.X) else part.X * part.X
    scale = np.empty(gradient.shape)
    scale[:, :-1] = 1.0 / (1.0 + np.asarray((squares.T @ bends).T))
    scale[:, -1] = 1.0 / np.maximum(bends.sum(axis=0), 1.0) if part.intercept else 0.0
    x, residual = np.zeros_like(gradient), -gradient
    ahead = scale * residual
    direction, rho = ahead.copy(), float(np.vdot(residual, ahead))
    aim = INEXACT * float(np.linalg.norm(gradient))
    for _ in range(KRYLOV):
        if rho == 0.0 or float(np.linalg.norm(residual)) <= aim:
            break
        image = product(direction)
        t = rho / max(float(np.vdot(direction, image)), np.finfo(float).tiny)
        x += t * direction
        residual -= t * image
        ahead = scale * residual
        rho, before = float(np.vdot(residual, ahead)), rho
        direction = ahead + (rho / before) * direction
    return x


def _judged(problem: _Problem, state: _State, steps: int) -> Joint:
    """P and D; the primal point is θ or W_p, whichever is lower."""
    own, c = problem.own, problem.strength
    alpha = c[:, None] * (own - state.p)
    recovered = problem.pulled(alpha)
    b = state.theta[:, -1] - state.theta[:, -1].mean()
    dual = float(np.vdot(alpha, own)) - 0.5 * float((recovered[:, :-1] ** 2).sum())
    dual -= float(np.abs(recovered[:, -1]) @ np.abs(b))  # what rounding leaves of Σα = 0
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for W in (recovered[:, :-1], state.theta[:, :-1]):
        z = np.asarray(problem.X @ W.T) + b
        s = problem.shortfall(z) + 1.0 - own
        primal = 0.5 * float((W**2).sum()) + float(c @ s.max(axis=1))
        if best is None or primal < best[0]:
            best = (primal, W, s)
    if best is None:
        raise ValueError("no point to judge")
    primal, W, s = best
    least = np.where(state.p > 0, s, np.inf).min(axis=1)
    kkt = float(np.max((s.max(axis=1) - least)[c > 0], initial=0.0))
    return Joint(W.copy(), b, alpha, primal, dual, kkt, steps, Status.ITERATIONS)
