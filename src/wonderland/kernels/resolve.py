"""From what a user passes (a name, an object, a function) to a kernel, once, at the door."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.kernels.custom import Function, Precomputed, wrap_function
from wonderland.kernels.inner import Cosine, Linear, Polynomial, Sigmoid
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.stationary import Gaussian, Laplace, Matern

__all__ = ["NAMES", "resolve", "width"]

NAMES = (
    "linear",
    "poly",
    "polynomial",
    "rbf",
    "gaussian",
    "laplacian",
    "matern",
    "sigmoid",
    "cosine",
    "precomputed",
)


def resolve(
    kernel: Any,
    X: Any = None,
    *,
    gamma: Any = None,
    degree: Any = 3,
    coef0: Any = 1.0,
    parameters: Mapping[str, Any] | None = None,
) -> Kernel:
    """The kernel that is meant.

    Args:
        kernel: A name as in scikit-learn, a `Kernel`, or a function (see `wrap_function`).
        X: (n, d): gives "scale" and "auto" their values and tries a function.
        gamma: A number; "scale": 1/(d·Var X); "auto" or None: 1/d.
        degree: Of "poly".
        coef0: Of "poly" and "sigmoid".
        parameters: Further arguments of a function.

    >>> resolve("rbf", np.array([[0.0], [2.0]]), gamma="scale").gamma.item()
    1.0
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        return _named(kernel, X, gamma, degree, coef0)
    if callable(kernel):
        if not parameters:
            return wrap_function(kernel, X)
        given = dict(parameters)
        function = wrap_function(lambda x, z: kernel(x, z, **given), X)
        return Function(function.function, function.pairs)
    raise InputTypeError(
        f"kernel is {kernel!r}",
        f"a name ({', '.join(NAMES)}), a kernel of wl.kernels, or a function",
        "Pass kernel='rbf'",
    )


def _named(name: str, X: Any, gamma: Any, degree: Any, coef0: Any) -> Kernel:
    if name not in NAMES:
        raise InputError(f"kernel is {name!r}", f"one of {', '.join(NAMES)}", nearest(name, NAMES))
    if name in ("poly", "polynomial"):
        return Polynomial(degree, width(gamma, X), coef0)
    if name in ("rbf", "gaussian"):
        return Gaussian(width(gamma, X))
    if name == "laplacian":
        return Laplace(width(gamma, X))
    if name == "sigmoid":
        return Sigmoid(width(gamma, X), coef0)
    plain = {"linear": Linear, "cosine": Cosine, "precomputed": Precomputed, "matern": Matern}
    return plain[name]()


def width(gamma: Any, X: Any) -> Any:
    """γ as a number."""
    if gamma is None or (isinstance(gamma, str) and gamma == "auto"):
        return 1.0 / X.shape[1]
    if isinstance(gamma, str):
        if gamma != "scale":
            raise InputError(
                f"gamma is {gamma!r}", "'scale', 'auto' or a number ≥ 0", "Pass gamma='scale'"
            )
        variance = _variance(X)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if not np.isreal(gamma) or np.ndim(gamma) or not 0 <= float(gamma) < np.inf:
        raise InputError(f"gamma is {gamma!r}", "'scale', 'auto' or a number ≥ 0", "Pass gamma=0.1")
    return gamma


def _variance(X: Any) -> float:
    """Var over all entries, zeros of a sparse table included."""
    if sp.issparse(X):
        return float(X.multiply(X).mean() - X.mean() ** 2)
    return float(np.var(X, dtype=np.float64))
