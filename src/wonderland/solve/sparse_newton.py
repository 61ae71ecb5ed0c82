"""Sparse-penalty fits of linear models with a smooth loss: proximal Newton on working sets.

    minimise over W (k, d), b (k,):
    P = C Σ_i ω_i ℓ(Wx_i + b, y_i) + λ₁‖W‖₁ + ½λ₂‖W‖² ,   λ₁ = l1_ratio,  λ₂ = 1 − l1_ratio ,

b free. A step minimises the second-order model of the loss, plus the penalty itself, over a working
set: the support and the strongest of the columns whose gradient exceeds λ₁. The model's minimum is
exact (`sparse_newton_quadratic`). The Hessian of the working set is kept from step to step,
and from one C to the next, as long as the steps it still needs cost less than a new one: a step
with a kept Hessian is two passes over few columns, a new Hessian as much as many steps.

The loop stops on the duality gap. Slopes u_i = ∇ℓ(z_i), shrunk to satisfy the constraints, are a
point of the dual problem

    maximise   −C Σ_i ω_i ℓ*(u_i) − Σ_cj max(|v_cj| − λ₁, 0)² / (2λ₂) ,   v = C Σ_i ω_i u_i x_iᵀ ,
    subject to Σ_i ω_i u_i = 0 where b is fitted, and |v| ≤ λ₁ where λ₂ = 0 ,

whose value bounds P from below, over all columns, those left out of working sets included.

Reference: Lee, Sun & Saunders (2014), Proximal Newton-type methods; Tibshirani et al. (2012),
Strong rules; Massias, Gramfort & Salmon (2018), Celer, for working sets judged by the gap.
"""

from typing import Any, NamedTuple

import numpy as np

from wonderland.core.blocks import calm
from wonderland.core.status import Status
from wonderland.solve.sparse_newton_dual import (
    Certificate,
    Penalised,
    certify,
    dual_estimate,
    primal_value,
)
from wonderland.solve.sparse_newton_hessian import KeptHessian
from wonderland.solve.sparse_newton_loss import RowLoss, Rows, row_loss
from wonderland.solve.sparse_newton_quadratic import solve_quadratic
from wonderland.solve.sparse_newton_table import table_of

__all__ = ["SparseFit", "SparseNewton", "solve_l1"]

GAIN = 0.7  # a kept Hessian must shrink the gap to this part at least
BLIND = 1e-12  # of the objective: decreases below cannot be told from rounding
EXACT = 20  # steps after which scores are computed anew
PATIENCE = 3  # such steps without a smaller gap before the loop gives up
ARMIJO = 1e-4  # part of the promised decrease that a step must keep
SHORTEST = 1e-10  # step at which the search gives up
FIRST = 64  # columns that may join an empty support
TINY = 1e-300  # a gap of zero, to divide by
NEVER = 1e300  # a λ₁ that keeps every coefficient at zero
COARSE = 4.0  # ratio of the C values a cold start passes through
LEAST_SHARE = 0.5  # of λ₁: columns with less are never expected to join


class SparseFit(NamedTuple):
    """An answer with its certificate.

    Attributes:
        coef: W (k, d); k = 1 for losses of one score.
        intercept: b (k,).
        iterations: Newton steps taken.
        gradient_norm: Largest distance of −∇(smooth part of P) to the subdifferential of λ₁‖W‖₁.
        primal: P.
        dual: A lower bound of every value of P.
        duality_gap: primal − dual.
        status: How the loop ended.
    """

    coef: np.ndarray
    intercept: np.ndarray
    iterations: int
    gradient_norm: float
    primal: float
    dual: float
    duality_gap: float
    status: Status


