"""Support vector classification with a kernel.

    minimise over f, b    ½‖f‖² + C Σ_i ω_i max(0, 1 − y_i(f(x_i) + b)),    y_i = ±1,

f in the space of functions that the kernel k spans; f(x) = Σ_i β_i k(x_i, x) with β_i between 0 and
Cω_i y_i and Σβ_i = 0. More than two classes: one against one as LIBSVM, or one against the rest.
C = ∞ is the hard margin. Shapes: X (n, d), β (n,).

Reference: Cortes & Vapnik (1995), Support-vector networks. Solver: `solve/box_solver.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.core.evidence import Evidence
from wonderland.kernels.custom import Precomputed
from wonderland.kernels.kernel import Kernel
from wonderland.shell.classifier import Classifier
from wonderland.shell.inputs import Classes
from wonderland.solve.box_gram import Gram
from wonderland.svm.approximate_machine import (
    Machine,
    check_approximation,
    features_of,
    fit_machines,
)
from wonderland.svm.kernel_machine import (
    KernelScores,
    check_bounds,
    check_machine,
    hyperplane,
    kernel_of,
    limits_of,
    memory_of,
    mercer_claims,
    precision_of,
    refuse_holes,
)
from wonderland.svm.kernel_machine_calibration import couple, sigmoid
from wonderland.svm.kernel_machine_evidence import Told, claims_of, worst
from wonderland.svm.kernel_machine_held_out import calibrated
from wonderland.svm.kernel_machine_pairs import (
    Duel,
    Supports,
    as_one_against_rest,
    duels,
    solve_all,
    supports,
    votes,
)
from wonderland.svm.kernel_model import FeatureModel

__all__ = ["SVC"]


class SVC(Classifier):
    """Support vector machine with a kernel.

    Args:
        C: Weight of the loss, > 0; infinite for the hard margin.
        kernel: "rbf", "linear", "poly", "sigmoid", "laplacian", "matern", "cosine",
            "precomputed", a kernel of `wl.kernels`, or a function.
        degree: Of "poly".
        gamma: "scale": 1/(d·Var X) (weighted as the samples are); "auto": 1/d; or a number.
        coef0: Of "poly" and "sigmoid".
        shrinking: Accepted for scikit-learn's sake: blocks always hold what still moves.
        probability: Whether `predict_proba` is calibrated, on five held-out parts.
        tol: Bound on the relative duality gap and on the violation m(β) − M(β).
        cache_size: Megabytes of kernel values that may be kept; at least one block always is.
        class_weight: None, "balanced" or a mapping label → weight.
        verbose: Accepted for scikit-learn's sake.
        max_iter: Most steps of two variables for one problem, −1 for no limit.
        decision_function_shape: "ovr" (n, k) or "ovo" (n, k(k − 1)/2).
        break_ties: Whether equal votes are decided by the scores.
        random_state: Of the held-out parts, and of an approximation's draws.
        multi_class: "ovo", or "ovr" (one machine for each class).
        approximation: `wl.kernels.Nystroem`, `RandomFeatures` or `PivotedCholesky`: features of a
            low rank in place of the kernel, for any number of rows; None: exact.

    Attributes:
        support_: Rows of the support vectors, class by class (m,).
        support_vectors_: Themselves (m, d); absent with an approximation.
        n_support_: Their number in each class (k,).
        dual_coef_: β (1, m) for two classes; LIBSVM's layout (k − 1, m); (k, m) with "ovr";
            w (s, r) of the features with an approximation.
        intercept_: b of each machine.
        coef_: The hyperplanes, for the linear kernel.
        evidence_: primal, dual, duality_gap, kkt_violation, support_vectors, margin, ….
        model_: The scores of all machines as an `equinox.Module`.

    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], ["same", "same", "xor", "xor"]
    >>> fitted = SVC(gamma=1.0, C=10.0).fit(X, y)
    >>> fitted.predict([[0.1, 0.9], [0.9, 0.9]]).tolist(), fitted.n_support_.tolist()
    (['xor', 'same'], [2, 2])
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        multi_class: str = "ovo",
        approximation: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multi_class = multi_class
        self.approximation = approximation

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are welcome; a precomputed kernel is a table of pairs."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _check_parameters(self) -> None:
        check_machine(self)
        check_bounds(self, {"C": 0.0})
        check_approximation(self)
        for name, known in (
            ("decision_function_shape", ("ovr", "ovo")),
            ("multi_class", ("ovo", "ovr")),
        ):
            if getattr(self, name) not in known:
                came = getattr(self, name)
                raise InputError(
                    f"{name} is {came!r}", f"one of {', '.join(known)}", nearest(came, known)
                )
        if self.break_ties and self.decision_function_shape == "ovo":
            raise InputError(
                "break_ties must be False when decision_function_shape is 'ovo'",
                "scores of classes, to decide between equal votes",
                "Pass decision_function_shape='ovr'",
            )
        if not (isinstance(self.probability, bool | np.bool_) or self.probability == "deprecated"):
            raise InputTypeError(
                f"probability is {self.probability!r}", "True or False", "Pass probability=False"
            )

    def _learn(self, *data: Any) -> dict[str, Any]:
        # Class weights must not enter "scale": it asks for the weights of samples alone.
        self._rows_weigh = data[2]
        return super()._learn(*data)

    def _fit(self, table: Classes) -> dict[str, Any]:
        given = self.__dict__.pop("_rows_weigh", None)
        counted = None if given is None else np.asarray(given, float) * np.ones(len(table.codes))
        kernel = kernel_of(self, table.X, counted)
        limits, cost = limits_of(self), self._costs(table)
        problems = duels(table.codes, table.classes, against_rest=self.multi_class == "ovr")
        if self.approximation is not None:
            return self._approximate(kernel, table, problems, cost)
        gram = Gram(kernel, table.X)
        if len(problems) > 1 and 4.0 * gram.n**2 <= memory_of(self):
            gram = gram.keep(np.argsort(table.codes, kind="stable"))
        told = solve_all(gram, problems, cost, limits)
        if np.isinf(float(self.C)):
            _refuse_inseparable(told)
        found = supports(table.codes, len(table.classes), problems, told)
        fixed = self._published(kernel, table, found, told)
        if self.probability is True:
            fixed |= calibrated(gram, problems, cost, limits, self.random_state)
        return fixed

    def _approximate(
        self, kernel: Kernel, table: Classes, problems: list[Duel], cost: np.ndarray
    ) -> dict[str, Any]:
        """The same problems on features of a low rank."""
        phi = features_of(self, kernel, table.X, cost)
        machines = []
        for duel in problems:
            counts = cost[duel.rows] > 0
            rows = duel.rows[counts]
            machines.append(Machine(duel.name, rows, duel.signs[counts], cost[rows]))
        fit = fit_machines(phi, table.X, machines, float(self.tol))
        k = len(table.classes)
        return {
            **fit.fixed,
            "n_support_": np.bincount(table.codes[fit.support], minlength=k).astype(np.int32),
            "shape_fit_": table.X.shape,
            "class_weight_": np.ones(k),
            "evidence_": Evidence(fit.claims),
        }

    def _costs(self, table: Classes) -> np.ndarray:
        """Cω (n,); a class without weight is not there."""
        n = len(table.codes)
        weight = np.ones(n) if table.weight is None else table.weight
        total = np.bincount(table.codes, weights=weight, minlength=len(table.classes))
        if np.count_nonzero(total) < 2:
            raise InputError(
                f"only the class {table.classes[int(np.argmax(total))]!r} has positive weight",
                "at least 2 classes with samples that count",
                "Check sample_weight and class_weight",
            )
        return np.where(weight > 0, float(self.C) * np.maximum(weight, TINY), 0.0)

    def _published(
        self, kernel: Kernel, table: Classes, found: Supports, told: list[Told]
    ) -> dict[str, Any]:
        """Fitted attributes from all answers."""
        given = isinstance(kernel, Precomputed)
        vectors = found.rows if given else table.X[found.rows]
        single = len(told) == 1
        coef, intercept = (
            (found.coef[0], found.intercept[0]) if single else (found.coef, found.intercept)
        )
        claims = claims_of(told, float(self.tol))
        return {
            "support_": found.rows,
            "support_vectors_": np.empty((0, 0)) if given else vectors,
            "n_support_": found.counts,
            "dual_coef_": found.compact,
            "intercept_": found.intercept,
            "shape_fit_": table.X.shape,
            "fit_status_": 0 if worst([fact.fit.status for fact in told]).ok else 1,
            "n_iter_": np.array([fact.fit.steps for fact in told], np.int32),
            "class_weight_": np.ones(len(table.classes)),
            "model_": KernelScores(kernel, vectors, coef, intercept),
            "evidence_": Evidence([*claims, *mercer_claims(kernel, table.X, found.rows)]),
            "status_": worst([fact.fit.status for fact in told]),
        }

    @property
    def coef_(self) -> np.ndarray:
        """The hyperplane of each machine (s, d), for the linear kernel."""
        return hyperplane(self)

    def _read(self, X: Any) -> Any:
        refuse_holes(self, X)
        return super()._read(X)

    def _raw(self, X: Any) -> np.ndarray:
        """Scores of each machine (n,) or (n, s)."""
        if isinstance(self.model_, FeatureModel):
            return np.asarray(self.model_.predict(X))
        entries = float(X.shape[0]) * len(self.support_)
        return self.model_.predict(X, precision_of(self, entries, self.dual_coef_))

    def _scores(self, X: Any) -> np.ndarray:
        raw = self._raw(X)
        k = len(self.classes_)
        if k == 2 or self.multi_class == "ovr" or self.decision_function_shape == "ovo":
            return raw
        return as_one_against_rest(raw, k)

    def predict(self, X: Any) -> Any:
        """The label with most votes (n,), in the container chosen by `set_output`."""
        read = self._read(X)
        raw, k = self._raw(read), len(self.classes_)
        if k > 2 and self.multi_class == "ovo":
            raw = as_one_against_rest(raw, k) if self.break_ties else votes(raw, k)
        return self._contain(self.classes_[self._decide(raw)], X)

    @property
    def predict_proba(self) -> Callable[[Any], Any]:
        """P(class | x) (n, k), calibrated on held-out samples; needs probability=True."""
        if self.probability is not True:
            raise AttributeError("predict_proba is not available when probability=False")
        return self._probabilities

    @property
    def predict_log_proba(self) -> Callable[[Any], Any]:
        """Their logarithms (n, k)."""
        self.predict_proba  # noqa: B018  # it refuses where there are none
        return lambda X: np.log(self._probabilities(X))

    def _probabilities(self, X: Any) -> Any:
        raw = self._raw(self._read(X))
        columns = raw[:, None] if raw.ndim == 1 else raw
        each = np.column_stack(
            [
                sigmoid(column, a, b)
                for column, a, b in zip(columns.T, self.probA_, self.probB_, strict=True)
            ]
        )
        if raw.ndim == 1:
            found = np.column_stack([1.0 - each[:, 0], each[:, 0]])
        elif self.multi_class == "ovr":
            found = each / each.sum(axis=1, keepdims=True)
        else:
            found = couple(each, len(self.classes_))
        return self._labelled(found, X)


TINY = 1e-300


def _refuse_inseparable(told: list[Told]) -> None:
    """A hard margin that no step could reach: the averages of both classes that meet."""
    for fact in told:
        beta, norm = fact.fit.beta, fact.fit.certificate.norm
        mass = 0.5 * float(np.abs(beta).sum())
        if fact.fit.status.ok or mass <= 0 or norm > (MEETING * mass) ** 2:
            continue
        error = InputError(
            f"C is inf, but no surface of this kernel separates {fact.name}: weighted averages of "
            f"both are the same point (up to {np.sqrt(max(norm, 0.0)) / mass:.1e})",
            "classes that the kernel separates, for a hard margin",
            "Pass a finite C; the weights that prove it are in this error's `certificate`",
        )
        error.certificate = np.abs(beta) / mass  # type: ignore[attr-defined]
        raise error


MEETING = 1e-4  # distance of the averages below which they count as one point
