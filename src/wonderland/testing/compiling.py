"""The trace budget: what was compiled once is not compiled again."""

from collections.abc import Callable
from typing import Any

import jax

__all__ = ["nothing_compiles_again"]

_events: list[str] = []
_listening: list[bool] = []


def _count() -> int:
    """How many compilations this process has made since the first call of this function."""
    if not _listening:
        # One listener for the life of the process: not every JAX can take a listener off again.
        jax.monitoring.register_event_duration_secs_listener(_hear)
        _listening.append(True)
    return len(_events)


def _hear(event: str, *_: Any, **__: Any) -> None:
    if "backend_compile" in event:
        _events.append(event)


def nothing_compiles_again(first: Callable[[], Any], *others: Callable[[], Any]) -> None:
    """After `first` has run, none of the `others` makes XLA compile anything.

    Args:
        first: A call that may compile.
        others: The same call with other data of the same shape, or another hyperparameter value.

    >>> import jax.numpy as jnp
    >>> double = jax.jit(lambda x: 2 * x)
    >>> nothing_compiles_again(lambda: double(1.0), lambda: double(3.0))
    >>> nothing_compiles_again(lambda: double(1.0), lambda: double(jnp.ones(7)))
    Traceback (most recent call last):
    ...
    AssertionError: call 1 after the first compiled ... programs; none is needed
    """
    _count()
    jax.block_until_ready(first())
    for position, other in enumerate(others, start=1):
        before = _count()
        jax.block_until_ready(other())
        if compiled := _count() - before:
            raise AssertionError(
                f"call {position} after the first compiled {compiled} programs; none is needed"
            )
