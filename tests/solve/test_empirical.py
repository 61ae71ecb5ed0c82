"""First-order methods on penalised risks: optima against SciPy, and what each method promises."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize as so

import wonderland as wl
from wonderland import losses, penalties
from wonderland.core.arrays import in_float64
from wonderland.solve.proximal import certify

N, D = 60, 4
MADE = {
    "logistic, L2": (losses.Logistic(), penalties.L2(0.5), True),
    "logistic, free": (losses.Logistic(), None, True),
    "squared hinge, no intercept": (losses.SquaredHinge(), penalties.L2(1.0), False),
    "exponential": (losses.Exponential(), penalties.L2(0.5), True),
    "sigmoid": (losses.Tilted(-1.0), penalties.L2(1.0), True),
    "huber": (losses.Huber(0.5), penalties.L2(0.1), True),
    "squared": (losses.Squared(), None, True),
    "normal": (losses.GaussianNLL(2.0), penalties.L2(0.3), False),
    "cross-entropy": (losses.CrossEntropy(), penalties.L2(0.5), True),
}
FOUND = [wl.solve.Proximal(backtracking=True), wl.solve.QuasiNewton()]
GIVEN = [
    wl.solve.Descent(),
    wl.solve.Descent(momentum=False),
    wl.solve.Descent(momentum=False, cautious=True),
    wl.solve.HeavyBall(),
    wl.solve.Proximal(),
]


def table(rng, loss):
    X = rng.normal(size=(N, D)) * [1.0, 0.5, 2.0, 1.0] + [0.0, 1.0, 0.0, -1.0]
    score = X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=N)
    if loss.targets == "classes":
        return X, np.digitize(score, [-0.7, 0.7])
    return X, (np.where(score > 0, 1.0, -1.0) if loss.targets == "signs" else score)


@in_float64
def problem(rng, name, weight=None):
    loss, penalty, intercept = MADE[name]
    X, y = table(rng, loss)
    return wl.solve.empirical_risk(
        X, y, loss, penalty, C=0.7, sample_weight=weight, fit_intercept=intercept
    )


def run(solver, objective, *, tol=1e-7, max_iter=20_000):
    with jax.enable_x64(True):
        rules = wl.solve.Stopping(tol=tol, max_iter=max_iter)
        return wl.solve.minimise(solver, objective, objective.start(), rules)


def oracle(f):
    """The optimum of SciPy's BFGS, on the host."""
    d, shape = f.X.shape[1], f.start().shape
    X, y, weight = (np.asarray(part) for part in (f.X, f.y, f.weight))
    loss, penalty = (jax.tree.map(np.asarray, part) for part in (f.loss, f.penalty))

    def value_and_slope(flat):
        w = flat.reshape(shape)
        z = X @ w[:d] + (w[d] if f.fit_intercept else 0.0)
        pull = (weight * loss.derivative(z, y).T).T
        slope = penalty.residual(w[:d], X.T @ pull)
        if f.fit_intercept:
            slope = np.concatenate([slope, pull.sum(axis=0)[None]])
        return weight @ loss.value(z, y) + penalty.value(w[:d]), slope.ravel()

    start, rules = np.zeros(int(np.prod(shape))), {"gtol": 1e-8}
    found = so.minimize(value_and_slope, start, jac=True, method="BFGS", options=rules)
    return found.fun, found.x.reshape(shape)


QUICK = ("logistic, L2", "exponential")
each = pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MADE]
)


@each
def test_the_optimum_is_scipys(rng, name):
    f = problem(rng, name, weight=rng.uniform(0.5, 2.0, size=N))
    with jax.enable_x64(True):
        least, w = oracle(f)
    for solver in FOUND:
        state, status = run(solver, f)
        if not f.convex:  # another valley is as good, and a flat one takes its time
            assert float(state.certificate) <= 1e-5
            continue
        assert status is wl.Status.CONVERGED, solver
        with jax.enable_x64(True):
            assert float(f.total(state.w)) <= least + 1e-10 * abs(least)
        if f.loss.targets != "classes":  # one constant in all scores is free
            np.testing.assert_allclose(state.w, w, atol=1e-5)


@pytest.mark.parametrize("solver", GIVEN, ids=str)
def test_methods_with_a_given_step(rng, solver):
    for name in ("squared hinge, no intercept", "logistic, L2"):
        f = problem(rng, name)
        state, status = run(solver, f, tol=1e-6)
        assert status is wl.Status.CONVERGED
        exact, _ = run(wl.solve.QuasiNewton(), f)
        np.testing.assert_allclose(state.w, exact.w, atol=1e-5)


