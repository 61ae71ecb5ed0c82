"""From scores to probabilities by more than one number: vector scaling, Platt, beta, isotonic.

    vector     p = softmax(w ∘ z + b)                                     w, b (k,)
    platt      p = 1/(1 + exp(a s + b)), with Platt's softened targets (n₊ + 1)/(n₊ + 2), 1/(n₋ + 2)
    beta       p = 1/(1 + exp(−c) (1 − q)^b / q^a),  a, b ≥ 0,            q a probability
    isotonic   p = the non-decreasing function of s of least squares

The last three are maps of one number: the score of the second of two classes, or of each class
against the rest, normalised over the classes. Vector and beta carry the ridge ‖·‖²/(2·10¹¹) of the
reference implementation, without which separable scores have no optimum. Shapes: n rows, k classes,
m = 1 column for two classes, else k.

Reference: Platt (1999); Zadrozny and Elkan (2002); Guo et al. (2017); Kull, Silva Filho, Flach
(2017), Beta calibration.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np
from scipy.special import expit

from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.metrics.isotonic import Steps, isotonic
from wonderland.metrics.sharpness import best_sharpness
from wonderland.trust.calibration_rows import normalised, softmax

__all__ = [
    "Beta",
    "Isotonic",
    "Platt",
    "Vector",
    "fit_beta",
    "fit_isotonic",
    "fit_platt",
    "fit_vector",
]

RIDGE = 1e-11
TURNS = 100
TOLERANCE = 1e-18  # what the last step promises, relative to the objective; it leaves its square
FLOOR = 1e-12  # probabilities stay this far from 0 and 1 before their logarithm is taken


class Vector(eqx.Module):
    """p = softmax(w ∘ z + b).

    Attributes:
        scale: w (k,).
        offset: b (k,), of sum zero.
    """

    scale: Any
    offset: Any

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        """Probabilities (n, k) from logits (n, k)."""
        return softmax(z * self.scale + self.offset)

    def parameters(self) -> dict[str, Any]:
        """What was fitted, by name."""
        return {"scale": self.scale, "offset": self.offset}


class Platt(eqx.Module):
    """p = 1/(1 + exp(a s + b)), class by class.

    Attributes:
        slope: a (m,), negative where large scores speak for the class.
        offset: b (m,).
    """

    slope: Any
    offset: Any

    def probabilities(self, s: np.ndarray) -> np.ndarray:
        """Probabilities (n, k) from scores (n, m)."""
        return _complete(expit(-(s * self.slope + self.offset)))

    def parameters(self) -> dict[str, Any]:
        """What was fitted, by name."""
        return {"slope": self.slope, "offset": self.offset}


class Beta(eqx.Module):
    """logit p = a log q − b log(1 − q) + c, class by class.

    Attributes:
        a: (m,) ≥ 0.
        b: (m,) ≥ 0.
        c: (m,).
    """

    a: Any
    b: Any
    c: Any

    def probabilities(self, q: np.ndarray) -> np.ndarray:
        """Probabilities (n, k) from probabilities (n, m)."""
        q = np.clip(q, FLOOR, 1 - FLOOR)
        return _complete(expit(self.a * np.log(q) - self.b * np.log1p(-q) + self.c))

    def parameters(self) -> dict[str, Any]:
        """What was fitted, by name."""
        return {"a": self.a, "b": self.b, "c": self.c}


class Isotonic(eqx.Module):
    """p = g(s), non-decreasing, class by class.

    Attributes:
        steps: A function for each class (m of them).
    """

    steps: tuple[Steps, ...]

    def probabilities(self, s: np.ndarray) -> np.ndarray:
        """Probabilities (n, k) from scores (n, m)."""
        return _complete(np.column_stack([g(x) for g, x in zip(self.steps, s.T, strict=True)]))

    def parameters(self) -> dict[str, Any]:
        """How many different probabilities each class has."""
        return {"levels": np.array([len(np.unique(g.y)) for g in self.steps])}


def _complete(p: np.ndarray) -> np.ndarray:
    """Both classes from the second one (n, 1), or the classes normalised (n, k)."""
    return np.column_stack([1.0 - p[:, 0], p[:, 0]]) if p.shape[1] == 1 else normalised(p)


def _ones(weight: np.ndarray | None, n: int) -> np.ndarray:
    return np.ones(n) if weight is None else weight


def _against_rest(codes: np.ndarray, columns: int) -> list[np.ndarray]:
    """0/1 targets (n,) of each column: the second class, or each class."""
    classes = [1] if columns == 1 else range(columns)
    return [(codes == j).astype(np.float64) for j in classes]


def fit_isotonic(s: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None) -> Solution:
    """Isotonic regression of scores (n, m) on the classes `codes` (n,).

    >>> model = fit_isotonic(np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0])).model
    >>> model.probabilities(np.array([[0.5], [3.0]]))[:, 1].tolist()
    [0.25, 0.5]
    """
    targets = _against_rest(codes, s.shape[1])
    steps = [isotonic(x, t, weight) for x, t in zip(s.T, targets, strict=True)]
    return Solution(Isotonic(tuple(_trimmed(g) for g in steps)), Status.SOLVED, {})


def _trimmed(g: Steps) -> Steps:
    """Without knots inside a level: they draw the same function."""
    inside = np.concatenate([[True], (g.y[1:-1] != g.y[:-2]) | (g.y[1:-1] != g.y[2:]), [True]])
    return Steps(g.x[inside], g.y[inside]) if len(g.x) > 1 else g


def fit_platt(s: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None) -> Solution:
    """Platt's sigmoid of scores (n, m) for the classes `codes` (n,)."""
    omega, found = _ones(weight, len(s)), []
    for x, true in zip(s.T, _against_rest(codes, s.shape[1]), strict=True):
        plus, minus = float(omega @ true), float(omega @ (1 - true))
        target = np.where(true > 0, (plus + 1) / (plus + 2), 1 / (minus + 2))
        size = float(np.abs(x).max()) or 1.0
        columns = np.column_stack([x / size, np.ones(len(x))])
        start = np.array([0.0, np.log((plus + 1) / (minus + 1))])
        at, gradient, ended = _newton(_Sigmoid(columns, target, omega, 0.0), start)
        found.append((-at[0] / size, -at[1], gradient, ended))
    slope, offset, gradients, ends = zip(*found, strict=True)
    evidence = {"gradient_norm": max(gradients)}
    return Solution(Platt(np.array(slope), np.array(offset)), max(ends), evidence)


