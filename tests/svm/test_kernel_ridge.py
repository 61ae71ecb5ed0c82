"""Kernel ridge beside scikit-learn; leave-one-out by leaving out, derivatives by differences."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge as Peer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import wonderland as wl
from wonderland.core.arrays import in_float64
from wonderland.svm.kernel_tuning import leave_one_out, tune_kernel


def data(rng, n=60, d=3, t=0):
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + X[:, -1] ** 2 + 0.1 * rng.normal(size=n)
    return X, np.column_stack([y * (k + 1) + k for k in range(t)]) if t else y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [0, 2])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "cosine"])
def test_same_as_scikit_learn(rng, kernel, outputs, weighted):
    X, y = data(rng, t=outputs)
    weight = rng.uniform(0.1, 2.0, size=len(X)) if weighted else None
    alpha = [0.3, 1.7] if outputs else 0.3
    ours = wl.KernelRidge(alpha, kernel=kernel, gamma=0.4, coef0=0.5, degree=2)
    ours.fit(X, y, sample_weight=weight)
    peer = Peer(alpha=alpha, kernel=kernel, gamma=0.4, coef0=0.5, degree=2)
    peer.fit(X, y, sample_weight=weight)
    new = rng.normal(size=(7, 3))
    np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.predict(new), peer.predict(new), rtol=1e-8, atol=1e-9)
    assert not ours.evidence_.failing
    assert ours.evidence_["dual"].value <= ours.evidence_["primal"].value


def test_objective_is_no_worse_than_the_peers(rng):
    """At α = 1e-10 the equation is badly conditioned; P, summed in longer numbers, is minimal."""
    X, y = data(rng, n=120)
    K = rbf_kernel(X, gamma=0.05)
    wide, target = K.astype(np.longdouble), y.astype(np.longdouble)
    for alpha, rounding in ((1e-10, 1e-8), (1e-6, 1e-11), (1.0, 1e-13)):
        ours = wl.KernelRidge(alpha, kernel="precomputed").fit(K, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = Peer(alpha=alpha, kernel="precomputed").fit(K, y)
        primal = [
            ((target - wide @ a) ** 2).sum() + alpha * a @ wide @ a
            for a in (ours.dual_coef_, peer.dual_coef_)
        ]
        assert primal[0] <= primal[1] * (1 + rounding)


def test_other_inputs_give_the_same(rng):
    X, y = data(rng)
    kernel = wl.kernels.Gaussian(1.0 / 3)
    first = wl.KernelRidge(0.1, kernel="rbf").fit(X, y)
    for name in (kernel, lambda a, b: kernel.matrix(a, b), lambda x, z: kernel(x, z)):
        other = wl.KernelRidge(0.1, kernel=name).fit(X, y)
        np.testing.assert_allclose(other.predict(X[:5]), first.predict(X[:5]), rtol=1e-9)
    K = kernel.matrix(X)
    other = wl.KernelRidge(0.1, kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(other.predict(K[:5]), first.predict(X[:5]), rtol=1e-9)
    other = wl.KernelRidge(0.1, kernel="rbf").fit(sp.csr_array(X), y)
    np.testing.assert_allclose(other.predict(sp.csr_array(X[:5])), first.predict(X[:5]), rtol=1e-9)
    powered = wl.KernelRidge(
        0.1, kernel=lambda x, z, power: (x @ z) ** power, kernel_params={"power": 2}
    )
    peer = wl.KernelRidge(0.1, kernel="poly", gamma=1.0, coef0=0.0, degree=2).fit(X, y)
    np.testing.assert_allclose(powered.fit(X, y).predict(X), peer.predict(X), rtol=1e-7, atol=1e-9)


def test_leave_one_out_is_leaving_out(rng):
    X, y = data(rng, n=25)
    weight = rng.uniform(0.2, 2.0, size=25)
    model = wl.KernelRidge(0.2, kernel="rbf", gamma=0.5)
    error = 0.0
    for i in range(25):
        keep = np.arange(25) != i
        without = model.fit(X[keep], y[keep], sample_weight=weight[keep])
        error += weight[i] * (y[i] - without.predict(X[i : i + 1])[0]) ** 2
    found = model.fit(X, y, sample_weight=weight).evidence_
    np.testing.assert_allclose(found["leave_one_out_error"].value, error / weight.sum(), rtol=1e-9)
    K = wl.kernels.Gaussian(0.5).matrix(X)
    hat = K @ np.linalg.inv(K + 0.2 * np.diag(1 / weight))
    np.testing.assert_allclose(found["degrees_of_freedom"].value, np.trace(hat), rtol=1e-9)


def test_alpha_by_leave_one_out(rng):
    X, y = data(rng, n=40)
    path = np.logspace(-4, 2, 7)
    errors = [
        wl.KernelRidge(a, kernel="rbf").fit(X, y).evidence_["leave_one_out_error"].value
        for a in path
    ]
    chosen = wl.KernelRidge("loo", kernel="rbf", alphas=path).fit(X, y)
    assert chosen.alpha_ == path[np.argmin(errors)]
    np.testing.assert_allclose(
        chosen.evidence_["leave_one_out_error"].value, min(errors), rtol=1e-8
    )
    finer = wl.KernelRidge("gradient", kernel="rbf", alphas=path).fit(X, y)
    assert finer.evidence_["leave_one_out_error"].value <= min(errors) * (1 + 1e-9)
    assert finer.evidence_["leave_one_out_slope"].value < 1e-6


def test_derivative_of_leave_one_out(rng):
    X, y = data(rng, t=2)
    weight = rng.uniform(0.2, 2.0, size=len(X))

    def error(gamma, factor, alpha):
        kernel = wl.kernels.Gaussian(gamma) + factor * wl.kernels.Linear()
        return leave_one_out(kernel, alpha, X, y, weight)

    at, step = np.array([0.3, 0.5, 0.2]), 1e-5
    _, by_alpha, by_kernel = error(*at)
    found = [*map(float, jax.tree.leaves(by_kernel)), by_alpha]
    for k, slope in enumerate(found):
        moved = step * np.eye(3)[k]
        difference = (error(*(at + moved))[0] - error(*(at - moved))[0]) / (2 * step)
        np.testing.assert_allclose(slope, difference, rtol=1e-6, atol=1e-9)


def test_tuning_finds_an_optimum(rng):
    X = rng.uniform(-3, 3, size=(80, 1))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=80)
    tuned = wl.KernelRidge(kernel="rbf", tune=True).fit(X, y)
    claims = tuned.evidence_
    assert claims["leave_one_out_slope"].value < 1e-4
    gamma, alpha = float(tuned.kernel_.gamma), tuned.alpha_
    best = claims["leave_one_out_error"].value
    for factor in (0.95, 1.05):  # the search is local, and so is what it promises
        for g, a in ((gamma * factor, alpha), (gamma, alpha * factor)):
            if a >= 1e-6:  # a millionth of its start is as far as a parameter may go
                other = wl.KernelRidge(a, kernel="rbf", gamma=g).fit(X, y)
                assert other.evidence_["leave_one_out_error"].value >= best * (1 - 1e-5)
    only = wl.KernelRidge(0.5, kernel="rbf", gamma="gradient").fit(X, y)
    assert only.alpha_ == 0.5
    assert only.evidence_["leave_one_out_slope"].value < 1e-4
    found = tune_kernel(wl.kernels.Matern(5.0), 1.0, X, y[:, None])
    assert found.error < found.start


@in_float64
def test_the_pure_fit_is_differentiable(rng):
    X, y = data(rng, n=20)
    weight = rng.uniform(0.5, 2.0, size=20)

    def value(X, y, gamma, alpha, weight):
        kernel = wl.kernels.Gaussian(gamma)
        model = wl.fit_kernel_ridge(X, y, kernel, alpha, weight).model
        return jnp.sum(jax.vmap(model)(jnp.asarray([[0.1, 0.2, 0.3], [1.0, 0.0, -1.0]])))

    wl.testing.gradient_is_finite_difference(value, X, y, 0.4, 0.3, weight)
    plain = wl.fit_kernel_ridge(jnp.asarray(X), jnp.asarray(y), wl.kernels.Gaussian(0.4), 0.3)
    host = wl.fit_kernel_ridge(X, y, wl.kernels.Gaussian(0.4), 0.3)
    np.testing.assert_allclose(plain.model.dual, host.model.dual, rtol=1e-9)
    fitted = wl.KernelRidge(0.3, kernel="rbf", gamma=0.4).fit(X, y)
    np.testing.assert_allclose(fitted.dual_coef_, host.model.dual, rtol=1e-12)


def test_no_penalty_gives_the_shortest(rng):
    X, y = data(rng, n=30)
    ours = wl.KernelRidge(0.0).fit(X, y)
    assert ours.evidence_["solver"].value == "eigenvalues"
    expected = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(ours.predict(X), expected, rtol=1e-8, atol=1e-9)


def test_bad_input_is_told(rng):
    X, y = data(rng, n=20)
    with pytest.raises(wl.InputError, match=r"not positive semi-definite: αᵀKα = -"):
        wl.KernelRidge(1e-3, kernel="precomputed").fit(-np.eye(20), y)
    with pytest.raises(wl.InputError, match="square"):
        wl.KernelRidge(kernel="precomputed").fit(X, y)
    with pytest.raises(wl.InputError, match=r"returned shape \(2,\)"):
        wl.KernelRidge(kernel=lambda a, b: a[:, 0]).fit(X, y)
    with pytest.raises(wl.InputError, match="one of linear, poly"):
        wl.KernelRidge(kernel="rfb").fit(X, y)
    for alpha in (-1.0, "best", [1.0, 2.0], None):
        with pytest.raises(wl.InputError, match="alpha"):
            wl.KernelRidge(alpha).fit(X, y)
    with pytest.raises(wl.InputError, match="gamma"):
        wl.KernelRidge(kernel="rbf", gamma=-1.0).fit(X, y)
    with pytest.raises(wl.InputError, match="NaN"):
        wl.KernelRidge().fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(NotFittedError):
        wl.KernelRidge().predict(X)


def test_a_doubtful_kernel_is_asked(rng):
    X, y = data(rng, n=30)
    claim = wl.KernelRidge(50.0, kernel="sigmoid", gamma=1.0).fit(X, y).evidence_["mercer"]
    assert claim.holds is False
    assert "witness" in claim.meaning


def test_laws(rng):
    X, y = data(rng, n=30)
    for model in (
        wl.KernelRidge(0.1, kernel="rbf"),
        wl.KernelRidge(0.1, kernel="laplacian", gamma=0.2),
        wl.KernelRidge(0.1, kernel="rbf", approximation=wl.kernels.Nystroem(10), random_state=0),
        wl.KernelRidge(0.1, kernel="rbf", approximation=wl.kernels.RandomFeatures(20)),
    ):
        wl.testing.same_seed_same_fit(model, X, y)
        wl.testing.saving_keeps_every_bit(model, X, y)
        wl.testing.clones_and_pickles(model, X, y)
        wl.testing.failed_fit_changes_nothing(model, X, y)
        required = ["solver", "condition_number", "duality_gap", "leave_one_out_error"]
        wl.testing.evidence_is_plain(model, X, y, required=required)
        wl.testing.predictions_are_the_models(model.set_params(random_state=0), X, y)
    counts = rng.integers(1, 4, size=len(X))
    model = wl.KernelRidge(0.1, kernel="rbf", gamma=0.3)
    wl.testing.weights_are_repetition(model, X, y, counts=counts, rtol=1e-7)
    wl.testing.zero_weight_is_absence(model, X, y, absent=np.arange(30) % 5 == 2)
    wl.testing.samples_in_any_order(model, X, y, order=rng.permutation(30))


@parametrize_with_checks(
    [
        wl.KernelRidge(),
        wl.KernelRidge(kernel="rbf"),
        wl.KernelRidge(kernel="rbf", approximation=wl.kernels.Nystroem(200), random_state=0),
    ]
)
def test_check_estimator(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
