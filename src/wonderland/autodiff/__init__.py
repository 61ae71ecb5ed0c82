"""Differentiate any JAX function, by the cheapest way, in the memory there is.

    modes        jvp, vjp, gradient, hvp, directional_derivative, linearise
    jacobian     plan_jacobian, jacobian, hessian: sparsity found, coloured, priced, compressed
    trace        trace: the evaluation trace, its dual and its cost before anything runs
    checkpoint   checkpoint: the same derivative within a memory budget
    implicit     implicit: the derivative of argmins, roots and fixed points, through any solver
    check        check_gradient, kinks, stationary: is this derivative right, and what does it say

All of them work on plain JAX functions; none needs an estimator. Names load on first use.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wonderland.autodiff.check import GradientCheck as GradientCheck
    from wonderland.autodiff.check import check_gradient as check_gradient
    from wonderland.autodiff.conditions import KKT as KKT
    from wonderland.autodiff.conditions import Argmin as Argmin
    from wonderland.autodiff.conditions import Condition as Condition
    from wonderland.autodiff.conditions import FixedPoint as FixedPoint
    from wonderland.autodiff.conditions import Root as Root
    from wonderland.autodiff.implicit import ImplicitFunction as ImplicitFunction
    from wonderland.autodiff.implicit import implicit as implicit
    from wonderland.autodiff.kinks import Kink as Kink
    from wonderland.autodiff.kinks import Kinks as Kinks
    from wonderland.autodiff.kinks import KinkWarning as KinkWarning
    from wonderland.autodiff.kinks import kinks as kinks
    from wonderland.autodiff.linear_solve import solve_linear as solve_linear
    from wonderland.autodiff.modes import LinearMap as LinearMap
    from wonderland.autodiff.modes import directional_derivative as directional_derivative
    from wonderland.autodiff.modes import gradient as gradient
    from wonderland.autodiff.modes import hvp as hvp
    from wonderland.autodiff.modes import jvp as jvp
    from wonderland.autodiff.modes import linearise as linearise
    from wonderland.autodiff.modes import value_and_gradient as value_and_gradient
    from wonderland.autodiff.modes import vjp as vjp
    from wonderland.autodiff.stationary import Stationary as Stationary
    from wonderland.autodiff.stationary import stationary as stationary

_HOMES = {
    "check": ("GradientCheck", "check_gradient"),
    "conditions": ("KKT", "Argmin", "Condition", "FixedPoint", "Root"),
    "implicit": ("ImplicitFunction", "implicit"),
    "kinks": ("Kink", "KinkWarning", "Kinks", "kinks"),
    "linear_solve": ("solve_linear",),
    "modes": (
        "LinearMap",
        "directional_derivative",
        "gradient",
        "hvp",
        "jvp",
        "linearise",
        "value_and_gradient",
        "vjp",
    ),
    "stationary": ("Stationary", "stationary"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Facade(ModuleType):
    """Keeps `autodiff.trace` the function when the import system binds the module of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOME.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade
