"""The derivative of training in its numbers is that of finite differences."""

import jax
import numpy as np
import pytest

from wonderland import nn
from wonderland.training import Recipe, train
from wonderland.training.slopes import held_out_slopes


@pytest.mark.parametrize(
    ("optimizer", "numbers"),
    [
        ("momentum", {"learning_rate": 0.05, "l2": 0.01, "momentum": 0.8}),
        ("adam", {"learning_rate": 0.01, "weight_decay": 0.02}),
    ],
)
def test_slopes_are_differences(rng, optimizer, numbers):
    X = rng.normal(size=(40, 3)).astype(np.float32)
    y = np.tanh(X[:, 0] - X[:, 1])[:, None]
    model = nn.MLP((3, 6, 1), "tanh", key=jax.random.key(1))
    recipe = Recipe(epochs=4, optimizer=optimizer, batch_size=8)
    halves = (X[:30], y[:30]), (X[30:], y[30:])

    def loss_at(**changes):
        chosen = numbers | changes
        return held_out_slopes(model, "squared", *halves, recipe=recipe, numbers=chosen, key=3)

    value, slopes = loss_at()
    fields = {n: v for n, v in numbers.items() if n != "momentum"}
    options = {"momentum": numbers["momentum"]} if "momentum" in numbers else {}
    trained = train(
        model,
        "squared",
        halves[0],
        recipe=recipe,
        validation=halves[1],
        key=3,
        options=options,
        **fields,
    )
    last = float(trained.evidence["history"].validation_loss[-1])
    np.testing.assert_allclose(value, last, rtol=1e-5)
    for slope, (name, number) in zip(slopes, numbers.items(), strict=True):
        step = 0.02 * number
        up, down = loss_at(**{name: number + step})[0], loss_at(**{name: number - step})[0]
        np.testing.assert_allclose(slope, (up - down) / 2 / step, rtol=0.03, atol=1e-4)
