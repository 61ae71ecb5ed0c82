"""How many floating-point operations one equation takes, read from its shapes.

The convention is that of XLA's own cost analysis: one operation per addition, multiplication,
division or comparison, 2·m·k·n for a matrix product; functions such as exp count as
*transcendentals*, apart. Factorisations count the leading term of LAPACK's algorithms (Golub and
Van Loan, Matrix Computations, 4th ed., 2013). Moving data counts nothing.
"""

import math
from collections.abc import Callable
from typing import Any

from jax.extend import core

from wonderland.autodiff.programs import names, shape, size

__all__ = ["MOVES", "TRANSCENDENTAL", "flops", "transcendentals"]

# Data is moved, renamed or reinterpreted: no arithmetic.
MOVES = names(
    "reshape squeeze expand_dims broadcast_in_dim transpose slice dynamic_slice "
    "dynamic_update_slice gather scatter concatenate pad iota convert_element_type "
    "bitcast_convert_type copy copy_p rev split stop_gradient name device_put sharding_constraint "
    "optimization_barrier real imag complex empty empty2 pvary pbroadcast "
    "random_wrap random_unwrap random_seed random_fold_in random_split tile"
)
TRANSCENDENTAL = names(
    "exp exp2 expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 "
    "logistic erf erfc erf_inv lgamma digamma polygamma zeta igamma igammac bessel_i0e bessel_i1e "
    "igamma_grad_a regularized_incomplete_beta random_gamma_grad pow sqrt rsqrt cbrt"
)


def flops(eqn: core.JaxprEqn) -> int:
    """Arithmetic operations of one run of `eqn`, programs inside it not counted.

    >>> import jax, jax.numpy as jnp
    >>> a, b = jnp.ones((2, 3)), jnp.ones((3, 4))
    >>> flops(jax.make_jaxpr(jnp.matmul)(a, b).eqns[0])  # 2 · 2 · 3 · 4
    48
    """
    name = eqn.primitive.name
    if name in MOVES or name in TRANSCENDENTAL:
        return 0
    counted = _RULES.get(name)
    return counted(eqn) if counted else sum(size(out) for out in eqn.outvars)


def transcendentals(eqn: core.JaxprEqn) -> int:
    """Evaluations of exp, log, sin, … in one run of `eqn`."""
    name = eqn.primitive.name
    return size(eqn.outvars[0]) if name in TRANSCENDENTAL else 0


def _product(eqn: core.JaxprEqn) -> int:
    """2·(entries of the result)·(length of the contraction)."""
    (contracted, _), _ = eqn.params["dimension_numbers"]
    lengths = shape(eqn.invars[0])
    return 2 * size(eqn.outvars[0]) * math.prod(lengths[axis] for axis in contracted)


