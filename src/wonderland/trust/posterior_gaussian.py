"""Predictions averaged over a Gaussian posterior: in closed form, or to rounding."""

from typing import Any

import numpy as np
from scipy.special import stdtrit

from wonderland.core.evidence import Claim
from wonderland.losses.averages import (
    entropy,
    entropy_average,
    sigmoid_average,
    softmax_average,
)
from wonderland.trust.laplace import Gaussian, gaussian_of
from wonderland.trust.posterior_chains import Points
from wonderland.trust.posterior_parts import (
    Classes,
    Numbers,
    Predictive,
    objective_of,
    read_inside,
)
from wonderland.trust.wrapper import Task

__all__ = ["GaussianPredictive", "fit_gaussian"]


class GaussianPredictive(Predictive):
    """Averages over N(θ̂, RRᵀ), the model linearised."""

    gaussian: Gaussian

    def classes(self, estimator: Any, X: Any) -> Classes:
        """Two classes by quadrature, more by quasi-random points."""
        mean, spread = self.gaussian.moments(read_inside(estimator, X))
        if mean.shape[1] == 1:
            m, s = mean[:, 0], np.sqrt(spread[:, 0, 0])
            least = sigmoid_average(-np.abs(m), s)  # the smaller of both has the digits
            second = np.where(m > 0, 1.0 - least, least)
            average = np.column_stack([1.0 - second, second])
            return Classes(average, entropy(average), entropy_average(m, s))
        average, expected = softmax_average(mean, _roots(spread))
        return Classes(average, entropy(average), expected)

    def numbers(self, estimator: Any, X: Any) -> Numbers:
        """Mean and variances."""
        mean, spread = self.gaussian.moments(read_inside(estimator, X))
        noise = np.full(len(mean), self.gaussian.noise)
        return Numbers(mean[:, 0], spread[:, 0, 0], noise)

    def interval(self, estimator: Any, X: Any, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Student's t with Σω − γ degrees of freedom, in which the noise was estimated."""
        found = self.numbers(estimator, X)
        half = stdtrit(self.gaussian.freedom, 0.5 + 0.5 * level) * np.sqrt(found.total)
        return found.mean - half, found.mean + half

    def members(self, estimator: Any, X: Any, count: int) -> np.ndarray:
        """The model at draws of its parameters."""
        flat = self.gaussian.draw(count, np.random.default_rng(0))
        points = Points(
            flat, np.full(count, self.gaussian.noise), self.gaussian.tree, self.gaussian.rest
        )
        return points.members(estimator, X, count)


def _roots(spread: np.ndarray) -> np.ndarray:
    """R with RRᵀ = S for each of S (n, k, k), which may be singular."""
    values, vectors = np.linalg.eigh(spread)
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]


def fit_gaussian(
    estimator: Any, task: Task, structure: str
) -> tuple[GaussianPredictive, list[Claim]]:
    """Laplace's approximation at the fitted parameters."""
    objective = objective_of(estimator, task, "laplace")
    found = gaussian_of(objective, structure)
    return GaussianPredictive(found), _claims(found)


def _claims(found: Gaussian) -> list[Claim]:
    claims = [
        Claim.fact("solver", "laplace", f"{found.structure} Hessian of {len(found.theta)} numbers"),
        Claim.fact(
            "effective_parameters",
            found.effective,
            f"γ: how many of {len(found.theta)} parameters the data determine, not the prior",
        ),
        Claim.above(
            "rank", found.rank, len(found.theta), "directions that data or prior determine"
        ),
        Claim.fact("condition_number", found.condition, "of H, its diagonal scaled to one"),
        Claim.below(
            "gradient_norm",
            found.slope,
            1e-3,
            "largest slope of the log posterior for each sample: zero at its maximum",
        ),
    ]
    if not found.classes:
        claims.append(Claim.fact("noise_variance", found.noise, "σ² of a target about f(x)"))
    return claims
