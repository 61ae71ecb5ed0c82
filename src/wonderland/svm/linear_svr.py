"""Linear support vector regression.

    minimise over w, b    ½‖w‖² + C Σ_i ω_i ℓ(wᵀx_i + b − y_i)
    ℓ(r) = max(0, |r| − ε)    or, squared,    max(0, |r| − ε)²

The intercept is not penalised, unlike LIBLINEAR's (see `linear_svc.py`). Several outputs are fitted
independently. Shapes: X (n, d), y (n,) or (n, t), w (d,).

Reference: Vapnik (1995), The Nature of Statistical Learning Theory, chapter 6.
"""

from typing import Any

import numpy as np

from wonderland.core.evidence import Evidence
from wonderland.shell.estimator import Regressor
from wonderland.shell.inputs import Table
from wonderland.shell.rows import read_rows
from wonderland.shell.streams import is_stream
from wonderland.solve.interior_problem import Intervals
from wonderland.solve.interior_routes import Answer, solve_intervals
from wonderland.svm.linear_check import check_regressor
from wonderland.svm.linear_evidence import Told, claims_of, tell, worst
from wonderland.svm.linear_model import Scores
from wonderland.svm.linear_problem import of_targets, strengths
from wonderland.svm.linear_stream import targets_in_passes
from wonderland.svm.linear_tube import solve_tube

__all__ = ["LinearSVR"]


class LinearSVR(Regressor):
    """Linear support vector regression.

    Args:
        epsilon: ε ≥ 0: residuals up to this cost nothing; in units of y.
        tol: Bound on the relative duality gap (P − D)/P.
        C: Weight of the loss, > 0; infinite for the hard tube: the flattest plane within ε of
            every target, or the proof that there is none.
        loss: "epsilon_insensitive" or "squared_epsilon_insensitive".
        fit_intercept: Whether b is free; it is never penalised.
        intercept_scaling: Accepted for scikit-learn's sake: a free intercept has no scale.
        dual: Accepted for scikit-learn's sake: the answer is the same.
        verbose: Accepted for scikit-learn's sake.
        random_state: Accepted for scikit-learn's sake; the same data give the same fit.
        max_iter: Most Newton steps for one output.

    Attributes:
        coef_: w (d,), or (t, d) for several outputs.
        intercept_: b (1,) or (t,); 0.0 without an intercept.
        support_: Rows with a multiplier that is not zero, for any output.
        dual_coef_: Their multipliers (t, len(support_)): W = dual_coef_ X[support_].
        n_iter_: Newton steps of the hardest output.
        evidence_: primal, dual, duality_gap, kkt_violation, support_vectors, ….
        model_: The fitted function as an `equinox.Module`.

    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 9.0]
    >>> fitted = LinearSVR(C=100.0).fit(X, y)  # absolute loss: the outlier does not count
    >>> fitted.coef_.round(6).tolist(), bool(fitted.evidence_["duality_gap"].holds)
    ([1.0], True)
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: Any = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        check_regressor(self)

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn(self, *data: Any) -> dict[str, Any]:
        if not is_stream(data[0]):
            return super()._learn(*data)
        rows = read_rows(self, *data, labels=False)
        fitted = self._fit(rows.table) if rows.complete else targets_in_passes(self, rows)
        return {"target_names_": rows.targets, **fitted}

    def _fit(self, table: Table) -> dict[str, Any]:
        told = [self._one(table, column) for column in range(table.y.shape[1])]
        points = [fact.answer.point for fact in told]
        coef, intercept = np.stack([p.w for p in points]), np.array([p.b for p in points])
        support = np.unique(np.concatenate([fact.support for fact in told]))
        return {
            "coef_": coef[0] if table.flat else coef,
            "intercept_": intercept if self.fit_intercept else 0.0,
            "support_": support,
            "dual_coef_": np.stack([point.beta[support] for point in points]),
            "n_iter_": max(1, *(fact.answer.steps for fact in told)),
            "model_": Scores(coef[0], intercept[0]) if table.flat else Scores(coef, intercept),
            "status_": worst([fact.answer.status for fact in told]),
            "evidence_": Evidence(claims_of(told, float(self.tol))),
        }

    def _one(self, table: Table, column: int) -> Told:
        """One output."""
        n = len(table.y)
        problem = of_targets(
            table.X,
            table.y[:, column],
            float(self.epsilon),
            strengths(self.C, table.weight, n),
            intercept=bool(self.fit_intercept),
            squared=self.loss == "squared_epsilon_insensitive",
        )
        solve = _hard if np.isinf(self.C) else solve_intervals
        answer = solve(problem, float(self.tol), int(self.max_iter))
        if np.isinf(self.C):
            problem = problem._replace(squared=False)
        return tell(table.targets[column], problem, answer, labels=False)

    def _predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.model_.predict(X))


def _hard(problem: Intervals, tol: float, limit: int) -> Answer:
    """The tube of the rows that count."""
    used = np.flatnonzero(problem.strength > 0)
    answer = solve_tube(problem.rows(used), tol, limit)
    beta = np.zeros(len(problem.strength))
    beta[used] = answer.point.beta
    return answer._replace(point=answer.point._replace(beta=beta))
