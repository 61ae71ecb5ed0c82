"""Laws of every differentiable function: its gradient, its compiled form, its batch."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import in_float64
from wonderland.testing.compare import close

__all__ = [
    "gradient_is_finite_difference",
    "gradients_reach_every_parameter",
    "jit_is_eager",
    "vmap_is_a_loop",
]


@in_float64
def gradient_is_finite_difference(
    f: Callable[..., Any], *args: Any, step: float = 1e-5, rtol: float = 1e-6
) -> None:
    """⟨∇f(x), v⟩ = (f(x + hv) − f(x − hv)) / 2h along each argument, in float64.

    Each argument moves along a fixed direction of unit entries with mixed signs, the others rest.
    The comparison allows rtol·(1 + |derivative|) for the difference's own error.

    Args:
        f: A function to a scalar.
        args: Floating arrays.
        step: h, relative to the size of the argument's largest entry.
        rtol: What is allowed.

    >>> gradient_is_finite_difference(lambda x, a: a * jnp.sum(x**3), np.array([1.0, 2.0]), 0.5)
    >>> gradient_is_finite_difference(jax.lax.stop_gradient, 2.0)
    Traceback (most recent call last):
    ...
    AssertionError: the gradient of argument 0 is its finite difference: they differ by 1 ...
    """
    point = [jnp.asarray(a, jnp.float64) for a in args]
    slopes = jax.grad(f, argnums=tuple(range(len(point))))(*point)
    for k, (x, slope) in enumerate(zip(point, slopes, strict=True)):
        signs = np.where(np.arange(x.size) % 3 == 1, -1.0, 1.0).reshape(x.shape)
        h = step * max(1.0, float(jnp.max(jnp.abs(x), initial=0.0)))
        up, down = (f(*point[:k], x + s * h * signs, *point[k + 1 :]) for s in (1, -1))
        difference = float(up - down) / (2 * h)
        sentence = f"the gradient of argument {k} is its finite difference"
        close(np.vdot(slope, signs), difference, sentence, rtol=rtol, atol=rtol)


@in_float64
def gradients_reach_every_parameter(model: Any, X: Any) -> None:
    """∂/∂θ Σ f_θ(x_i)² is finite and not zero for every array θ that the model holds.

    Args:
        model: An `equinox.Module`, a function of one sample.
        X: Samples (n, d) on which the model is not zero.

    >>> import wonderland as wl
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> gradients_reach_every_parameter(wl.Ridge().fit(X, X[:, 0] + 1).model_, X)
    """
    held, rest = eqx.partition(model, eqx.is_inexact_array_like)
    held = jax.tree.map(jnp.asarray, held)

    def total(parameters: Any) -> jax.Array:
        return jnp.sum(jax.vmap(eqx.combine(parameters, rest))(jnp.asarray(X)) ** 2)

    for path, slope in jax.tree_util.tree_leaves_with_path(jax.grad(total)(held)):
        if not jnp.isfinite(slope).all() or not jnp.any(slope != 0):
            raise AssertionError(f"no gradient reaches {jax.tree_util.keystr(path)}")


@in_float64
def jit_is_eager(f: Callable[..., Any], *args: Any, rtol: float = 1e-9) -> None:
    """jit(f)(x) = f(x): compiling changes no more than the order of roundings.

    >>> jit_is_eager(lambda x: {"root": jnp.sqrt(x)}, np.arange(3.0))
    """
    point = [jnp.asarray(a) for a in args]
    # A model that holds arrays is callable but not hashable, which jit asks of its function.
    compiled = jax.jit(lambda *values: f(*values))
    _leaves_agree(compiled(*point), f(*point), "jit(f) equals f", rtol)


@in_float64
def vmap_is_a_loop(f: Callable[..., Any], *batches: Any, rtol: float = 1e-9) -> None:
    """vmap(f)(x)_i = f(x_i): the batch is derived from one sample.

    Args:
        f: A function of one sample.
        batches: Arrays with a leading batch axis.
        rtol: What is allowed.

    >>> vmap_is_a_loop(lambda x, y: x @ y, np.ones((4, 3)), np.ones((4, 3)))
    """
    given = [jnp.asarray(a) for a in batches]
    together = jax.vmap(f)(*given)
    alone = [f(*(a[i] for a in given)) for i in range(len(given[0]))]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *alone)
    _leaves_agree(together, stacked, "vmap(f) equals a loop over f", rtol)


def _leaves_agree(came: Any, expected: Any, sentence: str, rtol: float) -> None:
    if str(jax.tree.structure(came)) != str(jax.tree.structure(expected)):
        raise AssertionError(f"{sentence}: the results have different structures")
    for a, b in zip(jax.tree.leaves(came), jax.tree.leaves(expected), strict=True):
        close(a, b, sentence, rtol=rtol)
