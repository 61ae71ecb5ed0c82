"""What a person needs to know about the fit of a network; every number is measured on its samples.

Measured on at most `MOST` training samples, drawn evenly: the gradient ∇f at the weights kept (a
stationary point has none) and the hidden neurons that are at zero slope for all of them (dead).
"""

import resource
import sys
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland import nn
from wonderland.core.evidence import Claim, Evidence
from wonderland.metrics import calibration_error, mean_interval
from wonderland.neural.fit import Trained
from wonderland.neural.forward import raw_outputs
from wonderland.neural.network import Data, Plan
from wonderland.training.parameters import Frozen

__all__ = ["claims_of"]

MOST = 1024


def claims_of(plan: Plan, trained: Trained, solver: str) -> Evidence:
    """The evidence of one fit."""
    curve = trained.history
    parameters = jax.tree.leaves(nn.partition(trained.model)[0])
    count = sum(int(np.size(leaf)) for leaf in parameters)
    products = sum(int(np.size(leaf)) for leaf in parameters if np.ndim(leaf) > 1)
    epochs = len(curve)
    rate = epochs * len(plan.data) / max(trained.seconds, 1e-9)
    return Evidence(
        [
            Claim.fact("solver", solver, "how the weights were found"),
            Claim.fact("iterations", epochs, "epochs run"),
            Claim.fact("training_curve", curve.loss, "mean training loss of each epoch"),
            *_validation(curve),
            *_stationarity(plan, trained),
            *_held_out(plan, trained.model),
            Claim.fact("parameters", count, "numbers that were trained"),
            Claim.fact(
                "flops", 6 * products, "floating-point operations of one update for one sample"
            ),
            Claim.fact("peak_memory", _peak(), "bytes: the most this process has ever held"),
            Claim.fact(
                "samples_per_second", rate, "training samples seen a second, start-up included"
            ),
        ]
    )


def _validation(curve: Any) -> list[Claim]:
    if not len(curve) or not np.isfinite(curve.score).any():
        return []
    return [
        Claim.fact("validation_curve", curve.score, "score of the samples set aside, each epoch"),
        Claim.fact("best_epoch", int(np.nanargmax(curve.score)), "whose weights were kept"),
    ]


def _stationarity(plan: Plan, trained: Trained) -> list[Claim]:
    data = plan.data
    rows = np.linspace(0, len(data) - 1, min(MOST, len(data))).astype(int)
    some = data.take(rows)
    arrays, static = eqx.partition(trained.model, eqx.is_array_like)
    filled = _filled(some)
    gradient, dead, hidden = _measure(Frozen(static), plan.head)(arrays, *filled)
    norm = float(gradient) if trained.gradient is None else trained.gradient
    return [
        Claim.fact("gradient_norm", norm, "largest |entry| of the gradient of the mean loss"),
        Claim.fact(
            "dead_units",
            int(dead),
            f"of {int(hidden)} hidden neurons, those without slope on {len(rows)} samples",
        ),
    ]


def _filled(data: Data) -> tuple[Any, ...]:
    """Samples filled up to `MOST` rows of weight 0, so that one program serves all tables."""
    n, pad = len(data), MOST - len(data)
    weight = np.ones(n) if data.weight is None else np.asarray(data.weight, float)
    X = np.concatenate([data.X, np.repeat(data.X[:1], pad, axis=0)])
    y = np.concatenate([data.y, np.repeat(data.y[:1], pad, axis=0)])
    return X, y, np.concatenate([weight, np.zeros(pad)]).astype(np.float32)


@lru_cache(maxsize=64)
def _measure(static: Frozen, head: Any) -> Any:
    """(largest |∇f|, dead neurons, hidden neurons) in one program."""

    def measured(arrays: Any, X: Any, y: Any, weight: Any) -> Any:
        model = eqx.combine(arrays, static.tree)
        parameters, rest = nn.partition(jax.tree.map(_jax, model))

        def f(parameters: Any) -> Any:
            losses = jax.vmap(head.loss)(jax.vmap(eqx.combine(parameters, rest))(X), y)
            return jnp.sum(losses * weight) / jnp.sum(weight)

        largest = [jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(jax.grad(f)(parameters))]
        dead, hidden = _dead(model, X, weight)
        return jnp.max(jnp.stack(largest)), dead, hidden

    return jax.jit(measured)


def _jax(leaf: Any) -> Any:
    return jnp.asarray(leaf, jnp.float32) if isinstance(leaf, np.ndarray) else leaf


def _dead(model: Any, X: Any, weight: Any) -> tuple[Any, Any]:
    """Neurons behind a rectifier whose output is zero for every sample of positive weight."""
    dead, hidden = jnp.zeros((), jnp.int32), 0
    layers = getattr(getattr(model, "body", None), "layers", ())
    for layer in layers:
        X = jax.vmap(layer)(X)
        if (
            not isinstance(layer, nn.Linear | nn.Dropout | nn.BatchNorm | nn.LayerNorm)
            and X.ndim == 2
        ):
            hidden += X.shape[1]
            if layer is nn.relu:
                dead += jnp.sum(jnp.all((X == 0) | (weight == 0)[:, None], axis=0), dtype=jnp.int32)
    return dead, hidden


def _held_out(plan: Plan, model: Any) -> list[Claim]:
    """Gap and calibration on the samples set aside."""
    if plan.held is None:
        return []
    losses = [_losses(plan, model, data) for data in (plan.held, plan.data.take(_some(plan.data)))]
    risk = mean_interval(losses[0], plan.held.weight)
    inside = float(losses[1].mean())
    gap = (risk.low - inside, risk.high - inside)
    claims = [
        Claim(
            "generalisation_gap",
            risk.value - inside,
            gap,
            bool(gap[0] <= 0),
            "mean loss of the samples set aside (which chose the epoch) minus that of training "
            "samples, 95% interval; holds where zero is possible",
        )
    ]
    return [*claims, *_calibration(plan, model)]


def _some(data: Data) -> np.ndarray:
    return np.linspace(0, len(data) - 1, min(4 * MOST, len(data))).astype(int)


def _losses(plan: Plan, model: Any, data: Data) -> np.ndarray:
    raw = raw_outputs(model, data.X)
    return np.asarray(jax.vmap(plan.head.loss)(jnp.asarray(raw, jnp.float32), jnp.asarray(data.y)))


def _calibration(plan: Plan, model: Any) -> list[Claim]:
    if plan.held is None or plan.head.name not in ("bits", "classes"):
        return []
    p = np.asarray(plan.head.answer(raw_outputs(model, plan.held.X)))
    p = np.hstack([1.0 - p, p]) if p.shape[1] == 1 else p
    p = p / p.sum(axis=1, keepdims=True)
    found = calibration_error(plan.held.y, p, classes=np.arange(p.shape[1]), draws=200)
    return [
        Claim.fact(
            "calibration_error",
            float(found.value),
            "expected calibration error of the samples set aside (which chose the epoch)",
        )
    ]


def _peak() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(used if sys.platform == "darwin" else 1024 * used)
