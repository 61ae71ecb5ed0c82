"""The linear kernel: K = XXᵀ has rank d, so that the problem is one of d + 1 unknowns.

With f(x) = ⟨w, x⟩, w = Xᵀβ, the problem of `box_problem` is one of intervals: predictions pay h_i
for each unit below p_i − ε and |l_i| for each above p_i + ε. Its solver (`interior_routes`) needs X
alone, in time that grows as n, and gives β; what is judged is the certificate of β in the kernel
problem.
"""

from typing import NamedTuple

import numpy as np

from wonderland.kernels.inner import Linear
from wonderland.solve.box_gram import Gram
from wonderland.solve.box_problem import BoxProblem, Certificate, certify
from wonderland.solve.interior_problem import Intervals
from wonderland.solve.interior_routes import solve_intervals

__all__ = ["LinearFit", "fits_linear", "solve_linear"]

FEWEST = 100  # samples below which steps of two are as good
STEPS = 1000
EDGE = 1e-9  # of a bound: multipliers so near to it, or to zero, are taken to lie there


class LinearFit(NamedTuple):
    """β, g = p − XXᵀβ (n,), the certificate, Newton steps, and how it was done."""

    beta: np.ndarray
    g: np.ndarray
    certificate: Certificate
    steps: int
    solver: str


def fits_linear(problem: BoxProblem, gram: Gram) -> bool:
    """Whether the problem is one of intervals."""
    both = (problem.high > 0) & (problem.low < 0)
    return (
        isinstance(gram.kernel, Linear)
        and gram.n >= FEWEST
        and problem.total == 0
        and not problem.hard
        and bool((problem.high[both] == -problem.low[both]).all())
    )


def solve_linear(problem: BoxProblem, gram: Gram, tol: float) -> LinearFit:
    """The optimum by Newton's method on w; X (n, d) is read, K never made.

    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> box = BoxProblem(y, np.minimum(y, 0.0), np.maximum(y, 0.0))
    >>> solve_linear(box, Gram(Linear(), X), 1e-6).certificate.gap < 1e-6
    True
    """
    X, cost = gram.rows, np.maximum(problem.high, -problem.low)
    low = np.where(problem.high > 0, problem.linear - problem.kink, -np.inf)
    high = np.where(problem.low < 0, problem.linear + problem.kink, np.inf)
    answer = solve_intervals(Intervals(X, low, high, cost), tol, STEPS)
    beta = np.clip(answer.point.beta, problem.low, problem.high)
    near = np.abs(beta) <= EDGE * cost
    beta = np.where(near, 0.0, beta)
    for bound in (problem.low, problem.high):
        beta = np.where(np.abs(beta - bound) <= EDGE * cost, bound, beta)
    g = problem.linear - X @ (X.T @ beta)
    return LinearFit(beta, g, certify(problem, beta, g), answer.steps, answer.solver)
