"""Implicit derivatives against closed forms and finite differences, eager, jitted and vmapped."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from wonderland.autodiff import KKT, Argmin, FixedPoint, Root, implicit
from wonderland.autodiff.linear_solve import Dense, Gmres, Minres, solve_linear
from wonderland.core.errors import InputError

TOLERANCE = 1e-5  # against central differences; closed forms are held to 1e-9


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 3))
    return jnp.asarray(X), jnp.asarray(X @ [1.0, -2.0, 0.5] + rng.normal(size=30))


def central(f, theta, step=1e-5):
    """The dense Jacobian of f at flat theta by central differences."""
    theta = np.asarray(theta, float)
    columns = []
    for index in np.ndindex(theta.shape):
        e = np.zeros_like(theta)
        e[index] = step
        columns.append((np.asarray(f(theta + e)) - np.asarray(f(theta - e))) / (2 * step))
    return np.stack(columns, -1).reshape(np.shape(f(theta)) + theta.shape)


def hold_on_every_road(f, theta, tol=TOLERANCE):
    """Forward, reverse, jitted and vmapped derivatives all equal central differences."""
    theta = jnp.asarray(theta)
    wanted = central(jax.jit(f), theta)
    scale = tol * (1 + np.abs(wanted).max())
    pair = jnp.stack([theta, theta])

    @jax.jit
    def roads(t, ts):
        return jax.jacfwd(f)(t), jax.jacrev(f)(t), jax.vmap(jax.jacrev(f))(ts)[1]

    for found in roads(theta, pair):
        np.testing.assert_allclose(found, wanted, atol=scale)


# Ridge -----------------------------------------------------------------------------------------


def ridge_objective(w, X, y, alpha):
    return ((X @ w - y) ** 2).sum() + alpha * (w**2).sum()


def ridge_descent(X, y, alpha):
    """Plain gradient descent: a solver nobody would want to differentiate through."""
    step = 0.5 / (jnp.linalg.norm(X, 2) ** 2 + alpha)
    slope = jax.grad(ridge_objective)

    def unfinished(state):
        return (state[1] > 1e-12) & (state[2] < 5000)

    def body(state):
        g = slope(state[0], X, y, alpha)
        return state[0] - step * g, jnp.abs(g).max(), state[2] + 1

    return jax.lax.while_loop(unfinished, body, (jnp.zeros(X.shape[1]), jnp.inf, 0))[0]


ridge = implicit(ridge_descent, Argmin(ridge_objective))


def ridge_closed(X, y, alpha):
    return jnp.linalg.solve(X.T @ X + alpha * jnp.eye(X.shape[1]), X.T @ y)


def test_ridge_equals_finite_differences(data):
    X, y = data
    hold_on_every_road(lambda alpha: ridge(X, y, alpha), 0.7)
    hold_on_every_road(lambda v: ridge(X, v, 0.7), y)


def test_ridge_equals_the_closed_form_to_second_order(data):
    X, y = data
    for k in range(3):
        ours = jax.jit(jax.jacrev(ridge, k))(X, y, 0.7)
        np.testing.assert_allclose(ours, jax.jacrev(ridge_closed, k)(X, y, 0.7), atol=1e-9)
    second = jax.jit(jax.hessian(lambda a: ridge(X, y, a)))(0.7)
    np.testing.assert_allclose(second, jax.hessian(lambda a: ridge_closed(X, y, a))(0.7), atol=1e-9)


def test_keywords_are_differentiated_too(data):
    X, y = data
    slope = jax.jit(jax.grad(lambda a: ridge(X, y, alpha=a).sum()))(0.7)
    wanted = jax.grad(lambda a: ridge_closed(X, y, a).sum())(0.7)
    np.testing.assert_allclose(slope, wanted, atol=1e-9)


def test_closures_over_data_are_differentiated(data):
    X, y = data

    def fitted(alpha, targets):
        solver = implicit(
            lambda: ridge_descent(X, targets, alpha),
            Argmin(lambda w: ridge_objective(w, X, targets, alpha)),
        )
        return solver()

    for k in range(2):
        wanted = jax.jacrev(lambda a, t: ridge_closed(X, t, a), k)(0.7, y)
        np.testing.assert_allclose(jax.jit(jax.jacfwd(fitted, k))(0.7, y), wanted, atol=1e-9)
    alphas = jnp.array([0.7, 2.0])
    inside = jax.jit(jax.grad(lambda a: jax.vmap(lambda b: fitted(b, y))(a).sum()))(alphas)
    wanted = jax.vmap(jax.grad(lambda b: ridge_closed(X, y, b).sum()))(alphas)
    np.testing.assert_allclose(inside, wanted, atol=1e-9)


# Logistic --------------------------------------------------------------------------------------


def logistic_objective(params, X, labels, C):
    margin = jnp.where(labels == 1, 1, -1) * (X @ params["w"] + params["b"])
    return C * jnp.logaddexp(0.0, -margin).sum() + 0.5 * (params["w"] ** 2).sum()


def logistic_newton(X, labels, C):
    def flat(p):
        return logistic_objective({"w": p[:-1], "b": p[-1]}, X, labels, C)

    def body(_, p):
        return p - jnp.linalg.solve(jax.hessian(flat)(p), jax.grad(flat)(p))

    p = jax.lax.fori_loop(0, 12, body, jnp.zeros(X.shape[1] + 1))
    return {"w": p[:-1], "b": p[-1]}


logistic = implicit(logistic_newton, Argmin(logistic_objective))


def test_logistic_equals_finite_differences_on_pytrees(data):
    X, y = data
    labels = (y > 0).astype(int)

    def coefficients(C, Z):
        fit = logistic(Z, labels, C)
        return jnp.append(fit["w"], fit["b"])

    hold_on_every_road(lambda C: coefficients(C, X), 0.3)
    hold_on_every_road(lambda Z: coefficients(0.3, Z), X)


def test_integer_labels_batched_inside_a_derivative(data):
    X, y = data
    many = jnp.stack([(y > 0).astype(int), (y > 1).astype(int)])

    def total(C):
        return jax.vmap(lambda labels: logistic(X, labels, C)["w"])(many).sum()

    np.testing.assert_allclose(
        jax.jit(jax.grad(total))(0.3), central(jax.jit(total), 0.3), rtol=TOLERANCE
    )


# SVM dual: a box and one equation --------------------------------------------------------------


def svm_dual(a, K, s, C):
    return 0.5 * (s * a) @ K @ (s * a) - a.sum()


def onto_box_and_plane(a, s, C):
    """Euclidean projection onto {0 ≤ a ≤ C, sᵀa = 0}, by bisection on the multiplier."""
    reach = jnp.abs(a).max() + C

    def halve(_, ends):
        low, high = ends
        mid = (low + high) / 2
        above = s @ jnp.clip(a - mid * s, 0, C) > 0
        return jnp.where(above, mid, low), jnp.where(above, high, mid)

    low, high = jax.lax.fori_loop(0, 60, halve, (-reach, reach))
    return jnp.clip(a - (low + high) / 2 * s, 0, C)


def svm_solver(K, s, C):
    """Accelerated projected gradient, then nothing: the derivative comes from the conditions."""
    step = 1 / jnp.linalg.norm(K, 2)

    def body(k, state):
        a, ahead = state
        slope = s * (K @ (s * ahead)) - 1
        new = onto_box_and_plane(ahead - step * slope, s, C)
        momentum = (jnp.sqrt(1000.0) - 1) / (jnp.sqrt(1000.0) + 1)
        return new, new + momentum * (new - a)

    return jax.lax.fori_loop(0, 1500, body, (jnp.zeros_like(s), jnp.zeros_like(s)))[0]


svm = implicit(
    svm_solver,
    KKT(svm_dual, equality=lambda a, K, s, C: s @ a, lower=0.0, upper=lambda K, s, C: C),
)


@pytest.fixture
def svm_data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 2))
    s = np.where(X[:, 0] + 0.8 * rng.normal(size=12) > 0, 1.0, -1.0)
    return jnp.asarray(X), jnp.asarray(s)


def gaussian(X, gamma):
    apart = ((X[:, None] - X[None]) ** 2).sum(-1)
    return jnp.exp(-gamma * apart) + 0.05 * jnp.eye(len(X))


def test_svm_dual_equals_finite_differences(svm_data):
    X, s = svm_data
    dual = svm(gaussian(X, 0.8), s, 0.9)
    at_zero, at_C = (dual < 1e-8).sum(), (dual > 0.9 - 1e-8).sum()
    assert at_zero > 0
    assert at_C > 0
    assert at_zero + at_C < 11  # the active set holds all three kinds
    hold_on_every_road(lambda t: svm(gaussian(X, t[0]), s, t[1]), [0.8, 0.9])


def test_svm_by_a_host_solver_has_the_same_derivative(svm_data):
    svc = pytest.importorskip("sklearn.svm").SVC
    X, s = svm_data

    def host(K, signs, C):
        fit = svc(kernel="precomputed", C=float(C), tol=1e-10).fit(np.asarray(K), np.asarray(signs))
        dual = np.zeros(len(signs))
        dual[fit.support_] = np.abs(fit.dual_coef_[0])
        return dual

    by_host = implicit(host, svm.condition)
    for k, argument in ((0, 0.8), (1, 0.9)):

        def reach(solution, t, k=k):
            gamma, C = (t, 0.9) if k == 0 else (0.8, t)
            return solution(gaussian(X, gamma), s, C)

        ours = jax.jacrev(lambda t: reach(by_host, t))(argument)
        theirs = jax.jacrev(lambda t: reach(svm, t))(argument)
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


# Fixed points and roots ------------------------------------------------------------------------


def test_fixed_point_equals_finite_differences():
    W = jnp.asarray(np.random.default_rng(1).normal(size=(5, 5)) / 6)

    def contraction(z, b):
        return {"z": jnp.tanh(W @ z["z"] + b)}

    def iterate(b):
        return jax.lax.fori_loop(0, 200, lambda _, z: contraction(z, b), {"z": jnp.zeros(5)})

    hold_on_every_road(
        lambda b: implicit(iterate, FixedPoint(contraction))(b)["z"], jnp.arange(5.0) / 3
    )


def test_root_equals_finite_differences_and_closed_form():
    def both(x, a):
        return jnp.array([x[0] * x[1] - a[0], x[0] - x[1] * a[1]])

    def newton(a):
        def body(_, x):
            return x - jnp.linalg.solve(jax.jacfwd(both)(x, a), both(x, a))

        return jax.lax.fori_loop(0, 40, body, jnp.ones(2))

    a = jnp.array([2.0, 3.0])
    hold_on_every_road(implicit(newton, both), a)

    def closed(a):
        return jnp.sqrt(jnp.array([a[0] * a[1], a[0] / a[1]]))

    # Third derivatives: the rule differentiates itself.
    third = jax.jit(jax.jacfwd(jax.hessian(implicit(newton, Root(both)))))(a)
    np.testing.assert_allclose(third, jax.jacfwd(jax.hessian(closed))(a), rtol=1e-9)


def test_scipy_root_finder_is_differentiated_on_the_host():
    root = implicit(
        lambda a: optimize.brentq(lambda x: x**3 + x - float(a), -9, 9, xtol=1e-14),
        lambda x, a: x**3 + x - a,
    )
    x = float(root(2.0))
    assert jax.grad(root)(2.0) == pytest.approx(1 / (3 * x**2 + 1), rel=1e-12)
    assert jax.hessian(root)(2.0) == pytest.approx(-6 * x / (3 * x**2 + 1) ** 3, rel=1e-12)
    assert root.residual(2.0) < 1e-12


# Constraints -----------------------------------------------------------------------------------


def test_general_constraints_equal_finite_differences_of_scipy():
    def f(x, t):
        return (x[0] - t[0]) ** 2 + (x[1] - t[1]) ** 2 + 0.1 * x[0] * x[2] + (x[2] + 1) ** 2

    def h(x, t):
        return x[0] + x[1] - t[2]

    def g(x, t):  # the first is active at the solution, the second is not
        return jnp.array([x[0] ** 2 + x[1] ** 2 - t[3], x[2] - 9])

    value, constraint = jax.jit(jax.value_and_grad(f)), jax.jit(g)

    def solve(t):
        t = np.asarray(t)
        fit = optimize.minimize(
            lambda x: float(value(x, t)[0]),
            jac=lambda x: np.asarray(value(x, t)[1]),
            x0=[0.9, 0.9, -0.5],
            method="SLSQP",
            constraints=[
                {"type": "eq", "fun": lambda x: float(h(x, t))},
                {"type": "ineq", "fun": lambda x: -np.asarray(constraint(x, t))},
            ],
            bounds=[(None, None), (None, None), (-0.5, None)],
            options={"ftol": 1e-15, "maxiter": 200},
        )
        return fit.x

    t = np.array([2.0, 0.5, 1.5, 1.2])
    x = solve(t)
    assert abs(constraint(x, t)[0]) < 1e-7
    assert x[2] == pytest.approx(-0.5)
    solution = implicit(
        solve,
        KKT(f, equality=h, inequality=g, lower=jnp.array([-jnp.inf, -jnp.inf, -0.5])),
    )
    assert solution.residual(t) < 1e-6
    np.testing.assert_allclose(jax.jacfwd(solution)(t), central(solve, t, 1e-4), atol=1e-4)


def test_projection_onto_the_simplex_has_its_closed_form():
    def project(c):
        u = jnp.sort(c)[::-1]
        rho = jnp.cumsum(u) - 1
        k = jnp.arange(1, c.size + 1)
        count = (u - rho / k > 0).sum()
        return jnp.maximum(c - rho[count - 1] / count, 0)

    condition = KKT(
        lambda x, c: 0.5 * ((x - c) ** 2).sum(), equality=lambda x, c: x.sum() - 1, lower=0
    )
    c = jnp.array([0.5, 0.9, -0.4, 0.3])
    on = np.array([1.0, 1, 0, 1])
    wanted = np.diag(on) - np.outer(on, on) / 3
    np.testing.assert_allclose(jax.jacrev(implicit(project, condition))(c), wanted, atol=1e-12)


def test_duals_from_the_solver_are_differentiated_as_well():
    # min ½‖x − c‖² with aᵀx = b: x = c − ν a, ν = (aᵀc − b)/aᵀa.
    a = jnp.array([1.0, 2.0])

    def solve(c, b):
        nu = (a @ c - b) / (a @ a)
        return c - nu * a, nu, None

    condition = KKT(
        lambda x, c, b: 0.5 * ((x - c) ** 2).sum(), equality=lambda x, c, b: a @ x - b, duals=True
    )
    x, nu, nothing = jax.jacrev(implicit(solve, condition), argnums=1)(jnp.array([3.0, 1.0]), 2.0)
    assert nothing is None
    np.testing.assert_allclose(nu, -1 / 5, atol=1e-14)
    np.testing.assert_allclose(x, a / 5, atol=1e-14)


# Linear systems --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "solver", [None, "dense", "minres", "gmres", Minres(restarts=9), Gmres(20)]
)
def test_linear_solvers_agree_with_numpy(solver):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(40, 40))
    A, b = half @ half.T / 40 + np.eye(40), rng.normal(size=40)
    x = solve_linear(lambda v: A @ v, b, solver=solver)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-10)


@pytest.mark.parametrize("solver", ["dense", "gmres"])
def test_linear_solve_is_differentiable_in_both_modes(solver):
    rng = np.random.default_rng(0)
    A, b = jnp.asarray(rng.normal(size=(8, 8)) + 4 * np.eye(8)), jnp.asarray(rng.normal(size=8))

    def solved(A, b):
        return solve_linear(lambda v: A @ v, b, solver=solver)

    for k in range(2):
        wanted = jax.jacrev(jnp.linalg.solve, k)(A, b)
        modes = jax.jit(
            lambda A, b, k=k: (jax.jacrev(solved, k)(A, b), jax.jacfwd(solved, k)(A, b))
        )
        for found in modes(A, b):
            np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("solver", ["dense", "minres", "gmres"])
def test_unsolvable_systems_give_nan_and_never_a_number(solver):
    A = jnp.diag(jnp.array([1.0, 2.0, 0.0]))
    assert jnp.isnan(solve_linear(lambda v: A @ v, jnp.ones(3), solver=solver)).all()


def test_too_few_steps_give_nan():
    spread = jnp.logspace(0, 6, 300)
    x = solve_linear(lambda v: spread * v, jnp.ones(300), solver=Minres(steps=5, restarts=1))
    assert jnp.isnan(x).all()


def test_large_problems_stay_matrix_free():
    """n = 2000, above the dense limit: a diagonal plus rank one, whose inverse is known."""
    n = 2000
    u = jnp.asarray(np.random.default_rng(2).normal(size=n)) / np.sqrt(n)
    scale = jnp.linspace(1, 2, n)

    def objective(x, theta):
        return 0.5 * (scale * x**2).sum() + 0.5 * (u @ x) ** 2 - theta * x.sum()

    def solve(theta):
        y, z = 1 / scale, u / scale  # Sherman–Morrison
        return theta * (y - z * (u @ y) / (1 + u @ z))

    slope = jax.jit(jax.jacfwd(implicit(solve, Argmin(objective))))(3.0)
    np.testing.assert_allclose(slope, solve(1.0), rtol=1e-8)
    general = implicit(solve, lambda x, t: jax.grad(objective)(x, t))
    np.testing.assert_allclose(jax.jacfwd(general)(3.0), solve(1.0), rtol=1e-8)
    assert isinstance(Dense(), Dense)


# Manners ---------------------------------------------------------------------------------------


def test_singular_optimum_has_a_nan_derivative():
    # Every x with x₀ + x₁ = θ is a minimum: which one moves, nothing tells.
    flat = implicit(
        lambda t: jnp.stack([t, 0 * t]), Argmin(lambda x, t: (x[0] + x[1] - t + 0 * x[0]) ** 2)
    )
    assert jnp.isnan(jax.jacfwd(flat)(1.0)).all()


def test_aux_travels_without_a_derivative():
    def solve(a):
        return jnp.sqrt(a), {"steps": 7, "trace": a * jnp.ones(3)}

    root = implicit(solve, lambda x, a: x**2 - a, aux=True)
    (x, aux), slope = root(4.0), jax.grad(lambda a: root(a)[0])(4.0)
    assert (float(x), aux["steps"], float(slope)) == (2.0, 7, 0.25)
    assert jax.grad(lambda a: root(a)[1]["trace"].sum())(4.0) == 0
    assert jax.jit(lambda a: root(a)[1]["trace"])(4.0).shape == (3,)


def test_solver_is_never_differentiated():
    """A while_loop has no reverse mode and a callback no derivative at all; neither matters."""

    def solve(a):
        shape = jax.ShapeDtypeStruct((), jnp.result_type(float))
        return jax.pure_callback(lambda b: np.sqrt(b), shape, a, vmap_method="sequential")

    root = implicit(solve, lambda x, a: x**2 - a)
    assert jax.jit(jax.grad(root))(4.0) == pytest.approx(0.25)
    np.testing.assert_allclose(jax.vmap(jax.grad(root))(jnp.array([4.0, 1.0])), [0.25, 0.5])


def test_single_precision_works_without_x64():
    with jax.enable_x64(False):
        root = implicit(jnp.sqrt, lambda x, a: x**2 - a)
        slope = jax.grad(root)(jnp.float32(4.0))
        assert slope.dtype == jnp.float32
        assert float(slope) == pytest.approx(0.25, rel=1e-5)


@pytest.mark.parametrize(
    ("solver", "condition", "sentence"),
    [
        (lambda a: jnp.array([1, 2]), lambda x, a: x, "floating-point"),
        (lambda a: jnp.ones(3) * a, lambda x, a: x.sum() - a, "as many equations as unknowns"),
        (lambda a: jnp.ones(3), KKT(lambda x, a: a * x.sum(), lower=jnp.zeros(2)), "lower bound"),
        (lambda a: jnp.ones(3), KKT(lambda x, a: a * x.sum(), duals=True), "duals=True"),
    ],
)
def test_misuse_is_told_in_a_sentence(solver, condition, sentence):
    with pytest.raises(InputError, match=sentence):
        implicit(solver, condition)(1.0)


def test_unknown_linear_solver_is_refused():
    with pytest.raises(InputError, match="minres"):
        solve_linear(lambda v: v, jnp.ones(2), solver="minress")


def test_aux_must_be_a_pair():
    with pytest.raises(InputError, match="a pair"):
        implicit(jnp.sqrt, lambda x, a: x**2 - a, aux=True)(4.0)
