"""Points where a function has no derivative, and which slope is taken there.

At a kink the one-sided slopes along a direction v differ,

    D⁺ = lim_{t↓0} (f(x + t v) − f(x)) / t   ≠   D⁻ = lim_{t↓0} (f(x) − f(x − t v)) / t,

and any program that returns a number there has chosen one. This library chooses **the shortest
subgradient** (the element of least norm of the subdifferential), the one choice that vanishes at
every minimum, so that "gradient zero" keeps its meaning:

    function          at                    subdifferential        choice     JAX's primitive
    |x|               x = 0                 [−1, 1]                0          1
    relu(x)           x = 0                 [0, 1]                 0          0 (relu), ½ (max)
    hinge(m)          m = 1                 [−1, 0]                0          −½ (max)
    max(a, b)         a = b                 {(s, 1−s)}             (½, ½)     (½, ½)
    max of x₁ … x_n   k of them tied        simplex of the tied    1/k each   1/k each

`wonderland.autodiff.subgradients` holds these functions with that choice, in both modes and
whatever the version of JAX. `kinks` finds where a given program sits on a kink, and
*measures* which slope it takes there.

Reference: F. Clarke, Optimization and Nonsmooth Analysis, 1983, chapter 2.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from wonderland.autodiff.probe import Dual, Site, bind, is_inexact, named, probed
from wonderland.autodiff.programs import names
from wonderland.autodiff.widen import widened

__all__ = ["Kink", "KinkWarning", "Kinks", "found_kinks", "kinks", "one_sided"]

_SMOOTH = names(
    "add sub mul neg dot_general reduce_sum reduce_prod exp exp2 expm1 sin cos tan tanh sinh cosh "
    "logistic erf erfc integer_pow square broadcast_in_dim reshape transpose squeeze expand_dims "
    "slice dynamic_slice dynamic_update_slice gather scatter scatter_add scatter-add concatenate "
    "pad rev copy copy_p convert_element_type cumsum cumprod cumlogsumexp conv_general_dilated "
    "iota select_n stop_gradient real imag complex conj fft atan atan2 asinh split and or not xor "
    "optimization_barrier random_bits random_wrap random_unwrap threefry2x32 "
    "reduce_precision cholesky triangular_solve add_any is_finite device_put"
)
_COMPARES = frozenset(["lt", "le", "gt", "ge", "eq", "ne"])
_JUMPS = frozenset(["sign", "floor", "ceil", "round"])
_OF_ONE_NUMBER = names("abs sign floor ceil round relu relu6 absolute hinge max min")
_SHRINK = 4.0  # a kink keeps its gap when the step shrinks; curvature loses three quarters of it


class KinkWarning(UserWarning):
    """The point sits on a kink: the derivative is one of several slopes."""


class Kink(NamedTuple):
    """One equation that sits on a kink.

    Attributes:
        primitive: The operation, or the function that carries its own derivative rule.
        kind: "kink" (two slopes), "jump" (two values), "branch" (two formulas meet), "singular"
            (an infinite or undefined slope).
        entries: How many of its entries are there.
        entry: One of them, counted in the flattened output.
        left: D⁻ there, along the random direction that was tried (for functions of one number
            such as |x|, along increasing x).
        right: D⁺ there.
        taken: The slope the program took.
        line: Where it is in the source.
        path: The loops and functions around it.
    """

    primitive: str
    kind: str
    entries: int
    entry: int
    left: float
    right: float
    taken: float
    line: str
    path: tuple[str, ...]

    @property
    def choice(self) -> str:
        """What the program chose, in words."""
        if self.kind == "branch":
            return "the slope of the branch taken"
        if self.kind == "singular":
            return "no finite slope"
        if self.kind == "jump":
            return f"slope {self.taken:.4g}, though the value jumps"
        share = (self.taken - self.left) / (self.right - self.left)
        return f"{abs(round(1 - share, 6)):g} × left + {abs(round(share, 6)):g} × right"

    def __str__(self) -> str:
        place = f" at {self.line}" if self.line else ""
        entries = "1 entry" if self.entries == 1 else f"{self.entries} entries"
        return f"{self.primitive}{place}: {self.kind} in {entries}, takes {self.choice}"


class Kinks(Sequence[Kink]):
    """What `kinks` found: a sequence of `Kink`, empty where every step is smooth.

    Attributes:
        visible: Whether f as a whole has two slopes (or none) there; a kink may cancel or be
            multiplied by zero on its way to the output, and then only the sequence tells of it.
    """

    def __init__(self, found: Sequence[Kink], *, visible: bool) -> None:
        self._found, self.visible = tuple(found), visible

    def __getitem__(self, index: Any) -> Any:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Kink]:
        return iter(self._found)

    def __repr__(self) -> str:
        if not self._found:
            return "No kinks: every step of the program is smooth here."
        seen = "visible in f" if self.visible else "not visible in f"
        count = "1 kink" if len(self) == 1 else f"{len(self)} kinks"
        return "\n".join([f"{count}, {seen}:", *(f"  {kink}" for kink in self)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = [{**kink._asdict(), "path": list(kink.path), "choice": kink.choice} for kink in self]
        return {"visible": self.visible, "kinks": rows}


def kinks(
    f: Callable[..., Any],
    x: Any,
    *args: Any,
    tolerance: float | None = None,
    warn: bool = True,
    seed: int = 0,
) -> Kinks:
    """Say whether x sits on a kink of f, in which operation, and which slope is taken there.

    Every operation y = g(a) of the program is run with the tangent ȧ of one random direction and
    with its two one-sided slopes (g(a ± h ȧ) − g(a)) / ±h; it is on a kink where they differ by
    a gap that stays when h shrinks. Loops, branches and nested functions are followed.

    Args:
        f: Any JAX function f(x, *args).
        x: Where: any pytree of real numbers.
        *args: Further arguments, held constant.
        tolerance: h, how near to a kink counts as on it, relative to the size of each entry;
            None takes 1e-7 where the program can be run in float64 and 1e-3 otherwise.
        warn: Whether a visible kink raises a `KinkWarning`.
        seed: Of the random direction.

    >>> import jax.numpy as jnp
    >>> found = kinks(lambda x: jnp.abs(x).sum(), jnp.array([1.0, 0.0]), warn=False)
    >>> found[0].primitive, found[0].kind, found[0].entry, found.visible
    ('abs', 'kink', 1, True)
    >>> len(kinks(lambda x: jnp.abs(x).sum(), jnp.array([1.0, 2.0])))
    0
    """
    with widened(f, x, args) as (closed, at, _):
        found, visible = found_kinks(closed, at, tolerance, seed=seed)
    result = Kinks(found, visible=visible)
    if warn and visible and found:
        warnings.warn(_sentence(found), KinkWarning, stacklevel=2)
    return result


def _sentence(found: Sequence[Kink]) -> str:
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"x sits on a kink of f: {found[0]}{more}. The gradient is one of several slopes."


def found_kinks(
    closed: jex.ClosedJaxpr,
    at: Sequence[jax.Array],
    tolerance: float | None = None,
    *,
    seed: int = 0,
) -> tuple[list[Kink], bool]:
    """The kinks of a program at a point, and whether its outputs show any."""
    rng = np.random.default_rng(seed)
    along = [jnp.asarray(rng.normal(size=part.shape), part.dtype) for part in at]
    double = all(part.dtype == jnp.float64 for part in at)
    step = tolerance if tolerance is not None else 1e-7 if double else 1e-3
    sites, run = probed(closed, _KinkProbe(step))
    whole = jex.jaxpr_as_fun(closed)
    _, _, table = jax.jit(run)(at, along)
    found = [
        _kink(site, row) for site, row in zip(sites, np.asarray(table), strict=True) if row[0] > 0
    ]
    if not found:
        return [], False
    sides = jax.jit(lambda: _sides(whole, at, _unit(along, at), step))()
    gaps = [bool(np.asarray(side.apart).any()) for side in sides]
    return found, any(gaps)


def _kink(site: Site, row: np.ndarray) -> Kink:
    count, index, left, right, taken, jump = (float(number) for number in row)
    name = site.equation.primitive.name
    kind = "kink"
    if name in _COMPARES:
        kind = "branch"
    elif not np.isfinite(taken) or not np.isfinite(left) or not np.isfinite(right):
        kind = "singular"
    elif name in _JUMPS or jump > 0:
        kind = "jump"
    return Kink(
        site.primitive, kind, int(count), int(index), left, right, taken, site.line, site.path
    )


class _Sides(NamedTuple):
    """One-sided slopes of an output, which entries have two, and which have two values."""

    left: jax.Array
    right: jax.Array
    apart: jax.Array
    jumps: jax.Array


def one_sided(
    g: Callable[[jax.Array], jax.Array], x: jax.Array, v: jax.Array, step: float
) -> tuple[jax.Array, jax.Array]:
    """D⁻ and D⁺ of g at x along v, by differences of length `step`."""
    ((left, right),) = _slopes(lambda z: [g(z)], [x], [v], [g(x)], step)
    return left, right


def _sides(
    g: Callable[..., Any], at: Sequence[Any], along: Sequence[Any], step: float
) -> list[_Sides]:
    """The one-sided slopes of every real output of g at `at` along `along`."""
    centre = g(*at)
    far = _slopes(g, at, along, centre, step)
    near = _slopes(g, at, along, centre, step / _SHRINK)
    return [
        _compared(*pair, value, step)
        for pair, value in zip(zip(far, near, strict=True), centre, strict=True)
        if is_inexact(value) and not jnp.iscomplexobj(value)
    ]


def _slopes(
    g: Callable[..., Any], at: Sequence[Any], along: Sequence[Any], centre: Any, h: float
) -> list[tuple[Any, Any]]:
    def moved(sign: float) -> Any:
        return g(*(a + jnp.asarray(sign * h, a.dtype) * v for a, v in zip(at, along, strict=True)))

    return [
        ((y - minus) / h, (plus - y) / h) if is_inexact(y) else (None, None)
        for minus, y, plus in zip(moved(-1), centre, moved(1), strict=True)
    ]


def _compared(far: Any, near: Any, value: jax.Array, step: float) -> _Sides:
    """A gap is a kink where it stays, and a jump where it grows, as the step shrinks."""
    (far_left, far_right), (left, right) = far, near
    wide, narrow = jnp.abs(far_right - far_left), jnp.abs(right - left)
    floor = 30 * jnp.finfo(value.dtype).eps * jnp.maximum(jnp.abs(value), 1e-300) * _SHRINK / step
    slope = jnp.abs(left) + jnp.abs(right)
    apart = (narrow > 0.6 * wide) & (narrow > floor) & (narrow > 1e-4 * slope)
    undefined = jnp.isfinite(value) & ~(jnp.isfinite(left) & jnp.isfinite(right))
    jumps = (slope > 3 * (jnp.abs(far_left) + jnp.abs(far_right))) & (slope > floor)
    return _Sides(left, right, apart | undefined | jumps, jumps)


class _KinkProbe(NamedTuple):
    """Measures (count, index, D⁻, D⁺, slope taken, jump?) of each equation that may have kinks."""

    step: float

    @property
    def width(self) -> int:
        return 6

    def watches(self, equation: jex.JaxprEqn) -> bool:
        """Everything that is not known to be smooth."""
        return equation.primitive.name not in _SMOOTH

    def measure(self, equation: jex.JaxprEqn, inputs: list[Dual], outputs: list[Dual]) -> jax.Array:
        """The entries on a kink, counted, with the slopes of the first."""
        if equation.primitive.name in _COMPARES:
            return self._compare(inputs)
        moving = [k for k, (_, tangent) in enumerate(inputs) if tangent is not None]
        values = [value for value, _ in inputs]

        def g(*new: Any) -> list[Any]:
            full = list(values)
            for k, value in zip(moving, new, strict=True):
                full[k] = value
            return bind(equation, full)

        at = [values[k] for k in moving]
        along = _unit([inputs[k][1] for k in moving], at)
        if named(equation) in _OF_ONE_NUMBER and len(moving) == 1:
            along = [jnp.abs(along[0])]
        sides = _sides(g, at, along, self.step)
        slopes = jax.jvp(g, at, along)[1] if _has_forward(equation) else [None] * len(outputs)
        real = [(s, v) for s, (v, _) in zip(slopes, outputs, strict=True) if _is_real(v)]
        rows = [_row(side, *pair) for side, pair in zip(sides, real, strict=True)]
        if not rows:
            return jnp.full(self.width, -jnp.inf)
        table = jnp.stack(rows)
        return table[jnp.argmax(table[:, 0])]

    def _compare(self, inputs: list[Dual]) -> jax.Array:
        """Two sides equal and moving apart: the outcome of the comparison is about to change."""
        (a, da), (b, db) = inputs
        da, db = (0.0 if t is None else t for t in (da, db))
        if not _is_real(a):
            return jnp.full(self.width, -jnp.inf)
        size = jnp.maximum(1, jnp.maximum(jnp.abs(a), jnp.abs(b)))
        drift = jnp.abs(jnp.asarray(da) - jnp.asarray(db))
        on = (jnp.abs(a - b) <= self.step * size) & (drift > 0)
        on = jnp.ravel(on)
        none = jnp.zeros(())
        return jnp.stack([on.sum() * 1.0, jnp.argmax(on) * 1.0, none, none, none, none])


def _unit(tangents: Sequence[Any], at: Sequence[Any]) -> list[Any]:
    """Tangents of largest entry one, each times the size of its entry: ties stay ties."""
    top = jnp.max(jnp.stack([jnp.max(jnp.abs(t), initial=0) for t in tangents]))
    top = jnp.where((top > 0) & jnp.isfinite(top), top, 1)
    return [
        (t / top).astype(a.dtype) * jnp.maximum(1, jnp.abs(a)).astype(a.dtype)
        for t, a in zip(tangents, at, strict=True)
    ]


def _row(side: _Sides, slope: Any, value: jax.Array) -> jax.Array:
    apart = side.apart
    if (
        slope is not None
    ):  # ∞ · 0, as in the derivative of √ at 0 along a direction that stands still
        apart = apart | (jnp.isfinite(value) & ~jnp.isfinite(slope))
    apart = jnp.ravel(apart)
    if apart.size == 0:
        return jnp.full(6, -jnp.inf)
    index = jnp.argmax(apart)
    taken = jnp.full(apart.shape, jnp.nan) if slope is None else jnp.ravel(slope)
    picked = [jnp.ravel(part)[index] for part in (side.left, side.right, taken, side.jumps)]
    numbers = [apart.sum(), index, *picked]
    return jnp.stack([jnp.asarray(number, jnp.result_type(float)) for number in numbers])


def _is_real(value: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(value), jnp.floating)


def _has_forward(equation: jex.JaxprEqn) -> bool:
    return not equation.primitive.name.startswith("custom_vjp_call")
