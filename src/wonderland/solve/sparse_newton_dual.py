"""Primal and dual values of sparse-penalty fits, and the certificate over all columns.

    P(W) = Σ_i ω_i ℓ(z_i) + Σ_j λ₁_j‖W_j‖₁ + ½ Σ_j λ₂_j‖W_j‖²
    D(u) = −Σ_i ω_i ℓ*(u_i) − Σ_cj r*(v_cj) ,    v = Σ_i ω_i u_i x_iᵀ ,

    r*(v) = max(|v| − λ₁, 0)² / (2λ₂),  or 0 for |v| ≤ λ₁ and ∞ beyond, where λ₂ = 0 .

P ≥ D for every W and u (Fenchel); the difference at the returned pair is the gap. Columns with
λ₁ = λ₂ = 0, the intercept, need v = 0. C is part of ω here. Shapes: u (n, k), v, W (k, p), λ (p,).
"""

from typing import NamedTuple

import numpy as np

from wonderland.solve.sparse_newton_loss import RowLoss, Rows
from wonderland.solve.sparse_newton_table import Table

__all__ = ["Certificate", "Penalised", "certify", "dual_estimate", "dual_value", "primal_value"]


class Penalised(NamedTuple):
    """The stated problem: loss, weights C·ω (n,), λ₁ (p,), λ₂ (p,)."""

    loss: RowLoss
    weight: np.ndarray
    l1: np.ndarray
    l2: np.ndarray


class Certificate(NamedTuple):
    """How far an iterate is from the optimum, over all columns.

    Attributes:
        primal: P(W).
        dual: D of the dual point made from the slopes of W.
        gradient_norm: max_cj distance of −∂_cj (smooth part) to ∂ λ₁|W_cj|.
        steepness: max_c |v_cj| (p,), divided by C where the caller does so.
    """

    primal: float
    dual: float
    gradient_norm: float
    steepness: np.ndarray

    @property
    def gap(self) -> float:
        """P − D, which rounding may turn slightly negative: then 0."""
        return max(self.primal - self.dual, 0.0)


def primal_value(problem: Penalised, W: np.ndarray, losses: np.ndarray) -> float:
    """P from the losses of the rows (n,)."""
    size = np.abs(W).sum(axis=0) @ problem.l1 + 0.5 * (W * W).sum(axis=0) @ problem.l2
    return float(problem.weight @ losses + size)


def dual_value(problem: Penalised, slope: np.ndarray, pulled: np.ndarray) -> float:
    """The best D(θu) over θ = 1 and the θ ≤ 1 that brings every |v| under its λ₁."""
    l1, l2 = problem.l1, problem.l2
    v = np.abs(pulled).max(axis=0, initial=0.0)
    lasso = (l1 > 0) & (v > l1)
    theta = _shrink(problem, v)
    shrunk = _dual_at(problem, slope, pulled, theta)
    if np.any(lasso & (l2 == 0)) or theta == 1.0 or not np.any(l2 > 0):
        return shrunk
    return max(shrunk, _dual_at(problem, slope, pulled, 1.0))


def dual_estimate(problem: Penalised, rows: Rows, Z: np.ndarray, pulled: np.ndarray) -> float:
    """D(θu) for u = ∇ℓ(z) without logarithms, to second order in 1 − θ.

    ℓ*(u) = uᵀz − ℓ(z) there, with derivative z.
    """
    theta = 1.0
    if np.any((problem.l1 > 0) & (problem.l2 == 0)):
        theta = _shrink(problem, np.abs(pulled).max(axis=0, initial=0.0))
    turned = np.einsum("nk,nk->n", rows.slope, Z)
    losses = rows.value - theta * turned  # −ℓ*(u) + (1 − θ) uᵀz
    if theta < 1.0:
        losses -= 0.5 * (1.0 - theta) ** 2 * problem.loss.stretch(rows)
    return float(problem.weight @ losses) - _excess(problem, pulled, theta)


def _shrink(problem: Penalised, steepness: np.ndarray) -> float:
    """The largest θ ≤ 1 with θ|v| ≤ λ₁ wherever λ₁ > 0."""
    lasso = (problem.l1 > 0) & (steepness > problem.l1)
    return float(np.min(problem.l1[lasso] / steepness[lasso], initial=1.0))


def _dual_at(problem: Penalised, slope: np.ndarray, pulled: np.ndarray, theta: float) -> float:
    """D(θu), for θu within the constraints."""
    losses = problem.weight @ problem.loss.conjugate(theta * slope)
    return float(-losses) - _excess(problem, pulled, theta)


def _excess(problem: Penalised, pulled: np.ndarray, theta: float) -> float:
    """Σ max(θ|v| − λ₁, 0)²/(2λ₂) over the columns with λ₂ > 0."""
    quadratic = problem.l2 > 0
    over = np.maximum(theta * np.abs(pulled[:, quadratic]) - problem.l1[quadratic], 0.0)
    return 0.5 * float(((over * over) / problem.l2[quadratic]).sum())


def certify(
    problem: Penalised, table: Table, W: np.ndarray, rows: Rows, pulled: np.ndarray | None = None
) -> tuple[Certificate, np.ndarray]:
    """Both values, the distance to optimality, and Σ ω u xᵀ (k, p) over the whole table.

    One pass; none where `pulled` is known and is a point of the dual as it is.
    """
    k = len(W)
    slope = problem.loss.balanced(rows.slope, problem.weight) if table.intercept else rows.slope
    if pulled is None or table.intercept:
        both = np.hstack([rows.slope, slope]) if table.intercept else slope
        pulls = table.pull(problem.weight[:, None] * both)
        pulled, fair = pulls[:k], pulls[-k:]
    else:
        fair = pulled
    check = Certificate(
        primal_value(problem, W, rows.value),
        dual_value(problem, slope, fair),
        float(_distance(problem, W, pulled).max(initial=0.0)),
        np.abs(pulled).max(axis=0),
    )
    return check, pulled


def _distance(problem: Penalised, W: np.ndarray, pulled: np.ndarray) -> np.ndarray:
    """|∂_cj + λ₁ sign W_cj| on the support, max(|∂_cj| − λ₁, 0) off it (k, p)."""
    gradient = pulled + problem.l2 * W
    off = np.maximum(np.abs(gradient) - problem.l1, 0.0)
    return np.where(W != 0, np.abs(gradient + problem.l1 * np.sign(W)), off)
