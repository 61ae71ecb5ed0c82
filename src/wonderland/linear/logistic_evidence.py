"""What a person needs to know about a logistic fit, from what was measured in it."""

from typing import Any, NamedTuple

import numpy as np

from wonderland.core.evidence import Claim
from wonderland.linear.logistic_certificate import Certificate
from wonderland.linear.logistic_problem import Logistic
from wonderland.linear.logistic_separation import Verdict
from wonderland.solve.newton import End

__all__ = ["Report", "claims_of"]


class Report(NamedTuple):
    """One fit and its proofs.

    Attributes:
        problem: What was solved, in means over samples.
        end: Where the search ended.
        proof: Loss, primal and dual in the same unit.
        verdict: On separability.
        solver: Name of the solver.
        reason: Why it was taken.
        C: Weight of the loss; infinite without a penalty.
    """

    problem: Logistic
    end: End
    proof: Certificate
    verdict: Verdict
    solver: str
    reason: str
    C: float

    @property
    def scale(self) -> float:
        """From means to C Σωℓ + ½‖w‖² (or Σωℓ where nothing is penalised)."""
        return float(self.problem.mass[0]) * (self.C if np.isfinite(self.C) else 1.0)


def claims_of(report: Report, *, tol: float) -> list[Claim]:
    """The claims every logistic fit makes."""
    end, proof, scale = report.end, report.proof, report.scale
    claims = [
        Claim.fact("solver", report.solver, report.reason),
        Claim.below(
            "gradient_norm",
            float(np.max(np.abs(end.gradient), initial=0.0)),
            tol,
            "largest entry of the gradient of the objective divided by C Σω: a mean over samples",
        ),
        Claim.fact("iterations", end.iterations, "steps of the solver over all rows"),
        Claim.fact("primal", proof.primal * scale, _objective(report)),
        *_dual(report),
        Claim.fact(
            "log_likelihood",
            -proof.loss * float(report.problem.mass[0]),
            "Σ ω log p(y | x) of the training sample",
        ),
        Claim.fact(
            "predicted_decrease",
            end.decrement * scale,
            "½∇fᵀB∇f: what one more Newton step would take off the objective",
        ),
        Claim.fact("separable", _word(report.verdict), report.verdict.meaning),
    ]
    if report.verdict.direction is not None:
        meaning = "W (and b, last) whose score is highest for the own class of every sample"
        claims.append(Claim.fact("separating_direction", report.verdict.direction, meaning))
    return claims


def _objective(report: Report) -> str:
    return "C Σωℓ + ½‖w‖²" if np.isfinite(report.C) else "Σωℓ: nothing is penalised"


def _word(verdict: Verdict) -> Any:
    return "undecided" if verdict.separable is None else verdict.separable


def _dual(report: Report) -> list[Claim]:
    proof, scale = report.proof, report.scale
    if not np.isfinite(proof.dual):
        return []
    gap = max(proof.primal - proof.dual, 0.0)
    return [
        Claim.fact(
            "dual", proof.dual * scale, "a lower bound of every objective, from the residuals"
        ),
        Claim.fact(
            "duality_gap",
            gap / max(proof.primal, 1e-300),
            "(primal − dual)/primal: no coefficients have an objective lower by more",
        ),
    ]
