"""A right derivative is said to hold, a wrong one is found, and the step to blame is named."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from wonderland.autodiff import GradientCheck, check_gradient
from wonderland.autodiff.complex_step import NotAnalyticError, complex_slopes
from wonderland.autodiff.differences import central
from wonderland.autodiff.symbolic import NotSymbolicError, symbolic_jacobian
from wonderland.core.errors import InputError

X = np.random.default_rng(0).normal(size=(3, 4))
S = X @ X.T + np.eye(3)


@jax.custom_jvp
def wrong_forward(x):
    return x**3


wrong_forward.defjvp(lambda at, to: (wrong_forward(*at), 2.9 * at[0] ** 2 * to[0]))


@jax.custom_vjp
def wrong_reverse(x):
    return x * x


wrong_reverse.defvjp(lambda x: (x * x, x), lambda x, u: (3 * x * u,))


def ladder(x):
    return jax.lax.scan(lambda c, t: (jnp.sin(c) * t, c), x[0], x)[0]


def loop(x):
    return jax.lax.while_loop(lambda s: (s < 100).all(), lambda s: s * 2 + 1, jnp.abs(x)).sum()


RIGHT = {
    "sine": (lambda x: jnp.sin(x).sum(), X[0]),
    "rosenbrock": (lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(), X[0]),
    "network": (lambda x: jnp.tanh(X @ jax.nn.gelu(X.T @ jnp.tanh(X @ x))), X[1]),
    "softmax": (jax.nn.softmax, X[0]),
    "determinant": (lambda x: jnp.linalg.slogdet(x)[1], S),
    "cholesky": (jnp.linalg.cholesky, S),
    "pytree": (lambda p: jnp.logaddexp(0.0, X @ p["w"] + p["b"]).sum(), {"w": X[0], "b": 0.3}),
    "scan": (ladder, X[0]),
    "while": (loop, X[0]),
    "branch": (lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), X[0]),
    "gather": (lambda x: x[jnp.array([1, 1, 0])] * x[::-1][:3], X[0]),
    "scales": (lambda x: jnp.log(x), np.array([1e-8, 1.0, 1e8])),
    "saturated": (lambda x: jnp.tanh(x), np.array([-30.0, -5.0, 20.0])),
    "zero": (lambda x: (x**2).sum(), np.zeros(3)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_hold(name):
    report = check_gradient(*RIGHT[name])
    assert report.holds, report
    assert bool(report)
    assert report.blame == ()
    assert {entry.verdict for entry in report.entries} == {"agrees"}


def test_a_wrong_forward_rule_is_found_and_named():
    report = check_gradient(lambda x: jnp.tanh(wrong_forward(jnp.sin(x))).sum(), X[0])
    assert not report
    assert all(entry.verdict == "differs" for entry in report.entries)
    (blame,) = report.blame
    assert (blame.primitive, blame.mode) == ("wrong_forward", "forward")
    assert "test_check.py" in blame.line
    assert blame.found / blame.expected == pytest.approx(2.9 / 3, rel=1e-6)


def test_a_wrong_reverse_rule_is_found_and_named():
    report = check_gradient(lambda x: jnp.tanh(wrong_reverse(jnp.sin(x))).sum(), X[0])
    assert not report
    (blame,) = report.blame
    assert (blame.primitive, blame.mode) == ("wrong_reverse", "reverse")
    assert blame.found / blame.expected == pytest.approx(1.5, rel=1e-6)
    assert all(entry.forward is None for entry in report.entries)
    assert any("no forward mode" in note for note in report.notes)


@pytest.mark.parametrize("wrong", [wrong_forward, wrong_reverse])
def test_a_wrong_rule_is_found_inside_loops_and_branches(wrong):
    def scanned(x):
        return jax.lax.scan(lambda c, t: (wrong(c) * t, None), x, jnp.ones(3))[0]

    def branched(x):
        return jax.lax.cond(x > 0, lambda z: jnp.cos(wrong(z)), jnp.sin, x)

    def called(x):
        return jax.jit(lambda z: wrong(jnp.exp(z)))(x)

    for f, place in ((scanned, "scan"), (branched, "cond"), (called, "<lambda>")):
        report = check_gradient(f, 0.7)
        assert not report
        assert [(blame.primitive, blame.path) for blame in report.blame] == [
            (wrong.__name__, (place,))
        ]


def test_one_entry_wrong_by_a_thousandth_is_found():
    @jax.custom_jvp
    def total(x):
        return jnp.cumsum(x)

    total.defjvp(lambda at, to: (total(*at), jnp.cumsum(to[0]).at[1].multiply(1.001)))
    report = check_gradient(lambda x: total(jnp.exp(x)) ** 2, X[0])
    assert {(e.input, e.output) for e in report.failing} == {("[0]", "[1]"), ("[1]", "[1]")}
    assert [blame.primitive for blame in report.blame] == ["total"]


def test_disagreeing_modes_are_told():
    def double(v):
        return 2 * v

    def f(x):  # a linear function whose transpose somebody got wrong
        return jax.custom_derivatives.linear_call(
            lambda _, v: double(v), lambda _, u: 3 * u, (), jnp.sin(x)
        ).sum()

    report = check_gradient(f, X[0])
    assert {entry.verdict for entry in report.entries} == {"modes differ"}
    assert report.blame[0].mode == "reverse"


def test_the_where_trap_is_told_with_its_cause():
    report = check_gradient(
        lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0).sum(), jnp.array([1.0, -1.0])
    )
    assert [entry.verdict for entry in report.entries] == ["agrees", "not finite"] or not report
    report = check_gradient(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0).sum(), jnp.array([0.0]))
    assert [entry.verdict for entry in report.entries] == ["not finite"]
    assert report.blame[0].primitive == "sqrt"
    assert any("singular" in note for note in report.notes)


def test_a_kink_is_no_mistake_but_is_mentioned():
    report = check_gradient(lambda x: jax.nn.relu(x).sum(), jnp.array([0.0, 1.0]))
    assert report.holds
    assert [entry.verdict for entry in report.entries] == ["kink", "agrees"]
    assert any("relu" in note for note in report.notes)


def test_a_wrong_slope_at_a_kink_is_still_wrong():
    @jax.custom_jvp
    def bend(x):
        return jnp.abs(x)

    bend.defjvp(lambda at, to: (bend(*at), jnp.where(at[0] == 0, 5.0, jnp.sign(at[0])) * to[0]))
    assert not check_gradient(bend, 0.0).holds


def test_all_witnesses_agree_to_their_stated_errors():
    report = check_gradient(lambda x: jnp.exp(jnp.sin(x) * x).sum(), X[0])
    for entry, x in zip(report.entries, X[0], strict=True):
        exact = np.exp(np.sin(x) * x) * (np.cos(x) * x + np.sin(x))
        assert abs(entry.reverse - exact) <= entry.rounding
        assert abs(entry.forward - exact) <= entry.rounding
        assert abs(entry.complex_step - exact) <= entry.rounding
        assert abs(entry.symbolic - exact) <= entry.rounding
        assert abs(entry.central - exact) <= 3 * entry.central_error
        assert entry.central_error < 1e-8


def test_single_precision_programs_are_judged_by_their_precision():
    report = check_gradient(lambda x: jnp.sum(x.astype(jnp.float32) ** 2), X[0])
    assert report.holds
    assert any("1e-07" in note for note in report.notes)
    assert report.entries[0].central_error > 1e-6

    def stubborn(x):
        return jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, jnp.zeros(3, jnp.float32))[0]

    assert check_gradient(stubborn, jnp.ones((), jnp.float32)).holds


def test_large_problems_are_sampled_and_said_so():
    report = check_gradient(lambda x: jnp.sin(x), np.linspace(0, 1, 400), most=10)
    assert len(report.entries) == 100
    assert report.holds
    assert "10 of 400 inputs, chosen at random; raise most for more" in report.notes
    assert any("outputs" in note for note in report.notes)


def test_report_prints_and_becomes_json():
    report = check_gradient(wrong_forward, 0.7)
    text = repr(report)
    assert isinstance(report, GradientCheck)
    assert "The derivative FAILS in 1 of 1 entries." in text
    assert "wrong: wrong_forward" in text
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["holds"] is False
    assert plain["blame"][0]["primitive"] == "wrong_forward"
    assert "holds: 1 of 1" in repr(check_gradient(jnp.sin, 0.7))


def test_reverse_mode_may_be_missing_and_both_may_not():
    report = check_gradient(loop, X[0])
    assert report.holds
    assert all(entry.reverse is None for entry in report.entries)

    def outside(x):
        shape = jax.ShapeDtypeStruct((), x.dtype)
        return jax.pure_callback(lambda v: np.sin(v), shape, x, vmap_method="sequential")

    with pytest.raises(InputError, match="differentiate in at least one mode"):
        check_gradient(outside, 1.0)


def test_complex_functions_are_refused():
    with pytest.raises(InputError, match="real function"):
        check_gradient(lambda x: x * 1j, 1.0)


def test_formula_may_be_asked_for_and_left_out():
    assert check_gradient(jnp.sin, 0.5, symbolic=False).entries[0].symbolic is None
    assert check_gradient(jnp.sin, 0.5, symbolic=True).entries[0].symbolic == np.cos(0.5)
    report = check_gradient(lambda x: jnp.linalg.slogdet(x)[1], S, symbolic=True)
    assert any("no formula" in note for note in report.notes)


# The witnesses, each against an outside oracle --------------------------------------------------


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


@pytest.mark.usefixtures("double")
def test_central_differences_know_their_error():
    x = np.array([0.1, 1.0, 5.0, 30.0])
    for f, slope in [
        (jnp.exp, np.exp(x)),
        (jnp.sin, np.cos(x)),
        (jnp.sqrt, 0.5 / np.sqrt(x)),
        (lambda z: (1e6 + z) - 1e6, np.ones(4)),
        (lambda z: jnp.sin(50 * z), 50 * np.cos(50 * x)),
    ]:
        (got,) = central(lambda z, f=f: [f(z)], [x], [np.ones(4)], eps=2.2e-16)
        assert (np.abs(got.value - slope) <= 3 * got.error).all()
        assert (got.error < 1e-2 * np.abs(slope) + 1e-3).all()


@pytest.mark.usefixtures("double")
def test_complex_step_has_no_rounding_error():
    x, v = X, np.random.default_rng(1).normal(size=X.shape)

    def f(z):
        walk = jax.lax.scan(lambda c, t: (jnp.tanh(c) * t, c), z[0], z)[0]
        kept = z.at[jnp.array([0, 2])].add(z[1])[jnp.array([1, 1, 2])]
        return walk, jnp.abs(z) ** 1.5 + jnp.sort(kept), jax.nn.softplus(z) / (1 + z**2)

    closed = jax.make_jaxpr(f)(x)
    exact = jax.jvp(f, (x,), (v,))[1]
    for ours, theirs in zip(complex_slopes(closed, [jnp.asarray(x)], [v]), exact, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-14)


@pytest.mark.usefixtures("double")
def test_what_has_no_complex_continuation_is_refused_by_name():
    closed = jax.make_jaxpr(jax.scipy.special.gammaln)(2.0)
    with pytest.raises(NotAnalyticError, match="lgamma"):
        complex_slopes(closed, [jnp.asarray(2.0)], [jnp.asarray(1.0)])


@pytest.mark.usefixtures("double")
def test_formulas_have_exact_derivatives():
    def at(f, x):
        x = jnp.asarray(x)
        return symbolic_jacobian(jax.make_jaxpr(f)(x), [x])

    np.testing.assert_array_equal(at(lambda x: x**3, 2.0), [[12.0]])
    gamma = at(jax.scipy.special.gammaln, 2.5)
    np.testing.assert_allclose(gamma, [[special.digamma(2.5)]], rtol=1e-15)
    # Where floating point has lost every digit the formula has not.
    lost = at(lambda x: (x + 1e17 - 1e17) ** 2, 0.25)
    np.testing.assert_array_equal(lost, [[0.5]])
    for f in (
        lambda x: jnp.einsum("bij,bjk->bki", x.reshape(2, 2, 3), x.reshape(2, 3, 2)),
        lambda x: jnp.linalg.norm(x) / x.mean(axis=0) + jnp.cumsum(x[:, :3], axis=1).max(),
        lambda x: jax.lax.while_loop(lambda s: (s < 9).all(), lambda s: 2 * s + 1, jnp.abs(x)),
        lambda x: jnp.sort(x, axis=0) * jax.nn.softmax(x),
        lambda x: jax.lax.scan(lambda c, t: (c * t, c + t), x[0], x[1:], reverse=True)[1],
    ):
        exact = jax.jacfwd(f)(X).reshape(-1, X.size)
        np.testing.assert_allclose(at(f, X), exact, rtol=1e-13, atol=1e-14)


@pytest.mark.usefixtures("double")
def test_what_is_no_formula_is_refused_by_name():
    for f, x, name in [
        (jnp.linalg.cholesky, S, "cholesky"),
        (lambda x: jnp.sin(x).sum(), np.ones(3000), "2000 expressions"),
    ]:
        with pytest.raises(NotSymbolicError, match=name):
            symbolic_jacobian(jax.make_jaxpr(f)(x), [jnp.asarray(x)])
