"""Solvers: a stated problem, a choice with its reason, one loop, a certificate.

The public names, each imported when it is first used:

>>> import numpy as np, wonderland as wl
>>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([-1, 1, 1])
>>> problem = wl.solve.empirical_risk(X, y, wl.losses.Logistic(), wl.penalties.L2(0.1))
>>> start, rules = problem.start(), wl.solve.Stopping(tol=1e-8)
>>> state, status = wl.solve.minimise(wl.solve.QuasiNewton(), problem, start, rules)
>>> status
<Status.CONVERGED: 2>
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Composite": "wonderland.solve.gradient",
    "Descent": "wonderland.solve.gradient",
    "EmpiricalRisk": "wonderland.solve.empirical",
    "HeavyBall": "wonderland.solve.proximal",
    "Proximal": "wonderland.solve.proximal",
    "QuasiNewton": "wonderland.solve.quasi_newton",
    "Record": "wonderland.solve.recording",
    "Smooth": "wonderland.solve.gradient",
    "Stopping": "wonderland.solve.run",
    "convex_bound": "wonderland.solve.theory",
    "empirical_risk": "wonderland.solve.empirical",
    "iteration_bound": "wonderland.solve.theory",
    "minimise": "wonderland.solve.run",
    "momentum_bound": "wonderland.solve.theory",
    "non_convex_bound": "wonderland.solve.theory",
    "optimum": "wonderland.solve.run",
    "perceptron_bound": "wonderland.solve.theory",
    # It draws, so that it lives on the floor of pictures; here it is only found.
    "rate_report": "wonderland.report.rates",
    "record": "wonderland.solve.recording",
    "strongly_convex_bound": "wonderland.solve.theory",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from wonderland.report.rates import rate_report as rate_report
    from wonderland.solve.empirical import EmpiricalRisk as EmpiricalRisk
    from wonderland.solve.empirical import empirical_risk as empirical_risk
    from wonderland.solve.gradient import Composite as Composite
    from wonderland.solve.gradient import Descent as Descent
    from wonderland.solve.gradient import Smooth as Smooth
    from wonderland.solve.proximal import HeavyBall as HeavyBall
    from wonderland.solve.proximal import Proximal as Proximal
    from wonderland.solve.quasi_newton import QuasiNewton as QuasiNewton
    from wonderland.solve.recording import Record as Record
    from wonderland.solve.recording import record as record
    from wonderland.solve.run import Stopping as Stopping
    from wonderland.solve.run import minimise as minimise
    from wonderland.solve.run import optimum as optimum
    from wonderland.solve.theory import convex_bound as convex_bound
    from wonderland.solve.theory import iteration_bound as iteration_bound
    from wonderland.solve.theory import momentum_bound as momentum_bound
    from wonderland.solve.theory import non_convex_bound as non_convex_bound
    from wonderland.solve.theory import perceptron_bound as perceptron_bound
    from wonderland.solve.theory import strongly_convex_bound as strongly_convex_bound