def solve_l1(
    X: Any,
    target: np.ndarray,
    weight: np.ndarray | None = None,
    C: float = 1.0,
    l1_ratio: float = 1.0,
    fit_intercept: bool = True,  # noqa: FBT001, FBT002
    start: Any = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    *,
    loss: Any = "logistic",
) -> SparseFit:
    """Fit one penalty.

    Args:
        X: (n, d), dense or scipy sparse; not changed.
        target: (n,) signs −1 and +1; class numbers 0 … k − 1 for "softmax".
        weight: ω (n,) ≥ 0, or None for ones.
        C: Weight of the loss, > 0.
        l1_ratio: Share of the ℓ₁ norm in the penalty, between 0 and 1.
        fit_intercept: Whether b is fitted (without a penalty) or zero.
        start: Anything with `coef` (k, d) and `intercept` (k,), an earlier `SparseFit`; or None.
        tol: Bound on the duality gap relative to the objective.
        max_iter: Most Newton steps.
        loss: "logistic", "squared_hinge" or "softmax".

    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> fit = solve_l1(X, np.array([-1.0, -1.0, 1.0, 1.0]), C=1.0)
    >>> int(np.count_nonzero(fit.coef)), fit.duality_gap <= 1e-6 * fit.primal
    (1, True)
    """
    solver = SparseNewton(X, target, weight, l1_ratio, fit_intercept=fit_intercept, loss=loss)
    if start is None:
        solver.approach(C)
    else:
        solver.place(start.coef, start.intercept)
    return solver.solve(C, tol, max_iter)