def _convolution(eqn: core.JaxprEqn) -> int:
    """2·(entries of the result)·(kernel entries that meet in one of them)."""
    kernel = eqn.invars[1]
    channels = shape(kernel)[eqn.params["dimension_numbers"].rhs_spec[0]]
    return 2 * size(eqn.outvars[0]) * (size(kernel) // max(channels, 1))


def _reduction(eqn: core.JaxprEqn) -> int:
    return max(size(eqn.invars[0]) - size(eqn.outvars[0]), 0)


def _per_input(eqn: core.JaxprEqn) -> int:
    return size(eqn.invars[0])


def _per_update(eqn: core.JaxprEqn) -> int:
    return size(eqn.invars[2])


def _window(eqn: core.JaxprEqn) -> int:
    return size(eqn.outvars[0]) * (math.prod(eqn.params["window_dimensions"]) - 1)


def _power(eqn: core.JaxprEqn) -> int:
    """Multiplications by repeated squaring, one division for a negative power."""
    power = abs(eqn.params["y"])
    squarings = max(power.bit_length() - 1, 0)
    products = squarings + max(power.bit_count() - 1, 0)
    return size(eqn.outvars[0]) * (products + (eqn.params["y"] < 0))


def _sort(eqn: core.JaxprEqn) -> int:
    """n·log₂ n comparisons along the sorted axis."""
    operand = eqn.invars[0]
    length = shape(operand)[eqn.params.get("dimension", -1)] if shape(operand) else 1
    return size(operand) * max(math.ceil(math.log2(max(length, 1))), 1)


def _fourier(eqn: core.JaxprEqn) -> int:
    """5·N·log₂ N real operations for N points (Cooley and Tukey, 1965)."""
    points = math.prod(eqn.params["fft_lengths"])
    complex_side = max(size(eqn.invars[0]), size(eqn.outvars[0]))
    return int(5 * complex_side * math.log2(max(points, 2)))


def _matrix(leading: Callable[[int, int], float]) -> Callable[[core.JaxprEqn], int]:
    """A cost for each m × n matrix of a batch."""

    def count(eqn: core.JaxprEqn) -> int:
        *batch, m, n = shape(eqn.invars[0])
        return round(math.prod(batch) * leading(m, n))

    return count


def _triangular(eqn: core.JaxprEqn) -> int:
    """n² for each right-hand side."""
    return size(eqn.invars[1]) * shape(eqn.invars[0])[-1]


def _random(eqn: core.JaxprEqn) -> int:
    """Threefry-2x32: 20 rounds of 5 operations for two words (Salmon et al., SC 2011)."""
    return 50 * sum(size(out) for out in eqn.outvars)


def _nothing(eqn: core.JaxprEqn) -> int:
    return 0


def _orthogonal(m: int, n: int) -> float:
    k = min(m, n)
    return 2 * m * n * k - (m + n) * k**2 + 2 * k**3 / 3


_RULES: dict[str, Callable[[Any], int]] = {
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "integer_pow": _power,
    "square": _per_input,
    "sort": _sort,
    "top_k": _sort,
    "approx_top_k": _sort,
    "fft": _fourier,
    "cholesky": _matrix(lambda m, n: n**3 / 3),
    "lu": _matrix(lambda m, n: m * n**2 - n**3 / 3 if m >= n else n * m**2 - m**3 / 3),
    "geqrf": _matrix(_orthogonal),
    "qr": _matrix(_orthogonal),
    "householder_product": _matrix(_orthogonal),
    "eigh": _matrix(lambda m, n: 9 * n**3),
    "eig": _matrix(lambda m, n: 25 * n**3),
    "schur": _matrix(lambda m, n: 25 * n**3),
    "svd": _matrix(lambda m, n: 4 * max(m, n) ** 2 * min(m, n) + 22 * min(m, n) ** 3),
    "hessenberg": _matrix(lambda m, n: 10 * n**3 / 3),
    "tridiagonal": _matrix(lambda m, n: 4 * n**3 / 3),
    "tridiagonal_solve": lambda eqn: 8 * size(eqn.outvars[0]),
    "triangular_solve": _triangular,
    "reduce_window": _window,
    "reduce_window_sum": _window,
    "reduce_window_max": _window,
    "reduce_window_min": _window,
    "select_and_scatter_add": lambda eqn: (
        size(eqn.invars[0]) * math.prod(eqn.params["window_dimensions"])
    ),
    "scatter-add": _per_update,
    "scatter_add": _per_update,
    "scatter-mul": _per_update,
    "scatter_mul": _per_update,
    "scatter_sub": _per_update,
    "scatter_min": _per_update,
    "scatter_max": _per_update,
    "random_bits": _random,
    "threefry2x32": _random,
    "rng_bit_generator": _random,
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _per_input),
    **dict.fromkeys(("argmax", "argmin"), _per_input),
    **dict.fromkeys(
        (
            *("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"),
            *("reduce_and", "reduce_or", "reduce_xor", "reduce"),
        ),
        _reduction,
    ),
}
# Calls and loops cost what the programs inside them cost.
_RULES.update(
    dict.fromkeys(
        (
            *("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"),
            *("custom_vjp_call_jaxpr", "custom_vmap_call", "linear_call", "remat2", "checkpoint"),
            *("remat", "shard_map", "scan", "while", "cond", "custom_linear_solve"),
        ),
        _nothing,
    )
)
