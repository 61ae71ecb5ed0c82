"""Standard errors of logistic coefficients: √ of the diagonal of (Σω(diag p − ppᵀ) ⊗ x̃x̃ᵀ + Λ)⁻¹.

Λ is zero for maximum likelihood and the precision of the prior for MAP (Laplace's approximation).
Softmax coefficients are those that sum to zero over classes, and so are their errors.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from wonderland.core.errors import InputError
from wonderland.linear.logistic_curvature import Whole
from wonderland.linear.logistic_evidence import Report
from wonderland.linear.logistic_problem import Logistic, sweep
from wonderland.solve.newton_metric import Dense

__all__ = ["Spread", "spread_of"]

WIDE = 2500  # parameters of the widest Hessian that is inverted
CHEAP = 2e8  # multiplications of a Hessian that is taken for the errors alone


class Spread(NamedTuple):
    """Standard errors of W (c, d) and b (c,); both None where they were not computed."""

    coef: Any
    intercept: Any

    def checked(self) -> "Spread":
        """Itself, or the reason why there are none."""
        if self.coef is None:
            raise InputError(
                "a fit without standard errors: its Hessian was too wide to be taken",
                "fewer parameters, or a solver that takes the whole Hessian",
                "Pass solver='newton', or drop columns",
            )
        return self

    def quantile(self, level: float) -> float:
        """Half-width of a two-sided interval in standard errors."""
        if not 0 < level < 1:
            raise InputError(
                f"level is {level!r}", "a probability between 0 and 1", "Pass level=0.95"
            )
        return float(ndtri(0.5 + 0.5 * level))


def spread_of(report: Report) -> Spread:
    """Standard errors at the end of a fit, where the Hessian is at hand or cheap."""
    problem = report.problem
    metric = _hessian(report)
    if metric is None:
        return Spread(None, None)
    covariance = metric.inverse() / float(problem.mass[0])
    c, q, d = problem.columns, problem.width, problem.X.shape[1]
    table = covariance.reshape(c, q, c, q)
    variance = np.einsum("ajaj->aj", table).copy()
    if c > 1:
        # Var of w_a − mean over classes: what is common to all classes says nothing.
        across = np.einsum("ajbj->ajb", table)
        variance += across.sum(axis=(0, 2)) / c**2 - 2.0 * across.sum(axis=2) / c
    errors = np.sqrt(np.maximum(variance, 0.0))
    errors[:, :] = np.where(np.isfinite(errors), errors, np.inf)
    intercept = errors[:, d] if problem.fit_intercept else np.zeros(c)
    return Spread(errors[:, :d], intercept)


def _hessian(report: Report) -> Dense | None:
    problem, end = report.problem, report.end
    if isinstance(end.metric, Dense) and report.solver == "newton":
        return end.metric
    p = problem.columns * problem.width
    cost = float(problem.X.shape[0]) * p**2 / 2
    wanted = cost <= CHEAP or not problem.penalty.any()
    return _taken(problem, end.theta) if wanted and p <= WIDE else None


def _taken(problem: Logistic, theta: np.ndarray) -> Dense | None:
    curvature = Whole()
    sums = sweep(
        problem,
        theta[None],
        lambda X, P, weight: curvature.sums(X, P, weight, intercept=problem.fit_intercept),
    ).hessian[0]
    metric = curvature.metric(sums, problem)
    return metric if isinstance(metric, Dense) else None
