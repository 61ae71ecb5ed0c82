"""The l1 penalty for LinearSVC: ‖w‖₁ + C Σ ω max(0, 1 − y z)², by `solve/sparse_newton.py`."""

from typing import Any

import numpy as np

from wonderland.core.evidence import Claim, Evidence
from wonderland.shell.inputs import Classes
from wonderland.solve.sparse_newton import SparseFit, solve_l1
from wonderland.svm.linear_evidence import worst
from wonderland.svm.linear_model import Scores

__all__ = ["fit_sparse"]


def fit_sparse(model: Any, table: Classes) -> dict[str, Any]:
    """Fitted attributes, each class against the rest."""
    count = len(table.classes)
    codes = [1] if count == 2 else list(range(count))
    fits = [_one(model, table, code) for code in codes]
    coef = np.concatenate([fit.coef for fit in fits])
    intercept = np.concatenate([fit.intercept for fit in fits])
    single = len(fits) == 1
    return {
        "coef_": coef,
        "intercept_": intercept if model.fit_intercept else 0.0,
        "n_iter_": max(1, *(int(fit.iterations) for fit in fits)),
        "model_": Scores(coef[0], intercept[0]) if single else Scores(coef, intercept),
        "status_": worst([fit.status for fit in fits]),
        "evidence_": Evidence(_claims(fits, float(model.tol))),
    }


def _one(model: Any, table: Classes, code: int) -> SparseFit:
    return solve_l1(
        table.X,
        np.where(table.codes == code, 1.0, -1.0),
        table.weight,
        C=float(model.C),
        fit_intercept=bool(model.fit_intercept),
        tol=float(model.tol),
        max_iter=int(model.max_iter),
        loss="squared_hinge",
    )


def _claims(fits: list[SparseFit], tol: float) -> list[Claim]:
    relative = [fit.duality_gap / max(fit.primal, np.finfo(float).tiny) for fit in fits]
    zero = sum(int(np.count_nonzero(fit.coef == 0)) for fit in fits)
    return [
        Claim.fact(
            "solver", "sparse newton", "l1 penalty: proximal Newton on the columns that matter"
        ),
        Claim.fact("primal", sum(fit.primal for fit in fits), "‖w‖₁ + C Σ ω max(0, 1 − y z)²"),
        Claim.fact("dual", sum(fit.dual for fit in fits), "a lower bound of the optimum"),
        Claim.below("duality_gap", max(relative), tol, "(primal − dual)/primal, the worst class"),
        Claim.fact(
            "gradient_norm",
            max(float(fit.gradient_norm) for fit in fits),
            "largest distance of −∇loss from the subgradients of the penalty",
        ),
        Claim.fact("iterations", max(int(fit.iterations) for fit in fits), "Newton steps"),
        Claim.fact("zeros", zero, "coefficients that are exactly zero"),
    ]
