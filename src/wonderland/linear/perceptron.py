"""The perceptron.

    find w, b with  y_i (w·x_i + b) > 0 for every sample,   y_i ∈ {−1, +1}

one sample at a time: on a mistake (y (w·x + b) ≤ 0) w ← w + ηy x and b ← b + ηy. Where some plane
separates the classes with margin γ in the coordinates (x, 1), whose length is at most C, it makes
at most C²/γ² mistakes; where none does it never ends, and in a fixed order it cycles. Several
classes: each against the rest (the largest score wins) or each pair (the most votes win; a vote is
the sign of a pair's score). Shapes: X (n, d), W (K, d), b (K,), K problems of two classes each.

Reference: Rosenblatt (1958); Novikoff (1962); Freund & Schapire (1999) for averaging and voting.
"""

from itertools import combinations
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.core.evidence import Evidence
from wonderland.core.random import seed_of
from wonderland.core.solution import Solution
from wonderland.core.status import Status
from wonderland.linear.model import LinearModel
from wonderland.linear.perceptron_epochs import Ended, Halting, run_epochs
from wonderland.linear.perceptron_evidence import Told, claims_of, judge
from wonderland.linear.perceptron_model import Committee, PairVotes
from wonderland.linear.perceptron_online import Rule
from wonderland.shell.classifier import Classifier
from wonderland.shell.inputs import Classes, read_classes
from wonderland.shell.parts import read_part
from wonderland.shell.streams import is_stream
from wonderland.solve.separation import Separation, separate

__all__ = ["Perceptron", "fit_perceptron"]

VARIANTS = ("last", "averaged", "voted")
MULTI = ("ovr", "ovo")
PENALTIES = (None, "l2", "l1", "elasticnet")


class Problems(NamedTuple):
    """The two-class problems several classes are turned into.

    Attributes:
        signs: (k, K): −1, 0 or +1 for class c in problem j.
        pairs: (negative class, positive class) of each problem, for one-against-one.
    """

    signs: np.ndarray
    pairs: list[tuple[int, int]]

    @classmethod
    def of(cls, classes: int, multi_class: str) -> "Problems":
        """One problem for two classes, else one per class or per pair."""
        if classes == 2:
            return cls(np.array([[-1.0], [1.0]]), [(0, 1)])
        if multi_class == "ovr":
            return cls(2.0 * np.eye(classes) - 1.0, [])
        pairs = list(combinations(range(classes), 2))
        signs = np.zeros((classes, len(pairs)))
        for j, (low, high) in enumerate(pairs):
            signs[low, j], signs[high, j] = -1.0, 1.0
        return cls(signs, pairs)


def fit_perceptron(
    X: Any, signs: Any, *, max_iter: int = 1000, fit_intercept: bool = True
) -> Solution[LinearModel]:
    """The plain perceptron of two classes in the order of the samples, until no mistake is left.

    Args:
        X: (n, d), dense or CSR.
        signs: (n,), −1 or +1.
        max_iter: Most passes.
        fit_intercept: Whether b moves.

    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> found = fit_perceptron(X, [-1, 1, 1, 1])
    >>> found.model.coef.tolist(), found.model.intercept.item()
    ([2.0, 2.0], -1.0)
    """
    X = X.tocsr() if sp.issparse(X) else np.asarray(X, np.float64)
    codes = (np.asarray(signs) > 0).astype(int)
    problem = Problems.of(2, "ovr").signs
    rule = Rule(problem, np.ones_like(problem), 1.0, 0.0, 0.0, 0.0, float(fit_intercept))
    zeros = np.zeros((1, X.shape[1])), np.zeros(1)
    halting = Halting(max_iter, None, 5, None, None)
    found = run_epochs((X, codes, None), rule, zeros, halting)
    model = LinearModel(found.coef[0], found.intercept[0])
    told = {"mistakes": int(found.mistakes[0]), "iterations": found.epochs}
    return Solution(model, int(found.status), told)


