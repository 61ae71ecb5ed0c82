"""Predictions averaged over draws of a Markov chain from the posterior.

The chain moves in coordinates z, θ = θ̂ + Tz, in which Laplace's Gaussian is round, so that a short
warm-up is enough. The noise of numbers is drawn along with θ, under the prior p(σ) ∝ 1/σ:

    log p(θ, log σ | S) = −E(θ)/σ² − (Σω + q) log σ ,   E = Σ ½ω(y − f)² + ρ ,

q the number of parameters that ρ is the prior of.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.arrays import double, in_float64
from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim
from wonderland.shell.objective import Objective
from wonderland.trust.laplace import FULL, energy, predictions, whitening
from wonderland.trust.posterior_layout import Layout, names_of
from wonderland.trust.posterior_parts import (
    Classes,
    Numbers,
    Predictive,
    mixture_interval,
    objective_of,
    plain,
    pool,
    read_inside,
)
from wonderland.trust.sampling import Effort, Sample, draw
from wonderland.trust.wrapper import Task

__all__ = ["Points", "fit_chains"]

BLOCK = 1024  # rows of one block of predictions


class Points(Predictive):
    """Averages over parameters θ_1 … θ_m.

    Attributes:
        theta: (m, p).
        noise: σ² of each (m,).
        tree: The parameters of the fit, in the tree of the model.
        rest: The model without them.
        summary: Of all draws, for chains.
    """

    theta: np.ndarray
    noise: np.ndarray
    tree: Any
    rest: Any
    summary: Any = None

    def outputs(self, X: np.ndarray) -> np.ndarray:
        """f of every member (m, n, o)."""
        parts, layout = [], Layout.of(self.tree)
        for i in range(0, len(X), BLOCK):
            rows = X[i : i + BLOCK]
            padded = np.pad(rows, ((0, BLOCK - len(rows)), (0, 0)), mode="edge")
            found = in_float64(_outputs)(layout, self.rest, self.theta, padded)
            parts.append(np.asarray(found)[:, : len(rows)])
        return np.concatenate(parts, axis=1)

    def members(self, estimator: Any, X: Any, count: int) -> np.ndarray:
        """Probabilities (m, n, k), or numbers (m, n)."""
        found = self.outputs(read_inside(estimator, X))
        if not hasattr(estimator, "classes_"):
            return found[..., 0]
        if found.shape[2] == 1:
            found = np.concatenate([np.zeros_like(found), found], axis=2)
        found = np.exp(found - found.max(axis=2, keepdims=True))
        return found / found.sum(axis=2, keepdims=True)

    def classes(self, estimator: Any, X: Any) -> Classes:
        """1/m Σ_i p(y | f_i(x))."""
        return pool(self.members(estimator, X, len(self.theta)))

    def numbers(self, estimator: Any, X: Any) -> Numbers:
        """The law of total variance over members."""
        found = self.members(estimator, X, len(self.theta))
        noise = np.full(found.shape[1], self.noise.mean())
        return Numbers(found.mean(axis=0), found.var(axis=0), noise)

    def interval(self, estimator: Any, X: Any, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Quantiles of the mixture."""
        found = self.members(estimator, X, len(self.theta))
        return mixture_interval(found, self.noise[:, None], level)


@eqx.filter_jit
def _outputs(layout: Layout, rest: Any, theta: Any, X: Any) -> Any:
    def one(flat: Any) -> Any:
        return jax.vmap(lambda x: jnp.ravel(predictions(layout, rest, flat, x)))(jnp.asarray(X))

    return jax.vmap(one)(jnp.asarray(theta))


def log_posterior(position: Any, facts: Any) -> Any:
    """log p(θ, log σ | S) at z, up to a constant."""
    layout, rest, parts, numbers, best, turn, data, count = facts
    value = energy(layout, rest, parts, best + turn @ position["z"], data)
    if not numbers:
        return -value
    log_sigma = position["log_sigma"]
    return -value * jnp.exp(-2.0 * log_sigma) - count * log_sigma


def fit_chains(
    estimator: Any, task: Task, effort: Effort, members: int, seed: int
) -> tuple[Points, list[Claim]]:
    """Sample the posterior of a fitted estimator."""
    objective = objective_of(estimator, task, "nuts")
    theta, rest = objective.split()
    layout = Layout.of(theta)
    best = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(theta)]).astype(np.float64)
    if len(best) > FULL:
        raise InputError(
            f"a model of {len(best)} parameters for method='nuts'",
            f"at most {FULL}",
            'Pass method="ensemble" or "laplace"',
        )
    turn = whitening(objective)
    numbers = objective.classes == 0
    position: dict[str, Any] = {"z": np.zeros(len(best))}
    if numbers:
        position["log_sigma"] = np.asarray(0.5 * np.log(float(objective.noise)))
    found = draw(
        log_posterior,
        position,
        seed,
        data=(_facts(objective, layout, rest, best, turn),),
        effort=effort,
        parameters=lambda tree: _parameters(tree, best, turn),
        names=names_of(theta) + (["sigma"] if numbers else []),
    )
    return _points(found, objective, members), list(found.evidence.values())


def _facts(
    objective: Objective, layout: Layout, rest: Any, best: np.ndarray, turn: np.ndarray
) -> tuple[Any, ...]:
    weight = double(objective.weight)
    data = (np.asarray(objective.X), np.asarray(objective.target), weight)
    count = np.float64(weight.sum() + objective.penalised)
    parts = (objective.loss, objective.penalty)
    return layout, rest, parts, objective.classes == 0, best, turn, data, count


def _parameters(tree: Any, best: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """θ, and σ last, from the coordinates of the chain (m, n, p + 1)."""
    theta = best + tree["z"] @ turn.T
    if "log_sigma" not in tree:
        return theta
    return np.concatenate([theta, np.exp(tree["log_sigma"])[..., None]], axis=-1)


def _points(found: Sample, objective: Objective, members: int) -> Points:
    """At most `members` draws, equally spaced along the chains, for predictions."""
    theta, rest = (plain(part) for part in objective.split())
    p = sum(int(np.size(leaf)) for leaf in jax.tree.leaves(theta))
    flat = found.draws.reshape(-1, found.draws.shape[-1])
    chosen = np.unique(np.linspace(0, len(flat) - 1, min(members, len(flat))).astype(int))
    numbers = objective.classes == 0
    noise = flat[chosen, p] ** 2 if numbers else np.ones(len(chosen))
    return Points(np.ascontiguousarray(flat[chosen, :p]), noise, theta, rest, found.summary)
