"""Laws of every kernel k(x, z) and of its matrices."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from wonderland.core.arrays import in_float64
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.mercer import mercer
from wonderland.testing.compare import close

__all__ = [
    "kernel_gradients_are_finite_differences",
    "kernel_is_positive_semidefinite",
    "kernel_is_symmetric",
    "kernel_matrix_holds_its_pairs",
    "kernel_takes_sparse_tables",
    "kernels_compose",
]


def kernel_is_symmetric(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> None:
    """k(x, z) = k(z, x), and the half that `matrix(X)` computes is the whole.

    >>> import wonderland as wl
    >>> kernel_is_symmetric(wl.kernels.Gaussian(), np.eye(3), np.ones((2, 3)))
    >>> kernel_is_symmetric(wl.kernels.Function(lambda x, z: x[0]), np.eye(3), np.ones((2, 3)))
    Traceback (most recent call last):
    ...
    AssertionError: k(x, z) equals k(z, x): they differ by 1 where 2e-12 is allowed
    """
    there = kernel.matrix(X, Z)
    scale = 1.0 + float(np.abs(there).max())
    close(there, kernel.matrix(Z, X).T, "k(x, z) equals k(z, x)", rtol=0.0, atol=1e-12 * scale)
    half, whole = kernel.matrix(X), kernel.matrix(X, X.copy())
    close(half, whole, "matrix(X) equals matrix(X, X)", rtol=1e-12, atol=kernel.noise(X))


def kernel_is_positive_semidefinite(kernel: Kernel, X: np.ndarray) -> None:
    """A kernel that claims `psd` has no negative eigenvalue on these samples.

    >>> import wonderland as wl
    >>> kernel_is_positive_semidefinite(wl.kernels.Laplace(), np.eye(4))
    >>> liar = wl.kernels.Function(lambda x, z: (x - z) @ (x - z), positive=True)
    >>> kernel_is_positive_semidefinite(liar, np.eye(4))
    Traceback (most recent call last):
    ...
    AssertionError: claims to be positive semi-definite, but not a kernel: the witness α ...
    """
    verdict = mercer(kernel, X)
    if kernel.psd and not verdict:
        raise AssertionError(f"claims to be positive semi-definite, but {verdict}")


@in_float64
def kernel_matrix_holds_its_pairs(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> None:
    """matrix(X, Z)_ij = k(x_i, z_j) on the host, in float32 and on JAX; so is the diagonal.

    >>> import wonderland as wl
    >>> kernel_matrix_holds_its_pairs(wl.kernels.Matern(nu=2.5), np.eye(3), np.ones((2, 3)))
    """
    pairs = np.asarray(_pairs(kernel, X, Z))
    size = float(np.abs(pairs).max())
    slack = {"rtol": 1e-11, "atol": kernel.noise(np.concatenate([X, Z]))}
    close(kernel.matrix(X, Z), pairs, "the matrix on the host holds the pairs", **slack)
    traced = kernel.matrix(jnp.asarray(X), jnp.asarray(Z))
    close(traced, pairs, "the matrix on JAX holds the pairs", **slack)
    single = kernel.matrix(X, Z, dtype=np.float32)
    if single.dtype != np.float32:
        raise AssertionError(f"a float32 matrix was asked for, {single.dtype} came")
    close(single, pairs, "the matrix in float32 holds the pairs", rtol=0.0, atol=1e-4 * size)
    own = np.asarray(jax.vmap(kernel)(jnp.asarray(X), jnp.asarray(X)))
    close(kernel.diagonal(X), own, "diagonal(X) is k(x, x)", **slack)
    close(kernel.matrix(X).diagonal(), own, "the matrix has the diagonal k(x, x)", **slack)


def _pairs(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> jax.Array:
    return jax.vmap(lambda x: jax.vmap(lambda z: kernel(x, z))(jnp.asarray(Z)))(jnp.asarray(X))


def kernel_takes_sparse_tables(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> None:
    """CSR tables give the matrix of the dense ones.

    >>> import wonderland as wl
    >>> kernel_takes_sparse_tables(wl.kernels.Linear(), np.eye(3), np.ones((2, 3)))
    """
    slack = {"rtol": 1e-9, "atol": 1e-12}
    whole = kernel.matrix(X, Z)
    for left, right in ((sp.csr_array(X), sp.csr_array(Z)), (sp.csr_array(X), Z)):
        close(kernel.matrix(left, right), whole, "CSR tables give the same matrix", **slack)
    close(kernel.matrix(sp.csr_array(X)), kernel.matrix(X), "so does one CSR table", **slack)
    close(kernel.diagonal(sp.csr_array(X)), kernel.diagonal(X), "and its diagonal", **slack)


@in_float64
def kernel_gradients_are_finite_differences(kernel: Kernel, x: np.ndarray, z: np.ndarray) -> None:
    """∂k/∂x, ∂k/∂z and ∂k/∂θ are finite differences; at x = z they are finite, and ∂k/∂θ exact.

    Some kernels have a kink at x = z; the derivative given there is the mean of the one-sided ones,
    and its central difference has an error of first order in the step.

    >>> import wonderland as wl
    >>> kernel_gradients_are_finite_differences(wl.kernels.Matern(), np.ones(2), np.arange(2.0))
    """
    held, rest = eqx.partition(kernel, eqx.is_inexact_array_like)
    leaves, shape = jax.tree.flatten(held)

    def value(x: Any, z: Any, *numbers: Any) -> jax.Array:
        return eqx.combine(jax.tree.unflatten(shape, numbers), rest)(x, z)

    for there in (z, x.copy()):
        point = [jnp.asarray(a, jnp.float64) for a in (x, there, *leaves)]
        slopes = jax.grad(value, argnums=tuple(range(len(point))))(*point)
        for k, (at, slope) in enumerate(zip(point, slopes, strict=True)):
            signs = np.where(np.arange(at.size) % 3 == 1, -1.0, 1.0).reshape(at.shape)
            h = 1e-5 * max(1.0, float(jnp.abs(at).max()))
            up, down = (value(*point[:k], at + s * h * signs, *point[k + 1 :]) for s in (1, -1))
            where = "at x = z" if there is not z else "at x ≠ z"
            name = ("x", "z")[k] if k < 2 else f"parameter {k - 2}"
            close(
                np.vdot(slope, signs),
                float(up - down) / (2 * h),
                f"the gradient in {name} {where} is its finite difference",
                rtol=1e-6 if there is z else 1e-4,
                atol=1e-6 * (1.0 + abs(float(up))),
            )


def kernels_compose(first: Kernel, second: Kernel, X: np.ndarray, Z: np.ndarray) -> None:
    """Matrices of k₁ + k₂, k₁·k₂ and c·k₁ are sums, products and multiples of matrices.

    >>> import wonderland as wl
    >>> k = wl.kernels
    >>> kernels_compose(k.Gaussian(), k.Linear(), np.eye(3), np.ones((2, 3)))
    """
    a, b = first.matrix(X, Z), second.matrix(X, Z)
    for name, kernel, expected in (
        ("sum", first + second, a + b),
        ("product", first * second, a * b),
        ("multiple", 0.3 * first, 0.3 * a),
        ("multiple of a sum", (first + second) * 2.0, 2.0 * (a + b)),
    ):
        close(kernel.matrix(X, Z), expected, f"the matrix of a {name} is that {name}", rtol=1e-12)
        if kernel.psd != (first.psd and (second.psd or name == "multiple")):
            raise AssertionError(f"the {name} claims psd = {kernel.psd}")
