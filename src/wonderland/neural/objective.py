"""The log posterior of a network, for averaging over its weights (`shell.objective`).

    −log p(θ | S) = Σ_i ω_i ℓ(m_θ(x_i), y_i)/σ² + α Σω/(2b σ²) Σ_matrices ‖W‖² + constant

which is the objective of the fit times Σω/σ²; σ² is the mean squared residual of numbers, and one
for classes. Training by minibatches ends near the maximum, not at it: `gradient_norm` in the
evidence of the posterior says how near.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.errors import InputError
from wonderland.neural.forward import raw_outputs
from wonderland.neural.network import batch_size_of
from wonderland.shell.objective import Objective
from wonderland.training.parameters import split

__all__ = ["Decay", "network_objective"]

HEADS = ("bits", "classes", "squared")


class Decay(eqx.Module):
    """½ λ Σ ‖W‖² over the matrices of a multilayer perceptron.

    Attributes:
        strength: λ.
    """

    strength: Any

    def __call__(self, model: Any) -> Any:
        """The penalty of a network."""
        return 0.5 * self.strength * sum(jnp.sum(part.weight**2) for part in model.linears)


def network_objective(estimator: Any, table: Any) -> Objective:
    """The log posterior at the weights of a fitted network."""
    head, outputs, data = estimator._encoded(table)
    plain = estimator.architecture == "mlp" and head.name in HEADS
    if not plain or (head.name == "squared" and outputs != 1):
        raise InputError(
            f"a network with architecture={estimator.architecture!r} and {outputs} outputs of kind "
            f"{head.name!r}",
            'architecture="mlp" with classes, or one number and squared loss',
            'Pass method="ensemble", which takes any network',
        )
    model = jax.tree.map(_double, estimator.model_)
    weight = np.ones(len(data)) if data.weight is None else np.asarray(data.weight, np.float64)
    size = len(data) if estimator.solver == "lbfgs" else batch_size_of(estimator, len(data))
    strength = float(estimator.alpha) * float(weight.sum()) / size
    chosen = split(estimator.model_).parameters
    free = jax.tree.map(lambda leaf: leaf is not None, chosen, is_leaf=lambda leaf: leaf is None)
    return Objective(
        model=model,
        free=free,
        loss=head.loss,
        penalty=Decay(np.float64(strength)) if strength > 0 else None,
        X=np.asarray(data.X, np.float64),
        target=np.asarray(data.y),
        weight=weight,
        classes={"bits": 2, "squared": 0}.get(head.name, outputs),
        noise=_noise(estimator, data, weight) if head.name == "squared" else 1.0,
        penalised=sum(int(np.size(part.weight)) for part in model.linears) if strength > 0 else 0,
    )


def _double(leaf: Any) -> Any:
    """Inexact arrays as float64 on the host."""
    if not eqx.is_array(leaf):
        return leaf
    array = np.asarray(leaf)
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array


def _noise(estimator: Any, data: Any, weight: np.ndarray) -> np.float64:
    """The weighted mean of squared residuals."""
    residual = np.asarray(raw_outputs(estimator.model_, data.X))[:, 0] - np.ravel(data.y)
    return np.float64(np.average(residual.astype(np.float64) ** 2, weights=weight))
