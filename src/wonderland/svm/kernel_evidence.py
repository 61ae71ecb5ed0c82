"""What a person needs to know about a kernel ridge fit."""

from typing import Any

import numpy as np

from wonderland.core.evidence import Claim
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.mercer import mercer
from wonderland.solve.leave_one_out import Curve
from wonderland.solve.shifted import ShiftedFit
from wonderland.svm.kernel_tuning import Tuned

__all__ = ["curve_claims", "kernel_claims", "mercer_claims", "tuned_claims"]

GAP = 1e-9  # P − D relative to P that a direct solution keeps below
ASKED = 2000  # rows up to which a kernel without a proof of Mercer's condition is asked for one


def kernel_claims(fit: ShiftedFit, mass: float) -> list[Claim]:
    """The claims of every exact kernel ridge fit."""
    primal, gap = float(fit.primal.sum()), float(fit.gap.sum())
    return [
        Claim.fact("solver", fit.solver, fit.reason),
        Claim.fact("condition_number", fit.condition, "1-norm of K + α/ω, estimated"),
        Claim.below(
            "gradient_norm",
            fit.gradient,
            GAP,
            "largest residual of (K + α/ω)a = y, in units of the largest target",
        ),
        Claim.fact("primal", primal, "Σω(y − f)² + α‖f‖² over the training rows and outputs"),
        Claim.fact("dual", primal - gap, "the largest lower bound on it that was found"),
        Claim.below(
            "duality_gap",
            gap,
            GAP * max(primal, np.finfo(float).tiny),
            "primal − dual, computed as the square of the residual: no optimum is lower by more",
        ),
        Claim.fact(
            "leave_one_out_error",
            float((fit.error**2).sum() / mass),
            "exact mean squared error on each row by the fit without it, summed over outputs",
        ),
        Claim.fact(
            "degrees_of_freedom",
            float(fit.freedom.max()),
            "tr K(K + α/ω)⁻¹: how many parameters the fit is worth, of as many as rows",
        ),
    ]


def mercer_claims(kernel: Kernel, K: Any) -> list[Claim]:
    """Whether K is positive semi-definite, where the kernel itself does not say so."""
    if kernel.psd or len(K) > ASKED:
        return []
    verdict = mercer("precomputed", K)
    return [
        Claim.above("mercer", verdict.smallest, -verdict.bound, f"smallest eigenvalue: {verdict}")
    ]


def curve_claims(curve: Curve, chosen: Curve) -> list[Claim]:
    """What the path of penalties showed."""
    best = float(curve.error.sum(axis=1).min())
    return [
        Claim.below(
            "leave_one_out_path",
            float(chosen.error.sum()),
            best * (1 + 1e-9),
            f"leave-one-out error at the chosen alpha; the bound is the smallest of "
            f"{len(curve.alphas)} on the path",
        ),
        _slope(abs(chosen.log_slope) / max(float(chosen.error.sum()), np.finfo(float).tiny)),
    ]


def tuned_claims(tuned: Tuned) -> list[Claim]:
    """Where the search by derivatives began and ended."""
    return [
        Claim.below(
            "leave_one_out_path",
            tuned.error,
            tuned.start * (1 + 1e-9),
            f"leave-one-out error after {tuned.steps} evaluations; the bound is where they began",
        ),
        _slope(tuned.slope, tuned.limited),
    ]


def _slope(value: float, limited: int = 0) -> Claim:
    end = f"; {limited} parameters went as far as they may, by a factor of 10⁶" if limited else ""
    return Claim.fact(
        "leave_one_out_slope",
        value,
        f"largest |d log(error)/d log(parameter)| of what was tuned, zero at an inner optimum{end}",
    )
