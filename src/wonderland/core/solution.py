"""The value of a fit: the model, how the fit ended, and the evidence for it."""

from typing import Any, Generic, TypeVar

import equinox as eqx

from wonderland.core.status import Status

__all__ = ["Solution"]

Model = TypeVar("Model")


class Solution(eqx.Module, Generic[Model]):
    """What every pure `fit_*` function returns; a pytree, so it passes through JAX.

    Attributes:
        model: The fitted function, an `equinox.Module`.
        status: A `Status` number; `solution.ended` turns it into the sentence.
        evidence: Claim name → measured value. Values stay arrays here, so that a fit can be
            traced; the estimator turns them into `Claim` objects with bounds and meanings.
    """

    model: Model
    status: Any
    evidence: dict[str, Any]

    @property
    def ended(self) -> Status:
        """The status as a sentence-bearing enum (outside of a trace only)."""
        return Status(int(self.status))
