"""One-class support vector machine: a surface around what is usual.

    minimise over f, ρ    ½‖f‖² − νWρ + Σ_i ω_i max(0, ρ − f(x_i)),    W = Σω_i,

f(x) = Σ_i β_i k(x_i, x) with 0 ≤ β_i ≤ ω_i and Σβ_i = νW: at most a share ν of the samples is
left outside (f < ρ), and at least a share ν are support vectors. Shapes: X (n, d), β (n,).

Reference: Schölkopf et al., Estimating the support of a high-dimensional distribution (2001).
"""

from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.core.evidence import Evidence
from wonderland.kernels.custom import Precomputed
from wonderland.shell.outliers import OutlierDetector, Samples
from wonderland.solve.box_gram import Gram
from wonderland.solve.box_problem import BoxProblem
from wonderland.solve.box_solver import solve_box
from wonderland.svm.kernel_machine import (
    KernelScores,
    check_bounds,
    check_machine,
    hyperplane,
    kernel_of,
    limits_of,
    mercer_claims,
    precision_of,
)
from wonderland.svm.kernel_machine_evidence import Told, claims_of

__all__ = ["OneClassSVM"]


class OneClassSVM(OutlierDetector):
    """One-class support vector machine.

    Args:
        kernel: "rbf", "linear", "poly", "sigmoid", "laplacian", "matern", "cosine",
            "precomputed", a kernel of `wl.kernels`, or a function.
        degree: Of "poly".
        gamma: "scale": 1/(d·Var X) (weighted as the samples are); "auto": 1/d; or a number.
        coef0: Of "poly" and "sigmoid".
        tol: Bound on the relative duality gap and on the violation m(β) − M(β).
        nu: ν in (0, 1]: at most this share of the samples is left outside.
        shrinking: Accepted for scikit-learn's sake: blocks always hold what still moves.
        cache_size: Megabytes of kernel values that may be kept; at least one block always is.
        verbose: Accepted for scikit-learn's sake.
        max_iter: Most steps of two variables, −1 for no limit.

    Attributes:
        support_: Rows of the support vectors (m,).
        support_vectors_: Themselves (m, d).
        n_support_: Their number (1,).
        dual_coef_: β (1, m).
        intercept_: −ρ (1,).
        offset_: ρ, so that decision_function = score_samples − offset_.
        evidence_: primal, dual, duality_gap, kkt_violation, support_vectors, ….
        model_: The fitted function as an `equinox.Module`.

    >>> usual = [[0.0], [0.1], [-0.1], [0.05], [9.0]]
    >>> OneClassSVM(gamma=1.0, nu=0.3).fit(usual).predict([[0.02], [5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are welcome; a precomputed kernel is a table of pairs."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _check_parameters(self) -> None:
        check_machine(self)
        check_bounds(self, {"nu": 0.0})
        if float(self.nu) > 1:
            raise InputError(
                f"nu is {self.nu!r}",
                "a number in (0, 1]: the share of samples that may lie outside",
                "Pass nu=0.5",
            )

    def _fit(self, samples: Samples) -> dict[str, Any]:
        n = samples.X.shape[0]
        kernel = kernel_of(self, samples.X, samples.weight)
        weight = np.ones(n) if samples.weight is None else samples.weight
        total = float(self.nu) * float(weight.sum())
        problem = BoxProblem(np.zeros(n), np.zeros(n), weight, total=total)
        gram = Gram(kernel, samples.X)
        fit = solve_box(problem, gram, limits_of(self), start=_outermost(gram, weight, total))
        told = Told("usual", np.arange(n), problem, fit)
        rows = told.support
        given = isinstance(kernel, Precomputed)
        vectors = rows if given else samples.X[rows]
        beta, bias = fit.beta[rows], fit.certificate.bias
        bias += ON_SURFACE * abs(bias)
        claims = [*claims_of([told], float(self.tol)), *mercer_claims(kernel, samples.X, rows)]
        return {
            "target_names_": ["usual"],
            "support_": rows.astype(np.int32),
            "support_vectors_": np.empty((0, 0)) if given else vectors,
            "n_support_": np.array([len(rows)], np.int32),
            "dual_coef_": beta[None, :],
            "intercept_": np.array([bias]),
            "offset_": np.array([-bias]),
            "shape_fit_": samples.X.shape,
            "fit_status_": 0 if fit.status.ok else 1,
            "n_iter_": fit.steps,
            "model_": KernelScores(kernel, vectors, beta, np.array(bias)),
            "evidence_": Evidence(claims),
            "status_": fit.status,
        }

    @property
    def coef_(self) -> np.ndarray:
        """The hyperplane (1, d), for the linear kernel."""
        return hyperplane(self)

    def score_samples(self, X: Any) -> Any:
        """f(x) before ρ is taken off (n,)."""
        return self.decision_function(X) + self.offset_

    def _scores(self, X: Any) -> np.ndarray:
        entries = float(X.shape[0]) * len(self.support_)
        return self.model_.predict(X, precision_of(self, entries, self.dual_coef_))


ON_SURFACE = 1e-10  # of ρ, which rounding decides: a sample on the surface counts as usual
SAMPLE = 512  # samples from which the density of the others is guessed


def _outermost(gram: Gram, weight: np.ndarray, total: float) -> np.ndarray:
    """A feasible β: the least dense samples at their bound, as most of them are at the end."""
    some = np.linspace(0, gram.n - 1, min(SAMPLE, gram.n)).astype(int)
    density = gram.product(None, some, weight[some], np.float32)
    order = np.argsort(density, kind="stable")
    before = np.cumsum(weight[order]) - weight[order]
    beta = np.zeros(gram.n)
    beta[order] = np.clip(total - before, 0.0, weight[order])
    return beta
