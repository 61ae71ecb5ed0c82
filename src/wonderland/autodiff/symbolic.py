"""A program as a formula: SymPy differentiates it, and 30 digits of the result are exact.

Small programs only (a scalar formula, a loss of a few parameters): every entry becomes an
expression of its own. Branches and loops follow the way the point takes. SymPy is the optional
extra `symbolic`.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from wonderland.autodiff.probe import bind, is_inexact
from wonderland.autodiff.programs import CALLS, names
from wonderland.core.errors import optional

__all__ = ["NotSymbolicError", "symbolic_jacobian"]

_DIGITS = 30
_LARGEST = 2000  # expressions in all: beyond that a formula is no longer one


class NotSymbolicError(ValueError):
    """The program cannot be written as a formula here; the text says which operation stops it."""


def symbolic_jacobian(closed: jex.ClosedJaxpr, at: Sequence[jax.Array]) -> np.ndarray:
    """The exact Jacobian (m, n) of a small program at a point, float64 of 30 correct digits.

    >>> import jax
    >>> symbolic_jacobian(jax.make_jaxpr(lambda x: x**3)(2.0), [jnp.asarray(2.0)])
    array([[12.]])
    """
    machine = _Formulas()
    inputs = [machine.symbols(part) for part in at]
    outputs = machine.run(closed.jaxpr, [*closed.consts, *inputs])
    flat = [f for out in outputs if is_object(out) or is_inexact(out) for f in np.ravel(out)]
    rows = [[machine.value(machine.derivative(f, x)) for x in machine.point] for f in flat]
    return np.array(rows, float).reshape(len(flat), len(machine.point))


def is_object(value: Any) -> bool:
    """Whether a value is an array of expressions."""
    return isinstance(value, np.ndarray) and value.dtype == object


class _Formulas:
    """The interpreter: arrays of expressions where the input is involved, numbers elsewhere."""

    def __init__(self) -> None:
        self.sympy = optional("sympy", "symbolic")
        self.point: dict[Any, Any] = {}
        self.made = 0
        s = self.sympy
        self.unary: dict[str, Callable[[Any], Any]] = {
            "neg": lambda x: -x,
            "exp": s.exp,
            "exp2": lambda x: s.Integer(2) ** x,
            "expm1": lambda x: s.exp(x) - 1,
            "log": s.log,
            "log1p": lambda x: s.log(1 + x),
            "logistic": lambda x: 1 / (1 + s.exp(-x)),
            "sqrt": s.sqrt,
            "rsqrt": lambda x: 1 / s.sqrt(x),
            "cbrt": lambda x: s.sign(x) * abs(x) ** s.Rational(1, 3),
            "square": lambda x: x**2,
            "abs": self._abs,
            "sign": lambda x: s.Integer(int(np.sign(self.value(x)))),
            "lgamma": s.loggamma,
            "digamma": s.digamma,
        }
        same = "sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf erfc floor"
        self.unary |= {name: getattr(s, name) for name in same.split(" ")}
        self.binary: dict[str, Callable[[Any, Any], Any]] = {
            "add": lambda a, b: a + b,
            "add_any": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: a / b,
            "pow": lambda a, b: a**b,
            "atan2": s.atan2,
            "max": lambda a, b: self._pick(a, b, np.greater),
            "min": lambda a, b: self._pick(a, b, np.less),
        }

    def symbols(self, part: jax.Array) -> np.ndarray:
        """Fresh real symbols in the shape of `part`, whose values are remembered exactly."""
        table = np.empty(np.shape(part), object)
        for index in np.ndindex(table.shape):
            table[index] = self.sympy.Symbol(f"x{len(self.point)}", real=True)
            self.point[table[index]] = self._exact(np.asarray(part)[index])
        return table

    def _exact(self, number: Any) -> Any:
        number = float(number)
        if not np.isfinite(number):
            return self.sympy.nan if np.isnan(number) else self.sympy.oo * int(np.sign(number))
        whole = number == int(number)
        return self.sympy.Integer(int(number)) if whole else self.sympy.Rational(number)

    def value(self, expression: Any) -> float:
        """The number an expression has at the point."""
        if not isinstance(expression, self.sympy.Basic):
            return float(expression)
        number = expression.evalf(_DIGITS, subs=self.point)
        return float(number) if number.is_real else float("nan")

    def derivative(self, expression: Any, symbol: Any) -> Any:
        if not isinstance(expression, self.sympy.Basic):
            return 0
        return self.sympy.diff(expression, symbol)

    def run(self, jaxpr: jex.Jaxpr, inputs: Sequence[Any]) -> list[Any]:
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))
        for eqn in jaxpr.eqns:
            values = [x.val if isinstance(x, jex.Literal) else known[x] for x in eqn.invars]
            outputs = [self._array(out) for out in self.step(eqn, values)]
            self.made += sum(out.size for out in outputs if is_object(out))
            if self.made > _LARGEST:
                raise NotSymbolicError("more than 2000 expressions")
            known.update(zip(eqn.outvars, outputs, strict=True))
        return [x.val if isinstance(x, jex.Literal) else known[x] for x in jaxpr.outvars]

    def step(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        name = eqn.primitive.name
        if not any(map(is_object, values)):
            return bind(eqn, values)
        if name in CALLS and name not in ("linear_call", "shard_map", "custom_vmap_call"):
            return self._call(eqn.params[CALLS[name]], values)
        if name in self.unary:
            return [self._each(self.unary[name], values[0])]
        if name in self.binary:
            return [self._each(self.binary[name], *values)]
        rule = getattr(self, f"_{name}", None)
        if rule is not None:
            return rule(eqn, values)
        if name in _MOVES:
            return [self._moved(eqn, values)]
        if name in _COMPARES:
            return bind(eqn, [self._numbers(value) for value in values])
        raise NotSymbolicError(name)

    def _array(self, out: Any) -> Any:
        """An expression alone, as NumPy hands it out, is an array of shape ()."""
        if not isinstance(out, self.sympy.Basic):
            return out
        table = np.empty((), object)
        table[()] = out
        return table

    def _each(self, g: Callable[..., Any], *values: Any) -> np.ndarray:
        tables = np.broadcast_arrays(*map(self._objects, values))
        out = np.empty(tables[0].shape, object)
        for index in np.ndindex(out.shape):
            out[index] = g(*(table[index] for table in tables))
        return out

    def _objects(self, value: Any) -> np.ndarray:
        value = self._array(value)
        if is_object(value):
            return value
        numbers = np.asarray(value)
        out = np.empty(numbers.shape, object)
        for index in np.ndindex(out.shape):
            out[index] = self._exact(numbers[index])
        return out

    def _numbers(self, value: Any) -> Any:
        if not is_object(value):
            return value
        flat = [self.value(x) for x in value.ravel()]
        return jnp.asarray(np.array(flat, float).reshape(value.shape))

    def _abs(self, x: Any) -> Any:
        return -x if self.value(x) < 0 else x

    def _pick(self, a: Any, b: Any, wins: Callable[[Any, Any], Any]) -> Any:
        left, right = self.value(a), self.value(b)
        return (a + b) / 2 if left == right else a if wins(left, right) else b

    def _moved(self, eqn: jex.JaxprEqn, values: list[Any]) -> np.ndarray:
        """A pure rearrangement: run it on positions, and put the expressions there."""
        table = self._objects(values[0])
        positions = jnp.arange(1, table.size + 1, dtype=jnp.int32).reshape(table.shape)
        (where,) = bind(eqn, [positions, *values[1:]])
        padded = np.append(np.array([self.sympy.Integer(0)], object), table.ravel())
        return padded[np.clip(np.asarray(where), 0, table.size)]

    def _call(self, program: Any, values: Sequence[Any]) -> list[Any]:
        if isinstance(program, jex.ClosedJaxpr):
            return self.run(program.jaxpr, [*program.consts, *values])
        return self.run(program, values)

    def _integer_pow(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        return [self._each(lambda x: x ** eqn.params["y"], values[0])]

    def _convert_element_type(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        if jnp.issubdtype(eqn.params["new_dtype"], jnp.floating):
            return values
        return bind(eqn, [self._numbers(values[0])])

    def _stop_gradient(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        return [self._numbers(values[0])]

    def _reduce_sum(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        return [np.asarray(values[0].sum(axis=eqn.params["axes"]), object)]

    def _reduce_prod(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        return [np.asarray(values[0].prod(axis=eqn.params["axes"]), object)]

    def _reduce_max(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        return [self._folded("max", eqn.params["axes"], values[0])]

    def _reduce_min(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        return [self._folded("min", eqn.params["axes"], values[0])]

    def _folded(self, name: str, axes: Sequence[int], table: np.ndarray) -> np.ndarray:
        kept = np.moveaxis(table, axes, range(len(axes)))
        flat = kept.reshape(-1, *kept.shape[len(axes) :])
        *_, last = itertools.accumulate(flat, lambda a, b: self._each(self.binary[name], a, b))
        return np.asarray(last, object)

    def _cumsum(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        axis, (table,) = eqn.params["axis"], values
        if eqn.params["reverse"]:
            return [np.flip(np.cumsum(np.flip(table, axis), axis), axis)]
        return [np.cumsum(table, axis)]

    def _concatenate(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        return [np.concatenate([*map(self._objects, values)], axis=eqn.params["dimension"])]

    def _select_n(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        which, *cases = values
        chosen = np.asarray(self._numbers(which)).astype(int)
        return [np.choose(chosen, [*map(self._objects, cases)])]

    def _dot_general(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        (contract, batch), (a, b) = eqn.params["dimension_numbers"], map(self._objects, values)
        left, free_a = _matrices(a, batch[0], contract[0], last=True)
        right, free_b = _matrices(b, batch[1], contract[1], last=False)
        shape = [a.shape[axis] for axis in batch[0]] + free_a + free_b
        return [np.asarray(np.matmul(left, right), object).reshape(shape)]

    def _sort(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        if len(values) > 1:
            raise NotSymbolicError("sort")
        axis = eqn.params["dimension"]
        order = np.argsort(np.asarray(self._numbers(values[0])), axis=axis, kind="stable")
        return [np.take_along_axis(values[0], order, axis)]

    def _scan(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        p = eqn.params
        still, ends = p["num_consts"], p["num_consts"] + p["num_carry"]
        carry, rows = values[still:ends], []
        turns = range(p["length"])
        for k in reversed(turns) if p["reverse"] else turns:
            slices = [self._at(value, k) for value in values[ends:]]
            outputs = self._call(p["jaxpr"], [*values[:still], *carry, *slices])
            carry = outputs[: p["num_carry"]]
            rows.append(outputs[p["num_carry"] :])
        rows = rows[::-1] if p["reverse"] else rows
        columns = ([*map(self._objects, column)] for column in zip(*rows, strict=True))
        return [*carry, *map(np.stack, columns)]

    def _at(self, value: Any, k: int) -> Any:
        return self._array(value[k])

    def _while(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        p = eqn.params
        first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        state = values[second:]
        while bool(np.asarray(self._call(p["cond_jaxpr"], [*values[:first], *state])[0])):
            state = self._call(p["body_jaxpr"], [*values[first:second], *state])
        return list(state)

    def _cond(self, eqn: jex.JaxprEqn, values: list[Any]) -> list[Any]:
        branches = eqn.params["branches"]
        index = int(np.clip(int(np.asarray(values[0])), 0, len(branches) - 1))
        return self._call(branches[index], values[1:])


def _matrices(
    table: np.ndarray, batch: Sequence[int], contract: Sequence[int], *, last: bool
) -> tuple[np.ndarray, list[int]]:
    """A table as a stack of matrices with contracted axes last, or first; its free shape."""
    free = [axis for axis in range(table.ndim) if axis not in (*batch, *contract)]
    order = [*batch, *free, *contract] if last else [*batch, *contract, *free]
    kept = [table.shape[axis] for axis in free]
    size = int(np.prod([table.shape[axis] for axis in contract]))
    stack = int(np.prod([table.shape[axis] for axis in batch]))
    flat = int(np.prod(kept))
    shape = (stack, flat, size) if last else (stack, size, flat)
    return table.transpose(order).reshape(shape), kept


_MOVES = names(
    "reshape broadcast_in_dim transpose squeeze expand_dims slice rev dynamic_slice gather copy "
    "copy_p"
)
_COMPARES = names("lt le gt ge eq ne is_finite argmax argmin ceil round")
