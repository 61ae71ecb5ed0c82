"""Support vector machines on features of a low rank: a kernel machine for any number of rows.

With k(x, z) ≈ ⟨φ(x), φ(z)⟩ the kernel machine is the linear one on Φ, which holds n·r numbers where
the kernel matrix would hold n²:

    minimise over w, b:   ½‖w‖² + Σ_i C_i loss(y_i, ⟨w, φ(x_i)⟩ + b)

The certificate (duality gap) is that of this problem; how far its kernel is from k is in the claims
of the features. Shapes: X (n, d), Φ (n, r), w (s, r) and b (s,) for s problems.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.evidence import Claim
from wonderland.core.status import Status
from wonderland.kernels.low_rank import Features
from wonderland.svm.kernel_model import FeatureModel
from wonderland.svm.linear_pure import fit_linear_svc, fit_linear_svr

__all__ = ["ApproximateFit", "Machine", "fit_machines"]


class Machine(NamedTuple):
    """One problem.

    Attributes:
        name: Shown in evidence.
        rows: Which samples take part (m,).
        target: Signs ±1 of a classifier, or targets of a regression (m,).
        cost: C_i ≥ 0 (m,).
        epsilon: ε of a regression; None for the hinge of a classifier.
    """

    name: str
    rows: np.ndarray
    target: np.ndarray
    cost: np.ndarray
    epsilon: float | None = None


class ApproximateFit(NamedTuple):
    """The answers.

    Attributes:
        model: x ↦ the scores of all problems (s,), or a number where there is one.
        claims: Evidence.
        status: The first that fell short, else the first.
    """

    model: FeatureModel
    claims: list[Claim]
    status: Status


def fit_machines(
    phi: Features, X: Any, machines: Sequence[Machine], tol: float = 1e-3
) -> ApproximateFit:
    """Solve every problem on φ(X), which is made once.

    Args:
        phi: φ, from an `Approximation`.
        X: (n, d), dense or CSR.
        machines: The problems; one for two classes or a regression.
        tol: Relative duality gap.

    >>> from wonderland.kernels import Gaussian, Nystroem
    >>> X, signs = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, -1.0])
    >>> phi = Nystroem(4).features(Gaussian(1.0), X, np.random.default_rng(0))
    >>> one = Machine("inner against outer", np.arange(4), signs, np.full(4, 10.0))
    >>> np.sign(fit_machines(phi, X, [one]).model.predict(X))
    array([-1.,  1.,  1., -1.])
    """
    table = np.concatenate([block for _, block in phi.blocks(X)])
    found = [_solve(table, machine, tol) for machine in machines]
    coef = np.stack([np.asarray(solution.model.coef) for solution in found])
    intercept = np.array([float(solution.model.intercept) for solution in found])
    alone = len(found) == 1
    model = FeatureModel(phi, coef[0] if alone else coef, intercept[0] if alone else intercept)
    statuses = [solution.ended for solution in found]
    worst = next((status for status in statuses if not status.ok), statuses[0])
    trace, kept = float(np.sum(phi.own(X))), float(np.einsum("ij,ij->", table, table))
    claims = _claims(machines, found, tol)
    return ApproximateFit(model, claims + phi.claims(trace, kept, X), worst)


def _solve(table: np.ndarray, machine: Machine, tol: float) -> Any:
    whole = len(machine.rows) == len(table)
    part = table if whole else table[machine.rows]
    given = part, machine.target, 1.0
    if machine.epsilon is None:
        return fit_linear_svc(*given, sample_weight=machine.cost, loss="hinge", tol=tol)
    return fit_linear_svr(*given, machine.epsilon, sample_weight=machine.cost, tol=tol)


def _claims(machines: Sequence[Machine], found: list[Any], tol: float) -> list[Claim]:
    """Sums of objectives, the worst of the rest."""
    over = f", summed over {len(found)} problems" if len(found) > 1 else ""
    values = [solution.evidence for solution in found]
    gap = max(float(v["duality_gap"]) for v in values)
    support = [
        machine.rows[np.asarray(v["dual_coef"]) != 0]
        for machine, v in zip(machines, values, strict=True)
    ]
    return [
        Claim.fact("solver", f"features, {values[0]['solver']}", "the linear machine on φ(X)"),
        Claim.fact(
            "primal",
            sum(float(v["primal"]) for v in values),
            f"½‖w‖² + Σ C_i loss on the features{over}",
        ),
        Claim.fact("dual", sum(float(v["dual"]) for v in values), f"a lower bound of it{over}"),
        Claim.below(
            "duality_gap",
            gap,
            tol,
            "(primal − dual)/primal, the largest: no solution on these features is better by more",
        ),
        Claim.fact(
            "support_vectors",
            len(np.unique(np.concatenate(support))),
            "samples with a multiplier that is not zero",
        ),
    ]
