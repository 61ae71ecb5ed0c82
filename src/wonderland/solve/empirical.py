"""The penalised empirical risk on JAX arrays, as an objective of the one loop.

    F(w, b) = C Σ_i ω_i ℓ(x_i·w + b, y_i) + ρ(w)

for any loss of `losses` and any penalty of `penalties`; b is not penalised. A smooth penalty counts
as part of f and is differentiated, any other is met by its proximal step. The constants are

    L = C sup ℓ'' λ_max(ZᵀΩZ) + L_ρ,   m = C inf ℓ'' λ_min(ZᵀΩZ) + m_ρ,   Z = [X, 1],

with m_ρ counted only where there is no b. Shapes: X (n, d), y (n,), parameters (p,) or (p, k) with
b in the last row, p = d (+ 1).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import in_float64, product
from wonderland.core.errors import InputError
from wonderland.losses.loss import Loss
from wonderland.penalties.norms import NoPenalty
from wonderland.penalties.penalty import Penalty
from wonderland.solve.gradient import Composite

__all__ = ["EmpiricalRisk", "empirical_risk"]

EXACT = 3000  # columns up to which the eigenvalues of the Gram matrix are computed


class EmpiricalRisk(Composite):
    """F in numbers; build it with `empirical_risk`, which measures L and m.

    Attributes:
        X: Features (n, d).
        y: Targets (n,), as the loss takes them.
        weight: C·ω (n,).
        loss: ℓ.
        penalty: ρ.
        lipschitz: L of the smooth part.
        strong_convexity: m of the smooth part.
        fit_intercept: Whether the last row of the parameters is b.
        smooth: Whether ρ belongs to the smooth part, so that nothing is left to proximal steps.
        convex: Whether F is convex.
    """

    X: jax.Array
    y: jax.Array
    weight: jax.Array
    loss: Loss
    penalty: Penalty
    lipschitz: jax.Array
    strong_convexity: jax.Array
    fit_intercept: bool = eqx.field(static=True)
    smooth: bool = eqx.field(static=True)
    convex: bool = eqx.field(static=True)

    def start(self) -> np.ndarray:
        """Zeros of the shape of the parameters: (p,), or (p, k) for the cross-entropy."""
        p = self.X.shape[1] + int(self.fit_intercept)
        if self.loss.targets != "classes":
            return np.zeros(p)
        return np.zeros((p, int(np.asarray(self.y).max()) + 1))

    def value(self, w: jax.Array) -> jax.Array:
        """f(w): the weighted losses, with ρ where that is smooth."""
        risk = jnp.sum(self.weight * self.loss.value(self._scores(w), self.y))
        return risk + self.penalty.value(self._slopes(w)) if self.smooth else risk

    def total(self, w: jax.Array) -> jax.Array:
        """F(w)."""
        value = self.value(w)
        return value if self.smooth else value + self.penalty.value(self._slopes(w))

    def gradient(self, w: jax.Array) -> jax.Array:
        """∇f(w), of the shape of w."""
        slope = self.loss.derivative(self._scores(w), self.y)
        pull = self.weight.reshape((-1,) + (1,) * (slope.ndim - 1)) * slope
        rows = product(self.X.T, pull)
        if self.smooth:
            rows = self.penalty.residual(self._slopes(w), rows)
        return jnp.concatenate([rows, pull.sum(axis=0)[None]]) if self.fit_intercept else rows

    def prox(self, w: jax.Array, step: jax.Array) -> jax.Array:
        """That of ρ on the slopes; b and a smooth ρ are left to the gradient."""
        return w if self.smooth else self._with(self.penalty.prox(self._slopes(w), step), w)

    def residual(self, w: jax.Array, gradient: jax.Array) -> jax.Array:
        """∇f + ∂ρ, entry by entry nearest to zero."""
        if self.smooth:
            return gradient
        return self._with(self.penalty.residual(self._slopes(w), self._slopes(gradient)), gradient)

    def certificate(self, gradient: jax.Array) -> jax.Array:
        """The largest entry."""
        return jnp.max(jnp.abs(gradient))

    def _slopes(self, w: jax.Array) -> jax.Array:
        return w[:-1] if self.fit_intercept else w

    def _with(self, slopes: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.concatenate([slopes, w[-1:]]) if self.fit_intercept else slopes

    def _scores(self, w: jax.Array) -> jax.Array:
        scores = product(self.X, self._slopes(w))
        if not self.fit_intercept:
            return scores
        return scores + (w[-1] if w.ndim == 1 else w[-1:])


@in_float64
def empirical_risk(
    X: Any,
    y: Any,
    loss: Loss,
    penalty: Penalty | None = None,
    *,
    C: float = 1.0,
    sample_weight: Any = None,
    fit_intercept: bool = True,
) -> EmpiricalRisk:
    """State the problem in float64 and measure its curvature; for concrete arrays.

    >>> from wonderland.losses import Logistic
    >>> from wonderland.penalties import L2
    >>> X, y = np.array([[0.0], [2.0]]), np.array([-1.0, 1.0])
    >>> problem = empirical_risk(X, y, Logistic(), L2(1.0), fit_intercept=False)
    >>> float(problem.lipschitz), float(problem.strong_convexity)
    (2.0, 1.0)
    """
    table, target = np.asarray(X, np.float64), np.asarray(y)
    if table.ndim != 2 or target.shape[:1] != table.shape[:1]:
        raise InputError(
            f"X of shape {table.shape}, y of shape {target.shape}",
            "a table (n, d) and one target for each row",
            "Reshape X with X.reshape(-1, 1), or select the rows that belong together",
        )
    penalty = NoPenalty() if penalty is None else penalty
    weight = C * (np.ones(len(table)) if sample_weight is None else np.asarray(sample_weight))
    low, high = _spectrum(table, weight, fit_intercept=fit_intercept)
    smooth = bool(np.isfinite(float(penalty.smoothness)))
    bend = float(penalty.smoothness) if smooth else 0.0
    curve = float(penalty.strong_convexity) if smooth and not fit_intercept else 0.0
    return EmpiricalRisk(
        X=jnp.asarray(table),
        y=jnp.asarray(target),
        weight=jnp.asarray(weight),
        loss=jax.tree.map(jnp.asarray, loss),
        penalty=jax.tree.map(jnp.asarray, penalty),
        lipschitz=jnp.asarray(float(loss.smoothness) * high + bend),
        strong_convexity=jnp.asarray(float(loss.strong_convexity) * low + curve),
        fit_intercept=fit_intercept,
        smooth=smooth,
        convex=bool(loss.convex and penalty.convex),
    )


def _spectrum(X: np.ndarray, weight: np.ndarray, *, fit_intercept: bool) -> tuple[float, float]:
    """Ends of the spectrum of ZᵀΩZ; with many columns 0 and a bound, the largest row sum."""
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    if min(Z.shape) > EXACT:
        rows = np.abs(Z) @ np.abs(Z.T @ weight)  # Gershgorin, without forming the matrix
        return 0.0, float(rows.max()) if len(rows) else 0.0
    rooted = Z * np.sqrt(weight)[:, None]
    tall = len(Z) >= Z.shape[1]
    values = np.linalg.eigvalsh(rooted.T @ rooted if tall else rooted @ rooted.T)
    floor = 8 * len(values) * np.finfo(float).eps * values[-1]
    return float(values[0]) if tall and values[0] > floor else 0.0, float(values[-1])
