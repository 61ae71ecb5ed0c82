"""`SearchCV`: cross-validated search whose fits share compiled programs wherever shapes allow it.

For candidates λ_1 … λ_m and folds (T_j, V_j), j = 1 … k, the search maximises the mean score

    s(λ) = 1/k Σ_j score( fit(X[T_j], y[T_j]; λ), X[V_j], y[V_j] ).

The m·k fits of an estimator that can be fitted together (networks) train as one program, with
learning rates, penalties, dropout and seeds as batch axes; the results are those of fitting one by
one with the same seeds. Every other estimator is searched exactly as by scikit-learn.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, check_cv
from sklearn.utils import check_random_state, get_tags, indexable

from wonderland.core.cache import enable_compile_cache
from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.core.evidence import Evidence
from wonderland.shell.search_evidence import describe
from wonderland.shell.search_gradient import visited
from wonderland.shell.together import Bank, Member, Split, can_share

__all__ = ["SearchCV"]

_METHODS = ("grid", "random", "halving", "gradient")
_COMMON = "scoring n_jobs refit verbose error_score return_train_score"


class SearchCV(GridSearchCV):
    """Search for hyperparameters by cross-validation, all fits together where they can be.

    Args:
        estimator: Anything with scikit-learn's manners.
        space: Parameter names → lists of values, or → distributions with `rvs` for "random" and
            "halving"; or a list of such mappings. For "gradient" → ranges (low, high).
        method: "grid" tries all, "random" draws `n_iter`, "halving" starts with few resources and
            keeps the best 1/factor of the candidates each time, "gradient" descends the
            cross-validated loss by its derivative and judges the points it went through.
        scoring, n_jobs, refit, cv, verbose, error_score, return_train_score: As in scikit-learn's
            `GridSearchCV`; `n_jobs` concerns fits that cannot share a program.
        n_iter: Candidates drawn by "random", and by "halving" from distributions; points visited
            by "gradient".
        random_state: Seed of the draws and of the subsamples.
        factor, resource, min_resources, max_resources: As in `HalvingGridSearchCV`.

    Attributes:
        cv_results_, best_estimator_, best_params_, best_score_, best_index_, n_splits_, scorer_,
            refit_time_, multimetric_: As in scikit-learn.
        evidence_: How many fits shared how many programs and why others did not, and whether the
            lead of the best over the runner-up is more than chance.

    >>> from sklearn.datasets import load_iris
    >>> import wonderland as wl
    >>> search = wl.SearchCV(wl.LogisticRegression(), {"C": [0.01, 1.0, 100.0]}, cv=3)
    >>> search.fit(*load_iris(return_X_y=True)).best_params_
    {'C': 1.0}
    """

    evidence_: Evidence

    def __init__(  # scikit-learn's parameters are the contract
        self,
        estimator: Any,
        space: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        method: str = "grid",
        scoring: Any = None,
        n_iter: int = 10,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        random_state: Any = None,
        factor: float = 3,
        resource: str = "n_samples",
        min_resources: Any = "exhaust",
        max_resources: Any = "auto",
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.method = method
        self.scoring = scoring
        self.n_iter = n_iter
        self.n_jobs = n_jobs
        self.refit = refit
        self.cv = cv
        self.verbose = verbose
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.random_state = random_state
        self.factor = factor
        self.resource = resource
        self.min_resources = min_resources
        self.max_resources = max_resources

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Try the candidates on the folds, then fit the best on all rows.

        Args:
            X: The table, as the estimator takes it.
            y: Targets.
            **params: `sample_weight`, `groups` and what else scikit-learn's searches hand on.

        Returns:
            The fitted search.
        """
        self._check_parameters()
        enable_compile_cache()
        X, y = indexable(X, y)
        _refuse_non_finite_target(y)
        if self.method == "gradient":
            return self._fit_gradient(X, y, params)
        reason = self._reason_apart(params)
        if reason:
            search, bank = self._apart(X, y, params), None
        else:
            bank = Bank(self.estimator, X, y, params.get("sample_weight"))
            search = self._together(bank, X, y, dict(params))
        self._adopt(search, bank)
        self.evidence_ = describe(self, bank, reason)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags = deepcopy(get_tags(self.estimator).target_tags)
        return tags

    def _check_parameters(self) -> None:
        if self.method not in _METHODS:
            raise InputError(
                f"method={self.method!r}", f"one of {_METHODS}", nearest(self.method, _METHODS)
            )
        spaces = [self.space] if isinstance(self.space, Mapping) else self.space
        if not isinstance(spaces, Sequence) or not all(isinstance(s, Mapping) for s in spaces):
            raise InputTypeError(
                f"space is a {type(self.space).__name__}",
                "a mapping from parameter names to lists of values or distributions",
                "Pass for example space={'alpha': [0.1, 1.0, 10.0]}",
            )
        known = self.estimator.get_params()
        for name in [name for space in spaces for name in space]:
            if name not in known:
                raise InputError(
                    f"space names the parameter {name!r}",
                    f"a parameter of {type(self.estimator).__name__}",
                    nearest(name, known),
                )
        if self.method == "grid" and self._draws:
            raise InputError(
                "a distribution in the space of a grid",
                "lists of values, all of which are tried",
                'Pass method="random" to draw from distributions',
            )

    @property
    def _draws(self) -> bool:
        """Whether some parameter is a distribution to draw from."""
        spaces = [self.space] if isinstance(self.space, Mapping) else self.space
        return any(hasattr(values, "rvs") for space in spaces for values in space.values())

    def _reason_apart(self, params: Mapping[str, Any]) -> str:
        """Why scikit-learn searches by itself; empty when fits can share programs."""
        if not can_share(self.estimator):
            return f"{type(self.estimator).__name__} fits one setting at a time"
        if get_config()["enable_metadata_routing"]:
            return "metadata routing is enabled, which hands data to steps by name"
        others = set(params) - {"sample_weight", "groups"}
        if others:
            return f"fit was given {', '.join(sorted(others))}"
        return ""

    def _fit_gradient(self, X: Any, y: Any, params: dict[str, Any]) -> Self:
        """Search the grid of the points that a descent of the held-out loss went through."""
        checked = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = list(checked.split(X, y, params.pop("groups", None)))
        data = X, y, params.get("sample_weight")
        points = visited(self.estimator, self.space, data, splits, self.n_iter)
        settings = {name: getattr(self, name) for name in _COMMON.split()}
        places = [{name: [value] for name, value in point.items()} for point in points]
        search = SearchCV(self.estimator, places, cv=splits, **settings).fit(X, y, **params)
        self.__dict__.update({n: v for n, v in vars(search).items() if n.endswith("_")})
        return self

    def _apart(self, X: Any, y: Any, params: Mapping[str, Any]) -> Any:
        """scikit-learn's own search."""
        kind, options = self._kind()
        return kind(self.estimator, self.space, cv=self.cv, **options).fit(X, y, **params)

    def _together(self, bank: Bank, X: Any, y: Any, params: dict[str, Any]) -> Any:
        """scikit-learn's search over members of a bank, which has fitted them beforehand."""
        kind, options = self._kind()
        checked = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        # Drawn once: a shuffling splitter gives other folds each time it is asked.
        splits = list(checked.split(X, y, params.pop("groups", None)))
        search = _banked(kind)(Member(self.estimator, bank), self.space, cv=splits, **options)
        search.splits = splits
        return search.fit(X, y, rows=np.arange(_count(X)), **params)

    def _kind(self) -> tuple[type, dict[str, Any]]:
        """scikit-learn's class for the method, and its options."""
        options = {name: getattr(self, name) for name in _COMMON.split()}
        if self.method == "grid":
            return GridSearchCV, options
        seed = {"random_state": self.random_state}
        if self.method == "random":
            return RandomizedSearchCV, {**options, **seed, "n_iter": self.n_iter}
        return self._halving({**options, "random_state": self._seed()})

    def _halving(self, options: dict[str, Any]) -> tuple[type, dict[str, Any]]:
        import_module("sklearn.experimental.enable_halving_search_cv")
        module = import_module("sklearn.model_selection")
        for name in ("factor", "resource", "min_resources", "max_resources"):
            options[name] = getattr(self, name)
        if not self._draws:
            return module.HalvingGridSearchCV, options
        return module.HalvingRandomSearchCV, {**options, "n_candidates": self.n_iter}

    def _seed(self) -> int:
        """A number, since halving asks for its subsamples more than once."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _adopt(self, search: Any, bank: Bank | None) -> None:
        """Take over the results of scikit-learn's search."""
        results = {n: v for n, v in vars(search).items() if n.endswith("_") and n[0] != "_"}
        self.__dict__.update(results)
        if bank is None:
            return
        if "best_estimator_" in results:
            self.best_estimator_ = results["best_estimator_"].estimator
        seconds = np.reshape(bank.seconds, (-1, self.n_splits_))
        self.cv_results_["mean_fit_time"] = seconds.mean(axis=1)
        self.cv_results_["std_fit_time"] = seconds.std(axis=1)


