"""scikit-learn's own changes of the learning rate."""

from typing import Any

import jax.numpy as jnp

from wonderland.training import Record, Schedule

__all__ = ["InverseScaling", "Plateau"]

LEAST = 1e-6


class InverseScaling(Schedule):
    """η_0/(t + 1)^p, t the samples seen at the end of the epoch before.

    Attributes:
        power: p.
        samples: Samples of an epoch.
        updates: Updates of an epoch.

    >>> float(InverseScaling(0.5, 3.0, 2.0)(2, 10))
    0.5
    """

    power: Any
    samples: Any
    updates: Any

    def __call__(self, step: Any, total: Any) -> Any:
        """(t + 1)^−p."""
        seen = jnp.floor(step / self.updates) * self.samples
        return (seen + 1.0) ** (-self.power)


class Plateau:
    """Divide η by five whenever the loss has not fallen for some epochs; end at 10⁻⁶.

    Args:
        patience: Epochs to wait.
        tol: By how much the loss must fall.
    """

    def __init__(self, patience: float, tol: float, *, by_score: bool) -> None:
        self.patience, self.tol, self.by_score = patience, tol, by_score
        self.numbers: dict[str, Any] = {}
        self.best, self.waited, self.ended = float("inf"), 0, False

    def __call__(self, record: Record) -> bool:
        """Look at an epoch; whether training has ended."""
        loss = -record.score if self.by_score else record.loss
        self.waited = self.waited + 1 if loss > self.best - self.tol else 0
        self.best = min(self.best, loss)
        if self.waited <= self.patience:
            return False
        rate = self.numbers["learning_rate"]
        self.ended = bool(rate <= LEAST)
        self.numbers["learning_rate"] = rate / rate.dtype.type(5)
        self.waited = 0
        return self.ended
