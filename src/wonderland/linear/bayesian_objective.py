"""The log posteriors of linear models, for averaging over them (`shell.objective`)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from wonderland.core.errors import InputError
from wonderland.linear.logistic_check import l1_share
from wonderland.linear.model import LinearModel
from wonderland.losses.likelihood import BinaryCrossEntropy, CrossEntropy
from wonderland.losses.loss import Loss
from wonderland.shell.objective import Objective

__all__ = ["Half", "Shrink", "classes_objective", "numbers_objective"]


class Half(eqx.Module):
    """ℓ(z, y) = ½(z − y)²."""

    def __call__(self, prediction: Any, target: Any) -> Any:
        """½(z − y)²."""
        return 0.5 * (prediction - target) ** 2


class Likelihood(eqx.Module):
    """The value of a loss, as a function."""

    loss: Loss

    def __call__(self, prediction: Any, target: Any) -> Any:
        """ℓ(z, y)."""
        return self.loss.value(prediction, target)


class Shrink(eqx.Module):
    """ρ(W, b) = ½ Σ λ(W − μ)² + κ Σ|W| + ½ (Σ_c b_c)²/k.

    The last term is there for softmax alone, where one number may be added to every intercept; it
    changes no probability.

    Attributes:
        strength: λ, broadcast over W.
        centre: μ.
        absolute: κ.
        several: Whether there is an intercept for each of several classes.
    """

    strength: Any
    centre: Any = 0.0
    absolute: Any = 0.0
    several: bool = False

    def __call__(self, model: LinearModel) -> Any:
        """ρ of a linear model."""
        away = model.coef - self.centre
        value = 0.5 * jnp.sum(self.strength * away**2)
        if self.absolute is not None:
            value = value + jnp.sum(self.absolute * jnp.abs(model.coef))
        if self.several:
            value = value + 0.5 * jnp.sum(model.intercept) ** 2 / model.coef.shape[0]
        return value


def free_of(model: LinearModel, *, fit_intercept: bool) -> LinearModel:
    """W, and b where it is fitted; never the basis."""
    return LinearModel(True, fit_intercept, False)  # noqa: FBT003


def double_model(model: LinearModel) -> LinearModel:
    """The same model with float64 arrays."""
    return LinearModel(
        np.asarray(model.coef, np.float64), np.asarray(model.intercept, np.float64), model.basis
    )


def weights_of(weight: np.ndarray | None, n: int) -> np.ndarray:
    """ω (n,)."""
    return np.ones(n) if weight is None else weight


def numbers_objective(estimator: Any, table: Any, alpha: Any, noise: float) -> Objective:
    """Σω(y − f)² + α‖W‖², halved; σ² is the residual variance."""
    if table.y.shape[1] != 1:
        raise InputError(
            f"{table.y.shape[1]} targets", "one target (n,)", "Average over one output at a time"
        )
    if getattr(estimator, "positive", False):
        raise InputError(
            "positive=True: the maximum lies on a bound, where no Gaussian stands",
            "coefficients that are free",
            'Pass positive=False, or method="ensemble"',
        )
    if not np.isfinite(noise) and float(np.ravel(alpha)[0]) > 0:
        noise = _joint_noise(estimator, table, float(np.ravel(alpha)[0]))
    if not np.isfinite(noise):
        raise InputError(
            f"as many coefficients as samples: {len(table.y)} leave nothing to tell the noise by",
            "more samples than coefficients, or a penalty",
            "Pass wl.Ridge or wl.BayesianLinearRegression",
        )
    model = double_model(estimator.model_)
    flat = LinearModel(model.coef.reshape(-1), model.intercept.reshape(()), model.basis)
    strength = float(np.ravel(alpha)[0])
    return Objective(
        model=flat,
        free=free_of(flat, fit_intercept=bool(estimator.fit_intercept)),
        loss=Half(),
        penalty=Shrink(np.float64(strength), absolute=None) if strength > 0 else None,
        X=table.X,
        target=table.y[:, 0],
        weight=weights_of(table.weight, len(table.y)),
        noise=np.float64(noise),
        penalised=flat.coef.size if strength > 0 else 0,
    )


def _joint_noise(estimator: Any, table: Any, alpha: float) -> float:
    """(Σωr² + α‖W‖²)/Σω: σ² at the joint maximum, where residuals alone tell nothing."""
    residual = table.y - np.asarray(estimator.model_.predict(table.X)).reshape(table.y.shape)
    omega = weights_of(table.weight, len(table.y))
    squares = float(omega @ (residual**2).sum(axis=1))
    return (squares + alpha * float(np.sum(np.square(estimator.coef_)))) / float(omega.sum())


def classes_objective(estimator: Any, table: Any) -> Objective:
    """C Σωℓ + ½‖W‖² divided by C: minus the log posterior."""
    model, k = double_model(estimator.model_), len(table.classes)
    C, share = float(estimator.C_), float(l1_share(estimator))
    precision: Any = 1.0
    centre: Any = 0.0
    if estimator.prior is not None:
        centre, precision = (np.asarray(part, np.float64) for part in estimator.prior)
        centre = centre.reshape(-1) if k == 2 and centre.ndim else centre
    strength = (1.0 - share) * np.asarray(precision) / C if np.isfinite(C) else np.float64(0.0)
    absolute = np.float64(share / C) if share and np.isfinite(C) else None
    several = k > 2 and bool(estimator.fit_intercept)
    return Objective(
        model=model,
        free=free_of(model, fit_intercept=bool(estimator.fit_intercept)),
        loss=Likelihood(BinaryCrossEntropy() if k == 2 else CrossEntropy()),
        penalty=Shrink(strength, centre, absolute, several),
        X=table.X,
        target=table.codes.astype(np.float64) if k == 2 else table.codes,
        weight=weights_of(table.weight, len(table.codes)),
        classes=k,
        penalised=model.coef.size if np.isfinite(C) else 0,
        smooth=absolute is None,
    )
