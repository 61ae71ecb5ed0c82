"""A trace as a picture: when each value is born, last read and freed, and the bytes alive."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wonderland.core.errors import optional

if TYPE_CHECKING:
    from wonderland.autodiff.trace import Trace

__all__ = ["draw"]

LABELLED = 40  # values whose names still fit
# Colours that stay apart for colour-blind readers (Okabe and Ito, 2008).
COLOURS = {
    "": "#0072B2",
    "value": "#0072B2",
    "forward": "#56B4E9",
    "stored": "#D55E00",
    "tangent": "#009E73",
    "adjoint": "#009E73",
}
UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0))


def draw(trace: "Trace", path: str | Path | None) -> Any:
    """Lifetimes of the values of the outermost program, above the memory they take together."""
    optional("matplotlib", "plot")
    from matplotlib.figure import Figure

    steps = [step for step in trace if step.depth == 0]
    height = min(2.6 + 0.22 * len(steps), 10.0)
    figure = Figure(figsize=(8.0, height), layout="constrained")
    lives, memory = figure.subplots(
        2, 1, sharex=True, gridspec_kw={"height_ratios": [max(height - 2.0, 1.0), 1.4]}
    )
    _lifetimes(lives, steps, trace)
    _memory(memory, steps)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _lifetimes(axes: Any, steps: Sequence[Any], trace: "Trace") -> None:
    ends = _ends(steps, trace)
    seen = set()
    for row, step in enumerate(steps):
        kind = "stored" if step.stored else step.phase
        label = None if kind in seen else kind or "values"
        seen.add(kind)
        axes.barh(row, ends[row] - row, left=row, height=0.7, color=COLOURS[kind], label=label)
    if len(steps) <= LABELLED:
        names = [f"{', '.join(step.outputs[:2])} = {step.primitive}" for step in steps]
        axes.set_yticks(range(len(steps)), names, fontsize=7)
    else:
        axes.set_ylabel("value, in order of birth")
    axes.invert_yaxis()
    axes.set_title(f"{trace.kind} trace: from where a value is computed to its last use")
    axes.title.set_fontsize(9)
    if len(seen) > 1:
        axes.legend(fontsize=8, frameon=False)
    _plain_frame(axes)


def _ends(steps: Sequence[Any], trace: "Trace") -> list[int]:
    """For each step the place after the last one that reads what it computes."""
    last = {name: row + 1 for row, step in enumerate(steps) for name in step.operands}
    results = set(trace.results.values())
    return [
        max(
            [len(steps) if name in results else last.get(name, row + 1) for name in step.outputs],
            default=row + 1,
        )
        for row, step in enumerate(steps)
    ]


def _memory(axes: Any, steps: Sequence[Any]) -> None:
    alive = [step.alive for step in steps]
    unit, factor = next((u for u in UNITS if max(alive, default=0) >= u[1]), UNITS[-1])
    heights = [amount / factor for amount in alive]
    axes.fill_between(
        range(len(steps) + 1), [*heights, heights[-1]], step="post", color="#999999", alpha=0.6
    )
    axes.set_ylabel(f"{unit} alive", fontsize=8)
    axes.set_xlabel("step", fontsize=8)
    axes.set_ylim(0, None)
    axes.set_xlim(0, len(steps))
    axes.tick_params(labelsize=7)
    _plain_frame(axes)


def _plain_frame(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
