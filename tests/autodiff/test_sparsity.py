"""Patterns read off programs: never smaller than the truth, and almost always equal to it.

The truth is the dense Jacobian at several random points: an entry that is non-zero anywhere must
be in the pattern; an entry of the pattern that is zero at all points is counted as not sharp.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from wonderland.autodiff.sparsity import cotangent_program, detect, tangent_program
from wonderland.core.errors import InputError

SHARP = 0.9  # the share of programs whose pattern must be exactly the true one
POINTS = 16

MASK = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
BAND = np.triu(np.tril(np.arange(1.0, 37.0).reshape(6, 6), 1), -1)
WEIGHTS = np.random.default_rng(5).standard_normal((6, 6))
INDEX = np.array([4, 0, 0, 2])
FIVE_POINT = np.array([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])[None, None]
LOWER = np.tril(WEIGHTS) + 3 * np.eye(6)
KERNEL = np.array([1.0, -2.0, 0.5])


@jax.custom_jvp
def _straight_through(x):
    return jnp.round(x)


@_straight_through.defjvp
def _(primals, tangents):
    return _straight_through(*primals), tangents[0]


@jax.custom_vjp
def _clipped_gradient(x):
    return x * 2.0


_clipped_gradient.defvjp(lambda x: (x * 2.0, None), lambda _, u: (jnp.clip(u, -1.0, 1.0),))


def _euler(x, steps):
    def step(u, _):
        return u + 0.1 * (jnp.roll(u, 1) - u), None

    return lax.scan(step, x, None, length=steps)[0]


def _scan_outputs(x, steps):
    def step(c, xi):
        return 0.9 * c + xi, c * xi

    return lax.scan(step, x[0], jnp.resize(x, (steps,)))[1]


def _lengths(x):
    return lax.while_loop(lambda c: jnp.sum(c**2) < 50.0, lambda c: c * 1.5 + jnp.roll(c, 1), x)


def _counted(x):
    def body(carry):
        i, c = carry
        return i + 1, c.at[i].set(c[i] * c[i + 1])

    return lax.while_loop(lambda carry: carry[0] < 3, body, (0, x))[1]


def _convolve(x, kernel, **options):
    return lax.conv_general_dilated(x, kernel, **options)


def _pool(x, combine, start):
    return lax.reduce_window(x, start, combine, (2,), (2,), "VALID")


def _attention(x):
    scores = jax.nn.softmax(x @ x.T, axis=-1)
    return scores @ x


def _grad(f):
    return jax.grad(lambda x: f(x).sum())


# name → (function of one array, shape of that array)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    # element by element
    "sin": (jnp.sin, (6,)),
    "polynomial": (lambda x: x**3 - 2 * x + 1, (6,)),
    "product of shifts": (lambda x: x[1:] * x[:-1], (6,)),
    "divide": (lambda x: x[:3] / (2.0 + x[3:] ** 2), (6,)),
    "constant mask": (lambda x: x * MASK, (6,)),
    "where constant": (lambda x: jnp.where(MASK > 0, x, x[::-1] ** 2), (6,)),
    "where on the point": (lambda x: jnp.where(x > 0, x, 0.1 * x[::-1]), (6,)),
    "relu": (lambda x: jax.nn.relu(x) + x**2, (6,)),
    "abs": (jnp.abs, (6,)),
    "maximum": (lambda x: jnp.maximum(x[:3], x[3:]), (6,)),
    "clip": (lambda x: jnp.clip(x, -5.0, 5.0), (6,)),
    "logsumexp pairs": (lambda x: jnp.logaddexp(x[:3], x[3:]), (6,)),
    "floor has no derivative": (lambda x: jnp.floor(x) + x[::-1], (6,)),
    "stop_gradient": (lambda x: lax.stop_gradient(x) * x[::-1], (6,)),
    "through integers": (lambda x: x * (x > 0).astype(int).sum() + x, (6,)),
    "complex parts": (lambda x: jnp.real(jnp.exp(1j * x)) + jnp.abs(1j * x + 1.0), (6,)),
    "special functions": (lambda x: jax.scipy.special.erf(x) + jax.scipy.special.gammaln(x**2 + 1),
                          (6,)),
    # layout
    "reshape of permuted axes": (lambda x: lax.reshape(x, (3, 4), (2, 0, 1)) ** 2, (2, 2, 3)),
    "reshape": (lambda x: x.reshape(3, 2).T.ravel() ** 2, (6,)),
    "transpose": (lambda x: x.transpose(2, 0, 1) ** 2, (2, 3, 2)),
    "roll": (lambda x: jnp.roll(x, 2) * x, (6,)),
    "flip": (lambda x: jnp.flip(x, 0) * x, (3, 2)),
    "pad": (lambda x: jnp.pad(x, (2, 1)) ** 2, (6,)),
    "pad inside": (lambda x: lax.pad(x, 0.0, ((1, -1, 2),)), (6,)),
    "pad with a variable": (lambda x: lax.pad(x, x[0], ((1, 1, 0),)), (6,)),
    "concatenate": (lambda x: jnp.concatenate([x[3:], x[:2] * x[-1]]), (6,)),
    "stack": (lambda x: jnp.stack([x, x[::-1]], axis=1), (6,)),
    "split": (lambda x: jnp.split(x, 3)[1] * jnp.split(x, 3)[0], (6,)),
    "broadcast": (lambda x: x[:, None] * jnp.ones((6, 2)), (6,)),
    "outer": (lambda x: jnp.outer(x[:3], x[3:]), (6,)),
    "strided": (lambda x: x[::2] + x[1::2] ** 2, (6,)),
    "tile": (lambda x: jnp.tile(x, 2) ** 2, (3,)),
    "meshgrid": (lambda x: jnp.meshgrid(x[:3], x[3:])[0] ** 2, (6,)),
    "diag": (lambda x: jnp.diag(x) + jnp.diag(x[1:], 1), (6,)),
    "triangle": (lambda x: jnp.tril(x) ** 2, (3, 3)),
    # reductions
    "sum": (lambda x: jnp.sum(x**2), (6,)),
    "sum of an axis": (lambda x: jnp.sum(x**2, axis=0), (3, 2)),
    "mean and variance": (lambda x: x.mean(1) * x.var(1), (3, 2)),
    "max": (lambda x: jnp.max(x, axis=1), (3, 2)),
    "product": (lambda x: jnp.prod(x, axis=0), (3, 2)),
    "product of rows": (lambda x: jnp.prod(x, axis=1), (4, 3)),
    "norm": (lambda x: jnp.linalg.norm(x, axis=1), (3, 2)),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, axis=0), (3, 2)),
    "softmax": (lambda x: jax.nn.softmax(x, axis=1), (3, 2)),
    "cumsum": (jnp.cumsum, (6,)),
    "cumsum reversed": (lambda x: lax.cumsum(x, 1, reverse=True), (2, 4)),
    "cumprod": (jnp.cumprod, (5,)),
    "cummax": (lambda x: lax.cummax(x), (4,)),
    "diff": (lambda x: jnp.diff(x, n=2), (6,)),
    # gather and scatter
    "gather": (lambda x: x[INDEX] ** 2, (6,)),
    "gather rows": (lambda x: x[np.array([1, 0, 1])] * 2, (3, 2)),
    "gather out of bounds": (lambda x: jnp.take(x, np.array([0, 9]), mode="fill", fill_value=1.0),
                             (6,)),
    "scatter add": (lambda x: jnp.zeros(6).at[INDEX].add(x[:4] ** 2), (6,)),
    "scatter set": (lambda x: x.at[np.array([1, 3])].set(x[:2] ** 2), (6,)),
    "scatter multiply": (
        lambda x: x.at[np.array([1, 3])].multiply(x[4:], unique_indices=True), (6,)),
    "segment sum": (lambda x: jax.ops.segment_sum(x**2, np.array([0, 0, 1, 1, 2, 2]), 3), (6,)),
    "gather by the point": (lambda x: x[jnp.argmax(x)] * jnp.ones(2), (6,)),
    "take along axis": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis=1), 1), (3, 2)),
    "sort": (jnp.sort, (3,)),
    "top k": (lambda x: lax.top_k(x, 2)[0], (3,)),
    "dynamic slice": (lambda x: lax.dynamic_slice(x, (1,), (3,)), (6,)),
    "dynamic slice by the point": (
        lambda x: lax.dynamic_slice(x, ((x[0] > 0).astype(int) + (x[1] > 0),), (2,)), (4,)),
    "dynamic update": (lambda x: lax.dynamic_update_slice(x, x[:2] ** 2, (3,)), (6,)),
    "dynamic update by the point": (
        lambda x: lax.dynamic_update_slice(x, x[:1] ** 2, ((x > 0).astype(int).sum(),)), (3,)),
    # products, convolutions, transforms
    "dense layer": (lambda x: jnp.tanh(WEIGHTS @ x), (6,)),
    "banded matrix": (lambda x: BAND @ x, (6,)),
    "batched product": (lambda x: jnp.einsum("bij,bj->bi", WEIGHTS.reshape(3, 3, 4)[:, :2, :2], x),
                        (3, 2)),
    "product of variables": (lambda x: x @ x.T, (3, 2)),
    "kronecker": (lambda x: jnp.kron(jnp.eye(2), x), (2, 2)),
    "attention": (_attention, (3, 2)),
    "convolution": (lambda x: _convolve(x, KERNEL.reshape(1, 1, 3), window_strides=(1,),
                                        padding="SAME"), (1, 1, 6)),
    "strided convolution": (lambda x: _convolve(x, KERNEL.reshape(1, 1, 3), window_strides=(2,),
                                                padding="VALID", rhs_dilation=(2,)), (2, 1, 9)),
    "transposed convolution": (lambda x: _convolve(x, KERNEL.reshape(1, 1, 3), window_strides=(1,),
                                                   padding=((2, 2),), lhs_dilation=(2,)),
                               (1, 1, 4)),
    "five-point convolution": (
        lambda x: _convolve(x[None, None], FIVE_POINT,
                            window_strides=(1, 1), padding="SAME"), (4, 3)),
    "depthwise convolution": (
        lambda x: _convolve(x, np.ones((2, 1, 3)), window_strides=(1,), padding="VALID",
                            feature_group_count=2), (1, 2, 5)),
    "kernel of a convolution": (lambda k: _convolve(np.ones((1, 1, 4)), k, window_strides=(1,),
                                                    padding="SAME"), (2, 1, 3)),
    "max pooling": (lambda x: _pool(x, lax.max, -jnp.inf), (6,)),
    "average pooling": (lambda x: _pool(x, lax.add, 0.0), (6,)),
    "pooling backward": (_grad(lambda x: _pool(x, lax.max, -jnp.inf) ** 2), (6,)),
    "numpy convolve": (lambda x: jnp.convolve(x, KERNEL, mode="same"), (6,)),
    "fft": (lambda x: jnp.abs(jnp.fft.rfft(x, axis=1)) ** 2, (2, 3)),
    "triangular solve": (
        lambda x: jax.scipy.linalg.solve_triangular(LOWER, x, lower=True),
        (6,)),
    "triangular solve, transposed": (
        lambda x: jax.scipy.linalg.solve_triangular(
            LOWER, x, lower=True, trans=1), (6,)),
    "linear solve": (lambda x: jnp.linalg.solve(WEIGHTS + 5 * np.eye(6), x), (6,)),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + 3 * jnp.eye(2)), (2, 2)),
    "determinant": (lambda x: jnp.linalg.slogdet(x + 3 * jnp.eye(2))[1], (2, 2)),
    "eigenvalues": (lambda x: jnp.linalg.eigvalsh(x + x.T), (2, 2)),
    # control flow
    "jit": (jax.jit(lambda x: x[1:] * x[:-1]), (6,)),
    "remat": (jax.checkpoint(lambda x: jnp.sin(x[1:]) * x[:-1]), (6,)),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda v: v * 2, lambda v: v**2, x), (6,)),
    "cond on a constant": (lambda x: lax.cond(MASK[0] > 0, lambda v: v * 2, lambda v: v[::-1], x),
                           (6,)),
    "switch": (lambda x: lax.switch(jnp.argmax(x), [lambda v: v, jnp.sin, jnp.cos], x), (3,)),
    "scan, unrolled": (partial(_euler, steps=3), (6,)),
    "scan of thousands": (partial(_euler, steps=2500), (6,)),
    "scan, closed": (partial(_euler, steps=5000), (6,)),
    "scan with outputs": (partial(_scan_outputs, steps=6), (6,)),
    "scan with outputs, long": (partial(_scan_outputs, steps=700), (3,)),
    "associative scan": (lambda x: lax.associative_scan(jnp.multiply, x), (6,)),
    "fori with an index": (lambda x: lax.fori_loop(0, 3, lambda i, c: c.at[i].add(c[i + 1]), x),
                           (6,)),
    "while": (_lengths, (4,)),
    "while with a counter": (_counted, (6,)),
    "map": (lambda x: lax.map(lambda r: r * r.sum(), x), (3, 2)),
    "nested vmap": (jax.vmap(jax.vmap(lambda a: a[::-1] ** 2)), (2, 2, 3)),
    "vmapped gather": (jax.vmap(lambda r: r[jnp.argmax(r)] * r[0]), (3, 2)),
    "vmapped scatter": (jax.vmap(lambda r: r.at[np.array([0, 0])].add(r[1:])), (2, 3)),
    "vmapped cond": (jax.vmap(lambda r: lax.cond(r[0] > 0, jnp.sin, lambda v: v**2, r)), (3, 2)),
    "vmapped solve": (jax.vmap(lambda r: jnp.linalg.solve(jnp.diag(r) + WEIGHTS[:2, :2] + 9, r)),
                      (2, 2)),
    "vmapped scan": (jax.vmap(lambda r: lax.scan(lambda c, v: (c * v, c + v), r[0], r)[1]), (2, 3)),
    "custom_jvp": (_straight_through, (6,)),
    "custom_vjp": (lambda x: _clipped_gradient(x[1:]) * x[:-1], (6,)),
    "gradient of a chain": (
        _grad(lambda x: 100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), (6,)),
    "gradient of a separable sum": (
        jax.grad(lambda x: jnp.prod(jnp.sin(x[INDEX.reshape(2, 2)]), axis=1).sum()), (6,)),
    "gradient of a network": (_grad(lambda x: jnp.tanh(WEIGHTS[:2, :3] @ x) ** 2), (3,)),
    "hessian-vector product": (lambda x: jax.jvp(_grad(lambda y: y**4), (x,), (jnp.ones(6),))[1],
                               (6,)),
}  # fmt: skip


def _pattern(f, shape):
    x = [jax.ShapeDtypeStruct(shape, jnp.float64)]
    y = [jax.eval_shape(f, *x)]

    def flat(leaves, rest):
        return [f(leaves[0])]

    program = tangent_program(flat, x)
    return detect(program, lambda: cotangent_program(flat, x, y), x, y)


@cache
def _both(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The pattern found, and the non-zeros of the dense Jacobian over random points."""
    f, shape = PROGRAMS[name]
    found = _pattern(f, shape).pattern().toarray()
    rng = np.random.default_rng(len(name))
    jacobian = jax.jit(jax.jacrev(f) if name == "custom_vjp" else jax.jacfwd(f))
    true = np.zeros_like(found)
    for _ in range(POINTS):
        dense = jacobian(jnp.asarray(rng.standard_normal(shape)))
        true |= np.asarray(dense).reshape(found.shape) != 0
    return found, true


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_pattern_contains_the_jacobian(name):
    found, true = _both(name)
    missing = np.argwhere(true & ~found)
    assert not len(missing), f"{name}: entries {missing.tolist()} are missing"


