"""Several models in turn: each role moves its own model, down its own loss, by its own rule."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl
from tests.training.helpers import flat
from wonderland.training import Role, alternate


def linear(seed):
    return eqx.nn.Linear(1, 1, key=jax.random.key(seed))


def towards(name, goal):
    def loss(models, X, y, key):
        return jnp.mean((jax.vmap(models[name])(X) - goal) ** 2)

    return loss


def test_each_role_moves_its_own_model():
    models = {"one": linear(0), "two": linear(1), "still": linear(2)}
    roles = [
        Role(name="one", loss=towards("one", 1.0), optimizer="sgd", learning_rate=0.1, steps=2),
        Role(name="two", loss=towards("two", -1.0), optimizer="momentum", learning_rate=0.05),
    ]
    X = np.ones((96, 1), np.float32)
    found = alternate(models, roles, X, epochs=60, batch_size=16)
    np.testing.assert_array_equal(flat(found.model["still"]), flat(models["still"]))
    assert float(found.model["one"](X[0])[0]) == pytest.approx(1.0, abs=1e-3)
    assert float(found.model["two"](X[0])[0]) == pytest.approx(-1.0, abs=2e-2)
    assert found.evidence["history"].loss.shape == (60, 2)


def test_a_round_is_the_updates_in_turn():
    """One round by hand: two steps of one, then one of the other, which sees it moved."""
    models = {"a": linear(0), "b": linear(1)}

    def chase(models, X, y, key):
        return jnp.mean((jax.vmap(models["b"])(X) - jax.vmap(models["a"])(X)) ** 2)

    roles = [
        Role(name="a", loss=towards("a", 1.0), optimizer="sgd", learning_rate=0.1, steps=2),
        Role(name="b", loss=chase, optimizer="sgd", learning_rate=0.1),
    ]
    X = np.full((12, 1), 0.5, np.float32)
    found = alternate(models, roles, X, epochs=1, batch_size=4, shuffle=False)
    by_hand = dict(models)
    for name, loss in (("a", roles[0].loss), ("a", roles[0].loss), ("b", chase)):

        def f(own, name=name, loss=loss):
            return loss(by_hand | {name: own}, X[:4], None, None)

        gradient = eqx.filter_grad(f)(by_hand[name])
        by_hand[name] = eqx.apply_updates(by_hand[name], jax.tree.map(lambda g: -0.1 * g, gradient))
    for name in models:
        np.testing.assert_allclose(flat(found.model[name]), flat(by_hand[name]), atol=1e-6)


def test_roles_are_checked():
    with pytest.raises(wl.InputError, match="Did you mean 'one'"):
        alternate({"one": linear(0)}, [Role(name="on", loss=towards("one", 1.0))], np.ones((8, 1)))
    with pytest.raises(wl.InputError, match="no roles"):
        alternate({"one": linear(0)}, [], np.ones((8, 1)))
    with pytest.raises(wl.InputError, match="the loss of 'one'"):
        alternate({"one": linear(0)}, [Role(name="one", loss=3)], np.ones((8, 1)))
