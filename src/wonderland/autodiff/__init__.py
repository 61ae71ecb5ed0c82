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
    from wonderland.autodiff.checkpoint import Checkpointed as Checkpointed
    from wonderland.autodiff.checkpoint import CheckpointPlan as CheckpointPlan
    from wonderland.autodiff.checkpoint import checkpoint as checkpoint
    from wonderland.autodiff.conditions import KKT as KKT
    from wonderland.autodiff.conditions import Argmin as Argmin
    from wonderland.autodiff.conditions import Condition as Condition
    from wonderland.autodiff.conditions import FixedPoint as FixedPoint
    from wonderland.autodiff.conditions import Root as Root
    from wonderland.autodiff.costs import Cost as Cost
    from wonderland.autodiff.costs import cost as cost
    from wonderland.autodiff.implicit import ImplicitFunction as ImplicitFunction
    from wonderland.autodiff.implicit import implicit as implicit
    from wonderland.autodiff.jacobian import forget_plans as forget_plans
    from wonderland.autodiff.jacobian import hessian as hessian
    from wonderland.autodiff.jacobian import jacobian as jacobian
    from wonderland.autodiff.kinks import Kink as Kink
    from wonderland.autodiff.kinks import Kinks as Kinks
    from wonderland.autodiff.kinks import KinkWarning as KinkWarning
    from wonderland.autodiff.kinks import kinks as kinks
    from wonderland.autodiff.linear_solve import Dense as Dense
    from wonderland.autodiff.linear_solve import Gmres as Gmres
    from wonderland.autodiff.linear_solve import LinearSolver as LinearSolver
    from wonderland.autodiff.linear_solve import Minres as Minres
    from wonderland.autodiff.linear_solve import solve_linear as solve_linear
    from wonderland.autodiff.modes import LinearMap as LinearMap
    from wonderland.autodiff.modes import directional_derivative as directional_derivative
    from wonderland.autodiff.modes import gradient as gradient
    from wonderland.autodiff.modes import hvp as hvp
    from wonderland.autodiff.modes import jvp as jvp
    from wonderland.autodiff.modes import linearise as linearise
    from wonderland.autodiff.modes import value_and_gradient as value_and_gradient
    from wonderland.autodiff.modes import vjp as vjp
    from wonderland.autodiff.plan import Plan as Plan
    from wonderland.autodiff.plan import plan_hessian as plan_hessian
    from wonderland.autodiff.plan import plan_jacobian as plan_jacobian
    from wonderland.autodiff.stationary import Stationary as Stationary
    from wonderland.autodiff.stationary import stationary as stationary
    from wonderland.autodiff.subgradients import absolute as absolute
    from wonderland.autodiff.subgradients import hinge as hinge
    from wonderland.autodiff.subgradients import largest as largest
    from wonderland.autodiff.subgradients import maximum as maximum
    from wonderland.autodiff.subgradients import relu as relu
    from wonderland.autodiff.trace import Step as Step
    from wonderland.autodiff.trace import Trace as Trace
    from wonderland.autodiff.trace import trace as trace

# Public name → the module it lives in; several modules are named for their function.
_HOMES = {
    "check": ("GradientCheck", "check_gradient"),
    "checkpoint": ("CheckpointPlan", "Checkpointed", "checkpoint"),
    "conditions": ("KKT", "Argmin", "Condition", "FixedPoint", "Root"),
    "costs": ("Cost", "cost"),
    "implicit": ("ImplicitFunction", "implicit"),
    "jacobian": ("forget_plans", "hessian", "jacobian"),
    "kinks": ("Kink", "KinkWarning", "Kinks", "kinks"),
    "linear_solve": ("Dense", "Gmres", "LinearSolver", "Minres", "solve_linear"),
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
    "plan": ("Plan", "plan_hessian", "plan_jacobian"),
    "stationary": ("Stationary", "stationary"),
    "subgradients": ("absolute", "hinge", "largest", "maximum", "relu"),
    "trace": ("Step", "Trace", "trace"),
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
            value = getattr(value, name, value)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade
