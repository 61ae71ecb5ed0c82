"""What errors of coefficients and predictions are computed from, under normal noise.

    y = Zβ + noise,  Z = [1, φ(X)],  noise ~ N(0, σ²/ω)   ⇒   Cov β̂ = σ²·(C − αCDC),
    C = (ZᵀΩZ + αD)⁻¹,   s² = Σωr²/(n − tr(I − αCD)) ,

with D the identity but for a zero at the intercept; for least squares α = 0 and Cov β̂ = σ²C.
Shapes: p = m + 1 columns with the intercept, t outputs.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from wonderland.core.errors import InputError
from wonderland.solve.problem import LeastSquares, LinearFit

__all__ = ["Facts", "Inference", "infer"]


class Facts(NamedTuple):
    """What is known of the data beside the solver's answer.

    Attributes:
        mass: Σω.
        rows: Samples with positive weight.
        alpha: Penalty per output (t,).
        names: Column names, after the basis.
        flat: Whether y came with one dimension.
        dtype: The floating type coefficients are given in.
    """

    mass: float
    rows: int
    alpha: np.ndarray
    names: list[str]
    flat: bool
    dtype: np.dtype

    @classmethod
    def of(cls, problem: LeastSquares, **rest: Any) -> "Facts":
        """The counts of a problem in memory."""
        n = problem.X.shape[0]
        if problem.weight is None:
            return cls(mass=float(n), rows=int(n), alpha=problem.alpha, **rest)
        rows = int(np.count_nonzero(problem.weight))
        return cls(mass=float(problem.weight.sum()), rows=rows, alpha=problem.alpha, **rest)


class Inference(NamedTuple):
    """Covariance and residual variance of a fit.

    Attributes:
        covariance: Of [intercept; slopes] for unit noise (p, p); None where the columns are
            dependent or outputs have penalties of their own.
        freedom: n minus the effective number of parameters.
        variance: s² per output (t,).
    """

    covariance: np.ndarray | None
    freedom: float
    variance: np.ndarray

    def errors(self, parameters: int) -> np.ndarray:
        """Standard errors (p, t), intercept first; infinite where nothing determines them."""
        if self.covariance is None:
            return np.full((parameters, len(self.variance)), np.inf)
        diagonal = np.maximum(np.diag(self.covariance), 0.0)
        return np.sqrt(diagonal[:, None] * self.variance)

    def spread(self, Z: np.ndarray) -> np.ndarray:
        """Standard deviation of a new target around its prediction: s·√(1 + zᵀ Cov z) (n, t)."""
        if self.covariance is None:
            return np.full((len(Z), len(self.variance)), np.inf)
        lean = np.maximum(np.einsum("ij,ij->i", Z @ self.covariance, Z), 0.0)
        return np.sqrt((1.0 + lean)[:, None] * self.variance)

    def quantile(self, level: float) -> float:
        """Half-width of a two-sided interval in standard errors: Student's t."""
        if not 0 < level < 1:
            raise InputError(
                f"level is {level!r}", "a probability between 0 and 1", "Pass level=0.95"
            )
        return float(stdtrit(self.freedom, (1 + level) / 2)) if self.freedom > 0 else np.inf


def infer(fit: LinearFit, facts: Facts, *, fit_intercept: bool) -> Inference:
    """s² and the covariance of the coefficients."""
    first, alpha = int(fit_intercept), float(facts.alpha[0])
    freedom, covariance = float(facts.rows - fit.rank - first), fit.inverse
    if covariance is not None and alpha > 0:
        C = covariance
        freedom = facts.rows - (len(C) - alpha * float(np.trace(C[first:, first:])))
        covariance = C - alpha * (C[:, first:] @ C[first:, :])
    variance = fit.rss / freedom if freedom > 0 else np.full(fit.rss.shape, np.inf)
    return Inference(covariance, freedom, variance)
