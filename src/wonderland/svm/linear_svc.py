"""Linear support vector classification.

    minimise over w, b    ½‖w‖² + C Σ_i ω_i ℓ(y_i(wᵀx_i + b)),    y_i = ±1
    hinge  ℓ(m) = max(0, 1 − m)        squared hinge  ℓ(m) = max(0, 1 − m)²

The intercept is not penalised: LIBLINEAR, and with it scikit-learn's LinearSVC, adds ½b² (over
intercept_scaling²), so that its classifier depends on where the origin of the data lies. With the
hinge this is scikit-learn's SVC(kernel="linear"). C = ∞ is the hard margin: the separating
hyperplane whose margin γ = 1/‖w‖ is widest, or the proof that there is none. Shapes: X (n, d),
w (d,).

Reference: Cortes & Vapnik (1995), Support-vector networks. Solver: `solve/interior_lagrangian.py`.
"""

from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim, Evidence
from wonderland.shell.classifier import Classifier
from wonderland.shell.inputs import Classes
from wonderland.shell.rows import read_rows
from wonderland.solve.interior_problem import Intervals, Point
from wonderland.solve.interior_routes import Answer, quiet, solve_hard, solve_intervals
from wonderland.svm.linear_check import check_classifier
from wonderland.svm.linear_evidence import Told, claims_of, tell, worst
from wonderland.svm.linear_joint import fit_joint
from wonderland.svm.linear_model import Scores
from wonderland.svm.linear_problem import of_signs, strengths
from wonderland.svm.linear_sparse import fit_sparse
from wonderland.svm.linear_stream import classes_in_passes

__all__ = ["LinearSVC"]


