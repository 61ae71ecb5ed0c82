"""Bad input is told in three parts before anything is compiled; divergence with its layer."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl
from tests.training.helpers import flat, network, task
from wonderland.core.status import Status
from wonderland.training import DivergedError, Recipe, Stopping, train
from wonderland.training.epoch import program


@pytest.fixture
def data(rng):
    return task(rng)


def holed(X):
    holes = X.copy()
    holes[3, 1] = np.nan
    return holes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: {"batch_size": len(X) + 1}, "batch_size is 201 and there are 200"),
        (lambda X, y: {"optimizer": "adm"}, "Did you mean 'adam'"),
        (lambda X, y: {"options": {"beta": 0.9}}, "options of the optimizer 'adam'"),
        (lambda X, y: {"schedule": "cosin"}, "Did you mean 'cosine'"),
        (lambda X, y: {"epoch": 3}, "Did you mean 'epochs'"),
        (lambda X, y: {"precision": "int8"}, "one of float32, bfloat16"),
        (lambda X, y: {"learning_rate": -1.0}, "learning_rate is -1.0"),
        (lambda X, y: {"stopping": Stopping(patience=3)}, "there are no validation data"),
        (lambda X, y: {"data": (X, y + 1)}, "whole numbers 0 … 1: the model has 2 outputs"),
        (lambda X, y: {"data": (X[:, :4], y)}, "the model does not take one sample"),
        (lambda X, y: {"data": (holed(X), y)}, "the first in row 3 in columns"),
        (lambda X, y: {"data": (X, y[:10])}, "Check that X, y and sample_weight"),
        (lambda X, y: {"data": (X, y, -np.ones(len(X)))}, "weights ≥ 0"),
        (lambda X, y: {"data": (X.astype(str), y)}, "array of type"),
        (lambda X, y: {"loss": "squared"}, r"predicts \(2,\) and the target .* has shape \(\)"),
        (lambda X, y: {"loss": "crossentropy"}, "Did you mean 'cross_entropy'"),
        (lambda X, y: {"model": jax.nn.relu}, "no parameter that could be trained"),
        (lambda X, y: {"validation": 2.0}, "leaves samples on both sides"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_compiled(data, change, message):
    X, y = data
    given = {"model": network(), "loss": "cross_entropy", "data": data} | change(X, y)
    before = program.cache_info().misses
    with pytest.raises(wl.InputError, match=message):
        train(given.pop("model"), given.pop("loss"), given.pop("data"), **given)
    assert program.cache_info().misses == before


def test_a_rule_of_stopping_is_a_number():
    with pytest.raises(wl.InputError, match="patience is 'three'"):
        Stopping(patience="three")
    with pytest.raises(wl.InputError, match="epochs is 0"):
        Recipe(epochs=0)


def test_a_learning_rate_that_diverges_is_told_with_one_that_does_not(data):
    given = (network(outputs=1), "squared", data)
    with pytest.raises(DivergedError, match=r"update \d+ .*Lower learning_rate") as told:
        train(*given, optimizer="momentum", learning_rate=1e3, epochs=200)
    failure, solution = told.value.failure, told.value.solution
    assert solution.ended == Status.DIVERGED
    assert np.isfinite(flat(solution.model)).all()
    assert len(failure.rows) in (128, 72)
    found = train(*given, optimizer="momentum", learning_rate=failure.stable, epochs=10)
    assert np.isfinite(found.evidence["history"].loss).all()
    assert failure.stable < 1e3


class Fragile(eqx.Module):
    """A layer whose logarithm fails where its input is not positive."""

    first: eqx.nn.Linear
    second: eqx.nn.Linear

    def __call__(self, x):
        return self.second(jnp.log(self.first(x)))


def test_the_first_layer_that_goes_wrong_is_named(data):
    keys = jax.random.split(jax.random.key(0))
    model = Fragile(eqx.nn.Linear(5, 4, key=keys[0]), eqx.nn.Linear(4, 2, key=keys[1]))
    with pytest.raises(DivergedError, match=r"first first \(its log\)") as told:
        train(model, "cross_entropy", data)
    assert told.value.failure.step == 0
    assert told.value.failure.epoch == 0


def test_a_loss_that_goes_wrong_by_itself_is_named(data):
    with pytest.raises(DivergedError, match="the loss itself, at finite outputs"):
        train(network(), lambda z, y: jnp.log(-jnp.abs(z[0])), data)
