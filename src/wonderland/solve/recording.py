"""Recording a run of the one loop, when asked: F(w_k) and ‖∇F(w_k)‖ at every step.

The recorder is itself a solver around a solver, so that the loop does not know of it and a run
that is not recorded pays nothing. With it come the numbers the theorems speak of: L, m, f* and
D = ‖w₀ − w*‖, with w* from L-BFGS or FISTA run to rounding level.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import in_float64
from wonderland.core.errors import InputError
from wonderland.core.status import Status
from wonderland.solve.gradient import Composite
from wonderland.solve.proximal import Proximal
from wonderland.solve.quasi_newton import QuasiNewton
from wonderland.solve.run import Solver, Stopping, minimise

__all__ = ["Record", "Recorded", "record"]

EXACT = Stopping(tol=1e-13, step_tol=1e-300, max_iter=20_000)  # stops where nothing moves


class Record(NamedTuple):
    """What happened in a run, and the constants of its theorem.

    Attributes:
        solver: The method, an object of `solve`.
        values: F(w_k) for k = 0 … steps (steps + 1,).
        norms: ‖∇F(w_k)‖, of the smallest subgradient where there is a ρ (steps + 1,).
        w: The last iterate.
        status: How the run ended.
        lipschitz: L.
        strong_convexity: m.
        lowest: f*: the least value found; for a function that is not convex an upper bound of it.
        distance: D = ‖w₀ − w*‖.
        convex: Whether the objective is convex.
    """

    solver: Any
    values: np.ndarray
    norms: np.ndarray
    w: np.ndarray
    status: Status
    lipschitz: float
    strong_convexity: float
    lowest: float
    distance: float
    convex: bool


class _State(eqx.Module):
    inner: Any
    values: jax.Array
    norms: jax.Array

    @property
    def w(self) -> jax.Array:
        return self.inner.w

    @property
    def count(self) -> jax.Array:
        return self.inner.count

    @property
    def certificate(self) -> jax.Array:
        return self.inner.certificate

    @property
    def moved(self) -> jax.Array:
        return self.inner.moved


class Recorded(eqx.Module):
    """A solver that keeps what it passed through, at the cost of a value and a gradient per step.

    Attributes:
        solver: The method.
        steps: How many steps there is room for.
    """

    solver: Solver
    steps: int = eqx.field(static=True)

    def init(self, objective: Any, w: jax.Array) -> Any:
        """The state before the first step, with an empty record."""
        empty = jnp.full(self.steps + 1, jnp.nan, w.dtype)
        return self._kept(objective, _State(self.solver.init(objective, w), empty, empty))

    def step(self, objective: Any, state: Any) -> Any:
        """The solver's own step, written down."""
        inner = self.solver.step(objective, state.inner)
        return self._kept(objective, _State(inner, state.values, state.norms))

    def _kept(self, objective: Any, state: _State) -> _State:
        slope = objective.gradient(state.w)
        slope = objective.residual(state.w, slope) if isinstance(objective, Composite) else slope
        value, k = _value(objective, state.w), state.count
        norm = jnp.sqrt(jnp.sum(slope**2))
        return _State(state.inner, state.values.at[k].set(value), state.norms.at[k].set(norm))


@in_float64
def record(solver: Solver, objective: Any, w: Any, *, steps: int = 200, tol: float = 0.0) -> Record:
    """Run `solver` from w for at most `steps` steps and keep every value and gradient norm.

    Args:
        solver: `Descent`, `Proximal`, `HeavyBall`, `QuasiNewton`, or any init / step.
        objective: With `value` and `gradient`; `convex` is taken as true where it does not say.
        w: Start.
        steps: At most this many.
        tol: The certificate at which to stop.

    >>> from wonderland.losses import Logistic
    >>> from wonderland.penalties import L2
    >>> from wonderland.solve.empirical import empirical_risk
    >>> X, y = np.array([[0.0], [2.0]]), np.array([-1.0, 1.0])
    >>> run = record(Proximal(), empirical_risk(X, y, Logistic(), L2(1.0)), np.zeros(2), steps=3)
    >>> len(run.values), bool(run.values[3] < run.values[0])
    (4, True)
    """
    if steps < 1 or not hasattr(objective, "value"):
        raise InputError(
            f"steps = {steps!r} on a {type(objective).__name__}",
            "at least one step, on an objective with a method `value`",
            "Pass steps=200 and for instance wl.solve.empirical_risk(X, y, loss, penalty)",
        )
    start = jnp.asarray(w)
    rules = Stopping(tol=tol, max_iter=steps)
    state, status = minimise(Recorded(solver, steps), objective, start, rules)
    count = int(state.count)
    best = _best(objective, state.w)
    values = np.asarray(state.values)[: count + 1]
    return Record(
        solver=solver,
        values=values,
        norms=np.asarray(state.norms)[: count + 1],
        w=np.asarray(state.w),
        status=status,
        lipschitz=float(objective.lipschitz),
        strong_convexity=float(objective.strong_convexity),
        lowest=min(float(_value(objective, best)), float(np.nanmin(values))),
        distance=float(jnp.linalg.norm(start - best)),
        convex=bool(getattr(objective, "convex", True)),
    )


def _value(objective: Any, w: jax.Array) -> jax.Array:
    return objective.total(w) if isinstance(objective, Composite) else objective.value(w)


def _best(objective: Any, w: jax.Array) -> jax.Array:
    """The optimum found from the last iterate on, by the fastest method at hand."""
    kinks = isinstance(objective, Composite) and not objective.smooth
    solver: Solver = Proximal(backtracking=True) if kinks else QuasiNewton()
    return minimise(solver, objective, w, EXACT)[0].w
