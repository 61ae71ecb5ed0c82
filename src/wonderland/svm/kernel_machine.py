"""What every machine with a kernel shares: its function, its parameters, its evidence.

    f(x) = Σ_i β_i k(x_i, x) + b    summed over the support vectors, the samples with β_i ≠ 0

Shapes: support vectors (m, d), β (s, m) for s scores, b (s,).
"""

import warnings
from numbers import Integral, Real
from typing import Any

import equinox as eqx
import jax
import numpy as np
import scipy.sparse as sp

from wonderland.core.arrays import product
from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.core.evidence import Claim
from wonderland.kernels.custom import Precomputed
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.resolve import NAMES, resolve
from wonderland.shell.explain import refuse_non_finite
from wonderland.solve.box_gram import kernel_product
from wonderland.solve.box_solver import Limits

__all__ = [
    "KernelScores",
    "check_bounds",
    "check_finite_cost",
    "check_machine",
    "hyperplane",
    "kernel_of",
    "limits_of",
    "memory_of",
    "mercer_claims",
    "precision_of",
    "refuse_holes",
]

SINGLE = float(np.finfo(np.float32).eps)
LARGE = 1 << 22  # kernel values of a prediction from which float32 may be used
MEMORY_SHARE = 1 << 20  # bytes in a unit of cache_size


