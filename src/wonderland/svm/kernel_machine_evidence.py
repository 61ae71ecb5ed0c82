"""What a person needs to know about a machine with a kernel."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.evidence import Claim
from wonderland.core.status import Status
from wonderland.solve.box_problem import BoxProblem
from wonderland.solve.box_solver import BoxFit

__all__ = ["Told", "claims_of", "worst"]


class Told(NamedTuple):
    """One problem and its answer.

    Attributes:
        name: Of the pair of classes, or of the target.
        rows: Which samples took part (n_part,).
        problem: The bounds.
        fit: The answer.
        labels: Whether its scores have a sign that must be right.
    """

    name: str
    rows: np.ndarray
    problem: BoxProblem
    fit: BoxFit
    labels: bool = False

    @property
    def margin(self) -> float:
        """γ = 1/‖f‖."""
        norm = self.fit.certificate.norm
        return float(1.0 / np.sqrt(norm)) if norm > 0 else float(np.inf)

    @property
    def support(self) -> np.ndarray:
        """Rows with β ≠ 0, among all samples."""
        return self.rows[self.fit.beta != 0]

    @property
    def bounded(self) -> int:
        """How many of them lie on their bound."""
        beta, problem = self.fit.beta, self.problem
        return int(np.count_nonzero((beta != 0) & ((beta == problem.low) | (beta == problem.high))))

    @property
    def wrong(self) -> int:
        """Samples that count and have y·f(x) ≤ 0."""
        signs = self.problem.linear
        f = signs - self.fit.g + self.fit.certificate.bias
        counts = (self.problem.high > 0) | (self.problem.low < 0)
        return int(np.count_nonzero((signs * f <= 0) & counts))


def worst(statuses: Sequence[Status]) -> Status:
    """The first that fell short, else the first."""
    return next((status for status in statuses if not status.ok), statuses[0])


def claims_of(told: Sequence[Told], tol: float) -> list[Claim]:
    """Claims over all problems: sums of objectives, the worst of everything else."""
    found = [fact.fit.certificate for fact in told]
    over = f", summed over {len(told)} problems" if len(told) > 1 else ""
    most = f", the worst of {len(told)} problems" if len(told) > 1 else ""
    hardest = max(told, key=lambda fact: fact.fit.steps)
    claims = [
        Claim.fact("solver", "working set", f"{hardest.fit.solver}{most}"),
        Claim.fact("primal", sum(c.primal for c in found), f"½‖w‖² + C Σ ω loss{over}"),
        Claim.fact("dual", sum(c.dual for c in found), f"a lower bound of the optimum{over}"),
        Claim.below(
            "duality_gap",
            max(c.gap for c in found),
            tol,
            f"(primal − dual)/primal: no solution is better by more{most}",
        ),
        Claim.below(
            "kkt_violation",
            max(c.violation for c in found),
            tol,
            f"m(β) − M(β): what one more and another less could still gain{most}",
        ),
        _support(told),
        Claim.fact("margin", min(fact.margin for fact in told), f"γ = 1/‖w‖{most}"),
        Claim.fact("iterations", hardest.fit.steps, f"steps of two variables{most}"),
    ]
    if told[0].labels:
        claims.append(_separable(told))
    return claims + ([_table(told)] if len(told) > 1 else [])


def _support(told: Sequence[Told]) -> Claim:
    total = len(np.unique(np.concatenate([fact.support for fact in told])))
    bounded = sum(fact.bounded for fact in told)
    return Claim.fact(
        "support_vectors",
        total,
        f"samples with β ≠ 0, the others could be left out; {bounded} multipliers at their bound",
    )


def _separable(told: Sequence[Told]) -> Claim:
    wrong = max(fact.wrong for fact in told)
    return Claim.fact(
        "separable",
        True if wrong == 0 else None,
        "every sample is on its own side of the fitted surface: it is the certificate"
        if wrong == 0
        else f"{wrong} samples are on the wrong side of this surface; C=inf decides whether "
        "another one separates",
    )


def _table(told: Sequence[Told]) -> Claim:
    rows: dict[str, Any] = {
        fact.name: {
            "primal": fact.fit.certificate.primal,
            "dual": fact.fit.certificate.dual,
            "duality_gap": fact.fit.certificate.gap,
            "kkt_violation": fact.fit.certificate.violation,
            "support_vectors": len(fact.support),
            "bounded": fact.bounded,
            "margin": fact.margin,
            "iterations": fact.fit.steps,
        }
        for fact in told
    }
    return Claim.fact("per_problem", rows, "the same for each pair of classes, or class")
