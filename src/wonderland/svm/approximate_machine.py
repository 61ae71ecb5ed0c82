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

from wonderland.core.errors import InputError, InputTypeError
from wonderland.core.evidence import Claim
from wonderland.core.random import seed_of
from wonderland.core.status import Status
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.low_rank import Approximation, Features
from wonderland.solve.interior_routes import Answer, solve_intervals
from wonderland.svm.kernel_model import FeatureModel
from wonderland.svm.linear_problem import of_signs, of_targets

__all__ = ["ApproximateFit", "Machine", "check_approximation", "features_of", "fit_machines"]

STEPS = 1000


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
        support: Rows whose multiplier is not zero in any of them (m,).
        steps: Of the solver, for each problem (s,).
    """

    model: FeatureModel
    claims: list[Claim]
    status: Status
    support: np.ndarray
    steps: np.ndarray

    @property
    def fixed(self) -> dict[str, Any]:
        """Fitted attributes that all machines on features have."""
        return {
            "support_": self.support.astype(np.int32),
            "dual_coef_": np.atleast_2d(self.model.coef),
            "intercept_": np.atleast_1d(self.model.intercept),
            "fit_status_": 0 if self.status.ok else 1,
            "n_iter_": self.steps,
            "model_": self.model,
            "status_": self.status,
        }


def check_approximation(model: Any) -> None:
    """Raise an InputError where `approximation` cannot be used with the other parameters."""
    if model.approximation is None:
        return
    if not isinstance(model.approximation, Approximation):
        raise InputTypeError(
            f"approximation is {model.approximation!r}",
            "wl.kernels.Nystroem, RandomFeatures or PivotedCholesky, or None",
            "Pass approximation=wl.kernels.Nystroem(300)",
        )
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        raise InputError(
            "kernel='precomputed' together with an approximation",
            "a kernel that can be asked for its values: features are made of them",
            "Pass the kernel itself and the samples",
        )
    if np.isinf(float(model.C)):
        raise InputError(
            "C is inf together with an approximation",
            "a finite C: what features of a low rank do not separate the kernel may",
            "Pass a large C, such as C=1e6, or approximation=None",
        )
    if getattr(model, "probability", False) is True:
        raise InputError(
            "probability=True together with an approximation",
            "scores; sigmoids on held-out parts are there for the exact machine only",
            "Pass probability=False, and calibrate the scores from outside",
        )


def features_of(model: Any, kernel: Kernel, X: Any, cost: np.ndarray) -> Features:
    """φ from those samples that count, by the recipe and the seed of an estimator."""
    counts = cost > 0
    part = X if counts.all() else X[counts]
    chance = np.random.default_rng(seed_of(model.random_state))
    return model.approximation.features(kernel, part, chance)


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
    coef = np.stack([np.asarray(answer.point.w) for answer in found])
    intercept = np.array([float(answer.point.b) for answer in found])
    alone = len(found) == 1
    model = FeatureModel(phi, coef[0] if alone else coef, intercept[0] if alone else intercept)
    statuses = [answer.status for answer in found]
    worst = next((status for status in statuses if not status.ok), statuses[0])
    held = [m.rows[answer.point.beta != 0] for m, answer in zip(machines, found, strict=True)]
    support = np.unique(np.concatenate(held))
    claims = _claims(found, len(support), tol) + _error(phi, X, table, machines)
    steps = np.array([answer.steps for answer in found], np.int32)
    return ApproximateFit(model, claims, worst, support, steps)


def _error(phi: Features, X: Any, table: np.ndarray, machines: Sequence[Machine]) -> list[Claim]:
    """How far φ is from the kernel on the samples that take part."""
    rows = np.unique(np.concatenate([machine.rows for machine in machines]))
    if len(rows) < len(table):
        X, table = X[rows], table[rows]
    return phi.claims(float(np.sum(phi.own(X))), float(np.einsum("ij,ij->", table, table)), X)


def _solve(table: np.ndarray, machine: Machine, tol: float) -> Answer:
    part = table if len(machine.rows) == len(table) else table[machine.rows]
    target, cost = machine.target, machine.cost
    if machine.epsilon is None:
        problem = of_signs(part, target, cost, intercept=True, squared=False)
    else:
        problem = of_targets(part, target, machine.epsilon, cost, intercept=True, squared=False)
    return solve_intervals(problem, tol, STEPS)


def _claims(found: Sequence[Answer], support: int, tol: float) -> list[Claim]:
    """Sums of objectives, the worst of the rest."""
    several = len(found) > 1
    over = f", summed over {len(found)} problems" if several else ""
    most = f", the worst of {len(found)} problems" if several else ""
    seen = [answer.certificate for answer in found]
    norm = max(float(np.linalg.norm(answer.point.w)) for answer in found)
    return [
        Claim.fact("solver", f"features, {found[0].solver}", "the linear machine on φ(X)"),
        Claim.fact("primal", sum(float(c.primal) for c in seen), f"½‖w‖² + C Σ ω loss{over}"),
        Claim.fact("dual", sum(float(c.dual) for c in seen), f"a lower bound of it{over}"),
        Claim.below(
            "duality_gap",
            max(float(c.gap) for c in seen),
            tol,
            f"(primal − dual)/primal: no solution on these features is better by more{most}",
        ),
        Claim.fact("support_vectors", support, "samples with a multiplier that is not zero"),
        Claim.fact("margin", 1.0 / norm if norm > 0 else np.inf, f"γ = 1/‖w‖{most}"),
    ]
