"""The one training loop: compiled epochs, dispatched from the host one after another.

    min_w  f(w) = Σ_i ω_i ℓ(m_w(x_i), y_i) / Σ_i ω_i

by updates on shuffled minibatches. The host draws the order of an epoch while the one before runs,
reads its record one call later, and looks at the clock; all decisions that depend on what was
measured are part of the compiled epoch.
"""

from typing import Any

from wonderland.core.cache import enable_compile_cache
from wonderland.core.solution import Solution
from wonderland.training.batches import key_words
from wonderland.training.prepare import prepare
from wonderland.training.recipe import Recipe, recipe_of
from wonderland.training.run import Run

__all__ = ["train"]


def train(
    model: Any,
    loss: Any,
    data: Any,
    *,
    recipe: Recipe | None = None,
    validation: Any = None,
    key: Any = 0,
    **fields: Any,
) -> Solution:
    """Train a model, an `equinox.Module` of one sample.

    Args:
        model: m_w(x): `model(x)`, with a method `training(x, key=key) → (prediction, model)` where
            training differs from inference; anybody's module may take `key=` in its call instead.
        loss: ℓ(prediction, target) of one sample: a name, an object of `wonderland.losses`, a
            function.
        data: (X, y) or (X, y, sample_weight), arrays or trees of arrays with samples along the
            first axis; or an iterable of such batches, or a function of the epoch's number that
            returns one.
        recipe: How to train; its fields are also accepted as keyword arguments.
        validation: Data of the same form, or a fraction of `data` to set aside.
        key: A JAX random key, or a seed.
        **fields: Fields of `Recipe`.

    Returns:
        The trained model, how training ended, and the evidence: `history` and what was measured
        at the end; `training.claims(solution.evidence)` prints it.

    Raises:
        InputError: Before anything is compiled, when model, loss, data and recipe do not fit.
        DivergedError: When a loss is not finite; it carries the solution so far.

    >>> import equinox as eqx, jax, numpy as np
    >>> X = np.linspace(-1, 1, 64)[:, None]
    >>> model = eqx.nn.Linear(1, 1, key=jax.random.key(0))
    >>> found = train(model, "squared", (X, 3 * X), epochs=50, optimizer="momentum", batch_size=16)
    >>> round(float(found.model.weight[0, 0]), 2)
    3.0
    """
    enable_compile_cache()
    fit = prepare(model, loss, data, recipe_of(recipe, fields), validation, key_words(key))
    run = Run(fit)
    run.go()
    return run.solution()
