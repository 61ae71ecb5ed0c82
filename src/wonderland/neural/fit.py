"""Storey two: a network and its data in, the trained network and what is known about it out."""

import time
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from wonderland.core.cache import enable_compile_cache
from wonderland.core.errors import InputError
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.neural.heads import Head
from wonderland.neural.lbfgs import Limits, descend
from wonderland.neural.network import Data, Plan
from wonderland.neural.schedules import Plateau
from wonderland.training import History, Recipe, train
from wonderland.training.batches import key_words
from wonderland.training.loop import Run
from wonderland.training.prepare import prepare

__all__ = ["Trained", "fit_full_batch", "fit_network", "run_plan"]


@dataclass(frozen=True)
class Trained:
    """What came of a plan.

    Attributes:
        model: The network to keep.
        status: How training ended.
        history: One record for each epoch.
        seconds: Of training alone.
        memory: Arrays of the optimiser, with which `partial_fit` goes on.
        gradient: The largest entry of the gradient, where it is known already.
    """

    model: Any
    status: Status
    history: History
    seconds: float
    memory: tuple[np.ndarray, ...] = ()
    gradient: float | None = None


def fit_network(
    model: Any, head: Head, data: Any, *, recipe: Recipe | None = None, key: Any = 0
) -> Solution:
    """Train a network for a kind of output: `wl.train` with the head's own loss and score.

    Args:
        model: A network of as many outputs as the head needs.
        head: One of `wonderland.neural.heads`.
        data: (X, y) or (X, y, weight).
        recipe: How to train.
        key: A JAX key, or a seed.

    >>> from wonderland import nn
    >>> from wonderland.neural.heads import BITS
    >>> X, y = np.array([[0.0], [1.0]], np.float32), np.array([0, 1], np.int32)
    >>> found = fit_network(nn.MLP((1, 4, 1), key=0), BITS, (X, y), recipe=Recipe(epochs=2))
    >>> len(found.evidence["history"])
    2
    """
    return train(model, head.loss, data, recipe=recipe, key=key)


def run_plan(plan: Plan, *, plateau: Plateau | None = None, memory: Any = None) -> Trained:
    """Run a plan to its end.

    Args:
        plan: What to train, and how.
        plateau: Watches the loss for `learning_rate="adaptive"`.
        memory: Of the optimiser of an earlier run, to go on from.
    """
    enable_compile_cache()
    recipe = plan.recipe
    if plateau is not None:
        recipe = _with_callback(recipe, plateau)
    held = None if plan.held is None else plan.held.parts
    fit = prepare(plan.model, plan.head.loss, plan.data.parts, recipe, held, key_words(plan.seed))
    run = Run(fit)
    if plateau is not None:
        plateau.numbers = fit.numbers
    if memory:
        run.state = _remembering(run.state, memory)
    run.go()
    solution = run.solution()
    status = solution.ended
    if plateau is not None and status is Status.INTERRUPTED and plateau.ended:
        status = Status.TRAINING_STALL
    kept = tuple(np.asarray(leaf) for leaf in jax.tree.leaves(run.state.optimizer))
    return Trained(solution.model, status, solution.evidence["history"], run.seconds, kept)


def _with_callback(recipe: Recipe, plateau: Plateau) -> Recipe:
    return replace(recipe, callbacks=(*recipe.callbacks, plateau))


def _remembering(state: Any, memory: Any) -> Any:
    """The state of a fresh run with the optimiser of an earlier one."""
    fresh, shape = jax.tree.flatten(state.optimizer)
    if [np.shape(leaf) for leaf in fresh] != [np.shape(leaf) for leaf in memory]:
        return state  # another optimiser, or other shapes: it begins anew
    arrays = [
        jax.numpy.array(leaf, dtype=new.dtype) for leaf, new in zip(memory, fresh, strict=True)
    ]
    return state._replace(optimizer=jax.tree.unflatten(shape, arrays))


def fit_full_batch(plan: Plan, alpha: float, limits: Limits) -> Trained:
    """L-BFGS on all samples: one step is an epoch."""
    data: Data = plan.data
    mass = len(data) if data.weight is None else float(data.weight.sum())
    began = time.perf_counter()
    found = descend(plan.model, plan.head, (data.X, data.y, data.weight), alpha / mass, limits)
    seconds = time.perf_counter() - began
    if not np.isfinite(found.value):
        raise InputError(
            "L-BFGS left the finite numbers",
            "columns (and targets) of moderate size",
            "Scale X and y, for instance with sklearn.preprocessing.StandardScaler",
        )
    nothing = np.full(len(found.curve), np.nan)
    steps = np.arange(len(found.curve))
    curve = np.asarray(found.curve)
    history = History(steps, steps + 1, curve, *([nothing] * 6))
    return Trained(found.model, found.status, history, seconds, (), found.gradient)
