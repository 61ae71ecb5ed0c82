"""How the held-out loss of a network changes with its learning rate, penalty or optimiser settings.

dL_j/dλ by forward differentiation of the whole training on fold j (`training.slopes`)
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wonderland.neural.network import Data, plan_of
from wonderland.shell.together import NotTogether
from wonderland.training.slopes import held_out_slopes

__all__ = ["validation_slopes"]

RECIPE = {"learning_rate_init": "learning_rate", "weight_decay": "weight_decay"}
OPTIONS = {"beta_1": "b1", "beta_2": "b2", "epsilon": "eps", "momentum": "momentum"}


def validation_slopes(
    estimator: Any, names: list[str], data: tuple[Any, Any, Any], splits: Sequence[Any]
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The losses of the folds (k,) and their derivatives (k, p), as functions of the numbers (p,).

    Args:
        estimator: An unfitted network.
        names: Its parameters to differentiate in.
        data: X, y and sample_weight.
        splits: (training rows, validation rows) of each fold.
    """
    _refuse(estimator, names)
    head, outputs, table = estimator._encoded(estimator._read_whole(*data))
    folds = [(table.take(train), table.take(test)) for train, test in splits]

    def slopes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        there = type(estimator)(**estimator.get_params(deep=False))
        there.set_params(**dict(zip(names, values.tolist(), strict=True)))
        found = [_fold(there, names, values, fold, (head, outputs)) for fold in folds]
        return np.array([value for value, _ in found]), np.stack([slope for _, slope in found])

    return slopes


def _refuse(estimator: Any, names: list[str]) -> None:
    known = {"alpha", *RECIPE, *(OPTIONS if estimator.solver == "adam" else {"momentum"})}
    if not set(names) <= known:
        raise NotTogether(f"it is differentiated in {', '.join(sorted(known))}")
    if estimator.solver == "lbfgs" or estimator.recipe is not None or estimator.early_stopping:
        raise NotTogether("needs solver 'adam' or 'sgd', without recipe= or early_stopping=")
    if estimator.architecture != "mlp" or estimator.learning_rate == "adaptive":
        raise NotTogether("needs architecture='mlp' and a learning rate with a schedule")


def _fold(
    estimator: Any,
    names: list[str],
    values: np.ndarray,
    fold: tuple[Data, Data],
    kind: tuple[Any, int],
) -> tuple[float, np.ndarray]:
    plan = plan_of(estimator, fold[0], *kind)
    # An end that depends on the loss would make a stair of what is differentiated.
    recipe = replace(plan.recipe, stopping=replace(plan.recipe.stopping, training_patience=None))
    numbers, units = {}, np.ones(len(names))
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        if name == "alpha":
            units[place] = recipe.l2 / value
            numbers["l2"] = recipe.l2
        else:
            numbers[(RECIPE | OPTIONS)[name]] = float(value)
    value, slopes = held_out_slopes(
        plan.model,
        plan.head.loss,
        plan.data.parts,
        fold[1].parts,
        recipe=recipe,
        numbers=numbers,
        key=plan.seed,
    )
    return value, slopes * units