@each
@in_float64
def test_the_curvature_is_measured(rng, name):
    """L and m bound the eigenvalues of the Hessian anywhere."""
    f = problem(rng, name, weight=rng.uniform(0.5, 2.0, size=N))
    shape = f.start().shape
    hessian = jax.jit(jax.hessian(lambda w: f.value(w.reshape(shape))))
    slope = jax.jit(jax.grad(lambda w: f.value(w.reshape(shape))))
    for size in (0.0, 0.3, 3.0):
        w = size * rng.normal(size=int(np.prod(shape)))
        values = np.linalg.eigvalsh(hessian(jnp.asarray(w)))
        assert values.max() <= float(f.lipschitz) * (1 + 1e-9) + 1e-9
        assert values.min() >= float(f.strong_convexity) * (1 - 1e-9) - 1e-9 or not f.convex
        given = f.gradient(jnp.asarray(w).reshape(shape))
        np.testing.assert_allclose(slope(jnp.asarray(w)), given.ravel(), rtol=1e-9, atol=1e-9)


PENALTIES = {
    "L1": penalties.L1(3.0),
    "elastic net": penalties.ElasticNet(4.0, 0.5),
    "groups": penalties.Group(2.0, [0, 0, 1, 1]),
    "box": penalties.Box(0.0, 0.4),
}


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("backtracking", [False, True])
@in_float64
def test_proximal_steps_reach_the_optimum(rng, name, backtracking):
    X, y = table(rng, losses.Logistic())
    f = wl.solve.empirical_risk(X, y, losses.Logistic(), PENALTIES[name])
    found = {}
    for momentum in (True, False):
        solver = wl.solve.Proximal(momentum=momentum, backtracking=backtracking)
        state, status = run(solver, f, tol=1e-8)
        assert status is wl.Status.CONVERGED
        assert float(certify(f, state.w, f.gradient(state.w))) <= 1e-8
        found[momentum] = float(f.total(state.w))
    assert abs(found[True] - found[False]) <= 1e-9 * found[True]
    if name in SMOOTHED:
        assert found[True] <= SMOOTHED[name](X, y) * (1 + 1e-8)
    # No direction descends: an oracle that shares nothing with the certificate.
    w = np.asarray(state.w)
    for _ in range(50):
        near = w + 1e-4 * rng.normal(size=w.shape) * (rng.random(w.shape) < 0.5)
        assert float(f.total(jnp.asarray(near))) >= found[True] * (1 - 1e-12)


def _risk(w, X, y):
    z = X @ w[:D] + w[-1]
    pull = -y / (1 + np.exp(y * z))
    return np.logaddexp(0, -y * z).sum(), np.append(X.T @ pull, pull.sum())


def _split(X, y, strength, ratio):
    """SciPy's bounded optimum with w = p − q, p and q ≥ 0."""

    def whole(v):
        w, parts = np.append(v[:D] - v[D:-1], v[-1]), v[:-1]
        value, slope = _risk(w, X, y)
        value += strength * (ratio * parts.sum() + 0.5 * (1 - ratio) * (w[:-1] ** 2).sum())
        pulled = slope[:-1] + strength * (1 - ratio) * w[:-1]
        both = np.concatenate([pulled, -pulled]) + strength * ratio
        return value, np.append(both, slope[-1])

    return _bounded(whole, [(0.0, None)] * (2 * D) + [(None, None)])


def _bounded(function, bounds):
    rules = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
    start = np.full(len(bounds), 0.1)
    return so.minimize(
        function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=rules
    ).fun


SMOOTHED = {
    "L1": lambda X, y: _split(X, y, 3.0, 1.0),
    "elastic net": lambda X, y: _split(X, y, 4.0, 0.5),
    "box": lambda X, y: _bounded(lambda w: _risk(w, X, y), [(0.0, 0.4)] * D + [(None, None)]),
}


def test_methods_without_proximal_steps_refuse_kinks(rng):
    f = wl.solve.empirical_risk(
        *table(rng, losses.Logistic()), losses.Logistic(), penalties.L1(1.0)
    )
    for solver in (wl.solve.Descent(), wl.solve.HeavyBall(), wl.solve.QuasiNewton()):
        with pytest.raises(wl.InputError, match="not smooth"):
            run(solver, f)
    with pytest.raises(wl.InputError, match="one target for each row"):
        wl.solve.empirical_risk(np.ones((3, 1)), np.ones(2), losses.Squared())


@in_float64
def test_backtracking_never_asks_for_the_smoothness(rng):
    f = problem(rng, "logistic, L2")
    nowhere = eqx.tree_at(lambda f: f.lipschitz, f, f.lipschitz * jnp.nan)
    for solver in FOUND:
        state, status = run(solver, nowhere)
        assert status is wl.Status.CONVERGED
        np.testing.assert_array_equal(state.w, run(solver, f)[0].w)


def test_new_numbers_compile_nothing(rng):
    X, y = table(rng, losses.Huber())

    def fit(delta, C):
        f = wl.solve.empirical_risk(X, y, losses.Huber(delta), penalties.L2(0.5), C=C)
        return run(wl.solve.Proximal(backtracking=True), f)[0].w

    wl.testing.nothing_compiles_again(lambda: fit(0.5, 1.0), lambda: fit(2.0, 0.3))
