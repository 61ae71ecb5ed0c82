"""The joint problem of several classes for LinearSVC, by `solve/joint_margin.py`."""

from typing import Any

import numpy as np

from wonderland.core.evidence import Claim, Evidence
from wonderland.shell.inputs import Classes
from wonderland.solve.interior_routes import quiet
from wonderland.solve.joint_margin import Joint, solve_joint
from wonderland.svm.linear_model import Scores
from wonderland.svm.linear_problem import strengths

__all__ = ["fit_joint"]

FINER = 0.1  # of tol is aimed at


def fit_joint(model: Any, table: Classes) -> dict[str, Any]:
    """Fitted attributes for ½‖W‖² + C Σ ω max_k (z_k − z_y + [k ≠ y])."""
    used = np.arange(len(table.codes)) if table.weight is None else np.flatnonzero(table.weight)
    strength = strengths(float(model.C), table.weight, len(table.codes))
    with quiet(table.X):
        found = solve_joint(
            table.X[used],
            table.codes[used],
            strength[used],
            classes=len(table.classes),
            intercept=bool(model.fit_intercept),
            tol=FINER * float(model.tol),
            limit=int(model.max_iter),
        )
    found = found.relaxed(float(model.tol))
    bent = np.flatnonzero(np.abs(found.alpha).max(axis=1) > 0)
    support = used[bent]
    return {
        "coef_": found.W,
        "intercept_": found.b if model.fit_intercept else 0.0,
        "support_": support,
        "dual_coef_": found.alpha[bent].T,
        "n_iter_": max(1, found.steps),
        "model_": Scores(found.W, found.b),
        "status_": found.status,
        "evidence_": Evidence(_claims(table, found, len(support), float(model.tol))),
    }


def _claims(table: Classes, found: Joint, support: int, tol: float) -> list[Claim]:
    scores = np.asarray(table.X @ found.W.T) + found.b
    counted = np.ones(len(scores), bool) if table.weight is None else table.weight > 0
    own = scores[np.arange(len(scores)), table.codes]
    scores[np.arange(len(scores)), table.codes] = -np.inf
    lead = (own - scores.max(axis=1))[counted]
    wrong = int(np.count_nonzero(lead <= 0))
    return [
        Claim.fact(
            "solver",
            "joint lagrangian",
            "one problem of all classes: augmented Lagrangian, each inner problem by semismooth "
            "Newton on the rows whose loss is between two classes",
        ),
        Claim.fact("primal", found.primal, "½‖W‖² + C Σ ω max_k (z_k − z_y + [k ≠ y])"),
        Claim.fact("dual", found.dual, "a lower bound of the optimum, from the multipliers"),
        Claim.below(
            "duality_gap",
            found.gap,
            tol,
            "(primal − dual)/primal: no solution is better by more",
        ),
        Claim.fact(
            "kkt_violation",
            found.kkt,
            "how far a class without a multiplier scores above one that has it, at most",
        ),
        Claim.fact(
            "support_vectors", support, "samples with a multiplier: the others could be left out"
        ),
        Claim.fact("iterations", found.steps, "Newton steps"),
        Claim.fact(
            "separable",
            None if wrong else True,
            f"{wrong} samples score higher for another class; another W might separate"
            if wrong
            else "every sample scores highest for its own class: the fit is the certificate",
        ),
    ]