def fit_beta(q: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None) -> Solution:
    """Beta calibration of probabilities (n, m) for the classes `codes` (n,).

    A coefficient that would be negative is left out and the rest fitted again, as the authors do.
    """
    omega, found = _ones(weight, len(q)), []
    for x, true in zip(
        np.clip(q, FLOOR, 1 - FLOOR).T, _against_rest(codes, q.shape[1]), strict=True
    ):
        columns = np.column_stack([np.log(x), -np.log1p(-x), np.ones(len(x))])
        found.append(_beta_columns(columns, true, omega))
    a, b, c, gradients, ends = zip(*found, strict=True)
    model = Beta(np.array(a), np.array(b), np.array(c))
    return Solution(model, max(ends), {"gradient_norm": max(gradients)})


def _beta_columns(columns: np.ndarray, true: np.ndarray, omega: np.ndarray) -> tuple[Any, ...]:
    kept = [0, 1, 2]
    while True:
        problem = _Sigmoid(columns[:, kept], true, omega, RIDGE)
        at, gradient, ended = _newton(problem, np.zeros(len(kept)))
        wrong = [j for j, value in zip(kept[:-1], at[:-1], strict=True) if value < 0]
        if not wrong:
            full = np.zeros(3)
            full[kept] = at
            return (*full, gradient, ended)
        kept = [j for j in kept if j != wrong[0]]


def fit_vector(z: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None) -> Solution:
    """Vector scaling of logits (n, k) for the classes `codes` (n,), from the best temperature."""
    omega, k = _ones(weight, len(z)), z.shape[1]
    beta = best_sharpness(z, codes, weight).beta
    start = np.concatenate([np.full(k, beta), np.zeros(k)])
    at, gradient, ended = _newton(_Scaling(z, codes, omega), start)
    offset = at[k:] - at[k:].mean()
    return Solution(Vector(at[:k], offset), ended, {"gradient_norm": gradient})


