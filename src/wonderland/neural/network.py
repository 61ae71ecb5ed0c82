"""What the classifier and the regressor share: from parameters to a recipe, and back to attributes.

    min_w  Σ_i ω_i ℓ(m_w(x_i), y_i)/Σ_i ω_i  +  α/(2b) Σ_matrices ‖W‖²

on minibatches of b samples (the whole table for L-BFGS), as scikit-learn scales it. A fit is three
steps that searches can take for many fits at once: `plan`, training, `publish`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wonderland import nn
from wonderland.core.errors import InputError
from wonderland.core.random import seed_of
from wonderland.core.status import Status
from wonderland.neural.heads import Head
from wonderland.neural.initial import initial_weights, with_weights
from wonderland.neural.parameters import hidden_sizes
from wonderland.neural.schedules import InverseScaling
from wonderland.training import Recipe, Stopping

__all__ = ["Data", "Plan", "plan_of", "recipe_for", "set_aside"]


@dataclass(frozen=True)
class Data:
    """Encoded training data: X (n, d) float32, y as the head wants it, weights (n,) or None."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> "Data":
        """Some of the samples."""
        return Data(self.X[rows], self.y[rows], None if self.weight is None else self.weight[rows])

    @property
    def parts(self) -> tuple[Any, ...]:
        """As the training loop takes them."""
        pair = (self.X, self.y)
        return pair if self.weight is None else (*pair, self.weight.astype(np.float32))


@dataclass(frozen=True)
class Plan:
    """One fit, before its first update.

    Attributes:
        model: The network with its first weights.
        head: Its outputs.
        data: What it learns from.
        held: Samples set aside for early stopping, or None.
        recipe: How it is trained.
        seed: Of orders and masks.
        warm: Whether the weights are those of an earlier fit.
    """

    model: Any
    head: Head
    data: Data
    held: Data | None
    recipe: Recipe
    seed: int
    warm: bool = False


def plan_of(estimator: Any, data: Data, head: Head, outputs: int, start: Any = None) -> Plan:
    """The fit that the estimator's parameters describe.

    Args:
        estimator: Holds the parameters.
        data: The encoded samples.
        head: The kind of outputs.
        outputs: How many raw outputs.
        start: A fitted network to go on from, or None.
    """
    draws = random_state_of(estimator.random_state)
    sizes = (data.X.shape[1], *hidden_sizes(estimator.hidden_layer_sizes), outputs)
    model = start if start is not None else network(estimator, sizes, draws)
    seed = int(draws.randint(2**31 - 1))
    held = None
    if estimator.early_stopping:
        stratify = data.y if head.name in ("bits", "classes") else None
        inside, aside = set_aside(len(data), estimator.validation_fraction, stratify, seed)
        data, held = data.take(inside), data.take(aside)
    recipe = estimator.recipe or recipe_for(estimator, data, head, held=held is not None)
    return Plan(model, head, data, held, recipe, seed, start is not None)


def network(estimator: Any, sizes: tuple[int, ...], draws: np.random.RandomState) -> nn.MLP:
    """The network with its first weights."""
    weights = initial_weights(sizes, estimator.activation, draws)
    model = nn.MLP(
        sizes,
        estimator.activation,
        dropout=float(estimator.dropout),
        norm=estimator.norm,
        initialiser=_zeros,
        key=0,
    )
    return with_weights(model, weights)


def _zeros(shape: tuple[int, ...], *, key: Any) -> Any:
    """A place for weights that are drawn elsewhere."""
    return np.zeros(shape, np.float32)


