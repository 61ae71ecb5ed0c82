"""Laplace's method: the posterior of any model as a Gaussian at its maximum.

    p(θ | S) ≈ N(θ̂, σ²H⁻¹) ,   H = Σ_i ω_i J_iᵀ Λ_i J_i + ∇²ρ(θ̂)

with J_i = ∂f_θ(x_i)/∂θ (o, p) and Λ_i = ∂²ℓ/∂f² (o, o): the Hessian itself where f is linear in θ,
the generalised Gauss–Newton matrix, which is never indefinite, where it is not. Predictions are
those of the model linearised at θ̂, for which the Gaussian is right:

    f(x) ~ N(f_θ̂(x), σ² J(x) H⁻¹ J(x)ᵀ) .

Shapes: n rows, o outputs, p parameters. Reference: MacKay (1992); Immer, Korzepa and Bauer (2021),
Improving predictions of Bayesian neural nets via local linearization.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from wonderland.core.arrays import in_float64
from wonderland.core.errors import InputError
from wonderland.shell.objective import Objective
from wonderland.trust.posterior_layout import Layout
from wonderland.trust.posterior_parts import plain

__all__ = ["Gaussian", "curvature", "energy", "gaussian_of", "predictions", "whitening"]

FULL = 3000  # parameters up to which H is whole
ENTRIES = 1 << 22  # of the Jacobian of one block of rows
BLOCK = 1024  # rows of one block of predictions
SINGULAR = 1e-12  # of the scaled H: below it nothing determines a direction


class Gaussian(NamedTuple):
    """N(θ̂, RRᵀ).

    Attributes:
        theta: θ̂ (p,).
        root: R (p, r); (p,) for a diagonal.
        tree: θ̂ in the tree of the model.
        rest: The model without its parameters.
        noise: σ²; 1 for classes.
        classes: How many; 0 for numbers.
        rank: Directions that data or prior determine.
        effective: γ = tr(H⁻¹ Σ ωJᵀΛJ): parameters that the data determine.
        freedom: Σω − γ.
        condition: Of H, its diagonal scaled to one.
        slope: Largest |∂/∂θ| of the log posterior over Σω: zero at its maximum.
        structure: "full" or "diagonal".
    """

    theta: np.ndarray
    root: np.ndarray
    tree: Any
    rest: Any
    noise: float
    classes: int
    rank: int
    effective: float
    freedom: float
    condition: float
    slope: float
    structure: str

    def moments(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, o) and covariance (n, o, o) of f at each row."""
        means, spreads, layout = [], [], Layout.of(self.tree)
        for i in range(0, len(X), BLOCK):
            rows = X[i : i + BLOCK]
            padded = np.pad(rows, ((0, BLOCK - len(rows)), (0, 0)), mode="edge")
            mean, spread = _moments(layout, self.rest, self.theta, self.root, padded)
            means.append(mean[: len(rows)])
            spreads.append(spread[: len(rows)])
        return np.concatenate(means), np.concatenate(spreads)

    def draw(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """θ (count, p) from the Gaussian."""
        if self.root.ndim == 1:
            return self.theta + generator.normal(size=(count, len(self.theta))) * self.root
        return self.theta + generator.normal(size=(count, self.root.shape[1])) @ self.root.T


def gaussian_of(objective: Objective, structure: str = "auto") -> Gaussian:
    """Laplace's approximation at the parameters of an objective.

    Args:
        objective: From the estimator.
        structure: "full", "diagonal", or "auto": full up to 3000 parameters.
    """
    if not objective.smooth:
        raise InputError(
            "a penalty with kinks (the ℓ₁ norm) for Laplace's method",
            "a log posterior with second derivatives",
            'Pass l1_ratio=0 to the estimator, or method="nuts" or "ensemble"',
        )
    theta, rest = (plain(part) for part in objective.split())
    p = sum(int(np.size(leaf)) for leaf in jax.tree.leaves(theta))
    if structure == "auto":
        structure = "full" if p <= FULL else "diagonal"
    data, prior, slope = curvature(objective, diagonal=structure == "diagonal")
    noise = float(objective.noise)
    mass = float(np.sum(objective.weight))
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(theta)]).astype(np.float64)
    root, rank, condition = _root(data + prior)
    held = data * root**2 if root.ndim == 1 else (data @ root) * root
    effective = float(held.sum())
    return Gaussian(
        theta=flat,
        root=np.sqrt(noise) * root,
        tree=theta,
        rest=rest,
        noise=noise,
        classes=objective.classes,
        rank=rank,
        effective=effective,
        freedom=max(mass - effective, 1.0),
        condition=condition,
        slope=float(np.max(np.abs(slope), initial=0.0)) / mass,
        structure=structure,
    )


def _root(H: np.ndarray) -> tuple[np.ndarray, int, float]:
    """R with RRᵀ = H⁻¹ (of what H determines), its rank, the condition of the scaled H."""
    diagonal = np.diag(H) if H.ndim == 2 else H
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    if H.ndim == 1:
        known = diagonal > 0
        return np.where(known, scale, 0.0), int(known.sum()), 1.0
    values, vectors = np.linalg.eigh(H * np.outer(scale, scale))
    kept = values > SINGULAR * max(float(values[-1]), 0.0)
    root = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
    low = float(values[0])
    return root, int(kept.sum()), float(values[-1] / low) if low > 0 else np.inf


