"""A law that cannot fail says nothing: each is shown an offender."""

import jax
import numpy as np
import pytest

import wonderland as wl
from wonderland.bases import Basis, Fourier
from wonderland.linear.model import LinearModel

X = np.random.default_rng(0).normal(size=(12, 2))
y = X @ np.array([1.0, -2.0]) + 0.1 * np.random.default_rng(1).normal(size=12)


class DeafToWeights(wl.LinearRegression):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, y)


class LastSampleOnly(wl.LinearRegression):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, np.asarray(y) + np.asarray(y)[-1] * np.arange(len(y)))


class Careless(wl.LinearRegression):
    def fit(self, X, y=None, sample_weight=None):
        self.coef_ = np.zeros(2)
        return super().fit(X, y, sample_weight)


class Random(wl.LinearRegression):
    def fit(self, X, y=None, sample_weight=None):
        super().fit(X, y)
        self.coef_ = self.coef_ + np.random.default_rng().normal(size=2)
        return self


class Biased(wl.LinearRegression):
    def _predict(self, X):
        return super()._predict(X) + 1.0


class Silent(wl.LinearRegression):
    def fit(self, X, y=None, sample_weight=None):
        super().fit(X, y)
        self.evidence_ = wl.Evidence([])
        return self


class Misnamed(Fourier):
    def names(self, features):
        return ["wave"] * (2 * self.k * len(features))


@pytest.mark.parametrize(
    ("law", "arguments"),
    [
        (wl.testing.weights_are_repetition, {"counts": np.arange(12) % 3}),
        (wl.testing.zero_weight_is_absence, {"absent": np.arange(12) < 3}),
    ],
)
def test_weights(law, arguments):
    with pytest.raises(AssertionError, match=r"weight|copies|shape"):
        law(DeafToWeights(), X, y, **arguments)


@pytest.mark.parametrize(
    ("law", "offender", "arguments"),
    [
        (wl.testing.samples_in_any_order, LastSampleOnly(), {"order": np.arange(12)[::-1]}),
        (wl.testing.failed_fit_changes_nothing, Careless(), {}),
        (wl.testing.interrupted_fit_changes_nothing, Careless(), {}),
        (wl.testing.same_seed_same_fit, Random(), {}),
        (wl.testing.predictions_are_the_models, Biased(), {}),
        (wl.testing.evidence_is_plain, Silent(), {"required": ["rank"]}),
        (wl.testing.the_intercept_is_free, LastSampleOnly(), {"shift": 5.0}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_offenders_are_caught(law, offender, arguments):
    with pytest.raises(AssertionError):
        law(offender, X, y, **arguments)


def test_a_penalty_that_is_none():
    class Unpenalised(wl.Ridge):
        def _fit(self, table):
            self.alpha = 0.0
            return super()._fit(table)

    with pytest.raises(AssertionError, match="extra samples"):
        wl.testing.penalties_are_extra_samples(
            Unpenalised(), wl.LinearRegression(), X, y, alpha=5.0
        )


def test_functions():
    @jax.custom_jvp
    def wrong(x):
        return x**2

    wrong.defjvps(lambda tangent, out, x: 3 * x * tangent)
    with pytest.raises(AssertionError, match="finite difference"):
        wl.testing.gradient_is_finite_difference(wrong, 2.0)


def test_a_parameter_that_no_gradient_reaches():
    class Deaf(LinearModel):
        def __call__(self, x):
            return super().__call__(x) + 0.0 * self.intercept - self.intercept

    model = Deaf(np.ones(2), np.float64(1.0))
    with pytest.raises(AssertionError, match="intercept"):
        wl.testing.gradients_reach_every_parameter(model, X)


def test_bases():
    with pytest.raises(AssertionError, match="twice"):
        wl.testing.basis_has_one_name_per_column(Misnamed(2), X)

    class Torn(Basis):
        def __call__(self, X):
            return X * (2.0 if isinstance(X, jax.Array) else 1.0)

        def names(self, features):
            return list(features)

    with pytest.raises(AssertionError, match="host and JAX"):
        wl.testing.basis_is_the_same_on_host_and_jax(Torn(), X)
