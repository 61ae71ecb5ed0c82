"""Plans: right numbers in every mode, output and structure; reused, pickled, batched, in blocks."""

import operator
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

from wonderland.autodiff.plan import Plan, plan_hessian, plan_jacobian
from wonderland.core.errors import InputError


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def stencil(x):
    padded = jnp.pad(x, 1)
    return padded[:-2] - 2 * x + padded[2:] + x * (1 - x) ** 2


def arrow(x):
    return jnp.concatenate([jnp.sum(jnp.sin(x))[None], x[1:] ** 2 * x[0]])


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def short_chains(x):
    links = x.reshape(-1, 8)
    return jnp.sum(jnp.sin(links[:, 1:] * links[:, :-1])) + jnp.sum(x**4)


def point(n, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(n))


def dense(output):
    if isinstance(output, jax.Array):
        return np.asarray(output)
    return np.asarray(output.todense() if hasattr(output, "todense") else output)


JACOBIANS = [
    (stencil, 24, "column"),
    (stencil, 24, "row"),
    (stencil, 24, "forward"),
    (stencil, 24, "reverse"),
    (arrow, 24, "two-sided"),
    (arrow, 24, "row"),
    (lambda x: jnp.stack([x.sum(), x[0] * x[1], x[2]]), 9, "row"),
    (lambda x: x[jnp.array([0, 0])] ** 2, 5, "column"),
]


@pytest.mark.parametrize(("f", "n", "mode"), JACOBIANS)
def test_every_mode_and_output_equals_jax(f, n, mode):
    x = point(n)
    plan = plan_jacobian(f, x, mode=mode)
    assert plan.mode == mode
    expected = jax.jit(jax.jacfwd(f))(x)
    for output in ("dense", "scipy", "bcoo"):
        found = dense(plan(x, output=output))
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


HESSIANS = [
    (rosenbrock, 24, "star"),
    (rosenbrock, 24, "column"),
    (rosenbrock, 24, "forward"),
    (short_chains, 40, "acyclic"),
    (short_chains, 40, "star"),
    (lambda x: jnp.sum(x[0] * x[1:] ** 2), 30, "star"),
    (lambda x: jnp.sum(x[0] * x[1:] ** 2), 30, "acyclic"),
    (lambda x: jnp.sum(x**3), 12, "acyclic"),
]


@pytest.mark.parametrize(("f", "n", "mode"), HESSIANS)
def test_every_hessian_mode_equals_jax(f, n, mode):
    x = point(n)
    plan = plan_hessian(f, x, mode=mode)
    assert plan.mode == mode
    expected = jax.jit(jax.hessian(f))(x)
    for output in ("dense", "scipy", "bcoo"):
        found = dense(plan(x, output=output))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("f", "shape", "mode", "colours"),
    [
        (stencil, (500,), "column", 3),
        (arrow, (500,), "two-sided", 3),
        (lambda x: jnp.sum(jnp.sin(x)), (500,), "reverse", 1),
        (lambda x: jnp.sin(x * jnp.arange(500.0)), (), "forward", 1),
        (lambda x: jnp.ones((7, 50)) @ jnp.tanh(x), (50,), "reverse", 7),
        (lambda x: jnp.ones((50, 7)) @ jnp.tanh(x), (7,), "forward", 7),
    ],
)
def test_the_cheapest_mode_is_chosen(f, shape, mode, colours):
    plan = plan_jacobian(f, jnp.ones(shape))
    assert (plan.mode, plan.colours) == (mode, colours)
    assert plan.reason.startswith(f"{mode}: {colours} product")


def test_hessian_of_a_chain_takes_three_products():
    plan = plan_hessian(rosenbrock, jnp.ones(1000))
    assert plan.colours == 3
    assert plan.pattern.nnz == 2998


def test_pattern_is_a_boolean_csr_matrix():
    plan = plan_jacobian(stencil, jnp.ones(30))
    assert isinstance(plan.pattern, sparse.csr_array)
    assert plan.pattern.dtype == bool
    assert plan.pattern.nnz == 88
    dense_plan = plan_jacobian(lambda x: x.sum(), jnp.ones(4))
    assert dense_plan.pattern.toarray().all()


def test_the_table_names_every_mode_and_its_price():
    text = str(plan_jacobian(stencil, jnp.ones(300)))
    for mode in ("column", "row", "forward", "reverse", "effort"):
        assert mode in text
    assert "no colouring needs fewer: a row has 3 entries" in text


def test_new_values_under_jit_compile_once():
    turns = []

    def counted(x):
        turns.append(1)
        return stencil(x)

    plan = plan_jacobian(counted, jnp.ones(40), output="bcoo")
    plan(point(40))
    before = len(turns)
    for seed in range(3):
        x = point(40, seed)
        np.testing.assert_allclose(plan(x).todense(), jax.jit(jax.jacfwd(stencil))(x), atol=1e-12)
    assert len(turns) == before


