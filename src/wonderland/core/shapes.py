"""The letters of shapes, one table for every docstring and annotation.

    n samples       d features      t outputs (targets)     p = d + 1 with the intercept
    k classes       h heads         v source variables      m basis functions

Annotations in public signatures use jaxtyping with these letters, `Float[Array, "n d"]`; tests
check them with beartype, users pay nothing.
"""

from typing import TypeAlias

import jax
import numpy as np
from jaxtyping import Float

__all__ = ["Columns", "Matrix", "Outputs", "Scalar", "Vector"]

AnyArray: TypeAlias = np.ndarray | jax.Array

Matrix: TypeAlias = Float[AnyArray, "n d"]
Outputs: TypeAlias = Float[AnyArray, "n t"]
Vector: TypeAlias = Float[AnyArray, " n"]
Columns: TypeAlias = Float[AnyArray, "d t"]
Scalar: TypeAlias = Float[AnyArray, ""]
