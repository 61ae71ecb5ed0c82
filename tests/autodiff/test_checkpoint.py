"""Checkpointing: the same value and derivatives, and never more memory than was allowed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wonderland.autodiff.checkpoint import checkpoint
from wonderland.autodiff.checkpoint.budget import parse
from wonderland.autodiff.checkpoint.chain import chain_of
from wonderland.autodiff.checkpoint.options import options_of
from wonderland.autodiff.checkpoint.schedule import Redo, Schedules
from wonderland.core.errors import InputError

pytestmark = pytest.mark.slow


def taken(f, *args, argnums=0):
    """What XLA says the gradient program takes beside arguments and results."""
    program = jax.jit(jax.grad(f, argnums)).lower(*args).compile()
    return program.memory_analysis().temp_size_in_bytes


def same(a, b, tolerance=1e-5):
    close = jax.tree.map(lambda x, y: np.allclose(x, y, tolerance, tolerance), a, b)
    return all(jax.tree.leaves(close))


def layers(rng, depth, width):
    return [
        (
            jnp.asarray(rng.normal(size=(width, width)) / width**0.5, jnp.float32),
            jnp.zeros((1, width), jnp.float32),
        )
        for _ in range(depth)
    ]


def deep(weights, x):
    for w, b in weights:
        x = jnp.tanh(x @ w + b)
    return jnp.mean(x**2)


def skipping(weights, x):
    """Skip connections across many layers, a value used twice, a constant mask, relu and a jit."""
    first = x
    mask = (jnp.arange(x.shape[-1]) % 3 > 0).astype(x.dtype)[None]
    trail = []
    for w, b in weights:
        x = jax.jit(jax.nn.relu)(x @ w + b) + 0.1 * x * mask
        trail.append(x)
    for w, b in weights:
        x = jnp.sin(x @ w + b) + trail.pop()
    return jnp.sum(jnp.logaddexp(x, first)) / x.size


def looped(stacked, x):
    def turn(x, layer):
        w, b = layer
        hidden = jax.nn.softmax(x @ w + b)
        x = x + jnp.tanh(hidden @ w)
        return x, jnp.mean(x)

    x, means = jax.lax.scan(turn, x, stacked)
    return jnp.mean(x**2) + jnp.sum(means * jnp.arange(means.size))


def stack(weights):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *weights)


PROGRAMS = {
    "deep": lambda rng: (deep, layers(rng, 16, 32)),
    "skipping": lambda rng: (skipping, layers(rng, 8, 32)),
    "looped": lambda rng: (looped, stack(layers(rng, 12, 32))),
}


@pytest.mark.parametrize(
    ("name", "fraction"),
    [("deep", 0.8), ("deep", 0.6), ("skipping", 0.65), ("looped", 0.8), ("looped", 0.4)],
)
def test_the_gradient_is_the_same_and_keeps_the_budget(name, fraction, rng):
    f, weights = PROGRAMS[name](rng)
    x = jnp.asarray(rng.normal(size=(512, 32)), jnp.float32)
    light = checkpoint(f, fraction)
    plain = taken(f, weights, x)
    assert taken(light, weights, x) <= fraction * plain
    value, gradient = jax.jit(jax.value_and_grad(light))(weights, x)
    assert same(value, f(weights, x))
    assert same(gradient, jax.grad(f)(weights, x))


def test_a_plan_says_what_the_compiled_program_takes(rng):
    weights, x = layers(rng, 16, 32), jnp.ones((512, 32))
    light = checkpoint(deep, 0.6)
    plan = light.plan(weights, x, argnums=0)
    assert plan.plain == pytest.approx(taken(deep, weights, x), rel=0.02)
    assert plan.peak == pytest.approx(taken(light, weights, x), rel=0.02)
    assert plan.peak <= plan.budget == int(0.6 * plan.plain)
    assert sum(row.flops for row in plan.rows) > 0
    assert "computed again" in str(plan)
    assert plan.to_dict()["rows"][0]["kept"]


def test_without_a_budget_one_more_forward_pass_is_the_limit(rng):
    plan = checkpoint(deep).plan(layers(rng, 16, 32), jnp.ones((512, 32)), argnums=0)
    assert plan.extra <= 1
    assert plan.peak < 0.6 * plan.plain


def test_where_everything_fits_nothing_is_recomputed(rng):
    weights, x = layers(rng, 3, 8), jnp.ones((16, 8))
    light = checkpoint(deep, "1GB")
    assert light.plan(weights, x).extra == 0
    assert same(jax.grad(light)(weights, x), jax.grad(deep)(weights, x))


def test_too_small_a_budget_names_one_that_works(rng):
    weights, x = layers(rng, 16, 32), jnp.ones((512, 32))
    with pytest.raises(InputError, match="at least") as caught:
        jax.grad(checkpoint(deep, 1000))(weights, x)
    least = caught.value.todo.split("'")[1]
    plan = checkpoint(deep, least).plan(weights, x, argnums=0)
    assert plan.peak <= parse(least)
    with pytest.raises(InputError):
        checkpoint(deep, int(0.8 * parse(least))).plan(weights, x, argnums=0)


def test_hessian_products_go_forward_over_reverse_and_reverse_over_reverse(rng):
    weights, x = layers(rng, 8, 8), jnp.asarray(rng.normal(size=(64, 8)), jnp.float32)
    light = checkpoint(deep, 0.7)
    v = jnp.ones_like(x)

    def product(f):
        return jax.jvp(jax.grad(f, 1), (weights, x), (jax.tree.map(jnp.zeros_like, weights), v))[1]

    def twice(f):
        return jax.grad(lambda x: jnp.vdot(jax.grad(f, 1)(weights, x), v))(x)

    assert same(product(light), product(deep))
    assert same(twice(light), twice(deep))


def test_batches_through_vmap_stay_checkpointed(rng):
    weights, x = layers(rng, 16, 16), jnp.asarray(rng.normal(size=(4, 256, 16)), jnp.float32)

    def batched(f):
        return jax.vmap(jax.grad(f, 1), (None, 0))

    light = checkpoint(deep, 0.5)
    assert same(batched(light)(weights, x), batched(deep)(weights, x))
    sizes = [
        jax.jit(batched(f)).lower(weights, x).compile().memory_analysis().temp_size_in_bytes
        for f in (light, deep)
    ]
    assert sizes[0] <= 0.6 * sizes[1]


def test_outputs_of_any_shape_with_integers_and_closures(rng):
    scale = jnp.asarray(2.0)

    mix = jnp.asarray(rng.normal(size=(8, 8)), jnp.float32)

    def many(x, count):
        y = x
        for _ in range(12):
            y = jnp.sin(scale * y @ mix)
        return {"y": y, "index": count + 1, "sum": jnp.sum(y * count)}

    x, count = jnp.asarray(rng.normal(size=(256, 8)), jnp.float32), jnp.asarray(3)
    light = checkpoint(many, 0.9)

    def pulled(f):
        out, pull = jax.vjp(f, x, count)
        zero = np.zeros((), jax.dtypes.float0)
        return pull({"y": jnp.cos(out["y"]), "index": zero, "sum": jnp.asarray(0.5)})[0]

    assert same(light(x, count), many(x, count))
    assert same(pulled(light), pulled(many))


def test_values_closed_over_get_their_derivative_too(rng):
    weights, x = layers(rng, 10, 16), jnp.asarray(rng.normal(size=(256, 16)), jnp.float32)

    def outer(scale, wrap):
        return wrap(lambda x: deep(weights, scale * x))(x)

    light = jax.grad(outer)(2.0, lambda f: checkpoint(f, 0.7))
    assert same(light, jax.grad(outer)(2.0, lambda f: f))


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_in_both_directions_give_their_outputs_in_order(reverse, rng):
    xs = jnp.asarray(rng.normal(size=(13, 64, 8)), jnp.float32)

    def run(x, xs):
        def turn(c, x):
            c = jnp.sin(c) + x
            return c, jnp.exp(-(c**2))

        c, ys = jax.lax.scan(turn, x, xs, reverse=reverse)
        return jnp.sum(c) + jnp.sum(ys * jnp.arange(13.0)[:, None, None])

    x = jnp.ones((64, 8), jnp.float32)
    chain = chain_of(jax.make_jaxpr(run)(x, xs), [True, True])
    (loop,) = [stage for stage in chain.stages if stage.loop]
    (options,) = options_of([loop])
    args = [jnp.zeros(v.aval.shape) if v.aval.shape == (64, 8) else xs for v in loop.ins]
    plain = jax.core.eval_jaxpr(loop.jaxpr, (), *args)
    assert len(options) > 4
    for option in options:
        values = option.forward.run(**{"in": args, "constant": option.constants})
        assert same(values[: len(plain)], plain)
    light = checkpoint(run, 0.7)
    assert same(jax.grad(light, (0, 1))(x, xs), jax.grad(run, (0, 1))(x, xs))


def test_the_schedule_of_a_uniform_chain_is_that_of_revolve(rng):
    """With c checkpoints and one repetition of each step, (c+1)(c+2)/2 steps can be reversed.

    Griewank and Walther 2000: at most t = C(c + r, c) steps with r repetitions; here each level of
    repetition also holds the border it ends at, so the budgets are compared, not the letters.
    """
    weights, x = layers(rng, 24, 32), jnp.ones((512, 32))
    closed = jax.make_jaxpr(deep)(weights, x)
    chain = chain_of(closed, [True] * 48 + [False])
    schedules = Schedules(chain, options_of(chain.stages))
    efforts = [schedules.effort(slot) for slot in range(schedules.smallest(), 256)]
    assert efforts == sorted(efforts, reverse=True)
    assert efforts[-1] == pytest.approx(schedules.work.sum())
    unit = 512 * 32 * 4
    slots = round(12 * unit / schedules.scale)
    # 2·√24 ≈ 9.8 units and working room: each layer is recomputed at most once.
    assert schedules.effort(slots) < 2 * schedules.work.sum()
    assert any(isinstance(item, Redo) for item in schedules.items(slots))


@pytest.mark.parametrize("memory", [0, -1, 1.5, "lots", True, "3XB"])
def test_budgets_that_mean_nothing_are_refused(memory):
    with pytest.raises(InputError, match="memory is"):
        checkpoint(deep, memory)


def test_sizes_are_read_as_people_write_them():
    assert parse("2GiB") == 2 * 1024**3
    assert parse("10 kb") == 10_000
    assert parse("123") == 123


def test_nothing_to_differentiate_is_said():
    with pytest.raises(InputError, match="no argument can carry a derivative"):
        checkpoint(lambda n: n + 1).plan(jnp.asarray(3))


def test_where_the_compiler_already_recomputes_everything_the_plain_program_is_named():
    def waves(x):
        for _ in range(6):
            x = jnp.sin(x)
        return jnp.sum(x)

    with pytest.raises(InputError, match="at least") as caught:
        checkpoint(waves, 0.5).plan(jnp.ones((256, 8)))
    least = parse(caught.value.todo.split("'")[1])
    assert checkpoint(waves, least).plan(jnp.ones((256, 8))).extra == 0


def test_double_precision(rng):
    with jax.enable_x64(True):
        weights = jax.tree.map(lambda w: w.astype(float), layers(rng, 12, 16))
        x = jnp.asarray(rng.normal(size=(256, 16)))
        light = checkpoint(deep, 0.7)
        assert same(jax.grad(light)(weights, x), jax.grad(deep)(weights, x), 1e-12)