class LinearSVC(Classifier):
    """Linear support vector machine; more than two classes one against the rest.

    Args:
        penalty: "l2", or "l1" (‖w‖₁ in place of ½‖w‖²; with the squared hinge).
        loss: "squared_hinge" or "hinge".
        dual: Accepted for scikit-learn's sake: the solver has primal and dual at every step, and
            the answer is the same.
        tol: Bound on the relative duality gap (P − D)/P.
        C: Weight of the loss, > 0; infinite for the hard margin.
        multi_class: "ovr", or "crammer_singer": one problem of all classes, whose loss
            max_k (z_k − z_y + [k ≠ y]) takes the place of `loss` and `penalty`; for two classes
            it is the hinge with twice the C.
        fit_intercept: Whether b is free; it is never penalised.
        intercept_scaling: Accepted for scikit-learn's sake: a free intercept has no scale.
        class_weight: None, "balanced" or a mapping label → weight.
        verbose: Accepted for scikit-learn's sake.
        random_state: Accepted for scikit-learn's sake; the same data give the same fit.
        max_iter: Most Newton steps for one problem.

    Attributes:
        coef_: W (1, d) for two classes, else (k, d).
        intercept_: b (1,) or (k,); 0.0 without an intercept.
        classes_: The labels (k,).
        support_: Rows with a multiplier that is not zero, in any of the problems.
        dual_coef_: Their signed multipliers (1 or k, len(support_)): W = dual_coef_ X[support_].
        n_iter_: Newton steps of the hardest problem.
        evidence_: primal, dual, duality_gap, kkt_violation, support_vectors, margin, ….
        model_: The scores as an `equinox.Module`.

    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"]
    >>> fitted = LinearSVC(C=float("inf"), loss="hinge").fit(X, y)
    >>> round(fitted.evidence_["margin"].value, 6), fitted.predict([[1.5], [2.5]]).tolist()
    (1.0, ['low', 'high'])
    """

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        check_classifier(self)

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn_stream(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        weights = self.class_weight
        rows = read_rows(self, X, y, sample_weight, labels=True, class_weight=weights)
        fixed = {"target_names_": rows.targets, "classes_": rows.classes}
        fitted = self._fit(rows.labelled) if rows.complete else classes_in_passes(self, rows)
        return {**fixed, **fitted}

    def _fit(self, table: Classes) -> dict[str, Any]:
        _refuse_absent(table)
        if self.multi_class == "crammer_singer" and len(table.classes) > 2:
            return fit_joint(self, table)
        if self.penalty == "l1" and self.multi_class == "ovr":
            return fit_sparse(self, table)
        with quiet(table.X):
            told = [self._one(table, code) for code in _codes(table)]
        claims = claims_of(told, float(self.tol))
        if np.isinf(self.C):
            claims.append(_separated(told))
        return {**self._published(told), "evidence_": Evidence(claims)}

    def _one(self, table: Classes, code: int) -> Told:
        """One class against the others."""
        signs = np.where(table.codes == code, 1.0, -1.0)
        joint = self.multi_class == "crammer_singer"
        problem = of_signs(
            table.X,
            signs,
            # Two weight vectors w₁ = −w₂ = w/2 share a joint penalty of half of ½‖w‖².
            strengths(2.0 * self.C if joint else self.C, table.weight, len(signs)),
            intercept=bool(self.fit_intercept),
            squared=self.loss == "squared_hinge" and bool(np.isfinite(self.C)) and not joint,
        )
        name = str(table.classes[code])
        answer = (
            _hard(problem, signs, name, self)
            if np.isinf(self.C)
            else solve_intervals(problem, float(self.tol), int(self.max_iter))
        )
        return tell(name, problem, answer, labels=True)

    def _published(self, told: list[Told]) -> dict[str, Any]:
        """Fitted attributes from the facts of each problem."""
        points = [fact.answer.point for fact in told]
        coef = np.stack([point.w for point in points])
        intercept = np.array([point.b for point in points])
        support = np.unique(np.concatenate([fact.support for fact in told]))
        single = len(told) == 1
        return {
            "coef_": coef,
            "intercept_": intercept if self.fit_intercept else 0.0,
            "support_": support,
            "dual_coef_": np.stack([point.beta[support] for point in points]),
            "n_iter_": max(1, *(fact.answer.steps for fact in told)),
            "model_": Scores(coef[0], intercept[0]) if single else Scores(coef, intercept),
            "status_": worst([fact.answer.status for fact in told]),
        }

    def _scores(self, X: Any) -> np.ndarray:
        return np.asarray(self.model_.predict(X))


def _codes(table: Classes) -> list[int]:
    """The class each problem sets against the rest: for two classes only the second."""
    return [1] if len(table.classes) == 2 else list(range(len(table.classes)))


def _refuse_absent(table: Classes) -> None:
    """A class whose every sample has weight zero is not there."""
    if table.weight is None:
        return
    total = np.bincount(table.codes, weights=table.weight, minlength=len(table.classes))
    if np.count_nonzero(total) < 2:
        raise InputError(
            f"only the class {table.classes[int(np.argmax(total))]} has positive weight",
            "at least 2 classes with samples that count",
            "Check sample_weight and class_weight",
        )


def _hard(problem: Intervals, signs: np.ndarray, name: str, model: LinearSVC) -> Answer:
    """The widest margin, or an InputError that carries the proof that none exists."""
    from wonderland.solve.separation import separate

    used = problem.rows(np.flatnonzero(problem.strength > 0))
    kept = signs[problem.strength > 0]
    verdict = separate(used.X, kept, fit_intercept=problem.intercept, widest=False)
    if not verdict.separable:
        raise _inseparable(verdict, name)
    smallest = float((kept * (used.X @ verdict.coef + verdict.intercept)).min())
    guess = Point(verdict.coef / smallest, verdict.intercept / smallest, np.zeros(len(kept)))
    answer = solve_hard(used, float(model.tol), int(model.max_iter), guess)
    beta = np.zeros(len(signs))
    beta[problem.strength > 0] = answer.point.beta
    return answer._replace(point=answer.point._replace(beta=beta))


def _inseparable(verdict: Any, name: str) -> InputError:
    rows = np.flatnonzero(verdict.weights)
    error = InputError(
        f"C is inf, but no hyperplane separates class {name!r} from the others: weighted averages "
        f"of {len(rows)} samples, among them rows {rows[:4].tolist()}, are the same point on both "
        f"sides (up to {verdict.residual:.1e})",
        "classes that a hyperplane separates, for a hard margin",
        "Pass a finite C; the weights that prove it are in this error's `certificate`",
    )
    error.certificate = verdict  # type: ignore[attr-defined]
    return error


def _separated(told: list[Told]) -> Claim:
    gap = min(fact.margin for fact in told)
    meaning = f"every sample is at distance ≥ {gap:.4g} on its own side: no loss is paid"
    return Claim("separable", value=True, bound=None, holds=None, meaning=meaning)
