"""Draws from any density whose logarithm can be differentiated: the No-U-Turn sampler of BlackJAX.

    θ_1, …, θ_S ~ p(θ) ∝ exp(log_density(θ)) ,   E[g(θ)] ≈ 1/S Σ_s g(θ_s)

Warm-up adapts step and metric by Stan's windows; chains run side by side (`vmap`) in one compiled
program, in float64. What comes back is judged: split-R̂, effective sample sizes, divergences.
BlackJAX is the optional extra `sample`.

Reference: Hoffman and Gelman (2014), The No-U-Turn sampler; Vehtari et al. (2021).
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from wonderland.core.arrays import in_float64
from wonderland.core.cache import enable_compile_cache
from wonderland.core.errors import InputError, optional
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.random import key_of
from wonderland.shell.containers import wrap
from wonderland.trust import diagnostics
from wonderland.trust.posterior_layout import Layout, names_of

__all__ = ["Effort", "Sample", "Summary", "sample"]

CLOSE = 1.01  # R̂ above which chains have not mixed (Vehtari et al. 2021)
ENOUGH = 100  # effective draws wanted for each chain
DENSE = 100  # parameters up to which the metric learns correlations


class Effort(NamedTuple):
    """How long to sample.

    Attributes:
        chains: m, side by side.
        draws: Kept of each chain.
        warmup: Steps before them, in which step and metric are adapted.
        acceptance: Rate that the step is adapted to; nearer to 1 for densities hard to follow.
        scatter: Deviation of the chains' starts about the position given.
    """

    chains: int = 4
    draws: int = 1000
    warmup: int = 500
    acceptance: float = 0.8
    scatter: float = 0.1


class Summary(NamedTuple):
    """One row for each parameter.

    Attributes:
        names: (p,).
        mean: Posterior means (p,).
        sd: Posterior deviations (p,).
        mcse: Monte Carlo standard errors of the means (p,).
        q05: Quantiles (p,), and `q50`, `q95`.
        q50: Medians (p,).
        q95: (p,).
        rhat: Split-R̂ (p,).
        bulk_ess: (p,).
        tail_ess: (p,).
    """

    names: list[str]
    mean: np.ndarray
    sd: np.ndarray
    mcse: np.ndarray
    q05: np.ndarray
    q50: np.ndarray
    q95: np.ndarray
    rhat: np.ndarray
    bulk_ess: np.ndarray
    tail_ess: np.ndarray

    def __str__(self) -> str:
        columns = self._fields[1:]
        rows = [["", *columns]]
        for k, name in enumerate(self.names):
            rows.append([name, *(f"{getattr(self, column)[k]:.4g}" for column in columns)])
        widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        )

    def to_frame(self) -> Any:
        """The same as a pandas frame, one row for each parameter (extra `frames`)."""
        table = np.column_stack(self[1:])
        frame = wrap(table, "pandas", None, list(self._fields[1:]))
        return frame.set_axis(self.names, axis=0)


class Sample(NamedTuple):
    """What a sampler brought back.

    Attributes:
        draws: The position's tree, each leaf with axes (chains, draws) in front.
        summary: Means, deviations, quantiles and diagnostics of every parameter.
        evidence: Claims: rhat, bulk_ess, tail_ess, divergences, ….
    """

    draws: Any
    summary: Summary
    evidence: Evidence


def sample(
    log_density: Callable[..., Any],
    position: Any,
    key: Any = 0,
    *,
    data: tuple[Any, ...] = (),
    effort: Effort = Effort(),  # noqa: B008  # a frozen tuple
    names: list[str] | None = None,
) -> Sample:
    """Draws from exp(log_density), with the diagnostics that say whether to believe them.

    Args:
        log_density: log p(θ, *data) up to a constant, JAX-differentiable in θ.
        position: A tree of arrays: where the chains start, about `effort.scatter` apart.
        key: A JAX key, or a seed.
        data: Further arguments of log_density; other values of the same shape compile nothing.
        effort: How long to sample.
        names: Of the parameters, in the order of the flattened position.

    >>> def normal(theta):
    ...     return -0.5 * ((theta["x"] - 3.0) ** 2).sum()
    >>> found = sample(normal, {"x": np.zeros(1)}, effort=Effort(draws=300, warmup=200))
    >>> found.draws["x"].shape, bool(abs(found.summary.mean[0] - 3.0) < 0.3)
    ((4, 300, 1), True)
    """
    found = draw(log_density, position, key, data=data, effort=effort, names=names)
    warn_of(found.evidence)
    return found


def draw(
    log_density: Callable[..., Any],
    position: Any,
    key: Any,
    *,
    data: tuple[Any, ...],
    effort: Effort,
    names: list[str] | None = None,
    parameters: Callable[[Any], np.ndarray] | None = None,
) -> Sample:
    """`sample` without its warning; `parameters` maps the tree of draws to those summarised."""
    enable_compile_cache()
    _check_effort(effort)
    blackjax = optional("blackjax", "sample")
    if names is None:
        names = names_of(position)
    elif parameters is None:
        _check_names(names, position)
    draws, diverged, steps, layout = _run(blackjax, log_density, position, key, data, effort)
    tree = layout.unflatten(draws)
    if parameters is not None:
        draws = tree = parameters(tree)
    summary = _summarise(draws, list(names))
    return Sample(tree, summary, Evidence(claims_of(summary, diverged, steps, effort)))


@in_float64
def _run(
    blackjax: Any, log_density: Any, position: Any, key: Any, data: Any, effort: Effort
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Layout]:
    """Draws (m, n, p), divergences (m, n), leapfrog steps (m, n), and the way back to the tree."""
    wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), position)
    layout = Layout.of(wide)
    flat = layout.flat(wide)
    first = log_density(wide, *data)
    if jnp.shape(first) != () or not bool(jnp.isfinite(first)):
        raise InputError(
            f"log_density at the position is {np.asarray(first)}",
            "one finite number",
            "Start where the density is not zero, and sum over samples inside log_density",
        )
    start, chains = jax.random.split(_key(key))
    away = jax.random.normal(start, (effort.chains, len(flat)), jnp.float64)
    begin = flat[None, :] + effort.scatter * away
    keys = jax.random.split(chains, effort.chains)
    # Numbers enter as arrays: another value compiles nothing.
    data = jax.tree.map(lambda leaf: jnp.asarray(leaf) if _is_number(leaf) else leaf, data)
    size = (effort.draws, effort.warmup)
    dense = len(flat) <= DENSE
    rate = jnp.asarray(effort.acceptance, jnp.float64)
    out = _program(blackjax, log_density, layout, size, dense, rate, begin, keys, data)
    draws, diverged, steps = (np.asarray(part) for part in out)
    return draws, diverged, steps, layout


@eqx.filter_jit
def _program(
    blackjax: Any,
    log_density: Any,
    layout: Layout,
    size: tuple[int, int],
    dense: bool,  # noqa: FBT001  # static: part of what is compiled
    rate: jax.Array,
    begin: jax.Array,
    keys: jax.Array,
    data: Any,
) -> Any:
    """Warm-up and draws of all chains; compiled once for a density and shapes."""
    draws, warmup = size
    keep_nothing = blackjax.adaptation.base.get_filter_adapt_info_fn()

    def density(flat: jax.Array) -> Any:
        return log_density(layout.unflatten(flat), *data)

    def chain(key: jax.Array, position: jax.Array) -> Any:
        adapting, drawing = jax.random.split(key)
        adaptation = blackjax.window_adaptation(
            blackjax.nuts,
            density,
            is_mass_matrix_diagonal=not dense,
            target_acceptance_rate=rate,
            adaptation_info_fn=keep_nothing,
        )
        (state, parameters), _ = adaptation.run(adapting, position, num_steps=warmup)
        kernel = blackjax.nuts(density, **parameters)

        def step(state: Any, key: jax.Array) -> Any:
            state, info = kernel.step(key, state)
            return state, (state.position, info.is_divergent, info.num_integration_steps)

        return jax.lax.scan(step, state, jax.random.split(drawing, draws))[1]

    return jax.vmap(chain)(keys, begin)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, float | np.ndarray | np.generic)


def _key(key: Any) -> jax.Array:
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    return key_of(key)


def _check_effort(effort: Effort) -> None:
    for name, least in (("chains", 1), ("draws", 2 * diagnostics.FEWEST), ("warmup", 20)):
        value = getattr(effort, name)
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least:
            raise InputError(
                f"effort.{name} is {value!r}", f"a whole number ≥ {least}", "Pass Effort()"
            )
    if not 0 < effort.acceptance < 1:
        raise InputError(
            f"effort.acceptance is {effort.acceptance!r}",
            "a rate between 0 and 1",
            "Pass 0.8, or 0.95 for densities hard to follow",
        )


def _check_names(names: list[str], position: Any) -> None:
    count = sum(int(np.size(leaf)) for leaf in jax.tree.leaves(position))
    if len(names) != count:
        raise InputError(
            f"{len(names)} names for {count} parameters",
            "one name for each",
            "Leave names out to have them made from the position",
        )


def _summarise(draws: np.ndarray, names: list[str]) -> Summary:
    low, middle, high = np.quantile(draws, [0.05, 0.5, 0.95], axis=(0, 1))
    return Summary(
        names=names,
        mean=draws.mean(axis=(0, 1)),
        sd=draws.std(axis=(0, 1), ddof=1),
        mcse=diagnostics.mean_error(draws),
        q05=low,
        q50=middle,
        q95=high,
        rhat=diagnostics.rhat(draws),
        bulk_ess=diagnostics.bulk_ess(draws),
        tail_ess=diagnostics.tail_ess(draws),
    )


def claims_of(
    summary: Summary, diverged: np.ndarray, steps: np.ndarray, effort: Effort
) -> list[Claim]:
    """The diagnostics of a sample, each with the bound that recommendations give."""
    worst = summary.names[int(np.argmax(summary.rhat))] if summary.names else ""
    least = ENOUGH * effort.chains
    return [
        Claim.fact("solver", "NUTS", f"BlackJAX, {effort.chains} chains of {effort.draws} draws"),
        Claim.below(
            "rhat",
            float(np.max(summary.rhat, initial=1.0)),
            CLOSE,
            f"largest rank-normalised split-R̂ of {len(summary.names)} parameters: {worst}",
        ),
        Claim.above(
            "bulk_ess",
            float(np.min(summary.bulk_ess, initial=np.inf)),
            least,
            "smallest number of independent draws that locate a mean as well",
        ),
        Claim.above(
            "tail_ess",
            float(np.min(summary.tail_ess, initial=np.inf)),
            least,
            "smallest number of independent draws that locate a 5 % or 95 % quantile as well",
        ),
        Claim.below(
            "divergences",
            int(diverged.sum()),
            0,
            "draws at which the integrator lost the density: a region may have been missed",
        ),
        Claim.fact("leapfrog_steps", float(steps.mean()), "gradients for each draw, on average"),
    ]


_ADVICE = {
    "rhat": "The chains have not mixed: raise effort.draws and effort.warmup, or check the model.",
    "bulk_ess": "Posterior means are known to few digits: raise effort.draws.",
    "tail_ess": "Posterior quantiles are known to few digits: raise effort.draws.",
    "divergences": "The step was too long somewhere: raise effort.acceptance to 0.95 or more, or "
    "put the parameters on scales where the density is round.",
}


def warn_of(evidence: Evidence, *, stacklevel: int = 3) -> None:
    """One warning that says which diagnostics failed and what to do."""
    failing = [claim for claim in evidence.failing if claim.name in _ADVICE]
    if failing:
        said = "; ".join(
            f"{claim.name} = {claim.value:.4g} (bound {claim.bound})" for claim in failing
        )
        advice = " ".join(_ADVICE[claim.name] for claim in failing)
        warnings.warn(f"{said}. {advice}", ConvergenceWarning, stacklevel=stacklevel)