class _Banked:
    """A search of scikit-learn's whose bank fits each round of candidates before scoring."""

    splits: list[Split]

    def _run_search(self, evaluate_candidates: Callable[..., Any], **context: Any) -> Any:
        def evaluate(candidates: Any, cv: Any = None, *rest: Any, **more: Any) -> Any:
            chosen = list(candidates)
            splits = self.splits if cv is None else list(cv.split(None, None))
            self.estimator.bank.train(chosen, splits)  # type: ignore[attr-defined]
            return evaluate_candidates(chosen, cv, *rest, **more)

        return super()._run_search(evaluate, **context)  # type: ignore[misc]


def _banked(kind: type) -> Any:
    """The search class with a bank; scikit-learn ≥ 1.9 looks for `callback_ctx` by its name."""
    members: dict[str, Any] = {}
    if "callback_ctx" in inspect.signature(kind._run_search).parameters:  # type: ignore[attr-defined]

        def run(self: Any, evaluate_candidates: Any, *, callback_ctx: Any = None) -> Any:
            return _Banked._run_search(self, evaluate_candidates, callback_ctx=callback_ctx)

        members["_run_search"] = run
    return type(f"Banked{kind.__name__}", (_Banked, kind), members)


def _count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _refuse_non_finite_target(y: Any) -> None:
    """Splitters look at y before any estimator does, and have no words for NaN."""
    values = np.asarray(y) if y is not None else np.zeros(0)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise InputError(
            f"y has a value that is NaN or infinite, first in row {row}",
            "finite targets",
            "Leave such rows out or fill them",
        )
