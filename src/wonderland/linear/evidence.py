"""What a person needs to know about a least-squares fit, from what the solver measured."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wonderland.core.evidence import Claim
from wonderland.linear.inference import Facts
from wonderland.linear.routes import Outcome
from wonderland.solve.bounds import trusted_digits
from wonderland.solve.leave_one_out import Curve
from wonderland.solve.problem import LinearFit

__all__ = ["claims_of", "leave_one_out_claims", "values_of"]

CONSTANT = "intercept"


def claims_of(outcome: Outcome, facts: Facts, *, tol: float) -> list[Claim]:
    """The claims every linear fit makes.

    Args:
        outcome: From `routes.answer`.
        facts: Counts and names.
        tol: The bound on the certificate.
    """
    fit = outcome.fit
    claims = [
        Claim.fact("solver", fit.solver, fit.reason),
        Claim.fact(
            "condition_number",
            fit.condition,
            f"2-norm, columns centred and scaled: {fit.condition_how}",
        ),
        Claim.above(
            "rank",
            fit.rank,
            len(fit.coef),
            "independent columns, of as many as there are coefficients",
        ),
        Claim.fact(
            "collinear", tied(fit, facts.names), "columns that others reproduce, and which others"
        ),
        Claim.below(
            "gradient_norm",
            fit.gradient,
            tol,
            "largest cosine of a column and the residual, penalty included; zero at the optimum",
        ),
        Claim.fact(
            "digits",
            digits_of(fit),
            "correct decimal digits of the worst coefficient, from a computed error bound",
        ),
        Claim.fact(
            "empirical_risk",
            float(fit.rss.sum() / facts.mass),
            f"mean squared error over the {facts.rows} training samples, summed over outputs",
        ),
    ]
    return claims + _descent_claims(outcome)


def digits_of(fit: LinearFit) -> float:
    """Digits of the worst coefficient, intercept included where it is fitted."""
    beta = fit.coef if len(fit.error) == len(fit.coef) else np.vstack([fit.intercept, fit.coef])
    return trusted_digits(beta, fit.error)


def tied(fit: LinearFit, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Dependent column → the columns that reproduce it."""
    return {
        str(names[j]): tuple(str(names[k]) for k in others) or (CONSTANT,)
        for j, others in fit.collinear
    }


def _descent_claims(outcome: Outcome) -> list[Claim]:
    found = outcome.descent
    if found is None:
        return []
    return [
        Claim.fact("lipschitz", found.lipschitz, "L: largest eigenvalue of the Hessian"),
        Claim.fact(
            "strong_convexity", found.strong_convexity, "m: smallest eigenvalue of the Hessian"
        ),
        Claim.below(
            "iterations", found.iterations, found.bound, "steps taken; the bound is the theorem's"
        ),
        Claim.fact(
            "iteration_bound",
            found.bound,
            "steps after which the theorem of `solve.theory` guarantees the tolerance",
        ),
    ]


def leave_one_out_claims(curve: Curve, chosen: Curve) -> list[Claim]:
    """What the path of penalties showed, and how flat the point is that its slope led to."""
    value, best = float(chosen.error.sum()), float(curve.error.sum(axis=1).min())
    error = Claim.below(
        "leave_one_out_error",
        value,
        best * (1 + 1e-9),
        f"exact mean squared leave-one-out error at the chosen alpha; the bound is the "
        f"smallest of {len(curve.alphas)} on the path",
    )
    if np.isnan(chosen.log_slope):  # taken from the path, which has no slopes
        return [error]
    slope = Claim.fact(
        "leave_one_out_slope",
        chosen.log_slope / value if value > 0 else 0.0,
        "d log(error)/d log(alpha) at the chosen alpha, zero at an inner optimum",
    )
    return [error, slope]


def values_of(fit: LinearFit) -> Mapping[str, Any]:
    """The same facts as plain values, for a `Solution`."""
    return {
        "condition_number": fit.condition,
        "rank": fit.rank,
        "gradient_norm": fit.gradient,
        "digits": digits_of(fit),
        "solver": fit.solver,
    }
