"""The one training loop: compiled epochs, schedules, stopping, snapshots, many fits at once."""

from wonderland.training.alternate import Role, alternate
from wonderland.training.blame import DivergedError, Failure
from wonderland.training.evidence import Gap, claims, spectrum
from wonderland.training.history import History, Record
from wonderland.training.loop import train
from wonderland.training.many import fit_many, stacked
from wonderland.training.parameters import join, split
from wonderland.training.recipe import Recipe
from wonderland.training.schedules import (
    Constant,
    Cosine,
    Inverse,
    InverseRoot,
    OneCycle,
    Piecewise,
    Rate,
    Schedule,
    Warmup,
)
from wonderland.training.stopping import Stopping

__all__ = [
    "Constant",
    "Cosine",
    "DivergedError",
    "Failure",
    "Gap",
    "History",
    "Inverse",
    "InverseRoot",
    "OneCycle",
    "Piecewise",
    "Rate",
    "Recipe",
    "Record",
    "Role",
    "Schedule",
    "Stopping",
    "Warmup",
    "alternate",
    "claims",
    "fit_many",
    "join",
    "spectrum",
    "split",
    "stacked",
    "train",
]
