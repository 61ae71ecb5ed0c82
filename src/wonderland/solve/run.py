"""The one loop: every iterative solver runs here, and stops here.

Steps run compiled, in bursts that grow until one takes about a quarter of a second; between bursts
the clock is read and an interrupt is heard. The result is an ordinary value: a status says how the
loop ended, nothing is raised.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import in_float64
from wonderland.core.status import Status

__all__ = ["Solver", "Stopping", "minimise", "optimum"]

BURST = 256  # steps of the first burst
PATIENCE = 0.25  # seconds a burst should last


class Stopping(NamedTuple):
    """When to stop: the vocabulary shared by all solvers.

    Attributes:
        tol: The certificate at which the problem counts as solved.
        step_tol: ε of ‖w_{t+1} − w_t‖² < ε; zero switches the rule off.
        max_iter: Most steps taken.
        time_limit: Seconds, or None.
    """

    tol: float = 1e-6
    step_tol: float = 0.0
    max_iter: int = 10_000
    time_limit: float | None = None


class Solver(Protocol):
    """What the loop asks of a solver; its state has `count`, `certificate` and `moved`."""

    def init(self, objective: Any, w: jax.Array) -> Any:
        """The state before the first step."""

    def step(self, objective: Any, state: Any) -> Any:
        """The next state."""


def _status(state: Any, tol: jax.Array, step_tol: jax.Array, limit: jax.Array) -> jax.Array:
    """First rule that applies: not finite, certified, stalled, out of steps."""
    return jnp.select(
        [
            ~jnp.isfinite(state.certificate),
            state.certificate <= tol,
            state.moved < step_tol,
            state.count >= limit,
        ],
        [int(rule) for rule in (Status.DIVERGED, Status.CONVERGED, Status.STALLED)]
        + [int(Status.ITERATIONS)],
        int(Status.RUNNING),
    )


@eqx.filter_jit
def _begin(solver: Solver, objective: Any, w: jax.Array) -> Any:
    """The first state, as one program: operation by operation it would compile each of them."""
    return solver.init(objective, w)


@eqx.filter_jit
def _burst(
    solver: Solver, objective: Any, state: Any, rules: jax.Array, stop_at: jax.Array
) -> tuple[Any, jax.Array]:
    """Step until a rule applies or `count` reaches `stop_at`; all numbers are arguments."""
    status = partial(_status, tol=rules[0], step_tol=rules[1], limit=rules[2])

    def going(now: Any) -> jax.Array:
        return (status(now) == int(Status.RUNNING)) & (now.count < stop_at)

    done = jax.lax.while_loop(going, lambda now: solver.step(objective, now), state)
    return done, status(done)


@in_float64
def minimise(
    solver: Solver,
    objective: Any,
    w: jax.Array,
    stopping: Stopping,
    *,
    progress: Callable[[Any], None] | None = None,
) -> tuple[Any, Status]:
    """Run the loop on concrete arrays; returns (final state, status).

    An interrupt (Ctrl-C) ends it with the best state so far and `Status.INTERRUPTED`.
    """
    start = time.monotonic()
    numbers = [stopping.tol, stopping.step_tol, float(stopping.max_iter)]
    rules = jax.device_put(np.asarray(numbers, np.float64))
    state, burst, status = _begin(solver, objective, jnp.asarray(w)), BURST, Status.RUNNING
    try:
        while status is Status.RUNNING:
            before = time.monotonic()
            moved, code = _burst(solver, objective, state, rules, state.count + burst)
            status = Status(int(code))  # waits for the burst
            state = moved
            if progress is not None:
                progress(state)
            spent = time.monotonic() - start
            if status is Status.RUNNING and _late(spent, stopping.time_limit):
                status = Status.TIME
            burst = _next_burst(burst, time.monotonic() - before)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return state, status


def _late(spent: float, limit: float | None) -> bool:
    return limit is not None and spent >= limit


def _next_burst(burst: int, took: float) -> int:
    """Double while bursts are short, halve when they are long."""
    if took < PATIENCE / 2:
        return burst * 2
    return max(1, burst // 2) if took > PATIENCE else burst


def _conjugate(matrix: Callable[[jax.Array], jax.Array], right: jax.Array) -> jax.Array:
    return jax.scipy.sparse.linalg.cg(matrix, right, tol=1e-12)[0]


def optimum(
    solver: Solver, objective: Callable[[Any], Any], parameters: Any, w: jax.Array, rules: Stopping
) -> jax.Array:
    """w* as a differentiable function of the objective's parameters, inside any trace.

    The loop itself is not differentiated. At the optimum ∇f(w*; θ) = 0, so that by the implicit
    function theorem dw* = −(∇²f)⁻¹ ∂_θ∇f dθ; the Hessian is applied by products and the linear
    system solved by conjugate gradients.

    Args:
        solver: init / step.
        objective: Builds the objective from θ; what it closes over counts as constant.
        parameters: θ, any pytree.
        w: Starting point; w* does not depend on it.
        rules: Tolerance and iteration limit (a time limit cannot be kept inside a trace).
    """
    numbers = jnp.asarray([rules.tol, rules.step_tol, float(rules.max_iter)], w.dtype)

    @jax.custom_jvp
    def solve(theta: Any, start: jax.Array) -> jax.Array:
        problem = objective(theta)
        state = solver.init(problem, start)
        return _burst(solver, problem, state, numbers, jnp.asarray(rules.max_iter))[0].w

    @solve.defjvp
    def _(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        theta, start = primals
        found = solve(theta, start)
        _, moved = jax.jvp(lambda at: objective(at).gradient(found), (theta,), (tangents[0],))
        _, hessian = jax.linearize(objective(theta).gradient, found)
        return found, jax.lax.custom_linear_solve(hessian, -moved, _conjugate, symmetric=True)

    return solve(parameters, w)
