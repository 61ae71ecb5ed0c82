"""What is known about a committee: a member that had not seen it has judged each sample."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wonderland import nn
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.status import Status
from wonderland.metrics import calibration_error, mean_interval
from wonderland.neural.committee import Elected, spread_factor
from wonderland.neural.heads import Head, split
from wonderland.neural.network import Data

__all__ = ["committee_attributes", "committee_claims", "spread_of"]


def committee_attributes(elected: Elected, head: Head, data: Data) -> dict[str, Any]:
    """Fitted attributes that are no claims."""
    curve = elected.history
    losses = [float(value) for value in _mean(curve.loss)]
    last = elected.model.members.body.layers[-1].weight
    return {
        "model_": elected.model,
        "history_": curve,
        "n_iter_": len(curve),
        "n_outputs_": int(last.shape[-1]),
        "out_activation_": head.activation,
        "loss_": losses[-1],
        "loss_curve_": losses,
        "t_": len(curve) * len(data),
        "status_": Status.VALIDATION_STALL if elected.status.ok else elected.status,
    }


def spread_of(elected: Elected, head: Head, data: Data) -> np.ndarray | None:
    """The factor by which variances are too small (t,), from held-out samples."""
    if head.name != "gaussian":
        return None
    mean, spread = (np.asarray(part, float) for part in split(elected.held))
    own = data.take(elected.judged)
    return spread_factor(mean, np.exp(spread), own.y, own.weight)


def committee_claims(elected: Elected, head: Head, data: Data, seconds: float) -> Evidence:
    """The evidence of one committee."""
    parameters = jax.tree.leaves(nn.partition(elected.model)[0])
    count = sum(int(np.size(leaf)) for leaf in parameters)
    members = elected.history.loss.shape[1]
    inside = len(data) - len(elected.judged) / members
    seen = np.isfinite(elected.history.loss).sum() * inside
    own = data.take(elected.judged)
    held = jax.vmap(head.loss)(jnp.asarray(elected.held, jnp.float32), jnp.asarray(own.y))
    risk = mean_interval(np.asarray(held, float), own.weight)
    best = np.nanargmin(elected.history.validation_loss, axis=0)
    trained = float(np.mean(elected.history.loss[best, np.arange(members)]))
    gap = (risk.low - trained, risk.high - trained)
    meaning = "mean loss of each sample for the member that had not seen it, 95% interval as bound"
    return Evidence(
        [
            Claim.fact("solver", "committee", "AdamW, weights of the least held-out loss"),
            Claim.fact("members", members, "networks, each on all folds but its own"),
            Claim.fact("iterations", len(elected.history), "epochs of the longest training"),
            Claim.fact("best_epoch", best, "whose weights each member kept"),
            Claim.fact("training_curve", elected.history.loss, "training loss (epochs, members)"),
            Claim.fact(
                "validation_curve", elected.history.validation_loss, "held-out loss of each"
            ),
            Claim("held_out_loss", risk.value, (risk.low, risk.high), None, meaning),
            Claim(
                "generalisation_gap",
                risk.value - trained,
                gap,
                bool(gap[0] <= 0),
                "held-out minus training loss (with dropout); holds where zero is possible",
            ),
            *_calibration(elected, head, data),
            Claim.fact("parameters", count, "numbers that were trained, of all members"),
            Claim.fact("samples_per_second", seen / max(seconds, 1e-9), "start-up included"),
        ]
    )


def _mean(curve: np.ndarray) -> np.ndarray:
    """Over the members that are still in training."""
    there = np.isfinite(curve)
    return np.where(there, curve, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)


def _calibration(elected: Elected, head: Head, data: Data) -> list[Claim]:
    """Of held-out probabilities, or of held-out spreads."""
    if head.name == "gaussian":
        factor = spread_of(elected, head, data)
        return [Claim.fact("spread_factor", factor, "mean of r²/σ² held out; variances take it")]
    if head.name not in ("bits", "classes"):
        return []
    p = np.asarray(head.answer(jnp.asarray(elected.held)), float)
    p = np.hstack([1.0 - p, p]) if p.shape[1] == 1 else p
    p = p / p.sum(axis=1, keepdims=True)
    found = calibration_error(data.y[elected.judged], p, classes=np.arange(p.shape[1]), draws=200)
    return [
        Claim.fact(
            "calibration_error", float(found.value), "of held-out probabilities of one member"
        )
    ]
