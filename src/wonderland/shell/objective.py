"""What an estimator states about its parameters, so that others can average over them.

    log p(θ | S) = −(Σ_i ω_i ℓ(f_θ(x_i), y_i) + ρ(θ)) / σ² + constant

An estimator that can be averaged over has a method `_objective(X, y, sample_weight)`, called after
its fit, that returns an `Objective` at its parameters; where it can be fitted for many weights at
once it has `_replicates(X, y, weights)`, a list of fitted estimators, one for each row of weights.
"""

from typing import Any, NamedTuple

import equinox as eqx

__all__ = ["Objective", "Split"]


class Split(NamedTuple):
    """A model in two: what is uncertain, and all the rest."""

    theta: Any
    rest: Any


class Objective(eqx.Module):
    """A log posterior, up to a constant, at its maximum.

    Attributes:
        model: f at the fitted parameters: an `equinox.Module`, a function of one sample.
        free: A tree like `model` (or a prefix of it): True at the arrays that are parameters.
        loss: ℓ(prediction, target) of one sample, a negative log likelihood where σ² = 1; for
            numbers ½(z − y)².
        penalty: ρ of a model: minus the log prior; None for a flat one.
        X: The table the model reads (n, d), float64.
        target: y (n,): class numbers, or numbers.
        weight: ω (n,).
        classes: How many classes; 0 for numbers.
        noise: σ²: the variance of numbers about f; 1 for classes.
        penalised: How many parameters ρ is a proper prior of.
        smooth: Whether ρ has derivatives: Laplace's method needs them.
    """

    model: Any
    free: Any
    loss: Any
    penalty: Any
    X: Any
    target: Any
    weight: Any
    classes: int = 0
    noise: Any = 1.0
    penalised: int = 0
    smooth: bool = True

    def split(self) -> Split:
        """The parameters at the maximum, and the rest of the model."""
        return Split(*eqx.partition(self.model, self.free))