class Perceptron(Classifier):
    """A linear classifier learned online, by its mistakes.

    Sparse tables are treated as the dense ones they stand for (scikit-learn moves the intercept a
    hundred times less on them). With `shuffle` the order is drawn anew before every pass, by NumPy;
    scikit-learn draws it otherwise, so that equal coefficients need `shuffle=False`.

    Args:
        penalty: None, "l2", "l1" or "elasticnet".
        alpha: Strength of the penalty.
        l1_ratio: Share of L1 in "elasticnet".
        fit_intercept: Whether b is free; it is never penalised.
        max_iter: Most passes over the samples.
        tol: A pass counts as an improvement when it lowers the mean loss (or raises the validation
            score) by more; None goes on until no mistake is left.
        shuffle: Whether every pass takes the samples in another order.
        verbose: Whether to print a line for each pass.
        eta0: η, the length of a step.
        n_jobs: Accepted for scikit-learn's sake: all problems share one pass.
        random_state: Seed of the order and of the validation part.
        early_stopping: Whether to set samples aside and stop when their score no longer rises.
        validation_fraction: The share set aside.
        n_iter_no_change: Passes without improvement before stopping.
        class_weight: None, "balanced", or label → weight.
        warm_start: Whether to begin where the last fit ended.
        time_limit: Most seconds.
        multi_class: "ovr" (each class against the rest) or "ovo" (each pair, majority of signs).
        variant: "last" (the final w), "averaged" (the mean of all w on the way) or "voted" (every
            w on the way votes with its lifetime).

    Attributes:
        coef_: W (1, d) for two classes, else (K, d).
        intercept_: b (K,).
        n_iter_: Passes made.
        t_: Samples seen, and one.
        evidence_: Claims: separable, margin, radius, mistakes, iteration_bound, cycle, ….
        separation_: For each problem the verdict of `solve.separation`, where one was reached.

    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> fitted = Perceptron(tol=None, shuffle=False).fit(X, ["no", "yes", "yes", "yes"])
    >>> fitted.predict([[1.0, 1.0]]).item(), fitted.evidence_["mistakes"].holds
    ('yes', True)
    """

    def __init__(
        self,
        *,
        penalty: str | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        time_limit: float | None = None,
        multi_class: str = "ovr",
        variant: str = "last",
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.time_limit = time_limit
        self.multi_class = multi_class
        self.variant = variant

    def _check_parameters(self) -> None:
        for name, known in (
            ("variant", VARIANTS),
            ("multi_class", MULTI),
            ("penalty", PENALTIES),
        ):
            if (value := getattr(self, name)) not in known:
                names = [option for option in known if option is not None]
                raise InputError(
                    f"{name} is {value!r}", f"one of {', '.join(names)}", nearest(value, names)
                )
        for name, low, high in RANGES:
            _check_number(name, getattr(self, name), low, high)
        if self.variant == "voted" and self.penalty is not None:
            raise InputError(
                f"variant='voted' with penalty={self.penalty!r}",
                "no penalty: the voters are sums of samples",
                "Pass penalty=None, or variant='averaged'",
            )

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn(self, *data: Any) -> dict[str, Any]:
        X, y, sample_weight = data
        if is_stream(X):
            return self._learn_stream(X, y, sample_weight)
        # Class weights are kept apart: one-against-the-rest weighs its own class only.
        table = read_classes(self, X, y, sample_weight)
        fixed = {"target_names_": [table.target], "classes_": table.classes}
        return {**fixed, **self._fit(table)}

    def _fit(self, table: Classes) -> dict[str, Any]:
        problems = Problems.of(len(table.classes), self.multi_class)
        rule = self._rule(table, problems)
        warm = self.warm_start and getattr(self, "coef_", None) is not None
        start = self._start(table, problems, warm=warm)
        halting = self._halting(int(self.max_iter))
        found = run_epochs((table.X, table.codes, table.weight), rule, start, halting)
        verdicts = judge(table, problems.signs, found, intercept=bool(self.fit_intercept))
        told = Told(verdicts, rule, found, table, plain=self.penalty is None and not warm)
        return {**self._published(found, table, problems, 0), **_verdicts(told)}

    def _published(
        self, found: Ended, table: Classes, problems: Problems, before: float
    ) -> dict[str, Any]:
        coef, intercept = found.coef.astype(table.dtype), found.intercept.astype(table.dtype)
        return {
            "coef_": coef,
            "intercept_": intercept,
            "model_": _model(found, coef, intercept, problems),
            "n_iter_": found.epochs,
            "t_": float(before + found.epochs * table.X.shape[0] + (before == 0)),
            "status_": found.status,
        }

    def _halting(self, limit: int) -> Halting:
        tol = None if self.tol is None else float(self.tol)
        part = float(self.validation_fraction) if self.early_stopping else None
        seed = seed_of(self.random_state) if self.shuffle or self.early_stopping else None
        return Halting(
            limit,
            tol,
            int(self.n_iter_no_change),
            self.time_limit,
            seed,
            bool(self.shuffle),
            part,
            self.variant,
            bool(self.verbose),
        )

    def _rule(self, table: Classes, problems: Problems) -> Rule:
        share = {None: 0.0, "l2": 0.0, "l1": 1.0, "elasticnet": float(self.l1_ratio)}[self.penalty]
        alpha = 0.0 if self.penalty is None else float(self.alpha)
        eta = float(self.eta0)
        return Rule(
            signs=problems.signs,
            steps=eta * self._class_steps(table, problems),
            shrink=max(0.0, 1.0 - (1.0 - share) * eta * alpha),
            clip=share * eta * alpha,
            l2=(1.0 - share) * alpha,
            l1=share * alpha,
            intercept=float(bool(self.fit_intercept)),
        )

    def _class_steps(self, table: Classes, problems: Problems) -> np.ndarray:
        """(k, K): the weight of class c in problem j; the rest of one class weighs one."""
        own = _class_weights(self.class_weight, table)[:, None]
        if problems.pairs:
            return np.repeat(own, problems.signs.shape[1], axis=1)
        return np.where(problems.signs > 0, own, 1.0)

    def _start(
        self, table: Classes, problems: Problems, *, warm: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        shape = problems.signs.shape[1], table.X.shape[1]
        if not warm:
            return np.zeros(shape), np.zeros(shape[0])
        if self.coef_.shape != shape:
            raise InputError(
                f"warm_start from coefficients of shape {self.coef_.shape}",
                f"the shape {shape} of these data",
                "Pass warm_start=False, or the columns and classes of the last fit",
            )
        return np.asarray(self.coef_, float), np.asarray(self.intercept_, float)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One pass over these samples, from where the last one ended.

        Args:
            X: (n, d).
            y: Labels (n,).
            classes: All labels there will be; needed in the first call.
            sample_weight: (n,) ≥ 0.
        """
        first = getattr(self, "coef_", None) is None
        if first and self.class_weight == "balanced":
            raise InputError(
                "class_weight 'balanced' is not supported for partial_fit",
                "weights that do not need all samples",
                "Pass a mapping from labels to weights computed beforehand",
            )
        before = dict(self.__dict__)
        try:
            self._check_parameters()
            learned = self._learn_part(X, y, classes, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        self.__dict__.update(learned)
        return self

    def _learn_part(self, X: Any, y: Any, classes: Any, weight: Any) -> dict[str, Any]:
        known = getattr(self, "classes_", None)
        table = read_part(self, X, y, weight, known if classes is None else classes)
        problems = Problems.of(len(table.classes), self.multi_class)
        begun = known is not None
        start = self._start(table, problems, warm=begun)
        halting = self._halting(1)._replace(tol=None, part=None)
        found = run_epochs(
            (table.X, table.codes, table.weight), self._rule(table, problems), start, halting
        )
        told = Told([], self._rule(table, problems), found, table, plain=False)
        found = found._replace(status=Status.SOLVED)
        return {
            "classes_": table.classes,
            "target_names_": [table.target],
            **self._published(found, table, problems, getattr(self, "t_", 0.0)),
            **_verdicts(told),
        }

    def separation(self, X: Any, y: Any) -> list[Separation]:
        """Decide for each two-class problem of (X, y) whether a plane separates it, at any cost.

        Args:
            X: (n, d).
            y: Labels (n,).
        """
        table = read_classes(self, X, y, None)
        problems = Problems.of(len(table.classes), self.multi_class)
        found = []
        for sign in problems.signs.T:
            kept = sign[table.codes] != 0
            signs = sign[table.codes][kept]
            X = table.X[kept] if not kept.all() else table.X
            found.append(separate(X, signs, fit_intercept=bool(self.fit_intercept)))
        return found

    def _scores(self, X: Any) -> np.ndarray:
        return np.asarray(self.model_.predict(X))


def _model(found: Ended, coef: np.ndarray, intercept: np.ndarray, problems: Problems) -> Any:
    """f(x): scores of the classes, (n,) for two."""
    single = len(intercept) == 1
    inner: Any = LinearModel(coef[0] if single else coef, intercept[0] if single else intercept)
    if found.voters is not None:
        shares = tuple(votes / votes.sum() for votes in found.voters.votes)
        inner = Committee(found.voters.coef, shares, single)
    return PairVotes(inner, problems.signs) if len(problems.pairs) > 1 else inner


def _verdicts(told: Told) -> dict[str, Any]:
    return {"evidence_": Evidence(claims_of(told)), "separation_": told.verdicts}


def _class_weights(class_weight: Any, table: Classes) -> np.ndarray:
    """One weight per class (k,)."""
    count = len(table.classes)
    if class_weight is None:
        return np.ones(count)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return len(table.codes) / (count * np.bincount(table.codes, minlength=count))
    if not isinstance(class_weight, dict):
        raise InputError(
            f"class_weight is {class_weight!r}",
            'None, "balanced", or a mapping from labels to weights',
            'Pass class_weight="balanced"',
        )
    labels = table.classes.tolist()
    if unknown := [label for label in class_weight if label not in labels]:
        raise InputError(
            f"class_weight has {unknown[0]!r}, which is no label of y",
            f"labels among {', '.join(map(repr, labels[:5]))}",
            "Check the labels in class_weight against np.unique(y)",
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])


RANGES = (
    # (name, lowest, highest); None is allowed where the default is None or tol
    ("alpha", 0.0, np.inf),
    ("l1_ratio", 0.0, 1.0),
    ("max_iter", 1, np.inf),
    ("tol", 0.0, np.inf),
    ("eta0", 0.0, np.inf),
    ("validation_fraction", 0.0, 1.0),
    ("n_iter_no_change", 1, np.inf),
    ("time_limit", 0.0, np.inf),
)


def _check_number(name: str, value: Any, low: float, high: float) -> None:
    if value is None and name in ("tol", "time_limit"):
        return
    if not isinstance(value, Real):
        raise InputTypeError(f"{name} is {value!r}", "a number", f"Leave {name} at its default")
    strict = name in ("eta0", "validation_fraction")
    number = float(value)
    inside = (low < number if strict else low <= number) and number <= high
    if not inside or (name == "validation_fraction" and number >= high):
        sort = ">" if strict else "≥"
        raise InputError(
            f"{name} is {value!r}",
            f"a number {sort} {low:g}" + (f" and at most {high:g}" if high < np.inf else ""),
            f"Leave {name} at its default",
        )
