"""Jacobians and Hessians: planned sparse against jax.jacfwd, jax.jacrev, asdex and sparsejac.

`python -m benchmarks autodiff [--only PART …] [--rounds K] [--size N] [--json]`

Everybody runs compiled and gets what they need: asdex a colouring made beforehand, sparsejac our
pattern. The sum of all entries shows that they computed the same matrix.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO

from benchmarks.measure import Case, Contender, Figure, Goal, Result, best_of, race, show
from wonderland.autodiff.plan import Plan, plan_hessian, plan_jacobian
from wonderland.core.errors import optional

PARTS = ("banded", "large", "grid", "arrow", "hessian", "plain", "planning", "colours")
Item = Result | Figure


def reaction_diffusion(u: jax.Array) -> jax.Array:
    """u'' + u (1 − u)² e^(−u) on a line: three entries a row."""
    padded = jnp.pad(u, 1)
    return padded[:-2] - 2 * u + padded[2:] + u * (1 - u) ** 2 * jnp.exp(-u)


def five_point(u: jax.Array) -> jax.Array:
    """The residual of −Δu = e^u on a square: five entries a row."""
    p = jnp.pad(u, 1)
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u + jnp.exp(u)


def arrow(x: jax.Array) -> jax.Array:
    """One output reads everything, one input is read by all outputs."""
    return jnp.concatenate([jnp.sum(jnp.sin(x))[None], x[1:] ** 2 * x[0]])


def chained_rosenbrock(x: jax.Array) -> jax.Array:
    """Σ 100 (xᵢ₊₁ − xᵢ²)² + (1 − xᵢ)²: a tridiagonal Hessian."""
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def separable(x: jax.Array) -> jax.Array:
    """Σ over groups of four neighbours, overlapping by two, of (Σ x)⁴ + Π cos x."""
    groups = jnp.stack([x[k : len(x) - 3 + k : 2] for k in range(4)])
    return jnp.sum(jnp.sum(groups, 0) ** 4 + jnp.prod(jnp.cos(groups), 0))


def brusselator(side: int, *, periodic: bool) -> Callable[[jax.Array], jax.Array]:
    """Two reacting species on a side × side grid, stored flat: six entries a row."""

    def around(w: jax.Array) -> jax.Array:
        p = jnp.pad(w, 1, mode="wrap" if periodic else "edge")
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * w

    def rates(state: jax.Array) -> jax.Array:
        u, v = state.reshape(2, side, side)
        du = 1 + u**2 * v - 4.4 * u + 10 * around(u)
        dv = 3.4 * u - u**2 * v + 10 * around(v)
        return jnp.stack([du, dv]).ravel()

    return rates


def point(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape))


def total(matrix: Any) -> float:
    """Sum of all entries, whatever holds them."""
    return float(jnp.sum(matrix.data if isinstance(matrix, BCOO) else matrix))


def ours(plan: Plan, x: jax.Array, output: Any = "bcoo") -> Contender:
    return Contender(
        f"wonderland, {plan.mode}, {plan.colours} products",
        lambda: jax.block_until_ready(plan(x, output=output)),
        total,
    )


def theirs(name: str, f: Callable[..., Any], x: jax.Array, goal: float | None = None) -> Contender:
    compiled = jax.jit(f)
    return Contender(name, lambda: jax.block_until_ready(compiled(x)), total, goal)


def with_asdex(f: Callable[..., Any], x: jax.Array, *, hessian: bool = False) -> Contender:
    asdex: Any = optional("asdex", "bench")
    colouring = (asdex.hessian_coloring if hessian else asdex.jacobian_coloring)(f, x)
    make = asdex.hessian_from_coloring if hessian else asdex.jacobian_from_coloring
    return theirs(f"asdex, {colouring.num_colors} colours", make(f, colouring), x)


def with_sparsejac(f: Callable[..., Any], x: jax.Array, plan: Plan) -> Contender:
    """Given the pattern, which it cannot find itself; functions of one flat array only."""
    sparsejac: Any = optional("sparsejac", "bench")
    entries = plan.pattern.tocoo()
    indices = jnp.asarray(np.stack([entries.row, entries.col], axis=1))
    pattern = BCOO((jnp.ones(len(indices)), indices), shape=plan.shape)
    return theirs("sparsejac, given our pattern", sparsejac.jacfwd(f, pattern), x)


def banded(size: int, rounds: int) -> Iterator[Item]:
    """(a) Reaction–diffusion, n = 4,000 and 20,000, against the dense modes and the peers."""
    for n in (4_000, size):
        x = point(n)
        plan = plan_jacobian(reaction_diffusion, x)
        contenders = [
            ours(plan, x),
            theirs("jax.jacfwd", jax.jacfwd(reaction_diffusion), x, 500.0),
            theirs("jax.jacrev", jax.jacrev(reaction_diffusion), x, 100.0),
            with_asdex(reaction_diffusion, x),
            with_sparsejac(reaction_diffusion, x, plan),
        ]
        work = f"reaction–diffusion, n = {n:,}"
        yield race(Case(work, contenders, quality_name="sum of entries"), rounds=rounds)


def large(_: int, rounds: int) -> Iterator[Item]:
    """(a) The same at n = 10⁶, where only sparse ways exist."""
    x = point(1_000_000)
    start = time.perf_counter()
    plan = plan_jacobian(reaction_diffusion, x)
    yield Figure("plan, n = 1,000,000", time.perf_counter() - start, "s")
    contenders = [ours(plan, x), with_asdex(reaction_diffusion, x)]
    work = "reaction–diffusion, n = 1,000,000"
    yield race(Case(work, contenders, quality_name="sum of entries"), rounds=rounds)


def grid(_: int, rounds: int) -> Iterator[Item]:
    """(b) A five-point residual on 300 × 300 unknowns."""
    x = point(300 * 300)

    def flat(u: jax.Array) -> jax.Array:
        return five_point(u.reshape(300, 300)).ravel()

    plan = plan_jacobian(flat, x)
    contenders = [ours(plan, x), with_asdex(flat, x), with_sparsejac(flat, x, plan)]
    work = "−Δu = e^u, 300 × 300, stored flat"
    yield race(Case(work, contenders, quality_name="sum of entries"), rounds=rounds)


def arrows(_: int, rounds: int) -> Iterator[Item]:
    """(c) An arrow: one side alone needs n products."""
    x = point(4_000)
    contenders = [
        ours(plan_jacobian(arrow, x), x),
        theirs("jax.jacfwd", jax.jacfwd(arrow), x),
        theirs("jax.jacrev", jax.jacrev(arrow), x),
        with_asdex(arrow, x),
    ]
    yield race(Case("arrow, n = 4,000", contenders, quality_name="sum of entries"), rounds=rounds)


def hessians(size: int, rounds: int) -> Iterator[Item]:
    """(d) Hessians of a chain and of a partially separable sum."""
    for name, f in (("chained Rosenbrock", chained_rosenbrock), ("separable sum", separable)):
        for n in (2_000, size):
            x = 0.1 * point(n)
            contenders = [ours(plan_hessian(f, x), x), with_asdex(f, x, hessian=True)]
            if n <= 2_000:
                contenders.insert(1, theirs("jax.hessian", jax.hessian(f), x))
            work = f"Hessian of the {name}, n = {n:,}"
            yield race(Case(work, contenders, quality_name="sum of entries"), rounds=rounds)


def plain(_: int, rounds: int) -> Iterator[Item]:
    """(e) Rⁿ → R and R → Rᵐ, where the plain modes are best and may be lost to by 5% at most."""
    x, t = point(1_000_000), jnp.asarray(0.3)

    def down(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(x) * x[::-1])

    def up(t: jax.Array) -> jax.Array:
        return jnp.sin(t * jnp.linspace(0.0, 1.0, 1_000_000))

    for work, f, at, peers in (
        ("R^1,000,000 → R", down, x, {"jax.jacrev": jax.jacrev, "jax.grad": jax.grad}),
        ("R → R^1,000,000", up, t, {"jax.jacfwd": jax.jacfwd}),
    ):
        contenders = [ours(plan_jacobian(f, at), at, "dense")]
        contenders += [theirs(name, make(f), at, 0.95) for name, make in peers.items()]
        yield race(Case(work, contenders, quality_name="sum of entries"), rounds=6 * rounds)


def planning(size: int, rounds: int) -> Iterator[Item]:
    """(f) Seconds from function to plan, nothing remembered."""
    asdex: Any = optional("asdex", "bench")
    side = int(np.sqrt(size / 2))
    for name, f, x in (
        ("reaction–diffusion", reaction_diffusion, point(size)),
        ("Brusselator", brusselator(side, periodic=False), point(2 * side * side)),
        ("arrow", arrow, point(size)),
    ):
        (mine,), _ = best_of([lambda f=f, x=x: plan_jacobian(f, x)], rounds)  # type: ignore[misc]
        yield Figure(f"plan, {name}, n = {x.size:,}", mine, "s", Goal(1.0, at_least=False))
        if f is not arrow:  # asdex makes n colours of it, in minutes
            work = [lambda f=f, x=x: asdex.jacobian_coloring(f, x)]
            (other,), _ = best_of(work, min(rounds, 2))
            yield Figure(f"  the same by asdex, {name}", other, "s")
    (mine,), _ = best_of([lambda: plan_hessian(chained_rosenbrock, point(size))], rounds)
    yield Figure(f"plan, Hessian of a chain, n = {size:,}", mine, "s", Goal(1.0, at_least=False))


def colours(_: int, __: int) -> Iterator[Item]:
    """Products needed, ours against the goal and asdex."""
    asdex: Any = optional("asdex", "bench")

    def flat(u: jax.Array) -> jax.Array:
        return five_point(u.reshape(60, 60)).ravel()

    for name, f, n, most in (
        ("tridiagonal", reaction_diffusion, 4_000, 3),
        ("five-point 60 × 60", flat, 3_600, 5),
        ("Brusselator 32 × 32, walls", brusselator(32, periodic=False), 2_048, 6),
        ("Brusselator 36 × 36, periodic", brusselator(36, periodic=True), 2_592, 6),
        # Six colours would need 32² / 6 points of each: no whole number, so there is no such goal.
        ("Brusselator 32 × 32, periodic", brusselator(32, periodic=True), 2_048, None),
        ("arrow", arrow, 1_000, 3),
    ):
        x = point(n)
        goal = None if most is None else Goal(most, at_least=False)
        mine = plan_jacobian(f, x)
        yield Figure(f"{name}, {mine.mode}", mine.colours, "products", goal)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of n colours for the arrow
            theirs_found = asdex.jacobian_coloring(f, x).num_colors
        yield Figure("  the same by asdex", theirs_found, "products")


RUNS: dict[str, Callable[[int, int], Iterator[Item]]] = dict(
    zip(PARTS, (banded, large, grid, arrows, hessians, plain, planning, colours), strict=True)
)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks autodiff", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender")
    parser.add_argument("--size", type=int, default=20_000, help="unknowns of the larger cases")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    chosen = parser.parse_args(arguments)
    began = time.perf_counter()
    results: list[Item] = []
    with jax.enable_x64(True):  # noqa: FBT003
        for part in chosen.only:
            results += RUNS[part](chosen.size, chosen.rounds)
    results.append(Figure("the whole benchmark", time.perf_counter() - began, "s"))
    show(results, as_json=chosen.json)
