"""Which columns, rows or both may share one product, so that every entry can still be read off."""

from .acyclic import Acyclic, acyclic
from .one_sided import Colouring, colour_columns, is_valid
from .star import colour_symmetric, is_star
from .two_sided import TwoSided, colour_both

__all__ = [
    "Acyclic",
    "Colouring",
    "TwoSided",
    "acyclic",
    "colour_both",
    "colour_columns",
    "colour_symmetric",
    "is_star",
    "is_valid",
]
