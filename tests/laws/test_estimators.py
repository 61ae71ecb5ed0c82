"""Every law of estimators over every estimator of the registry."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.laws.strategies import generators, orders, tables
from tests.registry import CLAIMS, DESCENT_CLAIMS, LINEAR

# Eighteen estimators under each law: few examples each, and other ones in every run.
few = settings(max_examples=4)
every = pytest.mark.parametrize("part", LINEAR, ids=lambda part: part.name)


@every
@few
@given(data=tables(), rng=generators())
def test_weights_are_repetition(part, data, rng):
    if part.repeats:
        counts = rng.integers(1, 4, size=len(data[0]))
        wl.testing.weights_are_repetition(part.make(), *data, counts=counts, rtol=part.rtol)


@every
@few
@given(data=tables(rows=(20, 40)), rng=generators())
def test_zero_weight_is_absence(part, data, rng):
    if part.repeats:  # a sample of weight 0 is still one that can be left out, at no cost
        absent = np.arange(len(data[0])) % 5 == rng.integers(5)
        wl.testing.zero_weight_is_absence(part.make(), *data, absent=absent, rtol=part.rtol)


@every
@few
@given(draw=st.data(), data=tables())
def test_samples_in_any_order(part, draw, data):
    order = draw.draw(orders(len(data[0])))
    wl.testing.samples_in_any_order(part.make(), *data, order=order, rtol=part.rtol)


@every
@few
@given(data=tables(), shift=st.sampled_from([-1e3, 0.5, 20.0]))
def test_the_intercept_is_free(part, data, shift):
    if part.make().fit_intercept:
        wl.testing.the_intercept_is_free(part.make(), *data, shift=shift, rtol=part.rtol)


@every
@few
@given(data=tables(outputs=(2, 3)))
def test_outputs_are_fitted_alone(part, data):
    if part.separate:
        wl.testing.outputs_are_fitted_alone(part.make(), *data, rtol=part.rtol)


@every
@few
@given(data=tables())
def test_predictions_are_the_models(part, data):
    wl.testing.predictions_are_the_models(part.make(), *data)


@every
def test_gradients_reach_every_parameter(part, rng):
    X = rng.normal(size=(20, 3))
    model = part.make().fit(X, X @ [1.0, 2.0, 3.0] + 1.0).model_
    wl.testing.gradients_reach_every_parameter(model, X)


@every
@few
@given(data=tables())
def test_same_seed_same_fit(part, data):
    wl.testing.same_seed_same_fit(part.make(), *data)


@every
@few
@given(data=tables())
def test_saving_keeps_every_bit(part, data):
    wl.testing.saving_keeps_every_bit(part.make(), *data)


@every
@few
@given(data=tables())
def test_clones_and_pickles(part, data):
    wl.testing.clones_and_pickles(part.make(), *data)


@every
@few
@given(data=tables())
def test_evidence_is_plain(part, data):
    required = CLAIMS + (DESCENT_CLAIMS if "descent" in part.name else ())
    wl.testing.evidence_is_plain(part.make(), *data, required=required)


@every
def test_failed_fit_changes_nothing(part, rng):
    X = rng.normal(size=(15, 3))
    wl.testing.failed_fit_changes_nothing(part.make(), X, X @ rng.normal(size=3))


@every
def test_interrupted_fit_changes_nothing(part, rng):
    X = rng.normal(size=(15, 3))
    wl.testing.interrupted_fit_changes_nothing(part.make(), X, X @ rng.normal(size=3))


@every
def test_nothing_compiles_again(part, rng):
    """Neither a second fit of the same shape nor another hyperparameter value compiles."""
    X = rng.normal(size=(25, 3))
    first, second = X @ rng.normal(size=3) + 1.0, X[:, 0] + rng.normal(size=25)
    changed = part.make()
    changed.set_params(tol=2 * changed.tol)
    if "alpha" in changed.get_params() and not isinstance(changed.alpha, str):
        changed.set_params(alpha=3.7 * changed.alpha)
    wl.testing.nothing_compiles_again(
        lambda: part.make().fit(X, first).coef_,
        lambda: part.make().fit(X + 1.0, second).coef_,
        lambda: changed.fit(X, first).coef_,
    )


@given(data=tables(rows=(3, 40), features=(1, 8)), alpha=st.sampled_from([1e-3, 0.1, 1.0, 1e3]))
def test_penalties_are_extra_samples(data, alpha):
    wl.testing.penalties_are_extra_samples(wl.Ridge(), wl.LinearRegression(), *data, alpha=alpha)


@given(data=tables(rows=(5, 40), features=(1, 8)))
def test_ridge_shrinks_as_the_penalty_grows(data):
    alphas = np.logspace(-3, 4, 6)
    wl.testing.shrinks_as_the_penalty_grows(wl.Ridge(), *data, alphas=alphas)
