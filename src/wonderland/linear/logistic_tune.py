"""C by the gradient of the cross-validated log-loss.

    L(C) = Σ_f Σ_{i in fold f} ω_i ℓ(θ_f(C), x_i, y_i)/Σω ,   θ_f(C) fitted without fold f,

    dL/d log C = Σ_f ∇L_fᵀ H_f⁻¹ λ_f w_f        (∇F_f(θ_f; λ_f) = 0, implicit function theorem)

All folds are fitted in the same passes over the table, differing in weights alone: zero on the rows
left out. H_f⁻¹ is applied by conjugate gradients on exact Hessian products, in the metric the fit
has left behind. The zero of the derivative is bracketed and closed in on from both ends; each fit
starts where the last one ended. Folds deal out each class in turn, as the rows come.

Reference: Bengio (2000), Gradient-based optimization of hyperparameters.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.blocks import calm
from wonderland.core.evidence import Claim
from wonderland.linear.logistic_fit import Route, choose, minimise
from wonderland.linear.logistic_problem import Logistic, product, sweep
from wonderland.linear.logistic_solve import rules_of
from wonderland.solve.newton import End

__all__ = ["Tuned", "tune"]

FOLDS = 5
FEW = 3  # folds where one fit is already long
LONG = 4000  # parameters of such a fit
FLAT = 1e-4  # |dL/d log C| relative to L at which C counts as found
ROUGH = 1e-3  # the same where fits are long: L is then within a hundred-thousandth of its minimum
NEAR = 1.2  # change of log C over which the metric of the last fit is kept
LOWEST, HIGHEST = 1e-6, 1e6
TURNS = 14  # evaluations at most
STRIDE = np.log(10.0)


class Tuned(NamedTuple):
    """The C found.

    Attributes:
        C: In use.
        loss: Cross-validated log-loss there, a mean over samples.
        slope: Its derivative in log C.
        tried: (log C, loss, derivative) of every evaluation.
        folds: Number of folds.
        theta: Mean of the folds' parameters (p,): a start for the fit on all rows.
    """

    C: float
    loss: float
    slope: float
    tried: list[tuple[float, float, float]]
    folds: int
    theta: np.ndarray

    def claims(self) -> list[Claim]:
        """What tuning has to show."""
        best = min(loss for _, loss, _ in self.tried)
        return [
            Claim.below(
                "cross_validated_loss",
                self.loss,
                best * (1 + 1e-6),
                f"mean log-loss left out, {self.folds} folds; the bound is the best of "
                f"{len(self.tried)} values of C tried",
            ),
            Claim.fact(
                "cross_validated_slope",
                self.slope / self.loss,
                "d log(loss)/d log C at the chosen C by implicit differentiation",
            ),
        ]


def tune(problem: Logistic, precision: np.ndarray, solver: str, max_iter: int) -> Tuned:
    """Find C for a problem.

    Args:
        problem: One problem; its penalty is replaced.
        precision: Of the prior (d,), ones for ½‖W‖².
        solver: Name of a solver.
        max_iter: Most steps of each fit.
    """
    with calm(0.0):  # BLAS threads that wait for work would take cores from those that share rows
        return _bracketed(_Folds(problem, precision, solver, max_iter))


def _bracketed(folds: "_Folds") -> Tuned:
    """The zero of the derivative, closed in on from both ends."""
    low: tuple[float, float] | None = None
    high: tuple[float, float] | None = None
    at = 0.0
    for _ in range(TURNS):
        loss, slope = folds.evaluate(at)
        if abs(slope) <= folds.flat * loss:
            break
        low, high = ((at, slope), high) if slope < 0 else (low, (at, slope))
        if low is None or high is None:
            at = at + STRIDE if slope < 0 else at - STRIDE
            if not np.log(LOWEST) <= at <= np.log(HIGHEST):
                break
            continue
        if high[0] - low[0] < 1e-3:
            break
        share = low[1] / (low[1] - high[1])
        # A chord that hugs one end closes in slowly: keep away from both.
        at = low[0] + float(np.clip(share, 0.1, 0.9)) * (high[0] - low[0])
    best = min(folds.tried, key=lambda one: abs(one[2]) / one[1])
    return Tuned(float(np.exp(best[0])), best[1], best[2], folds.tried, folds.count, folds.start())


class _Folds:
    """The fits without each fold, kept from one C to the next."""

    def __init__(
        self, problem: Logistic, precision: np.ndarray, solver: str, max_iter: int
    ) -> None:
        p = problem.columns * problem.width
        fewest = int(np.bincount(problem.codes).min())
        long = p > LONG
        self.count, self.flat = max(2, min(FEW if long else FOLDS, fewest)), ROUGH if long else FLAT
        if long and not sp.issparse(problem.X):
            # C needs a digit or two; the fit on all rows that follows is made in double precision.
            problem = problem._replace(X=problem.X.astype(np.float32))
        number = _dealt(problem.codes, self.count)
        weight = np.ones(len(number)) if problem.weight is None else problem.weight
        out = number[None] == np.arange(self.count)[:, None]
        self.kept = problem._replace(weight=np.where(out, 0.0, weight))
        self.left = problem._replace(
            weight=np.where(out, weight, 0.0), penalty=np.zeros((self.count, problem.X.shape[1]))
        )
        self.single = problem.X.dtype == np.float32
        self.precision, self.mass = precision, float(weight.sum())
        self.max_iter = max_iter
        self.tried: list[tuple[float, float, float]] = []
        self.ends: list[End] = []
        self.taken = 0.0
        self.thetas = np.zeros((self.count, p))
        # In single precision already: no second copy, and the metric of the last C may lead.
        self.route: Route = choose(self._at(0.0), solver)._replace(single=False)

    def _at(self, log_c: float) -> Logistic:
        strength = np.exp(-log_c) / self.kept.weight.sum(axis=1)  # type: ignore[union-attr]
        return self.kept._replace(penalty=strength[:, None] * self.precision)

    def start(self) -> np.ndarray:
        """Mean over folds of the last parameters."""
        return self.thetas.mean(axis=0)

    def evaluate(self, log_c: float) -> tuple[float, float]:
        """L and dL/d log C."""
        problem = self._at(log_c)
        rules = rules_of(problem, 1e-4, self.max_iter)._replace(precision=1e-9)
        near = not self.single or abs(log_c - self.taken) <= NEAR
        metrics = [end.metric for end in self.ends] if self.ends and near else None
        self.taken = log_c if metrics is None else self.taken
        self.ends = minimise(problem, self.thetas, self.route, rules, metrics)
        self.thetas = np.stack([end.theta for end in self.ends])
        total = sweep(self.left, self.thetas)
        loss = float(total.loss.sum()) / self.mass
        slopes = total.gradient.reshape(self.thetas.shape) / self.mass
        coef, intercept = problem.split(self.thetas)
        away = coef if problem.centre is None else coef - problem.centre
        pull = problem.join(away * problem.penalty[:, None], np.zeros_like(intercept))
        slope = float(np.vdot(slopes, self._solved(problem, pull)))
        self.tried.append((log_c, loss, slope))
        return loss, slope

    def _solved(self, problem: Logistic, right: np.ndarray) -> np.ndarray:
        """H_f⁻¹ right_f for all folds, by conjugate gradients in the metrics of the fits."""

        def metric(r: np.ndarray) -> np.ndarray:
            return np.stack([end.metric.solve(row) for end, row in zip(self.ends, r, strict=True)])

        x, r = np.zeros_like(right), right.copy()
        z = metric(r)
        p, inner = z.copy(), (r * z).sum(axis=1)
        goal = (1e-4 if self.single else 1e-8) * inner
        for _ in range(50):
            image = product(problem, self.thetas, p)
            curved = (p * image).sum(axis=1)
            share = np.divide(inner, curved, out=np.zeros_like(inner), where=curved > 0)[:, None]
            x, r = x + share * p, r - share * image
            z = metric(r)
            following = (r * z).sum(axis=1)
            if np.all(following <= goal):
                break
            turn = np.divide(following, inner, out=np.zeros_like(inner), where=inner > 0)
            p, inner = z + turn[:, None] * p, following
        return x


def _dealt(codes: np.ndarray, count: int) -> np.ndarray:
    """The fold of each row: every class is dealt out in turn."""
    order = np.argsort(codes, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(codes))[:-1]])
    place = np.empty(len(codes), int)
    place[order] = np.arange(len(codes)) - first[codes[order]]
    return place % count
