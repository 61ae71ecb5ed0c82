"""The dual of kernel machines: a quadratic over a box and one equality, and its certificate.

    minimise over β:   D(β) = ½βᵀKβ − pᵀβ + ε‖β‖₁    subject to  l ≤ β ≤ h,  Σβ_i = c

with l ≤ 0 ≤ h. Its own dual, the problem one means, is over the function f = Σ_i β_i k(x_i, ·)
and a bias b:

    minimise over f, b:   P = ½‖f‖² + c·b + Σ_i max{ 0, h_i(r_i − ε), l_i(r_i + ε) },
    r_i = p_i − f(x_i) − b,

and P + D ≥ 0 with equality at the optimum: the duality gap. Three machines are special cases:
classification (p = y, one of l, h is 0 and the other Cω_i·y_i, ε = 0), regression (p = y,
h = −l = Cω, ε the width of the tube; no variable is doubled), one class (p = 0, l = 0, h = ω,
c = νΣω). Everywhere g = p − Kβ is the negative gradient without the kink at zero.

Shapes: K (n, n), β, p, l, h, g (n,).

Reference: Fan, Chen, Lin, Working set selection using second order information (JMLR 2005).
"""

from typing import NamedTuple

import numpy as np

__all__ = ["BoxProblem", "Certificate", "certify", "pulls", "violation"]


class BoxProblem(NamedTuple):
    """What is minimised, the kernel aside.

    Attributes:
        linear: p (n,).
        low: l ≤ 0 (n,).
        high: h ≥ 0 (n,), infinite for a hard margin.
        kink: ε ≥ 0.
        total: c.
    """

    linear: np.ndarray
    low: np.ndarray
    high: np.ndarray
    kink: float = 0.0
    total: float = 0.0

    @property
    def hard(self) -> bool:
        """Whether errors are not allowed at any price."""
        return bool(np.isinf(self.high).any() or np.isinf(self.low).any())

    def part(self, index: np.ndarray) -> "BoxProblem":
        """The same bounds for some of the variables."""
        return self._replace(linear=self.linear[index], low=self.low[index], high=self.high[index])


class Certificate(NamedTuple):
    """How far a point is from the optimum.

    Attributes:
        primal: P at the function of β and the best bias.
        dual: −D(β) ≤ P.
        gap: (P + D)/max(|P|, tiny).
        violation: m(β) − M(β) of Keerthi's conditions, as LIBSVM measures it.
        bias: b.
        norm: ‖f‖².
    """

    primal: float
    dual: float
    gap: float
    violation: float
    bias: float
    norm: float


TINY = 1e-300
SLACK = 1e-9  # of the largest bound: a slope of the bias as small as this is a sum of roundings


def pulls(problem: BoxProblem, beta: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a unit more (up) or less (down) of each variable gains; ∓∞ where a bound forbids it."""
    if problem.kink:
        up = g - np.where(beta >= 0, problem.kink, -problem.kink)
        down = g - np.where(beta > 0, problem.kink, -problem.kink)
    else:
        up = down = g
    return (
        np.where(beta < problem.high, up, -np.inf),
        np.where(beta > problem.low, down, np.inf),
    )


def violation(problem: BoxProblem, beta: np.ndarray, g: np.ndarray) -> float:
    """max up − min down: at most zero exactly at the optimum."""
    up, down = pulls(problem, beta, g)
    return float(max(up.max() - down.min(), 0.0)) if len(g) else 0.0


def certify(problem: BoxProblem, beta: np.ndarray, g: np.ndarray) -> Certificate:
    """Primal, dual, gap and violation of a feasible β with g = p − Kβ."""
    # Sums, not products of BLAS: its threads would wait, spinning, where XLA works next.
    norm = float((beta * (problem.linear - g)).sum())
    dual = (
        float((problem.linear * beta).sum()) - 0.5 * norm - problem.kink * float(np.abs(beta).sum())
    )
    if problem.hard:
        primal, bias = _hard_primal(problem, beta, g, norm)
    else:
        bias = _best_bias(problem, g)
        primal = _primal(problem, g, norm, bias)
    gap = (primal - dual) / max(abs(primal), TINY)
    return Certificate(primal, dual, gap, violation(problem, beta, g), bias, norm)


def _primal(problem: BoxProblem, g: np.ndarray, norm: float, bias: float) -> float:
    """P for a bias."""
    r = g - bias
    over = np.maximum(problem.high * (r - problem.kink), problem.low * (r + problem.kink))
    loss = float(np.maximum(over, 0.0).sum())
    return 0.5 * norm + problem.total * bias + loss


def _best_bias(problem: BoxProblem, g: np.ndarray) -> float:
    """The zero of ∂P/∂b = c − Σ_{g−ε>b} h + Σ_{g+ε<b} |l|, which rises at each g ∓ ε.

    Where it is zero on an interval, the middle of it, as LIBSVM.
    """
    above, below = problem.high > 0, problem.low < 0
    places = np.concatenate([g[above] - problem.kink, g[below] + problem.kink])
    rises = np.concatenate([problem.high[above], -problem.low[below]])
    order = np.argsort(places)
    places, slope = places[order], np.cumsum(rises[order])
    if not len(places):
        return 0.0
    goal = float(problem.high.sum()) - problem.total
    slack = SLACK * float(rises.max())
    first = min(int(np.searchsorted(slope, goal - slack)), len(places) - 1)
    last = min(first + int(slope[first] <= goal + slack), len(places) - 1)
    return float(places[first] + places[last]) / 2.0


def _hard_primal(
    problem: BoxProblem, beta: np.ndarray, g: np.ndarray, norm: float
) -> tuple[float, float]:
    """½‖f‖² after f and b were stretched until every sample keeps its distance.

    With h or l infinite P is finite only where r_i ≤ 0 (r_i ≥ 0): y_i(f_i + b) ≥ 1.
    """
    above, below = g[problem.high > 0], g[problem.low < 0]
    bias = 0.5 * (above.max(initial=-np.inf) + below.min(initial=np.inf))
    f = problem.linear - g
    margin = np.where(problem.high > 0, f + bias, -(f + bias)).min()
    return (0.5 * norm / margin**2 if margin > 0 else np.inf), float(bias)