class SparseNewton:
    """The iterate and all that outlives a change of C: table, stock of columns, kept Hessian.

    Attributes:
        W: Coefficients and, in the last column, intercepts (k, p).
        rows: The loss at the scores of W.
        blind: Whether the last step promised too little to be checked against the objective.
    """

    def __init__(
        self,
        X: Any,
        target: np.ndarray,
        weight: np.ndarray | None,
        l1_ratio: float,
        *,
        fit_intercept: bool,
        loss: Any,
    ) -> None:
        self.table = table_of(X, intercept=fit_intercept)
        n, p = self.table.shape
        self.weight = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        outputs = int(np.max(target)) + 1 if loss == "softmax" else 1
        self.loss: RowLoss = row_loss(loss, target, outputs)
        penalised = np.arange(p) < X.shape[1]
        self.l1, self.l2 = l1_ratio * penalised, (1.0 - l1_ratio) * penalised
        self.hessian = KeptHessian(self.table, self.loss, self.weight)
        self.table.stock(np.flatnonzero(~penalised))
        self.last_check: tuple[float, Certificate] | None = None
        self.blind = False
        self._steps = 0
        self._known: tuple[Rows, np.ndarray] | None = None
        self._stated: tuple[float, Penalised] | None = None
        self._valued = (0, 0, 0.0)
        self.W: np.ndarray
        self.Z: np.ndarray
        self.rows: Rows
        self._move_to(np.zeros((self.loss.outputs, p)))

    def place(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        """Start from these coefficients (k, d) and intercepts (k,)."""
        W = np.array(coef, dtype=np.float64)
        self._move_to(np.column_stack([W, intercept]) if self.table.intercept else W)

    def approach(self, C: float) -> None:
        """From zero through a few smaller C, roughly, so that the support grows to its size."""
        now = COARSE * self.least()
        while now < C:
            self.solve(now, 1e-2, 20)
            now *= COARSE

    def least(self) -> float:
        """The C up to which all coefficients are zero (0 where λ₁ = 0): λ₁ / max_cj |v_cj|."""
        own, self.l1 = self.l1, np.where(self.l1 + self.l2 > 0, NEVER, 0.0)
        self._descend_all(1.0, 1e-9, (0, 50))
        self.l1 = own
        steepness = self._check(1.0).steepness[own > 0].max(initial=0.0)
        return float(own.max(initial=0.0) / steepness) if steepness > 0 else np.inf

    def solve(self, C: float, tol: float, max_iter: int) -> SparseFit:
        """Descend at this C from where the iterate is; stop on the gap over all columns."""
        with calm(0.0):  # many small products: the large ones split their rows themselves
            return self._solve(C, tol, max_iter)

    def _solve(self, C: float, tol: float, max_iter: int) -> SparseFit:
        self._foresee(C)
        count, inner, least, vain, best = 0, 0.3 * tol, 0, 0, np.inf
        while True:
            done, moved = self._descend_all(C, inner, (least, max_iter - count))
            count += done
            check = self._check(C)
            if check.gap <= tol * abs(check.primal):
                return self._fit(check, count, Status.CONVERGED)
            grown = self._admit(C, check.steepness)
            if count >= max_iter:
                return self._fit(check, count, Status.ITERATIONS)
            # The stock was solved as it seemed, and yet: step on regardless, while that helps.
            vain = 0 if grown or check.gap < 0.5 * best else vain + 1
            if not (moved or grown) or vain == PATIENCE:
                return self._fit(check, count, Status.STALLED)
            best = min(best, check.gap)
            inner, least = (inner, 0) if grown else (0.1 * inner, 1)

    def _descend_all(self, C: float, tol: float, limits: tuple[int, int]) -> tuple[int, bool]:
        """At least and at most so many steps over the stock, until its gap is small.

        Returns how many, and whether the last one moved.
        """
        last, idle = np.inf, 0
        for count in range(limits[1]):
            gradient, gap = self._gradient(C)
            idle = idle + 1 if gap > 0.5 * last and self.blind else 0
            value = self._value(C)
            if (gap <= tol * value and count >= limits[0]) or idle == PATIENCE:
                return count, idle < PATIENCE
            if not self._step(C, gradient, stale=self._tired(gap / last, gap, tol * value)):
                return count, False
            last = max(gap, TINY)
        return limits[1], True

    def _gradient(self, C: float) -> tuple[np.ndarray, float]:
        """∇ of the smooth part over the stock (k, p), and an estimate of the gap there."""
        pulled = C * self._pulled()
        free = self.l1 + self.l2 == 0
        lost = np.abs(pulled[:, free]).sum() * (1.0 + np.abs(self.W[:, free]).max(initial=0.0))
        bound = dual_estimate(self._problem(C), self.rows, self.Z, pulled)
        return pulled + self.l2 * self.W, self._value(C) - bound + float(lost)

    def _pulled(self) -> np.ndarray:
        """Σ ω u xᵀ over the stock; after a check it is known over all columns."""
        if self._known is not None and self._known[0] is self.rows:
            return self._known[1]
        pulled = self.table.pull_stocked(self.weight[:, None] * self.rows.slope)
        if len(self.table.stocked) == self.table.shape[1]:
            self._known = (self.rows, pulled)
        return pulled

    def _step(self, C: float, gradient: np.ndarray, *, stale: bool) -> bool:
        """One proximal Newton step; False when not even a new Hessian finds a lower point."""
        active = self._working_set(gradient)
        if stale:
            self.hessian.renew(active, self.rows)
        if self._descend(C, gradient, active):
            return True
        if self.hessian.rows is self.rows:
            return False
        self.hessian.renew(active, self.rows)
        return self._descend(C, gradient, active)

    def _tired(self, ratio: float, gap: float, target: float) -> bool:
        """Whether going on with the kept Hessian costs more than a new one and three steps."""
        if ratio >= GAIN:
            return True
        if ratio <= 0.0 or target <= 0.0:
            return False
        steps = np.log(gap / target) / -np.log(ratio)
        columns = np.unique(self.hessian.pairs % len(self.l1))
        price = self.table.gram_work(columns) * self.loss.outputs**2
        return bool(steps > 3.0 + price / (self.table.pass_work() * self.loss.outputs))

    def _working_set(self, gradient: np.ndarray) -> np.ndarray:
        """Flat numbers c·p + j of what may move: unpenalised, support, and the strongest others."""
        excess = np.abs(gradient) - self.l1
        always = (self.W != 0) | (self.l1 == 0)
        always &= np.isin(np.arange(len(self.l1)), self.table.stocked)
        excess[always] = np.inf
        flat = np.flatnonzero(excess.ravel() > 0)
        room = 2 * int(always.sum()) + FIRST
        if len(flat) > room:
            flat = flat[np.argpartition(-excess.ravel()[flat], room)[:room]]
        return np.sort(flat)

    def _descend(self, C: float, gradient: np.ndarray, active: np.ndarray) -> bool:
        """Minimise the model on the working set and search along the line to its minimum."""
        self.hessian.cover(active, self.rows)
        pairs, scale = self.hessian.pairs, self.hessian.scale
        c, columns = np.divmod(pairs, len(self.l1))
        l1, u, slope = self.l1[columns], self.W.ravel()[pairs], gradient.ravel()[pairs]
        faces = self.hessian.faces(self.l2[columns] / C)
        start, tilt = u / scale, slope * scale / C
        end = solve_quadratic(faces, tilt - faces.H @ start, l1 * scale / C, start)
        move = end * scale - u
        promised = float(slope @ move + l1 @ (np.abs(u + move) - np.abs(u)))
        if not promised < 0:
            return False
        D = np.zeros_like(self.W)
        D[c, columns] = move
        touched = np.flatnonzero(np.any(D != 0, axis=0))
        return self._search(C, D, self.table.scores(touched, D[:, touched]), promised)

    def _search(self, C: float, D: np.ndarray, shift: np.ndarray, promised: float) -> bool:
        """Halve the step until it keeps a part of what the model promised (Armijo).

        A promise at rounding level cannot be checked: the step is taken, and judged by the gap.
        """
        value, t = self._value(C), 1.0
        self.blind = promised > -BLIND * abs(value)
        while t > SHORTEST:
            W, Z = self.W + t * D, self.Z + t * shift
            rows = self.loss.at(Z)
            bound = value + ARMIJO * t * promised
            if self.blind or primal_value(self._problem(C), W, rows.value) <= bound:
                self.W, self.Z, self.rows, self._steps = W, Z, rows, self._steps + 1
                return True
            t *= 0.5
        return False

    def _move_to(self, W: np.ndarray) -> None:
        """Take W (k, p) as the iterate and compute its scores."""
        columns = np.flatnonzero(np.any(W != 0, axis=0))
        self.table.stock(columns)
        self.W, self.Z = W, self.table.scores(columns, W[:, columns])
        self.rows = self.loss.at(self.Z)
        self._steps = 0

    def _foresee(self, C: float) -> None:
        """Stock what the strong rule expects at this C: |v_j(C')|·C ≥ (2 − C/C')·λ₁."""
        if self.last_check is not None:
            before, check = self.last_check
            share = max(2.0 - C / before, LEAST_SHARE) if before < C else 1.0
            self.table.stock(np.flatnonzero(C * check.steepness >= share * self.l1))

    def _admit(self, C: float, steepness: np.ndarray) -> bool:
        """Stock the columns that object to their coefficient being zero; whether there were any."""
        before = len(self.table.stocked)
        self.table.stock(np.flatnonzero(C * steepness > self.l1))
        return len(self.table.stocked) > before

    def _check(self, C: float) -> Certificate:
        if self._steps > EXACT:
            self._move_to(self.W)  # scores free of what many steps have rounded
        known = self._known[1] if self._known and self._known[0] is self.rows else None
        pulled = None if known is None else C * known
        check, pulled = certify(self._problem(C), self.table, self.W, self.rows, pulled)
        check = check._replace(steepness=check.steepness / C)
        self._known = (self.rows, pulled / C)
        self.last_check = (C, check)
        return check

    def _problem(self, C: float) -> Penalised:
        """The problem at this C, kept until C changes."""
        if self._stated is None or self._stated[0] != C or self._stated[1].l1 is not self.l1:
            self._stated = (C, Penalised(self.loss, C * self.weight, self.l1, self.l2))
        return self._stated[1]

    def _value(self, C: float) -> float:
        """P at the iterate, kept until it moves."""
        problem = self._problem(C)
        if self._valued[:2] != (id(problem), id(self.rows)):
            value = primal_value(problem, self.W, self.rows.value)
            self._valued = (id(problem), id(self.rows), value)
        return self._valued[2]

    def _fit(self, check: Certificate, count: int, status: Status) -> SparseFit:
        d = self.table.shape[1] - int(self.table.intercept)
        intercept = self.W[:, d] if self.table.intercept else np.zeros(len(self.W))
        if len(intercept) > 1:
            intercept = intercept - intercept.mean()  # softmax does not see a common shift
        return SparseFit(
            self.W[:, :d].copy(),
            intercept.copy(),
            count,
            check.gradient_norm,
            check.primal,
            check.dual,
            check.gap,
            status,
        )
