"""What a person reads when something is wrong: what came, what was expected, what to do."""

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType

__all__ = ["InputError", "InputTypeError", "NotFiniteError", "StoreError", "nearest", "optional"]


def _three_parts(came: str, expected: str, todo: str) -> str:
    return f"{came.rstrip('.')}. Expected {expected.rstrip('.')}. {todo.rstrip('.')}."


class InputError(ValueError):
    """An input that cannot be used, told in three parts.

    >>> print(InputError("alpha is -1.0", "a number ≥ 0", "Pass alpha=0 for no penalty"))
    alpha is -1.0. Expected a number ≥ 0. Pass alpha=0 for no penalty.
    """

    def __init__(self, came: str, expected: str, todo: str) -> None:
        super().__init__(_three_parts(came, expected, todo))
        self.came, self.expected, self.todo = came, expected, todo

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        # Exceptions pickle by their message alone; process pools need all three parts back.
        return type(self), (self.came, self.expected, self.todo)


class InputTypeError(InputError, TypeError):
    """An input of the wrong kind: also a TypeError, as Python users expect."""


class StoreError(InputError):
    """A saved file that is truncated, altered, or of another kind."""


class NotFiniteError(ArithmeticError):
    """Data summed to NaN or infinity; the shell, which knows names, says where it came from."""


def nearest(name: object, known: Iterable[str]) -> str:
    """Say which known names resemble the one that came.

    >>> nearest("cholesk", ["cholesky", "svd", "lsqr"])
    "Did you mean 'cholesky'"
    """
    options = list(known)
    close = difflib.get_close_matches(str(name), options, n=3, cutoff=0.4)
    listed = " or ".join(repr(option) for option in close or options)
    return f"Did you mean {listed}" if close else f"Choose {listed}"


def optional(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say in one sentence how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        raise ImportError(
            f'This needs the optional package {top}: pip install "wonderland[{extra}]"'
        ) from error
