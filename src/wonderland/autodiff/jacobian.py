"""Jacobians and Hessians in one call: planned on first use, the plan remembered by shape.

J[i, j] = ∂fᵢ/∂xⱼ        H[i, j] = ∂²f/∂xᵢ∂xⱼ
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final

import jax
import jax.numpy as jnp

from .plan import Output, Plan, plan_hessian, plan_jacobian

__all__ = ["forget_plans", "hessian", "jacobian"]

REMEMBERED: Final = 64  # plans kept, least recently used ones forgotten

_plans: OrderedDict[Any, list[Plan]] = OrderedDict()
_lock = Lock()


def jacobian(
    f: Callable[..., Any],
    x: Any,
    *args: Any,
    output: Output = "dense",
    mode: str | Sequence[str] | None = None,
    memory: str | int | None = None,
) -> Any:
    """∂f/∂x at x, by the cheapest way: see `plan_jacobian`, whose arguments these are.

    The plan is made at the first call and used again for the same function object and shapes, so f
    should be defined once, outside loops; arrays it closes over are constants of the plan.

    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> jacobian(lambda x: x[1:] * x[:-1], x)
    Array([[2., 1., 0.],
           [0., 3., 2.]], dtype=float32)
    """
    plan = _plan(plan_jacobian, f, x, args, (_hashable(mode), memory))
    return plan(x, *args, output=output)


def hessian(
    f: Callable[..., Any],
    x: Any,
    *args: Any,
    output: Output = "dense",
    mode: str | Sequence[str] | None = None,
    memory: str | int | None = None,
) -> Any:
    """∇²f at x for a scalar function, by the cheapest way: see `plan_hessian`.

    >>> hessian(lambda x: jnp.sum(x**3), jnp.array([1.0, 2.0]), output="scipy").toarray()
    array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    plan = _plan(plan_hessian, f, x, args, (_hashable(mode), memory))
    return plan(x, *args, output=output)


def forget_plans() -> None:
    """Drop every remembered plan, and the functions they hold."""
    with _lock:
        _plans.clear()


def _plan(
    make: Callable[..., Plan], f: Any, x: Any, args: tuple[Any, ...], options: tuple[Any, Any]
) -> Plan:
    mode, memory = options
    shapes = tuple(
        (jnp.shape(leaf), jnp.result_type(leaf)) if _array(leaf) else type(leaf)
        for leaf in jax.tree.leaves((x, args))
    )
    key = (
        make,
        f,
        jax.tree.structure((x, args)),
        shapes,
        jax.config.read("jax_enable_x64"),
        options,
    )
    try:
        known = _plans.get(key, [])
    except TypeError:  # a callable that cannot be hashed is planned each time
        return make(f, x, *args, mode=mode, memory=memory)
    for plan in known:  # shapes agree; what is fixed (numbers, names) may still differ
        if plan.problem.matches(x, args):
            with _lock:
                _plans.move_to_end(key)
            return plan
    plan = make(f, x, *args, mode=mode, memory=memory)
    with _lock:
        _plans.setdefault(key, []).append(plan)
        while len(_plans) > REMEMBERED:
            _plans.popitem(last=False)
    return plan


def _array(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _hashable(mode: Any) -> Any:
    return tuple(mode) if isinstance(mode, list) else mode
