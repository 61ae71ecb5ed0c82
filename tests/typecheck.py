"""The type checker of the test suite: beartype wherever an annotation can be checked at run time.

The import hook in `conftest.py` wraps every function of the inner packages with `checked`, so that
an annotation that lies is a failing test. Annotations that only a static checker understands
(`Self` in a method) leave their function as it is.
"""

from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintException

# A whole number is a float here, as PEP 484 says and every user expects.
_decorate = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(thing: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `thing` in run-time checks of its annotations, where these exist at run time."""
    try:
        return _decorate(thing)
    except BeartypeDecorHintException:
        return thing
