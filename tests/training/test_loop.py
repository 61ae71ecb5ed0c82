"""The loop: data order, weights, stopping, averages, streams, and nothing compiled twice."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl
from tests.training.helpers import flat, network, task
from wonderland.core.status import Status
from wonderland.training import Recipe, Stopping, train
from wonderland.training.batches import order, plan, spans
from wonderland.training.epoch import program

BASE = Recipe(epochs=4, batch_size=48)


@pytest.fixture
def data(rng):
    return task(rng)


def trained(model, data, **fields):
    return train(model, "cross_entropy", data, recipe=BASE, **fields)


def history(solution):
    return solution.evidence["history"]


def test_every_sample_is_seen_once_an_epoch():
    words = np.array([3, 4], np.uint32)
    for count, batch, accumulate, apart in [(10, 4, 1, False), (10, 3, 2, True), (7, 7, 1, True)]:
        made = plan(count, batch, accumulate, apart=apart)
        seen = []
        for span in spans(made, order(words, 5, count), room=2):
            seen += span.rows[: span.count].ravel().tolist()
        seen += [] if span.tail is None else span.tail.tolist()
        assert sorted(row for row in seen if row >= 0) == list(range(count))


def test_the_seed_is_the_run_and_the_batch_order_matters(data):
    model = network()
    first, again, other = (flat(trained(model, data, key=k).model) for k in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-6


def test_weights_are_repetitions(data, rng):
    X, y = data
    weight = rng.integers(0, 4, len(X))
    fields = {"batch_size": None, "shuffle": False, "optimizer": "sgd", "learning_rate": 0.5}
    many = (np.repeat(X, weight, axis=0), np.repeat(y, weight))
    one = train(
        network(), "cross_entropy", (X, y, weight), epochs=8, **fields | {"batch_size": len(X)}
    )
    two = train(network(), "cross_entropy", many, epochs=8, **fields | {"batch_size": len(many[0])})
    np.testing.assert_allclose(flat(one.model), flat(two.model), atol=2e-6)


def test_accumulated_minibatches_are_one_large_one(data, rng):
    weighted = (*data, rng.uniform(0.5, 2.0, len(data[0])))
    fields = {"epochs": 3, "optimizer": "momentum", "learning_rate": 0.1}
    one = train(network(), "cross_entropy", weighted, batch_size=60, **fields)
    two = train(network(), "cross_entropy", weighted, batch_size=15, accumulate=4, **fields)
    np.testing.assert_allclose(flat(one.model), flat(two.model), atol=1e-6)


def test_streams_and_tables_give_the_same_bits(data):
    X, y = data
    plain = trained(network(), data)
    hosted = trained(network(), data, resident=0)
    np.testing.assert_array_equal(flat(plain.model), flat(hosted.model))
    in_order = trained(network(), data, shuffle=False)
    batches = [(X[i : i + 70], y[i : i + 70]) for i in range(0, len(X), 70)]
    for stream in (batches, lambda epoch: iter(batches)):
        streamed = trained(network(), stream)
        np.testing.assert_array_equal(flat(in_order.model), flat(streamed.model))


def test_an_exhausted_iterator_is_told(data):
    with pytest.raises(wl.InputError, match="an iterator, which ends with the first epoch"):
        trained(network(), iter([data]))


def test_a_new_number_compiles_nothing(data):
    trained(network(), data, clip=1.0, schedule="inverse", stopping=Stopping(training_patience=3))
    with jax.log_compiles(False):
        before = program.cache_info().misses, len(_compiled())
        trained(
            network(3),
            data,
            clip=2.0,
            schedule=wl.training.Inverse(0.1),
            stopping=Stopping(training_patience=2, training_tol=0.1),
            learning_rate=3e-3,
            weight_decay=0.1,
            l2=0.01,
            options={"b1": 0.8},
            key=9,
        )
    assert (program.cache_info().misses, len(_compiled())) == before


def _compiled():
    from wonderland.training import epoch

    return epoch._compiled


def test_early_stopping_restores_the_best_weights(data):
    X, y = data
    found = train(
        network(width=64),
        "cross_entropy",
        (X[:60], y[:60]),
        validation=(X[100:], y[100:]),
        epochs=300,
        learning_rate=3e-2,
        stopping=Stopping(patience=4),
    )
    scores = history(found).score
    assert found.ended == Status.VALIDATION_STALL
    assert len(scores) == np.argmax(scores) + 1 + 4
    assert found.evidence["best_epoch"] == np.argmax(scores)
    logits = jax.vmap(found.model)(X[100:])
    loss = wl.losses.CrossEntropy().value(logits, y[100:]).mean()
    assert -loss == pytest.approx(scores.max(), rel=1e-4)


def quadratic(epochs=500, **rules):
    """½‖w − 1‖² by gradient descent on the whole."""
    model = eqx.nn.Linear(2, 2, use_bias=False, key=jax.random.key(0))
    eye = np.eye(2, dtype=np.float32)
    return train(
        model,
        "squared",
        (eye, eye),
        epochs=epochs,
        optimizer="sgd",
        learning_rate=0.5,
        stopping=Stopping(**rules),
    )


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        ({"gradient_norm": 1e-3}, Status.CONVERGED),
        ({"step_tol": 1e-8}, Status.STALLED),
        ({"training_patience": 3, "training_tol": 1e-6}, Status.TRAINING_STALL),
        ({"steps": 17}, Status.ITERATIONS),
        ({"seconds": 0.0}, Status.TIME),
        ({}, Status.EPOCHS),
    ],
)
def test_each_rule_ends_training(rules, status):
    found = quadratic(40 if not rules else 500, **rules)
    assert found.ended == status
    if "gradient_norm" in rules:
        assert history(found).gradient_norm[-1] <= 1e-3 < history(found).gradient_norm[-2]
    if "step_tol" in rules:
        assert history(found).moved[-1] < 1e-8 <= history(found).moved[-2]
    if "steps" in rules:
        assert found.evidence["steps"] == 17


def test_averages_are_what_they_say(data):
    X, _ = data
    seen = []
    whole = {"batch_size": len(X), "shuffle": False, "epochs": 6, "optimizer": "sgd"}
    for epochs in range(1, 7):
        seen.append(flat(trained(network(), data, **whole | {"epochs": epochs}).model))
    uniform = trained(network(), data, average="swa", average_decay=0.5, **whole)
    np.testing.assert_allclose(flat(uniform.model), np.mean(seen[3:], axis=0), atol=1e-6)
    mean, decay = flat(network()), 0.6
    for t, weights in enumerate(seen):
        rate = min(decay, (1 + t) / (10 + t))
        mean = rate * mean + (1 - rate) * weights
    exponential = trained(network(), data, average="ema", average_decay=decay, **whole)
    np.testing.assert_allclose(flat(exponential.model), mean, atol=1e-6)


def test_decay_pulls_at_matrices_only(data):
    model = eqx.nn.Sequential([eqx.nn.Linear(5, 2, key=jax.random.key(0)), eqx.nn.LayerNorm(2)])
    found = train(
        model, lambda z, y: 0.0 * jnp.sum(z), data, epochs=1, batch_size=200, optimizer="sgd",
        learning_rate=0.1, weight_decay=0.5,
    )  # fmt: skip
    updates = -(-len(data[0]) // 200)
    linear, norm = found.model.layers
    before = model.layers[0]
    np.testing.assert_allclose(linear.weight, 0.95**updates * before.weight, rtol=1e-5)
    np.testing.assert_array_equal(linear.bias, before.bias)
    np.testing.assert_array_equal(norm.weight, np.ones(2))


def test_half_precision_keeps_single_weights(data):
    found = trained(network(), data, precision="bfloat16", learning_rate=1e-2, epochs=10)
    plain = trained(network(), data, learning_rate=1e-2, epochs=10)
    assert {leaf.dtype for leaf in jax.tree.leaves(eqx.filter(found.model, eqx.is_array))} == {
        jnp.dtype("float32")
    }
    assert history(found).loss[-1] == pytest.approx(history(plain).loss[-1], rel=0.05)
    assert np.abs(flat(found.model) - flat(plain.model)).max() > 1e-6


def test_memory_changes_no_value(data):
    deep = eqx.nn.MLP(5, 2, 16, 12, key=jax.random.key(0))
    plain, light = (trained(deep, data, memory=m, epochs=2) for m in (None, 0.5))
    np.testing.assert_allclose(flat(plain.model), flat(light.model), atol=1e-5)


def test_callbacks_see_plain_records_and_may_end_training(data):
    seen = []

    def look(record):
        seen.append(record)
        return record.epoch == 1

    found = trained(network(), data, callbacks=(look,))
    assert [record.epoch for record in seen] == [0, 1]
    assert all(isinstance(value, int | float) for record in seen for value in record)
    assert found.ended == Status.INTERRUPTED
    assert len(history(found)) == 2


def test_an_interruption_leaves_the_best_model_so_far(data):
    def press(record):
        if record.epoch == 2:
            raise KeyboardInterrupt

    found = trained(network(), data, validation=0.25, callbacks=(press,))
    assert found.ended == Status.INTERRUPTED
    assert np.isfinite(flat(found.model)).all()
    assert len(history(found)) == 3


def test_a_model_with_chance_and_keys_trains(data):
    model = eqx.nn.Sequential(
        [
            eqx.nn.Linear(5, 8, key=jax.random.key(0)),
            eqx.nn.Dropout(0.3),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.Linear(8, 2, key=jax.random.key(1)),
        ]
    )
    one, two, three = (flat(trained(model, data, key=k).model) for k in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - three).max() > 0


def test_evidence_is_measured(data):
    found = trained(network(), data, validation=0.2)
    held = found.evidence
    assert held["parameters"] == flat(network()).size
    assert held["steps"] == 16
    gap = held["generalisation_gap"]
    assert gap.low <= gap.value <= gap.high
    assert held["flops_per_step"] > 0
    assert held["memory"] > 0
    printed = str(wl.training.claims(held))
    assert "generalisation_gap" in printed
    assert "samples_per_second" in printed


def test_the_gradient_norm_is_that_of_the_loss(data):
    X, y = data
    found = trained(network(), data)
    parameters, static = eqx.partition(found.model, eqx.is_inexact_array)

    def f(parameters):
        logits = jax.vmap(eqx.combine(parameters, static))(X)
        return wl.losses.CrossEntropy().value(logits, y).mean()

    gradient = jax.grad(f)(parameters)
    norm = np.sqrt(sum(float(jnp.sum(g**2)) for g in jax.tree.leaves(gradient)))
    assert found.evidence["gradient_norm"] == pytest.approx(norm, rel=1e-4)


class Coupled(eqx.Module):
    """A prediction made relative to the mean of the minibatch."""

    linear: eqx.nn.Linear

    def __call__(self, x):
        return self.linear(x)

    def training(self, x, *, key):
        z = self.linear(x)
        return z - jax.lax.pmean(z, "batch"), self


def test_samples_that_see_one_another_get_a_smaller_last_minibatch(data):
    X, y = data
    model = Coupled(eqx.nn.Linear(5, 2, key=jax.random.key(0)))
    found = train(
        model, "cross_entropy", (X[:50], y[:50]), epochs=1, batch_size=40, shuffle=False,
        optimizer="sgd", learning_rate=0.1,
    )  # fmt: skip
    parameters, static = eqx.partition(model, eqx.is_inexact_array)
    for low, high in ((0, 40), (40, 50)):

        def f(parameters, low=low, high=high):
            z = jax.vmap(eqx.combine(parameters, static))(X[low:high])
            apart = z - z.mean(axis=0, keepdims=True)
            return wl.losses.CrossEntropy().value(apart, y[low:high]).mean()

        gradient = jax.grad(f)(parameters)
        parameters = jax.tree.map(lambda w, g: w - 0.1 * g, parameters, gradient)
    np.testing.assert_allclose(flat(found.model), flat(parameters), atol=1e-6)
