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

__all__ = ["Certificate", "Penalised", "certify", "dual_value", "primal_value"]


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
    theta = float(np.min(l1[lasso] / v[lasso], initial=1.0))
    shrunk = _dual_at(problem, slope, pulled, theta)
    if np.any(lasso & (l2 == 0)) or theta == 1.0 or not np.any(l2 > 0):
        return shrunk
    return max(shrunk, _dual_at(problem, slope, pulled, 1.0))


def _dual_at(problem: Penalised, slope: np.ndarray, pulled: np.ndarray, theta: float) -> float:
    """D(θu), for θu within the constraints."""
    quadratic = problem.l2 > 0
    over = np.maximum(theta * np.abs(pulled[:, quadratic]) - problem.l1[quadratic], 0.0)
    penalty = 0.5 * float(((over * over) / problem.l2[quadratic]).sum())
    return float(-(problem.weight @ problem.loss.conjugate(theta * slope))) - penalty


def certify(problem: Penalised, table: Table, W: np.ndarray, rows: Rows) -> Certificate:
    """Both values and the distance to optimality; two products with the table."""
    pulled = table.pull(problem.weight[:, None] * rows.slope)
    slope, fair = rows.slope, pulled
    if table.intercept:
        slope = problem.loss.balanced(rows.slope, problem.weight)
        fair = table.pull(problem.weight[:, None] * slope)
    return Certificate(
        primal_value(problem, W, rows.value),
        dual_value(problem, slope, fair),
        float(_distance(problem, W, pulled).max(initial=0.0)),
        np.abs(pulled).max(axis=0),
    )


def _distance(problem: Penalised, W: np.ndarray, pulled: np.ndarray) -> np.ndarray:
    """|∂_cj + λ₁ sign W_cj| on the support, max(|∂_cj| − λ₁, 0) off it (k, p)."""
    gradient = pulled + problem.l2 * W
    off = np.maximum(np.abs(gradient) - problem.l1, 0.0)
    return np.where(W != 0, np.abs(gradient + problem.l1 * np.sign(W)), off)
