"""The least-squares problem and what every direct solver answers.

    minimise over w (d, t), b (t,):   Σ_i ω_i ‖y_i − wᵀx_i − b‖²  +  Σ_j α_j ‖w_·j‖²

Shapes: `n` samples, `d` features, `t` outputs, `p = d + 1` columns with the intercept.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wonderland.core.doubled import Doubled

__all__ = ["Array", "LeastSquares", "LinearFit"]

Array = NDArray[np.float64]


class LeastSquares(NamedTuple):
    """A stated problem on host arrays.

    Attributes:
        X: Features (n, d); CSR where `solve.sparse` takes them.
        y: Targets (n, t).
        weight: Sample weights ω (n,), or None for ones.
        alpha: Penalty per output (t,); zeros for least squares.
        fit_intercept: Whether b is free; it is never penalised.
        low: What float64 could not hold of X, (n, d), where a basis computed its columns in
            doubled precision; None otherwise.
        wobble: For each entry of X the change that rounding its source to float64 may have made,
            per source variable (v, n, d); None means half a unit in the last place of each entry.
    """

    X: Any
    y: Array
    weight: Array | None
    alpha: Array
    fit_intercept: bool
    low: Array | None = None
    wobble: Array | None = None

    @property
    def parameters(self) -> int:
        """Free coefficients per output: p = d (+ 1)."""
        return self.X.shape[1] + int(self.fit_intercept)

    @property
    def small(self) -> bool:
        """Whether certified digits cost only milliseconds."""
        return self.X.shape[0] * self.parameters**2 <= SMALL

    def root_weight(self) -> Array | None:
        """√ω as a column (n, 1), or None."""
        return None if self.weight is None else np.sqrt(self.weight)[:, None]


SMALL = 2_000_000  # n·p² below which the doubled-precision route is always taken


class LinearFit(NamedTuple):
    """What a direct solver found, with all that the evidence needs.

    Attributes:
        coef: w (d, t).
        intercept: b (t,).
        inverse: (ZᵀΩZ + αI)⁻¹ for Z = [1, X] (p, p), intercept first; None where the columns are
            dependent or the matrix would be too large.
        rss: Σ ω r² per output (t,).
        rank: Independent columns of the centred X.
        condition: 2-norm condition number of the centred, column-scaled problem.
        condition_how: How it was measured.
        gradient: Largest |x_jᵀΩr − αw_j| / (‖x_j‖ ‖y‖): the cosine the optimum makes zero.
        error: Bound on |computed − true| for each coefficient (p, t), intercept first when fitted.
        collinear: For each dependent column the columns that reproduce it: ((j, (k, …)), …).
        solver: Name of the method.
        reason: Why it was chosen: one sentence.
        iterations: Steps per output, for an iterative method.
        converged: Whether every output of an iterative method reached its tolerance.
        singular: Singular values of the centred X, largest first, where they were at hand.
    """

    coef: Array
    intercept: Array
    inverse: Array | None
    rss: Array
    rank: int
    condition: float
    condition_how: str
    gradient: float
    error: Array
    collinear: tuple[tuple[int, tuple[int, ...]], ...]
    solver: str
    reason: str
    iterations: tuple[int, ...] | None = None
    converged: bool = True
    singular: Array | None = None


def doubled_columns(problem: LeastSquares) -> Doubled:
    """Z = [1, X] with its low part, before weighting (n, p)."""
    low = np.zeros_like(problem.X) if problem.low is None else problem.low
    if not problem.fit_intercept:
        return Doubled(problem.X, low)
    one = np.ones((problem.X.shape[0], 1))
    return Doubled(np.hstack([one, problem.X]), np.hstack([0.0 * one, low]))
