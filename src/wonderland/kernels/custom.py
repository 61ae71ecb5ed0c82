"""Kernels brought along: a matrix computed elsewhere, and any Python function."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from wonderland.core.arrays import in_float64, is_traced
from wonderland.core.errors import InputError, InputTypeError
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.tiles import Tile

__all__ = ["Function", "Precomputed", "wrap_function"]


class Precomputed(Kernel):
    """K itself: where other kernels take samples, this one takes rows of the matrix.

    `matrix(K)` is K after a look at its shape: (n, n) in a fit, (m, n) in a prediction.

    Args:
        positive: What you know of it: whether it is positive semi-definite (`mercer` finds out).

    >>> Precomputed().matrix(np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """

    positive: bool = eqx.field(static=True, default=False)

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        raise InputTypeError(
            "a precomputed kernel was asked for one pair of samples",
            "a table of kernel values",
            "Pass the matrix to `matrix`, or a kernel such as wl.kernels.Gaussian()",
        )

    @property
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""
        return self.positive

    def matrix(
        self, X: Any, Z: Any = None, out: np.ndarray | None = None, *, dtype: Any = None
    ) -> Any:
        """X itself (n, m); square unless Z, the samples it was computed with, is given."""
        K = X.toarray() if sp.issparse(X) else X
        K = K if isinstance(K, jax.Array) else np.asarray(K, dtype)
        width = K.shape[0] if Z is None else Z.shape[0]
        if K.ndim != 2 or K.shape[1] != width:
            raise InputError(
                f"a precomputed kernel of shape {K.shape}, which should be a square matrix"
                if Z is None
                else f"a precomputed kernel of shape {K.shape} against {width} samples",
                "(n, n) for fit; for prediction one row per new sample, one column per training "
                "sample",
                "Pass kernel.matrix(X) to fit and kernel.matrix(X_new, X) to predict",
            )
        if out is None:
            return K
        out[:] = K
        return out

    def diagonal(self, X: Any) -> Any:
        """The diagonal of a square K (n,)."""
        return self.matrix(X).diagonal()

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""

        def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
            out[:] = X[rows, columns].toarray() if sp.issparse(X) else X[rows, columns]

        return tile


class Function(Kernel):
    """Any function as a kernel: of one pair (d,), (d,), or of two tables (n, d), (m, d).

    A function of one pair that JAX can trace is compiled and differentiable; any other one is
    called for each pair, which is slow and said so here.

    Args:
        function: k.
        pairs: Whether it takes one pair; `wrap_function` finds out by calling it.
        positive: Whether it is known to be positive semi-definite.

    >>> k = Function(lambda x, z: x @ z, pairs=True)
    >>> k.matrix(np.array([[1.0], [2.0]]))
    array([[1., 2.],
           [2., 4.]])
    """

    function: Callable[..., Any] = eqx.field(static=True)
    pairs: bool = eqx.field(static=True, default=True)
    positive: bool = eqx.field(static=True, default=False)

    def __call__(self, x: Any, z: Any) -> Any:
        """k(x, z) of one pair."""
        if self.pairs:
            return self.function(x, z)
        return self.function(x[None, :], z[None, :])[0, 0]

    @property
    def psd(self) -> bool:
        """Whether all its matrices are positive semi-definite."""
        return self.positive

    def traced(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        """The matrix of JAX arrays (n, m)."""
        if not self.pairs and not is_traced(X, Z):
            return jnp.asarray(self.function(X, Z))
        return super().traced(X, Z)

    def tile(self, X: Any, Z: Any, dtype: np.dtype) -> Tile:
        """Prepared host tables."""
        left = X.toarray() if sp.issparse(X) else X
        right = left if Z is None else Z.toarray() if sp.issparse(Z) else Z
        compute = self._computed(left)

        def tile(rows: slice, columns: slice, out: np.ndarray) -> None:
            a, b = left[rows], right[columns]
            values = np.asarray(compute(a, b))
            if values.shape != out.shape:
                raise _wrong_shape(self.function, values.shape, out.shape)
            out[:] = values

        return tile

    def _computed(self, X: np.ndarray) -> Callable[[np.ndarray, np.ndarray], Any]:
        """How a table is computed: by the function, compiled, or pair by pair."""
        if not self.pairs:
            return self.function
        if _traceable(self.function, X.shape[1]):
            return partial(_mapped, self.function)
        return lambda a, b: [[float(self.function(x, z)) for z in b] for x in a]


@in_float64
def _mapped(function: Callable[..., Any], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """All pairs in one program; rows are padded to whole powers of two, which bounds their number.

    Computed in float64, whatever the tables are.
    """
    n, m = len(a), len(b)
    a, b = _padded(a), _padded(b)
    return np.asarray(_pairs(function, a, b))[:n, :m]


def _padded(table: np.ndarray) -> np.ndarray:
    rows = 1 << max(len(table) - 1, 0).bit_length()
    return np.concatenate([table, np.repeat(table[:1], rows - len(table), axis=0)]).astype(float)


@partial(jax.jit, static_argnums=0)
def _pairs(function: Callable[..., Any], a: jax.Array, b: jax.Array) -> jax.Array:
    return jax.vmap(lambda x: jax.vmap(lambda z: function(x, z))(b))(a)


@in_float64
def _traceable(function: Callable[..., Any], d: int) -> bool:
    """Whether JAX can trace the function of one pair to a number."""
    x = jax.ShapeDtypeStruct((d,), np.float64)
    try:
        return bool(jax.eval_shape(function, x, x).shape == ())
    except Exception:
        # Whatever a function written for NumPy does with a tracer, it is then called with numbers.
        return False


def wrap_function(function: Callable[..., Any], X: Any) -> Function:
    """Find out by calling it on a few rows whether a function takes tables or one pair.

    Args:
        function: k(X, Z) → (n, m) as SVC of scikit-learn takes it, or k(x, z) → number as its
            KernelRidge does.
        X: (n, d), n ≥ 1.

    >>> wrap_function(lambda X, Z: X @ Z.T, np.eye(3)).pairs
    False
    >>> wrap_function(lambda x, z: x @ z, np.eye(3)).pairs
    True
    """
    rows = (X[:4].toarray() if sp.issparse(X) else np.asarray(X[:4])).astype(np.float64)
    d = rows.shape[1]
    # Row counts that differ from each other and from d: no product of them fits by chance.
    a, b = np.resize(rows, (2, d)), np.resize(rows, (4 if d == 3 else 3, d))
    came, error = _tried(function, a, b)
    if came is not None and np.shape(came) == (len(a), len(b)):
        return Function(function, pairs=False)
    alone, error_alone = _tried(function, a[0], b[0])
    if alone is not None and np.size(alone) == 1 and np.ndim(alone) == 0:
        return Function(function, pairs=True)
    if came is None and alone is None:
        raise InputError(
            f"the kernel function {_name(function)} fails on two tables ({error}) and on one pair "
            f"({error_alone})",
            EXPECTED,
            "Call it yourself on X[:2], X[:3] and on X[0], X[1]",
        ) from error
    found = np.shape(came) if came is not None else np.shape(alone)
    raise _wrong_shape(function, found, (len(a), len(b)))


EXPECTED = "k(X, Z) → (n, m) of two tables, or k(x, z) → a number of one pair"


def _tried(function: Callable[..., Any], *given: np.ndarray) -> tuple[Any, Exception | None]:
    try:
        return function(*given), None
    except Exception as error:  # a stranger's function may raise anything
        return None, error


def _wrong_shape(
    function: Callable[..., Any], came: tuple[int, ...], expected: tuple[int, ...]
) -> InputError:
    return InputError(
        f"the kernel function {_name(function)} returned shape {came} for tables of "
        f"{expected[0]} and {expected[1]} rows",
        EXPECTED,
        "Return one row per row of X and one column per row of Z",
    )


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", repr(function)))
