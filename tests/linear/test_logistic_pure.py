"""fit_logistic: on the host and in JAX the same optimum, with its derivatives; C by gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl
from wonderland.core.arrays import in_float64


@pytest.fixture
def data(rng):
    X = rng.normal(size=(50, 3))
    return X, rng.uniform(0.5, 2.0, size=50)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_host_and_jax_agree(data, classes, intercept, rng):
    X, weight = data
    y = np.arange(50) % classes

    def traced():
        found = wl.fit_logistic(
            jnp.asarray(X), y, 1.7, jnp.asarray(weight), fit_intercept=intercept
        )
        return np.asarray(found.model.coef), np.asarray(found.model.intercept), found.ended

    ours = wl.fit_logistic(X, y, 1.7, weight, fit_intercept=intercept)
    coef, shift, ended = in_float64(traced)()
    np.testing.assert_allclose(coef, ours.model.coef, atol=1e-10)
    np.testing.assert_allclose(shift, ours.model.intercept, atol=1e-10)
    assert ended.ok


@pytest.mark.parametrize("classes", [2, 3])
def test_gradients_are_finite_differences(data, classes):
    X, weight = data
    y = np.arange(50) % classes

    def total(table, C, omega):
        model = wl.fit_logistic(table, y, C, omega, classes=classes).model
        return jnp.sum(jnp.sin(model.coef)) + jnp.sum(model.intercept**2)

    wl.testing.gradient_is_finite_difference(total, X, 1.3, weight)


def test_without_a_penalty_too(data):
    X, _ = data
    y = np.arange(50) % 2
    wl.testing.gradient_is_finite_difference(
        lambda table: wl.fit_logistic(table, y, jnp.inf).model.coef.sum(), X
    )


def test_jit_vmap_and_single_precision(data):
    X, _ = data
    y = jnp.arange(50) % 2
    table = jnp.asarray(X, jnp.float32)

    def slopes(C):
        return wl.fit_logistic(table, y, C, classes=2).model.coef

    together = jax.vmap(slopes)(jnp.array([0.5, 2.0]))
    np.testing.assert_allclose(together[1], jax.jit(slopes)(2.0), rtol=1e-5)
    assert jax.grad(lambda C: slopes(C).sum())(1.0).dtype == jnp.float32


def test_a_new_c_compiles_nothing(data):
    X, _ = data
    table, y = jnp.asarray(X, jnp.float32), np.arange(50) % 2
    moved = table + 1
    wl.testing.nothing_compiles_again(
        lambda: wl.fit_logistic(table, y, 1.0).model.coef,
        lambda: wl.fit_logistic(moved, y, 7.5).model.coef,
    )


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ((np.eye(3), [0, 0, 0]), "at least two"),
        ((np.eye(3), [0.5, 1.0, 0.0]), "class numbers"),
        ((np.eye(3), [0, 1]), "same rows"),
        ((np.eye(3), [0, 1, 0], -1.0), "C is -1.0"),
        ((np.eye(3) * np.nan, [0, 1, 0]), "finite"),
        ((np.eye(3), [0, 1, 0], 1.0, np.array([1.0, -1.0, 1.0])), "negative"),
    ],
    ids=["one class", "halves", "rows", "C", "NaN", "weight"],
)
def test_bad_input(arguments, fragment):
    with pytest.raises(wl.InputError, match=fragment):
        wl.fit_logistic(*arguments)


def test_traced_labels_need_a_count(data):
    with pytest.raises(wl.InputError, match="traced"):
        jax.jit(lambda y: wl.fit_logistic(data[0], y).model.coef)(jnp.arange(50) % 2)


@pytest.mark.parametrize("classes", [2, 3])
def test_c_by_gradient_is_the_best_of_a_grid(classes, rng):
    X = rng.normal(size=(150, 12))
    truth = rng.normal(size=(12, classes)) * (np.arange(12) < 3)[:, None]
    y = (X @ truth + 1.5 * rng.gumbel(size=(150, classes))).argmax(axis=1)
    model = wl.LogisticRegression(C="gradient").fit(X, y)
    losses = {C: _left_out(X, y, C) for C in model.C_ * np.array([0.3, 0.8, 1.0, 1.25, 3.0])}
    assert min(losses, key=losses.get) == pytest.approx(model.C_)
    assert model.evidence_["cross_validated_loss"].value == pytest.approx(
        losses[model.C_ * 1.0], rel=1e-6
    )
    alone = wl.LogisticRegression(C=model.C_).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-7)


def _left_out(X, y, C):
    """Mean log-loss of five folds that deal out each class in turn, refitted one by one."""
    place = np.zeros(len(y), int)
    for label in np.unique(y):
        place[y == label] = np.arange(np.sum(y == label)) % 5
    total = 0.0
    for fold in range(5):
        model = wl.LogisticRegression(C=C).fit(X[place != fold], y[place != fold])
        log = model.predict_log_proba(X[place == fold])
        total -= log[np.arange(len(log)), y[place == fold]].sum()
    return total / len(y)
