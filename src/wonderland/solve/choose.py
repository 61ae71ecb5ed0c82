"""Which direct method, and the sentence why. The condition number is measured, never guessed."""

from enum import StrEnum

__all__ = ["CORRECT", "GRAM", "Method", "after_gram", "before_gram"]

GRAM = 1.0e6  # κ up to which the corrected normal equations agree with QR: κ²·ε < 10⁻³
CORRECT = 30.0  # κ up to which the plain normal equations keep 13 digits: κ²·ε < 10⁻¹³


class Method(StrEnum):
    """The direct methods, cheapest first."""

    CHOLESKY = "cholesky"
    CORRECTED = "cholesky+correction"
    DUAL = "dual cholesky"
    REFINED = "qr+refinement"
    MINIMUM_NORM = "qr+minimum norm"
    NON_NEGATIVE = "non-negative active set"
    LSQR = "lsqr"
    DESCENT = "gradient descent"
    SWEEP = "doubled-precision sweep"


def before_gram(*, small: bool, dual: bool, scaled: bool) -> tuple[Method | None, str]:
    """What the shape alone decides, before anything was measured."""
    if small:
        return Method.REFINED, "the problem is small: certified digits cost milliseconds"
    if dual:
        return Method.DUAL, "fewer rows than columns: the n × n Gram matrix is the small one"
    if not scaled:
        return Method.REFINED, "the second moments overflow or cancel in float64"
    return None, ""


def after_gram(condition: float) -> tuple[Method, str]:
    """What the measured condition number of the scaled columns decides."""
    if condition <= CORRECT:
        return Method.CHOLESKY, f"condition {condition:.3g} ≤ {CORRECT:.0f}: Gram matrix suffices"
    if condition <= GRAM:
        return (
            Method.CORRECTED,
            f"condition {condition:.3g} ≤ {GRAM:.0e}: Gram matrix, corrected on the data",
        )
    return Method.REFINED, f"condition {condition:.3g} > {GRAM:.0e}: the Gram matrix would lose it"
