"""Many fits at once give what each gives alone."""

import equinox as eqx
import jax
import numpy as np
import pytest

import wonderland as wl
from wonderland.core.status import Status
from wonderland.training import Recipe, Stopping, fit_many, train

MEMBERS = 4


@pytest.fixture
def task(rng):
    X = rng.normal(size=(220, 5)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int32)


def network(seed):
    return eqx.nn.MLP(5, 2, 8, 1, key=jax.random.key(seed))


def leaves(model):
    return jax.tree.leaves(eqx.filter(model, eqx.is_array))


def folds(rng, size, count):
    rows = np.stack([rng.permutation(count)[:size] for _ in range(MEMBERS)])
    return rows, rng.integers(size // 2, size + 1, MEMBERS)


@pytest.mark.parametrize("lowering", ["in turn", "together"])
def test_the_same_as_one_by_one(task, rng, lowering):
    X, y = task
    rows, counts = folds(rng, 160, 220)
    held, held_counts = folds(rng, 60, 220)
    recipe = Recipe(epochs=5, batch_size=32, score="accuracy", stopping=Stopping(patience=2))
    rates = 10.0 ** rng.uniform(-3, -1, MEMBERS)
    models = [network(i) for i in range(MEMBERS)]
    many = fit_many(
        models,
        "cross_entropy",
        (X, y),
        recipe=recipe,
        numbers={"learning_rate": rates, "b1": np.full(MEMBERS, 0.8)},
        rows=rows,
        counts=counts,
        held_out=held,
        held_counts=held_counts,
        keys=range(MEMBERS),
        lowering=lowering,
    )
    for i in range(MEMBERS):
        own, judged = rows[i, : counts[i]], held[i, : held_counts[i]]
        alone = train(
            models[i],
            "cross_entropy",
            (X[own], y[own]),
            recipe=recipe,
            validation=(X[judged], y[judged]),
            learning_rate=rates[i],
            options={"b1": 0.8},
            key=i,
        )
        assert many.status[i] == alone.status
        history = alone.evidence["history"]
        found = many.evidence["history"].validation_loss[:, i]
        np.testing.assert_allclose(found[: len(history)], history.validation_loss, rtol=1e-4)
        assert np.isnan(found[len(history) :]).all()
        for a, b in zip(leaves(many.model), leaves(alone.model), strict=True):
            if lowering == "in turn":
                np.testing.assert_array_equal(np.asarray(a)[i], b)
            else:
                np.testing.assert_allclose(np.asarray(a)[i], b, atol=2e-4)


def test_one_that_diverges_leaves_the_others_alone(task):
    rates = np.array([1e-2, 1e30])
    models = [network(0), network(0)]
    found = fit_many(
        models, "cross_entropy", task, epochs=3, optimizer="sgd", numbers={"learning_rate": rates}
    )
    assert found.status.tolist() == [Status.EPOCHS, Status.DIVERGED]
    assert np.isfinite(found.evidence["history"].loss[:, 0]).all()


def test_a_member_too_few_is_told(task):
    with pytest.raises(wl.InputError, match="learning_rate has shape"):
        fit_many([network(0)] * 3, "cross_entropy", task, numbers={"learning_rate": [1.0, 2.0]})
    wide = eqx.nn.MLP(5, 2, 9, 1, key=jax.random.key(1))
    with pytest.raises(wl.InputError, match="the models differ"):
        fit_many([network(0), wide], "cross_entropy", task)
