"""How fast a run was, beside what its theorem promised: `wl.solve.rate_report`.

    measured_k ≤ bound_k   for k = 0 … steps,

where measured is f(w_k) − f*, or min_i ‖∇f(w_i)‖ of a function that is not convex, and the bound is
that of `solve.theory` with the constants of the run.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.report.history import descent_history
from wonderland.report.plots import COLOURS, prepare_axes
from wonderland.solve import theory
from wonderland.solve.gradient import Descent
from wonderland.solve.proximal import Proximal
from wonderland.solve.recording import Record

__all__ = ["RateReport", "rate_report"]

Bound = Callable[[int], float]
GAP, SLOPE = "f(w_k) − f*", "min ‖∇f(w_i)‖, i ≤ k"


@dataclass(frozen=True, eq=False, repr=False)
class RateReport:
    """Bound and reality of one run; printing it shows a table, `plot` a picture.

    Attributes:
        method: What ran.
        theorem: What is promised, or that nothing is.
        quantity: What is measured.
        measured: At k = 0 … steps (steps + 1,).
        bound: The theorem's bound on it, or None (steps + 1,).
        lipschitz: L.
        strong_convexity: m.
        distance: D = ‖w₀ − w*‖.
        lowest: f*.
        floor: What rounding hides: differences below it say nothing.
    """

    method: str
    theorem: str
    quantity: str
    measured: np.ndarray
    bound: np.ndarray | None
    lipschitz: float
    strong_convexity: float
    distance: float
    lowest: float
    floor: float

    @property
    def holds(self) -> bool | None:
        """Whether every step kept its bound, rounding apart; None without a theorem."""
        if self.bound is None:
            return None
        return bool(np.all(self.measured <= self.bound * (1 + 1e-9) + self.floor))

    @property
    def tightness(self) -> float | None:
        """The largest share of the bound, k ≥ 1, that was used: 1 where the theorem is exact."""
        if self.bound is None:
            return None
        seen = (self.bound > 100 * self.floor) & (np.arange(len(self.bound)) > 0)
        return float(np.max(self.measured[seen] / self.bound[seen], initial=0.0))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        plain = asdict(self)
        plain["measured"] = self.measured.tolist()
        plain["bound"] = None if self.bound is None else self.bound.tolist()
        return {**plain, "holds": self.holds, "tightness": self.tightness}

    def plot(self, axes: Any = None) -> Any:
        """Solid what happened, dashed what was promised, over the steps; a matplotlib figure.

        Args:
            axes: Where to draw; None makes a figure.
        """
        (axis,) = prepare_axes(axes, 1, (7.5, 4.5), [1])
        floor = max(self.floor, np.finfo(float).tiny)
        lines = [(self.measured, "-", 1.8, "what happened")]
        if self.bound is not None:
            lines.append((self.bound, "--", 1.2, f"promised: {self.theorem}"))
        for (values, style, width, name), colour in zip(lines, COLOURS, strict=False):
            shown = np.where(values > floor, values, np.nan)  # below there is only rounding
            axis.plot(shown, style, color=colour, linewidth=width, label=name)
        axis.set(yscale="log", xlabel="step k", ylabel=self.quantity, title=self._title())
        axis.legend(frameon=False)
        return axis.figure

    def _title(self) -> str:
        m, L = self.strong_convexity, self.lipschitz
        return f"{self.method}, L = {L:.3g}, " + (f"L/m = {L / m:.3g}" if m > 0 else "m = 0")

    def __str__(self) -> str:
        lines = [self._title(), f"promised: {self.theorem}", "", _row("k", self.quantity, "bound")]
        for k in _shown(len(self.measured)):
            promised = "" if self.bound is None else f"{self.bound[k]:.3e}"
            lines.append(_row(str(k), f"{self.measured[k]:.3e}", promised))
        if self.bound is not None:
            verdict = "holds" if self.holds else "is BROKEN"
            lines += ["", f"the bound {verdict}; used up to {self.tightness:.1%}"]
        return "\n".join(lines)

    __repr__ = __str__


def rate_report(fit: Any, X: Any = None, y: Any = None, *, steps: int = 200) -> RateReport:
    """Bound and reality of a run of gradient descent.

    Args:
        fit: A `wl.solve.record(…)`; a fitted estimator that kept one as `history_`; or a linear
            model fitted with solver="descent", whose descent is then run again on X and y.
        X: Dense samples (n, d), for the last case only.
        y: Targets, the same.
        steps: Steps to run again, the same.

    >>> import wonderland as wl
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> model = wl.Ridge(0.1, solver="descent").fit(X, [0.0, 1.5, 2.5])
    >>> report = rate_report(model, X, [0.0, 1.5, 2.5], steps=20)
    >>> report.holds, report.theorem
    (True, 'L·D²(1 − √(m/L))^k, with momentum')
    """
    kept = fit if isinstance(fit, Record) else getattr(fit, "history_", None)
    if isinstance(kept, Record):
        return _of_record(kept)
    if X is None or y is None or getattr(fit, "solver", None) != "descent":
        raise InputError(
            f"a {type(fit).__name__} without a recorded run",
            "a record, an estimator with `history_`, or a linear model fitted by descent with X, y",
            "Pass wl.solve.record(solver, objective, w), or X and y of solver='descent'",
        )
    return _of_linear(fit, X, y, steps)


def _of_linear(fit: Any, X: Any, y: Any, steps: int) -> RateReport:
    """Least squares from w = 0, run again with its record."""
    if not np.isscalar(getattr(fit, "alpha", 0.0)) or isinstance(getattr(fit, "alpha", 0.0), str):
        raise InputError(
            f"alpha is {fit.alpha!r}", "one number", "Fit with the penalty to be looked at"
        )
    momentum = bool(fit.momentum)
    found = descent_history(
        X, y, alpha=float(getattr(fit, "alpha", 0.0)), steps=steps, momentum=momentum
    )
    L, m, D = found.lipschitz, found.strong_convexity, found.distance
    method, theorem, promised = _theorem(Descent(momentum=momentum), L, m, D)
    bound = None if promised is None else np.array([promised(k) for k in range(steps + 1)])
    floor = (64 * np.finfo(float).eps) ** 2 * L * D**2
    return RateReport(method, theorem, GAP, found.gap, bound, L, m, D, 0.0, floor)


def _of_record(run: Record) -> RateReport:
    L, m, D = run.lipschitz, run.strong_convexity, run.distance
    method, theorem, promised = _theorem(run.solver, L, m, D)
    eps = float(np.finfo(float).eps)
    if run.convex:
        quantity, measured = GAP, np.maximum(run.values - run.lowest, 0.0)
        floor = 32 * eps * (abs(run.lowest) + float(np.max(np.abs(run.values))))
    else:
        quantity, measured = SLOPE, np.minimum.accumulate(run.norms)
        theorem, promised = _without_convexity(run)
        floor = 32 * eps * L * (1.0 + float(np.linalg.norm(run.w)))
    bound = None if promised is None else np.array([promised(k) for k in range(len(measured))])
    return RateReport(method, theorem, quantity, measured, bound, L, m, D, run.lowest, floor)


def _without_convexity(run: Record) -> tuple[str, Bound | None]:
    """Theorem 8.8, for gradient descent with the step 1/L."""
    if not isinstance(run.solver, Descent) or run.solver.momentum:
        return "no theorem for this method where f is not convex", None
    L, gap = run.lipschitz, float(run.values[0]) - run.lowest
    return "√(2L(f(w₀) − f*)/(k + 1))", lambda k: theory.non_convex_bound(k, L, gap)


def _theorem(solver: Any, L: float, m: float, D: float) -> tuple[str, str, Bound | None]:
    """(method, what is promised, the bound) for a convex objective."""
    none = "no theorem of `solve.theory` is about this method"
    if isinstance(solver, Descent):
        if solver.momentum and m > 0:
            ratio = 1 - np.sqrt(m / L)
            promise = "L·D²(1 − √(m/L))^k, with momentum"
            return "Nesterov's method", promise, lambda k: L * D**2 * ratio**k
        if solver.momentum:
            promise = "2L·D²/(k + 1)², with momentum"
            return "Nesterov's method", promise, lambda k: theory.momentum_bound(k, L, 0.0, D)
        if m > 0 and not solver.cautious:
            promise = "(L/2)·D²((L − m)/(L + m))^{2k}"
            name = "gradient descent, step 2/(m + L)"
            return name, promise, lambda k: theory.strongly_convex_bound(k, L, m, D)
        return "gradient descent, step 1/L", "L·D²/2k", _convex(L, m, D)
    if not isinstance(solver, Proximal) or (solver.momentum and solver.restart):
        return type(solver).__name__, none, None
    # A step found by halving, from 1 at first, is at least half of 1/L, or 1.
    found = solver.backtracking
    worst, name = (max(2 * L, 1.0), "max(2L, 1)") if found else (L, "L")
    if solver.momentum:
        promise = f"2{name}·D²/(k + 1)²"
        return "FISTA", promise, lambda k: theory.momentum_bound(k, worst, 0.0, D)
    return "proximal gradient", f"{name}·D²/2k", _convex(worst, 0.0, D)


def _convex(L: float, m: float, D: float) -> Bound:
    """The better of theorems 8.5 and 8.7 for the step 1/L."""

    def bound(k: int) -> float:
        general = theory.convex_bound(k, L, D)
        if m <= 0:
            return general
        return min(general, theory.strongly_convex_bound(k, L, m, D, step=1.0 / L))

    return bound


def _shown(count: int) -> list[int]:
    """A few steps, closer at the beginning: 0, 1, 2, 5, 10, 20, 50, … and the last."""
    chosen = [f * 10**e for e in range(7) for f in (1, 2, 5)]
    return [0, *(k for k in chosen if k < count - 1), *([count - 1] if count > 1 else [])]


def _row(*cells: str) -> str:
    return f"{cells[0]:>8}  {cells[1]:>22}  {cells[2]:>12}".rstrip()
