"""What the laws do not say: shapes, names, initial weights, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.nn.initialisers import NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize("shape", [(300, 200), (200, 300)])
def test_initial_weights_have_the_stated_scale(name, shape):
    weight = np.asarray(nn.initialiser(name)(shape, key=3), float)
    assert weight.shape == shape
    if name == "orthogonal":
        few = weight if shape[0] < shape[1] else weight.T
        np.testing.assert_allclose(few @ few.T, np.eye(200), atol=1e-5)
        return
    variance = {"he": 2.0 / shape[0], "glorot": 2.0 / sum(shape)}[name]
    assert abs(weight.mean()) < 5 * np.sqrt(variance / weight.size)
    assert weight.var() == pytest.approx(variance, rel=0.02)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_initial_weights_inside_of_a_trace(name):
    keys = jax.random.split(jax.random.key(0), 3)
    stacked = jax.vmap(lambda key: nn.initialiser(name)((4, 2), key=key))(keys)
    assert stacked.shape == (3, 4, 2)
    assert np.unique(np.asarray(stacked)).size == stacked.size


def test_one_key_one_network():
    same = [nn.MLP((3, 4, 1), key=key) for key in (jax.random.key(5), jax.random.key(5))]
    other = nn.MLP((3, 4, 1), key=jax.random.key(6))
    assert wl.testing.same(*same)
    assert not wl.testing.same(same[0], other)


def test_layers_of_a_network_differ():
    first, second = nn.MLP((3, 3, 3), key=0).linears
    assert not np.array_equal(first.weight, second.weight)


def test_making_a_network_compiles_nothing():
    wl.testing.nothing_compiles_again(
        lambda: nn.MLP((3, 8, 2), dropout=0.1, norm="batch", key=0).linears[0].weight,
        lambda: nn.MLP((3, 8, 2), dropout=0.1, norm="batch", key=jax.random.key(7)).linears[0].bias,
    )


def test_the_rate_of_dropout_is_batched():
    rates = jnp.array([0.0, 0.9])
    nets = jax.vmap(lambda rate: nn.Dropout(rate))(rates)
    x, key = jnp.ones(1000), jax.random.key(0)
    absent = jax.vmap(lambda net: (net.training(x, key=key)[0] == 0).mean())(nets)
    assert absent[0] == 0.0
    assert absent[1] == pytest.approx(0.9, abs=0.05)


def test_batch_norm_comes_to_the_moments_of_its_data(rng):
    X = (rng.normal(size=(512, 3)) * [1.0, 2.0, 0.5] + [0.0, 5.0, -1.0]).astype(np.float32)
    norm = nn.BatchNorm(3)
    step = jax.jit(
        lambda norm: jax.vmap(norm.training, axis_name="batch", out_axes=(0, None))(X)[1]
    )
    for _ in range(100):
        norm = step(norm)
    np.testing.assert_allclose(norm.mean.value, X.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(norm.variance.value, X.var(axis=0, ddof=1), rtol=1e-3)


def test_what_weight_decay_spares():
    net = nn.TabularNet(2, (3,), 1, width=8, key=0)
    flags, parameters = nn.decaying(net), nn.partition(net)[0]
    shrunk = sum(jax.tree.leaves(flags))
    assert shrunk == sum(leaf.ndim == 2 for leaf in jax.tree.leaves(parameters.body))
    assert not any(jax.tree.leaves(flags.embedding))
    assert not any(jax.tree.leaves(flags.categories))


def test_a_category_out_of_range_is_no_category():
    for count in (3, 1000):
        embed = nn.Embedding(count, 2, key=0)
        assert np.isnan(jax.vmap(embed)(jnp.array([-1, count]))).all()


def test_piecewise_linear_is_a_line_through_its_edges():
    basis = nn.PiecewiseLinear([[0.0, 1.0, 1.0, 3.0]])
    for x, pieces in ((-1.0, [-1.0, 0.0, 0.0]), (2.0, [1.0, 0.0, 0.5]), (5.0, [1.0, 0.0, 2.0])):
        assert basis(jnp.array([x])).tolist() == [pieces]


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: nn.activation("rellu"), "Did you mean 'relu'"),
        (lambda: nn.activation(3), "name of an activation"),
        (lambda: nn.initialiser("hi"), "name of an initialiser"),
        (lambda: nn.Dropout(1.0), r"\[0, 1\)"),
        (lambda: nn.Dropout(0.5).training(jnp.ones(2), key=None), "without a key"),
        (lambda: nn.BatchNorm(2).training(jnp.ones(2)), "on one sample"),
        (lambda: nn.MLP((3,), key=0), "at least two sizes"),
        (lambda: nn.MLP((3, 2, 1), norm="bath", key=0), "Did you mean 'batch'"),
        (lambda: nn.MLP((3, 2, 1), key="seven"), "a JAX key"),
        (lambda: nn.Linear(0, 1, key=0), "at least one input"),
        (lambda: nn.Linear(3, 1, key=0)(jnp.ones((5, 3))), "jax.vmap"),
        (lambda: nn.Residual(nn.Linear(3, 2, key=0))(jnp.ones(3)), "residual block adds"),
        (lambda: nn.PiecewiseLinear([[1.0, 0.0]]), "rise in each row"),
    ],
)
def test_bad_input_is_told_in_three_parts(action, words):
    with pytest.raises(wl.InputError, match=words) as caught:
        action()
    assert caught.value.expected
    assert caught.value.todo
