"""How uncertain a prediction is, and why: what more data would remove, and what it would not."""

from typing import Any, NamedTuple

__all__ = ["Uncertainty"]


class Uncertainty(NamedTuple):
    """Uncertainty of n predictions in two parts that add up.

    For numbers, variances (the law of total variance); for classes, entropies in nats:

        Var[y|x] = Var_θ[f_θ(x)] + E_θ[σ_θ²(x)]
        H[E_θ p_θ(·|x)] = I(y; θ|x) + E_θ H[p_θ(·|x)]

    Attributes:
        total: Of the prediction (n,), in the container of predictions.
        epistemic: Because the parameters are not known (n,): more data would lower it.
        aleatoric: Because targets scatter where everything is known (n,).

    >>> import numpy as np
    >>> Uncertainty(np.array([3.0]), np.array([1.0]), np.array([2.0])).epistemic_share
    array([0.33333333])
    """

    total: Any
    epistemic: Any
    aleatoric: Any

    @property
    def epistemic_share(self) -> Any:
        """epistemic / total."""
        return self.epistemic / self.total