def whitening(objective: Objective) -> np.ndarray:
    """A square T (p, p) in whose coordinates θ = θ̂ + Tz the posterior is about round."""
    data, prior, _ = curvature(objective)
    H = data + (prior if objective.smooth else 0.0)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-8 * max(float(np.diag(H).max()), 1e-300)))
    L = np.linalg.cholesky(H * np.outer(scale, scale) + 1e-6 * np.eye(len(H)))
    return (
        float(np.sqrt(objective.noise))
        * scale[:, None]
        * solve_triangular(L, np.eye(len(H)), lower=True, trans="T")
    )


def curvature(
    objective: Objective, *, diagonal: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ ωJᵀΛJ, ∇²ρ, both (p, p) or their diagonals (p,), and the gradient of the whole (p,)."""
    theta, rest = objective.split()
    layout = Layout.of(theta)
    p = sum(int(np.prod(shape)) for shape in layout.shapes)
    n, outputs = len(objective.target), max(objective.classes, 1)
    block = int(np.clip(ENTRIES // max(p * outputs, 1), 1, max(n, 1)))
    count = -(-n // block)
    short = count * block - n

    def cut(values: np.ndarray, mode: Any) -> np.ndarray:
        rows = np.pad(values, ((0, short), *((0, 0),) * (values.ndim - 1)), mode=mode)
        return rows.reshape(count, block, *values.shape[1:])

    X, target = (cut(np.asarray(part), "edge") for part in (objective.X, objective.target))
    weight = cut(np.asarray(objective.weight, np.float64), "constant")
    parts = (objective.loss, objective.penalty)
    run = in_float64(_curvature)
    return tuple(
        np.asarray(part) for part in run(layout, rest, parts, diagonal, theta, X, target, weight)
    )  # type: ignore[return-value]


def predictions(layout: Layout, rest: Any, flat: Any, x: Any) -> Any:
    """f_θ(x) for one sample and one vector of parameters."""
    return eqx.combine(layout.unflatten(flat), rest)(x)


def energy(
    layout: Layout, rest: Any, parts: tuple[Any, Any], flat: Any, data: tuple[Any, Any, Any]
) -> Any:
    """Σ ωℓ + ρ: minus the log posterior times σ²."""
    loss, penalty = parts
    X, target, weight = data
    model = eqx.combine(layout.unflatten(flat), rest)
    losses = jax.vmap(lambda x, y: loss(model(x), y))(X, target)
    total = jnp.sum(weight * losses)
    return total if penalty is None else total + penalty(model)


@eqx.filter_jit
def _curvature(
    layout: Layout,
    rest: Any,
    parts: tuple[Any, Any],
    diagonal: bool,  # noqa: FBT001  # static: part of what is compiled
    theta: Any,
    X: Any,
    target: Any,
    weight: Any,
) -> Any:
    loss, penalty = parts
    flat = layout.flat(jax.tree.map(jnp.asarray, theta))

    def one(x: Any, y: Any) -> Any:
        z = predictions(layout, rest, flat, x)
        J = jax.jacrev(lambda at: jnp.ravel(predictions(layout, rest, at, x)))(flat)
        bend = jax.hessian(lambda at: loss(at.reshape(z.shape), y))(jnp.ravel(z))
        slope = jax.grad(lambda at: loss(at, y))(z)
        return J, bend, jnp.ravel(slope)

    def add(total: Any, block: Any) -> Any:
        rows, targets, omega = block
        J, bend, slope = jax.vmap(one)(rows, targets)
        bent = jnp.einsum("nop,nos->nsp", J, bend * omega[:, None, None])
        if diagonal:
            H = jnp.einsum("nsp,nsp->p", bent, J)
        else:
            H = bent.reshape(-1, len(flat)).T @ J.reshape(-1, len(flat))
        return (total[0] + H, total[1] + jnp.einsum("nop,no->p", J, slope * omega[:, None])), None

    shape = (len(flat),) if diagonal else (len(flat), len(flat))
    zero = (jnp.zeros(shape), jnp.zeros(len(flat)))
    (data, slope), _ = jax.lax.scan(add, zero, (jnp.asarray(X), jnp.asarray(target), weight))
    prior = jnp.zeros(shape)
    if penalty is not None:

        def rho(at: Any) -> Any:
            return penalty(eqx.combine(layout.unflatten(at), rest))

        slope = slope + jax.grad(rho)(flat)
        prior = _diagonal(rho, flat) if diagonal else jax.hessian(rho)(flat)
    return data, prior, slope


def _diagonal(function: Any, flat: Any) -> Any:
    """The diagonal of a Hessian that is nearly one: exact where it is one."""
    ones = jnp.ones_like(flat)
    return jax.jvp(jax.grad(function), (flat,), (ones,))[1]


@in_float64
def _moments(layout: Layout, rest: Any, theta: Any, root: Any, X: Any) -> Any:
    mean, spread = _moments_program(layout, rest, theta, root, X)
    return np.asarray(mean), np.asarray(spread)


@eqx.filter_jit
def _moments_program(layout: Layout, rest: Any, theta: Any, root: Any, X: Any) -> Any:
    def one(x: Any) -> Any:
        def f(at: Any) -> Any:
            return jnp.ravel(predictions(layout, rest, at, x))

        J = jax.jacrev(f)(jnp.asarray(theta))
        turned = J * root[None, :] if root.ndim == 1 else J @ root
        return f(jnp.asarray(theta)), turned @ turned.T

    return jax.vmap(one)(jnp.asarray(X))
