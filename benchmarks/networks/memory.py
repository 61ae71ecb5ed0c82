"""48 layers trained at a quarter of the memory of the reverse pass, beside itself in full.

The memory is that of the compiled gradient, as `autodiff.checkpoint` measures it; the time is that
of whole fits with and without `memory=`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import wonderland as wl
from benchmarks.measure import Figure, Goal, Machine, Result, best_of

DEPTH, WIDTH, BATCH, COUNT = 48, 128, 2048, 8192


def cases(host: Machine, rounds: int) -> list[Result | Figure]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(COUNT, WIDTH)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int32)
    model = wl.nn.MLP((WIDTH, *[WIDTH] * (DEPTH - 1), 2), "relu", key=jax.random.key(0))

    def fit(memory: Any) -> Callable[[], float]:
        def run() -> float:
            found = wl.train(
                model, "cross_entropy", (X, y), epochs=2, batch_size=BATCH, memory=memory
            )
            return float(found.evidence["history"].loss[-1])

        return run

    (full, light), losses = best_of([fit(None), fit(0.25)], rounds)
    share = _share(model, X[:BATCH], y[:BATCH])
    return [
        Figure("48 layers at a quarter of the memory: time beside full", light / full, "×",
               Goal(1.35, at_least=False)),
        Figure("its measured share of the memory", share, "", Goal(0.25, at_least=False)),
        Figure("its last loss beside that in full", losses[1] / losses[0], ""),
    ]  # fmt: skip


def _share(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    parts = wl.training.split(model)

    def total(parameters: Any) -> jax.Array:
        whole = wl.training.join(parameters, parts.statistics, parts.static)
        logits = jax.vmap(whole)(jnp.asarray(X))
        return jnp.sum(wl.losses.CrossEntropy().value(logits, jnp.asarray(y)))

    plan = wl.autodiff.checkpoint(total, 0.25).plan(parts.parameters)
    return plan.peak / plan.plain
