"""Support vector regression with a kernel.

    minimise over f, b    ½‖f‖² + C Σ_i ω_i max(0, |y_i − f(x_i) − b| − ε),

f(x) = Σ_i β_i k(x_i, x) with |β_i| ≤ Cω_i and Σβ_i = 0: one variable for each sample, with a kink
at zero, where LIBSVM has two. Shapes: X (n, d), y, β (n,).

Reference: Smola & Schölkopf, A tutorial on support vector regression (2004).
"""

from typing import Any

import numpy as np

from wonderland.core.evidence import Evidence
from wonderland.kernels.custom import Precomputed
from wonderland.kernels.kernel import Kernel
from wonderland.shell.estimator import Regressor
from wonderland.shell.inputs import Table
from wonderland.shell.targets import one_target
from wonderland.solve.box_gram import Gram
from wonderland.solve.box_problem import BoxProblem
from wonderland.solve.box_solver import solve_box
from wonderland.svm.approximate_machine import (
    Machine,
    check_approximation,
    features_of,
    fit_machines,
)
from wonderland.svm.kernel_machine import (
    KernelScores,
    check_bounds,
    check_finite_cost,
    check_machine,
    hyperplane,
    kernel_of,
    limits_of,
    mercer_claims,
    precision_of,
    refuse_holes,
)
from wonderland.svm.kernel_machine_evidence import Told, claims_of
from wonderland.svm.kernel_model import FeatureModel

__all__ = ["SVR"]


class SVR(Regressor):
    """Support vector regression with a kernel.

    Args:
        kernel: "rbf", "linear", "poly", "sigmoid", "laplacian", "matern", "cosine",
            "precomputed", a kernel of `wl.kernels`, or a function.
        degree: Of "poly".
        gamma: "scale": 1/(d·Var X) (weighted as the samples are); "auto": 1/d; or a number.
        coef0: Of "poly" and "sigmoid".
        tol: Bound on the relative duality gap and on the violation m(β) − M(β) in units of y.
        C: Weight of the loss, > 0.
        epsilon: ε ≥ 0, half the width of the tube in which errors cost nothing.
        shrinking: Accepted for scikit-learn's sake: blocks always hold what still moves.
        cache_size: Megabytes of kernel values that may be kept; at least one block always is.
        verbose: Accepted for scikit-learn's sake.
        max_iter: Most steps of two variables, −1 for no limit.
        approximation: `wl.kernels.Nystroem`, `RandomFeatures` or `PivotedCholesky`: features of a
            low rank in place of the kernel, for any number of rows; None: exact.
        random_state: Of an approximation's draws.

    Attributes:
        support_: Rows of the support vectors (m,).
        support_vectors_: Themselves (m, d); absent with an approximation.
        n_support_: Their number (1,).
        dual_coef_: β (1, m); w (1, r) of the features with an approximation.
        intercept_: b (1,).
        coef_: The hyperplane (1, d), for the linear kernel.
        evidence_: primal, dual, duality_gap, kkt_violation, support_vectors, ….
        model_: The fitted function as an `equinox.Module`.

    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]
    >>> SVR(kernel="linear", C=10.0, epsilon=0.0, tol=1e-9).fit(X, y).predict([[4.0]]).round(4)
    array([4.])
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        approximation: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.approximation = approximation
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """One target; sparse tables are welcome; a precomputed kernel is a table of pairs."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.target_tags.single_output = True
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _check_parameters(self) -> None:
        check_machine(self)
        check_bounds(self, {"C": 0.0})
        check_finite_cost(self.C)
        check_approximation(self)
        check_bounds(self, {"epsilon": 0.0}, strict=False)

    def _fit(self, table: Table) -> dict[str, Any]:
        y = one_target(table)
        kernel = kernel_of(self, table.X, table.weight)
        cost = float(self.C) * (np.ones(len(y)) if table.weight is None else table.weight)
        if self.approximation is not None:
            return self._approximate(kernel, table, y, cost)
        problem = BoxProblem(y, -cost, cost, kink=float(self.epsilon))
        fit = solve_box(problem, Gram(kernel, table.X), limits_of(self))
        told = Told(table.targets[0], np.arange(len(y)), problem, fit)
        rows = told.support
        given = isinstance(kernel, Precomputed)
        vectors = rows if given else table.X[rows]
        beta, bias = fit.beta[rows], fit.certificate.bias
        claims = [*claims_of([told], float(self.tol)), *mercer_claims(kernel, table.X, rows)]
        return {
            "support_": rows.astype(np.int32),
            "support_vectors_": np.empty((0, 0)) if given else vectors,
            "n_support_": np.array([len(rows)], np.int32),
            "dual_coef_": beta[None, :],
            "intercept_": np.array([bias]),
            "shape_fit_": table.X.shape,
            "fit_status_": 0 if fit.status.ok else 1,
            "n_iter_": fit.steps,
            "model_": KernelScores(kernel, vectors, beta, np.array(bias)),
            "evidence_": Evidence(claims),
            "status_": fit.status,
        }

    def _approximate(
        self, kernel: Kernel, table: Table, y: np.ndarray, cost: np.ndarray
    ) -> dict[str, Any]:
        """The same problem on features of a low rank."""
        phi = features_of(self, kernel, table.X, cost)
        rows = np.flatnonzero(cost > 0)
        machine = Machine(table.targets[0], rows, y[rows], cost[rows], float(self.epsilon))
        fit = fit_machines(phi, table.X, [machine], float(self.tol))
        return {
            **fit.fixed,
            "n_support_": np.array([len(fit.support)], np.int32),
            "n_iter_": int(fit.steps[0]),
            "shape_fit_": table.X.shape,
            "evidence_": Evidence(fit.claims),
        }

    @property
    def coef_(self) -> np.ndarray:
        """The hyperplane (1, d), for the linear kernel."""
        return hyperplane(self)

    def predict(self, X: Any) -> Any:
        """Predicted targets (n,) in the container chosen by `set_output`."""
        refuse_holes(self, X)
        return super().predict(X)

    def _predict(self, X: Any) -> np.ndarray:
        if isinstance(self.model_, FeatureModel):
            return np.asarray(self.model_.predict(X))
        entries = float(X.shape[0]) * len(self.support_)
        return self.model_.predict(X, precision_of(self, entries, self.dual_coef_))
