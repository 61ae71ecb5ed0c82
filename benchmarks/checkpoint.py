"""Reverse mode within a memory budget: ours, √n segments, and jax.checkpoint with each policy.

    python -m benchmarks checkpoint [--case mlp transformer …] [--plot curve.svg]

Memory is what XLA says the compiled gradient takes beside arguments and results; time is that of
the same program. A peer is met at its own memory: `checkpoint(f, memory=what the peer takes)`.
Stacked cases run their layers in a `scan`; there jax.checkpoint saves memory on every device, while
XLA for CPUs merges the recomputation of unrolled layers with the first run and saves nothing.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.measure import best_of
from wonderland.autodiff.checkpoint import checkpoint
from wonderland.core.errors import InputError, optional

SLOWDOWN = 1.35  # allowed at a quarter of the memory
NOISE = 1.03  # two runs of one program differ by this much
CURVE = (0.8, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)
POLICIES = {
    "keep nothing": jax.checkpoint_policies.nothing_saveable,
    "keep dots": jax.checkpoint_policies.dots_saveable,
    "keep dots without batch": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
}

Layer = Callable[[Any, jax.Array], jax.Array]


@dataclass(frozen=True)
class Model:
    """Layers applied one after another, as a list or stacked for a scan."""

    name: str
    layer: Layer
    weights: Any
    x: jax.Array
    depth: int
    stacked: bool


@dataclass
class Entry:
    """One way to take the gradient: its memory and time."""

    name: str
    peak: int
    run: Callable[[], Any]
    seconds: float = math.inf
    met_by: str = ""  # ours at this peer's memory
    budget: int | None = None


def mlp(depth: int = 48, n: int = 2048, d: int = 256) -> tuple[Layer, list[Any], jax.Array]:
    keys = jax.random.split(jax.random.key(0), depth + 1)
    weights = [(jax.random.normal(key, (d, d)) / d**0.5, jnp.zeros((1, d))) for key in keys[1:]]
    return lambda w, x: jnp.tanh(x @ w[0] + w[1]), weights, jax.random.normal(keys[0], (n, d))


def transformer(
    depth: int = 12, n: int = 8, s: int = 128, d: int = 256, heads: int = 4
) -> tuple[Layer, list[Any], jax.Array]:
    keys = jax.random.split(jax.random.key(0), depth + 1)
    weights = [_block_weights(key, d) for key in keys[1:]]
    return partial(_block, heads), weights, jax.random.normal(keys[0], (n, s, d))


def _block_weights(key: jax.Array, d: int) -> dict[str, jax.Array]:
    shapes = dict.fromkeys(("query", "key", "value", "out"), (d, d))
    shapes |= {"wide": (d, 4 * d), "narrow": (4 * d, d)}
    keys = jax.random.split(key, len(shapes))
    found = {
        name: jax.random.normal(k, shape) / shape[0] ** 0.5
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    return found | {"first": jnp.ones((1, 1, d)), "second": jnp.ones((1, 1, d))}


def _norm(x: jax.Array, gain: jax.Array) -> jax.Array:
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5) * gain


def _block(heads: int, w: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Attention and a two-layer network, each with a skip connection (pre-norm)."""
    n, s, d = x.shape
    y = _norm(x, w["first"])

    def cut(name: str) -> jax.Array:
        return (y @ w[name]).reshape(n, s, heads, d // heads).transpose(0, 2, 1, 3)

    scores = jnp.einsum("nhid,nhjd->nhij", cut("query"), cut("key")) / (d // heads) ** 0.5
    mixed = jnp.einsum("nhij,nhjd->nhid", jax.nn.softmax(scores), cut("value"))
    x = x + mixed.transpose(0, 2, 1, 3).reshape(n, s, d) @ w["out"]
    return x + jax.nn.gelu(_norm(x, w["second"]) @ w["wide"]) @ w["narrow"]


def models(chosen: list[str]) -> Iterator[Model]:
    for name, make in (("mlp", mlp), ("transformer", transformer)):
        layer, weights, x = make()
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *weights)
        if name in chosen:
            yield Model(name, layer, weights, x, len(weights), stacked=False)
        if f"{name}-stacked" in chosen:
            yield Model(f"{name}-stacked", layer, stacked, x, len(weights), stacked=True)


CASES = ("mlp", "mlp-stacked", "transformer", "transformer-stacked")


def plain(model: Model, layer: Layer | None = None) -> Callable[..., jax.Array]:
    """The loss of the model, each layer run by `layer`."""
    run = layer or model.layer

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        if model.stacked:
            x, _ = jax.lax.scan(lambda x, w: (run(w, x), None), x, weights)
        else:
            x = reduce(lambda x, w: run(w, x), weights, x)
        return jnp.mean(x**2)

    return loss


def segments(model: Model) -> Callable[..., jax.Array]:
    """Segments of about √n layers, each run again as a whole."""
    length = _divisor(model.depth) if model.stacked else round(model.depth**0.5)

    def several(weights: Any, x: jax.Array) -> jax.Array:
        if model.stacked:
            return jax.lax.scan(lambda x, w: (model.layer(w, x), None), x, weights)[0]
        return reduce(lambda x, w: model.layer(w, x), weights, x)

    again = jax.checkpoint(several, prevent_cse=not model.stacked)

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        if model.stacked:
            cut = jax.tree.map(lambda w: w.reshape(-1, length, *w.shape[1:]), weights)
            x, _ = jax.lax.scan(lambda x, w: (again(w, x), None), x, cut)
        else:
            for start in range(0, model.depth, length):
                x = again(weights[start : start + length], x)
        return jnp.mean(x**2)

    return loss


def _divisor(depth: int) -> int:
    return min(
        (k for k in range(1, depth + 1) if depth % k == 0), key=lambda k: abs(k - depth**0.5)
    )


def peers(model: Model) -> dict[str, Callable[..., jax.Array]]:
    found = {"√n segments": segments(model)}
    for name, policy in POLICIES.items():
        layer = jax.checkpoint(model.layer, policy=policy, prevent_cse=not model.stacked)
        found[f"each layer, {name}"] = plain(model, layer)
    return found


def entry(name: str, f: Callable[..., Any], model: Model, budget: int | None = None) -> Entry:
    program = jax.jit(jax.grad(f)).lower(model.weights, model.x).compile()
    analysis = program.memory_analysis()
    assert analysis is not None, "this device does not say what memory a program takes"
    peak = analysis.temp_size_in_bytes
    return Entry(
        name,
        peak,
        lambda: jax.block_until_ready(program(model.weights, model.x)),
        budget=budget,
    )


def compare(model: Model, rounds: int) -> list[Entry]:
    """The plain gradient, peers, ours at each peer's memory, and ours along the curve."""
    loss = plain(model)
    base = entry("plain", loss, model)
    others = [entry(name, f, model) for name, f in peers(model).items()]
    ours: dict[int, Entry] = {}
    for other in others:
        other.met_by = _ours(model, loss, other.peak, base.peak, ours)
    for share in CURVE:
        _ours(model, loss, int(share * base.peak), base.peak, ours)
    entries = [base, *others, *ours.values()]
    seconds, _ = best_of([each.run for each in entries], rounds)
    for each, taken in zip(entries, seconds, strict=True):
        each.seconds = taken
    return entries


def _ours(
    model: Model, loss: Callable[..., Any], budget: int, most: int, known: dict[int, Entry]
) -> str:
    """Our gradient within a budget, if there is one; its name."""
    if budget >= 0.98 * most:
        return "plain"
    if budget not in known:
        try:
            f = checkpoint(loss, budget)
            known[budget] = entry(f"ours ≤ {budget / most:.1%}", f, model, budget)
        except InputError:
            return ""
    return known[budget].name


def report(model: Model, entries: list[Entry]) -> Iterator[str]:
    """The table of one model and its verdicts."""
    base = entries[0]
    by_name = {each.name: each for each in entries}
    yield f"{model.name}: {model.depth} layers on {jax.devices()[0].device_kind}"
    head = f"  {'':34}{'memory':>11}{'of plain':>10}{'time':>11}{'of plain':>10}"
    yield head + "  ours at this memory"
    for each in sorted(entries, key=lambda each: -each.peak):
        met = by_name.get(each.met_by)
        yield (
            f"  {each.name:34}{each.peak / 1e6:9.1f}MB{each.peak / base.peak:10.1%}"
            f"{each.seconds * 1e3:9.1f}ms{each.seconds / base.seconds:9.2f}×"
            + ("" if met is None else f"  {met.seconds / each.seconds:.2f}× its time")
        )
    yield from verdicts(entries, by_name)


def verdicts(entries: list[Entry], by_name: dict[str, Entry]) -> Iterator[str]:
    base = entries[0]
    within = all(each.peak <= each.budget for each in entries if each.budget is not None)
    yield f"  within every budget: {_told(within)}"
    quarter = [each for each in entries if each.budget == int(0.25 * base.peak)]
    slow = quarter[0].seconds / base.seconds if quarter else math.inf
    yield f"  at a quarter of the memory {slow:.2f}× the time (goal ≤ {SLOWDOWN}×): " + _told(
        slow <= SLOWDOWN
    )
    met = [(each, by_name.get(each.met_by)) for each in entries if each.met_by]
    beaten = all(mine is not None and mine.seconds <= NOISE * each.seconds for each, mine in met)
    yield f"  every peer beaten or equalled at its own memory: {_told(beaten)}"


def _told(kept: bool) -> str:  # noqa: FBT001
    return "yes" if kept else "NO"


def plot(results: dict[str, list[Entry]], path: Path) -> None:
    """The memory–time curve of every case."""
    optional("matplotlib", "plot")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0 * len(results), 4.2), layout="constrained")
    for axes, (name, entries) in zip(
        figure.subplots(1, len(results), squeeze=False)[0], results.items(), strict=True
    ):
        base = entries[0]
        ours = sorted((e.peak, e.seconds) for e in entries if e.budget is not None or e is base)
        axes.plot(
            [100 * peak / base.peak for peak, _ in ours],
            [seconds / base.seconds for _, seconds in ours],
            "o-",
            color="#0072B2",
            label="checkpoint(f, memory)",
        )
        marks = iter("s^Dv*")
        for each in entries[1:]:
            if each.budget is None:
                axes.plot(
                    100 * each.peak / base.peak,
                    each.seconds / base.seconds,
                    next(marks),
                    label=each.name,
                )
        axes.set_xlabel("memory, % of the plain gradient")
        axes.set_ylabel("time, × the plain gradient")
        axes.set_title(name)
        axes.set_ylim(0, None)
        axes.axhline(SLOWDOWN, color="#999999", linewidth=0.8, linestyle=":")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=7, frameon=False)
    figure.savefig(path, dpi=150)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks checkpoint", description=__doc__)
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw the curves (.svg, .png)")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    chosen = parser.parse_args(arguments)
    results = {}
    for model in models(chosen.case):
        results[model.name] = compare(model, chosen.rounds)
        if not chosen.json:
            print("\n".join(report(model, results[model.name])), end="\n\n", flush=True)
    if chosen.json:
        plain_entries = {
            name: [
                {key: value for key, value in asdict(each).items() if key != "run"}
                for each in entries
            ]
            for name, entries in results.items()
        }
        print(json.dumps(plain_entries, indent=2))
    if chosen.plot:
        plot(results, chosen.plot)
