"""Kernel and penalty chosen by the exact derivative of the leave-one-out error.

With M = SKS + αI, P = M⁻¹, b = P Sy and c = diag P the weighted leave-one-out errors are b/c, their
mean square is L = Σ (b_i/c_i)² / Σω, and for any change dM

    dL · Σω = ⟨G, dM⟩,   G = P diag(v) P − (P u) bᵀ,   u = 2b/c²,   v = 2b²/c³ ,

so that ∂L/∂α = tr G and ∂L/∂θ = Σ (SGS)_ij ∂k_θ(x_i, x_j)/∂θ, the latter by JAX, tile by tile. The
search moves the logarithms of α and of the kernel's positive parameters by L-BFGS on log L.
Shapes: K (n, n), y (n, t), ω (n,).

Reference: Chapelle, Vapnik, Bousquet & Mukherjee, Machine Learning 46 (2002).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from wonderland.core.arrays import in_float64
from wonderland.core.errors import InputError
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.tiles import SIDE
from wonderland.solve.problem import Array

__all__ = ["Tuned", "leave_one_out", "tune_kernel"]

REACH = 1e6  # factor by which a parameter may leave its start
FLAT = 1e-5  # largest |d log L/d log θ| at which the search may stop
STEPS = 100


class Tuned(NamedTuple):
    """The end of a search.

    Attributes:
        kernel: With the parameters found.
        alpha: The penalty found.
        error: L there.
        start: L where the search began.
        slope: Largest |d log L/d log θ| over what was tuned and not at its limit.
        steps: Evaluations of L.
        limited: How many parameters moved by the largest factor allowed.
    """

    kernel: Kernel
    alpha: float
    error: float
    start: float
    slope: float
    steps: int
    limited: int


class _Point(NamedTuple):
    """L, ∂L/∂α and ∂L/∂K."""

    value: float
    alpha: float
    weights: Array


def leave_one_out(
    kernel: Kernel, alpha: float, X: Array, y: Array, weight: Array | None = None
) -> tuple[float, float, Kernel]:
    """L, ∂L/∂α, and ∂L/∂θ as a kernel that holds derivatives where the kernel holds parameters.

    Args:
        kernel: With array leaves θ.
        alpha: α > 0.
        X: (n, d).
        y: (n, t).
        weight: ω (n,).

    >>> from wonderland.kernels import Gaussian
    >>> X = np.arange(4.0)[:, None]
    >>> error, by_alpha, by_kernel = leave_one_out(Gaussian(1.0), 0.5, X, X)
    >>> [round(number, 4) for number in (error, by_alpha, by_kernel.gamma.item())]
    [1.9798, 0.7519, 1.1583]
    """
    point = _point(kernel.matrix(X), alpha, y, weight)
    return point.value, point.alpha, _through(kernel, X, point.weights)


def _point(K: Array, alpha: float, y: Array, weight: Array | None) -> _Point:
    root = np.ones((len(K), 1)) if weight is None else np.sqrt(weight)[:, None]
    mass, right = float((root**2).sum()), root * y
    M = root * K * root.T
    M[np.diag_indices(len(M))] += alpha
    triangle, failed = lapack.dpotrf(M.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        return _Point(np.inf, 0.0, np.zeros_like(K))
    b = lapack.dpotrs(triangle, np.asfortranarray(right), lower=1)[0]
    P = lapack.dpotri(triangle, lower=1, overwrite_c=1)[0]
    P = P + np.tril(P, -1).T
    c = P.diagonal()[:, None]
    v = (2.0 * b**2 / c**3).sum(axis=1)
    half = P * np.sqrt(v)
    G = half @ half.T - (P @ (2.0 * b / c**2)) @ b.T
    G /= mass
    value = float(((b / c) ** 2).sum() / mass)
    return _Point(value, float(np.trace(G)), root * G * root.T)


@in_float64
def _through(kernel: Kernel, X: Array, weights: Array) -> Kernel:
    """∂/∂θ Σ W_ij k_θ(x_i, x_j), tile by tile; rows are padded by copies of weight zero."""
    held, rest = eqx.partition(kernel, eqx.is_inexact_array)
    n = len(X)
    rows = np.concatenate([X, np.repeat(X[:1], -n % SIDE, axis=0)])
    total = jax.tree.map(np.zeros_like, held)
    for i in range(0, n, SIDE):
        for j in range(0, n, SIDE):
            W = np.zeros((SIDE, SIDE))
            part = weights[i : i + SIDE, j : j + SIDE]
            W[: part.shape[0], : part.shape[1]] = part
            slope = _tile_slope(held, rest, rows[i : i + SIDE], rows[j : j + SIDE], W)
            total = jax.tree.map(lambda a, b: a + np.asarray(b), total, slope)
    return total


@eqx.filter_jit
def _tile_slope(held: Any, rest: Any, A: Any, B: Any, W: Any) -> Any:
    def total(parameters: Any) -> jax.Array:
        return jnp.sum(W * eqx.combine(parameters, rest).traced(A, B))

    return jax.grad(total)(held)


def tune_kernel(
    kernel: Kernel,
    alpha: float,
    X: Array,
    y: Array,
    weight: Array | None = None,
    *,
    fixed: Callable[[str], bool] = lambda name: False,
) -> Tuned:
    """Search from a kernel and a penalty for those of least leave-one-out error nearby.

    Args:
        kernel: Its positive array leaves are tuned.
        alpha: α > 0.
        X: (n, d).
        y: (n, t).
        weight: ω (n,).
        fixed: Whether a parameter, named "alpha" or as in `jax.tree_util.keystr`, keeps its value.

    >>> from wonderland.kernels import Gaussian
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> found = tune_kernel(Gaussian(10.0), 1.0, X, np.sin(X))
    >>> found.error < 1e-6 < found.start
    True
    """
    space = _Space(kernel, alpha, fixed)
    seen: list[float] = []

    def value(moved: Array) -> tuple[float, Array]:
        here, penalty = space.at(moved)
        point = _point(here.matrix(X), penalty, y, weight)
        seen.append(point.value)
        if not np.isfinite(point.value) or point.value <= 0.0:
            return FAR, np.zeros(len(moved))
        by_kernel = _through(here, X, point.weights) if space.moves_kernel else here
        return np.log(point.value), space.slope(here, penalty, point.alpha, by_kernel) / point.value

    limit = np.log(REACH)
    found = minimize(
        value,
        np.zeros(space.size),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-limit, limit)] * space.size,
        options={"maxiter": STEPS, "gtol": FLAT, "ftol": 0.0},
    )
    best, penalty = space.at(found.x)
    free = np.abs(found.x) < limit
    slope = float(np.abs(found.jac[free]).max(initial=0.0))
    return Tuned(
        best, penalty, float(np.exp(found.fun)), seen[0], slope, len(seen), int(np.sum(~free))
    )


FAR = 700.0  # log L where no triangle exists


class _Space:
    """The logarithms that are searched: of α and of the kernel's positive parameters."""

    def __init__(self, kernel: Kernel, alpha: float, fixed: Callable[[str], bool]) -> None:
        leaves, self.shape = jax.tree_util.tree_flatten_with_path(kernel)
        self.leaves = [leaf for _, leaf in leaves]
        self.alpha = alpha
        self.free = [
            k
            for k, (path, leaf) in enumerate(leaves)
            if not fixed(jax.tree_util.keystr(path)) and np.ndim(leaf) == 0 and leaf > 0
        ]
        self.own = [] if fixed("alpha") else [-1]
        if not alpha > 0:
            raise InputError(
                f"alpha is {alpha} where it is tuned by its derivative",
                "a start > 0",
                "Pass alpha=1.0",
            )

    @property
    def size(self) -> int:
        return len(self.own) + len(self.free)

    @property
    def moves_kernel(self) -> bool:
        return bool(self.free)

    def at(self, moved: Array) -> tuple[Kernel, float]:
        """The kernel and α at these logarithms, relative to the start."""
        factors = np.exp(moved)
        leaves = list(self.leaves)
        for k, factor in zip(self.free, factors[len(self.own) :], strict=True):
            leaves[k] = np.asarray(leaves[k] * factor)
        return jax.tree.unflatten(self.shape, leaves), self.alpha * float(
            factors[0] if self.own else 1.0
        )

    def slope(self, here: Kernel, alpha: float, by_alpha: float, by_kernel: Kernel) -> Array:
        """∂L/∂ log of each."""
        values, slopes = jax.tree.leaves(here), jax.tree.leaves(by_kernel)
        kernel = [float(values[k] * slopes[k]) for k in self.free]
        return np.array([alpha * by_alpha] * len(self.own) + kernel)
