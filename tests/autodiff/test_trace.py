"""Traces: what is said about each step is true of its Jacobian, its cost and its duals."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from wonderland.autodiff.costs import cost_of
from wonderland.autodiff.programs import part
from wonderland.autodiff.structure import Structure, structures
from wonderland.autodiff.trace import trace
from wonderland.core.errors import InputError


def zero_one(J):
    return bool(np.all((J == 0) | (J == 1)))


def rows_at_most_one(J):
    return bool(np.all((J != 0).sum(1) <= 1))


def square(J):
    return J.shape[0] == J.shape[1]


# What each word promises, of a Jacobian with outputs along rows.
PROMISES = {
    Structure.ZERO: lambda J: not J.any(),
    Structure.IDENTITY: lambda J: square(J) and np.array_equal(J, np.eye(len(J))),
    Structure.SCALED: lambda J: square(J) and np.allclose(J, J[0, 0] * np.eye(len(J))),
    Structure.PERMUTATION: lambda J: (
        zero_one(J) and np.all(J.sum(0) == 1) and np.all(J.sum(1) == 1)
    ),
    Structure.SELECTION: lambda J: zero_one(J) and rows_at_most_one(J),
    Structure.SPREAD: rows_at_most_one,
    Structure.EMBEDDING: lambda J: zero_one(J) and rows_at_most_one(J) and rows_at_most_one(J.T),
    Structure.SUM: lambda J: zero_one(J) and np.all(J.sum(0) <= 1),
    Structure.DIAGONAL: lambda J: square(J) and np.array_equal(J, np.diag(np.diag(J))),
    Structure.GROUPED: lambda J: rows_at_most_one(J.T),
    Structure.TRIANGULAR: lambda J: square(J) and np.array_equal(J, np.tril(J)),
    Structure.BANDED: lambda J: (J != 0).mean() < 0.8,
    Structure.BLOCKS: lambda J: (J == 0).any(),
    Structure.DENSE: lambda J: True,
}

SINGLE = {
    "sin": (lambda x: jnp.sin(x), (5,)),
    "neg": (lambda x: -x, (5,)),
    "reshape": (lambda x: x.reshape(2, 3), (6,)),
    "transpose": (lambda x: x.T, (2, 3)),
    "rev": (lambda x: x[::-1], (4,)),
    "slice": (lambda x: lax.slice(x, (1,), (3,)), (5,)),
    "gather": (lambda x: lax.dynamic_slice(x, (1,), (2,)), (5,)),
    "broadcast": (lambda x: lax.broadcast(x, (3,)), (2,)),
    "pad": (lambda x: lax.pad(x, 0.0, [(1, 2, 0)]), (3,)),
    "sum": (lambda x: lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None), (3, 2)),
    "max": (lambda x: jnp.max(x, axis=1), (3, 2)),
    "cumsum": (lambda x: lax.cumsum(x), (4,)),
    "cumsum of a batch": (lambda x: lax.cumsum(x, axis=1), (3, 4)),
    "sort": (lambda x: lax.sort(x), (5,)),
    "floor": (lambda x: jnp.floor(x), (4,)),
    "times a number": (lambda x: 3.0 * x, (4,)),
    "divided by a number": (lambda x: x / 7.0, (4,)),
    "number divided": (lambda x: 7.0 / x, (4,)),
    "plus a number": (lambda x: x + 1.0, (4,)),
    "matrix times vector": (lambda x: lax.dot(jnp.ones((3, 4)), x), (4,)),
    "vector times matrix": (lambda x: lax.dot(x, jnp.ones((2, 4))), (3, 2)),
    "window": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID"),
        (6,),
    ),
    "convolution": (
        lambda x: lax.conv_general_dilated(x, jnp.ones((1, 1, 2)), (1,), "VALID"),
        (1, 1, 6),
    ),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)), (3, 3)),
    "power": (lambda x: x**3, (4,)),
    "clamp": (lambda x: lax.clamp(-0.5, x, 0.5), (4,)),
    "where": (lambda x: lax.select(jnp.arange(4) > 1, x, 2 * x), (4,)),
}


def single_steps(f, x):
    """Each equation of f that depends on x, as a function of one of its operands."""
    closed = jax.make_jaxpr(f)(x)
    known = dict(zip(closed.jaxpr.invars, [x], strict=True))
    known.update(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    for eqn in closed.jaxpr.eqns:
        args = [v.val if hasattr(v, "val") else known[v] for v in eqn.invars]
        yield eqn, args
        one = part(closed.jaxpr, [eqn], eqn.invars, eqn.outvars)
        out = jax.core.eval_jaxpr(one, (), *(known[v] for v in one.invars))
        known.update(zip(eqn.outvars, out, strict=True))


@pytest.mark.parametrize("name", SINGLE)
def test_the_structure_of_every_step_is_that_of_its_jacobian(name, rng):
    f, lengths = SINGLE[name]
    x = jnp.asarray(rng.normal(size=lengths), jnp.float32)
    for eqn, args in single_steps(f, x):
        for place, kind in enumerate(structures(eqn)):
            if kind is Structure.COMPOSED or not jnp.issubdtype(
                jnp.result_type(args[place]), jnp.inexact
            ):
                continue
            if hasattr(eqn.invars[place], "val"):
                continue

            def of_one(value, place=place, eqn=eqn, args=args):
                full = [*args[:place], value, *args[place + 1 :]]
                out = eqn.primitive.bind(*full, **eqn.params)
                return out[0] if eqn.primitive.multiple_results else out

            out = of_one(args[place])
            if not jnp.issubdtype(out.dtype, jnp.inexact):
                assert kind is Structure.ZERO
                continue
            J = np.asarray(jax.jacobian(of_one)(args[place])).reshape(out.size, -1)
            assert PROMISES[kind](J), (eqn.primitive.name, kind)


def program(W, x):
    return jnp.sum(jnp.tanh(W @ x) ** 2)


W, X = jnp.ones((3, 2)), jnp.ones(2)


def test_a_trace_reads_like_the_program():
    steps = trace(program, W, X)
    assert [step.primitive for step in steps] == [
        "dot_general",
        "tanh",
        "integer_pow",
        "reduce_sum",
    ]
    assert steps[0].operands == ("W", "x")
    assert steps[0].shapes == ((3,),)
    assert steps[0].flops == 2 * 3 * 2
    assert steps[1].transcendentals == 3
    assert steps.results == {"y": steps[3].outputs[0]}
    assert "test_trace.py" in steps[0].source
    assert len(steps[1:3]) == 2
    assert steps[1:3].total.flops == 3
    assert json.loads(json.dumps(steps.to_dict()))["steps"][0]["structures"][1] == "dense"
    for text in (str(steps), steps._repr_html_()):
        assert "dot_general" in text
        assert "FLOPs" in text


def test_the_tape_is_what_the_adjoint_reads():
    adjoint = trace(program, W, X).adjoint()
    forward = [step for step in adjoint if step.phase == "forward"]
    backward = [step for step in adjoint if step.phase == "adjoint"]
    read = {name for step in backward for name in step.operands}
    for step in forward:
        assert step.stored == bool(read & set(step.outputs))
    assert set(adjoint.held) == {"W", "x"}
    assert {"y", "W̄", "x̄"} == set(adjoint.results)
    assert forward[0].primitive == "dot_general"
    assert not forward[0].stored  # W x is read by tanh alone, which is stored instead


def test_the_dual_programs_compute_the_derivatives(rng):
    A = jnp.asarray(rng.normal(size=(3, 2)), jnp.float32)
    x, v = (jnp.asarray(rng.normal(size=2), jnp.float32) for _ in range(2))
    steps = trace(lambda x: jnp.sin(A @ x), x)

    def run(program, *values):
        return jax.core.eval_jaxpr(program.jaxpr, program.consts, *values)

    y, dy = run(steps.tangent().program, x, v)
    expected, tangent = jax.jvp(lambda x: jnp.sin(A @ x), (x,), (v,))
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    np.testing.assert_allclose(dy, tangent, rtol=1e-5)
    y, back = run(steps.adjoint().program, x, jnp.ones(3))
    np.testing.assert_allclose(back, A.T @ jnp.cos(A @ x), rtol=1e-5, atol=1e-6)


def nested(tree, x):
    y = jax.nn.softmax(x @ tree["w"])
    y, _ = lax.scan(lambda c, a: (c * a[None], jnp.sum(c)), y, x)
    y = lax.cond(y.sum() > 0, lambda y: y * 2, lambda y: jnp.exp(jnp.sin(y)), y)
    y = lax.fori_loop(0, 5, lambda i, y: y / 2, jax.nn.relu(y))
    return {"y": lax.while_loop(lambda y: y.sum() > 1, lambda y: y / 2, y), "k": jnp.argmax(y)}


def test_inner_programs_are_followed_and_counted_as_often_as_they_run():
    args = {"w": jnp.ones((3, 3))}, jnp.ones((4, 3))
    steps = trace(nested, *args)
    total = cost_of(jax.make_jaxpr(nested)(*args))
    assert steps.total.flops == total.flops
    assert steps.total.transcendentals == total.transcendentals
    assert steps.total.bytes == total.bytes
    assert steps.total.peak == total.peak
    by_turns = {step.primitive: step.times for step in steps if step.depth == 1}
    assert by_turns["div"] in {1, 5}
    assert any(step.primitive == "scan × 4" for step in steps)
    dearer = [step for step in steps if step.depth and step.primitive in {"exp", "sin"}]
    assert all(step.times == 1 for step in dearer)
    cheaper = [s for s in steps if s.depth == 1 and s.primitive == "mul" and s.operands[1] == "2"]
    assert [step.times for step in cheaper] == [0]
    assert any("tree['w']" in step.operands for step in steps)


def test_a_counted_while_loop_turns_as_often_as_it_says():
    def power(x):
        return lax.while_loop(lambda c: c[0] < 7, lambda c: (c[0] + 1, c[1] * x), (2, x))[1]

    (product,) = [step for step in trace(power, 1.5) if step.primitive == "mul"]
    assert product.times == 5


def test_modes_cost_what_their_programs_cost():
    def tall(x):
        return jnp.concatenate([jnp.sin(x)] * 50)

    steps = trace(tall, jnp.ones(4))
    assert steps.cost("forward").flops < steps.cost("reverse").flops
    forward, reverse = steps.cost("jacobian-forward"), steps.cost("jacobian-reverse")
    assert forward.flops < reverse.flops
    assert forward.peak < reverse.peak
    xla = jax.jit(jax.jacfwd(tall)).lower(jnp.ones(4)).compile().cost_analysis()["flops"]
    assert forward.flops == pytest.approx(xla, rel=1.0, abs=200)


def test_shapes_suffice_and_static_arguments_stay_static():
    big = jax.ShapeDtypeStruct((10**5, 10**5), jnp.float32)
    steps = trace(lambda A, power: A**power, big, 3)
    assert steps.total.flops == 2 * 10**10
    assert steps.cost("reverse").peak >= 4 * 10**10
    keyed = trace(lambda x, *, scale: x * scale, 2.0, scale=3.0)
    assert keyed[0].operands == ("x", "scale")


def test_an_unknown_mode_is_refused():
    with pytest.raises(InputError, match="jacobian-forward"):
        trace(program, W, X).cost("sideways")


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_trace_draws_itself(tmp_path, ending):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"trace.{ending}"
    trace(program, W, X).adjoint().plot(path)
    assert path.stat().st_size > 1000
    starts = {"svg": b"<?xml", "png": b"\x89PNG"}
    assert path.read_bytes().startswith(starts[ending])
