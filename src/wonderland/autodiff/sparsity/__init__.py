"""Which outputs depend on which inputs, read off the program itself and true for every input.

The derivative program (tangent or cotangent) of `f` is linear in its seed, so every step of it
maps sets of seed indices to sets of seed indices; propagating them through the jaxpr gives a
pattern that contains ∂f/∂x at every point, without evaluating `f` once.
"""

from .program import Detected, Unavailable, cotangent_program, detect, tangent_program

__all__ = ["Detected", "Unavailable", "cotangent_program", "detect", "tangent_program"]