class KernelScores(eqx.Module):
    """Scores of one sample: a number, or one for each machine; `predict` is its batch.

    Attributes:
        kernel: k.
        vectors: Support vectors (m, d); for a precomputed kernel the columns it needs (m,).
        coef: β (s, m), or (m,) for a single score.
        intercept: b (s,), or a scalar.

    >>> from wonderland.kernels import Linear
    >>> two = KernelScores(Linear(), np.array([[1.0], [2.0]]), np.array([1.0, 1.0]), np.array(0.5))
    >>> two(np.array([2.0])).item()
    6.5
    """

    kernel: Kernel
    vectors: Any
    coef: Any
    intercept: Any

    def __call__(self, x: Any) -> Any:
        """f(x) for one sample x (d,)."""
        if isinstance(self.kernel, Precomputed):
            values = x[self.vectors]
        elif isinstance(x, jax.Array):
            vectors = jax.numpy.asarray(self.vectors)
            values = jax.vmap(lambda z: self.kernel(x, z))(vectors)
        else:
            values = self.kernel.matrix(x[None, :], self.vectors)[0]
        traced = isinstance(values, jax.Array)
        coef = jax.numpy.asarray(self.coef) if traced else self.coef
        return (product(coef, values) if traced else coef @ values) + self.intercept

    def predict(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """f for every row of X (n, d) → (n,) or (n, s)."""
        coef = np.atleast_2d(self.coef)
        if isinstance(self.kernel, Precomputed):
            values = X[:, self.vectors]
            found = np.asarray(values @ coef.T)
        else:
            found = kernel_product(self.kernel, X, self.vectors, coef.T, dtype)
        found += np.atleast_1d(self.intercept)[None, :]
        return found[:, 0] if np.ndim(self.coef) == 1 else found


def kernel_of(model: Any, X: Any, weight: np.ndarray | None) -> Kernel:
    """The kernel that the parameters of an estimator mean, on these samples.

    "scale" is 1/(d·Var X), the variance weighted as the samples are, so that a weight is a number
    of copies there too.
    """
    chosen = model.kernel
    if isinstance(chosen, str) and chosen == "precomputed":
        if X.shape[0] != X.shape[1]:
            raise InputError(
                f"Precomputed matrix must be a square matrix: X has shape {X.shape}",
                "k(x_i, x_j) of the n training samples, (n, n)",
                "Pass kernel.matrix(X) to fit, and kernel.matrix(X_new, X) to predict",
            )
        return Precomputed()
    gamma: Any = model.gamma
    if isinstance(gamma, str) and gamma == "scale":
        gamma = _scaled(X, weight)
    return resolve(chosen, X, gamma=gamma, degree=model.degree, coef0=model.coef0)


def _scaled(X: Any, weight: np.ndarray | None) -> float:
    """1/(d·Var X), 1 where X does not vary."""
    d = X.shape[1]
    if weight is None:
        weight = np.ones(X.shape[0])
    mass = float(weight.sum()) * d
    first = float(weight @ np.asarray(X.sum(axis=1)).ravel()) / mass
    if sp.issparse(X):
        square = X.multiply(X).sum(axis=1)
        variance = float(weight @ np.asarray(square).ravel()) / mass - first**2
    else:
        variance = sum(_spread(X, weight, first, i) for i in range(0, len(X), CHUNK)) / mass
    return 1.0 / (d * variance) if variance > 0 else 1.0


def _spread(X: np.ndarray, weight: np.ndarray, first: float, start: int) -> float:
    """Σω(x − first)² over a stretch of rows that fits into the cache."""
    apart = X[start : start + CHUNK] - first
    return float(np.einsum("i,ij,ij->", weight[start : start + CHUNK], apart, apart))


CHUNK = 512  # rows


def limits_of(model: Any) -> Limits:
    """When to stop, from `tol` and `max_iter`, and how large blocks may be, from the memory."""
    side = int(np.sqrt(memory_of(model) / np.dtype(np.float32).itemsize))
    block = int(np.clip(side, SMALLEST_BLOCK, LARGEST_BLOCK))
    return Limits(float(model.tol), int(model.max_iter), block=block)


SMALLEST_BLOCK, LARGEST_BLOCK = 1024, 12288


def memory_of(model: Any) -> float:
    """Bytes of kernel values that may be kept: cache_size, or what the largest block takes."""
    return max(float(model.cache_size) * MEMORY_SHARE, 4.0 * LARGEST_BLOCK**2)


def precision_of(model: Any, entries: float, beta: np.ndarray) -> Any:
    """float32 where many values are asked for and its rounding lies far below the tolerance."""
    rounding = SINGLE * float(np.linalg.norm(beta))
    return np.float32 if entries > LARGE and rounding <= 0.1 * float(model.tol) else np.float64


def check_machine(model: Any) -> None:
    """Raise an InputError for a shared parameter that cannot be used."""
    if isinstance(model.kernel, str) and model.kernel not in NAMES:
        raise InputError(
            f"kernel is {model.kernel!r}",
            f"one of {', '.join(NAMES)}, a kernel of wl.kernels or a function",
            nearest(model.kernel, NAMES),
        )
    if not (isinstance(model.kernel, str | Kernel) or callable(model.kernel)):
        raise InputTypeError(
            f"kernel is {model.kernel!r}",
            f"a name ({', '.join(NAMES)}), a kernel of wl.kernels, or a function",
            "Pass kernel='rbf'",
        )
    _check_gamma(model.gamma)
    check_bounds(model, {"tol": 0.0, "cache_size": 0.0})
    for name in ("degree", "coef0"):
        value = getattr(model, name)
        if not isinstance(value, Real) or not np.isfinite(float(value)):
            raise InputError(f"{name} is {value!r}", "a number", f"Leave {name} at its default")
    if not isinstance(model.max_iter, Integral) or model.max_iter < -1:
        raise InputError(
            f"max_iter is {model.max_iter!r}",
            "a whole number ≥ 0, or −1 for no limit",
            "Pass max_iter=-1",
        )


def _check_gamma(gamma: Any) -> None:
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise InputError(
                f"gamma is {gamma!r}",
                "'scale', 'auto' or a number ≥ 0",
                nearest(gamma, ["scale", "auto"]),
            )
        return
    if not isinstance(gamma, Real) or not 0 <= float(gamma) < np.inf:
        raise InputError(
            f"gamma is {gamma!r}",
            "'scale', 'auto' or a number ≥ 0: the inverse width of the kernel",
            "Pass gamma='scale'",
        )


def check_bounds(model: Any, above: dict[str, float], *, strict: bool = True) -> None:
    """Raise unless each named parameter is a finite number above its bound (C may be infinite)."""
    sign = ">" if strict else "≥"
    for name, bound in above.items():
        value = getattr(model, name)
        expected = f"a number {sign} {bound:g}"
        if not isinstance(value, Real) or isinstance(value, bool):
            raise InputTypeError(f"{name} is {value!r}", expected, f"Leave {name} at its default")
        number = float(value)
        inside = number > bound if strict else number >= bound
        if not (inside and (name == "C" or np.isfinite(number))):
            raise InputError(f"{name} is {value!r}", expected, f"Leave {name} at its default")


def check_finite_cost(C: float) -> None:
    """Raise for a C without limit where that promises nothing."""
    if np.isinf(C):
        raise InputError(
            "C is inf",
            "a finite number > 0: a tube of width ε around every target need not exist",
            "Pass a large C, such as C=1e6",
        )


def hyperplane(model: Any) -> np.ndarray:
    """The hyperplane of each machine (s, d); only the linear kernel has one."""
    if model.kernel != "linear" or getattr(model, "approximation", None) is not None:
        raise AttributeError("coef_ is only available when using a linear kernel, and exactly")
    model._require_fit()
    found = np.atleast_2d(model.model_.coef) @ model.support_vectors_
    plane = np.asarray(found.toarray() if sp.issparse(found) else found)
    plane.setflags(write=False)  # it is computed anew each time: writing into it would do nothing
    return plane


def refuse_holes(model: Any, X: Any) -> None:
    """A precomputed kernel with NaN is told so even where its shape is wrong as well."""
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        model._require_fit()
        if isinstance(X, np.ndarray) and X.dtype.kind == "f":
            refuse_non_finite(X)


def mercer_claims(kernel: Kernel, X: Any, rows: np.ndarray) -> list[Claim]:
    """For a kernel not known to be one: what its support vectors say, aloud where it is none."""
    from wonderland.kernels.mercer import mercer

    if kernel.psd:
        return []
    index = np.asarray(rows)[:SAMPLE]
    part = X[np.ix_(index, index)] if isinstance(kernel, Precomputed) else X[index]
    verdict = mercer(kernel, part)
    if not verdict:
        warnings.warn(
            f"The kernel is not positive semi-definite: {verdict}. What was found need not be the "
            "global optimum",
            UserWarning,
            stacklevel=6,
        )
    good = bool(verdict)
    return [Claim("positive_semidefinite", good, bound=True, holds=good, meaning=str(verdict))]


SAMPLE = 400  # support vectors on which Mercer's condition is looked at