def test_pattern_is_the_jacobians_nearly_always():
    assert len(PROGRAMS) >= 60
    loose = [name for name in PROGRAMS if not np.array_equal(*_both(name))]
    assert len(loose) <= (1 - SHARP) * len(PROGRAMS), loose


def test_unknown_primitives_are_dense_and_named():
    def solver(x):
        return lax.custom_linear_solve(lambda v: 2.0 * v, x, solve=lambda mv, b: b / 2.0)

    assert _pattern(solver, (4,)).pattern().nnz == 4
    shard = jax.sharding.PartitionSpec("i")
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    found = _pattern(jax.shard_map(jnp.sin, mesh=mesh, in_specs=shard, out_specs=shard), (3,))
    assert found.pattern().toarray().all()
    assert "'shard_map'" in found.notes[0]
    assert "dense" in found.notes[0]


def test_mutable_references_are_dense():
    def accumulate(x):
        box = jax.new_ref(jnp.zeros(3))
        box[...] = x[::-1]
        return box[...] * x

    found = _pattern(accumulate, (3,))
    assert found.pattern().toarray().all()
    assert "mutable" in found.notes[0]


def test_no_mode_at_all_is_a_sentence():
    def impossible(x):
        return _lengths(_clipped_gradient(x))

    with pytest.raises(InputError, match=r"forward mode stops at a custom_vjp.*reverse mode"):
        _pattern(impossible, (4,))