def test_inside_jit_vmap_and_grad():
    plan = plan_jacobian(stencil, jnp.ones(12), output="bcoo")
    xs = jnp.stack([point(12, 1), point(12, 2)])
    expected = jax.jit(jax.vmap(jax.jacfwd(stencil)))(xs)
    np.testing.assert_allclose(dense(jax.jit(plan)(xs[0])), expected[0], atol=1e-12)
    both = jax.vmap(lambda x: plan.values(x))(xs)
    np.testing.assert_allclose(both[1], expected[1][plan.pattern.nonzero()], atol=1e-12)
    total = jax.jit(jax.grad(lambda x: jnp.sum(plan.values(x) ** 2)))(xs[0])
    wanted = jax.jit(jax.grad(lambda x: jnp.sum(jax.jacfwd(stencil)(x) ** 2)))(xs[0])
    np.testing.assert_allclose(total, wanted, atol=1e-11)


def test_dense_results_in_batches():
    plan = plan_jacobian(stencil, jnp.ones(12))
    xs = jnp.stack([point(12, 1), point(12, 2)])
    np.testing.assert_allclose(
        jax.vmap(plan)(xs), jax.jit(jax.vmap(jax.jacfwd(stencil)))(xs), atol=1e-12
    )


def test_scipy_inside_jit_is_refused_in_a_sentence():
    plan = plan_jacobian(stencil, jnp.ones(12), output="scipy")
    with pytest.raises(InputError, match="output='bcoo'"):
        jax.jit(plan)(jnp.ones(12))


def model(parameters, data, degree):
    hidden = jnp.tanh(data["X"] @ parameters["w"] + parameters["b"])
    return {"fit": hidden**degree, "norm": jnp.sum(parameters["w"] ** 2), "n": data["X"].shape[0]}


def test_pytrees_in_and_out():
    rng = np.random.default_rng(3)
    parameters = {"w": jnp.asarray(rng.standard_normal(3)), "b": 0.5, "label": 7}
    data = {"X": rng.standard_normal((4, 3))}
    plan = plan_jacobian(model, parameters, data, 2)
    found = plan(parameters, data, 2)
    moves = {"w": parameters["w"], "b": jnp.asarray(0.5)}

    def plain(moves):
        return {k: v for k, v in model(moves, data, 2).items() if k != "n"}

    expected = jax.jit(jax.jacobian(plain))(moves)
    assert found["n"] is None
    for out, inner in [("fit", "w"), ("fit", "b"), ("norm", "w"), ("norm", "b")]:
        np.testing.assert_allclose(found[out][inner], expected[out][inner], atol=1e-12)
        assert found[out][inner].shape == expected[out][inner].shape
    assert found["fit"]["label"] is None
    assert plan(parameters, data, 2, output="scipy").shape == (5, 4)


def test_other_arguments_may_change_but_not_what_is_fixed():
    parameters, data = {"w": jnp.ones(3), "b": 0.5}, {"X": np.ones((4, 3))}
    plan = plan_jacobian(model, parameters, data, 2)
    other = {"X": np.random.default_rng(0).standard_normal((4, 3))}
    moves = {"w": jnp.ones(3), "b": jnp.asarray(0.5)}
    expected = jax.jit(jax.jacobian(lambda p: model(p, other, 2)["fit"]))(moves)
    np.testing.assert_allclose(plan(parameters, other, 2)["fit"]["w"], expected["w"], atol=1e-12)
    with pytest.raises(InputError, match="new plan"):
        plan(parameters, data, 3)
    with pytest.raises(InputError, match="new plan"):
        plan(parameters, {"X": np.ones((5, 3))}, 2)


def test_mixed_precision_leaves():
    x = {"a": jnp.ones(3, jnp.float32), "b": jnp.ones(3, jnp.float64)}
    found = plan_jacobian(lambda x: x["a"] * x["b"] ** 2, x)(x)
    np.testing.assert_allclose(found["a"], np.eye(3))
    np.testing.assert_allclose(found["b"], 2 * np.eye(3))


def test_pickled_plans_run():
    """A function that can be imported travels with its plan; the plan then runs as before."""
    plan = pickle.loads(pickle.dumps(plan_jacobian(operator.neg, jnp.ones(20))))
    np.testing.assert_allclose(plan(point(20)), -np.eye(20))
    assert "products" in repr(plan)
    assert plan.pattern.nnz == 20
    assert plan.mode in str(plan)


def test_plans_of_lambdas_travel_without_their_code():
    f = lambda x: x[1:] * x[:-1]  # noqa: E731  # a one-line map reads best
    plan = pickle.loads(pickle.dumps(plan_jacobian(f, jnp.ones(20))))
    assert plan.colours == 2
    with pytest.raises(InputError, match=r"plan\.bind"):
        plan(jnp.ones(20))
    x = point(20)
    np.testing.assert_allclose(plan.bind(f)(x), jax.jit(jax.jacfwd(f))(x), atol=1e-12)