def random_state_of(random_state: Any) -> np.random.RandomState:
    """A RandomState: the one given, so that it moves on, or a fresh one of that seed."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    return np.random.RandomState(seed_of(random_state) % 2**32)


def batch_size_of(estimator: Any, samples: int) -> int:
    """b: "auto" is 200, or all samples where there are fewer."""
    if estimator.batch_size == "auto":
        return min(200, samples)
    if estimator.batch_size > samples:
        raise InputError(
            f"batch_size is {estimator.batch_size} and there are {samples} samples",
            f"a batch of at most {samples}",
            "Pass batch_size='auto', or a smaller number",
        )
    return int(estimator.batch_size)


def recipe_for(estimator: Any, data: Data, head: Head, *, held: bool) -> Recipe:
    """The recipe that scikit-learn's parameters describe."""
    samples, size = len(data), batch_size_of(estimator, len(data))
    mass = samples if data.weight is None else float(data.weight.sum())
    optimizer, options = _optimizer(estimator)
    patience = None if np.isinf(estimator.n_iter_no_change) else int(estimator.n_iter_no_change)
    stopping = Stopping(
        patience=patience if held else None,
        tol=float(estimator.tol),
        training_patience=None if held else patience,
        training_tol=float(estimator.tol),
        seconds=estimator.time_limit,
    )
    if estimator.learning_rate == "adaptive":
        stopping = Stopping(seconds=estimator.time_limit)
    return Recipe(
        epochs=int(estimator.max_iter),
        batch_size=size,
        optimizer=optimizer,
        options=options,
        learning_rate=float(estimator.learning_rate_init),
        schedule=_schedule(estimator, samples, size),
        weight_decay=float(estimator.weight_decay),
        l2=float(estimator.alpha) / size * (samples / mass),
        stopping=stopping,
        restore=held,
        score=head.score if held else None,
        shuffle=bool(estimator.shuffle),
        progress=bool(estimator.verbose),
    )


def _optimizer(estimator: Any) -> tuple[str, dict[str, float]]:
    if estimator.solver == "adam":
        return "adam", {
            "b1": float(estimator.beta_1),
            "b2": float(estimator.beta_2),
            "eps": float(estimator.epsilon),
        }
    name = "nesterov" if estimator.nesterovs_momentum else "momentum"
    return name, {"momentum": float(estimator.momentum)}


def _schedule(estimator: Any, samples: int, size: int) -> Any:
    if estimator.schedule is not None:
        return estimator.schedule
    if estimator.solver == "sgd" and estimator.learning_rate == "invscaling":
        updates = float(-(-samples // size))
        return InverseScaling(float(estimator.power_t), float(samples), updates)
    return "constant"


def set_aside(
    count: int, fraction: float, stratify: np.ndarray | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """(rows inside, rows aside), each sorted; with the same share of every class where asked.

    >>> inside, aside = set_aside(10, 0.2, None, 0)
    >>> len(inside), len(aside)
    (8, 2)
    """
    draws = np.random.default_rng(seed)
    wanted = int(np.ceil(fraction * count))
    if wanted < 2 or count - wanted < 1:
        raise InputError(
            f"the validation set is too small: {wanted} of {count} samples",
            "at least two samples aside, and one to learn from",
            "Increase validation_fraction or the number of samples",
        )
    order = draws.permutation(count)
    if stratify is not None:
        # Each class in turn gives its samples at even distances: the first `wanted` of the order
        # by relative rank hold the classes in their proportions.
        rank = np.empty(count)
        for label in np.unique(stratify):
            own = order[stratify[order] == label]
            rank[own] = (np.arange(len(own)) + draws.random()) / len(own)
        order = np.argsort(rank, kind="stable")
    return np.sort(order[wanted:]), np.sort(order[:wanted])


def ended(status: Status, *, own_recipe: bool) -> Status:
    """How the estimator reports it: epochs that ran out are a limit reached, unless asked for."""
    return Status.ITERATIONS if status is Status.EPOCHS and not own_recipe else status


def with_epochs(recipe: Recipe, epochs: int) -> Recipe:
    """The recipe for so many epochs, with no rule to end earlier."""
    return replace(recipe, epochs=epochs, stopping=Stopping(), restore=False)