def test_arguments_that_are_not_differentiated_may_be_anything():
    def f(leaves, rest):
        return [leaves[0][rest["index"]] * rest["scale"]]

    x = [jax.ShapeDtypeStruct((4,), jnp.float64)]
    rest = {
        "index": jax.ShapeDtypeStruct((2,), jnp.int32),
        "scale": jax.ShapeDtypeStruct((), jnp.float64),
    }
    program = tangent_program(f, x, rest)
    found = detect(program, lambda: program, x, x).pattern().toarray()
    assert found.shape == (2, 4)
    assert found.all()  # the index may be any


def test_constants_traced_by_an_outer_jit_are_not_taken_for_known():
    seen = []

    def outer(mask, x):
        seen.append(_pattern(lambda v: v * mask, (3,)).pattern().nnz)
        return x

    jax.jit(outer)(jnp.array([0.0, 1.0, 0.0]), jnp.ones(3))
    assert seen == [3]


def test_wide_unions_stay_shared():
    """A residual network on 1,500 inputs: 2 million entries, stored as a handful of sets."""
    weights = np.ones((1500, 1500))

    def network(x):
        for _ in range(3):
            x = x + jnp.tanh(weights @ x)
        return x

    found = _pattern(network, (1500,))
    assert found.entries == 2_250_000
    assert found.table.nnz <= 2 * 2_250_000


def test_too_many_entries_widen_and_never_shrink(monkeypatch):
    from wonderland.autodiff.sparsity import sets

    monkeypatch.setattr(sets, "LIMIT", 20)
    found = _pattern(lambda x: jnp.cumsum(x) + x[::-1], (8,)).pattern().toarray()
    assert np.all(found >= (np.tril(np.ones((8, 8))) + np.eye(8)[::-1] > 0))
