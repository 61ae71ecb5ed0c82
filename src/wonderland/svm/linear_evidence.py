"""What a person needs to know about a linear support vector machine."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.evidence import Claim
from wonderland.core.status import Status
from wonderland.solve.interior_problem import Intervals, distances
from wonderland.solve.interior_routes import Answer

__all__ = ["Told", "claims_of", "tell", "worst"]


class Told(NamedTuple):
    """The facts of one problem: one pair of classes, or one output.

    Attributes:
        name: Of the class or output.
        answer: With its certificate.
        support: Rows with a multiplier that is not zero.
        gradient: Largest entry of w − Xᵀβ(z) where the loss is smooth, else None.
        wrong: Rows on the wrong side of the hyperplane; None for regression.
    """

    name: str
    answer: Answer
    support: np.ndarray
    gradient: float | None
    wrong: int | None

    @property
    def norm(self) -> float:
        """‖w‖."""
        return float(np.linalg.norm(self.answer.point.w))

    @property
    def margin(self) -> float:
        """γ = 1/‖w‖."""
        return 1.0 / self.norm if self.norm > 0 else float(np.inf)


def tell(name: str, problem: Intervals, answer: Answer, *, labels: bool) -> Told:
    """Look once more at every row."""
    point = answer.point
    z = problem.X @ point.w + point.b
    gradient = None
    if problem.squared:
        up = np.where(z < problem.low, 1.0, -1.0)
        beta = 2.0 * problem.strength * distances(problem, z) * up
        slope = point.w - problem.X.T @ beta
        along = abs(float(beta.sum())) if problem.intercept else 0.0
        gradient = max(float(np.abs(slope).max(initial=0.0)), along)
    wrong = None
    if labels:
        signs = np.where(np.isfinite(problem.low), 1.0, -1.0)
        wrong = int(np.count_nonzero((signs * z <= 0) & (problem.strength > 0)))
    return Told(name, answer, np.flatnonzero(point.beta), gradient, wrong)


def worst(statuses: Sequence[Status]) -> Status:
    """The first that fell short, else the first."""
    return next((status for status in statuses if not status.ok), statuses[0])


def claims_of(told: Sequence[Told], tol: float) -> list[Claim]:
    """Claims over all problems: sums of objectives, the worst of everything else."""
    certificates = [fact.answer.certificate for fact in told]
    first = told[0].answer
    claims = [
        Claim.fact("solver", first.solver, first.reason),
        Claim.fact(
            "primal",
            sum(found.primal for found in certificates),
            f"½‖w‖² + C Σ ω loss{_over(told)}",
        ),
        Claim.fact(
            "dual",
            sum(found.dual for found in certificates),
            f"a lower bound of the optimum, from the multipliers{_over(told)}",
        ),
        Claim.below(
            "duality_gap",
            max(found.gap for found in certificates),
            float(tol),
            f"(primal − dual)/primal: no solution is better by more{_worst_of(told)}",
        ),
        Claim.fact(
            "kkt_violation",
            max(found.kkt for found in certificates),
            "largest distance of a score from where its multiplier says it must be",
        ),
        Claim.fact(
            "support_vectors",
            len(np.unique(np.concatenate([fact.support for fact in told]))),
            "samples with a multiplier that is not zero: the others could be left out",
        ),
        Claim.fact(
            "iterations", max(fact.answer.steps for fact in told), f"Newton steps{_worst_of(told)}"
        ),
        *_label_claims(told),
        *_smooth_claims(told),
    ]
    return claims + ([_table(told)] if len(told) > 1 else [])


def _over(told: Sequence[Told]) -> str:
    return f", summed over {len(told)} problems" if len(told) > 1 else ""


def _worst_of(told: Sequence[Told]) -> str:
    return f", the worst of {len(told)} problems" if len(told) > 1 else ""


def _label_claims(told: Sequence[Told]) -> list[Claim]:
    wrong = [fact.wrong for fact in told if fact.wrong is not None]
    if not wrong:
        return []
    margin = min(fact.margin for fact in told)
    return [
        Claim.fact("margin", margin, f"γ = 1/‖w‖: where scores are ±1{_worst_of(told)}"),
        Claim.fact(
            "separable",
            True if not any(wrong) else None,
            "the fitted hyperplane has every sample on its own side: it is the certificate"
            if not any(wrong)
            else f"{max(wrong)} samples are on the wrong side of this hyperplane; "
            "C=inf decides whether another one separates, and proves it",
        ),
    ]


def _smooth_claims(told: Sequence[Told]) -> list[Claim]:
    slopes = [fact.gradient for fact in told if fact.gradient is not None]
    if not slopes:
        return []
    return [Claim.fact("gradient_norm", max(slopes), f"largest entry of ∇P{_worst_of(told)}")]


def _table(told: Sequence[Told]) -> Claim:
    rows: dict[str, Any] = {
        fact.name: {
            "primal": fact.answer.certificate.primal,
            "dual": fact.answer.certificate.dual,
            "duality_gap": fact.answer.certificate.gap,
            "kkt_violation": fact.answer.certificate.kkt,
            "support_vectors": len(fact.support),
            "margin": fact.margin,
            "iterations": fact.answer.steps,
            "solver": fact.answer.solver,
        }
        for fact in told
    }
    return Claim.fact("per_problem", rows, "the same for each class against the rest, or output")
