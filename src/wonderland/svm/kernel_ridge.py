"""Kernel ridge regression.

    minimise over f in the space of k:   Σ_i ω_i ‖y_i − f(x_i)‖²  +  α‖f‖²

By the representer theorem f(x) = Σ_i a_i k(x_i, x) with (K + αΩ⁻¹) a = y. There is no intercept, as
in scikit-learn: centre y, or add a constant to the kernel. The penalty, and with it the kernel's
parameters, may be chosen by the exact leave-one-out error and its derivative. With
`approximation=` f(x) = ⟨w, φ(x)⟩ for features φ of a low rank, from any number of rows.
Shapes: X (n, d), y (n,) or (n, t), a (n, t), α (t,), ω (n,).

Reference: Saunders, Gammerman & Vovk (1998); Murphy, Machine Learning (2012), section 14.4.3.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from jax.scipy.linalg import cho_factor, cho_solve

from wonderland.core.arrays import any_jax, double, in_float64, product
from wonderland.core.errors import InputError, InputTypeError, NotFiniteError
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.random import seed_of
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.kernels.kernel import Kernel
from wonderland.kernels.low_rank import Approximation
from wonderland.kernels.resolve import resolve
from wonderland.shell.estimator import Regressor
from wonderland.shell.inputs import Table
from wonderland.shell.streams import Stream
from wonderland.solve.leave_one_out import (
    Curve,
    RowSpectrum,
    Spectrum,
    default_alphas,
    loo_curve,
    tune,
)
from wonderland.solve.moments import Moments
from wonderland.solve.problem import LeastSquares
from wonderland.solve.shifted import ShiftedFit, solve_shifted
from wonderland.svm.approximate import fit_features, stream_features
from wonderland.svm.kernel_evidence import curve_claims, kernel_claims, mercer_claims, tuned_claims
from wonderland.svm.kernel_model import KernelModel
from wonderland.svm.kernel_tuning import tune_kernel

__all__ = ["KernelRidge", "fit_kernel_ridge"]


def fit_kernel_ridge(
    X: Any, y: Any, kernel: Kernel, alpha: Any = 1.0, sample_weight: Any = None
) -> Solution[KernelModel]:
    """Kernel ridge as a pure function: differentiable in X, y, α, ω and the kernel's parameters.

    NumPy arrays are solved on the host; JAX arrays in XLA, in float64 whatever JAX's setting.

    Args:
        X: (n, d).
        y: (n,) or (n, t).
        kernel: k; its array leaves are parameters.
        alpha: α ≥ 0, a scalar or one per output (t,).
        sample_weight: ω (n,) ≥ 0.

    >>> import jax, jax.numpy as jnp
    >>> from wonderland.kernels import Gaussian
    >>> X, y = jnp.array([[0.0], [1.0]]), jnp.array([1.0, 0.0])
    >>> def value(gamma):
    ...     return fit_kernel_ridge(X, y, Gaussian(gamma)).model(jnp.array([0.5]))
    >>> bool(jnp.isfinite(jax.grad(value)(1.0)))
    True
    """
    if any_jax(X, y, alpha, sample_weight, kernel):
        return _traced(X, y, kernel, alpha, sample_weight)
    target = double(y)
    outputs = target[:, None] if target.ndim == 1 else target
    omega = None if sample_weight is None else double(sample_weight)
    alphas = np.broadcast_to(double(alpha), (outputs.shape[1],))
    K = np.array(kernel.matrix(X), np.float64, order="C")
    fit = solve_shifted(K, outputs, omega, alphas)
    dual = fit.dual[:, 0] if target.ndim == 1 else fit.dual
    mass = float(len(outputs) if omega is None else omega.sum())
    values = {claim.name: claim.value for claim in kernel_claims(fit, mass)}
    return Solution(KernelModel(kernel, X, dual), np.asarray(int(Status.SOLVED)), values)


@in_float64
def _traced(X: Any, y: Any, kernel: Kernel, alpha: Any, weight: Any) -> Solution[KernelModel]:
    """One XLA program; JAX differentiates its solves, which are exact."""
    given = [leaf for leaf in jax.tree.leaves((X, y, alpha, weight)) if isinstance(leaf, jax.Array)]
    dtype = jnp.result_type(jnp.float32, *(leaf.dtype for leaf in given))
    points, target = jnp.asarray(X, jnp.float64), jnp.asarray(y, jnp.float64)
    outputs = target[:, None] if target.ndim == 1 else target
    K = kernel.traced(points, points)
    alphas = jnp.broadcast_to(jnp.asarray(alpha, jnp.float64), (outputs.shape[1],))
    eye = jnp.eye(len(K), dtype=K.dtype)
    if weight is None:

        def one(level: jax.Array, right: jax.Array) -> jax.Array:
            return cho_solve(cho_factor(K + level * eye), right)
    else:
        # (ΩK + αI)⁻¹Ω needs no root of ω, whose derivative at zero would be infinite.
        omega = jnp.asarray(weight, jnp.float64)[:, None]

        def one(level: jax.Array, right: jax.Array) -> jax.Array:
            return jnp.linalg.solve(omega * K + level * eye, omega[:, 0] * right)

    dual = jax.vmap(one, (0, 1), 1)(alphas, outputs)
    residual = jax.lax.stop_gradient(outputs - product(K, dual))
    status = jnp.where(jnp.isfinite(dual).all(), int(Status.SOLVED), int(Status.SINGULAR))
    dual = (dual[:, 0] if target.ndim == 1 else dual).astype(dtype)
    evidence = {"largest_residual": jnp.abs(residual).max().astype(dtype)}
    return Solution(KernelModel(kernel, points.astype(dtype), dual), status, evidence)


class KernelRidge(Regressor):
    """Ridge regression in the space of a kernel.

    Args:
        alpha: α ≥ 0: a number, one per output, "loo" (the best of a path by exact leave-one-out
            error) or "gradient" (the zero of that error's exact derivative).
        kernel: A name as in scikit-learn ("linear", "poly", "rbf", "laplacian", "sigmoid",
            "cosine", "precomputed"), a kernel of `wl.kernels`, or a function of two rows or tables.
        gamma: γ of "poly", "rbf", "laplacian", "sigmoid": a number, "scale", "auto", None (1/d), or
            "gradient": tuned by the derivative of the leave-one-out error.
        degree: Of "poly".
        coef0: Of "poly" and "sigmoid".
        kernel_params: Further arguments of a function.
        alphas: The path for "loo" and "gradient"; None spans the spectrum with twenty.
        tune: Whether α and all positive parameters of the kernel are tuned by the derivative.
        approximation: `wl.kernels.Nystroem`, `RandomFeatures` or `PivotedCholesky`; None: exact.
        random_state: Seed of an approximation's draws.

    Attributes:
        dual_coef_: a (n,) or (n, t); w (r,) or (r, t) of the features with an approximation.
        X_fit_: The training rows, which predictions need; absent with an approximation.
        kernel_: The kernel in use, with its parameters.
        alpha_: The penalty in use.
        evidence_: Claims: condition_number, duality_gap, leave_one_out_error, ….
        model_: The fitted function as an `equinox.Module`.

    >>> X = np.linspace(0.0, 6.0, 30)[:, None]
    >>> model = KernelRidge(kernel="rbf", tune=True).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 1e-4)
    True
    """

    fit_intercept = False  # there is none: constant targets and single rows determine f

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        alphas: Any = None,
        tune: bool = False,
        approximation: Approximation | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alphas = alphas
        self.tune = tune
        self.approximation = approximation
        self.random_state = random_state

    def _check_parameters(self) -> None:
        _check_alpha(self.alpha)
        if self.approximation is None:
            return
        if not isinstance(self.approximation, Approximation):
            raise InputTypeError(
                f"approximation is {self.approximation!r}",
                "wl.kernels.Nystroem, RandomFeatures or PivotedCholesky, or None",
                "Pass approximation=wl.kernels.Nystroem(300)",
            )
        if isinstance(self.alpha, str) or self.tune or self.gamma == "gradient":
            raise InputError(
                "tuning by leave-one-out error together with an approximation",
                "numbers for alpha and gamma",
                "Tune on some thousand rows without approximation, then pass what was found",
            )

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are taken; a precomputed kernel is a square table."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _kernel(self, X: Any) -> Kernel:
        gamma = "scale" if isinstance(self.gamma, str) and self.gamma == "gradient" else self.gamma
        return resolve(
            self.kernel,
            X,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            parameters=self.kernel_params,
        )

    def _fit(self, table: Table) -> dict[str, Any]:
        if not np.isfinite(table.X.sum()):
            raise NotFiniteError("X holds NaN or infinity")
        kernel = self._kernel(table.X)
        if self.approximation is not None:
            phi = self.approximation.features(kernel, table.X, self._chance())
            alphas = self._alphas(table.y.shape[1])
            fit = fit_features(phi, table.X, table.y, table.weight, alphas)
            return self._approximate(kernel, fit, flat=table.flat)
        alpha: Any = self.alpha
        extra: list[Claim] = []
        if self.tune or (isinstance(self.gamma, str) and self.gamma == "gradient"):
            kernel, alpha, extra = self._tuned(kernel, table)
        K = np.array(kernel.matrix(table.X), np.float64, order="C")
        if isinstance(alpha, str):
            alpha, extra = self._path(K, table)
        extra += mercer_claims(kernel, K)
        alphas = _per_output(alpha, table.y.shape[1])
        return self._publish(
            kernel, alpha, solve_shifted(K, table.y, table.weight, alphas), table, extra
        )

    def _publish(
        self, kernel: Kernel, alpha: Any, fit: ShiftedFit, table: Table, extra: list[Claim]
    ) -> dict[str, Any]:
        dual = fit.dual[:, 0] if table.flat else fit.dual
        mass = float(len(dual) if table.weight is None else table.weight.sum())
        return {
            "dual_coef_": dual,
            "X_fit_": table.X,
            "kernel_": kernel,
            "alpha_": alpha,
            "model_": KernelModel(kernel, table.X, dual),
            "evidence_": Evidence([*kernel_claims(fit, mass), *extra]),
            "status_": Status.SOLVED,
        }

    def _approximate(self, kernel: Kernel, fit: Any, *, flat: bool) -> dict[str, Any]:
        model = fit.model(flat=flat)
        return {
            "dual_coef_": np.ascontiguousarray(model.coef.T),
            "kernel_": kernel,
            "alpha_": self.alpha,
            "model_": model,
            "evidence_": Evidence(fit.claims),
            "status_": Status.SOLVED,
        }

    def _learn_stream(self, stream: Stream) -> dict[str, Any]:
        """One pass: landmarks from the first chunks, then moments of the features."""
        if self.approximation is None:
            raise InputError(
                "data in chunks for KernelRidge without approximation",
                "features of a low rank, which need one pass",
                "Pass approximation=wl.kernels.Nystroem(300)",
            )
        alphas = self._alphas(len(stream.targets))
        chance = self._chance()
        kernel, fit = stream_features(self._kernel, self.approximation, stream, alphas, chance)
        return self._approximate(kernel, fit, flat=stream.flat)

    def _chance(self) -> np.random.Generator:
        return np.random.default_rng(seed_of(self.random_state))

    def _alphas(self, outputs: int) -> np.ndarray:
        return _per_output(self.alpha, outputs)

    def _tuned(self, kernel: Kernel, table: Table) -> tuple[Kernel, Any, list[Claim]]:
        """Kernel and penalty by L-BFGS on the leave-one-out error."""
        X = table.X.toarray() if sp.issparse(table.X) else table.X
        start = 1.0 if isinstance(self.alpha, str) else float(np.max(double(self.alpha)))
        keeps = set()
        if not self.tune:
            keeps = set() if isinstance(self.alpha, str) else {"alpha"}

        def fixed(name: str) -> bool:
            return name in keeps or (not self.tune and name != "alpha" and "gamma" not in name)

        found = tune_kernel(kernel, start, X, table.y, table.weight, fixed=fixed)
        alpha = self.alpha if "alpha" in keeps else found.alpha
        return found.kernel, alpha, tuned_claims(found)

    def _path(self, K: np.ndarray, table: Table) -> tuple[float, list[Claim]]:
        """α by the leave-one-out errors of a path, and by their derivative for "gradient"."""
        found = _spectrum(K, table)
        alphas = default_alphas(found.values) if self.alphas is None else double(self.alphas)
        curve = loo_curve(found, alphas)
        chosen: Curve = curve.best() if self.alpha == "loo" else tune(found, curve)
        return float(chosen.alphas[0]), curve_claims(curve, chosen)

    def _predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.model_.predict(X))


def _spectrum(K: np.ndarray, table: Table) -> Spectrum:
    """Eigenvalues of SKS, which serve every α, in the form of `solve.leave_one_out`."""
    n = len(K)
    weight = np.ones(n) if table.weight is None else table.weight
    root = np.sqrt(weight)[:, None]
    values, vectors = sl.eigh(root * K * root.T, check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    values = np.maximum(values, n * np.finfo(float).eps * float(values[0]))
    y = root * table.y
    cross = vectors.T @ y
    none = np.zeros((0, 0))
    moments = Moments(float(weight.sum()), none, none, none, none, (y**2).sum(axis=0))
    problem = LeastSquares(K, table.y, table.weight, np.zeros(y.shape[1]), fit_intercept=False)
    rows = RowSpectrum(values, vectors, cross)
    return Spectrum(problem, moments, values, none, cross, rows)


def _check_alpha(alpha: Any) -> None:
    if isinstance(alpha, str):
        if alpha not in ("loo", "gradient"):
            raise InputError(
                f"alpha is {alpha!r}", "a number ≥ 0, 'loo' or 'gradient'", "Pass alpha='loo'"
            )
        return
    try:
        values = double(alpha)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"alpha is {alpha!r}", "a number ≥ 0, one per output, 'loo' or 'gradient'", "Pass 1.0"
        ) from error
    if values.ndim > 1 or values.size == 0 or not np.all((values >= 0) & np.isfinite(values)):
        raise InputError(
            f"alpha is {alpha!r}", "a finite number ≥ 0, or one per output", "Pass 1.0"
        )


def _per_output(alpha: Any, outputs: int) -> np.ndarray:
    """α (t,)."""
    values = double(alpha).reshape(-1)
    if values.size not in (1, outputs):
        raise InputError(
            f"alpha has {values.size} entries for {outputs} outputs",
            "one alpha, or one per output",
            f"Pass alpha with 1 or {outputs} entries",
        )
    return np.broadcast_to(values, (outputs,))
