"""The structure of each local Jacobian ∂output/∂operand, read from the primitive and its shapes.

With operand and output flattened in row-major order, the Jacobian J of one equation is, for every
value of the operands, of the kind named here. Knowing it is what makes the chain rule cheap: a
diagonal costs n, a permutation moves, only a dense block multiplies.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import jax.numpy as jnp
from jax.extend import core

from wonderland.autodiff.programs import CALLS, names, shape, size

__all__ = ["Structure", "structures"]


class Structure(StrEnum):
    """Kinds of local Jacobian, cheapest first."""

    ZERO = "zero"  # no derivative: integers, comparisons, rounding
    IDENTITY = "identity"  # J = I
    SCALED = "scaled identity"  # J = c·I
    PERMUTATION = "permutation"  # one 1 in each row and column
    SELECTION = "selection"  # one 1 at most in each row: slice, gather, broadcast
    SPREAD = "spread"  # one entry at most in each row: a smaller operand meets a larger one
    EMBEDDING = "embedding"  # one 1 at most in each column and row: pad, concatenate
    SUM = "sum"  # one 1 in each column: every input goes to one output
    DIAGONAL = "diagonal"  # J[i, j] = 0 for i ≠ j
    GROUPED = "grouped"  # one entry in each column: reductions over groups
    BANDED = "banded"  # outputs see a window of inputs: convolution, pooling
    TRIANGULAR = "triangular"  # outputs see the inputs before them: cumulative sums
    BLOCKS = "block diagonal"  # blocks along a batch, up to a permutation
    DENSE = "dense"
    COMPOSED = "composed"  # a program inside: see its own steps


def structures(eqn: core.JaxprEqn) -> tuple[Structure, ...]:
    """One structure for each operand of `eqn`, with respect to its first output.

    >>> import jax, jax.numpy as jnp
    >>> [str(s) for s in structures(jax.make_jaxpr(jnp.multiply)(jnp.ones(3), jnp.ones(3)).eqns[0])]
    ['diagonal', 'diagonal']
    """
    if not eqn.outvars:
        return tuple(Structure.ZERO for _ in eqn.invars)
    return tuple(_structure(eqn, place) for place in range(len(eqn.invars)))


def _structure(eqn: core.JaxprEqn, place: int) -> Structure:
    name, operand, out = eqn.primitive.name, eqn.invars[place], eqn.outvars[0]
    if name in CALLS or name in _LOOPS:
        return Structure.COMPOSED
    if isinstance(operand, core.Literal) or not _moves(operand) or not _moves(out) or name in _FLAT:
        return Structure.ZERO
    if name in _RULES:
        return _RULES[name](eqn, place)
    if name in _ELEMENTWISE:
        return _spread(operand, out, _ELEMENTWISE[name])
    return Structure.DENSE


def _moves(atom: Any) -> bool:
    dtype = getattr(atom.aval, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jnp.inexact)


def _spread(operand: Any, out: Any, kind: Structure) -> Structure:
    """An elementwise rule, where a smaller operand is repeated along a larger one."""
    if size(operand) == size(out):
        return kind
    return Structure.SELECTION if kind is Structure.IDENTITY else Structure.SPREAD


def _scaling(eqn: core.JaxprEqn, place: int) -> Structure:
    """A product or quotient: by a number that is written in the program it only scales."""
    other = eqn.invars[1 - place]
    fixed = isinstance(other, core.Literal) and size(other) == 1
    scaled = fixed and (place == 0 or eqn.primitive.name == "mul")
    kind = Structure.SCALED if scaled else Structure.DIAGONAL
    return _spread(eqn.invars[place], eqn.outvars[0], kind)


def _product(eqn: core.JaxprEqn, place: int) -> Structure:
    """I ⊗ B: a block for every batch entry and every free entry of this operand."""
    contracted, _ = eqn.params["dimension_numbers"]
    lengths = shape(eqn.invars[place])
    inside = {*contracted[place]}
    copies = math.prod(length for axis, length in enumerate(lengths) if axis not in inside)
    if copies > 1:
        return Structure.BLOCKS
    return (
        Structure.DENSE
        if size(eqn.outvars[0]) > 1 or size(eqn.invars[place]) > 1
        else (Structure.DIAGONAL)
    )


def _matrix(eqn: core.JaxprEqn, place: int) -> Structure:
    batch = shape(eqn.invars[place])[:-2]
    return Structure.BLOCKS if math.prod(batch) > 1 else Structure.DENSE


def _fourier(eqn: core.JaxprEqn, place: int) -> Structure:
    points = math.prod(eqn.params["fft_lengths"])
    return Structure.BLOCKS if size(eqn.outvars[0]) > points else Structure.DENSE


def _convolution(eqn: core.JaxprEqn, place: int) -> Structure:
    return Structure.BANDED if place == 0 else Structure.DENSE


def _broadcast(eqn: core.JaxprEqn, place: int) -> Structure:
    same = size(eqn.invars[place]) == size(eqn.outvars[0])
    return Structure.IDENTITY if same else Structure.SELECTION


def _only(kind: Structure, *others: Structure) -> Callable[[Any, int], Structure]:
    """`kind` for the first operand, the next ones for the next, zero for the rest."""
    kinds = (kind, *others)
    return lambda eqn, place: kinds[place] if place < len(kinds) else Structure.ZERO


def _scan_like(eqn: core.JaxprEqn, place: int) -> Structure:
    lengths = shape(eqn.invars[place])
    if lengths[eqn.params["axis"]] == size(eqn.invars[place]):
        return Structure.DENSE if eqn.params.get("reverse") else Structure.TRIANGULAR
    return Structure.BLOCKS


def _sort(eqn: core.JaxprEqn, place: int) -> Structure:
    return Structure.PERMUTATION if place == 0 else Structure.ZERO


def _select(eqn: core.JaxprEqn, place: int) -> Structure:
    return Structure.ZERO if place == 0 else Structure.DIAGONAL


def _clamp(eqn: core.JaxprEqn, place: int) -> Structure:
    return _spread(eqn.invars[place], eqn.outvars[0], Structure.DIAGONAL)


_S = Structure
_LOOPS = {"scan", "while", "cond", "custom_linear_solve", "pallas_call"}
_FLAT = names(
    "stop_gradient sign floor ceil round is_finite eq ne lt le gt ge argmax argmin and or not xor "
    "iota random_bits nextafter population_count clz"
)
_ELEMENTWISE: dict[str, Structure] = {
    **dict.fromkeys(
        ("add", "add_any", "copy", "copy_p", "name", "convert_element_type"), _S.IDENTITY
    ),
    **dict.fromkeys(("reshape", "squeeze", "expand_dims", "device_put"), _S.IDENTITY),
    **dict.fromkeys(("optimization_barrier", "sharding_constraint"), _S.IDENTITY),
    "neg": _S.SCALED,
    **dict.fromkeys(
        names(
            "rem max min pow atan2 integer_pow square abs exp exp2 expm1 log log1p sin cos "
            "tan asin acos atan sinh cosh tanh asinh acosh atanh logistic erf erfc erf_inv lgamma "
            "digamma polygamma zeta igamma igammac bessel_i0e bessel_i1e sqrt rsqrt cbrt real imag "
            "conj complex reduce_precision regularized_incomplete_beta random_gamma_grad "
            "igamma_grad_a"
        ),
        _S.DIAGONAL,
    ),
}
_RULES: dict[str, Callable[[Any, int], Structure]] = {
    "sub": lambda eqn, place: _spread(
        eqn.invars[place], eqn.outvars[0], _S.IDENTITY if place == 0 else _S.SCALED
    ),
    "mul": _scaling,
    "div": _scaling,
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "transpose": _only(_S.PERMUTATION),
    "rev": _only(_S.PERMUTATION),
    "sort": _sort,
    "top_k": _only(_S.SELECTION),
    "slice": _only(_S.SELECTION),
    "dynamic_slice": _only(_S.SELECTION),
    "gather": _only(_S.SELECTION),
    "split": _only(_S.SELECTION),
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda eqn, place: _S.EMBEDDING,
    "pad": _only(_S.EMBEDDING, _S.DENSE),
    "dynamic_update_slice": _only(_S.DIAGONAL, _S.EMBEDDING),
    "scatter": _only(_S.DIAGONAL, _S.ZERO, _S.GROUPED),
    "scatter-add": _only(_S.IDENTITY, _S.ZERO, _S.SUM),
    "scatter_add": _only(_S.IDENTITY, _S.ZERO, _S.SUM),
    **dict.fromkeys(
        ("scatter_mul", "scatter_min", "scatter_max"), _only(_S.DIAGONAL, _S.ZERO, _S.GROUPED)
    ),
    "reduce_sum": _only(_S.SUM),
    **dict.fromkeys(("reduce_max", "reduce_min", "reduce_prod"), _only(_S.GROUPED)),
    **dict.fromkeys(
        ("reduce_window", "reduce_window_sum", "reduce_window_max", "reduce_window_min"),
        _only(_S.BANDED),
    ),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _scan_like),
    "fft": _fourier,
    **dict.fromkeys(
        ("cholesky", "lu", "qr", "geqrf", "eigh", "eig", "svd", "triangular_solve"), _matrix
    ),
    "select_n": _select,
    "clamp": _clamp,
}