@pytest.mark.parametrize(
    ("f", "mode"),
    [(stencil, m) for m in ("column", "row", "forward", "reverse")] + [(arrow, "two-sided")],
)
def test_blocks_add_up_to_the_whole(f, mode):
    x = point(30)
    plan = plan_jacobian(f, x, mode=mode)
    total = np.zeros(plan.shape)
    blocks = list(plan.blocks(x, memory=1000))
    assert len(blocks) > 1
    for block in blocks:
        total[block.rows, block.columns] += dense(block.matrix)
    np.testing.assert_allclose(total, jax.jit(jax.jacfwd(f))(x), atol=1e-12)


def test_memory_batches_the_products_and_refuses_what_does_not_fit():
    x = point(200)
    plan = plan_jacobian(stencil, x, memory="30kB")
    expected = jax.jit(jax.jacfwd(stencil))(x)
    np.testing.assert_allclose(plan(x, output="scipy").toarray(), expected, atol=1e-12)
    with pytest.raises(InputError, match=r"plan\.blocks"):
        plan(x)
    tight = plan_jacobian(stencil, x, mode="forward", memory="400kB")
    np.testing.assert_allclose(tight(x), expected, atol=1e-12)


def test_only_the_direction_that_exists():
    def looped(x):
        return jax.lax.while_loop(lambda c: c[0] < 100.0, lambda c: c * 2.0, x)

    plan = plan_jacobian(looped, jnp.ones(6))
    assert plan.mode in ("forward", "column")
    assert "reverse mode does not exist" in plan.reason
    np.testing.assert_allclose(plan(jnp.ones(6)), jax.jit(jax.jacfwd(looped))(jnp.ones(6)))
    with pytest.raises(InputError, match="reverse mode does not exist"):
        plan_jacobian(looped, jnp.ones(6), mode="reverse")


@jax.custom_vjp
def doubled(x):
    return 2.0 * x


doubled.defvjp(lambda x: (2.0 * x, None), lambda _, u: (2.0 * u,))


def test_custom_vjp_goes_in_reverse():
    plan = plan_jacobian(lambda x: doubled(x) ** 2, jnp.ones(6))
    assert plan.mode in ("reverse", "row")
    np.testing.assert_allclose(plan(point(6)), np.diag(8 * point(6)), atol=1e-12)


def test_unknown_primitives_are_told_in_the_reason():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    part = jax.sharding.PartitionSpec("i")
    f = jax.shard_map(jnp.sin, mesh=mesh, in_specs=part, out_specs=part)
    plan = plan_jacobian(f, jnp.ones(3))
    assert "'shard_map'" in plan.reason
    assert "dense" in plan.reason
    np.testing.assert_allclose(plan(jnp.ones(3)), np.eye(3) * np.cos(1.0), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: plan_jacobian(jnp.sin, jnp.ones(3), mode="colum"), "Did you mean 'column'"),
        (lambda: plan_jacobian(jnp.sin, jnp.ones(3), output="csr"), "'scipy'"),
        (lambda: plan_jacobian(jnp.sin, jnp.ones(3), memory=0.5), "a size"),
        (lambda: plan_jacobian(jnp.sin, jnp.ones(3, int)), "floating-point"),
        (lambda: plan_jacobian(lambda x: x > 0, jnp.ones(3)), "no derivative"),
        (lambda: plan_jacobian(jnp.sin, jnp.ones(3) * 1j), "complex"),
        (lambda: plan_hessian(jnp.sin, jnp.ones(3)), "jacobian"),
        (lambda: plan_jacobian(jnp.sin, jnp.ones(3))(jnp.ones(4)), "new plan"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_single_precision_needs_no_x64():
    with jax.enable_x64(False):
        x = jnp.arange(5.0)
        found = plan_jacobian(stencil, x)(x)
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, jax.jit(jax.jacfwd(stencil))(x), rtol=1e-6)


def test_empty_and_constant_functions():
    plan = plan_jacobian(lambda x: jnp.ones(3) + 0 * x.sum(), jnp.ones(4), output="scipy")
    assert plan(jnp.ones(4)).toarray().tolist() == np.zeros((3, 4)).tolist()


def test_twenty_thousand_unknowns_plan_within_their_pattern():
    plan = plan_jacobian(stencil, jnp.ones(20_000))
    assert (plan.mode, plan.colours, plan.pattern.nnz) == ("column", 3, 59_998)
    x = point(20_000)
    found = plan(x, output="scipy")
    expected = -2 + (1 - x) ** 2 - 2 * x * (1 - x)
    np.testing.assert_allclose(found.diagonal(), expected, atol=1e-12)
    assert isinstance(plan, Plan)
