"""The complex step: a derivative without subtraction, hence without rounding error.

    f(x + i h v) = f(x) + i h f'(x) v + O(h²)   ⇒   f'(x) v = Im f(x + i h v) / h,   h = 1e-30

The program is run on complex numbers by XLA's complex functions, none of JAX's derivative rules is
used: an independent witness, exact to rounding. It holds where f is analytic; piecewise analytic
operations (|x|, max, comparisons, sorting) follow the piece the real part is on. Operations that
cannot be continued to complex numbers are refused by name.

Reference: J. Martins, P. Sturdza and J. Alonso, The complex-step derivative approximation, ACM
Trans. Math. Software 29, 2003.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from wonderland.autodiff.probe import bind, is_inexact
from wonderland.autodiff.programs import CALLS, names

__all__ = ["NotAnalyticError", "complex_slopes"]

_STEP = 1e-30

# Linear in all their floating-point operands together: real and imaginary part go separately.
_LINEAR = names(
    "add sub neg add_any broadcast_in_dim reshape transpose squeeze expand_dims slice rev copy "
    "copy_p dynamic_slice dynamic_update_slice gather scatter scatter_add scatter-add concatenate "
    "pad reduce_sum cumsum select_n split reduce_window_sum"
)
_BILINEAR = names("mul dot_general conv_general_dilated")
_ANALYTIC = names(
    "div exp exp2 expm1 sin cos tan sinh cosh tanh logistic square integer_pow reduce_prod cumprod"
)
# Analytic where the real function is defined; beyond, a number would come out of another branch.
_BRANCHED = names("log log1p sqrt rsqrt pow asin acos atan asinh acosh atanh")
_FLAT = names("sign floor ceil round is_finite stop_gradient argmax argmin")
_COMPARES = names("lt le gt ge eq ne")


class NotAnalyticError(ValueError):
    """The program holds an operation without complex continuation here; the text is its name."""


def complex_slopes(
    closed: jex.ClosedJaxpr, at: Sequence[jax.Array], along: Sequence[jax.Array]
) -> list[jax.Array]:
    """f'(x) v for every floating-point output of a program, by one complex run.

    >>> import jax
    >>> with jax.enable_x64(True):
    ...     program = jax.make_jaxpr(lambda x: jnp.sin(x) * x)(2.0)
    ...     (slope,) = complex_slopes(program, [jnp.asarray(2.0)], [jnp.asarray(1.0)])
    >>> round(float(slope), 12)  # 2 cos 2 + sin 2
    0.077003753731
    """
    start = [
        jax.lax.complex(x, jnp.asarray(_STEP, x.dtype) * v) for x, v in zip(at, along, strict=True)
    ]
    outputs = _run(closed.jaxpr, [*closed.consts, *start])
    real = [out for out in outputs if is_inexact(out)]
    return [jnp.imag(out) / _STEP if jnp.iscomplexobj(out) else jnp.zeros_like(out) for out in real]


def _run(jaxpr: jex.Jaxpr, inputs: Sequence[Any]) -> list[Any]:
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))
    for eqn in jaxpr.eqns:
        values = [x.val if isinstance(x, jex.Literal) else known[x] for x in eqn.invars]
        known.update(zip(eqn.outvars, _step(eqn, values), strict=True))
    return [x.val if isinstance(x, jex.Literal) else known[x] for x in jaxpr.outvars]


def _step(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    name = eqn.primitive.name
    if not any(map(jnp.iscomplexobj, values)):
        return bind(eqn, values)
    if name in CALLS and name not in ("linear_call", "shard_map", "custom_vmap_call"):
        return _run(*_ready(eqn.params[CALLS[name]], values))
    for group, rule in _GROUPS:
        if name in group:
            return rule(eqn, values)
    raise NotAnalyticError(name)


def _ready(program: Any, values: Sequence[Any]) -> tuple[jex.Jaxpr, list[Any]]:
    if isinstance(program, jex.ClosedJaxpr):
        return program.jaxpr, [*program.consts, *values]
    return program, list(values)


def _complex(value: Any) -> Any:
    """A floating-point value as a complex one; integers and booleans as they are."""
    if not is_inexact(value) or jnp.iscomplexobj(value):
        return value
    return jax.lax.complex(jnp.asarray(value), jnp.zeros_like(value))


def _real(value: Any) -> Any:
    return jnp.real(value) if jnp.iscomplexobj(value) else value


def _imag(value: Any) -> Any:
    """The imaginary part; zeros for real numbers, and integers unchanged, for they only index."""
    if jnp.iscomplexobj(value):
        return jnp.imag(value)
    return jnp.zeros_like(value) if is_inexact(value) else value


def _linear(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    reals, imags = bind(eqn, [*map(_real, values)]), bind(eqn, [*map(_imag, values)])
    return [jax.lax.complex(r, i) for r, i in zip(reals, imags, strict=True)]


def _bilinear(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    """(a + iα)(b + iβ) = ab + i(aβ + αb); αβ ≈ 1e-60 is nothing beside ab."""
    a, b = values
    (real,) = bind(eqn, [_real(a), _real(b)])
    imag = bind(eqn, [_real(a), _imag(b)])[0] + bind(eqn, [_imag(a), _real(b)])[0]
    return [jax.lax.complex(real, imag)]


def _analytic(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    if eqn.primitive.name == "pow" and not is_inexact(values[1]):
        values = [values[0], jnp.asarray(values[1], _real(values[0]).dtype)]
    return bind(eqn, [_complex(value) for value in values])


def _branched(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    (real,) = bind(eqn, [*map(_real, values)])
    inside = jnp.isfinite(real)
    if eqn.primitive.name == "pow":  # a negative base turns by π, in which 1e-30 drowns
        inside &= _real(values[0]) > 0
    (out,) = _analytic(eqn, values)
    return [jnp.where(inside, out, jnp.nan)]


def _flat(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    return bind(eqn, [*map(_real, values)])


def _convert(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    if jnp.issubdtype(eqn.params["new_dtype"], jnp.floating):
        return values
    return _flat(eqn, values)


def _absolute(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    (x,) = values
    return [jnp.where(_real(x) < 0, -x, x)]


def _choice(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    a, b = map(_complex, values)
    larger = eqn.primitive.name == "max"
    take_a = _real(a) >= _real(b) if larger else _real(a) <= _real(b)
    return [jnp.where(_real(a) == _real(b), (a + b) / 2, jnp.where(take_a, a, b))]


def _clamp(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    low, x, high = map(_complex, values)
    inner = jnp.where(_real(x) < _real(low), low, x)
    return [jnp.where(_real(inner) > _real(high), high, inner)]


def _extreme(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    """reduce_max, reduce_min: the mean over the tied entries."""
    (x,), axes = values, eqn.params["axes"]
    (top,) = bind(eqn, [_real(x)])
    tied = _real(x) == jnp.expand_dims(top, axes)
    return [jnp.where(tied, x, 0).sum(axes) / tied.sum(axes)]


def _sort(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    if len(values) > 1:
        raise NotAnalyticError("sort")
    (x,), axis = values, eqn.params["dimension"]
    order = jnp.argsort(_real(x), axis=axis)
    return [jnp.take_along_axis(x, order, axis)]


def _triangular(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    if eqn.params["conjugate_a"]:
        raise NotAnalyticError("triangular_solve")
    return _analytic(eqn, values)


def _scan(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    p = eqn.params
    still, ends = p["num_consts"], p["num_consts"] + p["num_carry"]

    def turn(carry: Any, slices: Any) -> Any:
        outputs = _run(*_ready(p["jaxpr"], [*values[:still], *carry, *slices]))
        return [*map(_complex, outputs[: p["num_carry"]])], outputs[p["num_carry"] :]

    start = [*map(_complex, values[still:ends])]
    carry, stacked = jax.lax.scan(
        turn, start, values[ends:], length=p["length"], reverse=p["reverse"]
    )
    return [*carry, *stacked]


def _while(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    p = eqn.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]

    def goes_on(state: Any) -> Any:
        return _run(*_ready(p["cond_jaxpr"], [*values[:first], *state]))[0]

    def turn(state: Any) -> Any:
        return [*map(_complex, _run(*_ready(p["body_jaxpr"], [*values[first:second], *state])))]

    return jax.lax.while_loop(goes_on, turn, [*map(_complex, values[second:])])


def _cond(eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
    def branch(program: Any) -> Callable[[Any], list[Any]]:
        return lambda state: [*map(_complex, _run(*_ready(program, state)))]

    branches = [branch(program) for program in eqn.params["branches"]]
    return jax.lax.switch(jnp.int32(values[0]), branches, values[1:])


_GROUPS: list[tuple[frozenset[str], Callable[[jex.JaxprEqn, list[Any]], list[Any]]]] = [
    (_LINEAR, _linear),
    (_BILINEAR, _bilinear),
    (_ANALYTIC, _analytic),
    (_BRANCHED, _branched),
    (_FLAT | _COMPARES, _flat),
    (names("convert_element_type"), _convert),
    (names("abs"), _absolute),
    (names("max min"), _choice),
    (names("clamp"), _clamp),
    (names("reduce_max reduce_min"), _extreme),
    (names("sort"), _sort),
    (names("triangular_solve"), _triangular),
    (names("scan"), _scan),
    (names("while"), _while),
    (names("cond"), _cond),
]
