"""`checkpoint(f, memory)`: the function people call."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.extend import core

from wonderland.autodiff.checkpoint.budget import parse
from wonderland.autodiff.checkpoint.chain import Chain, chain_of, moves
from wonderland.autodiff.checkpoint.options import Option, options_of
from wonderland.autodiff.checkpoint.plan import CheckpointPlan, choose
from wonderland.autodiff.checkpoint.run import Runner
from wonderland.autodiff.programs import split
from wonderland.core.errors import InputError

__all__ = ["Checkpointed", "checkpoint"]


def checkpoint(f: Callable[..., Any], memory: str | float | None = None) -> "Checkpointed":
    """The function `f` with the same value and derivative, differentiated within a memory budget.

    Reverse mode computes x̄ = Jᵀȳ from values of the forward pass. Keeping all of them takes
    memory ∝ the length of the program; keeping a well-chosen part and computing the rest again
    takes ∝ its square root for at most one more forward pass. The choice is an optimisation over
    the program (see `schedule`, `options`), and the budget is checked against the compiled
    program's own memory analysis.

    Args:
        f: Any JAX function of pytrees, with `jit`, `scan` over layers, or neither.
        memory: What the reverse pass may take beside its arguments and results: a size
            ("512MB", "2GiB", bytes as an int), a fraction of what the plain one takes (a float),
            or None for the least memory that costs at most one more forward pass.

    Returns:
        A function with a method `plan(*args)` that shows what is kept and what is recomputed.
        It can be differentiated in reverse mode any number of times, forward over reverse (as in
        Hessian-vector products), under `jit` and `vmap`. Pure forward mode stores nothing in any
        case: use `f` itself for it.

    Raises:
        InputError: When the budget is too small, naming the smallest that works.

    Reference: Griewank and Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapter 12.

    >>> import jax, jax.numpy as jnp
    >>> def deep(weights, x):
    ...     for w in weights:
    ...         x = jnp.tanh(x @ w)
    ...     return jnp.sum(x)
    >>> weights, x = [jnp.eye(64)] * 16, jnp.ones((512, 64))
    >>> light = checkpoint(deep, memory=0.5)
    >>> plan = light.plan(weights, x)
    >>> plan.peak <= 0.5 * plan.plain
    True
    >>> same = jax.tree.map(jnp.allclose, jax.grad(light)(weights, x), jax.grad(deep)(weights, x))
    >>> all(map(bool, same))
    True
    """
    parse(memory)
    return Checkpointed(f, memory)


class Checkpointed:
    """A function that is differentiated within a memory budget; made by `checkpoint`."""

    def __init__(self, f: Callable[..., Any], memory: str | float | None) -> None:
        functools.update_wrapper(self, f)
        self._f, self._memory = f, memory
        self._plans: dict[Any, CheckpointPlan] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value f(*args, **kwargs)."""
        closed, leaves, tree = self._program(args, kwargs)
        flat = [*closed.consts, *leaves]
        return jax.tree.unflatten(tree, self._differentiable(closed)(*flat))

    def plan(
        self, *args: Any, argnums: int | Sequence[int] | None = None, **kwargs: Any
    ) -> CheckpointPlan:
        """What the reverse pass at arguments of these shapes keeps and recomputes.

        Args:
            *args: The arguments, or their shapes (`jax.ShapeDtypeStruct`).
            argnums: Which of them it is differentiated with respect to; all that can be, if None.
            **kwargs: Keyword arguments; they are differentiated with respect to if argnums is
                None.
        """
        closed, _, _ = self._program(args, kwargs)
        perturbed = [False] * len(closed.consts)
        chosen = range(len(args)) if argnums is None else np.atleast_1d(argnums).tolist()
        for place, arg in enumerate(args):
            perturbed += [place in chosen] * len(jax.tree.leaves(split(arg)[0]))
        perturbed += [argnums is None] * len(jax.tree.leaves(split(kwargs)[0]))
        able = map(moves, [*closed.jaxpr.constvars, *closed.jaxpr.invars])
        flags = [asked and can for asked, can in zip(perturbed, able, strict=True)]
        return self._prepared(closed, flags)[2]

    def __repr__(self) -> str:
        return f"checkpoint({getattr(self, '__name__', self._f)}, memory={self._memory!r})"

    def _program(self, args: Any, kwargs: Any) -> tuple[core.ClosedJaxpr, list[Any], Any]:
        """The program of f in its array leaves; closed-over arrays become its constants."""
        moving, fixed = split((args, kwargs))
        leaves, tree = jax.tree.flatten(moving)

        def flat(*values: Any) -> Any:
            args, kwargs = eqx.combine(jax.tree.unflatten(tree, values), fixed)
            return self._f(*args, **kwargs)

        closed, shapes = jax.make_jaxpr(flat, return_shape=True)(*leaves)
        return closed, leaves, jax.tree.structure(shapes)

    def _prepared(
        self, closed: core.ClosedJaxpr, flags: Sequence[bool]
    ) -> tuple[Chain, list[tuple[Option, ...]], CheckpointPlan]:
        if not any(flags):
            raise InputError(
                "no argument can carry a derivative",
                "at least one floating-point array among the arguments",
                "Convert what you differentiate with respect to by jnp.asarray(x, float)",
            )
        chain = chain_of(closed, flags)
        options = options_of(chain.stages)
        key = (str(closed.jaxpr), tuple(flags), jax.default_backend())
        if key not in self._plans:
            self._plans[key] = choose(chain, options, self._memory)
        return chain, options, self._plans[key]

    def _differentiable(self, closed: core.ClosedJaxpr) -> Callable[..., list[Any]]:
        """The program as a function of constants and arguments, with the planned reverse pass."""
        width = len(closed.consts)

        @jax.custom_vjp
        def value(*flat: Any) -> list[Any]:
            return jax.core.eval_jaxpr(closed.jaxpr, flat[:width], *flat[width:])

        def forward(*flat: Any) -> tuple[list[Any], Any]:
            chain, options, plan = self._prepared(closed, [arg.perturbed for arg in flat])
            values = [arg.value for arg in flat]
            if plan.items is None:
                return _plain_forward(chain, values)
            runner = Runner(chain, options, plan.items)
            out, stored = runner.forward(values)
            return out, jax.tree_util.Partial(runner.backward, stored)

        def backward(pull: Callable[..., Any], cotangents: list[Any]) -> tuple[Any, ...]:
            return tuple(pull([_given(c) for c in cotangents]))

        value.defvjp(forward, backward, symbolic_zeros=True)
        return value


