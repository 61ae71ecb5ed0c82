"""PyTorch as an outside oracle: optimisers one by one along a whole training trajectory."""

import equinox as eqx
import jax
import numpy as np
import pytest

from tests.training.helpers import network, task
from wonderland.training import Cosine, Inverse, InverseRoot, OneCycle, Piecewise, Warmup, train
from wonderland.training.batches import key_words, order

torch = pytest.importorskip("torch")
EPOCHS, BATCH = 5, 48
OPTIMIZERS = {
    "sgd": ({"learning_rate": 0.3}, lambda w: torch.optim.SGD(w, lr=0.3)),
    "momentum": (
        {"learning_rate": 0.1, "options": {"momentum": 0.8}},
        lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.8),
    ),
    "nesterov": (
        {"learning_rate": 0.1},
        lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.9, nesterov=True),
    ),
    "adam": ({"learning_rate": 3e-3}, lambda w: torch.optim.Adam(w, lr=3e-3)),
    "adamw": (
        {"learning_rate": 3e-3, "weight_decay": 0.1},
        lambda w: torch.optim.AdamW(
            [
                {"params": [p for p in w if p.ndim > 1], "weight_decay": 0.1},
                {"params": [p for p in w if p.ndim < 2], "weight_decay": 0.0},
            ],
            lr=3e-3,
        ),
    ),
    "radam": ({"learning_rate": 3e-3}, lambda w: torch.optim.RAdam(w, lr=3e-3)),
    "adadelta": ({"learning_rate": 1.0}, lambda w: torch.optim.Adadelta(w, lr=1.0)),
}


def peer(model):
    layers = []
    for layer in model.layers:
        linear = torch.nn.Linear(layer.in_features, layer.out_features)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(np.asarray(layer.weight)))
            linear.bias.copy_(torch.tensor(np.asarray(layer.bias)))
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def trajectory(X, y, model, make, schedule=None, clip=None):
    """Loss of every epoch and the weights at the end, with the same minibatches."""
    words, _ = key_words(0)
    net = peer(model)
    optimizer = make(list(net.parameters()))
    rate = optimizer.param_groups[0]["lr"]
    losses, step = [], 0
    for epoch in range(EPOCHS):
        total, places = 0.0, order(words, epoch, len(X))
        for low in range(0, len(X), BATCH):
            rows = places[low : low + BATCH]
            if schedule is not None:
                for group in optimizer.param_groups:
                    group["lr"] = rate * float(schedule(step, EPOCHS * -(-len(X) // BATCH)))
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(
                net(torch.tensor(X[rows])), torch.tensor(y[rows]).long()
            )
            loss.backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            optimizer.step()
            total += loss.item() * len(rows)
            step += 1
        losses.append(total / len(X))
    return losses, [parameter.detach().numpy() for parameter in net.parameters()]


def agrees(X, y, make, schedule=None, clip=None, **fields):
    model = network()
    if schedule is not None:
        fields["schedule"] = schedule
    found = train(
        model, "cross_entropy", (X, y), epochs=EPOCHS, batch_size=BATCH, clip=clip, **fields
    )
    losses, weights = trajectory(X, y, model, make, schedule, clip)
    np.testing.assert_allclose(found.evidence["history"].loss, losses, rtol=1e-5)
    ours = jax.tree.leaves(eqx.filter(found.model, eqx.is_array))
    for a, b in zip(ours, weights, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_whole_trajectory_is_that_of_pytorch(name, rng):
    fields, make = OPTIMIZERS[name]
    agrees(*task(rng), make, optimizer=name, **fields)


@pytest.mark.parametrize(
    "schedule",
    [Piecewise(), Inverse(0.1), InverseRoot(0.1), Cosine(), OneCycle(), Warmup(0.2, Cosine())],
    ids=lambda schedule: type(schedule).__name__,
)
def test_schedules_and_clipping_step_as_they_say(schedule, rng):
    fields, make = OPTIMIZERS["momentum"]
    agrees(*task(rng), make, schedule, 0.05, optimizer="momentum", **fields)


@pytest.mark.parametrize("name", ["lion", "muon", "lbfgs", "schedule_free", "schedule_free_sgd"])
def test_the_others_come_down(name, rng):
    X, y = task(rng)
    batch = len(X) if name == "lbfgs" else 20
    found = train(
        network(width=16), "cross_entropy", (X, y), optimizer=name, epochs=40, batch_size=batch
    )
    losses = found.evidence["history"].loss
    assert losses[-1] < 0.9 * losses[0] if name != "lion" else losses[-1] < losses[0]


def test_an_optax_object_counts_as_it_is(rng):
    import optax

    X, y = task(rng)
    given = {"epochs": 4, "batch_size": 48}
    named = train(network(), "cross_entropy", (X, y), learning_rate=3e-3, **given)
    made = train(network(), "cross_entropy", (X, y), optimizer=optax.adam(3e-3), **given)
    one, two = (run.evidence["history"].loss for run in (named, made))
    np.testing.assert_allclose(one, two, rtol=1e-5)