class _Sigmoid:
    """Σ ω [log(1 + e^s) − t s] + ridge/2 ‖slopes‖², s = A c; the last column of A goes free."""

    def __init__(self, A: np.ndarray, target: np.ndarray, omega: np.ndarray, ridge: float) -> None:
        self.A, self.target, self.omega = A, target, omega
        self.ridge = np.full(A.shape[1], ridge)
        self.ridge[-1] = 0.0

    def value(self, c: np.ndarray) -> float:
        s = self.A @ c
        return float(self.omega @ (np.logaddexp(0.0, s) - self.target * s)) + self._penalty(c)

    def _penalty(self, c: np.ndarray) -> float:
        return float(0.5 * self.ridge @ c**2)

    def derivatives(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = expit(self.A @ c)
        gradient = self.A.T @ (self.omega * (p - self.target)) + self.ridge * c
        hessian = (self.A * (self.omega * p * (1 - p))[:, None]).T @ self.A
        return gradient, hessian + np.diag(self.ridge)


class _Scaling:
    """−Σ ω log softmax(w ∘ z + b)_y + ridge/2 ‖(w, b)‖² over (w, b) in one vector (2k,)."""

    def __init__(self, z: np.ndarray, codes: np.ndarray, omega: np.ndarray) -> None:
        self.z, self.codes, self.omega = z, codes, omega
        self.truth = np.zeros(z.shape)
        self.truth[np.arange(len(z)), codes] = 1.0

    def _scores(self, c: np.ndarray) -> np.ndarray:
        k = self.z.shape[1]
        return self.z * c[:k] + c[k:]

    def value(self, c: np.ndarray) -> float:
        scores = self._scores(c)
        top = scores.max(axis=1)
        level = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
        own = scores[np.arange(len(scores)), self.codes]
        return float(self.omega @ (level - own)) + 0.5 * RIDGE * float(c @ c)

    def derivatives(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, k = softmax(self._scores(c)), self.z.shape[1]
        gap = self.omega[:, None] * (p - self.truth)
        # A common offset changes nothing: what rounding makes of its slope must not be followed.
        offsets = gap.sum(axis=0) - gap.sum() / k
        gradient = np.concatenate([(gap * self.z).sum(axis=0), offsets]) + RIDGE * c
        # Cov of (z_j, 1) under p: the diagonal blocks less the outer products of p ∘ (z, 1).
        weighed = self.omega[:, None] * p
        moments = [(weighed * self.z**power).sum(axis=0) for power in (2, 1, 0)]
        hessian = np.zeros((2 * k, 2 * k))
        each = np.arange(k)
        hessian[each, each], hessian[each + k, each + k] = moments[0], moments[2]
        hessian[each, each + k] = hessian[each + k, each] = moments[1]
        both = np.hstack([p * self.z, p])
        hessian -= both.T @ (self.omega[:, None] * both)
        return gradient, hessian + RIDGE * np.eye(2 * k)


def _newton(problem: Any, at: np.ndarray) -> tuple[np.ndarray, float, Status]:
    """Newton's method with halved steps: the minimum, its largest slope, how it ended."""
    value = problem.value(at)
    gradient, hessian = problem.derivatives(at)
    for _ in range(TURNS):
        step = -np.linalg.lstsq(hessian, gradient, rcond=1e-15)[0]
        promised = float(-gradient @ step)
        to, length = _shorter(problem.value, at, value, step, promised)
        at, value = to, problem.value(to)
        gradient, hessian = problem.derivatives(at)
        if length == 0.0 or promised <= TOLERANCE * max(abs(value), 1.0):
            return at, float(np.abs(gradient).max()), Status.CONVERGED
    return at, float(np.abs(gradient).max()), Status.ITERATIONS


def _shorter(
    value_of: Callable[[np.ndarray], float],
    at: np.ndarray,
    value: float,
    step: np.ndarray,
    promised: float,
) -> tuple[np.ndarray, float]:
    """The first halving that does not rise; near the optimum rounding hides the fall."""
    slack = 8 * np.finfo(float).eps * max(abs(value), 1.0)
    length = 1.0
    while length > 1e-10:
        if value_of(at + length * step) <= value - 1e-4 * length * promised + slack:
            return at + length * step, length
        length *= 0.5
    return at, 0.0
