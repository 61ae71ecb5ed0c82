"""Is this derivative right? Automatic differentiation against three independent witnesses.

    central differences   (f(x + h e_j) − f(x − h e_j)) / 2h, extrapolated; error estimated
    complex step          Im f(x + i h e_j) / h; exact to rounding, where f is analytic
    symbolic              SymPy differentiates the formula; 30 digits, for small programs

Everything is compared entry by entry, each difference with the error the witness itself expects,
and in float64 whatever the program is used in. Where they part ways each step of the program is
tried alone, and the one whose rule is wrong is named.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from wonderland.autodiff.blame import blamed
from wonderland.autodiff.check_report import FAILING, Entry, GradientCheck
from wonderland.autodiff.kinks import found_kinks
from wonderland.autodiff.widen import coarsest, widened
from wonderland.autodiff.witnesses import Witnesses
from wonderland.core.errors import InputError

__all__ = ["Entry", "GradientCheck", "check_gradient"]

_BEYOND = 10.0  # times the expected error, from which on two numbers differ


def check_gradient(
    f: Callable[..., Any],
    x: Any,
    *args: Any,
    most: int = 100,
    symbolic: bool | None = None,
    seed: int = 0,
) -> GradientCheck:
    """Check the derivative JAX gives of f at x, entry by entry, against independent methods.

    Args:
        f: Any JAX function f(x, *args) with real outputs.
        x: Where: any pytree of real numbers.
        *args: Further arguments, held constant.
        most: How many inputs, and how many outputs, are looked at; chosen at random beyond.
        symbolic: Whether SymPy is asked; None asks it for small programs if it is installed.
        seed: Of the random choices.

    >>> import jax
    >>> import jax.numpy as jnp
    >>> bool(check_gradient(lambda x: jnp.sin(x).sum(), jnp.array([0.3, 1.0])))
    True
    >>> @jax.custom_jvp
    ... def cube(x):
    ...     return x**3
    >>> _ = cube.defjvp(lambda at, along: (cube(*at), 2 * at[0] ** 2 * along[0]))  # wrong: 3 x²
    >>> report = check_gradient(lambda x: cube(x).sum(), jnp.array([0.3, 1.0]))
    >>> report.holds, report.blame[0].primitive
    (False, 'cube')
    """
    with widened(f, x, args) as (closed, at, moves):
        _real_only(closed, at)
        rng = np.random.default_rng(seed)
        witnesses = Witnesses(closed, at, coarsest(closed), rng, most)
        notes = witnesses.left_out()
        entries = _judged(_entries(witnesses, _names(moves), notes, symbolic=symbolic), witnesses)
        if any(entry.verdict != "agrees" or _noisy(entry) for entry in entries):
            notes += [f"x sits on a kink: {kink}" for kink in found_kinks(closed, at, seed=seed)[0]]
        differing = any(entry.verdict in FAILING for entry in entries)
        blame = blamed(closed, at, eps=witnesses.eps, seed=seed) if differing else []
    return GradientCheck(entries, blame, notes)


def _entries(
    witnesses: Witnesses, names: Sequence[str], notes: list[str], *, symbolic: bool | None
) -> list[Entry]:
    """Every method's table, read entry by entry; reasons for absent ones go to the notes."""
    w = witnesses
    reverse, forward = w.either(w.reverse, notes), w.either(w.forward, notes)
    given = forward if reverse is None else reverse
    if given is None:
        raise _no_derivative(notes)
    slope, error = w.central()
    step, formula = w.either(w.complex_step, notes), w.formula(notes, symbolic=symbolic)
    scale = w.scale(given)

    def pick(table: np.ndarray | None, i: int, j: int) -> float | None:
        return None if table is None else float(table[i, j])

    return [
        Entry(
            input=names[int(w.columns[j])],
            output=f"[{w.rows[i]}]" if w.y.size > 1 else "",
            reverse=pick(reverse, i, j),
            forward=pick(forward, i, j),
            central=float(slope[i, j]),
            central_error=float(error[i, j]),
            complex_step=pick(step, i, j),
            symbolic=pick(formula, i, j),
            scale=float(scale[i, j]),
            rounding=30 * w.eps * float(scale[i, j]),
            verdict="",
        )
        for i, j in np.ndindex(scale.shape)
    ]


def _judged(entries: list[Entry], witnesses: Witnesses) -> list[Entry]:
    """Verdicts; a difference at a kink is none if the slope is one of those there."""
    verdicts = [entry._replace(verdict=_verdict(entry)) for entry in entries]
    if all(entry.verdict not in FAILING for entry in verdicts):
        return verdicts
    left, right = (side.ravel() for side in witnesses.one_sided())
    return [
        entry._replace(verdict="kink") if _between(entry, *sides) else entry
        for entry, *sides in zip(verdicts, left, right, strict=True)
    ]


def _verdict(entry: Entry) -> str:
    ad, near = entry.given, _BEYOND * entry.rounding
    if not np.isfinite(ad):
        return "not finite"
    if entry.forward is not None and not abs(ad - entry.forward) <= near:
        return "modes differ"
    exact = [value for value in (entry.complex_step, entry.symbolic) if value is not None]
    exact = [value for value in exact if np.isfinite(value)]
    if any(abs(ad - value) > near for value in exact):
        return "differs"
    allowed = _BEYOND * entry.central_error + entry.rounding
    if abs(ad - entry.central) <= allowed:
        return "undecided" if _noisy(entry) and not exact else "agrees"
    return "agrees" if exact else "differs"


def _noisy(entry: Entry) -> bool:
    """Whether the differences do not settle: rounding, or a jump."""
    return entry.central_error > 0.01 * entry.scale + _BEYOND * entry.rounding


def _between(entry: Entry, left: float, right: float) -> bool:
    """Whether the two one-sided slopes differ, and the one that was given lies between them."""
    gap = abs(right - left)
    if entry.verdict != "differs" or not gap >= 1e-3 * (abs(left) + abs(right)):
        return False
    return min(left, right) - 1e-3 * gap <= entry.given <= max(left, right) + 1e-3 * gap


def _no_derivative(notes: Sequence[str]) -> InputError:
    return InputError(
        f"f has {'; '.join(notes)}",
        "a function JAX can differentiate in at least one mode",
        "Give it a rule with jax.custom_jvp, or take the operation out",
    )


def _real_only(closed: jex.ClosedJaxpr, at: Sequence[jax.Array]) -> None:
    outputs = [out.aval.dtype for out in closed.jaxpr.outvars]
    kinds = [part.dtype for part in at] + outputs
    floating = [kind for kind in outputs if jnp.issubdtype(kind, jnp.floating)]
    if floating and not any(jnp.issubdtype(kind, jnp.complexfloating) for kind in kinds):
        return
    raise InputError(
        f"f maps {', '.join(str(part.dtype) for part in at)} to {', '.join(map(str, outputs))}",
        "a real function of real numbers",
        "Take real and imaginary part apart before and after",
    )


def _names(moves: Any) -> list[str]:
    """A name for every number of x, in the order of flattening."""
    found = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(moves)[0]:
        stem = jax.tree_util.keystr(path)
        for index in np.ndindex(jnp.shape(leaf)):
            found.append(f"{stem}{list(index) if index else ''}" or "x")
    return found
