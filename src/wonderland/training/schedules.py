"""How the learning rate changes: η_t as a factor of η_0, t the number of updates so far, T of all.

    constant        1
    piecewise       1, then 1/10 from T/2, then 1/100 from 3T/4
    inverse         1 / (1 + ct)
    inverse_root    1 / √(1 + ct)
    cosine          f + (1 − f)(1 + cos(πt/T)) / 2
    one_cycle       from 1/25 up to 1 by a cosine until 0.3 T, then down to 1/250 000
    warmup          t/w up to w, then another schedule of the rest

A schedule is a frozen module of numbers: they cross into the compiled program as arrays.

References: Loshchilov and Hutter, SGDR (2017); Smith and Topin, Super-convergence (2018).
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from wonderland.core.errors import InputError, InputTypeError, nearest

__all__ = [
    "Constant",
    "Cosine",
    "Inverse",
    "InverseRoot",
    "OneCycle",
    "Piecewise",
    "Rate",
    "Schedule",
    "Warmup",
    "resolve",
]


class Schedule(eqx.Module):
    """η_t / η_0."""

    @abstractmethod
    def __call__(self, step: Any, total: Any) -> Any:
        """The factor of update number `step` (from 0) of `total`."""

    def rate(self, learning_rate: Any, step: Any, total: Any) -> Any:
        """η_t."""
        return learning_rate * self(step, total)


class Constant(Schedule):
    """η_0 for ever."""

    def __call__(self, step: Any, total: Any) -> Any:
        """1."""
        return jnp.ones(())


class Piecewise(Schedule):
    """Falls at stated fractions of the run: by default ÷10 at half of it, ÷100 at three quarters.

    >>> [round(float(Piecewise()(t, 100)), 3) for t in (0, 49, 50, 75)]
    [1.0, 1.0, 0.1, 0.01]
    """

    boundaries: tuple[Any, ...] = (0.5, 0.75)
    factors: tuple[Any, ...] = (0.1, 0.01)

    def __call__(self, step: Any, total: Any) -> Any:
        """The factor of the last boundary behind us."""
        factor = jnp.ones(())
        for boundary, value in zip(self.boundaries, self.factors, strict=True):
            factor = jnp.where(step >= boundary * total, value, factor)
        return factor


class Inverse(Schedule):
    """1 / (1 + ct): the classical condition Σ η = ∞, Σ η² < ∞ of stochastic approximation.

    >>> float(Inverse(1.0)(3, 10))
    0.25
    """

    c: Any = 1e-3

    def __call__(self, step: Any, total: Any) -> Any:
        """1 / (1 + ct)."""
        return 1.0 / (1.0 + self.c * step)


class InverseRoot(Schedule):
    """1 / √(1 + ct).

    >>> float(InverseRoot(1.0)(3, 10))
    0.5
    """

    c: Any = 1e-3

    def __call__(self, step: Any, total: Any) -> Any:
        """1 / √(1 + ct)."""
        return 1.0 / jnp.sqrt(1.0 + self.c * step)


class Cosine(Schedule):
    """Half a wave from 1 to `final`.

    >>> [round(float(Cosine()(t, 10)), 3) for t in (0, 5, 10)]
    [1.0, 0.5, 0.0]
    """

    final: Any = 0.0

    def __call__(self, step: Any, total: Any) -> Any:
        """f + (1 − f)(1 + cos πt/T)/2."""
        return self.final + (1.0 - self.final) * _half_wave(step / total)


class OneCycle(Schedule):
    """Up to η_0 and down again, each by half a cosine wave.

    >>> [round(float(OneCycle()(t, 10)), 3) for t in (0, 3, 10)]
    [0.04, 1.0, 0.0]
    """

    peak: Any = 0.3
    first: Any = 1.0 / 25.0
    last: Any = 1.0 / 250_000.0

    def __call__(self, step: Any, total: Any) -> Any:
        """From `first` to 1 at `peak`·T to `last`."""
        t = step / total
        up = 1.0 + (self.first - 1.0) * _half_wave(t / self.peak)
        down = self.last + (1.0 - self.last) * _half_wave((t - self.peak) / (1.0 - self.peak))
        return jnp.where(t < self.peak, up, down)


class Warmup(Schedule):
    """Rises in proportion to t for the first steps, then follows another schedule.

    Attributes:
        steps: How long, in updates, or as a fraction of the run when below one.
        then: The schedule of what remains.

    >>> [float(Warmup(4)(t, 10)) for t in (0, 1, 3, 9)]
    [0.25, 0.5, 1.0, 1.0]
    """

    steps: Any = 0.05
    then: Schedule = Constant()

    def __call__(self, step: Any, total: Any) -> Any:
        """(t + 1)/w for t < w."""
        w = jnp.where(jnp.asarray(self.steps) < 1, self.steps * total, self.steps)
        # The factor of update t is that of its end, so that the first update does something.
        rise = (step + 1) / jnp.maximum(w, 1.0)
        rest = self.then(jnp.maximum(step - w, 0), jnp.maximum(total - w, 1.0))
        return jnp.where(step < w, jnp.minimum(rise, 1.0), rest)


class Rate(Schedule):
    """A function of the step that gives the learning rate itself, as optax's schedules do."""

    function: Callable[[Any], Any] = eqx.field(static=True)

    def __call__(self, step: Any, total: Any) -> Any:
        """The function's own value."""
        return jnp.asarray(self.function(step))

    def rate(self, learning_rate: Any, step: Any, total: Any) -> Any:
        """The function's own value, whatever η_0."""
        return self(step, total)


NAMES: dict[str, Callable[[], Schedule]] = {
    "constant": Constant,
    "piecewise": Piecewise,
    "inverse": Inverse,
    "inverse_root": InverseRoot,
    "cosine": Cosine,
    "one_cycle": OneCycle,
    "warmup": Warmup,
    "warmup_cosine": lambda: Warmup(then=Cosine()),
}


# Those that do not ask how long the run is.
ENDLESS = (Constant, Inverse, InverseRoot, Rate)


def resolve(schedule: Any) -> Schedule:
    """The schedule of that name, the object itself, or a function step → learning rate.

    >>> resolve("cosin")
    Traceback (most recent call last):
    ...
    wonderland.core.errors.InputError: schedule is 'cosin'. ... Did you mean 'cosine' or ...
    """
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, str):
        if schedule not in NAMES:
            raise InputError(
                f"schedule is {schedule!r}", "the name of a schedule", nearest(schedule, NAMES)
            )
        return NAMES[schedule]()
    if callable(schedule):
        return Rate(schedule)
    raise InputTypeError(
        f"schedule is {schedule!r}",
        "a name, an object of wonderland.training, or a function of the step",
        'Pass schedule="cosine"',
    )


def _half_wave(t: Any) -> Any:
    return 0.5 * (1.0 + jnp.cos(np.pi * jnp.clip(t, 0.0, 1.0)))