def _plain_forward(chain: Chain, values: list[Any]) -> tuple[list[Any], Any]:
    """The ordinary reverse pass, where everything fits."""
    flags, jaxpr = chain.perturbed, chain.jaxpr

    def run(*moving: Any) -> tuple[list[Any], list[Any]]:
        source = iter(moving)
        full = [next(source) if flag else v for flag, v in zip(flags, values, strict=True)]
        out = jax.core.eval_jaxpr(jaxpr, (), *full)
        return [x for v, x in zip(jaxpr.outvars, out, strict=True) if moves(v)], out

    chosen = [v for flag, v in zip(flags, values, strict=True) if flag]
    _, pull, out = jax.vjp(run, *chosen, has_aux=True)
    return out, jax.tree_util.Partial(functools.partial(_plain_backward, chain), pull)


def _plain_backward(chain: Chain, pull: Callable[..., Any], cotangents: list[Any]) -> list[Any]:
    weights = [
        _zeros(v) if c is None else c
        for v, c in zip(chain.jaxpr.outvars, cotangents, strict=True)
        if moves(v)
    ]
    back = iter(pull(weights))
    return [next(back) if flag else None for flag in chain.perturbed]


def _zeros(v: Any) -> jax.Array:
    return jax.numpy.zeros(v.aval.shape, v.aval.dtype)


def _given(cotangent: Any) -> Any:
    """A cotangent, or None where it is known to be zero."""
    zero = isinstance(cotangent, SymbolicZero) or cotangent.dtype == jax.dtypes.float0
    return None if zero else cotangent
