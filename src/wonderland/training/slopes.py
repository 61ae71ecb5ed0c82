"""How the loss of held-out samples changes with the numbers of a recipe: training, differentiated.

    w_{t+1} = u(w_t; λ),   ẇ_{t+1} = ∂u/∂w ẇ_t + ∂u/∂λ,   dL/dλ = ∇L(w_T)ᵀ ẇ_T

Forward mode: a tangent for each number goes along with the weights, so that memory does not grow
with the number of updates; p numbers cost p further passes. Orders and masks are those of the seed.

Reference: Franceschi, Donini, Frasconi & Pontil (2017), Forward and reverse gradient-based
hyperparameter optimization.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.training.batches import key_words
from wonderland.training.epoch import State, epoch, starting
from wonderland.training.prepare import changed, prepare
from wonderland.training.recipe import Recipe
from wonderland.training.step import Structure

__all__ = ["held_out_slopes"]


def held_out_slopes(
    model: Any,
    loss: Any,
    data: Any,
    validation: Any,
    *,
    recipe: Recipe,
    numbers: Mapping[str, float],
    key: Any = 0,
) -> tuple[float, np.ndarray]:
    """The held-out loss after training, and its derivative in each of the numbers (p,).

    Args:
        model: As for `train`.
        loss: As for `train`.
        data: As for `train`.
        validation: Held-out data of the same form.
        recipe: How to train.
        numbers: Name → value: learning_rate, weight_decay, l2, or a setting of the optimiser.
        key: A JAX random key, or a seed.

    >>> import equinox as eqx
    >>> X = np.linspace(-1, 1, 8)[:, None]
    >>> line = eqx.nn.Linear(1, 1, key=jax.random.key(0))
    >>> value, slope = held_out_slopes(
    ...     line, "squared", (X, 3 * X), (X, 3 * X),
    ...     recipe=Recipe(epochs=3, optimizer="sgd"), numbers={"learning_rate": 0.1},
    ... )
    >>> bool(slope[0] < 0)  # a longer step would have gone further down
    True
    """
    fit = prepare(model, loss, data, recipe, validation, key_words(key))
    fixed = changed(fit.numbers, **{n: np.asarray(v, np.float32) for n, v in numbers.items()})
    state = starting(fit.structure)(fit.parts.parameters, fit.parts.statistics, fixed, fit.words)
    values = {name: jnp.asarray(value, jnp.float32) for name, value in numbers.items()}
    moving, _ = eqx.partition(state, eqx.is_inexact_array)
    tangents = jax.tree.map(lambda leaf: jnp.zeros((len(values), *leaf.shape), leaf.dtype), moving)
    push = _push(fit.structure)
    held = jax.device_put(fit.validation)
    measured = (np.inf, np.zeros(len(values)))
    for number in range(recipe.epochs):
        for table, span in fit.source.pieces(number):
            state, tangents, value, slopes = push(
                state, tangents, values, fit.numbers, table, span, held
            )
        if np.isfinite(value):
            measured = float(value), np.asarray(slopes, float)
        if int(state.verdict.status):
            break
    # Trees of JAX put names in alphabetical order.
    return measured[0], measured[1][np.argsort(np.argsort(list(numbers)))]


@lru_cache(maxsize=32)
def _push(structure: Structure) -> Callable[..., tuple[State, Any, jax.Array, jax.Array]]:
    """One compiled piece of an epoch, and a tangent (p, …) of it for each number."""

    def push(
        state: State, tangents: Any, values: Any, numbers: Any, table: Any, span: Any, held: Any
    ) -> tuple[State, Any, jax.Array, jax.Array]:
        moving, still = eqx.partition(state, eqx.is_inexact_array)

        def run(moving: Any, values: Any) -> tuple[Any, Any]:
            joined = eqx.combine(moving, still)
            there, record = epoch(structure, joined, table, span, changed(numbers, **values), held)
            floats, rest = eqx.partition(there, eqx.is_inexact_array)
            return (floats, record.validation_loss), rest

        def along(tangent: Any, direction: Any) -> Any:
            return jax.jvp(run, (moving, values), (tangent, direction), has_aux=True)

        axes = jnp.eye(len(values), dtype=jnp.float32)
        directions = {name: axes[:, place] for place, name in enumerate(values)}
        out = ((None, None), (0, 0), None)
        (floats, value), (moved, slopes), rest = jax.vmap(along, out_axes=out)(tangents, directions)
        return eqx.combine(floats, rest), moved, value, slopes

    return jax.jit(push)
